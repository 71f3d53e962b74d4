"""The symmetries of a Markov logic network that rename constants: the group, and the orbits of its ground atoms.

Nothing is grounded: atoms are numbered by the classes of their constants (`AtomOrbits`), orbits counted, named and tested
for membership from those. Constants' relations: `relations.py`, interchangeable ones: `interchangeable.py`, the rest: `quotient.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter

import numpy as np

from definetti.errors import Notice, TooLarge, UnknownName
from definetti.model.logic import MarkovLogic, Predicate
from definetti.symmetry.atom_names import atom_text, find_atom
from definetti.symmetry.constants import ConstantGroup, TupleOrbit, cell_members, cell_orbits, constant_group, tuple_orbit
from definetti.symmetry.logic_orbits import (
    AtomOrbits,
    box,
    cell_sizes,
    leaders_of,
    pattern_pairs,
    patterns_of,
    possible_patterns,
)
from definetti.symmetry.relations import UNKNOWN, Relation, evidence_relations, relations
from definetti.symmetry.interchangeable import cells_of, nodes_of

MOST_CELLS = 300_000_000  #: of one predicate's lookup: 1.2 GB
CHUNK = 1 << 16  #: atoms whose orbits are looked up at once when they are listed


@dataclass(frozen=True, eq=False)
class RenamingSymmetries:
    """The `Symmetries` of a `MarkovLogic`. Orbits are numbered over all predicates; observed atoms have none (-1)."""

    model: MarkovLogic
    constants: ConstantGroup
    atom_orbits: Mapping[str, AtomOrbits]
    sizes: np.ndarray  # int64: the number of atoms of each orbit
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0
    kind: str = field(default="renaming", init=False)

    @property
    def order(self) -> int:
        """The exact number of permutations of constants in the group."""
        return self.constants.order

    @property
    def constant_classes(self) -> dict[str, np.ndarray]:
        """For each sort the class of each of its constants; constants of one class are interchangeable."""
        return {sort: self.constants.of_sort(sort) for sort in self.model.sorts}

    @property
    def orbit_count(self) -> int:
        return len(self.sizes)

    @cached_property
    def orbits(self) -> OrbitRows:
        """(representative, size) of every orbit, largest first, made when asked for."""
        return OrbitRows(self, np.argsort(-self.sizes, kind="stable"))

    def orbit(self, number: int) -> AtomOrbit:
        return AtomOrbit(self, number, None)

    def orbit_of(self, atom: str) -> AtomOrbit:
        """The orbit of a ground atom given as text; an observed atom is alone."""
        predicate, constants = find_atom(self.model, atom)
        return AtomOrbit(self, self.orbit_number(predicate, constants), (predicate, constants))

    def orbit_number(self, predicate: str, constants: Sequence[int]) -> int:
        return int(self.orbit_numbers(predicate, np.array([constants], dtype=np.int64).reshape(1, -1))[0])

    def orbit_numbers(self, predicate: str, tuples: np.ndarray) -> np.ndarray:
        """The orbits of many atoms of one predicate: int32[m] for int[m, arity]."""
        if predicate not in self.atom_orbits:
            raise UnknownName(f"the model has no predicate {predicate!r}; it has {', '.join(self.atom_orbits)}")
        orbits = self.atom_orbits[predicate]
        if orbits.explicit is not None:
            return orbits.explicit[tuple(tuples.T)]
        pattern = patterns_of(self.model.predicates[predicate].sorts, tuples)
        return orbits.lookup[(*(c[a] for c, a in zip(orbits.classes, tuples.T, strict=True)), pattern)]

    def atoms(self, predicates: Sequence[str] | None = None) -> Iterator[tuple[str, int]]:
        """Every ground atom's text with its orbit's number (-1: observed), predicate by predicate, one at a time."""
        for name in self.model.predicates if predicates is None else predicates:
            shape = self.model.shape(name)
            total = int(np.prod(shape, dtype=np.int64))
            for start in range(0, total, CHUNK):
                flat = np.arange(start, min(start + CHUNK, total))
                tuples = np.stack(np.unravel_index(flat, shape), 1) if shape else np.zeros((1, 0), np.int64)
                numbers = self.orbit_numbers(name, tuples).tolist()
                for row, number in zip(tuples.tolist(), numbers, strict=True):
                    yield atom_text(self.model, name, row), number

    def tuple_orbit(self, constants: Sequence[tuple[str, int]], cap: int = 100_000) -> TupleOrbit:
        """The orbit of a tuple of (sort, constant) under the renamings, for queries that name several atoms."""
        return tuple_orbit(self.constants, constants, cap)

    def __repr__(self) -> str:
        return f"RenamingSymmetries(order {_short(self.order)}, {self.orbit_count} orbits, {self.seconds:.3g} s)"


@dataclass(frozen=True, eq=False)
class AtomOrbit:
    """One orbit of ground atoms; iterates over their texts without keeping them."""

    symmetries: RenamingSymmetries
    number: int  # -1: an observed atom, alone
    atom: tuple[str, tuple[int, ...]] | None = None

    @property
    def size(self) -> int:
        return 1 if self.number < 0 else int(self.symmetries.sizes[self.number])

    @property
    def representative(self) -> str:
        return next(iter(self))

    def contains(self, atom: str) -> bool:
        found = find_atom(self.symmetries.model, atom)
        if self.number < 0:
            return found == self.atom
        return self.symmetries.orbit_number(*found) == self.number

    __contains__ = contains

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[str]:
        model = self.symmetries.model
        if self.number < 0 and self.atom is not None:
            yield atom_text(model, *self.atom)
            return
        for name, orbits in self.symmetries.atom_orbits.items():
            sorts = model.predicates[name].sorts
            for *cell, pattern in np.argwhere(orbits.lookup == self.number).tolist():
                for row in cell_members(self.symmetries.constants, sorts, cell, leaders_of(sorts, pattern)):
                    yield atom_text(model, name, row)


@dataclass(frozen=True, eq=False)
class OrbitRows(Sequence[tuple[str, int]]):
    """The orbits as rows (representative, size); a row is made when it is looked at."""

    symmetries: RenamingSymmetries
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = int(self.order[index])
        return self._representatives[number], int(self.symmetries.sizes[number])

    @cached_property
    def _representatives(self) -> Mapping[int, str]:
        return _Representatives(self.symmetries)


class _Representatives(dict[int, str]):
    """number → the text of its first atom; the first cell of every orbit is found once, for all."""

    def __init__(self, symmetries: RenamingSymmetries) -> None:
        super().__init__()
        self.symmetries, self.names = symmetries, list(symmetries.atom_orbits)
        self.where = np.full((len(symmetries.sizes), 2), -1, dtype=np.int64)
        for k in reversed(range(len(self.names))):
            flat = symmetries.atom_orbits[self.names[k]].lookup.reshape(-1)
            at = np.flatnonzero(flat >= 0)[::-1]
            self.where[flat[at]] = np.stack([np.full(len(at), k), at], 1)  # the last assignment is the first cell

    def __missing__(self, number: int) -> str:
        predicate, flat = self.where[number].tolist()
        name = self.names[predicate]
        sorts = self.symmetries.model.predicates[name].sorts
        *cell, pattern = (int(i) for i in np.unravel_index(flat, self.symmetries.atom_orbits[name].lookup.shape))
        row = next(cell_members(self.symmetries.constants, sorts, cell, leaders_of(sorts, pattern)))
        self[number] = atom_text(self.symmetries.model, name, row)
        return self[number]


# --- finding them --------------------------------------------------------------------------------------------


def renaming(model: MarkovLogic, time_limit: float = 10.0) -> RenamingSymmetries:
    """All renamings of constants that preserve formulas and evidence, with the orbits of atoms under them."""
    start = perf_counter()
    group = constant_group(nodes_of({s.name: s.size for s in model.sorts.values()}), relations(model), time_limit)
    known = evidence_relations(model)
    atom_orbits, sizes = {}, [np.zeros(0, np.int64)]
    for name, predicate in model.predicates.items():
        offset = sum(len(k) for k in sizes)
        orbits, counts = predicate_orbits(group, predicate, known[name], offset)
        atom_orbits[name] = orbits
        sizes.append(counts)
    return RenamingSymmetries(
        model, group, atom_orbits, np.concatenate(sizes), group.quotient.notices, perf_counter() - start
    )


def predicate_orbits(
    group: ConstantGroup, predicate: Predicate, known: Relation, offset: int
) -> tuple[AtomOrbits, np.ndarray]:
    """The orbits of one predicate's free atoms, numbered from `offset`, and their sizes."""
    sorts = predicate.sorts
    shape = [len(group.sizes[s]) for s in sorts]
    cells = int(np.prod(shape, dtype=np.int64)) << len(pattern_pairs(sorts))
    if cells > MOST_CELLS:
        raise TooLarge(
            f"the number of kinds of atoms of {predicate.name}", cells, MOST_CELLS, "use symmetries none, or less evidence"
        )
    lookup = np.full((*shape, 1 << len(pattern_pairs(sorts))), -1, dtype=np.int32)
    sizes = [np.zeros(0, np.int64)]
    for pattern in possible_patterns(sorts):
        leaders = leaders_of(sorts, pattern)
        places = [j for j, leader in enumerate(leaders) if leader == j]
        held = _held(group, sorts, places)
        free = (held > 0) & free_cells(group, predicate, known, pattern)
        orbit = cell_orbits(group, [sorts[j] for j in places]).reshape(free.shape)
        counts = np.bincount(orbit[free], weights=held[free]).astype(np.int64)
        rank = np.cumsum(counts > 0, dtype=np.int64) - 1 + offset + sum(len(k) for k in sizes)
        part = np.full(free.shape, -1, dtype=np.int32)
        part[free] = rank[orbit[free]]
        axes = box(free.shape)
        index = tuple(axes[places.index(leader)] for leader in leaders)
        lookup[(*index, pattern)] = part
        sizes.append(counts[counts > 0])
    classes = tuple(group.of_sort(s) for s in sorts)
    return AtomOrbits(classes, lookup), np.concatenate(sizes)


