"""What hard factors imply by themselves: values that cannot be, values that are forced, values that come and go
together.

Each hard factor strikes out the values that none of its possible entries supports, until nothing changes (arc
consistency); and in factors over pairs a value may allow only one value of its neighbour, an implication. Chains of
implications are followed.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from definetti.constraints.graph.possible_values import hard_factors
from definetti.errors import Unsatisfiable
from definetti.model.graph.factors import FREE, FactorGraph

MOST_STEPS = 500_000  # along implications, when looking for values that contradict themselves


def possible_values(model: FactorGraph) -> list[int]:
    """Per variable, the values that are not ruled out, as bits of an integer; `Unsatisfiable` if there are none."""
    full = [(1 << card) - 1 for card in model.cards.tolist()]
    domain = [f if seen == FREE else 1 << seen for f, seen in zip(full, model.evidence.tolist(), strict=True)]
    factors = hard_factors(model)
    scopes = [tuple(model.variables(k).tolist()) for k in factors.tolist()]
    tables = model.table_of[factors].tolist()
    touching: dict[int, list[int]] = {}
    for f, scope in enumerate(scopes):
        for i in scope:
            touching.setdefault(i, []).append(f)
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    waiting, queued = deque(range(len(scopes))), [True] * len(scopes)
    while waiting:
        f = waiting.popleft()
        queued[f] = False
        before = tuple(domain[i] for i in scopes[f])
        key = (tables[f], *before)
        if key not in known:
            known[key] = _supported(model.table(int(factors[f])), before)
        for i, now in zip(scopes[f], known[key], strict=True):
            if now == domain[i]:
                continue
            domain[i] = now
            for g in touching[i]:
                if not queued[g]:
                    queued[g] = True
                    waiting.append(g)
    for i, values in enumerate(domain):
        if not values:
            raise Unsatisfiable(f"no state is possible: the hard factors leave no value for {model.names[i]}")
    return domain


def _supported(table: np.ndarray, domains: tuple[int, ...]) -> tuple[int, ...]:
    """The values of each axis that some possible entry within the domains has."""
    if not domains:
        return ()
    allowed = possible_entries(table, domains)
    axes = range(table.ndim)
    return tuple(_bits(np.asarray(allowed.any(axis=tuple(a for a in axes if a != axis)))) for axis in axes)


def possible_entries(table: np.ndarray, domains: tuple[int, ...]) -> np.ndarray:
    """bool like the table: possible, and every value within its domain."""
    allowed = ~np.isneginf(table)
    for axis, (values, card) in enumerate(zip(domains, table.shape, strict=True)):
        inside = np.array([values >> v & 1 for v in range(card)], dtype=bool)
        allowed = allowed & inside.reshape([card if a == axis else 1 for a in range(table.ndim)])
    return allowed


def _bits(flags: np.ndarray) -> int:
    return sum(1 << v for v in np.flatnonzero(flags).tolist())


# --- implications along pairs --------------------------------------------------------------------------------------


def implications(model: FactorGraph, domain: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(from, to): literals such that the first implies the second by one hard factor over two variables."""
    factors = hard_factors(model)
    pairs = factors[np.diff(model.scope_start)[factors] == 2]
    known: dict[tuple[int, int, int], list[tuple[int, int, int, int]]] = {}
    start, sources, targets = model.literal_start.tolist(), [], []
    for k in pairs.tolist():
        i, j = model.variables(k).tolist()
        key = (int(model.table_of[k]), domain[i], domain[j])
        if key not in known:
            known[key] = _only(possible_entries(model.table(k), key[1:]))
        for side, value, other_side, other in known[key]:
            sources.append(start[(i, j)[side]] + value)
            targets.append(start[(i, j)[other_side]] + other)
    return np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64)


def _only(allowed: np.ndarray) -> list[tuple[int, int, int, int]]:
    """(axis, value, other axis, its only value) wherever a value leaves the other variable one value."""
    out = []
    for side, rows in ((0, allowed), (1, allowed.T)):
        for value in np.flatnonzero(rows.sum(axis=1) == 1).tolist():
            out.append((side, value, 1 - side, int(np.argmax(rows[value]))))
    return out


def equivalent(model: FactorGraph, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """int64[L]: literals with the same number imply each other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = int(model.literal_start[-1])
    graph = coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(count, count))
    return connected_components(graph.tocsr(), directed=True, connection="strong")[1].astype(np.int64)


def contradicted(model: FactorGraph, sources: np.ndarray, targets: np.ndarray) -> list[int]:
    """Literals that imply, along chains, two values of one variable (as far as MOST_STEPS go)."""
    after: dict[int, list[int]] = {}
    for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
        after.setdefault(a, []).append(b)
    variable = np.repeat(np.arange(model.n), model.cards).tolist()
    out, steps = [], 0
    for literal in after:
        held, waiting = {variable[literal]: literal}, [literal]
        while waiting and steps < MOST_STEPS:
            for b in after.get(waiting.pop(), ()):
                steps += 1
                if variable[b] not in held:
                    held[variable[b]] = b
                    waiting.append(b)
                elif held[variable[b]] != b:
                    out.append(literal)
                    waiting = []
                    break
    return out
