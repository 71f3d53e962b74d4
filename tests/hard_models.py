"""Factor graphs with hard constraints that several tests share."""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FactorGraph, factor_graph

DIFFER = [[0.0, 1.0], [1.0, 0.0]]
SAME = [[1.0, 0.0], [0.0, 1.0]]
NOT_BOTH = [[1.0, 1.0], [1.0, 0.0]]


def hard_grid(rows: int, columns: int, table: object = DIFFER) -> FactorGraph:
    """A grid with one table on every pair of neighbours; without more said, the hard two-colouring of the paper."""
    ids = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()], axis=1)
    down = np.stack([ids[:-1].ravel(), ids[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    with np.errstate(divide="ignore"):
        log = np.log(np.asarray(table, dtype=np.float64))
    cards = np.full(rows * columns, len(log))
    return FactorGraph.from_arrays(
        cards, np.arange(len(pairs) + 1) * 2, pairs.ravel(), np.zeros(len(pairs), np.int64), [log]
    )


def one_of(count: int, offset: int = 0) -> tuple[list[int], np.ndarray]:
    """Exactly one of so many binary variables is 1."""
    table = np.zeros([2] * count)
    for k in range(count):
        table[tuple(int(j == k) for j in range(count))] = 1.0
    return list(range(offset, offset + count)), table


def parity(count: int) -> np.ndarray:
    """An even number of so many binary variables is 1."""
    return (np.indices([2] * count).sum(axis=0) % 2 == 0).astype(float)


def independent_sets(rows: int, columns: int, weight: float = 1.0) -> FactorGraph:
    """The hard-core model: no two neighbours are 1."""
    bare = hard_grid(rows, columns, NOT_BOTH)
    pairs = [(bare.variables(k).tolist(), np.array(NOT_BOTH)) for k in range(bare.factor_count)]
    return factor_graph([2] * bare.n, [*pairs, *(([i], [1.0, weight]) for i in range(bare.n))])
