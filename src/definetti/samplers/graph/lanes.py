"""What every factor-graph engine shares: rows and slots of statistics, seeds, scan orders, blocks of lanes, and the
literals that are tracked by themselves.

A *row* is a set of variables with equal marginals (see `Symmetries.row_of`); a *slot* is a (row, value) pair. Engines
fold counts into slots; only afterwards are slots gathered into orbits of literals, so kernels know nothing of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from definetti.errors import Notice
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.samplers.protocol import prefixed

if TYPE_CHECKING:
    from definetti.samplers.graph.fields import FieldsBlock

MOST_PLANES = 40  # bits of a count of sweeps


@dataclass(frozen=True, eq=False)
class Slots:
    """Where each variable's values are counted: slot `start[row_of[i]] + v`."""

    row_of: np.ndarray  # int32[n], -1 for observed variables
    cards: np.ndarray  # int64[R]: number of values of each row's variables
    sizes: np.ndarray  # int64[R]: number of variables

    @cached_property
    def start(self) -> np.ndarray:
        return frozen(np.concatenate([[0], np.cumsum(self.cards)]), np.int64)

    @property
    def count(self) -> int:
        return int(self.start[-1])

    @cached_property
    def size_of_slot(self) -> np.ndarray:
        return frozen(np.repeat(self.sizes, self.cards), np.int64)


def slots_of(model: FactorGraph, row_of: np.ndarray) -> Slots:
    """The slots of a partition of the free variables into rows."""
    rows = row_of[model.free]
    count = int(rows.max()) + 1 if len(rows) else 0
    cards = np.zeros(count, dtype=np.int64)
    cards[rows] = model.cards[model.free]
    return Slots(frozen(row_of, np.int32), frozen(cards), frozen(np.bincount(rows, minlength=count), np.int64))


@dataclass(frozen=True, eq=False)
class Harvest:
    """Sums since the last harvest, float64[slots, lanes]; `visits` counts updates per slot (over the row's
    variables)."""

    final: np.ndarray  # values at sweeps' ends
    drawn: np.ndarray | None  # values at the updates (equal to `final` unless the scan is random)
    conditional: np.ndarray | None
    visits: np.ndarray  # int64[slots]


Seeds = Sequence[np.random.SeedSequence]


class Block(Protocol):
    """A block of lanes: chains that one thread advances together. It changes in place; everything else is frozen."""

    lanes: int

    @property
    def state(self) -> np.ndarray: ...

    @property
    def mask(self) -> int:
        """`state & mask` is the value (other bits are the engine's own)."""
        ...

    def run(self, orders: np.ndarray, folded: int) -> None:
        """One sweep per row of `orders`; `folded`: 0 nothing, 1 F only, 2 F and G."""
        ...

    def harvest(self) -> Harvest:
        """The sums since the last call, which are then cleared."""
        ...

    def present(self) -> np.ndarray:
        """float64[slots, lanes]: the values as they stand, counted as a harvest's `final` counts them."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """What the block's future depends on, changed in place (`Sampling.state`)."""
        ...


class Engine:
    """A compiled model that can make blocks."""

    name: str
    width: int  # how many chains share a seed; a block has as many lanes, or a few times as many
    copies: int = 1  # states that are drawn for one chain: the levels of a ladder
    together: int  # how many times as many; beyond 1, what a lane draws may not depend on the other lanes of its block
    look_every: int = 5  # sweeps, so that a look at the full conditionals adds little to the cost of sampling

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> Block:
        """A block for the chains starting at starts[lane, n], with a seed for every `width` of them; without
        `conditionals` it need not be able to fold G."""
        raise NotImplementedError

    def memory(self, chains: int, conditionals: bool) -> int:
        """Bytes that the blocks of so many chains take."""
        raise NotImplementedError

    def notices(self, blocks: Sequence[Any]) -> list[Notice]:
        """What leaves the draws of its blocks in doubt."""
        return []

    def report(self, blocks: Sequence[Any]) -> dict[str, Any]:
        """What it adds to `run` of the answer."""
        return {}


