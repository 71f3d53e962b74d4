"""A group of renamings: symmetric groups on classes of interchangeable constants, and permutations of whole
classes.

The orbit of a tuple of constants is decided by its classes and its equalities alone: permutations within classes
reach every tuple of the same cell, and those of whole classes map cells to cells. So orbits of tuples are orbits of
cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import factorial, prod

import numpy as np

from definetti import groups
from definetti.errors import Notice
from definetti.model.logic.atom_orbits import cell_sizes, leaders_of, pattern_pairs
from definetti.model.logic.evidence import Relation
from definetti.model.logic.interchangeable import Nodes, class_sizes, twins
from definetti.symmetry.logic.class_permutations import Quotient, quotient


@dataclass(frozen=True, eq=False)
class ConstantGroup:
    """`classes[node]` is the class of a constant within its sort; `quotient` permutes the classes of all sorts."""

    nodes: Nodes
    classes: np.ndarray
    quotient: Quotient

    @cached_property
    def sizes(self) -> dict[str, np.ndarray]:
        return class_sizes(self.nodes, self.classes)

    def of_sort(self, sort: str) -> np.ndarray:
        start = self.nodes.start[sort]
        return self.classes[start : start + self.nodes.size[sort]]

    @cached_property
    def order(self) -> int | None:
        """Exact: the factorials of the class sizes times the order of the group that permutes classes."""
        if self.quotient.order is None:
            return None
        return prod(factorial(int(k)) for sizes in self.sizes.values() for k in sizes) * self.quotient.order

    @cached_property
    def lists(self) -> list[np.ndarray]:
        """The constants (nodes) of each class of all sorts, in order."""
        if not self.quotient.count:  # predicates without arguments have no constants
            return []
        numbers = np.concatenate([self.of_sort(s) + self.quotient.start[s] for s in self.nodes.start])
        ends = np.cumsum(np.bincount(numbers, minlength=self.quotient.count))[:-1]
        return np.split(np.argsort(numbers, kind="stable"), ends)

    def members(self, sort: str, number: int) -> np.ndarray:
        """The constants of a class, in order."""
        return np.flatnonzero(self.of_sort(sort) == number)


def constant_group(nodes: Nodes, relations: Sequence[Relation], time_limit: float) -> ConstantGroup:
    classes = twins(nodes, relations)
    return ConstantGroup(nodes, classes, quotient(nodes, relations, classes, time_limit))


def node_generators(group: ConstantGroup) -> Iterator[np.ndarray]:
    """Generators as permutations of the nodes: swaps of neighbours in a class, then maps of whole classes in order."""
    lists = group.lists
    for members in lists:
        for a, b in pairwise(members.tolist()):
            swap = np.arange(group.nodes.count)
            swap[[a, b]] = b, a
            yield swap
    for generator in group.quotient.generators:
        image = np.arange(group.nodes.count)
        for number, members in enumerate(lists):
            image[members] = lists[generator[number]]
        yield image


def random_renaming(group: ConstantGroup, rng: np.random.Generator) -> np.ndarray:
    """A nearly uniform element as a permutation of the nodes: whole classes, then the constants within each."""
    lists, image = group.lists, np.arange(group.nodes.count)
    classes = groups.random_element(group.quotient.group, rng) if group.quotient.generators else range(len(lists))
    for number, members in enumerate(lists):
        image[members] = rng.permutation(lists[classes[number]])
    return image


def cell_orbits(group: ConstantGroup, sorts: Sequence[str]) -> np.ndarray:
    """For each tuple of classes of these sorts (flat) the number of its orbit under permutations of whole classes."""
    counts = [len(group.sizes[s]) for s in sorts]
    source, target = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for generator in group.quotient.generators:
        images = [generator[(a := group.quotient.start[s]) : a + k] - a for s, k in zip(sorts, counts, strict=True)]
        for j, image in enumerate(images):
            axes = [np.arange(k) for k in counts]
            axes[j] = np.flatnonzero(image != axes[j])  # tuples it moves: those it moves at some place
            source.append(_flat(axes, counts))
            target.append(_flat([image[axis] for image, axis in zip(images, axes, strict=True)], counts))
    if not any(len(part) for part in source):
        return np.arange(prod(counts), dtype=np.int32)
    return groups.components(prod(counts), np.concatenate(source), np.concatenate(target))


def _flat(axes: Sequence[np.ndarray], counts: Sequence[int]) -> np.ndarray:
    flat = np.zeros((1,), dtype=np.int64)
    for axis, count in zip(axes, counts, strict=True):
        flat = (flat[:, None] * count + axis[None, :]).reshape(-1)
    return flat


# --- orbits of tuples ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TupleOrbit:
    """The orbit of a tuple of constants, as cells: all tuples with `cells[k][i]` the class of place i and the same
    places equal. `leaders[i]` is the first place equal to place i; different leaders are different constants.
    """

    group: ConstantGroup
    sorts: tuple[str, ...]
    leaders: tuple[int, ...]
    cells: tuple[tuple[int, ...], ...]
    notices: tuple[Notice, ...] = ()

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of tuples in each cell."""
        pattern = _pattern(self.sorts, self.leaders)
        tables = [self.group.sizes[s] for s in self.sorts]
        columns = [np.array([cell[j] for cell in self.cells]) for j in range(len(self.sorts))]
        if not self.sorts:
            return (1,)
        return tuple(int(k) for k in cell_sizes(self.sorts, tables, columns, pattern))

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def members(self, cell: Sequence[int]) -> dict[int, np.ndarray]:
        """For each leading place the constants it may be in a cell, as a mask; places of one sort are different."""
        return {j: self.group.of_sort(self.sorts[j]) == cell[j] for j, leader in enumerate(self.leaders) if leader == j}

    def __contains__(self, constants: Sequence[int]) -> bool:
        cell = tuple(int(self.group.of_sort(s)[c]) for s, c in zip(self.sorts, constants, strict=True))
        return cell in set(self.cells) and _equalities(self.sorts, constants) == self.leaders

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The tuples of constants, one by one."""
        for cell in self.cells:
            yield from cell_members(self.group, self.sorts, cell, self.leaders)


def cell_members(
    group: ConstantGroup, sorts: Sequence[str], cell: Sequence[int], leaders: Sequence[int]
) -> Iterator[tuple[int, ...]]:
    """The tuples of constants of one cell, one by one."""
    places = [j for j, leader in enumerate(leaders) if leader == j]
    axes = [group.members(sorts[j], cell[j]).tolist() for j in places]
    for chosen in product(*axes):
        if len(set(zip((sorts[j] for j in places), chosen, strict=True))) == len(chosen):
            value = dict(zip(places, chosen, strict=True))
            yield tuple(value[leader] for leader in leaders)


def tuple_orbit(group: ConstantGroup, constants: Sequence[tuple[str, int]], cap: int) -> TupleOrbit:
    """Breadth-first over cells; past `cap` of them only the permutations within classes are used."""
    sorts = tuple(sort for sort, _ in constants)
    leaders = _equalities(sorts, [c for _, c in constants])
    start = [group.quotient.start[s] for s in sorts]
    first = tuple(int(group.of_sort(s)[c]) + a for (s, c), a in zip(constants, start, strict=True))
    found = groups.tuple_orbit(group.quotient.group, first, cap)
    notices: tuple[Notice, ...] = ()
    if found is None:
        message = f"the orbit of a query has more than {cap} kinds of tuples: only interchangeable constants are used"
        found, notices = np.array([first]), (Notice("fallback", message),)
    cells = tuple(tuple(c - a for c, a in zip(cell, start, strict=True)) for cell in found.tolist())
    return TupleOrbit(group, sorts, leaders, cells, notices)


def _equalities(sorts: Sequence[str], constants: Sequence[int]) -> tuple[int, ...]:
    seen: dict[tuple[str, int], int] = {}
    return tuple(seen.setdefault((s, int(c)), j) for j, (s, c) in enumerate(zip(sorts, constants, strict=True)))


def _pattern(sorts: Sequence[str], leaders: Sequence[int]) -> int:
    pattern = sum(1 << k for k, (i, j) in enumerate(pattern_pairs(sorts)) if leaders[i] == leaders[j])
    assert leaders_of(sorts, pattern) == tuple(leaders)
    return pattern
