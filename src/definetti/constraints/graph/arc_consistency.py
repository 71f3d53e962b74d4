"""Arc consistency of the hard factors: which values are possible, which are forced, which imply each other.

Each hard factor (one with impossible entries) strikes out the values that none of its possible entries supports, until
nothing changes. In factors over pairs a value may allow only one value of its neighbour, an implication; chains of
implications are followed.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.graph.factors import FREE, FactorGraph

MOST_STEPS = 500_000  # along implications, when looking for values that contradict themselves


def possible_values(model: FactorGraph) -> list[int]:
    """Per variable, the values that are not ruled out, as bits of an integer; `Unsatisfiable` if there are none."""
    full = [(1 << card) - 1 for card in model.cards.tolist()]
    domain = [f if seen == FREE else 1 << seen for f, seen in zip(full, model.evidence.tolist(), strict=True)]
    factors = model.hard_factors
    position = np.full(model.factor_count, -1, dtype=np.int64)
    position[factors] = np.arange(len(factors))
    inside = np.flatnonzero(position[model.owner_of] >= 0)  # the entries of `scope` in hard factors
    inside = inside[np.argsort(model.scope[inside], kind="stable")]
    touching = position[model.owner_of[inside]]
    start = np.searchsorted(model.scope[inside], np.arange(model.n + 1)).tolist()
    waiting = deque(_striking(model, factors).tolist())
    queued = np.zeros(len(factors), dtype=bool)
    queued[list(waiting)] = True
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    while waiting:
        f = waiting.popleft()
        queued[f] = False
        scope = model.variables(int(factors[f])).tolist()
        before = tuple(domain[i] for i in scope)
        key = (int(model.table_of[factors[f]]), *before)
        if key not in known:
            known[key] = _supported(model.table(int(factors[f])), before)
        for i, now in zip(scope, known[key], strict=True):
            if now == domain[i]:
                continue
            domain[i] = now
            more = touching[start[i] : start[i + 1]]
            more = more[~queued[more]]
            queued[more] = True
            waiting.extend(more.tolist())
    for i, values in enumerate(domain):
        if not values:
            raise Unsatisfiable(f"no state is possible: the hard factors leave no value for {model.names[i]}")
    return domain


def _striking(model: FactorGraph, factors: np.ndarray) -> np.ndarray:
    """Which of the hard factors may strike out a value at once: by their tables alone, or by an observed variable."""
    tables, first, which = np.unique(model.table_of[factors], return_index=True, return_inverse=True)
    strikes = np.zeros(len(tables), dtype=bool)
    for t, k in enumerate(factors[first].tolist()):
        full = tuple((1 << card) - 1 for card in model.shape(k))
        strikes[t] = _supported(model.table(k), full) != full
    observed = np.zeros(model.factor_count, dtype=bool)
    observed[model.owner_of[model.evidence[model.scope] != FREE]] = True
    return np.flatnonzero(strikes[which.ravel()] | observed[factors])


def possible_literals(model: FactorGraph) -> np.ndarray:
    """bool[L]: false only where no possible state has the literal (arc consistency does not find all such)."""
    possible = np.ones(int(model.literal_start[-1]), dtype=bool)
    for i, (values, card) in enumerate(zip(possible_values(model), model.cards.tolist(), strict=True)):
        if values != (1 << card) - 1:
            first = int(model.literal_start[i])
            possible[first : first + card] = [values >> v & 1 for v in range(card)]
    return possible


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
    factors = model.hard_factors
    pairs = factors[model.arity[factors] == 2]
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


def equivalence_labels(model: FactorGraph, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """int64[L]: literals with the same number imply each other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = int(model.literal_start[-1])
    graph = coo_array((np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(count, count))
    return connected_components(graph.tocsr(), directed=True, connection="strong")[1].astype(np.int64)


def contradictory_literals(model: FactorGraph, sources: np.ndarray, targets: np.ndarray) -> list[int]:
    """Literals that imply, along chains, two values of one variable (as far as MOST_STEPS go)."""
    after: dict[int, list[int]] = {}
    for a, b in zip(sources.tolist(), targets.tolist(), strict=True):
        after.setdefault(a, []).append(b)
    variable = model.variable_of.tolist()
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
