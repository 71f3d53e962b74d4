"""The hard part of a factor graph: which factors have impossible entries, and which combinations of values they
forbid.

A *cube* is a forbidden combination of some of a factor's variables, whatever the others are: the negation of a
clause. The cubes of a table cover its impossible entries, each as wide as can be, so that one-of-k is k (k - 1) / 2
pairs and one row instead of 2^k - k entries.
"""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FactorGraph

Part = tuple[tuple[int, ...], np.ndarray]  # variables, and which of their entries are possible
Cube = tuple[tuple[int, int], ...]  # (axis, value) pairs

MOST_FACTORS = 500  # of a part whose legal tuples are listed
WIDEST = 2**18  # tuples looked at while the legal ones are listed


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
    """The factors that share a table and a shape, as (factors, scopes[m, k]), in the order of the tables."""
    chosen = np.zeros(model.factor_count, dtype=bool)
    chosen[factors] = True
    found: list[tuple[int, np.ndarray, np.ndarray]] = []
    for alike in model.by_shape:
        mine = alike.take(chosen[alike.factors])
        for table in np.unique(mine.tables).tolist():
            same = mine.take(mine.tables == table)
            found.append((table, same.factors, same.scopes))
    return [(mine, scopes) for _, mine, scopes in sorted(found, key=lambda group: group[0])]


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
