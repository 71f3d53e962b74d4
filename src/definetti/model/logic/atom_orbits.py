"""Orbit numbers of a predicate's ground atoms without listing them: by the classes of an atom's constants.

Constants of one class are interchangeable, so an atom's orbit depends on the classes of its arguments and on which
arguments are equal. `cell` below means: one choice of classes and of equalities; a cell's atoms share an orbit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np


@dataclass(frozen=True, eq=False)
class AtomOrbits:
    """`lookup[class of arg 0, class of arg 1, …, pattern]` is the orbit's number, -1 where the atom is observed.

    `pattern` has one bit per pair of arguments of the same sort, in the order of `pattern_pairs`, set where the two are
    the same constant.
    """

    classes: tuple[np.ndarray, ...]  # int32, one per argument: the class of each constant of the argument's sort
    lookup: np.ndarray  # int32


def pattern_pairs(sorts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """The pairs of arguments of the same sort: (0,1), (0,2), …, (1,2), …; the k-th is bit k of a pattern."""
    return tuple((i, j) for i, j in combinations(range(len(sorts)), 2) if sorts[i] == sorts[j])


def possible_patterns(sorts: Sequence[str]) -> tuple[int, ...]:
    """The patterns that can occur: equality is transitive."""
    pairs = pattern_pairs(sorts)
    found = set()
    for leaders in _leaders(sorts):
        found.add(sum(1 << k for k, (i, j) in enumerate(pairs) if leaders[i] == leaders[j]))
    return tuple(sorted(found))


def _leaders(sorts: Sequence[str]) -> list[tuple[int, ...]]:
    """All partitions of the arguments into equal ones, each argument named by the first one it equals."""
    partitions: list[tuple[int, ...]] = [()]
    for j, sort in enumerate(sorts):
        partitions = [
            (*head, leader)
            for head in partitions
            for leader in [*(i for i in range(j) if head[i] == i and sorts[i] == sort), j]
        ]
    return partitions


def leaders_of(sorts: Sequence[str], pattern: int) -> tuple[int, ...]:
    """For each argument the first argument that the pattern makes equal to it."""
    equal = {pair for k, pair in enumerate(pattern_pairs(sorts)) if pattern >> k & 1}
    return tuple(min([i for i in range(j) if (i, j) in equal], default=j) for j in range(len(sorts)))


def patterns_of(sorts: Sequence[str], tuples: np.ndarray) -> np.ndarray:
    """The pattern of each row of constants."""
    pattern = np.zeros(len(tuples), dtype=np.int64)
    for k, (i, j) in enumerate(pattern_pairs(sorts)):
        pattern |= (tuples[:, i] == tuples[:, j]).astype(np.int64) << k
    return pattern


def cell_sizes(
    sorts: Sequence[str], sizes: Sequence[np.ndarray], classes: Sequence[np.ndarray], pattern: int
) -> np.ndarray:
    """How many tuples of constants a cell holds: falling factorials of the class sizes (0 if the cell is impossible).

    `sizes[j]` are the class sizes of argument j's sort; the arrays of `classes` broadcast against each other.
    """
    leaders = leaders_of(sorts, pattern)
    most = prod(float(k.max(initial=1)) for k in sizes)
    dtype = np.int32 if most < 2**31 else np.int64  # a lookup may have tens of millions of cells
    total = np.ones(np.broadcast_shapes((), *(c.shape for c in classes)), dtype=dtype)
    for j, leader in enumerate(leaders):
        if leader != j:  # the same constant again
            total *= classes[j] == classes[leader]
            continue
        free = sizes[j].astype(dtype)[classes[j]]
        for i in range(j):
            if leaders[i] == i and sorts[i] == sorts[j]:
                free = free - (classes[i] == classes[j])
        total *= free
    return total


def box(counts: Sequence[int]) -> list[np.ndarray]:
    """The indices of a box, one broadcastable array per axis."""
    return [np.arange(k).reshape([-1 if i == j else 1 for i in range(len(counts))]) for j, k in enumerate(counts)]
