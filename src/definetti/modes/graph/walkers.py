"""Chains on a factor graph that look for modes (`modes/walkers.py`). A state is uint8[n, chains]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.graph.simplify import LARGE
from definetti.modes.walkers import SHARES, SPAN, WAYS, Advanced, Key, Paths, Walk, penalties, unfollowed
from definetti.samplers.draws import Batch, Draws, draws_of
from definetti.samplers.graph.lanes import Orders, Slots, words
from definetti.samplers.graph.sampling import Statistics
from definetti.samplers.graph.tables import TablesEngine, all_parts, build, log_rows
from definetti.samplers.protocol import GraphSampler
from definetti.symmetry.graph.group import GraphSymmetries

LEAST = 1e-12  # probability in a product
LEAST_BY_SITE = 0.01  # of a single site, whose neighbourhood may move slowly
MOST_COUNTED = 32  # different log values whose factors are counted
MOST_STATISTICS = 400  # more are seen through random projections
PROJECTIONS = 96
SKETCHED = 20_000  # statistics: beyond, each is in one projection alone
MOST_SITES, MOST_SEEN = 20_000_000, 4_000_000  # variables; statistics, which are kept of every chain
VALUES, READS = 2.5, 78  # of variables, or of neighbours and table entries, in the time of a simple update
NOTHING, NO_SUMS = np.zeros(0), np.zeros((0, 0))


def work_of_sweep(model: FactorGraph) -> int:
    """Counted in updates of a simple model: each value of a variable is drawn from, and for each pair of a variable and
    a factor the other variables are read, and an entry for each value."""
    arity = np.repeat(np.diff(model.scope_start), np.diff(model.scope_start))
    reads = int((arity - 1 + model.cards[model.scope]).sum())
    return int(model.cards[model.free].sum() / VALUES + reads / READS)


@dataclass(frozen=True)
class _View:
    """States as joint events read them."""

    state: np.ndarray
    mask: int = 255


class GraphWalkers:
    weighs, mirrored = True, False

    def __init__(
        self, group: GraphSymmetries, statistics: Statistics, statistic_of: np.ndarray, slots: Slots,
        given: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """`group` is that of the question, trivial for the standard estimator; `given`: what the model as given says
        of single variables, for starts."""
        from definetti.samplers.kernels.graph import annealing as kernels

        model, self._slots, self.given = group.model, slots, given
        self.model, self.group, self.statistics, self._kernels = model, group, statistics, kernels
        self._rows, self._parts = log_rows(model), all_parts(model)
        self.sites, self.hard = len(model.free), bool(len(model.hard_factors))
        self.work = max(self.sites, work_of_sweep(model))
        free = np.repeat(model.evidence == FREE, model.cards)
        self._literals = np.flatnonzero(free)
        self._orbit = statistic_of[self._literals]
        singles = self.singles = len(statistics.sizes)
        self.counted: Sequence[tuple[int, int]] = [
            (singles + k, int(statistics.event_sizes[k])) for k in statistics.kept
        ]
        sizes = np.bincount(self._orbit, minlength=singles)
        self._sizes = sizes.astype(float)
        self._literal_orbit = np.zeros(len(free), np.int64)
        self._literal_orbit[self._literals] = self._orbit
        self._count_of, self._counts = counted_entries(model)
        self._constant = model.log_constant if abs(model.log_constant) <= LARGE else 0.0
        self.log_constant = model.log_constant - self._constant
        order = group.order
        self.log_copies = float("inf") if order is None else float(np.log(float(order))) if order < 1 << 1000 else 700.0

    # --- states ------------------------------------------------------------------------------------------------------

    def count(self, states: np.ndarray) -> int:
        return states.shape[1]

    def take(self, states: np.ndarray, chains: Sequence[int] | np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(states[:, np.asarray(chains, dtype=np.int64)])

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def blank(self, count: int) -> np.ndarray:
        evidence = np.where(self.model.evidence == FREE, 0, self.model.evidence).astype(np.uint8)
        return np.repeat(evidence[:, None], count, axis=1)

    def starts(self, key: Key, most: int, climbs: int) -> np.ndarray:
        from definetti.samplers.graph.starts import dispersed

        return dispersed(self, key, most, climbs)

    def legal(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if not self.hard:
            return states
        from definetti.constraints.graph.legal_states import legalise

        rows = np.ascontiguousarray(states.T)
        legalise(self.model, rows, rng)
        return np.ascontiguousarray(rows.T)

    def moved(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Each state carried by a random element of the group."""
        if not self.group.generator_count:
            return states
        model, out = self.model, states.copy()
        for chain, element in zip(range(states.shape[1]), self.group.random_elements(rng), strict=False):
            image = element[model.literal_start[:-1] + states[:, chain]]
            variable = model.variable_of[image]
            out[variable, chain] = image - model.literal_start[variable]
        return out

    def hybrids(self, a: np.ndarray, b: np.ndarray, key: Key, ways: Sequence[int] = WAYS) -> np.ndarray:
        rng = np.random.default_rng([*key, 4])
        out = a.copy()
        for chain in range(out.shape[1]):
            other = self._part(ways[chain % len(ways)], rng)
            out[other, chain] = b[other, chain % b.shape[1]]
        return self.legal(out, rng)

    def corners(self, base: np.ndarray, a: np.ndarray, b: np.ndarray, key: Key) -> np.ndarray:
        return self.legal(np.where(b != base, b, a), np.random.default_rng([*key, 16]))

    def _part(self, way: int, rng: np.random.Generator) -> np.ndarray:
        """bool[n]: some of the variables: single ones, a neighbourhood, some orbits."""
        from definetti.samplers.graph.starts import neighbourhood

        n, orbit_of = self.model.n, self.statistics.orbit_of
        share = SHARES[way]
        if share is not None:
            return rng.random(n) < share
        kinds = np.zeros(0, int) if orbit_of is None else np.unique(orbit_of[self.model.free])
        if orbit_of is None or way % 2 == 0 or not 1 < len(kinds) < len(self.model.free):
            return neighbourhood(self.model, int(rng.choice(self.model.free)), n // 2)
        return np.isin(orbit_of, rng.permutation(kinds)[: int(rng.integers(1, len(kinds)))])

    def as_starts(self, states: np.ndarray, chains: int) -> np.ndarray:
        """uint8[chains, n]: starts of a run, each state as often as it takes."""
        return np.ascontiguousarray(states.T[np.arange(chains) % states.shape[1]])

    def draws(self, batches: Sequence[Batch], chains: int) -> Draws:
        """What a run would have left behind."""
        statistics, groups = self.statistics, self.statistics.groups
        sizes = np.concatenate([statistics.sizes, statistics.event_sizes])
        if groups is not None:
            groups = np.append(groups, np.arange(len(statistics.event_sizes)) + groups.max(initial=-1) + 1)
        return replace(draws_of(batches, sizes, chains, 0), groups=groups)

    # --- advancing ---------------------------------------------------------------------------------------------------

    def orders(self, key: Key) -> Orders:
        return Orders("symmetric", self.model.free, words(np.random.SeedSequence(key), (4,)), self.statistics.orbit_of)

    def scratch(self, lanes: int) -> Any:
        values = -(-int(self.model.cards.max(initial=1)) // 4) * 4
        return self._kernels.Scratch(
            place=np.zeros((self._kernels.PAIRS, lanes), np.int32),
            product=np.zeros((values, lanes)),
            broken=np.zeros((values if self.hard else 0, lanes)),
            uniform=np.zeros(lanes),
            value=np.zeros(lanes, np.int64),
            scale=np.zeros(lanes),
        )

    def sweep(
        self, states: np.ndarray, order: np.ndarray, streams: np.ndarray, scratch: Any, level: float, penalty: float,
        tilt: np.ndarray = NOTHING, values: np.ndarray = NO_SUMS, conditional: np.ndarray = NO_SUMS,
        diverged: np.ndarray = NOTHING, orbit: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        if level < 1.0 and not len(tilt):
            raise ValueError("a level below 1 needs the log weights of its lower end")
        stuck = self._kernels.level_sweep(
            self._rows, states, order, streams, scratch, level, penalty, tilt,
            self._literal_orbit if orbit is None else orbit, values, conditional, diverged,
        )  # fmt: skip
        if stuck >= 0:
            from definetti.samplers.graph.tables import Stuck

            raise Stuck(f"every value of {self.model.names[stuck]} became impossible: the chain's start was illegal")

    def walk(
        self, states: np.ndarray, sweeps: int, key: Key, product: np.ndarray | None = None, keep: Sequence[int] = ()
    ) -> Walk:
        state, chains = states.copy(), states.shape[1]
        rng = np.random.default_rng([*key, 7])
        streams = words(np.random.SeedSequence([*key, 6]), (4, chains))
        orders = self.orders((*key, 5))
        flip = rng.random(sweeps) < 0.5
        tilt = np.zeros(0) if product is None else product
        total, scratch = np.zeros((len(self._sizes), chains)), self.scratch(chains)
        values, conditional = np.zeros_like(total), np.zeros_like(total)
        mean: np.ndarray | float = 0.0
        rows: list[tuple[np.ndarray, ...]] = []
        kept = {}
        windows = unfollowed()
        if SKETCHED >= len(total) > MOST_STATISTICS:
            windows = np.zeros((sweeps // SPAN, chains, len(total)), np.float32)
        for s in range(sweeps):
            values[...] = conditional[...] = 0.0
            diverged = np.zeros(0 if product is None else chains)
            order = orders.next(1)[0]
            order = order[::-1].copy() if flip[s] else order
            self.sweep(state, order, streams, scratch, 1.0, np.inf, tilt, values, conditional, diverged)
            total += conditional
            f, g = self._with_events(values / self._sizes[:, None], state), conditional / self._sizes[:, None]
            mean = mean + f / sweeps
            if s // SPAN < len(windows):
                windows[s // SPAN] += (g / SPAN).T
            soft, _, log_q, counts = self.read(state, tilt)
            log_density = soft + self._constant
            shown = self.seen(f[: len(g)])
            features = np.concatenate([shown, counts, log_density[None]])
            rows.append((features, self.seen(g), log_density, log_density - log_q, diverged))
            if s + 1 in keep:
                kept[s + 1] = state.copy()
        features, fields, log_density, ratio, diverged = (np.stack(part) for part in zip(*rows, strict=True))
        return Walk(
            state, np.asarray(mean).T, features.transpose(0, 2, 1), fields.transpose(0, 2, 1), log_density, ratio,
            diverged, total, kept, windows,
        )  # fmt: skip

    @cached_property
    def _engine(self) -> TablesEngine:
        return build(self.model, self._slots)

    def advance(self, states: np.ndarray, sweeps: int, key: Key) -> Advanced:
        chains, statistics = states.shape[1], self.statistics
        engine = self._engine
        seeds = np.random.SeedSequence([*key, 11]).spawn(-(-chains // engine.width))
        block = engine.block(np.ascontiguousarray(states.T), seeds, False, True)
        orders = self.orders((*key, 12)).next(sweeps)
        flip = np.random.default_rng([*key, 13]).random(sweeps) < 0.5
        orders[flip] = orders[flip, ::-1]
        hits = np.zeros((len(statistics.event_sizes), chains), np.int64)
        kept = list(statistics.kept)
        counts = np.zeros((sweeps, chains, len(kept))) if kept else None
        if statistics.events is None:
            block.run(orders, 2)
        else:
            for s in range(sweeps):
                block.run(orders[s : s + 1], 2)
                before = hits[kept]
                statistics.events(block, hits)
                if counts is not None:
                    counts[s] = (hits[kept] - before).T
        harvest = block.harvest()
        visits = np.bincount(statistics.of_slot, weights=harvest.visits, minlength=len(statistics.sizes))
        assert harvest.conditional is not None
        joint = hits / (statistics.event_sizes[:, None] * sweeps)
        ends = block.state[:, :chains].copy()
        return Advanced(
            ends,
            statistics.means([harvest.final], statistics.sizes * float(sweeps), joint).T,
            statistics.means([harvest.conditional], visits, np.full_like(joint, np.nan)).T,
            self._means(ends).T,
            None,
            self.features(ends),
            counts,
        )

    def statistics_of(self, states: np.ndarray) -> np.ndarray:
        return self._means(states).T

    def read(self, states: np.ndarray, tilt: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of each state: log entries that are possible, how many are not, log q, counts of log values."""
        chains = states.shape[1]
        soft, log_q, broken = np.zeros(chains), np.zeros(chains), np.zeros(chains, np.int64)
        counts, entry = np.zeros((self._counts, chains)), np.zeros(chains, np.int64)
        self._kernels.read_states(
            self._parts, states, self._count_of, tilt, self.model.literal_start, self.model.free, entry, soft, broken,
            log_q, counts,
        )  # fmt: skip
        return soft, broken, log_q, counts

    def _means(self, states: np.ndarray) -> np.ndarray:
        """float64[K, chains]: F of the question's statistics, joint events too."""
        model, chains, singles = self.model, states.shape[1], len(self._sizes)
        literal = model.literal_start[model.free][:, None] + states[model.free]
        cell = self._literal_orbit[literal] * chains + np.arange(chains)
        f = np.bincount(cell.ravel(), minlength=singles * chains).reshape(singles, chains) / self._sizes[:, None]
        return self._with_events(f, states)

    def _with_events(self, f: np.ndarray, states: np.ndarray) -> np.ndarray:
        if self.statistics.events is None:
            return f
        chains = states.shape[1]
        hits = np.zeros((len(self.statistics.event_sizes), chains), np.int64)
        view: Any = _View(states)
        self.statistics.events(view, hits)
        return np.concatenate([f, hits / self.statistics.event_sizes[:, None]])

    @cached_property
    def _directions(self) -> Any:
        """float64[projections, statistics], sparse where there are many; None where all are seen."""
        singles = len(self._sizes)
        if singles <= MOST_STATISTICS:
            return None
        if singles > SKETCHED:
            from scipy.sparse import csr_array

            rng, scale = np.random.default_rng(0), np.sqrt(PROJECTIONS * self._sizes / self._sizes.sum())
            where = (rng.integers(PROJECTIONS, size=singles), np.arange(singles))
            return csr_array((rng.choice([-1.0, 1.0], singles) * scale, where), (PROJECTIONS, singles))
        return np.random.default_rng(0).normal(size=(PROJECTIONS, singles)) * np.sqrt(self._sizes / self._sizes.sum())

    def seen(self, means: np.ndarray) -> np.ndarray:
        return means if self._directions is None else self._directions @ means

    # --- products ----------------------------------------------------------------------------------------------------

    def product(self, parts: Sequence[tuple[Walk, np.ndarray]]) -> np.ndarray:
        """float64[literals]: log q, 0 for observed variables."""
        total = np.sum([walk.sites[:, chains].sum(axis=1) for walk, chains in parts], axis=0) / self._sizes
        mean = np.ones(len(self.model.variable_of))
        mean[self._literals] = total[self._orbit]
        return self._normalised(mean)

    def entropy(self, conditionals: np.ndarray) -> float:
        p = np.clip(conditionals, LEAST, 1.0)
        return float(-self._sizes @ (p * np.log(p)))

    def _normalised(self, mean: np.ndarray, least: float = LEAST) -> np.ndarray:
        mean = mean.copy()
        mean[np.repeat(self.model.evidence != FREE, self.model.cards)] = 1.0
        share = mean / np.bincount(self.model.variable_of, weights=mean)[self.model.variable_of]
        share = np.maximum(share, least)
        share /= np.bincount(self.model.variable_of, weights=share)[self.model.variable_of]
        out = np.zeros(len(share))
        out[self._literals] = np.log(share[self._literals])
        return out

    def site_product(self, state: np.ndarray, sweeps: int, key: Key) -> tuple[np.ndarray, np.ndarray]:
        """The product of the mean full conditionals of the single sites, of one chain; and where it ended."""
        out, literals = state.copy(), len(self._literal_orbit)
        streams = words(np.random.SeedSequence([*key, 14]), (4, 1))
        scratch, sums = self.scratch(1), np.zeros((2, literals, 1))
        own = np.arange(literals)
        orders = self.orders((*key, 15))
        for _ in range(sweeps):
            self.sweep(out, orders.next(1)[0], streams, scratch, 1.0, np.inf, NOTHING, sums[0], sums[1], orbit=own)
        return self._normalised(sums[1, :, 0], LEAST_BY_SITE), out

    def draw(self, product: np.ndarray, count: int, key: Key) -> np.ndarray:
        rng, model, out = np.random.default_rng([*key, 8]), self.model, self.blank(count)
        for card in np.unique(model.cards[model.free]).tolist():
            sites = model.free[model.cards[model.free] == card]
            chance = np.exp(product[model.literal_start[sites][:, None] + np.arange(card)])
            reach = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
            uniform = rng.random((len(sites), count))
            out[sites] = np.minimum((uniform[:, :, None] >= reach[:, None, :]).sum(axis=2), card - 1)
        return out

    def paths(self, states: np.ndarray, product: np.ndarray, levels: np.ndarray, upwards: bool, key: Key) -> Paths:
        state, chains, steps = states.copy(), states.shape[1], len(levels) - 1
        streams = words(np.random.SeedSequence([*key, 10]), (4, chains))
        orders = self.orders((*key, 9))
        ratio, broken = np.zeros((steps, chains)), np.zeros((steps, chains), np.int64)
        penalty, scratch = penalties(levels), self.scratch(chains)
        features = None if upwards else self.features(state)
        for step in range(steps):
            row = step if upwards else steps - 1 - step
            soft, illegal, log_q, _ = self.read(state, product)
            ratio[row], broken[row] = soft + self._constant - log_q, illegal
            if step < steps - 1:
                at = step + 1 if upwards else steps - 1 - step
                order = orders.next(1)[0] if upwards else orders.next(1)[0, ::-1].copy()
                self.sweep(
                    state, order, streams, scratch, float(levels[at]), float(penalty[at]), product
                )  # fmt: skip
        return Paths(ratio, broken, self.features(state) if features is None else features)

    def arrived(self, sampling: Any) -> tuple[np.ndarray, np.ndarray]:
        found = self.features(sampling.arrivals())
        return found, np.arange(found.shape[1])

    def images(self, states: np.ndarray, key: Key) -> np.ndarray:
        return self.moved(states, np.random.default_rng([*key, 15]))

    def features(self, states: np.ndarray) -> np.ndarray:
        """float64[chains, features]"""
        soft, _, _, counts = self.read(states, NOTHING)
        means = self.seen(self._means(states)[: len(self._sizes)])
        return np.concatenate([means, counts, (soft + self._constant)[None]]).T


class EngineWalkers(GraphWalkers):
    """The same for samplers whose moves are not of one variable: they can be watched, not weighed."""

    def __init__(
        self, group: GraphSymmetries, statistics: Statistics, statistic_of: np.ndarray, slots: Slots,
        given: np.ndarray | None, sampler: GraphSampler,
    ) -> None:  # fmt: skip
        super().__init__(group, statistics, statistic_of, slots, given)
        self._sampler, self._moves = sampler, sampler.engine(group.model, slots)

    def walk(
        self, states: np.ndarray, sweeps: int, key: Key, product: np.ndarray | None = None, keep: Sequence[int] = ()
    ) -> Walk:
        model, chains, engine = self.model, states.shape[1], self._moves
        seeds = np.random.SeedSequence([*key, 6]).spawn(-(-chains // engine.width) + 1)
        orders = self._sampler.orders(model.free, seeds[-1], self.statistics.orbit_of).next(sweeps)
        parts = [states[:, at : at + engine.width] for at in range(0, chains, engine.width)]
        blocks = [
            engine.block(np.ascontiguousarray(part.T), [seed], not self._sampler.visits_once, False)
            for part, seed in zip(parts, seeds, strict=False)
        ]
        rows, kept, state = [], {}, states
        for s in range(sweeps):
            for block in blocks:
                block.run(orders[s : s + 1], 0)
            held = [block.state[: model.n, : block.lanes] & np.uint8(block.mask) for block in blocks]
            state = np.ascontiguousarray(np.concatenate(held, axis=1))
            features, means = self.features(state), self._means(state).T
            rows.append((means, features, features[:, -1]))
            if s + 1 in keep:
                kept[s + 1] = state
        f, features, density = (np.stack(part) for part in zip(*rows, strict=True))
        nothing = np.zeros((sweeps, chains))
        mean = f.mean(axis=0)
        return Walk(state, mean, features, features[:, :, :0], density, nothing, nothing, None, kept)


def counted_entries(model: Any) -> tuple[np.ndarray, int]:
    """Table entries by their log value, over all tables: the group carries factors to factors of equal value, so the
    number of factors with a value is left alone. Nothing is counted where there are very many values."""
    values = np.round(np.where(np.isneginf(model.tables), 1e15, model.tables), 9)
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) > MOST_COUNTED:
        return np.full(len(values), -1, dtype=np.int64), 0
    return number.ravel().astype(np.int64), len(distinct)
