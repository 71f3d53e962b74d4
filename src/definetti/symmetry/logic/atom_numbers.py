"""Numbers for the orbits of ground atoms, cell by cell: core atoms by their constants, others by their residuals.

Cells are made of the finest classes in play, those of constants between which the evidence itself makes no difference;
the group may be larger. Numbers: first the core, predicate by predicate, then isolated atoms by field, then pendant
atoms by residual and orbit of the constant they are pendant on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from definetti import groups
from definetti.model.logic.atom_orbits import (
    AtomOrbits,
    box,
    cell_sizes,
    leaders_of,
    pattern_pairs,
    possible_patterns,
)
from definetti.model.logic.evidence import UNKNOWN, Relation
from definetti.model.logic.interchangeable import cells_of
from definetti.model.logic.theory import MarkovLogic, Predicate
from definetti.symmetry.logic.constants import ConstantGroup, cell_orbits
from definetti.symmetry.logic.independent_atoms import IndependentAtoms

MOST_CELLS = 150_000_000  #: of one predicate's lookup: 600 MB


@dataclass(frozen=True, eq=False)
class AtomNumbers:
    orbits: Mapping[str, AtomOrbits]  # a predicate with too many kinds of atoms to number is missing
    deferred: Mapping[str, np.ndarray]  # bool, indexed like `lookup`: pendant and isolated atoms
    sizes: np.ndarray  # int64, by orbit
    isolated: range = range(0)  # the orbits of isolated atoms: their conditionals depend on nothing
    mirror: np.ndarray | None = None  # int64, by orbit: the orbit of the negated atoms, or -1; None: there are none


@dataclass(frozen=True, eq=False)
class Cells:
    """`fine` are the classes that cells are made of; `group` is the group, whose classes they refine."""

    group: ConstantGroup
    fine: ConstantGroup
    known: Mapping[str, Relation]
    independent: IndependentAtoms | None

    def first(self, sort: str) -> np.ndarray:
        """A constant of each class."""
        return np.unique(self.fine.of_sort(sort), return_index=True)[1]


def number_atoms(model: MarkovLogic, cells: Cells, most_cells: int = MOST_CELLS) -> AtomNumbers:
    """Lookups hold core numbers first and, below -1, the keys of other atoms, which get their numbers at the end."""
    lookups, masks, count = {}, {}, 0
    for name, predicate in model.predicates.items():
        if prod(lookup_shape(predicate, cells.fine)) > most_cells:
            continue
        lookups[name], count = _core_numbers(predicate, cells, count)
        masks[name] = lookups[name] < -1
    used = np.zeros(_key_count(cells), dtype=bool)
    for name, mask in masks.items():
        used[-2 - lookups[name][mask]] = True
    rank = (np.cumsum(used) - 1 + count).astype(np.int32)
    for name, mask in masks.items():
        lookups[name][mask] = rank[-2 - lookups[name][mask]]
    total = count + int(used.sum())
    orbits = {
        name: AtomOrbits(tuple(cells.fine.of_sort(s) for s in model.predicates[name].sorts), lookup)
        for name, lookup in lookups.items()
    }
    fields = 0 if cells.independent is None else cells.independent.field_count  # their keys come first
    isolated = range(count, count + int(used[:fields].sum()))
    return AtomNumbers(orbits, masks, _sizes(model, cells, lookups, total), isolated)


def lookup_shape(predicate: Predicate, fine: ConstantGroup) -> tuple[int, ...]:
    """The kinds of a predicate's atoms: classes of their constants, and which of them are equal."""
    patterns = 1 << len(pattern_pairs(predicate.sorts))
    return (*(len(fine.sizes[s]) for s in predicate.sorts), patterns)


def _core_numbers(predicate: Predicate, cells: Cells, offset: int) -> tuple[np.ndarray, int]:
    sorts = predicate.sorts
    lookup = np.full(lookup_shape(predicate, cells.fine), -1, dtype=np.int32)
    for pattern in possible_patterns(sorts):
        leaders = leaders_of(sorts, pattern)
        places = [j for j, leader in enumerate(leaders) if leader == j]
        own = [sorts[j] for j in places]
        free = free_cells(cells, predicate, pattern) & (_held(cells, own) > 0)
        part = np.full(free.shape, -1, dtype=np.int32)
        keys = _keys(predicate, cells, pattern)
        if keys is not None:
            part[free] = -2 - np.broadcast_to(keys, free.shape)[free]
            free &= np.broadcast_to(keys < 0, free.shape)
        orbit = _coarse_orbits(cells, own)
        used = np.zeros(int(orbit.max(initial=-1)) + 1, dtype=bool)
        used[orbit[free]] = True
        part[free] = (np.cumsum(used, dtype=np.int32) + np.int32(offset - 1))[orbit[free]]
        offset += int(used.sum())
        axes = box(free.shape)
        lookup[(*(axes[places.index(leader)] for leader in leaders), pattern)] = part
    return lookup, offset


