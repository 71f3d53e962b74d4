"""The hard part of a factor graph: which factors have impossible entries, and which combinations of values they
forbid.

A *cube* is a forbidden combination of some of a factor's variables, whatever the others are: the negation of a
clause. The cubes of a table cover its impossible entries, each as wide as can be, so that one-of-k is k (k - 1) / 2
pairs and one row instead of 2^k - k entries.
"""

from __future__ import annotations

import numpy as np

from definetti.model.factors import FactorGraph

Cube = tuple[tuple[int, int], ...]  # (axis, value) pairs


def cubes(forbidden: np.ndarray) -> list[Cube]:
    """Cubes that cover exactly the true entries: each starts at an entry and lets go of every axis it can."""
    forbidden = np.asarray(forbidden)
    left = np.array(forbidden)
    out: list[Cube] = []
    for entry in np.argwhere(forbidden):
        if not left[tuple(entry)]:
            continue
        place: list[int | slice] = [int(v) for v in entry]
        for axis in range(forbidden.ndim):
            held, place[axis] = place[axis], slice(None)
            if not forbidden[tuple(place)].all():
                place[axis] = held
        left[tuple(place)] = False
        out.append(tuple((axis, v) for axis, v in enumerate(place) if not isinstance(v, slice)))
    return out


def factor_groups(model: FactorGraph, factors: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The factors that share a table and a shape, as (factors, scopes[m, k])."""
    out = []
    arity = np.diff(model.scope_start)
    for table in np.unique(model.table_of[factors]).tolist():
        mine = factors[model.table_of[factors] == table]
        for k in np.unique(arity[mine]).tolist():
            same = mine[arity[mine] == k]
            scope = model.scope[model.scope_start[same][:, None] + np.arange(k)].reshape(len(same), k)
            shapes, which = np.unique(model.cards[scope], axis=0, return_inverse=True)
            out += [(same[which.ravel() == s], scope[which.ravel() == s]) for s in range(len(shapes))]
    return out
