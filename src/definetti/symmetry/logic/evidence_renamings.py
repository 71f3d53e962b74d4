"""Renamings of constants that undo what a relabelling of predicates does to the evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from definetti import groups
from definetti.constraints.logic.ties import Image
from definetti.journal import Deadline
from definetti.model.logic.evidence import UNKNOWN, Relation
from definetti.model.logic.interchangeable import Nodes, class_sizes, mix
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.bliss import search
from definetti.symmetry.logic.class_permutations import Rows, quotient_graph, quotient_rows, refine
from definetti.symmetry.logic.constants import ConstantGroup
from definetti.symmetry.logic.polynomial import NamedRows, Polynomial, Relabelling
from definetti.symmetry.logic.theory_group import (
    Moves,
    Relabellings,
    TheoryGroup,
    TheorySymmetry,
    closure,
    relabelling_count,
)

MOST_ELEMENTS = 400  # relabellings for which a renaming is sought one by one
MOST_RENAMINGS = 60  # searches for a renaming
MOST_NODES = 20_000  # of a graph in which a renaming is sought


def signed_codes(codes: np.ndarray, sign: bool) -> np.ndarray:
    return codes if sign else np.where(codes == UNKNOWN, UNKNOWN, 1 - codes)


def relabelling(moves: Moves, nodes: Nodes | None = None, renaming: np.ndarray | None = None) -> Relabelling:
    """A relabelling, and a renaming if there is one, in the terms of the polynomial."""
    by_name = {name: (i.predicate, i.places, i.sign) for name, i in moves.items()}
    if nodes is None or renaming is None:
        return Relabelling(by_name)

    def constant(sort: str, index: int) -> int:
        return int(renaming[nodes.start[sort] + index]) - nodes.start[sort]

    def array(sorts: tuple[str, ...], weights: np.ndarray) -> np.ndarray:
        out = np.empty_like(weights)
        images = [renaming[nodes.start[s] : nodes.start[s] + nodes.size[s]] - nodes.start[s] for s in sorts]
        out[np.ix_(*images)] = weights
        return out

    return Relabelling(by_name, constant, array)


def moved_relations(known: Mapping[str, Relation], moves: Moves) -> dict[str, Relation]:
    """What is known after a relabelling, by the new predicate."""
    out = dict(known)
    for name, image in moves.items():
        r = known[name]
        default = int(signed_codes(np.array([r.default]), image.sign)[0])
        tuples, codes = r.tuples[:, list(image.places)], signed_codes(r.codes, image.sign)
        out[image.predicate] = Relation(image.predicate, known[image.predicate].sorts, tuples, codes, default)
    return out


def same_relations(a: Mapping[str, Relation], b: Mapping[str, Relation]) -> bool:
    return all(a[name].default == b[name].default and np.array_equal(_rows(a[name]), _rows(b[name])) for name in a)


def _rows(relation: Relation) -> np.ndarray:
    """Rows and codes in lexicographic order."""
    whole = np.concatenate([relation.tuples, relation.codes[:, None]], axis=1).astype(np.int64)
    return whole[np.lexsort(whole.T)]


def renamed_relations(known: Mapping[str, Relation], nodes: Nodes, renaming: np.ndarray) -> dict[str, Relation]:
    out = {}
    for name, r in known.items():
        start = np.array([nodes.start[s] for s in r.sorts], dtype=np.int64)
        tuples = (renaming[r.tuples + start] - start).astype(np.int32) if r.sorts else r.tuples
        out[name] = Relation(name, r.sorts, tuples, r.codes, r.default)
    return out


@dataclass(frozen=True, eq=False)
class Lift:
    """Which relabellings become symmetries of the model with its evidence, and by which renamings."""

    model: MarkovLogic
    form: Polynomial
    strict: ConstantGroup
    deadline: Deadline

    @property
    def known(self) -> Mapping[str, Relation]:
        return self.model.knowledge.relations

    def group(self, by: Relabellings) -> TheoryGroup | None:
        """With more than a few relabellings only the generators are tried."""
        identity = np.arange(self.strict.nodes.count)
        if all(self._holds(moves, identity) for moves in by.generators):
            found = [TheorySymmetry(moves, identity) for moves in by.generators]
            order = by.order if by.complete else relabelling_count(self.model.predicates, found)
            return TheoryGroup(self.model.predicates, self.strict.nodes, tuple(found), order)
        few = by.complete and by.order <= MOST_ELEMENTS
        waiting = sorted(closure(by.generators), key=len) if few else by.generators  # few moved predicates first
        found, reached, left = [], {frozenset[tuple[str, Image]]()}, MOST_RENAMINGS
        for moves in waiting:
            if few and frozenset(moves.items()) in reached:
                continue
            lifted = TheorySymmetry(moves, identity) if self._holds(moves, identity) else None
            if lifted is None and left and not self.deadline.passed():
                lifted, left = self._with_renaming(moves), left - 1
            if lifted is not None:
                found.append(lifted)
                if few:
                    reached = {frozenset(m.items()) for m in closure([s.moves for s in found])}
        if not found:
            return None
        return TheoryGroup(
            self.model.predicates, self.strict.nodes, tuple(found), relabelling_count(self.model.predicates, found)
        )

    def _holds(self, moves: Moves, renaming: np.ndarray) -> bool:
        """The check that every symmetry has to pass."""
        nodes, still = self.strict.nodes, bool((renaming == np.arange(len(renaming))).all())
        known = {name: self.known[name] for name in self.known if name in moves or not still}
        evidence = renamed_relations(moved_relations(known, moves), nodes, renaming)
        return same_relations(known, evidence) and self.form.preserved(relabelling(moves, nodes, renaming))

    def _with_renaming(self, moves: Moves) -> TheorySymmetry | None:
        renaming = self._renaming(moves)
        if renaming is None or not self._holds(moves, renaming):
            return None
        return TheorySymmetry(moves, renaming)

    def _renaming(self, moves: Moves) -> np.ndarray | None:
        """A map of classes of interchangeable constants onto each other that undoes what a relabelling does to the
        evidence: an automorphism that exchanges two copies of the constants, the second with relabelled evidence."""
        nodes, classes = self.strict.nodes, self.strict.classes
        other = moved_relations(self.known, moves)
        if any(self.known[name].default != other[name].default for name in other):
            return None
        sizes = class_sizes(nodes, classes)
        start, count = self.strict.quotient.start, sum(len(k) for k in sizes.values())
        if not 0 < 8 * count <= MOST_NODES:
            return None
        rows = self._copies(moves, other, start, count)
        sort = np.repeat(np.arange(len(sizes)), [len(k) for k in sizes.values()])
        keys = np.tile(mix(sort, np.concatenate([np.zeros(0, np.int64), *sizes.values()])), 2)
        colours = refine(keys, rows)
        if not np.array_equal(np.bincount(colours[:count]), np.bincount(colours[count:])):
            return None
        graph_colours, edges = quotient_graph(np.arange(2 * count), colours, rows)
        total = len(graph_colours)
        hubs = np.stack([total + np.arange(2 * count) // count, np.arange(2 * count)], 1)
        graph_colours = np.append(graph_colours, [graph_colours.max() + 1] * 2)
        if len(graph_colours) > MOST_NODES:
            return None
        for points, images in search(np.concatenate([edges, hubs]), graph_colours, self.deadline.left).generators:
            image = groups.dense((points, images), len(graph_colours))
            if image[total] == total + 1:  # relabelled evidence is where the evidence was
                return self._of_classes(image[count : 2 * count])
        return None

    def _copies(self, moves: Moves, other: Mapping[str, Relation], start: dict[str, int], count: int) -> list[Rows]:
        """What is said of the classes of constants in the first copy and, relabelled, in the second: by evidence, and
        by formulas that name constants or weigh them. All rows of one length are put together."""
        there = self.form.rows(relabelling(moves))
        pairs = [(self.known[name], other[name]) for name in self.known]
        codes: dict[tuple[object, ...], int] = {}
        for key in self._named.keys() | there.keys():
            here = _constants_relation(self._named.get(key, {}), codes)
            pairs.append((here, _constants_relation(there.get(key, {}), codes)))
        found: dict[int, list[Rows]] = defaultdict(list)
        for number, pair in enumerate(pairs):
            for copy, relation in enumerate(pair):
                if relation.sorts and len(relation.tuples):
                    rows = quotient_rows(self.strict.nodes, relation, self.strict.classes, start, number)
                    found[len(relation.sorts)].append(rows.shifted(copy * count))
        return [
            Rows(np.concatenate([r.nodes for r in some]), np.concatenate([r.label for r in some]))
            for some in found.values()
        ]

    @cached_property
    def _named(self) -> NamedRows:
        return self.form.rows(relabelling({}))

    def _of_classes(self, image: np.ndarray) -> np.ndarray:
        """A permutation of classes as one of constants, those of a class in order."""
        group = self.strict
        renaming = np.arange(group.nodes.count)
        for sort, start in group.quotient.start.items():
            for number in range(len(group.sizes[sort])):
                to = int(image[start + number]) - start
                at = group.nodes.start[sort]
                renaming[at + group.members(sort, number)] = at + group.members(sort, to)
        return renaming


def _constants_relation(
    rows: Mapping[tuple[tuple[str, int], ...], list[Fraction | float]], codes: dict[tuple[object, ...], int]
) -> Relation:
    sorts = tuple(sort for sort, _ in next(iter(rows), ()))
    tuples = np.array([[c for _, c in row] for row in rows], dtype=np.int32).reshape(len(rows), len(sorts))
    colour = [codes.setdefault(tuple(sorted(some)), len(codes)) for some in rows.values()]
    return Relation("constants", sorts, tuples, np.array(colour, dtype=np.int32))
