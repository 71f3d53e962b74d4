"""Elimination orders by min-fill: always the variable whose neighbours need the fewest new edges.

Fill counts are kept up to date edge by edge instead of being counted again, so that a star with 10,000 leaves and a
chain of 10,000 variables both take well under a second.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph

CURE = "sample instead, or observe some variables"


@dataclass(frozen=True)
class Order:
    """`cliques[j]`: the j-th variable eliminated, then the neighbours it had, in the order they are eliminated."""

    cliques: tuple[tuple[int, ...], ...]
    largest: float  # entries of the largest table
    total: float  # entries of all tables


def min_fill(model: FactorGraph, limit: float, steps: float = math.inf) -> Order:
    """An elimination order of the variables that have factors; `TooLarge` as soon as its tables pass the limit, or the
    search has looked at so many pairs of neighbours (`steps`)."""
    starts, scope = model.scope_start.tolist(), model.scope.tolist()
    return min_fill_of((scope[lo:hi] for lo, hi in itertools.pairwise(starts)), model.cards, limit, steps)


def min_fill_of(scopes: Iterable[Sequence[int]], cards: np.ndarray, limit: float, steps: float = math.inf) -> Order:
    """The same for factors over these variables, of which each has cards[v] values."""
    neighbours = interaction_graph(scopes)
    fill = {v: _fill(neighbours, v) for v in neighbours}
    heap = [(fill[v], len(around), v) for v, around in neighbours.items()]
    heapq.heapify(heap)
    bits = np.log2(cards)
    found: list[tuple[int, set[int]]] = []
    largest = total = looked = 0.0
    while heap:
        count, degree, v = heapq.heappop(heap)
        if v not in neighbours or (count, degree) != (fill[v], len(neighbours[v])):
            continue  # an entry from before something changed
        size = math.exp2(min(bits[v] + sum(bits[u] for u in neighbours[v]), 1000))
        largest, total = max(largest, size), total + size
        if total > limit:
            raise TooLarge("elimination", total, limit, CURE, unit="table entries", at_least=True)
        looked += (1 + fill[v]) * (1 + len(neighbours[v]))
        if looked > steps:
            raise TooLarge("the search for an elimination order", looked, steps, CURE, unit="steps", at_least=True)
        found.append((v, neighbours[v]))
        for u in _eliminate(neighbours, fill, v):
            heapq.heappush(heap, (fill[u], len(neighbours[u]), u))
    position = {v: j for j, (v, _) in enumerate(found)}
    cliques = tuple((v, *sorted(around, key=position.__getitem__)) for v, around in found)
    return Order(cliques, largest, total)


def interaction_graph(scopes: Iterable[Sequence[int]]) -> dict[int, set[int]]:
    """Which variables share a factor."""
    out: dict[int, set[int]] = {}
    for scope in scopes:
        if len(scope) == 2:
            a, b = scope
            out.setdefault(a, set()).add(b)
            out.setdefault(b, set()).add(a)
        else:
            for v in scope:
                out.setdefault(v, set()).update(scope)
    for v, around in out.items():
        around.discard(v)
    return out


def _fill(neighbours: dict[int, set[int]], v: int) -> int:
    """How many pairs of neighbours are not joined (set intersections cost the smaller of the two sets)."""
    around = neighbours[v]
    joined = sum(len(neighbours[u] & around) for u in around)
    return (len(around) * (len(around) - 1) - joined) // 2


def _eliminate(neighbours: dict[int, set[int]], fill: dict[int, int], v: int) -> set[int]:
    """Take v out and join its neighbours; the variables whose fill or degree changed."""
    around = neighbours.pop(v)
    changed = set(around)
    for u in around:  # v no longer is one end of a missing pair around u
        neighbours[u].discard(v)
        fill[u] -= len(neighbours[u]) - len(neighbours[u] & around)
    if fill.pop(v):
        waiting = list(around)
        while waiting:
            a = waiting.pop()
            for b in waiting:
                if b not in neighbours[a]:
                    changed |= _join(neighbours, fill, a, b)
    return changed


def _join(neighbours: dict[int, set[int]], fill: dict[int, int], a: int, b: int) -> set[int]:
    common = neighbours[a] & neighbours[b]
    for c in common:
        fill[c] -= 1
    fill[a] += len(neighbours[a]) - len(common)
    fill[b] += len(neighbours[b]) - len(common)
    neighbours[a].add(b)
    neighbours[b].add(a)
    return common


# --- a quick lower bound of treewidth ------------------------------------------------------------------------------


def core_number(model: FactorGraph, k: int) -> int:
    """The largest c such that the graph has a c-core, variables left after removing, again and again, those with fewer
    than c neighbours; 0 if it is below k.

    The treewidth is at least c. Min-fill takes a minute to find that there is no good order, this takes a second.
    """
    first, second = _edges(model)
    alive, core = np.ones(model.n, dtype=bool), 0
    while True:
        degree = np.bincount(first, minlength=model.n) + np.bincount(second, minlength=model.n)
        leave = alive & (degree < k)
        if not leave.any():
            if not alive.any():
                return core
            core = int(degree[alive].min())
            k = core + 1
            leave = alive & (degree < k)
        alive &= ~leave
        keep = alive[first] & alive[second]
        first, second = first[keep], second[keep]


def _edges(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of variables that share a factor, each once."""
    found = [np.zeros(0, np.int64)]
    for alike in model.by_shape:
        for a, b in itertools.combinations(range(alike.arity), 2):
            pair = alike.scopes[:, [a, b]]
            found.append(np.unique(pair.min(axis=1) * model.n + pair.max(axis=1)))
    return np.divmod(np.unique(np.concatenate(found)), max(model.n, 1))
