"""A quick lower bound of treewidth: a graph with a core in which everybody has k neighbours has treewidth at least k.

Finding a good order of elimination takes a minute where there is none; this takes a second.
"""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FactorGraph


def has_core(model: FactorGraph, k: int) -> bool:
    """Whether variables are left after taking away, again and again, all that have fewer than k neighbours."""
    first, second = _edges(model)
    alive = np.ones(model.n, dtype=bool)
    while True:
        degree = np.bincount(first, minlength=model.n) + np.bincount(second, minlength=model.n)
        leave = alive & (degree < k)
        if not leave.any():
            return bool(alive.any())
        alive &= ~leave
        keep = alive[first] & alive[second]
        first, second = first[keep], second[keep]


def _edges(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of variables that share a factor, each once."""
    widths = np.diff(model.scope_start)
    found = [np.zeros(0, np.int64)]
    for width in np.unique(widths).tolist():
        starts = model.scope_start[:-1][widths == width]
        scopes = model.scope[starts[:, None] + np.arange(width)].astype(np.int64)
        for a in range(width):
            for b in range(a):
                low, high = np.minimum(scopes[:, a], scopes[:, b]), np.maximum(scopes[:, a], scopes[:, b])
                found.append(np.unique(low * model.n + high))
    return np.divmod(np.unique(np.concatenate(found)), max(model.n, 1))
