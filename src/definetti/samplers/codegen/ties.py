"""Tied atoms inside the kernel: a class of tied atoms is one site.

An image (predicate, places, sign) is the atom whose j-th argument is the site's argument places[j]. Bits of tied
atoms are read in one canonical way, so that equal things look equal; atoms of a tied predicate whose diagonal is
known to be false carry the inequality of their arguments, so that places equal by a formula's own symmetry are found
and computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

from definetti.samplers.codegen.expressions import (
    FALSE,
    TRUE,
    Expr,
    assign,
    both,
    either,
    leaves,
    literal,
    negate,
    rebuild,
)
from definetti.samplers.codegen.shapes import Shape, Signature, Term

Image = tuple[int, tuple[int, ...], bool]
MOST_RENAMED = 3  # free variables whose renamings are tried


@dataclass(frozen=True)
class Classes:
    """The tied classes of a theory, by leading predicate, and which arguments of its atoms are never equal."""

    images: Mapping[int, tuple[Image, ...]] = field(default_factory=dict)
    leader: Mapping[int, int] = field(default_factory=dict)
    apart: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def of(self, predicate: int) -> tuple[Image, ...]:
        """The images of a site of this predicate; nothing where it is not tied."""
        return self.images.get(predicate, ())

    def read(self, p: int, terms: tuple[Term, ...]) -> Expr:
        """An atom's truth as an expression over the canonical one of its tied atoms."""
        if p not in self.leader:
            return literal(("r", p, terms))
        images = self.images[self.leader[p]]
        _, places, sign = next(image for image in images if image[0] == p)
        site = [terms[places.index(j)] for j in range(len(terms))]
        same = [((q, tuple(site[j] for j in inner)), value == sign) for q, inner, value in images]
        (q, chosen), value = min(same)
        unequal = [
            literal(("=", *sorted((terms[i], terms[j]))), False)
            for i, j in self.apart.get(p, ())
            if terms[i] != terms[j]
        ]
        if any(terms[i] == terms[j] for i, j in self.apart.get(p, ())):
            return FALSE
        return both([literal(("r", q, chosen), value), *unequal])

    def prune(self, e: Expr, known: Mapping[tuple, bool]) -> Expr:
        """With an equality put to false wherever the expression is false where it holds (`known`: of constants)."""
        for leaf in dict.fromkeys(x for x in leaves(e) if x[0] == "="):
            left, right = leaf[1:]
            if right[0] == "v" and assign(self._joined(e, right, left), dict(known)) == FALSE:
                e = both([assign(e, {leaf: False}), literal(leaf, False)])
        return self.lean(e)

    def _joined(self, e: Expr, old: Term, new: Term) -> Expr:
        """The expression where two terms are the same constant."""

        def put(leaf: tuple, sign: bool) -> Expr:
            if leaf[0] == "E":
                return literal(leaf, sign)
            terms = tuple(new if t == old else t for t in (leaf[2] if leaf[0] == "r" else leaf[1:]))
            if leaf[0] == "r":
                read = self.read(leaf[1], terms)
            else:
                read = TRUE if terms[0] == terms[1] else literal(("=", *sorted(terms)))
            return read if sign else negate(read)

        return rebuild(e, put)

    def lean(self, e: Expr) -> Expr:
        """Without inequalities that an atom beside them says anyway."""
        if e[0] not in "&|":
            return e
        parts = [self.lean(part) for part in e[1]]
        held = e[0] == "&"
        said = set()
        for part in parts:
            if part[0] == "l" and part[1][0] == "r" and part[2] == held:
                for i, j in self.apart.get(part[1][1], ()):
                    said.add(("=", *sorted((part[1][2][i], part[1][2][j]))))
        kept = [part for part in parts if not (part[0] == "l" and part[1] in said and part[2] != held)]
        return (both if held else either)(kept)


def classes_of(signatures: tuple[Signature, ...]) -> Classes:
    images = {p: s.images for p, s in enumerate(signatures) if s.images}
    leader = {q: p for p, some in images.items() for q, _, _ in some}
    apart = {q: signatures[q].apart for q in leader if signatures[q].apart}
    return Classes(images, leader, apart)


# --- places that are equal by a formula's own symmetry ---------------------------------------------------------------


def merged(places: list, shapes: tuple[Shape, ...]) -> list:
    """Places of soft formulas whose effect is the same, as one that counts several times."""
    found: dict[object, int] = {}
    out: list = []
    for place in places:
        shape = shapes[place.shape]
        if shape.hard or shape.slots or shape.plus or len(place.rest) > MOST_RENAMED:
            out.append(place)
            continue
        key = min(_key(place, shape, order) for order in permutations(place.rest))
        if key in found:
            at = found[key]
            out[at] = replace(out[at], times=out[at].times + 1)
        else:
            found[key] = len(out)
            out.append(place)
    return out


def _key(place: object, shape: Shape, order: tuple[int, ...]) -> tuple:
    new = {("v", v): ("v", -1 - k) for k, v in enumerate(order)}
    goals = tuple(sorted((name, repr(sorted_expr(renamed(e, new)))) for name, e in place.goals))  # pyright: ignore
    sorts = tuple(shape.sorts[v] for v in order)
    return (repr((place.shape, place.guards, sorts)), goals)  # pyright: ignore


def renamed(e: Expr, new: Mapping[Term, Term]) -> Expr:
    def leaf(x: tuple) -> tuple:
        if x[0] == "r":
            return ("r", x[1], tuple(new.get(t, t) for t in x[2]))
        if x[0] == "=":
            return ("=", *sorted(new.get(t, t) for t in x[1:]))
        return ("E", x[1], renamed(x[2], new))

    return rebuild(e, lambda x, sign: literal(leaf(x), sign))


def sorted_expr(e: Expr) -> Expr:
    """Parts in a fixed order, so that equal expressions are equal."""
    if e[0] in "&|":
        return (e[0], tuple(sorted((sorted_expr(p) for p in e[1]), key=repr)))
    if e[0] == "x":
        return ("x", *sorted((sorted_expr(e[1]), sorted_expr(e[2])), key=repr))
    return e
