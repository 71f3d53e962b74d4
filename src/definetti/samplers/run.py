"""The sampling loop: warm-up, batches, chunks of time. Every sampler, of either kind of model, is run by it.

An engine subclasses `Run` and says how its chains advance and what they have folded (the methods that raise
`NotImplementedError`, and those with a default that it needs). Draws depend on the seed alone, never on how the clock
cuts sweeps into chunks or on how many threads there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from definetti.errors import DefinettiError, Notice
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, is_tracked, longest, merge_pairs, tally, tracked
from definetti.samplers.protocol import Plan, Progress, State, copied, put_back
from definetti.samplers.warmup import DEAR, WarmUp

CHUNK_SECONDS = 0.1  # how long one chunk should take: progress, Ctrl-C and time limits wait for it

Map = Callable[..., Iterable[Any]]  # `map`, perhaps over threads


class Illegal(DefinettiError):
    """A chain reached a state of probability zero. That is a mistake of the sampler."""


def debugging() -> bool:
    """Whether every sweep's states are to be checked: the environment variable DEFINETTI_DEBUG says so."""
    return bool(os.environ.get("DEFINETTI_DEBUG"))


class Run:
    """A run under way (`protocol.Sampling`), except for what its engine does."""

    first_batch = 1  # sweeps of the first batch where they grow (`Plan.grows`)
    most_batches: int = BATCHES  # of a run of known length; those that grow are merged in pairs at twice as many
    pieces: str | None = None  # the method that advances one piece of the chains, given its number and arguments
    spread: Any = None  # advances pieces elsewhere (`inference/remote.py`)
    reports_before = True  # whether a batch that is complete is reported before it is kept,
    reports_after = True  # and after

    def __init__(self, plan: Plan, sizes: np.ndarray, members: np.ndarray, threads: int, burn_in: int | None) -> None:
        """`sizes` of the statistics; the statistic of each tracked member; how many threads there is work for."""
        self.plan, self.seconds = plan, 0.0
        self.cpu_seconds = 0.0  # of the whole process, while this run advanced: what a busy machine does not change
        self.goal = plan.sweeps  # kept sweeps at which it ends; another one than the plan's where a run is resumed
        self._sizes, self._member_of, self._threads = sizes, members, max(1, min(plan.workers, threads))
        self._warm_up = WarmUp(plan.chains, None if plan.grows else plan.sweeps, burn_in)
        self._phase, self._kept = "warm-up", 0
        self._length, self._done = 0, 0  # of the window or batch under way
        self._tracking = False
        self._batches: list[Batch] = []  # changed by one assignment at a time: Ctrl-C may come anywhere
        self._tracked: list[tuple[int, np.ndarray]] = []  # lengths and means of tracked batches
        self._here: Map = map
        self._notes: dict[str, list[np.ndarray]] = {}  # float64[sweeps, chains, width] of each piece, by name

    # --- what an engine does -----------------------------------------------------------------------------------------

    @property
    def updates(self) -> int:
        raise NotImplementedError

    def _begin(self, run: Map) -> None:
        """Makes the starts, where that was not done yet."""

    def _open(self) -> None:
        """A window or a batch begins."""

    def _noted(self) -> dict[str, int]:
        """How many numbers each chain leaves after every sweep, by name; `_notes` has a place for each."""
        return {}

    def _lanes_of_pieces(self) -> list[int]:
        return [1] * self.plan.chains

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        """Advances every chain for about so many seconds, to the end of `_length` sweeps at most; `folded`: 0 nothing,
        1 F only, 2 everything. Returns how many of these sweeps all chains have done."""
        raise NotImplementedError

    def _harvest(self, length: int) -> Batch:
        """The batch that is complete; what was folded is cleared."""
        raise NotImplementedError

    def _window(self, length: int, whole: bool) -> np.ndarray | None:
        """float64[C, K]: F over a window of the warm-up, where it is known; what was folded is cleared."""
        raise NotImplementedError

    def _members(self) -> np.ndarray:
        """float64[C, M]: how often each tracked member held in the batch; cleared."""
        raise NotImplementedError

    def _unfinished(self) -> Draws | None:
        """The states as they stand, before the first batch is complete."""
        return None

    def _completed(self, draws: Draws) -> Draws:
        """The draws with what this kind of chains knows beside them."""
        return draws

    def values(self) -> np.ndarray:
        """uint8[C, variables]: the states as they stand; of Markov logic the truth values of all ground atoms."""
        raise NotImplementedError

    def _end_of_warm_up(self) -> None: ...

    def notices(self) -> list[Notice]:
        return []

    def report(self) -> dict[str, Any]:
        return {}

    def _arrays(self) -> dict[str, np.ndarray]:
        """The arrays that hold the chains, changed in place."""
        raise NotImplementedError

    # --- what is noted after every sweep -----------------------------------------------------------------------------

    def fit_notes(self) -> None:
        """Room for the notes of the window or batch under way."""
        wanted = {n: (self._length, width) for n, width in self._noted().items() if width}
        self._notes = {
            name: self._notes[name]
            if name in self._notes and self._notes[name][0].shape[::2] == shape
            else [np.zeros((shape[0], lanes, shape[1])) for lanes in self._lanes_of_pieces()]
            for name, shape in wanted.items()
        }

    def _taken(self, name: str) -> np.ndarray | None:
        """float64[sweeps, chains, width]: all notes of a batch that is complete."""
        return np.concatenate(self._notes[name], axis=1) if name in self._notes else None

    def _tally(self) -> np.ndarray | None:
        values = self._taken("counts")
        return None if values is None else tally(values)

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays that change while chains advance; a number in a name is that of the piece."""
        open_ = self._notes.items() if self._length else ()  # between batches there are none
        return self._arrays() | {f"{name}{k}": part for name, some in open_ for k, part in enumerate(some)}

    # --- the loop ----------------------------------------------------------------------------------------------------

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    @property
    def can_stop(self) -> bool:
        return bool(self._batches)

    def steps(self) -> Iterator[Progress]:
        """Runs to the end of the plan, yielding after every chunk; the caller's own time is not counted."""
        with self._pool() as pool:
            self._begin(pool.map)
            began, cpu = time.perf_counter(), time.process_time()
            for phase, done, total in self._loop(pool.map if self.spread is None else self.spread):
                self.seconds += time.perf_counter() - began
                self.cpu_seconds += time.process_time() - cpu
                yield Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)
                began, cpu = time.perf_counter(), time.process_time()

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        """Threads, which also fold what their pieces leave."""
        with ThreadPoolExecutor(self._threads) as pool:
            self._here = pool.map
            try:
                yield pool
            finally:
                self._here = map

    @property
    def _chunk(self) -> float:
        return CHUNK_SECONDS if self.spread is None else self.spread.seconds

    def _loop(self, run: Map) -> Iterator[tuple[str, int, int | None]]:
        if self._phase == "warm-up":
            yield from self._warm(run)
            self._end_of_warm_up()
            self._phase, self._length = "sampling", 0
        sweeps, folded = self.goal, 2 if self.plan.conditionals else 1
        while sweeps is None or self._kept < sweeps:
            if not self._length:
                self._length, self._done = self._next_length(), 0
                self._tracking = len(self._member_of) > 0 and is_tracked(self.batch_count, self.plan.grows)
                self.fit_notes()
                self._open()
            while self._done < self._length:
                self._done = self._advance(run, folded, self._chunk)
                if self._done < self._length or self.reports_before:
                    yield "sampling", self._kept + self._done, sweeps
            self._keep()
            if self.reports_after:
                yield "sampling", self._kept, sweeps

    def _warm(self, run: Map) -> Iterator[tuple[str, int, int | None]]:
        """Windows of sweeps until the warm-up has done its work, or its time is up."""
        warm = self._warm_up
        while self._length or warm.length():
            if not self._length:
                self._length, self._done = warm.length(), 0
                self.fit_notes()
                self._open()
            while self._done < self._length:
                self._done = self._advance(run, int(warm.looks), self._chunk)
                yield "warm-up", warm.done + self._done, warm.fixed
                if self.seconds >= self.plan.warm_seconds:
                    break
            whole = self._done == self._length
            window = self._window(self._done, whole)
            warm.look(self._done, window if warm.looks else None)
            warm.dear = self.updates > DEAR * warm.done
            self._length = 0
            if not whole:
                return

    def snapshots(self, every: int, most: int = 1) -> Iterator[np.ndarray]:
        """After the warm-up the states of all chains at the end of every so many sweeps, for ever; nothing is folded.
        They are the states that `steps` goes through, as uint8[some, C, variables]: at most `most` at once, and no more
        than a chunk's time allows."""
        with self._pool() as pool:
            self._begin(pool.map)
            for _ in self._warm(pool.map):
                pass
            self._end_of_warm_up()
            self._phase, some = "sampling", 1
            while True:
                began = time.perf_counter()
                states = self._record(pool.map, every, some)
                quick = time.perf_counter() - began < CHUNK_SECONDS
                yield states
                some = min(most, 2 * some) if quick else max(1, some // 2)

    def _record(self, run: Map, every: int, some: int) -> np.ndarray:
        """uint8[some, C, variables]: the next states, with so many sweeps before each."""
        rows = []
        for _ in range(some):
            self._length, self._done = every, 0
            self.fit_notes()
            self._open()
            while self._done < self._length:
                self._done = self._advance(run, 0, CHUNK_SECONDS)
            self._length = 0
            rows.append(self.values())
        return np.stack(rows)

    def _next_length(self) -> int:
        """Batches of nearly equal length where the end was known at first and is near; otherwise as long as the merged
        ones."""
        planned = self.plan.sweeps
        if planned is None or self.plan.grows or self._kept >= planned:
            length = max(self.first_batch, self._batches[0].length if self._batches else 0)
        else:
            length = (planned * (len(self._batches) + 1)) // min(self.most_batches, planned) - self._kept
        return length if self.goal is None else min(length, self.goal - self._kept)

    def _keep(self) -> None:
        """The batch under way is done."""
        length = self._length
        batches = [*self._batches, self._harvest(length)]
        if self._tracking:
            self._tracked = longest([*self._tracked, (length, self._members() / length)])
        full = len(batches) >= 2 * self.most_batches  # only where they grow, or the end was moved
        self._batches = merge_pairs(batches) if full else batches
        self._kept, self._length = self._kept + length, 0

    def draws(self) -> Draws:
        """What has been folded so far, in whole batches; before the first is complete, what the states alone say."""
        if not self._batches and (unfinished := self._unfinished()) is not None:
            return unfinished
        made = draws_of(self._batches, self._sizes, self.plan.chains, self._warm_up.done)
        members = tracked(self._member_of, [m for _, m in self._tracked], [n for n, _ in self._tracked])
        return self._completed(replace(made, tracked=members, warm=self._warm_up.windows))

    # --- saving ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Everything that the rest of the run depends on, taken between two steps."""
        return {
            "phase": self._phase,
            "kept": self._kept,
            "length": self._length,
            "done": self._done,
            "tracking": self._tracking,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "warm_up": self._warm_up.state(),
            "batches": [batch._asdict() for batch in self._batches],
            "tracked": [{"length": length, "means": means} for length, means in self._tracked],
            "chains": copied(self.arrays()),
        }

    def state_size(self) -> int:
        """About how many bytes the state has; nothing is copied."""
        batches = (part for batch in self._batches for part in batch if isinstance(part, np.ndarray))
        arrays = [*self._arrays().values(), *batches, *(means for _, means in self._tracked)]
        return sum(array.nbytes for array in arrays)

    def restore(self, state: State) -> None:
        """Continues where `state` was taken, in a run of the same model, sampler and plan."""
        self._phase, self.seconds = str(state["phase"]), float(state["seconds"])
        self.cpu_seconds = float(state["cpu_seconds"])
        self._kept, self._length, self._done = (int(state[key]) for key in ("kept", "length", "done"))
        self.fit_notes()
        put_back(self.arrays(), state["chains"])
        self._tracking = bool(state["tracking"])
        self._warm_up.restore(state["warm_up"])
        self._batches = [Batch(**batch) for batch in state["batches"]]
        self._tracked = [(int(part["length"]), part["means"]) for part in state["tracked"]]
