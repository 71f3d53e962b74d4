"""The engine for pairwise models of binary variables with few possible local fields each: Ising models, spin glasses.

The neighbours of a variable that act on it alike are counted together; the counts of the kinds, in mixed radix, are the
*code* of the local field. A variable has one threshold per code (`kernels/graph/fields.py` says how they are used).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import Engine, Harvest, Seeds, Slots, words
from definetti.samplers.protocol import prefixed

CODES = 16  # at most so many local fields per variable
WHOLE = 1 << 48
WORDS = 8  # as in kernels/graph/fields.py
NARROW = 6  # up to so many chains are advanced one by one


@dataclass(frozen=True, eq=False)
class FieldsEngine(Engine):
    model: Any  # kernels.fields.Fields
    chance: np.ndarray  # float64[T, CODES]: P(value 1) of code 0, then by how much that of the other codes differs
    cells: Any  # kernels.fields.Cells
    slots: Slots
    n: int
    name: str = "fields"
    width: int = 64 * WORDS
    together: int = 1

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> FieldsBlock:
        return FieldsBlock(self, starts, seeds[0], visits_too, conditionals)

    def memory(self, chains: int, conditionals: bool) -> int:
        """A cell is at most a variable; it counts ones, and the codes it met, in about 24 bits each."""
        lanes = chains if chains <= NARROW else -(-chains // 64) * 64
        cells = len(self.cells.table)
        rows = int(self.model.codes.max(initial=1)) if conditionals else 1
        return lanes * (self.n + (3 if chains > NARROW else 8) * cells * rows + 32 * self.slots.count)


def build(model: FactorGraph, slots: Slots) -> FieldsEngine | None:
    """Compile a simplified model; None if it is not pairwise and binary with at most CODES local fields a variable."""
    from definetti.samplers.kernels.graph import fields as kernels

    arity = model.arity
    if (model.cards[model.free] != 2).any() or (arity > 2).any():
        return None
    edges = _edges(model)
    made = _tables(model, edges)
    if made is None:
        return None
    table, coefficients, codes, odds = made
    probability, threshold = _thresholds(odds)
    near, neighbour, coefficient = _neighbours(model.n, edges, table, coefficients)
    top = np.minimum(threshold >> np.uint64(kernels.FURTHER), np.uint64(2**kernels.BITS - 1))
    rest = threshold - (top << np.uint64(kernels.FURTHER))
    flip = _flips(top, kernels.BITS, codes)
    compiled = kernels.Fields(near, neighbour, coefficient, table, codes, flip, rest, threshold)
    probability[:, 1:] -= probability[:, :1]
    cells = _cells(kernels, slots, table)
    near[:, 7] = np.maximum(cells.of, 0)  # observed variables are never met
    return FieldsEngine(compiled, probability, cells, slots, model.n)


def _flips(top: np.ndarray, bits_of_top: int, codes: np.ndarray) -> np.ndarray:
    """uint64[T, CODES + 4, BITS]: the top bits of code 0's threshold as words, then where the other codes' differ."""
    bits = (top[:, :, None] >> np.arange(bits_of_top - 1, -1, -1).astype(np.uint64)) & np.uint64(1) != 0
    bits[:, 1:] ^= bits[:, :1]
    bits[np.arange(CODES) >= codes[:, None]] = False
    flip = np.zeros((len(codes), CODES + 4, bits_of_top), dtype=np.uint64)
    flip[:, :CODES][bits] = np.uint64(2**64 - 1)
    return flip


def _edges(model: FactorGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Both directions of every pair factor: site, neighbour, kind, and the kinds as rows (T00, T01, T10, T11).

    In a row the site's value comes first. Two neighbours of one kind act on the site alike.
    """
    pairs = np.flatnonzero(model.arity == 2)
    first = model.scope[model.scope_start[pairs]]
    second = model.scope[model.scope_start[pairs] + 1]
    entries = model.tables[model.table_start[model.table_of[pairs]][:, None] + np.arange(4)].reshape(-1, 4)
    both = np.concatenate([entries, entries[:, [0, 2, 1, 3]]])
    kinds, kind = np.unique(both, axis=0, return_inverse=True)
    site, neighbour = np.concatenate([first, second]), np.concatenate([second, first])
    order = np.lexsort((neighbour, kind.ravel(), site))
    return site[order], neighbour[order], kind.ravel()[order], kinds


