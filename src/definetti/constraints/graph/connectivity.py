"""Can moves of one variable at a time lead from every legal state to every other? Decided where that is cheap.

Two ways. A variable has a *safe* value if changing it to that value never breaks a hard factor: if all variables have
one, perhaps after others have been put at theirs, every state leads to the same one. And the connected parts of the
hard factors are independent of each other, so that a part with few states is decided by listing them.
"""

from __future__ import annotations

import numpy as np

from definetti.constraints.graph.arc_consistency import hard_factors
from definetti.constraints.graph.legal_tuples import Part, components
from definetti.model.graph.factors import FREE, FactorGraph

MOST_STATES = 2**18  # of one connected part


def single_moves_connect(model: FactorGraph, limit: int = MOST_STATES) -> bool | None:
    """True or false where decided, else None. `model` is simplified."""
    parts = hard_tables(model)
    left = _peeled(model, parts)
    if not left:
        return True
    known = [_listed(model, part, limit) for part in components(left)]
    if any(answer is False for answer in known):
        return False
    return None if any(answer is None for answer in known) else True


def unconnected_parts(model: FactorGraph, limit: int = MOST_STATES) -> list[list[Part]]:
    """The connected parts of the hard factors that single moves do not connect, or for which that was not decided."""
    whole = components(hard_tables(model))
    return [part for part in whole if _peeled(model, part) and not _listed(model, part, limit)]


def hard_tables(model: FactorGraph) -> list[Part]:
    assert (model.evidence[model.scope] == FREE).all()
    return [(tuple(model.variables(k).tolist()), ~np.isneginf(model.table(k))) for k in hard_factors(model).tolist()]


def _peeled(model: FactorGraph, parts: list[Part]) -> list[Part]:
    """What is left of the hard factors when all variables with safe values have been put at them, again and again."""
    safe_of: dict[tuple[bytes, tuple[int, ...], int], int] = {}
    while True:
        safe: dict[int, int] = {}
        for scope, allowed in parts:
            for axis, i in enumerate(scope):
                key = (allowed.tobytes(), allowed.shape, axis)
                if key not in safe_of:
                    safe_of[key] = _safe_values(allowed, axis)
                safe[i] = safe.get(i, -1) & safe_of[key]
        # Variables are put at their values one after the other: a safe value stays safe when others are fixed.
        values = {i: (bits & -bits).bit_length() - 1 for i, bits in safe.items() if bits}
        if not values:
            return parts
        sliced = []
        for scope, allowed in parts:
            table = allowed[tuple(values.get(i, slice(None)) for i in scope)]
            rest = tuple(i for i in scope if i not in values)
            if rest and not np.all(table):
                sliced.append((rest, np.asarray(table)))
        parts = sliced


def _safe_values(allowed: np.ndarray, axis: int) -> int:
    """Bits: the values that are possible wherever any value of this axis is."""
    rows = np.moveaxis(allowed, axis, 0).reshape(allowed.shape[axis], -1)
    some = rows.any(axis=0)
    return sum(1 << v for v, row in enumerate(rows) if row[some].all())


def _listed(model: FactorGraph, parts: list[Part], limit: int) -> bool | None:
    """By listing all states of the variables of these factors."""
    variables = sorted({i for scope, _ in parts for i in scope})
    shape = [int(model.cards[i]) for i in variables]
    if len(shape) > 32 or np.prod(np.array(shape, dtype=np.float64)) > limit:
        return None
    place = {i: a for a, i in enumerate(variables)}
    legal = np.ones(shape, dtype=bool)
    for scope, allowed in parts:
        order = np.argsort([place[i] for i in scope])
        mine = {place[i] for i in scope}
        legal &= allowed.transpose(order).reshape([c if a in mine else 1 for a, c in enumerate(shape)])
    return bool(regions(legal) <= 1)


def regions(legal: np.ndarray) -> int:
    """How many connected regions the legal states of a table have, one step changing one variable."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    number = np.full(legal.shape, -1, dtype=np.int64)
    number[legal] = np.arange(int(legal.sum()))
    ends = [np.zeros((2, 0), dtype=np.int64)]
    for axis in range(legal.ndim):
        lines = np.moveaxis(number, axis, -1).reshape(-1, legal.shape[axis])
        row, column = np.nonzero(lines >= 0)
        same = np.flatnonzero(np.diff(row) == 0)  # neighbours along a line, whatever is impossible between them
        ends.append(np.stack([lines[row[same], column[same]], lines[row[same + 1], column[same + 1]]]))
    a, b = np.concatenate(ends, axis=1)
    count = int(legal.sum())
    graph = coo_array((np.ones(len(a), dtype=np.int8), (a, b)), shape=(count, count))
    return int(connected_components(graph.tocsr(), directed=False)[0])
