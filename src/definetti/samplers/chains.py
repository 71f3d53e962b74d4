"""Running chains: blocks of lanes on threads, warm-up, batches; a generator that yields after every chunk of sweeps.

Results depend on the seed alone: the blocks, their streams and the scan orders do not know how many threads there are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from definetti.errors import TooLarge
from definetti.model.factors import FactorGraph
from definetti.samplers.blocks import Block, Engine, Harvest
from definetti.samplers.draws import Draws, merge_pairs
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.starts import starts
from definetti.samplers.tracking import is_tracked, tracked
from definetti.samplers.warmup import WarmUp

CHUNK_SECONDS = 0.1  # how long one call of a kernel should take: progress, Ctrl-C and time limits wait for it
MOST_BATCHES = 64  # an open-ended run merges its batches in pairs when there are more
BATCHES = 32  # of a run of known length
ORDER_ENTRIES = 1 << 22
WARM_SHARE = 0.25  # of the time, where a time limit ends the warm-up before its sweeps are done


@dataclass(frozen=True)
class Progress:
    """Where a run is; handed to the caller's `progress` after every chunk."""

    phase: str  # "warm-up" or "sampling"
    done: int  # sweeps
    total: int | None
    rate: float  # updates per second
    worst: float | None  # largest half-width of a 95 % interval so far
    seconds: float
    left: float | None = None  # seconds to the goal, estimated


@dataclass(frozen=True, eq=False)
class Statistics:
    """How slot sums become statistics: statistic k is the sum over its slots divided by its size."""

    of_slot: np.ndarray  # int64[slots]
    sizes: np.ndarray  # int64[K]: literals in the orbit
    events: Callable[[Block, np.ndarray], None] | None = None  # adds joint events' hits at a sweep's end
    event_sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    groups: np.ndarray | None = None  # int64[K of literals]: statistics of the values of one variable have one number
    track: Callable[[Block, np.ndarray], None] | None = None  # adds tracked members' hits at a sweep's end
    tracked: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # int64[M]: their statistics

    @property
    def count(self) -> int:
        return len(self.sizes) + len(self.event_sizes)


@dataclass(frozen=True)
class Plan:
    """How much to sample. Without `sweeps` the run goes on until the caller stops it."""

    chains: int
    burn_in: int | None  # None: told by the run itself
    sweeps: int | None
    seed: int
    workers: int
    seconds: float | None = None  # the caller's time limit: a quarter of it at most goes into warm-up
    conditionals: bool = True


