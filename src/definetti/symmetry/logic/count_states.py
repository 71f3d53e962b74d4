"""Orbits of truth assignments of a Markov logic network under the renamings that preserve the evidence.

Where the free atoms have one argument and constants are permuted within classes only, an orbit is how many constants of
each class have which truth values: multisets. Elements with equal cycles fix equally many assignments, so that
Burnside's sum goes over the cycle types of the classes; other groups are listed if small, else sampled.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from definetti import groups
from definetti.errors import ModelError, TooLarge
from definetti.model.logic.evidence import UNKNOWN
from definetti.symmetry.logic.constants import ConstantGroup, node_generators, random_renaming
from definetti.symmetry.state_count import (
    MOST_ELEMENTS,
    SAMPLED_WORK,
    StateCount,
    burnside,
    elements,
    estimated,
    exactly,
    multisets,
)

if TYPE_CHECKING:
    from definetti.symmetry.logic.renaming import RenamingSymmetries

MOST_ATOMS = 4_000_000


def count_states(symmetries: RenamingSymmetries, seed: int = 0) -> StateCount:
    """The number of assignments of the free atoms and of their orbits under permutations of constants."""
    group = symmetries.strict
    unary = _by_classes(symmetries, group)
    if unary is not None:
        return unary
    free = _free_atoms(symmetries)
    atoms = sum(int(mask.sum()) for mask in free.values())
    states, fixed = 2**atoms, _fixed(symmetries, group, free)
    size = sum(mask.size for mask in free.values())
    if not group.quotient.generators:
        types = math.prod(_partitions(int(m)) for sizes in group.sizes.values() for m in sizes)
        if types * size <= SAMPLED_WORK:
            return _by_cycle_types(group, states, fixed)
    if group.order is not None and group.order <= MOST_ELEMENTS:
        return burnside(states, elements(node_generators(group), group.nodes.count), fixed)
    rng = np.random.default_rng(seed)
    drawn = (random_renaming(group, rng) for _ in itertools.count())
    return estimated(states, drawn, fixed, group.order, size)


def _by_classes(symmetries: RenamingSymmetries, group: ConstantGroup) -> StateCount | None:
    """Of free atoms with at most one argument; None for others, `!` blocks, and groups that permute whole classes."""
    model = symmetries.model
    open_predicates = [p for name, p in model.predicates.items() if model.knowledge.free_count(name)]
    if group.quotient.generators or any(len(p.sorts) > 1 or p.exclusive for p in open_predicates):
        return None
    total = exactly(1, 1, "classes")
    for predicate in open_predicates:
        if not predicate.sorts:
            total = total * exactly(2, 2, "classes")
    for sort, sizes in group.sizes.items():
        own = [p.name for p in open_predicates if p.sorts == (sort,)]
        codes = {name: model.knowledge.codes(name) for name in own}
        for number, members in enumerate(sizes.tolist()):
            first = int(group.members(sort, number)[0])
            kinds = 2 ** sum(int(codes[name][first] == UNKNOWN) for name in own)
            total = total * exactly(kinds**members, multisets(kinds, members), "classes")
    return total


def _free_atoms(symmetries: RenamingSymmetries) -> dict[str, np.ndarray]:
    """For each predicate which atoms are unknown, as tensors."""
    model = symmetries.model
    if model.atom_count > MOST_ATOMS:
        raise TooLarge("the number of ground atoms", model.atom_count, MOST_ATOMS, "use a smaller domain")
    if any(p.exclusive and model.knowledge.free_count(name) for name, p in model.predicates.items()):
        raise ModelError("orbits of states with `!` blocks are counted on the ground model: --symmetries literals")
    masks = {name: model.knowledge.codes(name) == UNKNOWN for name in model.predicates}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _fixed(
    symmetries: RenamingSymmetries, group: ConstantGroup, free: dict[str, np.ndarray]
) -> Callable[[np.ndarray], int]:
    """2^(cycles of the free atoms) as a function of a renaming."""
    sorts = {name: symmetries.model.predicates[name].sorts for name in free}

    def fixed(renaming: np.ndarray) -> int:
        cycles = 0
        for name, mask in free.items():
            starts = [group.nodes.start[s] for s in sorts[name]]
            axes = [renaming[a : a + n] - a for a, n in zip(starts, mask.shape, strict=True)]
            here = np.flatnonzero(mask.ravel())
            places = np.unravel_index(here, mask.shape) if mask.ndim else ()
            moved = [axis[place] for axis, place in zip(axes, places, strict=True)]
            image = np.ravel_multi_index(moved, mask.shape) if moved else here
            number = np.searchsorted(here, image)
            cycles += int(groups.components(len(here), np.arange(len(here)), number).max(initial=-1)) + 1
        return 1 << cycles

    return fixed


def _by_cycle_types(group: ConstantGroup, states: int, fixed: Callable[[np.ndarray], int]) -> StateCount:
    """Burnside's sum over one element of each tuple of cycle types, weighted by how many there are."""
    classes = [
        group.members(sort, number) + group.nodes.start[sort]
        for sort, sizes in group.sizes.items()
        for number in range(len(sizes))
    ]
    total = Fraction(0)
    for types in itertools.product(*(list(_cycle_types(len(members))) for members in classes)):
        renaming, weight = np.arange(group.nodes.count), Fraction(1)
        for members, cycles in zip(classes, types, strict=True):
            at = 0
            for length in cycles:
                renaming[members[at : at + length]] = np.roll(members[at : at + length], -1)
                at += length
            weight /= math.prod(length**k * math.factorial(k) for length, k in _multiplicity(cycles))
        total += weight * fixed(renaming)
    assert total.denominator == 1
    return exactly(states, int(total), "burnside")


def _multiplicity(cycles: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(length, len(list(some))) for length, some in itertools.groupby(cycles)]


def _cycle_types(n: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """The partitions of n, largest parts first."""
    if n == 0:
        yield ()
        return
    for first in range(min(n, most or n), 0, -1):
        for rest in _cycle_types(n - first, first):
            yield (first, *rest)


def _partitions(n: int) -> int:
    """How many there are; past 100 more than anybody wants to list."""
    if n > 100:
        return 1 << 62
    ways = [1] + [0] * n
    for part in range(1, n + 1):
        for total in range(part, n + 1):
            ways[total] += ways[total - part]
    return ways[n]