def _held(cells: Cells, sorts: Sequence[str]) -> np.ndarray:
    """The number of tuples of different constants in each cell."""
    sizes = [cells.fine.sizes[s] for s in sorts]
    return cell_sizes(sorts, sizes, box([len(k) for k in sizes]), 0)


def _coarse_orbits(cells: Cells, sorts: Sequence[str]) -> np.ndarray:
    """The orbit of each cell of different constants under the group."""
    shape = [len(cells.group.sizes[s]) for s in sorts]
    orbit = cell_orbits(cells.group, sorts).reshape(shape)
    return orbit[np.ix_(*(cells.group.of_sort(s)[cells.first(s)] for s in sorts))] if sorts else orbit


def _sizes(model: MarkovLogic, cells: Cells, lookups: Mapping[str, np.ndarray], total: int) -> np.ndarray:
    sizes = np.zeros(total, dtype=np.int64)
    for name, lookup in lookups.items():
        predicate = model.predicates[name]
        for pattern in possible_patterns(predicate.sorts):
            leaders = leaders_of(predicate.sorts, pattern)
            own = [predicate.sorts[j] for j, leader in enumerate(leaders) if leader == j]
            places = [j for j, leader in enumerate(leaders) if leader == j]
            held = _held(cells, own)
            axes = box(held.shape)
            part = lookup[(*(axes[places.index(leader)] for leader in leaders), pattern)]
            np.add.at(sizes, part[free := part >= 0], held[free])
    return sizes


# --- free cells ----------------------------------------------------------------------------------------------


def free_cells(cells: Cells, predicate: Predicate, pattern: int) -> np.ndarray:
    """Which cells of a pattern hold free atoms (evidence is the same on all atoms of a cell)."""
    sorts, known, fine = predicate.sorts, cells.known[predicate.name], cells.fine
    leaders = leaders_of(sorts, pattern)
    places = [j for j, leader in enumerate(leaders) if leader == j]
    codes = np.full([len(fine.sizes[sorts[j]]) for j in places], known.default, dtype=np.int8)
    rows = cells_of(fine.nodes, known, fine.classes)
    here = rows[rows[:, -2] == pattern]
    at = (
        np.ravel_multi_index(tuple(here[:, j] for j in places), codes.shape)
        if places
        else np.zeros(len(here), np.int64)
    )
    codes.reshape(-1)[at] = here[:, -1]
    free = codes == UNKNOWN
    if predicate.exclusive:
        free &= ~_decided(predicate, rows[rows[:, -1] == 1], leaders, places, free.shape)
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


# --- pendant and isolated atoms ---------------------------------------------------------------------------------


def _key_count(cells: Cells) -> int:
    found = cells.independent
    return 0 if found is None else found.field_count + cells.group.quotient.count * found.residual_count


def _keys(predicate: Predicate, cells: Cells, pattern: int) -> np.ndarray | None:
    """What a cell's atoms are if not core (-1): a field's number, or beyond those a residual at an orbit of classes."""
    found, sorts = cells.independent, predicate.sorts
    if found is None or not 1 <= len(sorts) <= 2:
        return None
    if len(sorts) == 1 or pattern == 1:
        own, first = found.own[sorts[0]], cells.first(sorts[0])
        pendant = own.pendant[predicate.name][first]
        keys = found.field_count + _class_orbits(cells, sorts[0]) * found.residual_count + pendant
        return np.where(pendant >= 0, keys, own.isolated[predicate.name][first]).astype(np.int32)
    s, t = sorts
    status = found.pairs[s, t]
    pairs = status.kinds
    kind = pairs.default[np.ix_(pairs.profiles[0][cells.first(s)], pairs.profiles[1][cells.first(t)])]
    a, b, special = pairs.rows.T
    kind[cells.fine.of_sort(s)[a], cells.fine.of_sort(t)[b]] = special
    keys = np.full(kind.shape, -1, dtype=np.int32)
    if (isolated := status.isolated.get(predicate.name)) is not None:
        keys = isolated[kind]
    for table, orbit in (
        (status.on_a.get(predicate.name), _class_orbits(cells, s)[:, None]),
        (status.on_b.get(predicate.name), _class_orbits(cells, t)[None, :]),
    ):
        if table is not None:
            number = table[kind]
            first = (found.field_count + orbit * found.residual_count).astype(np.int32)
            keys = np.where(number >= 0, first + number, keys)
    return keys


def _class_orbits(cells: Cells, sort: str) -> np.ndarray:
    """For each fine class the orbit of its constants."""
    start = cells.group.quotient.start[sort]
    return groups.orbits(cells.group.quotient.group)[cells.group.of_sort(sort)[cells.first(sort)] + start]
