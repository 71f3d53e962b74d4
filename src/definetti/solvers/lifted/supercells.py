"""Supercells: cells that can be counted together although they differ to others.

If the table of pairs between two sets of cells has rank one, r(s,t) = c · a(s) · b(t), then given how many
constants are in each set every constant chooses its cell within its set by itself: the sum over cells is
closed. A partition of the cells all of whose blocks have rank one is found greedily; only the sets are counted.
(The two signs of a Skolem predicate are such a pair where atoms of both directions are independent.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np

from definetti.solvers.lifted.cells import same
from definetti.solvers.lifted.tables import is_zero

SHUFFLES = 12  #: orders in which cells are tried

Cells = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Unit:
    """Constants of one group with the same field: exchangeable."""

    group: int
    size: int
    field: np.ndarray  # object[merged cell]: the weight of each
    possible: np.ndarray  # bool[merged cell]: with signs a possible one's weight may vanish


@dataclass(frozen=True, eq=False)
class Problem:
    """Units in groups; the table of a pair of constants depends on their groups alone."""

    units: tuple[Unit, ...]
    cells: tuple[int, ...]  # merged cells of each group
    tables: Mapping[tuple[int, int], np.ndarray]  # object[cell, cell] by pair of groups, both orders

    @property
    def sizes(self) -> list[int]:
        """Constants in each group."""
        return [sum(u.size for u in self.units if u.group == g) for g in range(len(self.cells))]


@dataclass(frozen=True, eq=False)
class Blocks:
    """For each group its supercells; for each pair of groups and supercells the common factor and that of each cell."""

    sets: tuple[tuple[Cells, ...], ...]  # by group
    base: Mapping[tuple[int, int, int, int], Any]  # (g, U, h, V)
    factor: Mapping[tuple[int, int, int, int], tuple[Any, ...]]  # (g, U, h, V) → of each cell of U


def find_blocks(problem: Problem, merge: bool = True) -> Blocks:
    """The partition with the fewest terms among a few that greedy merging finds."""
    singles = [tuple((s,) for s in range(count)) for count in problem.cells]
    best, least = singles, term_count(problem, singles)
    rng = np.random.default_rng(0)
    for attempt in range(SHUFFLES if merge and max(problem.cells) > 1 else 0):
        found = _greedy(problem, singles, rng if attempt else None)
        if term_count(problem, found) < least:
            best, least = found, term_count(problem, found)
        if attempt == 0 and sum(problem.cells) <= 3:
            break
    return _factors(problem, best)


def term_count(problem: Problem, sets: Sequence[Sequence[Cells]]) -> int:
    """How many vectors of counts there are."""
    return prod(comb(u.size + k - 1, k - 1) for u in problem.units for k in [max(1, len(allowed(u, sets[u.group])))])


def allowed(unit: Unit, sets: Sequence[Cells]) -> list[int]:
    """The supercells that a unit's constants may be in."""
    return [k for k, cells in enumerate(sets) if unit.possible[list(cells)].any()]


def _greedy(problem: Problem, sets: Sequence[tuple[Cells, ...]], rng: np.random.Generator | None) -> list:
    current = [list(some) for some in sets]
    for g in range(len(current)):
        pairs = list(combinations(range(problem.cells[g]), 2))
        if rng is not None:
            pairs = [pairs[k] for k in rng.permutation(len(pairs))]
        for s, t in pairs:
            one = next(c for c in current[g] if s in c)
            two = next(c for c in current[g] if t in c)
            if one is two:
                continue
            trial = [c for c in current[g] if c not in (one, two)] + [tuple(sorted((*one, *two)))]
            if _fits(problem, current, g, trial):
                current[g] = trial
    return [tuple(sorted(some)) for some in current]


def _fits(problem: Problem, current: list, g: int, trial: list[Cells]) -> bool:
    new = trial[-1]
    for h in range(len(current)):
        if (g, h) in problem.tables:
            table = problem.tables[g, h]
            for other in trial if h == g else current[h]:
                if _pivot(table, new, other, g == h and new == other) is None:
                    return False
    return True


def _pivot(table: np.ndarray, rows: Cells, columns: Cells, own: bool) -> tuple[int, int] | None:
    """Where a block of rank one (or zero) is not zero; on the diagonal for a set with itself. None: higher rank."""
    filled = [(i, j) for i in rows for j in columns if not is_zero(table[i, j])]
    first = rows[0], columns[0]
    if not filled:
        return first
    places = [(i, j) for i, j in filled if i == j] if own else filled
    if not places:
        return None if len(rows) > 1 else first
    (p, q), *_ = places
    for i in rows:
        for j in columns:
            if i != p and j != q and not same(table[i, j] * table[p, q], table[i, q] * table[p, j]):
                return None
    return p, q


def _factors(problem: Problem, sets: Sequence[tuple[Cells, ...]]) -> Blocks:
    base, factor = {}, {}
    for (g, h), table in problem.tables.items():
        for u, rows in enumerate(sets[g]):
            for v, columns in enumerate(sets[h]):
                place = _block_pivot(problem, g, h, rows, columns, u == v)
                p, q = place
                c = base[g, u, h, v] = table[p, q]
                factor[g, u, h, v] = tuple(1 if is_zero(c) or i == p else table[i, q] / c for i in rows)
    return Blocks(tuple(sets), base, factor)


def _block_pivot(problem: Problem, g: int, h: int, rows: Cells, columns: Cells, equal: bool) -> tuple[int, int]:
    """The same pivot seen from both sides."""
    if g <= h:
        found = _pivot(problem.tables[g, h], rows, columns, g == h and equal)
    else:
        found = _pivot(problem.tables[h, g], columns, rows, False)
        found = None if found is None else (found[1], found[0])
    assert found is not None, "blocks have rank one"
    if g == h and not equal and rows > columns:  # within a group: seen from the smaller set
        other = _pivot(problem.tables[g, h], columns, rows, False)
        assert other is not None
        found = other[1], other[0]
    return found


def count_vectors(total: int, parts: int) -> np.ndarray:
    """int64[·, parts]: all vectors of `parts` counts with this total, built column by column."""
    rows, left = np.zeros((1, 0), np.int64), np.array([total], np.int64)
    for _ in range(parts - 1):
        reach = left + 1
        first = np.arange(int(reach.sum())) - np.repeat(np.cumsum(reach) - reach, reach)
        rows = np.concatenate([np.repeat(rows, reach, axis=0), first[:, None]], axis=1)
        left = np.repeat(left, reach) - first
    return np.concatenate([rows, left[:, None]], axis=1)