def _tables(
    model: FactorGraph, edges: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The table of each site; per table the coefficients of its neighbours, its number of codes, the log odds of each.

    Sites with equal unary weights and the same kinds of neighbours share a table. None past CODES codes.
    """
    site, _, kind, kinds = edges
    unary = _unary(model)
    degree = np.bincount(site, minlength=model.n)
    first_edge = np.concatenate([[0], np.cumsum(degree)])
    table = np.zeros(model.n, dtype=np.int32)
    coefficients, codes, odds = [np.zeros((0, CODES))], [np.zeros(0, np.int64)], [np.zeros((0, CODES))]
    count = 0
    for d in np.unique(degree[model.free]).tolist():
        sites = model.free[degree[model.free] == d]
        if d >= CODES:
            return None
        around = kind[first_edge[sites][:, None] + np.arange(d)].reshape(len(sites), d)
        rows, which = np.unique(np.column_stack([unary[sites], around]), axis=0, return_inverse=True)
        table[sites] = which.ravel() + count
        count += len(rows)
        for part in (coefficients, odds):
            part.append(np.zeros((len(rows), CODES)))
        codes.append(np.ones(len(rows), np.int64))
        fresh = np.diff(rows[:, 2:], axis=1) != 0  # kinds ascend: where a new one begins
        for pattern, mine in _alike(fresh):
            counts = np.diff(np.flatnonzero(np.concatenate([[True], pattern, [True]]))) if d else np.zeros(0, np.int64)
            radix = np.concatenate([[1], np.cumprod(counts + 1)]).astype(np.int64)
            if radix[-1] > CODES:
                return None
            first = np.cumsum(counts) - counts
            coefficients[-1][mine, :d] = np.repeat(radix[:-1], counts)
            codes[-1][mine] = radix[-1]
            odds[-1][mine, : radix[-1]] = _log_odds(
                rows[mine, :2], kinds[rows[mine][:, 2 + first].astype(np.int64)], counts, radix
            )
    return table, np.concatenate(coefficients), np.concatenate(codes), np.concatenate(odds)


def _unary(model: FactorGraph) -> np.ndarray:
    """float64[n, 2]: log weights of the variables' own factors."""
    own = np.flatnonzero(model.arity == 1)
    out = np.zeros((model.n, 2))
    place = model.table_start[model.table_of[own]][:, None] + np.arange(2)
    np.add.at(out, model.scope[model.scope_start[own]], model.tables[place])
    return out


def _alike(rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(a row of bits, which rows are equal to it) for every different row."""
    number = rows @ (1 << np.arange(rows.shape[1]))
    _, first, which = np.unique(number, return_index=True, return_inverse=True)
    return [(rows[f], np.flatnonzero(which.ravel() == k)) for k, f in enumerate(first.tolist())]


def _log_odds(unary: np.ndarray, kinds: np.ndarray, counts: np.ndarray, radix: np.ndarray) -> np.ndarray:
    """float64[T, codes]: log P(value 1) / P(value 0), from unary[T, 2] and the neighbours' tables kinds[T, kind, 4].

    A code both of whose values are impossible is never met: starts are legal, and a legal state's value is possible.
    """
    ones = (np.arange(radix[-1])[:, None] // radix[:-1]) % (counts + 1)  # [codes, kind]
    sums = [_Sum(unary[:, value, None]) for value in (0, 1)]
    for k, count in enumerate(counts.tolist()):
        up = np.arange(count + 1)  # neighbours of this kind with value 1
        for value in (0, 1):
            low, high = kinds[:, k, 2 * value, None], kinds[:, k, 2 * value + 1, None]
            sums[value].add(_Sum(_times(count - up, low)), ones[:, k])
            sums[value].add(_Sum(_times(up, high)), ones[:, k])
    odds = np.broadcast_to(sums[1].minus(sums[0]), (len(unary), len(ones))).copy()
    never = [np.broadcast_to(part.never, odds.shape) for part in sums]
    odds[never[0] & ~never[1]] = np.inf
    odds[never[1] & ~never[0]] = -np.inf
    odds[never[0] & never[1]] = 0.0
    return odds


def _times(count: np.ndarray, log: np.ndarray) -> np.ndarray:
    """count · log with 0 · -inf = 0."""
    return np.where(count > 0, np.maximum(count, 1) * log, 0.0)


class _Sum:
    """Sums of logarithms as integers of 2^-56: the same in whatever order, and exactly opposite for opposite terms."""

    def __init__(self, terms: np.ndarray) -> None:
        self.never = np.isneginf(terms)
        finite = np.clip(np.where(self.never, 0.0, terms), -(2.0**50), 2.0**50)
        whole = np.trunc(finite)
        self.whole, self.part = whole.astype(np.int64), np.rint((finite - whole) * 2.0**56).astype(np.int64)

    def add(self, other: _Sum, column: np.ndarray) -> None:
        """Add the columns of another sum that `column` names."""
        self.never = self.never | other.never[:, column]
        self.whole, self.part = self.whole + other.whole[:, column], self.part + other.part[:, column]

    def minus(self, other: _Sum) -> np.ndarray:
        return (self.whole - other.whole) + (self.part - other.part) * 2.0**-56


def _thresholds(odds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(value 1) and its threshold; thresholds of p and 1 - p add up to 2^48, so that value flips are respected."""
    small = 1.0 / (1.0 + np.exp(np.minimum(np.abs(odds), 700.0)))
    cut = np.where(np.isfinite(odds), np.rint(small * WHOLE), 0.0)
    small = np.where(np.isfinite(odds), small, 0.0)
    probability = np.where(odds < 0, small, 1.0 - small)
    return probability, np.where(odds < 0, cut, WHOLE - cut).astype(np.uint64)


def _neighbours(
    n: int, edges: tuple[np.ndarray, ...], table: np.ndarray, coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`Fields.near`, and the further neighbours with their coefficients: all, unless the first four have ones."""
    site, other, _, _ = edges
    degree = np.bincount(site, minlength=n)
    position = np.arange(len(site)) - (np.cumsum(degree) - degree)[site]
    weight = coefficients[table[site], position].astype(np.uint8)
    unit = np.ones(n, dtype=bool)
    unit[site[(position < 4) & (weight != 1)]] = False
    first = (position < 4) & unit[site]
    near = np.full((n, 8), n, dtype=np.uint32)
    near[site[first], position[first]] = other[first]
    further = np.bincount(site[~first], minlength=n)
    near[:, 4], near[:, 6] = table, np.cumsum(further)
    near[:, 5] = near[:, 6] - further
    return near, other[~first].astype(np.int32), weight[~first]


class FieldsBlock:
    """A block of chains: a bit per variable and lane in words of 64; a byte where there are few chains."""

    mask = 1

    def __init__(
        self,
        engine: FieldsEngine,
        starts: np.ndarray,
        seed: np.random.SeedSequence,
        visits_too: bool,
        conditionals: bool,
    ) -> None:
        from definetti.samplers.kernels import bit_counters as counting
        from definetti.samplers.kernels.graph import fields as kernels

        self._kernels, self._counting, self._engine = kernels, counting, engine
        self._visits_too, self._conditionals = visits_too, conditionals
        self.lanes = len(starts)
        self._narrow = self.lanes <= NARROW
        self._state = _bytes(starts) if self._narrow else _packed(starts)
        lanes, ties = seed.spawn(2)
        self._streams = kernels.Streams(words(lanes, (4 * WORDS,)), words(ties, (4,)))
        self._single_streams = words(lanes, (self.lanes if self._narrow else 0, 4 * WORDS))
        self._ahead = np.zeros((len(self._single_streams), kernels.BITS * WORDS), np.uint64)  # random words to come
        self._used = np.full(len(self._single_streams), self._ahead.shape[1])
        self._cells = engine.cells
        self._cell = self._cells.of[self._cells.site]
        self._sizes = np.diff(self._cells.start)
        rows = int(engine.model.codes.max(initial=1)) if conditionals else 1
        self._chance = np.ascontiguousarray(engine.chance[self._cells.table, :rows])
        width = self.lanes if self._narrow else self._state.shape[1]
        self._scratch = _scratch(kernels, 0 if self._narrow else rows, width)
        self._drawn = _counts(kernels, len(self._cells.table), rows, width, self._narrow)
        self._final = _counts(kernels, len(self._cells.table) if visits_too else 0, 1, width, self._narrow)

    @property
    def state(self) -> np.ndarray:
        """uint8[n + 1, width]: the values, and a last row of zeros; a copy."""
        return self._state.T.copy() if self._narrow else _unpacked(self._state)

    @property
    def wide(self) -> bool:
        return not self._narrow

    @property
    def words(self) -> np.ndarray:
        """uint64[n + 1, words]: the same of a wide block, a bit per lane; not a copy."""
        return self._state

    @property
    def held(self) -> np.ndarray:
        """uint8[n + 1, lanes]: the same of a narrow block; not a copy."""
        return self._state.T

    def run(self, orders: np.ndarray, folded: int) -> None:
        folded = min(folded, 2 if self._conditionals else 1)
        counts = (self._cells, self._drawn, self._final, folded, self._visits_too)
        model, kernels = self._engine.model, self._kernels
        if self._narrow:
            ahead = (self._single_streams, self._ahead, self._used)
            kernels.run_narrow_sweeps(model, self._state, orders, *ahead, *counts)
        else:
            kernels.run_sweeps(model, self._state, orders, self._streams, self._scratch, *counts)

    def harvest(self) -> Harvest:
        drawn, conditional, visits = self._take(self._drawn, self._conditionals)
        if not self._visits_too:
            return Harvest(drawn, None, conditional, visits)
        return Harvest(self._take(self._final, False)[0], drawn, conditional, visits)

    def present(self) -> np.ndarray:
        site, cell, sizes = self._cells.site, self._cell, self._sizes
        if self._narrow:
            counts = np.zeros((self.lanes, len(sizes), 2), np.int64)
            for lane, values in enumerate(self._state):
                counts[lane] = np.bincount(2 * cell + values[site], minlength=2 * len(sizes)).reshape(-1, 2)
            return self._collected(counts, sizes, False)[0]
        planes = np.zeros((int(sizes.max(initial=0)).bit_length(), len(sizes), self._state.shape[1]), np.uint64)
        self._counting.count_up(self._state, site, cell, planes)
        return self._collected(planes, sizes, False)[0]

    def arrays(self) -> dict[str, np.ndarray]:
        own = {"state": self._state, "single": self._single_streams, "ahead": self._ahead, "used": self._used}
        parts = {"streams": self._streams, "drawn": self._drawn, "final": self._final}
        return own | {k: a for name, part in parts.items() for k, a in prefixed(name, part._asdict()).items()}

    def _take(self, counts: Any, conditional: bool) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Sums of values and of conditionals by slot, and visits; the counts are cleared."""
        if self._narrow:
            counts.visits[:] = counts.single[0].sum(axis=1)
        else:
            self._kernels.carry_all(counts, self._scratch.carry[: counts.low.shape[2]])
        ones, given = self._collected(counts.single if self._narrow else counts.high, counts.visits, conditional)
        rows = np.bincount(self._cells.row, weights=counts.visits, minlength=len(self._engine.slots.cards))
        counts.visits[:] = 0
        return ones, given if conditional else None, np.repeat(rows.astype(np.int64), 2)

    def _collected(self, counts: np.ndarray, visits: np.ndarray, conditional: bool) -> tuple[np.ndarray, np.ndarray]:
        """float64[slots, lanes] of values and of conditionals (empty without them); the counts are cleared."""
        slots = self._engine.slots.count
        ones, given = np.empty((slots, self.lanes)), np.empty((slots if conditional else 0, self.lanes))
        where = (self._cells.slot + 1, self._chance, ones, given)
        if self._narrow:
            self._counting.collect_narrow(counts, *where)
        else:
            self._counting.collect(counts, visits, *where)
        return ones, given


def _bytes(starts: np.ndarray) -> np.ndarray:
    """uint8[lanes, n + 1] from starts[lanes, n]: the last column, which stands for absent neighbours, is zero."""
    return np.concatenate([starts, np.zeros((len(starts), 1))], axis=1).astype(np.uint8)


def _packed(starts: np.ndarray) -> np.ndarray:
    """uint64[n + 1, words]. Lanes of padding repeat the first chain's start: any legal state will do."""
    width = -(-len(starts) // 64) * 64
    lanes = np.concatenate([starts, np.repeat(starts[:1], width - len(starts), axis=0)])
    packed = np.packbits(_bytes(lanes).T, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").astype(np.uint64)


def _unpacked(state: np.ndarray) -> np.ndarray:
    """uint8[n + 1, 64 · words]."""
    return np.unpackbits(state.astype("<u8").view(np.uint8), axis=1, bitorder="little")


def _scratch(kernels: Any, rows: int, words: int) -> Any:
    fixed = (np.zeros(count * WORDS, np.uint64) for count in (CODES + 4, kernels.BITS, kernels.BITS, 1))
    return kernels.Scratch(*fixed, np.zeros((9, rows * words), np.uint64), np.zeros(rows * words, np.uint64))


def _cells(kernels: Any, slots: Slots, table: np.ndarray) -> Any:
    """Cells: variables of one row that share a table of thresholds."""
    rows = slots.row_of.astype(np.int64)
    free = np.flatnonzero(rows >= 0)
    tables = int(table.max(initial=0)) + 1
    distinct, cell = np.unique(rows[free] * tables + table[free], return_inverse=True)
    of = np.full(len(rows), -1, dtype=np.int32)
    of[free] = cell.ravel()
    by_cell = free[np.argsort(cell.ravel(), kind="stable")].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(cell.ravel(), minlength=len(distinct)))]).astype(np.int64)
    row = distinct // tables
    return kernels.Cells(by_cell, start, of, (distinct % tables).astype(np.int32), row, slots.start[row])


def _counts(kernels: Any, cells: int, rows: int, width: int, narrow: bool) -> Any:
    lanes, words_met = (width, 0) if narrow else (0, rows * width)
    return kernels.Counts(
        visits=np.zeros(cells, np.int64),
        pending=np.zeros(cells, np.int64),
        low=np.zeros((cells, kernels.LOW, words_met), np.uint64),
        high=np.zeros((kernels.PLANES, cells, words_met), np.uint64),
        single=np.zeros((lanes, cells, 2 * rows), np.int64),
    )
