"""Which values are possible at all: impossible entries of tables, carried from factor to factor to the end."""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph


def hard_factors(model: FactorGraph) -> np.ndarray:
    """The factors with impossible entries."""
    which = np.repeat(np.arange(len(model.table_start) - 1), np.diff(model.table_start))
    impossible = np.bincount(which[np.isneginf(model.tables)], minlength=len(model.table_start) - 1) > 0
    return np.flatnonzero(impossible[model.table_of])


def possible_literals(model: FactorGraph) -> np.ndarray:
    """bool[L]: false only where no possible state has the literal (arc consistency: not all such are found)."""
    possible = np.ones(int(model.literal_start[-1]), dtype=bool)
    seen = np.flatnonzero(model.evidence != FREE)
    for i in seen.tolist():
        possible[model.literal_start[i] : model.literal_start[i + 1]] = False
    possible[model.literal_start[seen] + model.evidence[seen]] = True
    blocks = _hard_blocks(model)
    count = -1
    while blocks and count != (count := int(possible.sum())):
        for literals, allowed in blocks:
            _support(possible, literals, allowed)
    return possible


def _hard_blocks(model: FactorGraph) -> list[tuple[list[np.ndarray], np.ndarray]]:
    """Hard factors of one shape together: the literals along each axis [m, card], and which entries are possible."""
    hard = hard_factors(model)
    arity = np.diff(model.scope_start)[hard]
    blocks = []
    for k in np.unique(arity).tolist():
        mine = hard[arity == k]
        scope = model.scope[model.scope_start[mine][:, None] + np.arange(k)]
        shapes, which = np.unique(model.cards[scope], axis=0, return_inverse=True)
        for number, shape in enumerate(shapes.tolist()):
            rows = np.flatnonzero(which.ravel() == number)
            first = model.table_start[model.table_of[mine[rows]]]
            entries = model.tables[first[:, None] + np.arange(int(np.prod(shape, dtype=np.int64)))]
            literals = [model.literal_start[scope[rows, a]][:, None] + np.arange(shape[a]) for a in range(k)]
            blocks.append((literals, np.isfinite(entries).reshape(len(rows), *shape)))
    return blocks


def _support(possible: np.ndarray, literals: list[np.ndarray], allowed: np.ndarray) -> None:
    """Drop the literals that no possible entry of some factor contains."""
    arity = len(literals)
    open_entries = allowed.copy()
    for a, axis in enumerate(literals):
        open_entries &= possible[axis].reshape(len(axis), *(axis.shape[1] if b == a else 1 for b in range(arity)))
    for a, axis in enumerate(literals):
        supported = open_entries.any(axis=tuple(b + 1 for b in range(arity) if b != a))
        possible[axis[~supported]] = False
