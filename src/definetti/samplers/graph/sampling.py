"""Running chains: blocks of lanes on threads, warm-up, batches; a generator that yields after every chunk of sweeps.

Results depend on the seed alone: the blocks, their streams and the scan orders do not know how many threads there are.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from definetti.constraints.graph.possible_values import hard_factors
from definetti.errors import Notice, TooLarge
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, merge_pairs
from definetti.samplers.graph.frozen_watch import Watch, hard_parts, truly_frozen
from definetti.samplers.graph.lanes import Block, Engine
from definetti.samplers.graph.mcsat import MCSatBlock, doubts
from definetti.samplers.graph.starts import starts
from definetti.samplers.graph.tempering import Ladder, TemperingBlock
from definetti.samplers.tracking import Members, follower, is_tracked, tracked
from definetti.samplers.warmup import WarmUp

if TYPE_CHECKING:
    from definetti.samplers.registry import Sampler

CHUNK_SECONDS = 0.1  # how long one call of a kernel should take: progress, Ctrl-C and time limits wait for it
ORDER_ENTRIES = 1 << 22
KEPT = 1 << 28  # bytes of batches: memory that was never touched costs as much time as sampling what goes into it


@dataclass(frozen=True)
class Progress:
    """Where a run is; handed to the caller's `progress` after every chunk.

    Attributes
    ----------
    phase : {"warm-up", "sampling"}
        What is under way.
    done, total : int
        Sweeps; `total` is None where it is open.
    rate : float
        Updates per second.
    worst : float or None
        The largest half-width of a 95 % interval so far.
    seconds, left : float
        So far, and to the goal (estimated; None where it is not known).

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])
    >>> phases = set()
    >>> p = dft.marginals(model, sweeps=10, seed=7, progress=lambda report: phases.add(report.phase))
    >>> "sampling" in phases
    True
    """

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
    members: Members | None = None  # literals to be tracked
    orbit_of: np.ndarray | None = None  # int64[n]: the orbit of each variable, for the scan

    @property
    def count(self) -> int:
        return len(self.sizes) + len(self.event_sizes)

    @property
    def tracked(self) -> np.ndarray:
        """int64[M]: the statistics of tracked literals."""
        return np.zeros(0, dtype=np.int64) if self.members is None else self.members.statistic

    @cached_property
    def _slots(self) -> tuple[np.ndarray, np.ndarray]:
        """The slots of one statistic after the other, and where each one's begin."""
        return np.argsort(self.of_slot, kind="stable"), np.concatenate(
            [[0], np.cumsum(np.bincount(self.of_slot, minlength=len(self.sizes)))]
        )

    def means(self, sums: Sequence[np.ndarray], divisor: np.ndarray) -> np.ndarray:
        """float64[K of literals, chains] from float64[slots, lanes] of each block, divided by divisor[K]."""
        from definetti.samplers.kernels.row_means import mean_over_slots

        ends = np.cumsum([part.shape[1] for part in sums]).tolist()
        out = np.empty((len(self.sizes), ends[-1]))
        for part, end in zip(sums, ends, strict=True):
            mean_over_slots(part, *self._slots, divisor, out, end - part.shape[1])
        return out


@dataclass(frozen=True)
class Plan:
    """How much to sample. Without `sweeps` the run goes on until the caller stops it."""

    chains: int
    burn_in: int | None  # None: told by the run itself
    sweeps: int | None
    seed: int
    workers: int
    conditionals: bool = True
    warm_seconds: float = math.inf  # warm-up ends when so much time has gone, whatever `burn_in` says


