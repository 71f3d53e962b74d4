"""Counting by vectors of counts: one term per way to spread each unit's constants over its supercells.

Z = Σ_k Π n!/Πk! · Π base^(pairs) · Π F(k)^k, where F(k) sums a supercell's cells, each with its factors to the
power of the counts. Positive weights: logarithms (`magnitudes.py`). Signs: object arrays of balls or fractions,
and no division, since F may vanish: derivatives of Z by the fields instead of shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from definetti.solvers.lifted.magnitudes import Logs, add_logs, factorials, logs_of, one, to_ball
from definetti.solvers.lifted.supercells import Blocks, Problem, allowed, count_vectors
from definetti.solvers.lifted.tables import raise_to

PIECE = 128  #: terms that are multiplied at once
TINY = 1e-250  #: of the probability of a term


@dataclass(frozen=True, eq=False)
class Counted:
    """Z, and for units u, v: P(cell of a constant), P(cells of two different constants).

    Signed: `single` and `pair` are derivatives of Z by the fields (divided by the number of constants or pairs), to be
    multiplied with the fields and divided by Z.
    """

    z: Any
    single: tuple[np.ndarray, ...]
    pair: Mapping[tuple[int, int], np.ndarray]  # u <= v; (u, u) only where u has two constants
    signed: bool = False

    def joint(self, i: int, j: int) -> np.ndarray:
        return self.pair[i, j] if i <= j else self.pair[j, i].T


@dataclass(frozen=True, eq=False)
class Terms:
    """The vectors of counts of all units together."""

    problem: Problem
    blocks: Blocks

    @cached_property
    def counts(self) -> list[np.ndarray]:
        """For each unit: int64[term, supercell]."""
        each = []
        for unit in self.problem.units:
            sets = self.blocks.sets[unit.group]
            inside = allowed(unit, sets)
            full = np.zeros((0, len(sets)), np.int64)
            if inside:
                rows = count_vectors(unit.size, len(inside))
                full = np.zeros((len(rows), len(sets)), np.int64)
                full[:, inside] = rows
            each.append(full)
        shape = tuple(len(rows) for rows in each)
        places = np.unravel_index(np.arange(int(np.prod(shape, dtype=np.int64))), shape)
        return [rows[place] for rows, place in zip(each, places, strict=True)]

    @cached_property
    def totals(self) -> list[np.ndarray]:
        """For each group: int64[term, supercell]."""
        out = []
        for g, sets in enumerate(self.blocks.sets):
            mine = [k for u, k in zip(self.problem.units, self.counts, strict=True) if u.group == g]
            out.append(sum(mine, np.zeros((len(self.counts[0]), len(sets)), np.int64)))
        return out

    def pairs(self) -> list[tuple[Any, np.ndarray]]:
        """(common factor, number of such pairs in each term)."""
        out = []
        for (g, u, h, v), base in self.blocks.base.items():
            if (g, u) == (h, v):
                out.append((base, self.totals[g][:, u] * (self.totals[g][:, u] - 1) // 2))
            elif (g, u) < (h, v):
                out.append((base, self.totals[g][:, u] * self.totals[h][:, v]))
        return [(base, count) for base, count in out if base != 1]

    def powers(self, g: int, u: int, cell: int) -> list[tuple[Any, np.ndarray]]:
        """(factor of a cell of supercell u, to which power) in the eyes of one constant in u."""
        out = []
        for (a, b, h, v), values in self.blocks.factor.items():
            if (a, b) == (g, u) and values[cell] != 1:
                out.append((values[cell], np.maximum(self.totals[h][:, v] - ((h, v) == (g, u)), 0)))
        return out


# --- positive weights ----------------------------------------------------------------------------------------


def count_positive(problem: Problem, blocks: Blocks) -> Counted:
    terms = Terms(problem, blocks)
    log, shares = _log_terms(terms)
    top = log.top
    weight = log.relative(top)
    total = float(weight.sum())
    if total == 0:
        return Counted(to_ball(0, 0.0), (), {})
    p = weight / total
    return Counted(to_ball(top, total), *_expectations(terms, shares, p))


def _log_terms(terms: Terms) -> tuple[Logs, list[list[np.ndarray]]]:
    """The logarithm of every term, and for each unit the share of each cell in its supercell: (term or 1)[cell]."""
    problem, count = terms.problem, len(terms.counts[0])
    log = one((count,))
    for base, pairs in terms.pairs():
        log = log + logs_of(base).times(pairs)
    shares = []
    factor = factorials(max(u.size for u in problem.units))
    for unit, k in zip(problem.units, terms.counts, strict=True):
        log = log + factor[unit.size]
        mine: list[np.ndarray] = [np.zeros(1)] * len(unit.field)
        for u, cells in enumerate(terms.blocks.sets[unit.group]):
            inside = []
            for place, s in enumerate(cells):
                found = logs_of(unit.field[s])
                for value, power in terms.powers(unit.group, u, place):
                    found = found + logs_of(value).times(power)
                inside.append(Logs(*(np.atleast_1d(x) for x in (found.high, found.low, found.some))))
            total, parts = add_logs(inside)
            log = log + total.times(k[:, u]) + factor[k[:, u]].times(-1)
            for s, part in zip(cells, parts, strict=True):
                mine[s] = part
        shares.append(mine)
    return log, shares


def _expectations(terms: Terms, shares: list[list[np.ndarray]], p: np.ndarray) -> tuple:
    problem, where = terms.problem, [_set_of(terms.blocks, g) for g in range(len(terms.problem.cells))]
    kept = np.flatnonzero(p > TINY)  # what is far smaller is slow to multiply and changes nothing
    p, vectors = p[kept], [k[kept] for k in terms.counts]
    shares = [[x if len(x) == 1 else x[kept] for x in mine] for mine in shares]
    counts = [
        np.stack([k[:, where[u.group][s]] * mine[s] for s in range(len(mine))], 1)
        for u, k, mine in zip(problem.units, vectors, shares, strict=True)
    ]
    columns = np.concatenate(counts, axis=1)
    first = (columns * p[:, None]).sum(axis=0)
    second = np.zeros((columns.shape[1],) * 2)  # one product for all pairs of units, in pieces that stay in one thread
    for k in range(0, len(p), PIECE):
        piece = columns[k : k + PIECE]
        second += (piece * p[k : k + PIECE, None]).T @ piece
    ends = np.cumsum([0, *(x.shape[1] for x in counts)]).tolist()
    span = [slice(*ends[i : i + 2]) for i in range(len(counts))]
    single = tuple(first[span[i]] / u.size for i, u in enumerate(problem.units))
    pair = {}
    for i, u in enumerate(problem.units):
        for j in range(i + 1, len(counts)):
            pair[i, j] = second[span[i], span[j]] / (u.size * problem.units[j].size)
        if u.size > 1:
            table = second[span[i], span[i]]
            for cells in range(len(terms.blocks.sets[u.group])):  # k (k - 1), not k² - k: no digits are lost
                inside = np.flatnonzero(where[u.group] == cells)
                k = vectors[i][:, cells]
                ways = p * k * (k - 1)
                own = np.stack([np.broadcast_to(shares[i][s], k.shape) for s in inside], 1)
                places = range(len(inside))
                block = [[float((own[:, a] * own[:, b] * ways).sum()) for b in places] for a in places]
                table[np.ix_(inside, inside)] = block
            pair[i, i] = table / (u.size * (u.size - 1))
    return single, pair


def _set_of(blocks: Blocks, g: int) -> np.ndarray:
    cells = sum(len(c) for c in blocks.sets[g])
    out = np.zeros(cells, dtype=np.int64)
    for k, inside in enumerate(blocks.sets[g]):
        out[list(inside)] = k
    return out


# --- signs ---------------------------------------------------------------------------------------------------


def power(value: Any, counts: np.ndarray) -> np.ndarray:
    """value ** count for every count, each different power once."""
    different, back = np.unique(counts, return_inverse=True)
    table = np.empty(len(different), dtype=object)
    table[:] = [raise_to(value, int(k)) for k in different]
    return table[back.reshape(-1)]


def _each_power(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = [raise_to(x, int(k)) for x, k in zip(values, np.maximum(counts, 0), strict=True)]
    return out


def count_signed(problem: Problem, blocks: Blocks) -> Counted:
    """The same with exact or ball arithmetic; term arrays are arrays of objects."""
    terms = Terms(problem, blocks)
    weight = _multinomials(terms)
    for base, pairs in terms.pairs():
        weight = weight * power(base, pairs)
    inner, sums = _inner(terms)
    slots = [(i, u) for i, unit in enumerate(problem.units) for u in range(len(blocks.sets[unit.group]))]
    raised = {
        slot: [_each_power(sums[slot], terms.counts[slot[0]][:, slot[1]] - d) for d in range(3)] for slot in slots
    }

    def rest(*without: tuple[int, int]) -> np.ndarray:
        found = weight
        for slot in slots:
            if terms.counts[slot[0]][:, slot[1]].any():
                found = found * raised[slot][without.count(slot)]
        return found

    z = sum(rest(), 0)
    single, pair = [], {}
    for i, unit in enumerate(problem.units):
        row = np.full(len(unit.field), z * 0, dtype=object)
        for u, cells in enumerate(blocks.sets[unit.group]):
            left = rest((i, u)) * terms.counts[i][:, u]
            for s in cells:
                row[s] = np.dot(left, inner[i][s]) / unit.size
        single.append(row)
        for j in range(i, len(problem.units)):
            if i != j or unit.size > 1:
                pair[i, j] = _signed_pair(terms, rest, inner, i, j, z * 0)
    return Counted(z, tuple(single), pair, True)


def _signed_pair(terms: Terms, rest: Any, inner: Any, i: int, j: int, nothing: Any) -> np.ndarray:
    a, b = terms.problem.units[i], terms.problem.units[j]
    table = np.full((len(a.field), len(b.field)), nothing, dtype=object)
    for u, rows in enumerate(terms.blocks.sets[a.group]):
        for v, columns in enumerate(terms.blocks.sets[b.group]):
            k, m = terms.counts[i][:, u], terms.counts[j][:, v]
            ways = k * (m - 1) if (i, u) == (j, v) else k * m
            if not ways.any():
                continue
            left = rest((i, u), (j, v)) * ways
            for s in rows:
                half = left * inner[i][s]
                for t in columns:
                    table[s, t] = np.dot(half, inner[j][t])
    return table / (a.size * (b.size - (i == j)))


def _multinomials(terms: Terms) -> np.ndarray:
    from flint import fmpz

    most = max(u.size for u in terms.problem.units)
    table = np.empty(most + 1, dtype=object)
    table[:] = [fmpz(factorial(k)) for k in range(most + 1)]
    weight = np.full(len(terms.counts[0]), fmpz(1), dtype=object)
    for unit, k in zip(terms.problem.units, terms.counts, strict=True):
        found = np.full(len(k), table[unit.size], dtype=object)
        for column in k.T:
            found = found // table[column]
        weight = weight * found
    return weight


def _inner(terms: Terms) -> tuple[list[list[np.ndarray]], dict[tuple[int, int], np.ndarray]]:
    """For each unit and cell Π factor^power (without its field), and for each unit and supercell the sum F."""
    count, inner, sums = len(terms.counts[0]), [], {}
    for i, unit in enumerate(terms.problem.units):
        mine: list[Any] = [None] * len(unit.field)
        for u, cells in enumerate(terms.blocks.sets[unit.group]):
            total: Any = None
            for place, s in enumerate(cells):
                found = np.full(count, unit.field[s] * 0 + 1, dtype=object)
                for value, counts in terms.powers(unit.group, u, place):
                    found = found * power(value, counts)
                mine[s] = found
                total = found * unit.field[s] if total is None else total + found * unit.field[s]
            sums[i, u] = total
        inner.append(mine)
    return inner, sums
