"""Merging of cells (1-types): what makes no difference to other constants is summed out before anything is counted.

Cells whose rows in every table of pairs are proportional are one cell to all others: their weights are added
up, the ratio of the rows goes into the weights. (Cancer and friends(x,x) disappear so; only smokes is left.)
Then each table is divided by its first row and column, which go into the weights, too; kinds of pairs with the
same table left are one kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.solvers.lifted.tables import PairTable, is_zero

DIGITS = 36  #: numbers that agree in so many are the same


@dataclass(frozen=True, eq=False)
class Reduced:
    """Cells merged, tables normalised."""

    merged: Mapping[str, np.ndarray]  # of each cell of a sort: its merged cell
    counts: Mapping[str, int]  # merged cells of each sort
    scale: Mapping[int, np.ndarray]  # by kind: what each cell's weight gets per partner of that kind
    factor: Mapping[int, Any]  # by kind: what each pair gets
    table_of: Mapping[int, int]  # kind → table
    tables: tuple[np.ndarray, ...]  # object[merged cell, merged cell]
    trivial: tuple[bool, ...]  # tables of ones: no interaction


def same(a: Any, b: Any) -> bool:
    """Equal as far as the arithmetic is exact."""
    return bool(a.overlaps(b)) if hasattr(a, "overlaps") else a == b


def reduce_cells(sorts: Sequence[tuple[str, str]], pairs: Mapping[int, PairTable], sizes: Mapping[str, int]) -> Reduced:
    """`sizes`: cells of each sort; `sorts`: of the two sides of each kind."""
    merged, leaders = {}, {}
    for sort, size in sizes.items():
        rows = [table.total for kind, table in pairs.items() if sorts[kind][0] == sort]
        merged[sort], leaders[sort] = _merge(rows, size)
    scale, factor, table_of, names, tables = {}, {}, {}, {}, []
    for kind, pair in pairs.items():
        a, b = sorts[kind]
        small = pair.total[np.ix_(leaders[a], leaders[b])]
        u, factor[kind], left = _normal(small)
        ratio = [_ratio(pair.total[s], pair.total[leaders[a][m]]) for s, m in enumerate(merged[a])]
        scale[kind] = np.array([r * u[m] for r, m in zip(ratio, merged[a], strict=True)], dtype=object)
        key = (a, b, tuple(text(x) for x in left.reshape(-1)))
        if key not in names:
            names[key] = len(tables)
            tables.append(left)
        table_of[kind] = names[key]
    trivial = tuple(all(x == 1 for x in table.reshape(-1)) for table in tables)
    counts = {sort: len(found) for sort, found in leaders.items()}
    return Reduced(merged, counts, scale, factor, table_of, tuple(tables), trivial)


def text(x: Any) -> str:
    return x.str(DIGITS, radius=False) if hasattr(x, "str") and hasattr(x, "rad") else str(x)


def _merge(rows: list[np.ndarray], size: int) -> tuple[np.ndarray, list[int]]:
    merged, leaders = np.zeros(size, dtype=np.int64), []
    for s in range(size):
        for m, t in enumerate(leaders):
            if all(_proportional(table[s], table[t]) for table in rows):
                merged[s] = m
                break
        else:
            merged[s] = len(leaders)
            leaders.append(s)
    return merged, leaders


def _proportional(a: np.ndarray, b: np.ndarray) -> bool:
    if all(x is y for x, y in zip(a, b, strict=True)):
        return True
    filled = [not is_zero(x) for x in a]
    if filled != [not is_zero(x) for x in b]:
        return False
    if True not in filled:
        return True
    k = filled.index(True)
    return all(same(x * b[k], y * a[k]) for x, y in zip(a, b, strict=True))


def _ratio(a: np.ndarray, b: np.ndarray) -> Any:
    if all(x is y for x, y in zip(a, b, strict=True)):
        return 1
    for x, y in zip(a, b, strict=True):
        if not is_zero(y):
            return x / y
    return 1


def _normal(table: np.ndarray) -> tuple[list[Any], Any, np.ndarray]:
    """(u, c, left) with table[a, b] = c · u(a) · v(b) · left[a, b], v being the u of the transposed table.

    The row and column of reference are the first without zeros."""
    zero = np.array([[is_zero(x) for x in row] for row in table], dtype=bool).reshape(table.shape)
    rows, columns = np.flatnonzero(~zero.any(axis=1)), np.flatnonzero(~zero.any(axis=0))
    if not len(rows) or not len(columns):
        return [1] * len(table), 1, table
    a, b = int(rows[0]), int(columns[0])
    c = table[a, b]
    u = [table[i, b] / c for i in range(len(table))]
    v = [table[a, j] / c for j in range(table.shape[1])]
    left = np.empty(table.shape, dtype=object)
    unit = type(c)(1)
    for i in range(len(table)):
        for j in range(table.shape[1]):
            x = table[i, j] / (c * u[i] * v[j]) if i != a and j != b else unit
            left[i, j] = unit if same(x, unit) else x
    return u, c, left