class Sampling:
    """A run under way. `steps()` advances it; `draws()` gives what there is so far, in whole batches."""

    def __init__(
        self, model: FactorGraph, sampler: Sampler, engine: Engine, statistics: Statistics, plan: Plan
    ) -> None:
        _check_memory(statistics.count, plan, engine.memory(plan.chains, plan.conditionals))
        self.plan, self.statistics, self._sampler = plan, statistics, sampler
        seeds = np.random.SeedSequence(plan.seed).spawn(3)
        states = starts(model, plan.chains, np.random.default_rng(seeds[0]))
        self._sites = model.free
        self._orders = sampler.orders(model.free, seeds[1], statistics.orbit_of)
        groups = seeds[2].spawn(-(-plan.chains // engine.width))
        share = max(1, min(engine.together, len(groups) // plan.workers))  # wide blocks, if every worker has one
        cuts = range(0, len(groups), share)
        lanes = [states[at * engine.width : (at + share) * engine.width] for at in cuts]
        self.blocks = [
            engine.block(part, groups[at : at + share], not sampler.visits_once, plan.conditionals)
            for part, at in zip(lanes, cuts, strict=True)
        ]
        self._lanes = [len(part) for part in lanes]
        self._watches = self._watch(model, self._lanes)
        self._model, self._starts = model, states
        self._known_stuck: tuple[int, np.ndarray | None, np.ndarray | None] = (-1, None, None)
        self._batches: list[Batch] = []  # changed by one assignment at a time: Ctrl-C may come anywhere
        self._hits = [np.zeros((len(statistics.event_sizes), block.state.shape[1]), np.int64) for block in self.blocks]
        self._followers = [follower(block, statistics.members) for block in self.blocks] if statistics.members else []
        self._tracking = False
        self._tracked: list[tuple[int, np.ndarray]] = []  # lengths and means of tracked batches
        self._warm_up_plan = WarmUp(plan.chains, plan.sweeps, plan.burn_in)
        self.updates = 0
        self.seconds = 0.0
        self._sweeps_per_second = 0.0

    def _watch(self, model: FactorGraph, lanes: list[int]) -> list[Watch]:
        """Where there are hard factors, every block is watched for variables that cannot move."""
        if not len(hard_factors(model)):
            return []
        parts = hard_parts(model)
        held = np.intersect1d(parts.scope, self._sampler.alone(model))
        return [Watch(model, parts, block, k, held) for block, k in zip(self.blocks, lanes, strict=True)]

    def _stuck(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Variables that could not move in any chain: frozen, or forced (beside their values); None: not watched."""
        if not self._watches:
            return None, None
        stuck = self._watches[0].stuck.copy()
        for watch in self._watches[1:]:
            stuck = np.intersect1d(stuck, watch.stuck)
        if self._known_stuck[0] != len(stuck):
            frozen = truly_frozen(self._model, stuck, self._starts)
            forced = np.setdiff1d(stuck, frozen)
            self._known_stuck = (len(stuck), frozen, np.stack([forced, self._starts[0, forced].astype(np.int64)]))
        return self._known_stuck[1:]

    @property
    def ladder(self) -> Ladder | None:
        """Of parallel tempering: the levels, and how often neighbours exchanged states."""
        tempered = [block for block in self.blocks if isinstance(block, TemperingBlock)]
        return Ladder(tempered[0].levels, *np.sum([b.swaps for b in tempered], axis=0)) if tempered else None

    def notices(self) -> list[Notice]:
        """What leaves the draws in doubt: tempering of little use, slices that were not solved."""
        unsolved = doubts(clock for block in self.blocks if isinstance(block, MCSatBlock) for clock in block.clocks)
        return [*(self.ladder.notices() if self.ladder else []), *unsolved]

    @cached_property
    def most_batches(self) -> int:
        """That a run of known length has; an open-ended one has fewer than twice as many."""
        return _most_batches(self.statistics.count, self.plan.chains)

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    @property
    def can_stop(self) -> bool:
        """Whether there is anything to show yet."""
        return bool(self.batch_count)

    def warm(self) -> None:
        """Load or compile the kernels, on no sweeps at all."""
        nothing = self._orders.next(0)
        for block in self.blocks[:1]:
            block.run(nothing, 2 if self.plan.conditionals else 1)
            block.harvest()
        self._present()
        for one in self._followers[:1]:
            one.take()

    # --- advancing -------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Progress]:
        """Run to the end of the plan, yielding after every chunk; the caller's own time is not counted."""
        began = time.perf_counter()
        with ThreadPoolExecutor(min(self.plan.workers, len(self.blocks))) as pool:
            for phase, done, total in chain(self._warm_up(pool), self._sample(pool)):
                self.seconds += time.perf_counter() - began
                yield Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)
                began = time.perf_counter()

    def _warm_up(self, pool: ThreadPoolExecutor) -> Iterator[tuple[str, int, int | None]]:
        plan, warm = self.plan, self._warm_up_plan
        while length := warm.length():
            done = 0
            for done in self._advance(pool, length, int(warm.looks)):
                yield "warm-up", warm.done + done, plan.burn_in
                if self.seconds >= plan.warm_seconds:
                    break
            warm.look(done, self._window(done) if warm.looks else None)
            if done < length:
                return

    def _sample(self, pool: ThreadPoolExecutor) -> Iterator[tuple[str, int, int | None]]:
        kept, folded = 0, 2 if self.plan.conditionals else 1
        while self.plan.sweeps is None or kept < self.plan.sweeps:
            length = self._next_length(kept)
            self._tracking = bool(self._followers) and is_tracked(self.batch_count, self.plan.sweeps is None)
            for done in self._advance(pool, length, folded):
                if done < length:
                    yield "sampling", kept + done, self.plan.sweeps
            self._keep(length)
            kept += length
            yield "sampling", kept, self.plan.sweeps

    def _next_length(self, kept: int) -> int:
        """Batches of nearly equal length where the end is known; otherwise as long as the merged ones."""
        if self.plan.sweeps is None:
            return max(8, self._batches[0].length if self._batches else 0)
        batches = min(self.most_batches, self.plan.sweeps)
        return (self.plan.sweeps * (len(self._batches) + 1)) // batches - kept

    def _advance(self, pool: ThreadPoolExecutor, sweeps: int, folded: int) -> Iterator[int]:
        """So many sweeps in chunks of about CHUNK_SECONDS."""
        done = 0
        while done < sweeps:
            entries = max(1, ORDER_ENTRIES // max(len(self._sites), 1))
            chunk = max(1, min(sweeps - done, entries, int(self._sweeps_per_second * CHUNK_SECONDS)))
            orders = self._orders.next(chunk)
            began = time.perf_counter()
            list(pool.map(self._run_block, range(len(self.blocks)), repeat(orders), repeat(folded)))
            took = time.perf_counter() - began
            self.updates += chunk * len(self._sites) * self.plan.chains
            self._sweeps_per_second = min(chunk / max(took, 1e-9), 2.0 * max(self._sweeps_per_second, 10.0))
            done += chunk
            yield done

    def _run_block(self, k: int, orders: np.ndarray, folded: int) -> None:
        block, events = self.blocks[k], self.statistics.events if folded else None
        members = self._followers[k] if self._tracking and folded else None
        watch = self._watches[k] if self._watches else None
        single = events is not None or members is not None or (watch is not None and watch.every_sweep)
        at = 0
        while at < len(orders):  # events, tracked members and what may be stuck are looked at after every sweep
            part = orders[at : at + 1] if single else orders[at:]
            block.run(part, folded)
            at += len(part)
            if events is not None:
                events(block, self._hits[k])
            if members is not None:
                members.look()
            if watch is not None:
                watch.look()

    # --- folding ---------------------------------------------------------------------------------------------------

    def _take_hits(self) -> list[np.ndarray]:
        """Of joint events, per block; cleared."""
        taken = [hits[:, :lanes].copy() for hits, lanes in zip(self._hits, self._lanes, strict=True)]
        for hits in self._hits:
            hits[...] = 0
        return taken

    def _keep(self, length: int) -> None:
        """A batch of so many sweeps is done."""
        harvests, hits = [block.harvest() for block in self.blocks], self._take_hits()
        f = self._gather([h.final for h in harvests], hits, length)
        last = f if length == 1 else self._present()
        g = drawn = None
        if self.plan.conditionals:
            g = self._at_visits([h.conditional for h in harvests], harvests[0].visits)
            if not self._sampler.visits_once:
                drawn = self._at_visits([h.drawn for h in harvests], harvests[0].visits)
        if self._tracking:
            members = np.concatenate([one.take() for one in self._followers], axis=1)
            self._tracked = [*self._tracked, (length, members.T / length)]
        batches = [*self._batches, Batch(length, f, g, last=last, drawn=drawn)]
        full = self.plan.sweeps is None and len(batches) >= 2 * self.most_batches
        self._batches = merge_pairs(batches) if full else batches

    def _window(self, sweeps: int) -> np.ndarray:
        """float64[C, K]: F over a window of the warm-up."""
        return self._gather([block.harvest().final for block in self.blocks], self._take_hits(), sweeps)

    def _present(self) -> np.ndarray:
        """float64[C, K]: F of the states as they stand."""
        if self.statistics.events is not None:
            for block, hits in zip(self.blocks, self._hits, strict=True):
                self.statistics.events(block, hits)
        return self._gather([block.present() for block in self.blocks], self._take_hits(), 1)

    def _gather(self, sums: Sequence[np.ndarray], hits: list[np.ndarray], sweeps: int) -> np.ndarray:
        """float64[C, K]: means over orbits and sweeps."""
        singles = self.statistics.means(sums, self.statistics.sizes * float(sweeps))
        joint = np.concatenate(hits, axis=1) / (self.statistics.event_sizes[:, None] * sweeps)
        return (np.concatenate([singles, joint]) if len(joint) else singles).T

    def _at_visits(self, sums: Sequence[np.ndarray | None], slot_visits: np.ndarray) -> np.ndarray:
        """float64[C, K]: sums over updates divided by the number of visits; NaN for joint events.

        In the random scan an orbit may go unvisited in a batch: its conditionals are then unknown there (NaN).
        """
        visits = np.bincount(self.statistics.of_slot, weights=slot_visits, minlength=len(self.statistics.sizes))
        singles = self.statistics.means([part for part in sums if part is not None], visits)
        joint = np.full((len(self.statistics.event_sizes), self.plan.chains), np.nan)
        return (np.concatenate([singles, joint]) if len(joint) else singles).T

    def _groups(self) -> np.ndarray | None:
        """Of all statistics; a joint event is by itself."""
        groups, events = self.statistics.groups, len(self.statistics.event_sizes)
        return None if groups is None else np.append(groups, np.arange(events) + groups.max(initial=-1) + 1)

    def draws(self) -> Draws:
        """What has been folded so far (whole batches only)."""
        sizes = np.concatenate([self.statistics.sizes, self.statistics.event_sizes])
        made = draws_of(self._batches, sizes, self.plan.chains, self._warm_up_plan.done)
        members = tracked(self.statistics.tracked, [m for _, m in self._tracked], [n for n, _ in self._tracked])
        frozen, forced = self._stuck()
        return replace(made, groups=self._groups(), tracked=members, frozen=frozen, forced=forced)


def _most_batches(count: int, chains: int) -> int:
    """Fewer batches where there are very many statistics: three arrays of float64 each, of KEPT bytes in all."""
    return int(np.clip(KEPT // max(24 * count * chains, 1), 4, BATCHES))


def _check_memory(count: int, plan: Plan, blocks: int) -> None:
    kept = _most_batches(count, plan.chains) * (1 if plan.sweeps is not None else 2)
    need = 2 * 24 * count * plan.chains * kept + blocks  # twice: while they are stacked
    have = available_memory()
    if need > 0.8 * have:
        raise TooLarge("the memory for statistics (bytes)", need, 0.8 * have, "use fewer chains")


def available_memory() -> int:
    """Bytes of memory that can be had, as far as the system tells."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):  # not on every system
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 4 << 30
