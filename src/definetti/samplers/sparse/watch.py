"""The sites that a sparse run watches: whether hard formulas held them at every visit.

Rows keep lists of the sites that have not been seen free yet, so that a watch costs nothing once they have been. All
sites of a predicate are watched, or, where they are more than a million, some of each orbit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.data import Chain, SystemData
from definetti.samplers.sparse.emit import Plan
from definetti.samplers.sparse.terms import System

MOST_WATCHED = 1 << 20  # sites of one predicate
SAMPLED = 1 << 18  # of those that have more
MOST_CELLS = 1 << 12  # pairs of classes of constants that are looked at one by one


def watched_sites(
    model: MarkovLogic, plan: Plan, s: System, orbits: Mapping[str, AtomOrbits]
) -> tuple[np.ndarray, np.ndarray]:
    """(where each row's sites start, the second constants of the sites), for a system that hard formulas hold."""
    name, rows = list(model.predicates)[s.predicate], model.sorts[list(model.sorts)[s.sorts[0]]].size
    if s.predicate not in plan.held_pairs or model.knowledge.relation(name).default != UNKNOWN:
        return np.zeros(rows + 1 if s.predicate in plan.held_pairs else 1, np.int64), np.zeros(0, np.int32)
    pairs = some_pairs(model.shape(name), orbits.get(name))
    if s.symmetric:
        pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    known = model.knowledge.relation(name).tuples.astype(np.int64)
    width = model.shape(name)[1]
    free = ~np.isin(pairs[:, 0] * width + pairs[:, 1], known[:, 0] * width + known[:, 1])
    pairs = pairs[free & (pairs[:, 0] != pairs[:, 1])] if s.same else pairs[free]
    a, b = pairs[:, s.side], pairs[:, 1 - s.side]
    order = np.argsort(a, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(a, minlength=rows))]).astype(np.int64)
    return start, b[order].astype(np.int32)


def some_pairs(shape: tuple[int, ...], orbits: AtomOrbits | None) -> np.ndarray:
    """int64[m, 2]: all pairs of constants, or some of each pair of classes."""
    if shape[0] * shape[1] <= MOST_WATCHED:
        return np.argwhere(np.ones(shape, bool))
    rng = np.random.default_rng(17)
    classes = [np.zeros(n, np.int32) for n in shape] if orbits is None else orbits.classes
    members = [[np.flatnonzero(c == k) for k in range(int(c.max()) + 1)] for c in classes]
    cells = len(members[0]) * len(members[1])
    if cells > MOST_CELLS:
        members, cells = [[np.arange(n)] for n in shape], 1
    some = [
        np.stack([rng.choice(one, SAMPLED // cells), rng.choice(other, SAMPLED // cells)], axis=1)
        for one in members[0]
        for other in members[1]
    ]
    return np.unique(np.concatenate(some).astype(np.int64), axis=0)


def watch_again(chain: Chain) -> None:
    """Nothing has been seen free yet."""
    chain.live[:] = 0
    for s in chain.systems:
        if len(s.watch_start) > 1:
            s.watch_length[:] = np.diff(s.watch_start)


def still_watched(s: SystemData, held: np.ndarray) -> None:
    """Puts the watched sites R(a,b) with held[a, b] first in their rows."""
    length = s.watch_length.copy()
    row = np.repeat(np.arange(len(length)), length)
    first = np.repeat(s.watch_start[:-1], length)
    place = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length) + first
    keep = held[row, s.watched[place]]
    order = np.lexsort((~keep, row))
    s.watched[place] = s.watched[place[order]]
    s.watch_length[:] = np.bincount(row[keep], minlength=len(length))
