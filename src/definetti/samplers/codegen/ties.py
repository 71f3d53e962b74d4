"""Tied atoms: hard formulas make all atoms of a class equal (or opposite), and the class is updated as one site.

Bits of tied atoms are read in one canonical way, so that equal things look equal; atoms of a tied predicate whose
diagonal is known to be false carry the inequality of their arguments, so that places equal by a formula's own symmetry
are found and computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from definetti.samplers.codegen.expressions import (
    FALSE,
    And,
    Equal,
    Exists,
    Expr,
    Leaf,
    Literal,
    Or,
    Read,
    Term,
    Variable,
    assign,
    both,
    either,
    equality,
    leaves,
    negate,
    rebuild,
)
from definetti.samplers.codegen.shapes import Image, Signature


@dataclass(frozen=True)
class Classes:
    """The tied classes of a theory, by leading predicate, and which arguments of its atoms are never equal."""

    images: Mapping[int, tuple[Image, ...]] = field(default_factory=dict)
    leader: Mapping[int, int] = field(default_factory=dict)
    apart: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def of(self, predicate: int) -> tuple[Image, ...]:
        """The images of a site of this predicate; nothing where it is not tied."""
        return self.images.get(predicate, ())

    def unequal(self, p: int, terms: tuple[Term, ...]) -> list[Expr]:
        """What an atom of a tied predicate says by being true: some of its arguments differ."""
        return [negate(equality(terms[i], terms[j])) for i, j in self.apart.get(p, ())]

    def read(self, p: int, terms: tuple[Term, ...]) -> Expr:
        """An atom's truth as an expression over the canonical one of its tied atoms."""
        if p not in self.leader:
            return Literal(Read(p, terms))
        images = self.images[self.leader[p]]
        own = next(image for image in images if image.predicate == p)
        site = [terms[own.places.index(j)] for j in range(len(terms))]
        same = [((i.predicate, tuple(site[j] for j in i.places)), i.sign == own.sign) for i in images]
        (q, chosen), value = min(same)
        return both([Literal(Read(q, chosen), value), *self.unequal(p, terms)])

    def prune(self, e: Expr, known: Mapping[Leaf, bool]) -> Expr:
        """With an equality put to false wherever the expression is false where it holds (`known`: of constants)."""
        for leaf in dict.fromkeys(leaves(e)):
            if not isinstance(leaf, Equal) or not isinstance(leaf.right, Variable):
                continue
            if assign(self._joined(e, leaf.right, leaf.left), dict(known)) == FALSE:
                e = both([assign(e, {leaf: False}), Literal(leaf, False)])
        return self._lean(e)

    def _joined(self, e: Expr, old: Term, new: Term) -> Expr:
        """The expression where two terms are the same constant."""

        def put(leaf: Leaf, sign: bool) -> Expr:
            match leaf:
                case Exists():
                    return Literal(leaf, sign)
                case Read(p, terms):
                    read = self.read(p, tuple(new if t == old else t for t in terms))
                case Equal(left, right):
                    read = equality(*(new if t == old else t for t in (left, right)))
            return read if sign else negate(read)

        return rebuild(e, put)

    def _lean(self, e: Expr) -> Expr:
        """Without inequalities that an atom beside them says anyway."""
        if not isinstance(e, And | Or):
            return e
        held = isinstance(e, And)
        parts = [self._lean(part) for part in e.parts]
        said: set[Expr] = set()
        for part in parts:
            match part:
                case Literal(Read(p, terms), sign) if sign == held:
                    said.update(self.unequal(p, terms))
        kept = [part for part in parts if (part if held else negate(part)) not in said]
        return both(kept) if held else either(kept)


def classes_of(signatures: tuple[Signature, ...]) -> Classes:
    images = {p: s.images for p, s in enumerate(signatures) if s.images}
    leader = {image.predicate: p for p, some in images.items() for image in some}
    apart = {q: signatures[q].apart for q in leader if signatures[q].apart}
    return Classes(images, leader, apart)
