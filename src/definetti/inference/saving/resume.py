"""`resume`: a run goes on where its checkpoint was written, bit by bit as if it had never been interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from os import PathLike
from typing import Any

from definetti import archive, show
from definetti.errors import ModelError
from definetti.files import as_path
from definetti.inference.marginals import answered
from definetti.inference.progress import check_progress
from definetti.inference.saving.checkpoint import Kept, read_run
from definetti.journal import Goal, recording
from definetti.model.checked_input import check_length, whole
from definetti.model.marginals import Marginals
from definetti.samplers.protocol import Progress


def resume(
    path: str | PathLike[str],
    *,
    sweeps: int | None = None,
    seconds: float | None = None,
    until: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
) -> Marginals:
    """Continue a run from its checkpoint; nothing but the file is needed.

    The same random numbers are drawn as without the interruption, and the numbers are the same, bit by bit. Without
    options the run completes what was asked first; a run that is finished gives its answer.

    Parameters
    ----------
    path : path
        The .dft file that `marginals(…, checkpoint=path)` wrote. It is written to again.
    sweeps, seconds, until : optional
        Another end, one of them: kept sweeps of each chain in all, seconds from now on, or the largest half-width of a
        95 % interval (`seconds` beside `until` is the most it may take from now on, 600 by default). A run that is
        extended need not equal a fresh longer one: lengths of batches depend on the number of sweeps first asked for,
        and a batch that is under way is completed.
    progress : bool or callable, optional
        True draws a bar; a function is called with a `Progress`.
    executor : concurrent.futures.Executor, optional
        Where groups of chains are advanced, as in `marginals`.

    Returns
    -------
    Marginals
        As `marginals` gives it.

    Raises
    ------
    ParseError
        For a file that is damaged, of a newer version, or something else.
    ModelError
        Where another process writes the file.

    Examples
    --------
    >>> import tempfile, definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p = dft.marginals(model, sweeps=100, seed=7, checkpoint=f"{folder}/run.dft")
    ...     again = dft.resume(f"{folder}/run.dft")
    ...     longer = dft.resume(f"{folder}/run.dft", sweeps=400)
    >>> p["X0"] == again["X0"], longer.run["sweeps"]
    (True, 400)
    """
    goal = goal_of(sweeps, seconds, until)
    check_progress(progress)
    with reopened(path) as kept:
        kept.journal.goal = goal
        return continue_run(kept, progress, executor)


def goal_of(sweeps: int | None, seconds: float | None, until: float | None) -> Goal:
    """Another end, checked."""
    sweeps = whole(sweeps, "sweeps")
    check_length(sweeps, seconds, until)
    return Goal(sweeps, seconds, until)


@contextmanager
def reopened(path: str | PathLike[str]) -> Iterator[Kept]:
    """A run from its file, which nobody else may write to inside."""
    path = as_path(path, "a run")
    if not path.is_file() or not archive.looks_like_one(path):
        read_run(path)  # says so; a lock would leave a file behind
    with archive.locked(path):
        yield read_run(path)


def so_far(path: str | PathLike[str]) -> Any:
    """The document of the answer that a file holds, finished or not; nothing is sampled."""
    kept = read_run(path)
    if kept.answer is not None:
        return kept.answer
    if kept.journal.begun:
        kept.journal.only_shown()
        with suppress(KeyboardInterrupt):
            return show.above("store.writing").document(continue_run(kept))
    early = "its chains warm up, or sample their first batch"
    raise ModelError(f"{path} has no results yet: {early}; definetti resume {path} continues")


def continue_run(kept: Kept, progress: Any = None, executor: Executor | None = None) -> Marginals:
    with recording(kept.journal.record):
        return answered(kept.model, kept.queries, kept.options, progress, kept.journal, executor)


def words_of(kept: Kept) -> dict[str, str | None]:
    """What the command line keeps in a run: under "model" and "command" the model's file and what was typed."""
    label = kept.journal.label
    return {name: None if label.get(name) is None else str(label[name]) for name in ("model", "command")}
