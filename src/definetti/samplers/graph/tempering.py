"""Parallel tempering over any sampler: a ladder of flatter and flatter versions of the model, exchanging states with
each other.

Level 0 is uniform, level 1 the model. In between, logarithms are multiplied by the level, and what is impossible
costs a penalty that grows without bound towards level 1: hot chains walk through states that the model forbids, so
every legal state can be reached. Only the chain at level 1 is folded. The ladder is found by annealing a few chains,
each step as long as half of them can bear; then they run on it, and its levels move to where exchanges are rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.errors import Notice, TooLarge
from definetti.model.graph.factors import FREE, FactorGraph, frozen
from definetti.model.graph.simplify import LARGE
from definetti.samplers.graph.lanes import Block, Engine, Harvest, Seeds, Slots, words
from definetti.samplers.graph.tables import all_parts
from definetti.samplers.ladder import Ladder, level_count, penalty, placed
from definetti.samplers.protocol import GraphSampler, prefixed

MOST_LEVELS = 100
PILOTS, PILOT_SWEEPS = 64, 12
ROUNDS = (16, 48)  # sweeps of the pilots' ladder, after each of which the levels are placed anew
ARRIVALS = 64  # of a block: round trips whose last state is remembered
MOST_KINDS = 16  # of tables whose entries are counted in bits
SHARE = 0.5  # of the annealed chains that a step must leave effective


def softened(model: FactorGraph, level: float) -> FactorGraph:
    """The model on a level."""
    if level >= 1.0:
        return model
    tables = np.where(np.isneginf(model.tables), -penalty(level), level * np.nan_to_num(model.tables, neginf=0.0))
    return replace(model, tables=frozen(tables))


@dataclass(frozen=True, eq=False)
class TemperingEngine(Engine):
    engines: tuple[Engine, ...]  # the last is that of the model itself
    levels: np.ndarray
    parts: Any
    words: Any  # kernels.WordParts where lanes are bits of words; else None
    free: np.ndarray
    cards: np.ndarray  # of all variables
    width: int
    name: str = "tempering"
    together: int = 1

    @property
    def copies(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.engines)

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> TemperingBlock:
        return TemperingBlock(self, starts, seeds[0], visits_too, conditionals)

    def memory(self, chains: int, conditionals: bool) -> int:
        return sum(engine.memory(chains, conditionals) for engine in self.engines)

    @property
    def look_every(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """A look costs a sweep of one level."""
        return -(-5 // len(self.engines))

    def notices(self, blocks: Sequence[TemperingBlock]) -> list[Notice]:
        """Of the ladder, and of the levels' own sampler."""
        own = {notice.kind: notice for k in range(len(self.engines)) for notice in self._level_notices(blocks, k)}
        return [*self._ladder(blocks).notices(), *own.values()]

    def _level_notices(self, blocks: Sequence[TemperingBlock], level: int) -> list[Notice]:
        return self.engines[level].notices([block.levels[level] for block in blocks])

    def report(self, blocks: Sequence[TemperingBlock]) -> dict[str, Any]:
        return {"tempering": self._ladder(blocks).report()}

    def _ladder(self, blocks: Sequence[TemperingBlock]) -> Ladder:
        sums, tried = np.sum([block.rejected for block in blocks], axis=0)
        trips = sum(int(block.trips[0]) for block in blocks)
        return Ladder(self.levels, sums / np.maximum(tried, 1.0), tried, trips)


def build(model: FactorGraph, over: GraphSampler, slots: Slots, levels: tuple[float, ...]) -> TemperingEngine:
    words = word_parts(model) if over.single_site else None
    engines = _engines([softened(model, level) for level in levels], over, slots, words is not None)
    words = words if engines[-1].name == "fields" else None
    width = min(engine.width for engine in engines)
    return TemperingEngine(
        engines, np.array(levels, dtype=np.float64), all_parts(model), words, model.free, model.cards, width
    )


