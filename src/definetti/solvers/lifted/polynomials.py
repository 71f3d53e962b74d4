"""Counting with a different field on every constant: generating polynomials (elementary symmetric ones for two
cells).

If the interaction of a group depends on its counts alone, Z = Σ_k W(k) · [t^k] Π_i Σ_c f_i(c) t_c. All but two
constants of every unit are put into one polynomial, which turns W into a functional on what is left; every
single and every pair marginal is then a small sum over the counts of those few. All numbers are positive, so no
digits are lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from definetti.solvers.lifted.count_vectors import Counted
from definetti.solvers.lifted.magnitudes import (
    NOTHING,
    Logs,
    Scaled,
    as_plain,
    convolve,
    correlate,
    factorials,
    logs_of,
    of_logs,
    one,
    ones,
    ratio,
    span,
)
from definetti.solvers.lifted.supercells import Problem, Unit

MOST_BOX = 3_000_000  #: entries of the box of counts
PLAIN = 900  #: powers of two that ordinary numbers may span
EAGER = 100  #: units whose pairs are computed at once; pairs of more are computed when asked for


def polynomial_cost(problem: Problem) -> float | None:
    """A rough number of operations, None where this way does not apply."""
    if len(problem.cells) != 1:
        return None
    cells, n = problem.cells[0], problem.sizes[0]
    box = (n + 1) ** (cells - 1)
    if box > MOST_BOX:
        return None
    steps = sum(min((u.size + 1) ** (cells - 1), box) for u in problem.units)
    return 3.0 * box * min(steps, box) / max(1, cells - 1)


def count_polynomial(problem: Problem) -> Counted:
    units, cells, n = problem.units, problem.cells[0], problem.sizes[0]
    weight = _weights(problem, n, cells)
    kept = [min(u.size, 2) for u in units]
    bulk = _product([_power(u, u.size - k, cells) for u, k in zip(units, kept, strict=True) if u.size > k], cells)
    functional = correlate(weight, bulk, (sum(kept) + 1,) * (cells - 1))
    fields = [of_logs(logs_of(u.field)) for u in units]
    low, high = span(functional)
    spread = high - low + sum(k * (b - a + 1) for k, (a, b) in zip(kept, map(span, fields), strict=True))
    if spread > PLAIN:
        return _Core(units, kept, cells, functional, fields).counted()
    tops = [span(f)[1] for f in fields]
    plain = [as_plain(f, top) for f, top in zip(fields, tops, strict=True)]
    shift = high + sum(k * top for k, top in zip(kept, tops, strict=True))
    return _Core(units, kept, cells, as_plain(functional, high), plain, shift).counted()


def _weights(problem: Problem, n: int, cells: int) -> Scaled:
    """W(k) on the box of the counts of all cells but the first."""
    axes = np.meshgrid(*[np.arange(n + 1)] * (cells - 1), indexing="ij", sparse=True)
    counts = [np.asarray(n - sum(axes)), *axes] if axes else [np.asarray(n)]
    shape = (n + 1,) * (cells - 1)
    total = one(shape)
    if (0, 0) in problem.tables:
        table = problem.tables[0, 0]
        for a in range(cells):
            for b in range(a, cells):
                if table[a, b] == 1:
                    continue
                pairs = counts[a] * (counts[a] - 1) // 2 if a == b else counts[a] * counts[b]
                total = total + logs_of(table[a, b]).times(np.broadcast_to(np.maximum(pairs, 0), shape))
    found = of_logs(Logs(total.high, total.low, total.some & np.broadcast_to(counts[0] >= 0, shape)))
    return found


def _power(unit: Unit, size: int, cells: int) -> Scaled:
    """(Σ_c f(c) t_c)^size in closed form."""
    shape = (size + 1,) * (cells - 1)
    axes = np.meshgrid(*[np.arange(size + 1)] * (cells - 1), indexing="ij", sparse=True)
    counts = [np.asarray(size - sum(axes)), *axes] if axes else [np.asarray(size)]
    logs, fact = logs_of(unit.field), factorials(size)
    total = fact[size] + one(shape)
    for c, k in enumerate(counts):
        k = np.broadcast_to(np.maximum(k, 0), shape)
        total = total + logs[c].times(k) + fact[k].times(-1)
    return of_logs(Logs(total.high, total.low, total.some & np.broadcast_to(counts[0] >= 0, shape)))


def _product(polys: Sequence[Scaled], cells: int) -> Scaled:
    """Smallest first: fewer steps."""
    return reduce(convolve, sorted(polys, key=lambda p: p.m.size), ones((1,) * (cells - 1)))


def _shift(x: Any, cells: Sequence[int], shape: tuple[int, ...]) -> Any:
    """The functional after constants in these cells, seen by polynomials of this shape; the first cell has no axis."""
    by = [sum(c == axis + 1 for c in cells) for axis in range(len(shape))]
    return x[tuple(slice(k, k + n) for k, n in zip(by, shape, strict=True))]


def _dot(a: Any, b: Any) -> Any:
    return (a * b).sum()


@dataclass(eq=False)
class _Core:
    """One or two constants of each unit and the functional that all others make of W."""

    units: tuple[Unit, ...]
    kept: list[int]
    cells: int
    functional: Any  # `Scaled`, or ordinary numbers if they do not vary too much
    fields: list[Any]
    shift: int = 0  # of ordinary numbers: all were divided by 2^this
    prefix: list[Any] = field(default_factory=list)  # the product of all units before this one
    suffix: list[Any] = field(default_factory=list)  # the functional once all units after this one are in

    def counted(self) -> Counted:
        linear = [self._linear(k) for k in range(len(self.units))]
        self.powers = [[self._unit(), p, convolve(p, p)] for p in linear]
        self._passes()
        self.total = _dot(self.prefix[-1], self._cut(self.functional, self.prefix[-1]))
        ball = _ball(self.total, self.shift)
        if ball == 0:
            return Counted(ball, (), {})
        single = tuple(self._single(k) for k in range(len(self.units)))
        pairs = _Pairs(self)
        if len(self.units) <= EAGER:
            pairs.fill()
        return Counted(ball, single, pairs)

    def _unit(self) -> Any:
        shape = (1,) * (self.cells - 1)
        return ones(shape) if isinstance(self.functional, Scaled) else np.ones(shape)

    def _linear(self, k: int) -> Any:
        m = np.zeros((2,) * (self.cells - 1))
        if not isinstance(self.functional, Scaled):
            for c in range(self.cells):
                m[tuple(int(axis + 1 == c) for axis in range(self.cells - 1))] = self.fields[k][c]
            return m
        e = np.full(m.shape, NOTHING, dtype=np.int64)
        for c in range(self.cells):
            place = tuple(int(axis + 1 == c) for axis in range(self.cells - 1))
            m[place], e[place] = self.fields[k].m[c], self.fields[k].e[c]
        return Scaled(m, e)

    def _cut(self, functional: Any, poly: Any) -> Any:
        return functional[tuple(slice(0, n) for n in poly.shape)]

    def _passes(self) -> None:
        found = self._unit()
        self.prefix = [found]
        for power, k in zip(self.powers, self.kept, strict=True):
            found = convolve(found, power[k])
            self.prefix.append(found)
        left, rest = self.functional, sum(self.kept)
        self.suffix = []
        for power, k in zip(reversed(self.powers), reversed(self.kept), strict=True):
            self.suffix.append(left)
            rest -= k
            left = correlate(left, power[k], (rest + 1,) * (self.cells - 1))
        self.suffix.reverse()

    def _single(self, k: int) -> np.ndarray:
        left = convolve(self.prefix[k], self.powers[k][self.kept[k] - 1])
        out = [
            ratio(_dot(left, _shift(self.suffix[k], (c,), left.shape)) * self.fields[k][c], self.total)
            for c in range(self.cells)
        ]
        return np.array(out)

    def row(self, i: int) -> dict[tuple[int, int], np.ndarray]:
        """The pairs of unit i with itself and with all later ones."""
        found = {}
        if self.kept[i] == 2:
            found[i, i] = self._table(self.prefix[i], i, i)
        left = convolve(self.prefix[i], self.powers[i][self.kept[i] - 1])
        for j in range(i + 1, len(self.units)):
            found[i, j] = self._table(convolve(left, self.powers[j][self.kept[j] - 1]), i, j)
            left = convolve(left, self.powers[j][self.kept[j]])
        return found

    def _table(self, left: Any, i: int, j: int) -> np.ndarray:
        out = np.zeros((self.cells, self.cells))
        for a in range(self.cells):
            for b in range(self.cells):
                if b < a and i == j:
                    out[a, b] = out[b, a]
                    continue
                value = _dot(left, _shift(self.suffix[j], (a, b), left.shape))
                out[a, b] = ratio(value * self.fields[i][a] * self.fields[j][b], self.total)
        return out


class _Pairs(dict[tuple[int, int], np.ndarray]):
    """Rows of pairs, computed when first asked for."""

    def __init__(self, core: _Core) -> None:
        super().__init__()
        self.core = core

    def fill(self) -> None:
        for i in range(len(self.core.units)):
            self.update(self.core.row(i))

    def __missing__(self, key: tuple[int, int]) -> np.ndarray:
        self.update(self.core.row(key[0]))
        return self[key]


def _ball(x: Any, shift: int) -> Any:
    from flint import arb

    m, e = (float(x.m), int(x.e)) if isinstance(x, Scaled) else (float(x), shift)
    return arb(m) * arb(2) ** e if m > 0 else arb(0)
