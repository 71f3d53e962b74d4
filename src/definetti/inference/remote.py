"""Chains on other machines: anything with the interface of `concurrent.futures` advances the pieces of a run.

The run stays here, with its warm-up, batches, stopping and checkpoints. A *piece* is a group of chains for a stretch of
sweeps, with the arrays that hold them: a worker's answer depends on these alone, so that a piece whose worker died is
simply asked for again, and the numbers are those of a local run, whoever computed them. A worker makes its own run of
the same model once, when the first piece comes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from definetti import __version__, archive
from definetti.errors import INTERRUPTED, DefinettiError, ModelError, Notice
from definetti.estimators import choose
from definetti.inference.question import Options, Request
from definetti.inference.saving import option_encoding
from definetti.journal import Record, recording
from definetti.model import encoding
from definetti.samplers.protocol import Plan, Sampler
from definetti.samplers.registry import named
from definetti.samplers.run import Run

CHUNK_SECONDS = 1.0  # of a piece: the way to a worker and back takes about a hundredth of it
CONNECTING = 10.0  # seconds
ATTEMPTS = 20  # of one piece, before its failure is taken for a mistake
KEPT_RUNS = 2  # in a worker's memory
OWNER = re.compile(r"[a-z]*([0-9]+)(\.|$)")  # the piece that an array belongs to; others are shared
COUNTERS = ("_phase", "_kept", "_length", "_done", "_tracking")
PLAN = ("chains", "burn_in", "sweeps", "seed", "workers")


@dataclass(frozen=True)
class Piece:
    """What a worker needs to know; `problem` only where it does not know the run yet."""

    key: str
    problem: bytes | None
    index: int
    arguments: tuple[Any, ...]
    counters: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Done:
    arrays: Mapping[str, np.ndarray] | None  # None: the run is not known here, send the problem
    features: str  # of the CPU and the versions: equal ones compute equal numbers


# --- the worker's side ------------------------------------------------------------------------------------------------

_LOCAL = threading.local()  # a worker's threads have runs of their own


def advance_piece(piece: Piece) -> Done:
    """A piece, some sweeps later."""
    runs = _LOCAL.__dict__.setdefault("runs", {})
    if piece.key not in runs:
        if piece.problem is None:
            return Done(None, features())
        while len(runs) >= KEPT_RUNS:
            del runs[next(iter(runs))]
        runs[piece.key] = rebuild_run(piece.problem)
    run: Any = runs[piece.key]
    for name, value in piece.counters.items():
        setattr(run, name, value)
    run.fit_notes()
    mine = run.arrays()
    for name, array in piece.arrays.items():
        mine[name][...] = array
    getattr(run, run.pieces)(piece.index, *piece.arguments)
    return Done({name: mine[name].copy() for name in piece.arrays}, features())


def rebuild_run(problem: bytes) -> Any:
    """The run that the client has, with its chains where they were when the problem was packed."""
    from definetti.inference.question import ready_for

    tree = archive.unpack(problem)
    model, queries = encoding.decoded(tree["model"]), tree["queries"]
    options = option_encoding.decoded(tree["options"], model)
    if options.formulas:
        from definetti.solvers.formula_counts import formula_queries

        queries = [*queries, *formula_queries(model)]
    scan = "symmetric" if options.scan is None else options.scan
    asked = choose("auto" if options.estimator is None else options.estimator)
    wanted = named(options.sampler, scan)
    with recording(tree["record"]):
        request = Request(options.symmetries, wanted, scan, queries, asked, options.seed, options.time_limit)
        question = ready_for(model, request).question
        run: Any = question.sampling(option_encoding.sampler_of(tree["kernel"]), Plan(**tree["plan"]), tree["method"])
    run.restore(tree["state"])
    return run


def features() -> str:
    import platform

    from llvmlite import binding

    cpu = binding.get_host_cpu_features().flatten()  # type: ignore[attr-defined]
    return archive.checksum(f"{__version__} {np.__version__} {platform.machine()} {cpu}".encode())


# --- the client's side ------------------------------------------------------------------------------------------------


class Spread:
    """What a run uses in place of the `map` of threads."""

    seconds = CHUNK_SECONDS

    def __init__(self, run: Run, executor: Executor, problem: Callable[[], bytes]) -> None:
        self._run, self._executor, self._problem = run, executor, problem
        self._key, self._packed = "", None
        self.notices: list[Notice] = []
        self.repeated = 0  # pieces whose worker died

    def __call__(self, work: Callable[..., Any], *columns: Any) -> Iterator[Any]:
        if self._run.pieces is None or getattr(work, "__name__", "") != self._run.pieces:
            return map(work, *columns)
        return iter(self._all([(k, tuple(rest)) for k, *rest in zip(*columns, strict=False)]))

    def _all(self, pieces: list[tuple[int, tuple[Any, ...]]]) -> list[None]:
        """Every piece, put back in the order of chains."""
        if not self._key:
            self._packed = self._problem()
            self._key = archive.checksum(self._packed)
        arrays = self._run.arrays()
        counters = {name: getattr(self._run, name) for name in COUNTERS}
        made = [Piece(self._key, None, k, rest, counters, _of(arrays, k)) for k, rest in pieces]
        waiting = [self._submit(piece) for piece in made]
        for piece, future in zip(made, waiting, strict=True):
            self._put_back(arrays, piece, self._finished(piece, future))
        return [None] * len(made)

    def _submit(self, piece: Piece) -> Future[Done]:
        try:
            return self._executor.submit(advance_piece, piece)
        except (RuntimeError, BrokenProcessPool) as error:
            raise ModelError(f"the executor takes no more work: {error}") from None

    def _finished(self, piece: Piece, future: Future[Done]) -> Mapping[str, np.ndarray]:
        for _ in range(ATTEMPTS):
            try:
                done = future.result()
            except DefinettiError:
                raise
            except (CancelledError, Exception) as error:  # the worker died: its piece is as it was
                if isinstance(error, (TypeError, ValueError, KeyError, IndexError, AttributeError)):
                    raise
                self.repeated += 1
                future = self._submit(replace(piece, problem=self._packed))
                continue
            self._compare(done.features)
            if done.arrays is not None:
                return done.arrays
            if INTERRUPTED.is_set():
                raise KeyboardInterrupt
            future = self._submit(replace(piece, problem=self._packed))
        raise ModelError(f"a piece of the run failed {ATTEMPTS} times on the workers; the run can be resumed elsewhere")

    def _compare(self, other: str) -> None:
        if other != features() and not self.notices:
            text = "a worker has another version or other CPU features than this machine"
            self.notices.append(Notice("note", f"{text}: the numbers may differ from those of a local run"))

    def _put_back(self, arrays: Mapping[str, np.ndarray], piece: Piece, made: Mapping[str, np.ndarray]) -> None:
        """Of arrays that pieces share each changes its own entries only."""
        for name, new in made.items():
            if OWNER.match(name):
                arrays[name][...] = new
            else:
                changed = new != piece.arrays[name]
                arrays[name][changed] = new[changed]


def _of(arrays: Mapping[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    owner = {name: OWNER.match(name) for name in arrays}
    return {name: array.copy() for name, array in arrays.items() if (m := owner[name]) is None or int(m[1]) == index}


def spread_chains(
    executor: Executor, model: Any, queries: Any, options: Options, record: Record
) -> Callable[[Any, Sampler, Plan, str], None]:
    """What sends the chains of a run to the executor's workers."""

    def spread(run: Any, kernel: Sampler, plan: Plan, method: str) -> None:
        def problem() -> bytes:  # when the chains have their starts
            return archive.pack(
                {
                    "model": encoding.encoded(model),
                    "queries": list(queries),
                    "options": option_encoding.encoded(options),
                    "record": record,
                    "kernel": option_encoding.encoded_sampler(kernel),
                    "plan": {name: getattr(plan, name) for name in PLAN},
                    "method": method,
                    "state": run.state(),
                }
            )

        run.spread = Spread(run, executor, problem)

    return spread


@contextmanager
def executor_at(address: str) -> Iterator[Any]:
    """The workers of a Dask cluster; needs the extra `dask`."""
    try:
        from distributed import Client  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ModelError("a Dask cluster needs dask.distributed: pip install 'definetti[dask]'") from None
    try:
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ModelError(f"there is no Dask scheduler at {address}: {error or type(error).__name__}") from None
    with client:
        yield _DaskExecutor(client)


class _DaskExecutor:
    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return _DaskFuture(self._client.submit(partial(work), *arguments, pure=False))


class _DaskFuture:
    def __init__(self, future: Any) -> None:
        self._future = future

    def result(self) -> Any:
        return self._future.result()
