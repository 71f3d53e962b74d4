"""Connected parts of the hard factors, their legal tuples, and whether single-variable moves connect all legal states.

Irreducibility of single-site moves is decided where that is cheap, in two ways. A variable has a *safe* value if
changing it to that value never breaks a hard factor: if all variables have one, perhaps after others have been put at
theirs, every state leads to the same one. And connected parts of the hard factors are independent of each other, so
that a part with few states is decided by listing them.
"""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph

MOST_STATES = 2**18  # of one connected part
MOST_FACTORS = 500  # of a part whose legal tuples are listed
WIDEST = 2**18  # tuples looked at while the legal ones are listed

Part = tuple[tuple[int, ...], np.ndarray]  # a hard factor: variables, and which of their entries are possible


def single_moves_connect(model: FactorGraph, limit: int = MOST_STATES) -> bool | None:
    """True or false where decided, else None. `model` is simplified."""
    parts = hard_tables(model)
    left = _peeled(parts)
    if not left:
        return True
    known = [_listed(model, part, limit) for part in components(left)]
    if any(answer is False for answer in known):
        return False
    return None if any(answer is None for answer in known) else True


def unconnected_parts(model: FactorGraph, limit: int = MOST_STATES) -> list[list[Part]]:
    """The connected parts of the hard factors that single moves do not connect, or for which that was not decided."""
    whole = components(hard_tables(model))
    return [part for part in whole if _peeled(part) and not _listed(model, part, limit)]


def hard_tables(model: FactorGraph) -> list[Part]:
    assert (model.evidence[model.scope] == FREE).all()
    return [(tuple(model.variables(k).tolist()), ~np.isneginf(model.table(k))) for k in model.hard_factors.tolist()]


def _peeled(parts: list[Part]) -> list[Part]:
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


# --- parts and their legal tuples ------------------------------------------------------------------------------------


def components(parts: list[Part]) -> list[list[Part]]:
    """Hard factors that share variables, directly or through others."""
    head: dict[int, int] = {}

    def find(i: int) -> int:
        while head.setdefault(i, i) != i:
            head[i] = head[head[i]]
            i = head[i]
        return i

    for scope, _ in parts:
        for i in scope[1:]:
            head[find(i)] = find(scope[0])
    together: dict[int, list[Part]] = {}
    for part in parts:
        together.setdefault(find(part[0][0]), []).append(part)
    return list(together.values())


def legal_tuples(model: FactorGraph, parts: list[Part], most: int) -> tuple[list[int], np.ndarray] | None:
    """The variables of these hard factors and their legal tuples; None if there are more than `most`.

    Variables are added one after the other; what no possible entry of some factor continues is dropped at once.
    """
    if len(parts) > MOST_FACTORS:
        return None
    variables = _along_factors(parts)
    tuples = np.zeros((1, 0), dtype=np.int64)
    for count, i in enumerate(variables, start=1):
        card = int(model.cards[i])
        if len(tuples) * card > WIDEST:
            return None
        tuples = np.column_stack([np.repeat(tuples, card, axis=0), np.tile(np.arange(card), len(tuples))])
        place = {v: c for c, v in enumerate(variables[:count])}
        for scope, allowed in parts:
            if i in scope:
                later = tuple(axis for axis, v in enumerate(scope) if v not in place)
                seen = [place[v] for v in scope if v in place]
                tuples = tuples[np.asarray(allowed.any(axis=later))[tuple(tuples[:, seen].T)]]
    return (variables, tuples) if len(tuples) <= most else None


def _along_factors(parts: list[Part]) -> list[int]:
    """The variables such that each factor's follow closely on one another."""
    out: dict[int, None] = {}
    waiting = sorted((scope for scope, _ in parts), key=lambda scope: (len(scope), scope))
    while waiting:
        at = max(range(len(waiting)), key=lambda k: (sum(i in out for i in waiting[k]), -len(waiting[k])))
        out.update(dict.fromkeys(waiting.pop(at)))
    return list(out)
