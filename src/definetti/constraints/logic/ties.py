"""Atoms that hard pairs tie to each other, found from the formulas alone: `E(x,y) => E(y,x).`, `P(x) <=> !Q(x).`

A hard clause of two literals over the same variables is an implication between atoms, for all constants. Atoms that
imply each other are tied: given the site P(a₀, …), the atom Q(a_σ(0), …) has the same value (or the opposite one).
Nothing is grounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from definetti.constraints.logic.clauses import clause_templates
from definetti.errors import TooLarge
from definetti.model.logic.evidence import UNKNOWN, row_keys
from definetti.model.logic.formulas import quantified, substitute
from definetti.model.logic.theory import Atom, Equal, Formula, MarkovLogic, Not, Variable

Literal = tuple[str, bool]
Node = tuple[str, tuple[int, ...], bool]


@dataclass(frozen=True)
class Image:
    """The atom of `predicate` whose j-th argument is the site's argument `places[j]`; its value is the site's, or the
    opposite where `sign` is false."""

    predicate: str
    places: tuple[int, ...]
    sign: bool = True


Tied = Mapping[str, tuple[Image, ...]]


def ties(model: MarkovLogic) -> dict[str, tuple[Image, ...]]:
    """leading predicate → the images of its atoms, itself first; predicates that are tied to nothing are left out."""
    implied = _implications(model)
    found: dict[str, tuple[Image, ...]] = {}
    taken: set[str] = set()
    for name, predicate in model.predicates.items():
        if name in taken or (name, True) not in implied:
            continue
        itself: Node = (name, tuple(range(len(predicate.sorts))), True)
        images = [node for node in _reached(implied, itself) if itself in _reached(implied, node)]
        others = sorted(node for node in images if node != itself)
        if others and not any(q == name and not sign for q, _, sign in others):  # P(x) <=> !P(x) is a contradiction
            found[name] = tuple(Image(*node) for node in (itself, *others))
            taken |= {q for q, _, _ in others}
    return found


def tied_classes(model: MarkovLogic) -> dict[str, tuple[Image, ...]]:
    """The ties whose known atoms are known in every image (unit propagation makes them so where it can)."""
    return {
        name: images
        for name, images in ties(model).items()
        if model.knowledge.free_count(name) and all(_agrees(model, name, image) for image in images)
    }


def _agrees(model: MarkovLogic, name: str, image: Image) -> bool:
    """Whether evidence says of each image what it says of its atom."""
    here, there = model.knowledge.relation(name), model.knowledge.relation(image.predicate)
    opposite = np.array([0, 1, UNKNOWN] if image.sign else [1, 0, UNKNOWN])
    if opposite[here.default] != there.default or len(here.codes) != len(there.codes):
        return False
    shape, rows = model.shape(image.predicate), here.tuples[:, list(image.places)]
    one, other = row_keys(shape, rows), row_keys(shape, there.tuples)
    first, second = np.argsort(one), np.argsort(other)
    same = np.array_equal(one[first], other[second])
    return same and np.array_equal(opposite[here.codes][first], there.codes[second])


def _reached(implied: Mapping[Literal, set[Node]], start: Node) -> set[Node]:
    seen, waiting = {start}, [start]
    while waiting:
        name, places, sign = waiting.pop()
        for other, inner, value in implied.get((name, sign), ()):
            node = (other, tuple(places[j] for j in inner), value)
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen


def untied_clauses(model: MarkovLogic) -> list[list[Literal]]:
    """Predicates and signs of the hard clauses that say more than a tie does; quantifiers are written out."""
    implied, found = _implications(model), []
    for template in (t for f in model.formulas if f.hard for t in clause_templates(model, f)):
        if not any(_ties(implied, one, other) for one, other in _pairs(model, template)):
            signed = [(not isinstance(x, Not), x.part if isinstance(x, Not) else x) for x in template]
            found.append([(atom.predicate, sign) for sign, atom in signed if isinstance(atom, Atom)])
    return found


def _ties(implied: Mapping[Literal, set[Node]], one: tuple, other: tuple) -> bool:
    """Whether the implication that a clause of two atoms states also holds the other way round."""
    (p, xs, s), (q, ys, t) = one, other
    reached = _reached(implied, (q, tuple(xs.index(y) for y in ys), t))
    return (p, tuple(range(len(xs))), not s) in reached


def _implications(model: MarkovLogic) -> dict[Literal, set[Node]]:
    """What each literal implies: (predicate, places of its arguments among the literal's, value)."""
    found: dict[Literal, set[Node]] = defaultdict(set)
    for formula in model.formulas:
        if not formula.hard or any(quantified(formula.body)):
            continue
        try:
            templates = clause_templates(model, formula)
        except TooLarge:
            continue
        for template in templates:
            for (p, xs, s), (q, ys, t) in _pairs(model, template):
                found[p, not s].add((q, tuple(xs.index(y) for y in ys), t))
    return found


def _pairs(model: MarkovLogic, template: tuple[Formula, ...]) -> Iterator[tuple[tuple, tuple]]:
    """A clause of two atoms over the same, all different variables, both ways round."""
    equal = [x for x in template if isinstance(x, Equal)]
    rest = [x for x in template if not isinstance(x, Equal)]
    if len(rest) != 2:
        return
    literals = []
    for x in rest:
        sign, atom = not isinstance(x, Not), x.part if isinstance(x, Not) else x
        if not isinstance(atom, Atom) or model.predicates[atom.predicate].exclusive:
            return
        names = tuple(t.name for t in atom.args if isinstance(t, Variable))
        if len(set(names)) != len(atom.args):
            return
        literals.append((atom.predicate, names, sign))
    (p, xs, s), (q, ys, t) = literals
    if set(xs) != set(ys) or not all(_idle(e, p, xs, s, q, ys, t) for e in equal):
        return
    yield literals[0], literals[1]
    yield literals[1], literals[0]


def _idle(e: Equal, p: str, xs: tuple[str, ...], s: bool, q: str, ys: tuple[str, ...], t: bool) -> bool:
    """Whether the clause says nothing where e holds: then the exception that e makes is none."""
    if not isinstance(e.left, Variable) or not isinstance(e.right, Variable):
        return False
    atoms = [
        substitute(Atom(r, tuple(map(Variable, names))), {e.left.name: e.right}) for r, names in ((p, xs), (q, ys))
    ]
    return s != t and atoms[0] == atoms[1]
