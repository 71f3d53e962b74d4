"""Interchangeable constants: those that some transposition swaps without changing any relation.

Being interchangeable is an equivalence, and the symmetric groups on its classes generate a normal subgroup of all
renamings. Candidates come from hashes of each constant's rows; the classes are then checked exactly, in `invariant`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from definetti import integer_rows
from definetti.integer_rows import distinct
from definetti.model.logic.atom_orbits import cell_sizes, patterns_of
from definetti.model.logic.evidence import Relation

MOST_LABELS = 64  #: kinds of pairs among which mutually related twins are sought; the graph's group finds the rest


@dataclass(frozen=True, eq=False)
class Nodes:
    """The constants of all sorts in one numbering: constant c of sort s is node `start[s] + c`."""

    start: Mapping[str, int]
    size: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.size.values())

    def of(self, relation: Relation) -> np.ndarray:
        """The relation's rows as nodes."""
        return relation.tuples.astype(np.int64) + np.array([self.start[s] for s in relation.sorts], dtype=np.int64)

    def sort_numbers(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.size)), list(self.size.values()))


def nodes_of(sizes: Mapping[str, int]) -> Nodes:
    ends = np.cumsum([0, *sizes.values()])
    return Nodes({sort: int(ends[k]) for k, sort in enumerate(sizes)}, dict(sizes))


# --- hashes --------------------------------------------------------------------------------------------------


def mix(*parts: np.ndarray | int) -> np.ndarray:
    """A 64-bit hash of a few integers (splitmix64), broadcast over arrays."""
    h = np.asarray(0x9E3779B97F4A7C15, dtype=np.uint64)
    with np.errstate(over="ignore"):  # of single numbers
        for part in parts:
            h = integer_rows.mix(h ^ np.asarray(part).astype(np.uint64))
    return h