def _engines(models: Sequence[FactorGraph], over: GraphSampler, slots: Slots, bits: bool) -> tuple[Engine, ...]:
    """Of all levels, alike: they exchange states in place. Gibbs sampling keeps them as bits where energies can be had
    from bits, else as bytes."""
    if not over.single_site:
        return tuple(over.engine(model, slots) for model in models)
    if bits:
        from definetti.samplers.graph import fields

        made = [fields.build(model, slots) for model in models]
        found = [engine for engine in made if engine is not None]
        if len(found) == len(models):
            return tuple(found)
    from definetti.samplers.graph import tables

    return tuple(tables.build(model, slots) for model in models)


def word_parts(model: FactorGraph) -> Any:
    """`kernels.WordParts`, or None where a variable has more values, a factor more variables, an entry is impossible,
    or so low that differences to it lose small ones, or where there are many kinds of tables."""
    from definetti.samplers.kernels.graph.tempering import WordParts

    arity = model.arity
    if (model.cards != 2).any() or (arity > 2).any() or (np.abs(model.tables) > LARGE).any():
        return None
    own = np.flatnonzero(arity > 0)
    pair = arity[own] == 2
    first = model.table_start[model.table_of[own]]
    left = model.scope[model.scope_start[own]]
    right = np.where(pair, model.scope[model.scope_start[own] + pair], model.n)
    entries = np.where(pair[:, None], first[:, None] + np.arange(4), first[:, None] + np.array([0, 0, 1, 1]))
    kinds, kind = np.unique(model.tables[entries].reshape(-1, 4), axis=0, return_inverse=True)
    if len(kinds) > MOST_KINDS:
        return None
    gain = kinds[:, [3, 2, 1]] - kinds[:, :1]
    ground = float(kinds[kind.ravel(), 0].sum())
    return WordParts(left.astype(np.int64), right.astype(np.int64), kind.ravel().astype(np.int64), gain, ground)


