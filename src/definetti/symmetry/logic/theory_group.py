"""The group that symmetries of a theory generate: relabellings of predicates, each with a renaming of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from definetti import groups
from definetti.constraints.logic.ties import Image
from definetti.model.logic.formulas import map_terms, parts, rebuild
from definetti.model.logic.interchangeable import Nodes
from definetti.model.logic.theory import Atom, Constant, Formula, Not, Predicate, Term

Moves = Mapping[str, Image]  # predicates that stay as they are may be left out


@dataclass(frozen=True, eq=False)
class Relabellings:
    """Relabellings of predicates that preserve the formulas: generators and order of their group, and whether the
    search for them was `complete`."""

    generators: Sequence[Moves]
    order: int
    complete: bool


@dataclass(frozen=True, eq=False)
class TheorySymmetry:
    """A relabelling of predicates and a permutation of the constants (nodes) that preserve the model together."""

    moves: Moves
    renaming: np.ndarray


@dataclass(frozen=True, eq=False)
class TheoryGroup:
    """The group that `generators` generate beside the renamings; `order` counts its relabellings of predicates."""

    predicates: Mapping[str, Predicate]
    nodes: Nodes
    generators: tuple[TheorySymmetry, ...]
    order: int

    def restricted(self, kept: Sequence[bool]) -> TheoryGroup:
        """The group that some of the generators generate."""
        some = tuple(g for g, keep in zip(self.generators, kept, strict=True) if keep)
        return TheoryGroup(self.predicates, self.nodes, some, relabelling_count(self.predicates, some))

    @cached_property
    def starts(self) -> dict[str, int]:
        """Where the points of a predicate begin, behind those of the constants: true, false, then its arguments."""
        ends = np.cumsum([self.nodes.count, *(2 + len(p.sorts) for p in self.predicates.values())])
        return {name: int(end) for name, end in zip(self.predicates, ends, strict=False)}

    @cached_property
    def degree(self) -> int:
        return self.nodes.count + sum(2 + len(p.sorts) for p in self.predicates.values())

    @cached_property
    def group(self) -> groups.PermutationGroup:
        return groups.PermutationGroup(self.degree, tuple(groups.sparse(self.dense(g)) for g in self.generators))

    def dense(self, symmetry: TheorySymmetry) -> np.ndarray:
        """A symmetry as a permutation of constants, literals of predicates and their arguments."""
        points = np.arange(self.degree)
        points[: self.nodes.count] = symmetry.renaming
        for name, image in symmetry.moves.items():
            at, to = self.starts[name], self.starts[image.predicate]
            points[at : at + 2] = (to, to + 1) if image.sign else (to + 1, to)
            for k, place in enumerate(image.places):
                points[at + 2 + place] = to + 2 + k
        return points

    def symmetry(self, points: np.ndarray) -> TheorySymmetry:
        """The inverse of `dense`."""
        owner = {at: name for name, at in self.starts.items()}
        moves = {}
        for name, at in self.starts.items():
            to = min(int(points[at]), int(points[at + 1]))
            arity = len(self.predicates[name].sorts)
            places = np.argsort(points[at + 2 : at + 2 + arity]).tolist()
            image = Image(owner[to], tuple(places), bool(points[at] == to))
            if image != itself(self.predicates[name]):
                moves[name] = image
        return TheorySymmetry(moves, points[: self.nodes.count])

    def images(self, formula: Formula, most: int) -> list[Formula]:
        """A formula over constants and its images under the group, itself first; only itself where they are more."""
        found, waiting = {formula: None}, [formula]
        while waiting:
            here = waiting.pop()
            for g in self.generators:
                image = _renamed(relabelled(here, g.moves), self.nodes, g.renaming)
                if image not in found:
                    found[image] = None
                    waiting.append(image)
            if len(found) > most:
                return [formula]
        return list(found)

    @cached_property
    def turns(self) -> tuple[tuple[frozenset[str], bool], ...]:
        """Predicates that can be exchanged, and whether arguments are permuted on the way. A sweep that visits each of
        these sets in random order (and its arguments, too) commutes with the group."""
        names = list(self.predicates)
        pairs = [(names.index(p), names.index(i.predicate)) for g in self.generators for p, i in g.moves.items()]
        a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        of = groups.components(len(names), a, b)
        turned = {
            of[names.index(p)]
            for g in self.generators
            for p, i in g.moves.items()
            if i.places != tuple(sorted(i.places))
        }
        sets = [
            (frozenset(names[k] for k in np.flatnonzero(of == c)), c in turned) for c in range(of.max(initial=-1) + 1)
        ]
        return tuple((members, turn) for members, turn in sets if len(members) > 1 or turn)


def relabelling_count(predicates: Mapping[str, Predicate], found: Sequence[TheorySymmetry]) -> int:
    """The order of the group of relabellings alone."""
    still = tuple(TheorySymmetry(s.moves, np.zeros(0, np.int64)) for s in found)
    order = groups.order(TheoryGroup(predicates, Nodes({}, {}), still, 0).group)
    assert order is not None
    return order


def itself(predicate: Predicate) -> Image:
    return Image(predicate.name, tuple(range(len(predicate.sorts))))


def after(image: Image, moves: Moves) -> Image:
    """First one relabelling, then another."""
    then = moves.get(image.predicate)
    if then is None:
        return image
    return Image(then.predicate, tuple(image.places[k] for k in then.places), image.sign == then.sign)


def relabelled(formula: Formula, moves: Moves) -> Formula:
    """A formula with its atoms replaced by their images."""
    if isinstance(formula, Atom):
        image = moves.get(formula.predicate)
        if image is None:
            return formula
        atom = Atom(image.predicate, tuple(formula.args[k] for k in image.places))
        return atom if image.sign else Not(atom)
    if isinstance(formula, Not) and isinstance(formula.part, Atom):
        image = relabelled(formula.part, moves)
        return image.part if isinstance(image, Not) else Not(image)
    return rebuild(formula, tuple(relabelled(part, moves) for part in parts(formula)))


def _renamed(formula: Formula, nodes: Nodes, renaming: np.ndarray) -> Formula:
    def term(t: Term) -> Term:
        if not isinstance(t, Constant):
            return t
        start = nodes.start[t.sort]
        return Constant(t.sort, int(renaming[start + t.index]) - start)

    return map_terms(formula, term)


def closure(generators: Sequence[Moves]) -> list[dict[str, Image]]:
    """The group of relabellings that some generate."""
    found: dict[frozenset[tuple[str, Image]], dict[str, Image]] = {frozenset(): {}}
    waiting: list[dict[str, Image]] = [{}]
    while waiting:
        here = waiting.pop()
        for g in generators:
            moved = composed(here, g)
            key = frozenset(moved.items())
            if key not in found:
                found[key] = moved
                waiting.append(moved)
    return list(found.values())


def composed(first: Moves, then: Moves) -> dict[str, Image]:
    """First one relabelling, then another; predicates that stay as they are are left out."""
    out = {}
    for name in {**first, **then}:
        image = after(first[name], then) if name in first else then[name]
        if image != Image(name, tuple(range(len(image.places)))):
            out[name] = image
    return out