def _held(group: ConstantGroup, sorts: Sequence[str], places: Sequence[int]) -> np.ndarray:
    """The number of atoms in each cell of a pattern, over the classes of its different constants."""
    own = [sorts[j] for j in places]
    return cell_sizes(own, [group.sizes[s] for s in own], box([len(group.sizes[s]) for s in own]), 0)


def free_cells(group: ConstantGroup, predicate: Predicate, known: Relation, pattern: int) -> np.ndarray:
    """Which cells of a pattern hold free atoms (evidence is the same on all atoms of a cell)."""
    sorts = predicate.sorts
    leaders = leaders_of(sorts, pattern)
    places = [j for j, leader in enumerate(leaders) if leader == j]
    codes = np.full([len(group.sizes[sorts[j]]) for j in places], known.default, dtype=np.int8)
    cells = cells_of(group.nodes, known, group.classes)
    here = cells[cells[:, -2] == pattern]
    at = np.ravel_multi_index(tuple(here[:, j] for j in places), codes.shape) if places else np.zeros(len(here), np.int64)
    codes.reshape(-1)[at] = here[:, -1]
    free = codes == UNKNOWN
    if predicate.exclusive:
        free &= ~_decided(predicate, cells[cells[:, -1] == 1], leaders, places, free.shape)
    return free


def _decided(
    predicate: Predicate, true: np.ndarray, leaders: Sequence[int], places: Sequence[int], shape: tuple[int, ...]
) -> np.ndarray:
    """Which cells lie in a `!` block one value of which is known to be true."""
    sorts, keys = predicate.sorts, [j for j in range(len(predicate.sorts)) if j not in predicate.exclusive]
    decided = np.zeros(shape, dtype=bool)
    pairs = [(k, pair) for k, pair in enumerate(pattern_pairs(sorts)) if pair[0] in keys and pair[1] in keys]
    for row in np.unique(true[:, [*keys, -2]], axis=0).tolist() if len(true) else []:
        *classes, pattern = row
        if all((pattern >> k & 1) == (leaders[i] == leaders[j]) for k, (i, j) in pairs):
            index: list[slice | int] = [slice(None)] * len(places)
            for j, c in zip(keys, classes, strict=True):
                index[places.index(leaders[j])] = c
            decided[tuple(index)] = True
    return decided


def _short(order: int) -> str:
    from math import log10

    return str(order) if order < 10**12 else f"about 10^{log10(order):.1f}"