def count_values(state: np.ndarray, slots: Slots) -> np.ndarray:
    """float64[slots, lanes]: what `Block.present` says of values that are bytes, state[n, lanes]."""
    free = np.flatnonzero(slots.row_of >= 0)
    slot = slots.start[slots.row_of[free]][:, None] + state[free]
    lanes = state.shape[1]
    counts = np.bincount((slot * lanes + np.arange(lanes)).ravel(), minlength=slots.count * lanes)
    return counts.reshape(slots.count, lanes).astype(np.float64)


class Sums(NamedTuple):
    """Folded sums of one block of lanes, float64[slots, lanes]."""

    final: np.ndarray
    conditional: np.ndarray
    visits: np.ndarray  # int64[slots]


class ByteBlock:
    """A block of lanes with one byte per variable and chain, of a scan that visits once."""

    mask = 255

    def __init__(self, slots: Slots, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        self.lanes = len(starts)
        self.state = np.ascontiguousarray(starts.T, dtype=np.uint8)
        self._slots, self._streams = slots, words(seed, (4, self.lanes))
        shape = (slots.count, self.lanes)
        self._sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(slots.count, np.int64))

    def harvest(self) -> Harvest:
        final, conditional, visits = (part.copy() for part in self._sums)
        for part in self._sums:
            part[...] = 0
        return Harvest(final, None, conditional, visits)

    def present(self) -> np.ndarray:
        return count_values(self.state, self._slots)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"state": self.state, "streams": self._streams} | prefixed("sums", self._sums._asdict())


