"""A run of chains on a factor graph: blocks of lanes on threads.

Results depend on the seed alone: the blocks, their streams and the scan orders do not know how many threads there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, repeat
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import Notice, TooLarge
from definetti.memory import available_memory
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.draws import BATCHES, Batch, Draws
from definetti.samplers.graph.lanes import Block, Engine, Members, follower
from definetti.samplers.graph.starts import starts
from definetti.samplers.protocol import GraphSampler, Plan, prefixed
from definetti.samplers.run import Map, Run

if TYPE_CHECKING:
    from definetti.samplers.conditionals import Looks
    from definetti.samplers.graph.frozen_watch import Watch

ORDER_ENTRIES = 1 << 22
WORK_OF_LOOK, MOST_APART = 4000, 16  # updates that a look should follow; sweeps from one look to the next
KEPT = 1 << 27  # bytes of batches: memory that was never touched costs as much time as sampling what goes into it


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
    of_literal: np.ndarray | None = None  # int64[literals]: for the test E[F − G] = 0, which there is none of without
    kept: tuple[int, ...] = ()  # joint events whose hits are kept after every sweep: they are counts

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

    def means(self, sums: Sequence[np.ndarray], divisor: np.ndarray, joint: np.ndarray, run: Map = map) -> np.ndarray:
        """float64[K, chains]: of literals from float64[slots, lanes] of each block, divided by divisor[K of literals];
        below them those of joint events, as they are given. `run`: one block after the other, or over threads."""
        from definetti.samplers.kernels.orbit_counts import mean_over_slots

        lanes = [part.shape[1] for part in sums]
        out = np.empty((self.count, sum(lanes)))
        out[len(self.sizes) :] = joint
        same = (repeat(one) for one in (*self._slots, divisor, out))
        for _ in run(mean_over_slots, sums, *same, accumulate([0, *lanes[:-1]])):
            pass
        return out


class GraphSampling(Run):
    """The chains of one run, and how they are advanced and folded."""

    first_batch = 8
    reports_before = False
    pieces = "_run_block"

    def __init__(
        self, model: FactorGraph, sampler: GraphSampler, engine: Engine, statistics: Statistics, plan: Plan
    ) -> None:
        _check_memory(statistics.count, plan, engine.memory(plan.chains, plan.conditionals))
        self.statistics, self._sampler, self._engine = statistics, sampler, engine
        seeds = np.random.SeedSequence(plan.seed).spawn(3)
        drawn = plan.starts is None
        states = starts(model, plan.chains, np.random.default_rng(seeds[0])) if drawn else plan.starts
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
        self._looks, self._look_every = self._look_at(model), 1
        if self._looks:
            work = len(model.free) * plan.chains
            self._look_every = max(engine.look_every, min(MOST_APART, -(-WORK_OF_LOOK // work)))
        self._model, self._starts = model, states
        self._known_stuck: tuple[int, np.ndarray | None, np.ndarray | None] = (-1, None, None)
        self._hits = [np.zeros((len(statistics.event_sizes), block.state.shape[1]), np.int64) for block in self.blocks]
        self._followers = [follower(block, statistics.members) for block in self.blocks] if statistics.members else []
        self._updates = np.array(0)
        self.most_batches = _most_batches(statistics.count, plan.chains)
        self._sweeps_per_second = 0.0
        sizes = np.concatenate([statistics.sizes, statistics.event_sizes])
        super().__init__(plan, sizes, statistics.tracked, len(self.blocks), plan.burn_in)

    def _watch(self, model: FactorGraph, lanes: list[int]) -> list[Watch]:
        """Where there are hard factors, every block is watched for variables that cannot move."""
        if not len(model.hard_factors):
            return []
        from definetti.samplers.graph.frozen_watch import Watch, hard_parts

        parts = hard_parts(model)
        held = np.intersect1d(parts.scope, self._sampler.alone(model))
        return [Watch(model, parts, block, k, held) for block, k in zip(self.blocks, lanes, strict=True)]

    def _look_at(self, model: FactorGraph) -> list[Looks]:
        """What single-site Gibbs sampling emits is right if its kernel is; other samplers are put to the test."""
        if self._sampler.single_site or self.statistics.of_literal is None or not len(model.free):
            return []
        from definetti.samplers.conditionals import Looks, conditional_pass

        check = conditional_pass(model, self.statistics.of_literal, self.statistics.sizes)
        return [Looks(check, lanes, sum(self._lanes)) for lanes in self._lanes]

    def _stuck(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Variables that could not move in any chain: frozen, or forced (beside their values); None: not watched."""
        if not self._watches:
            return None, None
        from definetti.samplers.graph.frozen_watch import truly_frozen

        stuck = self._watches[0].stuck.copy()
        for watch in self._watches[1:]:
            stuck = np.intersect1d(stuck, watch.stuck)
        if self._known_stuck[0] != len(stuck):
            frozen = truly_frozen(self._model, stuck, self._starts)
            forced = np.setdiff1d(stuck, frozen)
            self._known_stuck = (len(stuck), frozen, np.stack([forced, self._starts[0, forced].astype(np.int64)]))
        return self._known_stuck[1:]

    @property
    def updates(self) -> int:
        return int(self._updates)

    def notices(self) -> list[Notice]:
        return self._engine.notices(self.blocks)

    def report(self) -> dict[str, Any]:
        return self._engine.report(self.blocks)

    def warm(self) -> None:
        """Load or compile the kernels, on no sweeps at all."""
        nothing = self._orders.next(0)
        for block in self.blocks[:1]:
            block.run(nothing, 2 if self.plan.conditionals else 1)
            block.harvest()
        self._present()
        for one in self._followers[:1]:
            one.take()
        for looks in self._looks[:1]:
            looks.load(self.blocks[0].state[:, :1])

    # --- advancing -------------------------------------------------------------------------------------------------

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        entries = max(1, ORDER_ENTRIES // max(len(self._sites), 1))
        chunk = max(1, min(self._length - self._done, entries, int(self._sweeps_per_second * seconds)))
        orders = self._orders.next(chunk)
        began = time.perf_counter()
        list(run(self._run_block, range(len(self.blocks)), repeat(orders), repeat(folded)))
        took = time.perf_counter() - began
        self._updates += chunk * len(self._sites) * self.plan.chains * self._engine.copies
        self._sweeps_per_second = min(chunk / max(took, 1e-9), 2.0 * max(self._sweeps_per_second, 10.0))
        return self._done + chunk

    def _run_block(self, k: int, orders: np.ndarray, folded: int) -> None:
        block, events = self.blocks[k], self.statistics.events if folded else None
        members = self._followers[k] if self._tracking and folded else None
        watch = self._watches[k] if self._watches else None
        single = events is not None or members is not None or (watch is not None and watch.every_sweep)
        looks = self._looks[k] if self._looks and self._phase == "sampling" else None
        at, every, sweep = 0, self._look_every, self._kept + self._done
        while at < len(orders):  # events, tracked members and what may be stuck are looked at after every sweep
            end = at + 1 if single else len(orders) if looks is None else at + every - (sweep + at) % every
            part = orders[at:end]
            block.run(part, folded)
            at += len(part)
            if looks is not None and (sweep + at) % every == 0:
                looks.look(block.state[:, : self._lanes[k]] & np.uint8(block.mask))
            if events is not None:
                self._count(k, events, self._done + at - 1)
            if members is not None:
                members.look()
            if watch is not None:
                watch.look()

    def _count(self, k: int, events: Callable[[Block, np.ndarray], None], sweep: int) -> None:
        """The hits of joint events in a block's states, after so many sweeps of the batch."""
        kept = list(self.statistics.kept)
        before = self._hits[k][kept]
        events(self.blocks[k], self._hits[k])
        if kept:
            self._notes["counts"][k][sweep] = (self._hits[k][kept] - before)[:, : self._lanes[k]].T

    def _noted(self) -> dict[str, int]:
        return {"counts": len(self.statistics.kept)}

    def _lanes_of_pieces(self) -> list[int]:
        return self._lanes

    def values(self) -> np.ndarray:
        n = self._model.n
        parts = [block.state[:n, :k] & np.uint8(block.mask) for block, k in zip(self.blocks, self._lanes, strict=True)]
        return np.concatenate([part.T for part in parts]).astype(np.uint8, copy=False)

    def arrivals(self) -> np.ndarray:
        """uint8[n, …]: states at the ends of round trips of a ladder; none of other samplers."""
        n = self._model.n
        parts = [arrived[:n] for block in self.blocks if (arrived := getattr(block, "arrived", None)) is not None]
        return np.concatenate([np.zeros((n, 0), np.uint8), *parts], axis=1)

    # --- folding ---------------------------------------------------------------------------------------------------

    def _take_hits(self) -> list[np.ndarray]:
        """Of joint events, per block; cleared."""
        taken = [hits[:, :lanes].copy() for hits, lanes in zip(self._hits, self._lanes, strict=True)]
        for hits in self._hits:
            hits[...] = 0
        return taken

    def _harvest(self, length: int) -> Batch:
        harvests, hits = list(self._here(methodcaller("harvest"), self.blocks)), self._take_hits()
        f = self._gather([h.final for h in harvests], hits, length)
        last = f if length == 1 else self._present()
        g = drawn = None
        if self.plan.conditionals:
            g = self._at_visits([h.conditional for h in harvests], harvests[0].visits)
            if not self._sampler.visits_once:
                drawn = self._at_visits([h.drawn for h in harvests], harvests[0].visits)
        return Batch(length, f, g, last=last, drawn=drawn, tally=self._tally())

    def _members(self) -> np.ndarray:
        return np.concatenate([one.take() for one in self._followers], axis=1).T

    def _window(self, length: int, whole: bool) -> np.ndarray | None:
        if not self._warm_up.looks:  # then nothing was folded
            return None
        return self._gather([block.harvest().final for block in self.blocks], self._take_hits(), length)

    def _present(self) -> np.ndarray:
        """float64[C, K]: F of the states as they stand."""
        if self.statistics.events is not None:
            for block, hits in zip(self.blocks, self._hits, strict=True):
                self.statistics.events(block, hits)
        return self._gather(list(self._here(methodcaller("present"), self.blocks)), self._take_hits(), 1)

    def _gather(self, sums: Sequence[np.ndarray], hits: list[np.ndarray], sweeps: int) -> np.ndarray:
        """float64[C, K]: means over orbits and sweeps."""
        joint = np.concatenate(hits, axis=1) / (self.statistics.event_sizes[:, None] * sweeps)
        return self.statistics.means(sums, self.statistics.sizes * float(sweeps), joint, self._here).T

    def _at_visits(self, sums: Sequence[np.ndarray | None], slot_visits: np.ndarray) -> np.ndarray:
        """float64[C, K]: sums over updates divided by the number of visits; NaN for joint events.

        In the random scan an orbit may go unvisited in a batch: its conditionals are then unknown there (NaN).
        """
        visits = np.bincount(self.statistics.of_slot, weights=slot_visits, minlength=len(self.statistics.sizes))
        unknown = np.full((len(self.statistics.event_sizes), self.plan.chains), np.nan)
        return self.statistics.means([part for part in sums if part is not None], visits, unknown, self._here).T

    def _groups(self) -> np.ndarray | None:
        """Of all statistics; a joint event is by itself."""
        groups, events = self.statistics.groups, len(self.statistics.event_sizes)
        return None if groups is None else np.append(groups, np.arange(events) + groups.max(initial=-1) + 1)

    def _completed(self, draws: Draws) -> Draws:
        frozen, forced = self._stuck()
        draws = replace(draws, groups=self._groups(), frozen=frozen, forced=forced)
        if not self._looks:
            return draws
        from definetti.samplers.conditionals import balance_of

        return replace(draws, balance=balance_of(self._looks))

    def _arrays(self) -> dict[str, np.ndarray]:
        found = {"updates": self._updates, "orders": self._orders.stream}
        parts = {"block": self.blocks, "watch": self._watches, "members": self._followers, "looks": self._looks}
        for name, some in parts.items():
            for k, part in enumerate(some):
                found |= prefixed(f"{name}{k}", part.arrays())
        return found | {f"hits{k}": hits for k, hits in enumerate(self._hits)}


def _most_batches(count: int, chains: int) -> int:
    """Fewer batches where there are very many statistics: three arrays of float64 each, of KEPT bytes in all."""
    return int(np.clip(KEPT // max(24 * count * chains, 1), 4, BATCHES))


def _check_memory(count: int, plan: Plan, blocks: int) -> None:
    kept = _most_batches(count, plan.chains) * (2 if plan.grows else 1)
    need = 2 * 24 * count * plan.chains * kept + blocks  # twice: while they are stacked
    have = available_memory()
    if need > 0.8 * have:
        raise TooLarge("the record of all statistics", need, 0.8 * have, "use fewer chains", unit="bytes")
