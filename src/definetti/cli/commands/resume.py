"""`definetti resume run.dft`: a run goes on where its checkpoint was written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from definetti.cli.commands.marginals import COUNT, footer, workers_of
from definetti.cli.options import FILE, Positive, dask, max_memory, prints
from definetti.cli.output import answer, complete, saved
from definetti.inference.progress import progress_line


@click.command("resume")
@click.argument("path", metavar="RUN", type=FILE)
@click.option("--sweeps", type=COUNT, metavar="N", help="Kept sweeps of each chain in all.")
@click.option("--seconds", type=Positive(), metavar="S", help="Sample for so long from now on instead.")
@click.option("--until", type=Positive(), metavar="E", help="Sample until no 95 % half-width is above E instead.")
@dask
@click.option("--plot", is_flag=True, help="Draw the 95 % intervals in the terminal.")
@max_memory
@prints
def command(
    path: Path,
    sweeps: int | None,
    seconds: float | None,
    until: float | None,
    dask: str | None,
    plot: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Continue a run from its checkpoint, bit by bit as if it had never been interrupted.

    RUN is the .dft file that marginals -o wrote; it holds model, evidence and options, and is written to again. Without
    options the run completes what was asked first. A run that is extended need not equal a fresh longer one, since
    lengths of batches depend on the number of sweeps; a batch that is under way is completed.

    \b
    Examples:
      definetti marginals examples/grid.uai --sweeps 500 --seed 7 -o run.dft
      definetti resume run.dft --sweeps 2000
    """
    if sweeps is not None and (seconds is not None or until is not None):
        raise click.UsageError("--sweeps excludes --seconds and --until")
    from definetti.inference.saving.resume import continue_run, goal_of, reopened, words_of

    goal = goal_of(sweeps, seconds, until)
    shown = not quiet and sys.stderr.isatty()
    with reopened(path) as kept, progress_line(shown) as progress, workers_of(dask) as executor:  # read only once
        kept.journal.goal = goal
        result, unsaved = saved(lambda: continue_run(kept, progress, executor))
    words = words_of(kept)
    result = complete(result, Path(words["model"] or path), kept.model, None, words["command"])
    code = answer(result, as_json=as_json, output=None, footer=footer, plot=plot)
    if unsaved is not None:
        raise unsaved
    return code