def add_by(keys: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Sums modulo 2^64 of `values` by `keys`: the hash of a multiset."""
    out = np.zeros(count, dtype=np.uint64)
    if len(keys):
        order = np.argsort(keys, kind="stable")
        sorted_keys = keys[order]
        starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]])
        out[sorted_keys[starts]] = np.add.reduceat(values[order], starts)
    return out


def row_views(nodes: np.ndarray, marks: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row as each of its nodes sees it: its own places, and the marks of the others at theirs."""
    focal, views = [], []
    for j in range(nodes.shape[1]):
        own = nodes == nodes[:, j : j + 1]
        first = ~own[:, :j].any(axis=1)
        seen = mix(label, 1)
        for i in range(nodes.shape[1]):
            seen = mix(seen, np.where(own[:, i], np.uint64(1), mix(marks[nodes[:, i]], 2)))
        focal.append(nodes[first, j])
        views.append(seen[first])
    return np.concatenate(focal), np.concatenate(views)


# --- twins ---------------------------------------------------------------------------------------------------


def twins(nodes: Nodes, relations: Sequence[Relation]) -> np.ndarray:
    """The class of each node, numbered from 0 within its sort in order of first members."""
    for salt in range(3):  # a collision of hashes is next to impossible, and harmless: the check finds it
        classes = number_classes(nodes, _candidates(nodes, relations, salt))
        if invariant(nodes, relations, classes):
            return classes
    return number_classes(nodes, np.arange(nodes.count))


def _candidates(nodes: Nodes, relations: Sequence[Relation], salt: int) -> np.ndarray:
    marks = mix(np.arange(nodes.count), salt)
    seen = mix(nodes.sort_numbers(), salt + 3)
    for number, relation in enumerate(relations):
        focal, views = row_views(nodes.of(relation), marks, mix(number, relation.codes))
        with np.errstate(over="ignore"):
            seen = seen + add_by(focal, views, nodes.count)
    group = _first_equal(seen)  # twins that no row relates to each other
    for label in _mutual_labels(nodes, relations):
        _join_related(group, seen, marks, *label)
    return group


def _first_equal(keys: np.ndarray) -> np.ndarray:
    """For each element the first one with an equal key."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse]


def _mutual_labels(nodes: Nodes, relations: Sequence[Relation]) -> list[tuple[np.ndarray, list[tuple[int, int, int]]]]:
    """The kinds of symmetric pairs: (nodes that are in one, the rows (relation, code, own place) that make it)."""
    left, right, view, rows = [], [], [], []
    for number, relation in enumerate(relations):
        if len(relation.sorts) == 2 and relation.sorts[0] == relation.sorts[1]:
            pair = nodes.of(relation)[apart := relation.tuples[:, 0] != relation.tuples[:, 1]]
            for place in (0, 1):
                left.append(pair[:, place])
                right.append(pair[:, 1 - place])
                view.append(mix(number, relation.codes[apart], place))
                rows.append(np.stack([np.full(len(pair), number), relation.codes[apart], np.full(len(pair), place)], 1))
    if not left:
        return []
    a, b, views = np.concatenate(left), np.concatenate(right), np.concatenate(view)
    keys, inverse = np.unique(a * nodes.count + b, return_inverse=True)
    label = add_by(inverse, views, len(keys))
    mirror = np.searchsorted(keys, keys % nodes.count * nodes.count + keys // nodes.count)
    mutual = label == label[mirror]
    kinds, counts = np.unique(label[mutual], return_counts=True)
    every = np.concatenate(rows)
    found = []
    for kind in kinds[np.argsort(-counts, kind="stable")][:MOST_LABELS]:
        pairs = np.flatnonzero(mutual & (label == kind))
        made = [tuple(row) for row in every[inverse == pairs[0]].tolist()]
        found.append((np.unique(keys[pairs] // nodes.count), made))
    return found


def _join_related(
    group: np.ndarray, seen: np.ndarray, marks: np.ndarray, members: np.ndarray, rows: list[tuple[int, int, int]]
) -> None:
    """Twins all related to one another in the same way see the same once each is related to itself, too."""
    completed = seen[members].copy()
    for number, code, place in rows:
        view = mix(mix(number, code), 1)
        for i in (0, 1):
            view = mix(view, 1) if i == place else mix(view, mix(marks[members], 2))
        with np.errstate(over="ignore"):
            completed += view
    first = members[_first_equal(completed)]
    alone = np.bincount(group, minlength=len(group)) == 1
    joined = (first != members) & alone[members] & alone[first]
    group[members[joined]] = first[joined]


def number_classes(nodes: Nodes, group: np.ndarray) -> np.ndarray:
    """Classes of equal `group`, numbered from 0 within each sort in order of first members."""
    classes = np.empty(nodes.count, dtype=np.int32)
    for sort, start in nodes.start.items():
        part = slice(start, start + nodes.size[sort])
        _, first, inverse = np.unique(group[part], return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int32)
        rank[np.argsort(first)] = np.arange(len(first))
        classes[part] = rank[inverse]
    return classes


def class_sizes(nodes: Nodes, classes: np.ndarray) -> dict[str, np.ndarray]:
    return {s: np.bincount(classes[nodes.start[s] : nodes.start[s] + k]) for s, k in nodes.size.items()}


def cells_of(nodes: Nodes, relation: Relation, classes: np.ndarray) -> np.ndarray:
    """Each row's cell and colour: the classes of its constants, the pattern of its equalities, its code."""
    columns = [classes[column] for column in nodes.of(relation).T]
    return np.stack([*columns, patterns_of(relation.sorts, relation.tuples), relation.codes], axis=1)


def invariant(nodes: Nodes, relations: Sequence[Relation], classes: np.ndarray) -> bool:
    """Whether all permutations within classes preserve all relations: each cell is full of one colour, or empty."""
    sizes = class_sizes(nodes, classes)
    for relation in relations:
        cells, _, counts = distinct(cells_of(nodes, relation, classes))
        for pattern in np.unique(cells[:, -2]):
            here = cells[:, -2] == pattern
            full = cell_sizes(
                relation.sorts,
                [sizes[s] for s in relation.sorts],
                list(cells[here, :-2].T),
                int(pattern),
            )
            if not np.array_equal(full, counts[here]):
                return False
    return True
