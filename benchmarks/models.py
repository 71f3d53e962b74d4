"""The models that are measured."""

from __future__ import annotations

import numpy as np

import definetti as dft


def paper_grid(side: int) -> dft.FactorGraph:
    """The paper's Ising grid: a factor exp(0.2) for each pair of neighbours that differ."""
    node = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.column_stack([node[:-1].ravel(), node[1:].ravel()]),
        ]
    )
    return pairwise(side * side, edges, np.array([[0.0, 0.2], [0.2, 0.0]]))


def pairwise(n: int, edges: np.ndarray, log_table: np.ndarray) -> dft.FactorGraph:
    """Binary variables with the same table on every edge."""
    return dft.FactorGraph.from_arrays(
        np.full(n, 2), np.arange(len(edges) + 1) * 2, edges.ravel(), np.zeros(len(edges), np.int64), [log_table]
    )


def random_tables(n: int = 5000, factors: int = 10_000, seed: int = 1) -> dft.FactorGraph:
    """Variables with 2 to 4 values and random log tables over random triples."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 5, n)
    scopes = np.array([rng.choice(n, 3, replace=False) for _ in range(factors)])
    tables = [rng.normal(0.0, 0.5, cards[scope]) for scope in scopes]
    return dft.FactorGraph.from_arrays(
        cards, np.arange(factors + 1) * 3, scopes.ravel(), np.arange(factors), tables
    )  # fmt: skip


def twin_leaves(n: int = 100_000, leaves: int = 6000, seed: int = 2) -> dft.FactorGraph:
    """A random sparse graph in which thousands of nodes are leaves that hang on the same few neighbours."""
    rng = np.random.default_rng(seed)
    core = n - leaves
    random = rng.integers(0, core, (core * 3 // 2, 2))
    random = np.unique(np.sort(random[random[:, 0] != random[:, 1]], axis=1), axis=0)
    hubs = rng.integers(0, core // 50, leaves)
    edges = np.concatenate([random, np.column_stack([hubs, np.arange(core, n)])])
    return pairwise(n, edges, np.array([[0.0, 0.2], [0.2, 0.0]]))