class TemperingBlock:
    """A block per level; a sweep is one on every level, then exchanges between every other pair of neighbours."""

    def __init__(
        self,
        engine: TemperingEngine,
        starts: np.ndarray,
        seed: np.random.SeedSequence,
        visits_too: bool,
        conditionals: bool,
    ) -> None:
        from definetti.samplers.kernels.graph import tempering as kernels

        self._kernels, self._engine, self.lanes = kernels, engine, len(starts)
        seeds = seed.spawn(len(engine.engines) + 2)
        rng = np.random.default_rng(seeds[-2])
        self._blocks: list[Block] = [
            part.block(
                starts if k == len(engine.engines) - 1 else scattered(engine, starts, rng),
                seeds[k : k + 1], visits_too, conditionals,
            )
            for k, part in enumerate(engine.engines)
        ]  # fmt: skip
        self._stream = words(seeds[-1], (4,))
        self._penalties = np.array([penalty(level) for level in engine.levels])
        count = len(engine.levels)
        self._soft, self._broken = np.zeros((count, self.lanes)), np.zeros((count, self.lanes), dtype=np.int64)
        self._parity = np.array(0)  # of the pairs to exchange next
        self._replica = np.repeat(np.arange(count)[:, None], self.lanes, axis=1)  # by level
        self._heading = np.zeros((count, self.lanes), np.int64)  # by replica
        self.rejected = np.zeros((2, count - 1))  # sums of rejection probabilities, attempts
        self.trips = np.zeros(1, np.int64)
        self._wide = engine.words is not None and all(block.wide for block in self._blocks)  # pyright: ignore[reportAttributeAccessIssue]
        count = -(-self.lanes // 64)
        planes = 0 if engine.words is None else len(engine.words.left).bit_length()
        kinds = 0 if engine.words is None else len(engine.words.gain)
        self._planes = np.zeros((planes, kernels.ENTRIES * kinds, count), np.uint64)
        self._chosen = np.zeros(count, np.uint64)
        self.arrivals = np.zeros((self._blocks[-1].state.shape[0], ARRIVALS), np.uint8)
        self._noted = np.array(0)  # arrivals, those that were overwritten too

    @property
    def levels(self) -> Sequence[Block]:
        """The blocks of all levels, that of the model last."""
        return self._blocks

    @property
    def state(self) -> np.ndarray:
        return self._blocks[-1].state

    @property
    def mask(self) -> int:
        return self._blocks[-1].mask

    def run(self, orders: np.ndarray, folded: int) -> None:
        for s in range(len(orders)):
            for block in self._blocks[:-1]:
                block.run(orders[s : s + 1], 0)
            self._blocks[-1].run(orders[s : s + 1], folded)
            self._exchange()
        if not len(orders):  # nothing but loading the kernels
            for block in self._blocks:
                block.run(orders, folded)

    def _exchange(self) -> None:
        if self._wide:
            self._exchange_words()
        else:
            self._exchange_bytes()
        self._note_arrivals()
        self._kernels.count_trips(self._replica, self._heading, self.trips)
        self._parity ^= 1

    def _exchange_bytes(self) -> None:
        states = [_held(block) for block in self._blocks]
        masks = [np.uint8(block.mask) for block in self._blocks]
        for k, (state, mask) in enumerate(zip(states, masks, strict=True)):
            self._kernels.weigh(self._engine.parts, state, mask, self.lanes, self._soft[k], self._broken[k])
        for k in range(int(self._parity), len(states) - 1, 2):
            self._kernels.swap_levels(
                self._engine.levels, self._penalties, k, states[k], masks[k], states[k + 1], masks[k + 1],
                self._soft, self._broken, self._replica, self.rejected, self.lanes, self._stream,
            )  # fmt: skip

    def _exchange_words(self) -> None:
        states: list[np.ndarray] = [block.words for block in self._blocks]  # pyright: ignore[reportAttributeAccessIssue]
        for k, state in enumerate(states):
            self._kernels.weigh_words(self._engine.words, state, self._planes, self.lanes, self._soft[k])
        for k in range(int(self._parity), len(states) - 1, 2):
            self._kernels.swap_words(
                self._engine.levels, self._penalties, k, states[k], states[k + 1], self._soft, self._broken,
                self._replica, self.rejected, self.lanes, self._stream, self._chosen,
            )  # fmt: skip

    def _note_arrivals(self) -> None:
        """The states that end round trips."""
        lanes = np.arange(self.lanes)
        ended = np.flatnonzero(self._heading[self._replica[-1], lanes] == self._kernels.RETURNING).tolist()
        state = self.state if ended else None  # a copy, where lanes are bits
        for lane in ended:
            assert state is not None
            self.arrivals[:, int(self._noted) % ARRIVALS] = state[:, lane] & np.uint8(self.mask)
            self._noted += 1

    @property
    def arrived(self) -> np.ndarray:
        """uint8[n, …]: states at the ends of round trips, the last 64 at most."""
        return self.arrivals[:, : min(int(self._noted), ARRIVALS)]

    def harvest(self) -> Harvest:
        return self._blocks[-1].harvest()

    def present(self) -> np.ndarray:
        return self._blocks[-1].present()

    def arrays(self) -> dict[str, np.ndarray]:
        found = {"stream": self._stream, "parity": self._parity, "rejected": self.rejected, "trips": self.trips}
        found |= {"replica": self._replica, "heading": self._heading}
        found |= {"arrivals": self.arrivals, "noted": self._noted}
        for k, block in enumerate(self._blocks):
            found |= prefixed(f"level{k}", block.arrays())
        return found


def _held(block: Block) -> np.ndarray:
    """uint8[n, lanes]: the states of a block themselves, no copy."""
    held = getattr(block, "held", None)
    return block.state if held is None else held


def scattered(engine: TemperingEngine, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Starts for a level below the model's, where every state is possible: uniform, and each chain's its own. With the
    starts of other chains they would all hold one mixture of regions, and forget it only when every state has been to
    the top of the ladder and back; no look at the chains shows that."""
    out = starts.copy()
    out[:, engine.free] = rng.integers(engine.cards[engine.free], size=(len(starts), len(engine.free)))
    return out


# --- the ladder ----------------------------------------------------------------------------------------------------


def ladder(model: FactorGraph, over: GraphSampler, slots: Slots) -> tuple[float, ...]:
    """Levels from 0 to 1 between which exchanges are rejected equally often, as far as short runs can tell."""
    levels, states = annealed(model, over, slots)
    orders = over.orders(model.free, np.random.SeedSequence(1))
    for sweeps in ROUNDS:
        engine = build(model, over, slots, levels)
        block = engine.block(states.astype(np.uint8), np.random.SeedSequence(2).spawn(1), False, False)
        block.run(orders.next(sweeps), 0)
        measured = engine._ladder([block])
        levels = tuple(placed(measured.levels, measured.rejection, level_count(measured.rejection)).tolist())
        states = (block.state[: model.n, :PILOTS] & np.uint8(block.mask)).T.astype(np.int64)
    return levels


def annealed(model: FactorGraph, over: GraphSampler, slots: Slots) -> tuple[tuple[float, ...], np.ndarray]:
    """(levels, legal states): each step such that reweighting to it leaves half of the annealed chains effective."""
    from definetti.samplers.kernels.graph import tempering as kernels

    rng = np.random.default_rng(0)
    parts = all_parts(model)
    seeds = np.random.SeedSequence(0)
    orders = over.orders(model.free, seeds.spawn(1)[0])
    states = np.tile(np.where(model.evidence == FREE, 0, model.evidence), (PILOTS, 1))
    states[:, model.free] = rng.integers(model.cards[model.free], size=(PILOTS, len(model.free)))
    levels = [0.0]
    while levels[-1] < 1.0:
        soft, broken = np.zeros(PILOTS), np.zeros(PILOTS, dtype=np.int64)
        kernels.weigh(parts, np.ascontiguousarray(states.T.astype(np.uint8)), np.uint8(255), PILOTS, soft, broken)
        level = _next_level(levels[-1], soft, broken)
        levels.append(level)
        if len(levels) > MOST_LEVELS:
            what, cure = "the number of levels of the ladder", "use another sampler"
            raise TooLarge(what, len(levels), MOST_LEVELS, cure, at_least=True)
        states = states[rng.choice(PILOTS, PILOTS, p=_shares(levels[-2], level, soft, broken))]
        if level >= 1.0:
            break
        block = over.engine(softened(model, level), slots).block(states.astype(np.uint8), seeds.spawn(1), False, False)
        block.run(orders.next(PILOT_SWEEPS), 0)
        states = (block.state[: model.n, :PILOTS] & np.uint8(block.mask)).T.astype(np.int64)
    return tuple(levels), states


def _shares(now: float, then: float, soft: np.ndarray, broken: np.ndarray) -> np.ndarray:
    """The weights, adding up to 1, that carry states from one level to another."""
    more = penalty(then) - penalty(now)
    log = (then - now) * soft - np.where(broken > 0, more * np.maximum(broken, 1), 0.0)
    weight = np.exp(log - log.max()) if np.isfinite(log.max()) else np.zeros(len(log))
    return weight / max(weight.sum(), 1e-300)


def _next_level(now: float, soft: np.ndarray, broken: np.ndarray) -> float:
    def bearable(level: float) -> bool:
        share = _shares(now, level, soft, broken)
        return share.sum() > 0.5 and 1.0 / (share**2).sum() >= SHARE * len(share)

    if bearable(1.0):
        return 1.0
    # Between levels and 1 the distance to 1 shrinks by factors: the penalty grows like its logarithm.
    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bearable(1.0 - (1.0 - now) * np.exp(-middle)) else (low, middle)
    return 1.0 - (1.0 - now) * float(np.exp(-max(low, 1e-3)))