class CountingBlock:
    """A block of lanes with one byte per variable and chain, whose kernel counts values as that of tables does."""

    mask = 255

    def __init__(
        self, engine: Any, kernels: Any, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool,
        multiple: int = 1,
    ) -> None:  # fmt: skip
        self._kernels, self._engine = kernels, engine
        self._visits_too, self._conditionals = visits_too, conditionals
        self.lanes = len(starts)
        self.state = np.zeros((starts.shape[1], -(-self.lanes // multiple) * multiple), np.uint8)
        self.state[:, : self.lanes] = starts.T
        slots = engine.slots
        free = np.flatnonzero(slots.row_of >= 0)
        first = np.full(len(engine.names), -1, dtype=np.int64)
        first[free] = slots.start[slots.row_of[free]]
        self._cells = kernels.Cells(first, free.astype(np.int32), slots.start.copy())
        cuts = [*range(0, engine.width * len(seeds), engine.width), self.lanes]
        streams = [words(seed, (4, cuts[k + 1] - cuts[k])) for k, seed in enumerate(seeds)]
        self._streams = np.concatenate(streams, axis=1)
        self._drawn = self._no_counts(slots.count)
        self._final = self._no_counts(slots.count if visits_too else 0)
        self._conditional = self._no_conditional()

    def _no_conditional(self) -> np.ndarray:
        return np.zeros((self._engine.slots.count if self._conditionals else 0, self.lanes))

    def _no_counts(self, slots: int) -> Any:
        wide = (slots, self.state.shape[1])
        none = (np.zeros(slots, np.int64) for _ in range(2))
        return self._kernels.Counts(*none, np.zeros(wide, np.uint8), np.zeros(wide, np.int64))

    def harvest(self) -> Harvest:
        visits = np.repeat(self._drawn.visits[self._engine.slots.start[:-1]], self._engine.slots.cards)
        drawn = self._take(self._drawn)
        final = self._take(self._final) if self._visits_too else drawn
        conditional, self._conditional = self._by_slot(self._conditional, visits), self._no_conditional()
        return Harvest(final, drawn if self._visits_too else None, conditional if self._conditionals else None, visits)

    def _by_slot(self, conditional: np.ndarray, visits: np.ndarray) -> np.ndarray:
        """float64[slots, lanes]: sums of full conditionals as the kernel keeps them."""
        return conditional

    def present(self) -> np.ndarray:
        counts = self._no_counts(self._engine.slots.count)
        self._kernels.fold(self.state, self._engine.model.card, self._cells, counts)
        return self._take(counts)

    def arrays(self) -> dict[str, np.ndarray]:
        own = {"state": self.state, "streams": self._streams, "conditional": self._conditional}
        return own | prefixed("drawn", self._drawn._asdict()) | prefixed("final", self._final._asdict())

    def _take(self, counts: Any) -> np.ndarray:
        """Counts by slot and lane; they are cleared."""
        out = np.empty((self._engine.slots.count, self.lanes))
        self._kernels.collect(self._cells.row, counts, out)
        return out


def words(seed: np.random.SeedSequence, shape: tuple[int, ...], dtype: Any = np.uint64) -> np.ndarray:
    """Seed words for streams; xoshiro must not start at all zeros, which has probability 2^-128 here."""
    size = int(np.prod(shape))
    return seed.generate_state(size, dtype).reshape(shape)


class Orders:
    """The stream of scan orders. `orbit_of[i]` is the orbit of variable i; without it all sites are taken for one."""

    def __init__(self, scan: str, sites: np.ndarray, stream: np.ndarray, orbit_of: np.ndarray | None = None) -> None:
        self._scan, self.stream = scan, stream  # changed in place
        orbit = np.zeros(len(sites), np.int64) if orbit_of is None else orbit_of[sites]
        _, first, place, sizes = np.unique(orbit, return_index=True, return_inverse=True, return_counts=True)
        by_orbit = np.argsort(first[place.ravel()], kind="stable")  # orbits in the order of their first sites
        if scan == "symmetric":
            sites = sites[by_orbit]
        self._sites = np.ascontiguousarray(sites, dtype=np.int32)
        self._starts = np.concatenate([[0], np.cumsum(sizes[np.argsort(first)])]).astype(np.int64)

    def next(self, sweeps: int) -> np.ndarray:
        """int32[sweeps, sites]: the sites to update, one row per sweep."""
        from definetti.samplers.kernels import orders as kernels

        if self._scan == "fixed":
            return np.broadcast_to(self._sites, (sweeps, len(self._sites))).copy()
        rows = np.empty((sweeps, len(self._sites)), dtype=np.int32)
        if self._scan == "symmetric":
            kernels.shuffled(self.stream, self._sites, self._starts, rows)
        else:
            kernels.with_replacement(self.stream, self._sites, rows)
        return rows


# --- tracked literals -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Members:
    """The literals to track."""

    variable: np.ndarray  # int32[M]
    value: np.ndarray  # uint8[M]
    statistic: np.ndarray  # int64[M]: whose orbit a member belongs to


class Follower:
    """Counts the members that hold in the lanes of a block, sweep after sweep."""

    def __init__(self, block: Block, members: Members) -> None:
        self._block, self._members = block, members
        self._hits = np.zeros((len(members.variable), block.lanes), np.int64)

    def look(self) -> None:
        values = self._block.state.take(self._members.variable, axis=0)[:, : self._block.lanes] & self._block.mask
        self._hits += values == self._members.value[:, None]

    def arrays(self) -> dict[str, np.ndarray]:
        return {"hits": self._hits}

    def take(self) -> np.ndarray:
        """int64[M, lanes]: hits since the last call."""
        taken, self._hits = self._hits, np.zeros_like(self._hits)
        return taken


class BitFollower:
    """The same where a word holds the values of 64 lanes: ones are counted in bit planes, at a fraction of the cost."""

    def __init__(self, block: FieldsBlock, members: Members) -> None:
        from definetti.samplers.kernels import bit_counters as kernels

        self._kernels, self._block, self._members = kernels, block, members
        self._looks = np.array(0)
        count = len(members.variable)
        self._counter = np.arange(count, dtype=np.int32)
        self._planes = np.zeros((MOST_PLANES, count, block.words.shape[1]), np.uint64)

    def look(self) -> None:
        self._kernels.count_up(self._block.words, self._members.variable, self._counter, self._planes)
        self._looks += 1

    def arrays(self) -> dict[str, np.ndarray]:
        return {"planes": self._planes, "looks": self._looks}

    def take(self) -> np.ndarray:
        ones = np.zeros((len(self._counter), 64 * self._planes.shape[2]), np.int64)
        looks = int(self._looks)
        self._kernels.read_all(self._planes, looks, ones)
        zero = self._members.value[:, None] == 0
        np.subtract(looks, ones, out=ones, where=zero)
        self._looks[...] = 0
        return ones[:, : self._block.lanes]


def follower(block: Any, members: Members) -> Follower | BitFollower:
    return BitFollower(block, members) if getattr(block, "wide", False) else Follower(block, members)