class Sampling:
    """A run under way. `steps()` advances it; `draws()` gives what there is so far, in whole batches."""

    def __init__(self, model: FactorGraph, sampler: Gibbs, engine: Engine, statistics: Statistics, plan: Plan) -> None:
        _check_memory(statistics.count, plan)
        self.plan, self.statistics, self._sampler = plan, statistics, sampler
        seeds = np.random.SeedSequence(plan.seed).spawn(3)
        states = starts(model, plan.chains, np.random.default_rng(seeds[0]))
        self._sites = model.free
        self._orders = sampler.orders(model.free, seeds[1])
        cuts = range(0, plan.chains, engine.width)
        lanes = [states[at : at + engine.width] for at in cuts]
        self.blocks = [
            engine.block(part, seed, not sampler.visits_once)
            for part, seed in zip(lanes, seeds[2].spawn(len(lanes)), strict=True)
        ]
        self._f: list[np.ndarray] = []
        self._last: list[np.ndarray] = []
        self._g: list[np.ndarray] = []
        self._drawn: list[np.ndarray] = []  # only in the random scan
        self._lengths: list[int] = []
        self._hits = [np.zeros((len(statistics.event_sizes), block.state.shape[1]), np.int64) for block in self.blocks]
        self._members = [np.zeros((len(statistics.tracked), block.state.shape[1]), np.int64) for block in self.blocks]
        self._tracking = False
        self._tracked: list[tuple[int, np.ndarray]] = []  # lengths and means of tracked batches
        self._warm_up_plan = WarmUp(plan.chains, plan.sweeps, plan.burn_in)
        self.updates = 0
        self.seconds = 0.0
        self._sweeps_per_second = 0.0

    @property
    def batch_count(self) -> int:
        return len(self._lengths)

    def warm(self) -> None:
        """Load or compile the kernels, on no sweeps at all."""
        nothing = self._orders.next(0)
        for block in self.blocks[:1]:
            block.run(nothing, 2)
            block.harvest()

    # --- advancing -------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Progress]:
        """Run to the end of the plan, yielding after every chunk."""
        with ThreadPoolExecutor(min(self.plan.workers, len(self.blocks))) as pool:
            yield from self._warm_up(pool)
            kept = 0
            while self.plan.sweeps is None or kept < self.plan.sweeps:
                length = self._next_length(kept)
                folded = 2 if self.plan.conditionals else 1
                self._tracking = self.statistics.track is not None and is_tracked(
                    self.batch_count, self.plan.sweeps is None
                )
                for done in self._advance(pool, length - 1, folded):
                    yield self._progress("sampling", kept + done, self.plan.sweeps)
                before = self._harvest()
                for _ in self._advance(pool, 1, folded):
                    pass
                self._keep(length, before, self._harvest())
                kept += length
                yield self._progress("sampling", kept, self.plan.sweeps)

    def _warm_up(self, pool: ThreadPoolExecutor) -> Iterator[Progress]:
        plan, warm = self.plan, self._warm_up_plan
        while length := warm.length():
            done = 0
            for done in self._advance(pool, length, int(warm.looks)):
                yield self._progress("warm-up", warm.done + done, plan.burn_in)
                if plan.seconds is not None and self.seconds > WARM_SHARE * plan.seconds:
                    break
            harvest = self._harvest() if warm.looks else []
            means = self._gather([h.final for h, _ in harvest], [n for _, n in harvest], done) if harvest else None
            warm.look(done, means)
            if done < length:
                return

    def _next_length(self, kept: int) -> int:
        """Batches of nearly equal length where the end is known; otherwise as long as the merged ones."""
        if self.plan.sweeps is None:
            return max(8, self._lengths[0] if self._lengths else 0)
        batches = min(_most_batches(self.statistics.count, self.plan.chains), self.plan.sweeps)
        at = len(self._lengths)
        return (self.plan.sweeps * (at + 1)) // batches - kept

    def _advance(self, pool: ThreadPoolExecutor, sweeps: int, folded: int) -> Iterator[int]:
        """So many sweeps in chunks of about CHUNK_SECONDS."""
        done = 0
        while done < sweeps:
            entries = max(1, ORDER_ENTRIES // max(len(self._sites), 1))
            chunk = max(1, min(sweeps - done, entries, int(self._sweeps_per_second * CHUNK_SECONDS)))
            orders = self._orders.next(chunk)
            began = time.perf_counter()
            list(pool.map(lambda k: self._run_block(k, orders, folded), range(len(self.blocks))))
            took = time.perf_counter() - began
            self.seconds += took
            self.updates += chunk * len(self._sites) * self.plan.chains
            self._sweeps_per_second = min(chunk / max(took, 1e-9), 2.0 * max(self._sweeps_per_second, 10.0))
            done += chunk
            yield done

    def _run_block(self, k: int, orders: np.ndarray, folded: int) -> None:
        block, events = self.blocks[k], self.statistics.events
        track = self.statistics.track if self._tracking and folded else None
        if not folded or (events is None and track is None):
            block.run(orders, folded)
            return
        for order in orders:  # joint events and tracked members are looked at after every sweep
            block.run(order[None], folded)
            if events is not None:
                events(block, self._hits[k])
            if track is not None:
                track(block, self._members[k])

    def _progress(self, phase: str, done: int, total: int | None) -> Progress:
        return Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)

    # --- folding ---------------------------------------------------------------------------------------------------

    def _harvest(self) -> list[tuple[Harvest, np.ndarray]]:
        out = []
        for block, hits in zip(self.blocks, self._hits, strict=True):
            harvest = block.harvest()
            out.append((harvest, hits[:, : harvest.final.shape[1]].copy()))
            hits[...] = 0
        return out

    def _keep(
        self, length: int, before: list[tuple[Harvest, np.ndarray]], last: list[tuple[Harvest, np.ndarray]]
    ) -> None:
        final = [a.final + b.final for (a, _), (b, _) in zip(before, last, strict=True)]
        hits = [a + b for (_, a), (_, b) in zip(before, last, strict=True)]
        self._f.append(self._gather(final, hits, length))
        self._last.append(self._gather([h.final for h, _ in last], [n for _, n in last], 1))
        if self.plan.conditionals:
            pairs = [(a, b) for (a, _), (b, _) in zip(before, last, strict=True)]
            self._g.append(self._at_visits([(a.conditional, b.conditional) for a, b in pairs], pairs[0]))
            if not self._sampler.visits_once:
                self._drawn.append(self._at_visits([(a.drawn, b.drawn) for a, b in pairs], pairs[0]))
        self._lengths.append(length)
        if self._tracking:
            lanes = [h.final.shape[1] for h, _ in last]
            sums = [members[:, :width] for members, width in zip(self._members, lanes, strict=True)]
            self._tracked.append((length, np.concatenate(sums, axis=1).T / length))
            for members in self._members:
                members[...] = 0
        if self.plan.sweeps is None and len(self._lengths) >= MOST_BATCHES:
            for kept in (self._f, self._g, self._drawn):
                kept[:] = merge_pairs(kept, self._lengths)
            self._last = self._last[1::2] + ([self._last[-1]] if len(self._last) % 2 else [])
            self._lengths = [a + b for a, b in zip(self._lengths[::2], [*self._lengths[1::2], 0], strict=False)]

    def _gather(self, sums: list[np.ndarray], hits: list[np.ndarray], sweeps: int) -> np.ndarray:
        """float64[C, K]: means over orbits and sweeps."""
        singles = _by_statistic(np.concatenate(sums, axis=1), self.statistics) / (
            self.statistics.sizes[:, None] * sweeps
        )
        joint = np.concatenate(hits, axis=1) / (self.statistics.event_sizes[:, None] * sweeps)
        return np.concatenate([singles, joint]).T

    def _at_visits(
        self, parts: list[tuple[np.ndarray | None, np.ndarray | None]], visited: tuple[Harvest, Harvest]
    ) -> np.ndarray:
        """float64[C, K]: sums over updates divided by the number of visits; NaN for joint events.

        In the random scan an orbit may go unvisited in a batch: its conditionals are then unknown there (NaN).
        """
        sums = np.concatenate([_sum(a, b) for a, b in parts], axis=1)
        slot_visits = visited[0].visits + visited[1].visits
        visits = np.bincount(self.statistics.of_slot, weights=slot_visits, minlength=len(self.statistics.sizes))
        with np.errstate(divide="ignore", invalid="ignore"):
            singles = _by_statistic(sums, self.statistics) / visits[:, None]
        joint = np.full((len(self.statistics.event_sizes), singles.shape[1]), np.nan)
        return np.concatenate([singles, joint]).T

    def _groups(self) -> np.ndarray | None:
        """Of all statistics; a joint event is by itself."""
        groups, events = self.statistics.groups, len(self.statistics.event_sizes)
        return None if groups is None else np.append(groups, np.arange(events) + groups.max(initial=-1) + 1)

    def draws(self) -> Draws:
        """What has been folded so far (whole batches only)."""
        empty = np.zeros((0, self.plan.chains, self.statistics.count))
        return Draws(
            f=np.stack(self._f) if self._f else empty,
            g=(np.stack(self._g) if self._g else empty) if self.plan.conditionals else None,
            lengths=np.array(self._lengths, dtype=np.int64),
            sizes=np.concatenate([self.statistics.sizes, self.statistics.event_sizes]),
            last=np.stack(self._last) if self._last else empty,
            drawn=np.stack(self._drawn) if self._drawn else None,
            groups=self._groups(),
            tracked=tracked(self.statistics.tracked, [m for _, m in self._tracked], [n for n, _ in self._tracked]),
            burn_in=self._warm_up_plan.done,
        )


def _sum(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray:
    assert a is not None and b is not None
    return a + b


def _by_statistic(sums: np.ndarray, statistics: Statistics) -> np.ndarray:
    """float64[K, C] from float64[slots, C]."""
    out = np.zeros((len(statistics.sizes), sums.shape[1]))
    np.add.at(out, statistics.of_slot, sums)
    return out


def _most_batches(count: int, chains: int) -> int:
    """Fewer batches where there are very many statistics: three arrays of float64 within about a gigabyte."""
    return int(np.clip((1 << 30) // max(24 * count * chains, 1), 4, BATCHES))


def _check_memory(count: int, plan: Plan) -> None:
    need = 24 * count * plan.chains * _most_batches(count, plan.chains)
    have = available_memory()
    if need > 0.6 * have:
        raise TooLarge(
            "the memory for statistics (bytes)", need, 0.6 * have, "use fewer chains, or ask for fewer queries"
        )


def available_memory() -> int:
    """Bytes of free memory, as far as the system tells."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):  # not on every system
        return 4 << 30
