"""The symmetries of a Markov logic network that rename constants: the group, and the orbits of its ground atoms.

Nothing is grounded: atoms are numbered by the classes of their constants (`AtomOrbits`), orbits counted, named and
tested for membership from those. Constants' relations: `relations.py`, interchangeable ones: `interchangeable.py`,
the rest: `class_permutations.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from definetti import groups, show
from definetti.errors import Notice, UnknownName
from definetti.model.logic.atom_orbits import AtomOrbits, box, leaders_of, pattern_pairs, patterns_of
from definetti.model.logic.interchangeable import nodes_of, number_classes, twins
from definetti.model.logic.text import atom_text, find_atom
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.logic.atom_numbers import MOST_CELLS, AtomNumbers, Cells, number_atoms
from definetti.symmetry.logic.class_permutations import Quotient
from definetti.symmetry.logic.constants import (
    ConstantGroup,
    TupleOrbit,
    cell_members,
    constant_group,
    node_generators,
    random_renaming,
    tuple_orbit,
)
from definetti.symmetry.logic.independent_atoms import IndependentAtoms, independent_atoms
from definetti.symmetry.logic.joined_orbits import joined, joins
from definetti.symmetry.logic.relations import relations
from definetti.symmetry.logic.theory_group import TheoryGroup
from definetti.symmetry.logic.theory_symmetries import theory_group
from definetti.symmetry.protocol import Orbit

if TYPE_CHECKING:
    from definetti.symmetry.state_count import StateCount

CHUNK = 1 << 16  #: atoms whose orbits are looked up at once when they are listed


@dataclass(frozen=True, eq=False)
class RenamingSymmetries(show.Shown):
    """The group of renamings of a Markov logic network's constants, and of exchanges and negations of its predicates
    where the theory has such symmetries; `symmetries` finds it.

    Orbits are numbered over all predicates; observed atoms have none (-1).

    Attributes
    ----------
    model : MarkovLogic
        The model, with the atoms that hard formulas force as evidence.
    source : MarkovLogic or None
        The model as it was given, where that is another one.
    order : int or None
        The number of renamings, times that of relabellings of predicates; None where the time was up.
    kind : {"theory", "renaming", "none"}
        "theory" where symmetries of the theory make orbits larger.
    notices : tuple of Notice
        What limits the group.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.markov_logic("Smokes(person)\\n1.5 Smokes(Anna)", domain={"person": 4})
    >>> group = dft.symmetries(model)
    >>> group.order, list(group.orbit_of("Smokes(Person1)"))
    (6, ['Smokes(Person1)', 'Smokes(Person2)', 'Smokes(Person3)'])
    """

    model: MarkovLogic
    constants: ConstantGroup  # the group
    fine: ConstantGroup  # classes of constants that evidence does not distinguish: lookups are by these
    numbers: AtomNumbers
    independent: IndependentAtoms | None = None
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0
    time_limit: float = 10.0
    kind: str = "renaming"
    source: MarkovLogic | None = None
    theory: TheoryGroup | None = None  # what exchanges and negates predicates, beside the renamings

    @property
    def order(self) -> int | None:
        """The exact number of permutations of constants in the group, times the number of relabellings of predicates
        (free permutations of pendant and isolated atoms are not counted); None where the time was up."""
        if self.constants.order is None or self.theory is None:
            return self.constants.order
        return self.constants.order * self.theory.order

    @property
    def generator_count(self) -> int:
        """The swaps of neighbours within classes, the permutations of whole classes, and those of the theory."""
        swaps = sum(int((sizes - 1).sum()) for sizes in self.constants.sizes.values())
        return swaps + len(self.constants.quotient.generators) + (len(self.theory.generators) if self.theory else 0)

    @property
    def generators(self) -> Iterator[groups.Generator]:
        """Permutations that generate the group, one at a time; constants are numbered by `constants.nodes`. With
        symmetries of the theory predicates have points, too: see `TheoryGroup.starts`."""
        yield from map(groups.sparse, node_generators(self.constants))
        if self.theory is not None:
            yield from self.theory.group.generators

    def random_element(self, rng: np.random.Generator) -> np.ndarray:
        """int64[points]: a nearly uniform element, a renaming of constants; predicates, if they are points, follow."""
        renaming = random_renaming(self.constants, rng)
        if self.theory is None:
            return renaming
        element = groups.random_element(self.theory.group, rng)
        nodes = len(renaming)
        return np.concatenate([renaming[element[:nodes]], element[nodes:]])

    @property
    def mirror(self) -> np.ndarray:
        """int64[orbits]: the orbit of the negated atoms, which is an orbit's own number where atoms and their negations
        are exchanged (their probability is a half); -1 without one."""
        found = self.numbers.mirror
        return np.full(self.orbit_count, -1) if found is None else found

    @property
    def turns(self) -> tuple[tuple[frozenset[str], bool], ...]:
        """Sets of predicates that a sweep visits in random order, and whether in random order of their arguments."""
        return () if self.theory is None else self.theory.turns

    @property
    def atom_orbits(self) -> Mapping[str, AtomOrbits]:
        """The orbits of each predicate's ground atoms."""
        return self.numbers.orbits

    @property
    def deferred(self) -> Mapping[str, np.ndarray]:
        """For each predicate, indexed like its lookup: True for pendant and isolated atoms, to be updated after the
        others in each sweep. They are independent given the others, so that the sweep commutes with the group."""
        return self.numbers.deferred

    def late(self) -> dict[str, np.ndarray]:
        """`deferred` as a tensor of each predicate's own shape, for predicates that have such atoms."""
        return {name: self._spread(name, mask) for name, mask in self.deferred.items() if mask.any()}

    def _spread(self, name: str, mask: np.ndarray) -> np.ndarray:
        """What is known by classes of constants, for each atom; some rows at a time, as indices take 8 bytes."""
        shape, orbits = self.model.shape(name), self.atom_orbits[name]
        if not shape:
            return mask[(0,)]
        out = np.empty(shape, dtype=bool)
        step = max(1, CHUNK // max(out[0].size, 1))
        pairs = pattern_pairs(self.model.predicates[name].sorts)
        for first in range(0, shape[0], step):
            axes = box(shape)
            axes[0] = axes[0][first : first + step]
            classes = [c[axis] for c, axis in zip(orbits.classes, axes, strict=True)]
            pattern = sum(((axes[i] == axes[j]).astype(np.int64) << k for k, (i, j) in enumerate(pairs)), 0)
            out[first : first + step] = mask[(*classes, pattern)]
        return out

    @property
    def sizes(self) -> np.ndarray:
        """int64: the number of atoms of each orbit."""
        return self.numbers.sizes

    @property
    def orbit_count(self) -> int:
        """The number of orbits of ground atoms."""
        return len(self.sizes)

    @cached_property
    def orbits(self) -> OrbitRows:
        """One row (representative, size) per orbit, in the order of their numbers, made when looked at."""
        return OrbitRows(self)

    def orbit(self, number: int) -> AtomOrbit:
        """The orbit with this number, as a value that lists its atoms when asked."""
        return AtomOrbit(self, number, None)

    def orbit_of(self, atom: str) -> AtomOrbit:
        """The orbit of a ground atom given as text; an observed atom is alone."""
        predicate, constants = find_atom(self.model, atom)
        return AtomOrbit(self, self.orbit_number(predicate, constants), (predicate, constants))

    def row_number(self, name: str) -> int:
        """The orbit of a ground atom given as text, -1 for an observed one."""
        return self.orbit_number(*find_atom(self.model, name))

    def orbit_number(self, predicate: str, constants: Sequence[int]) -> int:
        """The number of the orbit of an atom, given by the indices of its constants."""
        return int(self.orbit_numbers(predicate, np.array([constants], dtype=np.int64).reshape(1, -1))[0])

    def orbit_numbers(self, predicate: str, tuples: np.ndarray) -> np.ndarray:
        """The orbits of many atoms of one predicate: int32[m] for int[m, arity]. In a predicate that is not numbered
        (a notice says so) every atom is alone, -1."""
        if predicate not in self.model.predicates:
            raise UnknownName(f"the model has no predicate {predicate!r}; it has {', '.join(self.model.predicates)}")
        if predicate not in self.atom_orbits:
            return np.full(len(tuples), -1, dtype=np.int32)
        orbits = self.atom_orbits[predicate]
        return orbits.lookup[self._cells(orbits, predicate, tuples)]

    def _cells(self, orbits: AtomOrbits, predicate: str, tuples: np.ndarray) -> tuple[np.ndarray, ...]:
        pattern = patterns_of(self.model.predicates[predicate].sorts, tuples)
        return (*(c[a] for c, a in zip(orbits.classes, tuples.T, strict=True)), pattern)

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

    def orbit_grid(self, predicate: str) -> np.ndarray:
        """The orbits of all atoms of a predicate, a tensor of its shape: for predicates that fit into memory."""
        shape = self.model.shape(predicate)
        tuples = np.indices(shape).reshape(len(shape), prod(shape)).T
        return self.orbit_numbers(predicate, tuples).reshape(shape)

    def is_core(self, predicate: str, constants: Sequence[int]) -> bool:
        """Whether an atom is free and neither pendant nor isolated: then the group moves it as its constants."""
        if predicate not in self.atom_orbits:
            return False
        orbits, row = self.atom_orbits[predicate], np.array([constants], dtype=np.int64).reshape(1, -1)
        cell = self._cells(orbits, predicate, row)
        return bool(orbits.lookup[cell][0] >= 0 and not self.deferred[predicate][cell][0])

    @cached_property
    def strict(self) -> ConstantGroup:
        """The renamings that preserve the evidence itself."""
        if self.fine is self.constants:
            return self.constants
        nodes, needed = self.constants.nodes, relations(self.model)
        return constant_group(nodes, needed, self.time_limit)

    def tuple_orbit(
        self,
        constants: Sequence[tuple[str, int]],
        cap: int = 100_000,
        atoms: Sequence[tuple[str, Sequence[int]]] | None = None,
    ) -> TupleOrbit:
        """The orbit of a tuple of (sort, constant), for queries that name several atoms.

        Where all free `atoms` of the query are core the whole group is used, else the renamings that preserve the
        evidence itself: pendant and isolated atoms do not move with their constants.
        """
        core = atoms is not None and all(self.is_core(*atom) for atom in atoms)
        return tuple_orbit(self.constants if core else self.strict, constants, cap)

    def count_states(self, seed: int = 0) -> StateCount:
        """The number of assignments of the free atoms and of their orbits under permutations of constants that preserve
        the evidence (free permutations of pendant and isolated atoms are not used), exact or estimated."""
        from definetti.symmetry.logic.count_states import count_states

        return count_states(self, seed)

    def plot(self) -> Any:
        """An Altair chart, coloured by orbit: the factor graph, or the atoms by their constants (needs the extra
        `report`)."""
        return show.above("pages.charts").group_chart(self)

    def __repr__(self) -> str:
        order = "unknown" if self.order is None else show.large(self.order)
        return f"RenamingSymmetries(order {order}, {self.orbit_count} orbits, {show.seconds(self.seconds)})"


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
        return next(iter(self)) if self.number < 0 else self.symmetries.orbits[self.number].representative

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
                for row in cell_members(self.symmetries.fine, sorts, cell, leaders_of(sorts, pattern)):
                    yield atom_text(model, name, row)


@dataclass(frozen=True, eq=False)
class OrbitRows(Sequence[Orbit]):
    """The orbits as rows of representative and size; a row is made when it is looked at."""

    symmetries: RenamingSymmetries

    def __len__(self) -> int:
        return self.symmetries.orbit_count

    @overload
    def __getitem__(self, index: int) -> Orbit: ...
    @overload
    def __getitem__(self, index: slice) -> list[Orbit]: ...
    def __getitem__(self, index: int | slice) -> Orbit | list[Orbit]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        return Orbit(self._representatives[numbers], int(self.symmetries.sizes[numbers]))

    @cached_property
    def _representatives(self) -> _Representatives:
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
        row = next(cell_members(self.symmetries.fine, sorts, cell, leaders_of(sorts, pattern)))
        self[number] = atom_text(self.symmetries.model, name, row)
        return self[number]


# --- finding them --------------------------------------------------------------------------------------------


def renaming(
    model: MarkovLogic, time_limit: float = 10.0, simplify: bool = True, most_cells: int = MOST_CELLS
) -> RenamingSymmetries:
    """The renamings of constants that preserve the model, with the orbits of atoms under them.

    With `simplify`, evidence is put into the formulas first: pendant and isolated atoms (`independent_atoms.py`) ask
    less of a renaming, so that the group and the orbits are larger. Without, renamings preserve the evidence itself. A
    predicate whose atoms are of more than `most_cells` kinds gets no orbits.
    """
    start = perf_counter()
    nodes = nodes_of({s.name: s.size for s in model.sorts.values()})
    strict = relations(model)
    found = independent_atoms(model) if simplify else None
    group = constant_group(nodes, strict if found is None else found.relations, time_limit)
    fine = group if found is None else _refined(group, twins(nodes, strict))
    numbers = number_atoms(model, Cells(group, fine, model.knowledge.relations, found), most_cells)
    notices = [*group.quotient.notices, *_notices(model, numbers, simplify and found is None)]
    return RenamingSymmetries(model, group, fine, numbers, found, tuple(notices), perf_counter() - start, time_limit)


def with_theory(group: RenamingSymmetries) -> RenamingSymmetries:
    """The group with the symmetries of the theory itself, where these make orbits larger or negate atoms; else as it
    was."""
    start = perf_counter()
    found, notices = theory_group(group.model, group.strict, group.time_limit)
    group = replace(group, notices=(*group.notices, *notices))
    moved = [] if found is None else [joins(group.model, group.fine, group.numbers, g) for g in found.generators]
    if found is None or all(pairs is None or not len(pairs) for pairs in moved):
        return replace(group, seconds=group.seconds + perf_counter() - start)
    if any(pairs is None for pairs in moved):
        found = found.restricted([pairs is not None for pairs in moved])
    numbers = joined(group.numbers, [pairs for pairs in moved if pairs is not None])
    seconds = group.seconds + perf_counter() - start
    return replace(group, numbers=numbers, theory=found, kind="theory", seconds=seconds)


def trivial(model: MarkovLogic) -> RenamingSymmetries:
    """No symmetry: every free atom is an orbit of its own."""
    start = perf_counter()
    nodes = nodes_of({s.name: s.size for s in model.sorts.values()})
    each = np.concatenate([np.zeros(0, np.int64), *(np.arange(size) for size in nodes.size.values())])
    alone = ConstantGroup(nodes, each, Quotient(dict(nodes.start), nodes.count, (), 1))
    numbers = number_atoms(model, Cells(alone, alone, model.knowledge.relations, None))
    notices = tuple(_notices(model, numbers, False))
    return RenamingSymmetries(model, alone, alone, numbers, None, notices, perf_counter() - start, kind="none")


def _notices(model: MarkovLogic, numbers: AtomNumbers, unsimplified: bool) -> Iterator[Notice]:
    if unsimplified:
        message = "the evidence makes too many kinds of pairs of constants: only renamings that preserve it are used"
        yield Notice("fallback", message)
    for name in model.predicates.keys() - numbers.orbits.keys():
        message = f"the evidence leaves too many kinds of atoms of {name}: they are not averaged over orbits"
        yield Notice("fallback", message)


def _refined(group: ConstantGroup, classes: np.ndarray) -> ConstantGroup:
    """The classes that are in one class of both, without permutations of whole classes."""
    fine = number_classes(group.nodes, classes.astype(np.int64) * group.nodes.count + group.classes)
    return ConstantGroup(group.nodes, fine, Quotient(group.quotient.start, 0, (), 1))
