"""From a Markov logic network to the shapes of its formulas: what the kernel's code depends on, apart from its data.

Names become numbers here and never come back: sorts, predicates and variables are counted, constants of formulas
become slots. Formulas that differ in constants or weights only are instances of one shape: one piece of code, with
arrays. A shape's body is an expression in negation normal form, otherwise as the formula was written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic import theory
from definetti.samplers.codegen.expressions import (
    And,
    Constant,
    Exists,
    Expr,
    Literal,
    Or,
    Read,
    Slot,
    Term,
    Variable,
    Xor,
    equality,
    negate,
)


@dataclass(frozen=True)
class Shape:
    """A formula's structure. `sorts` of all variables, free ones first; `plus` variables index the weight."""

    body: Expr
    sorts: tuple[int, ...]
    free: int
    plus: tuple[int, ...]
    slots: tuple[int, ...]
    hard: bool

    @property
    def single(self) -> bool:
        """One instance with one weight: its groundings can be counted in integers."""
        return not self.slots and not self.plus


@dataclass(frozen=True)
class Image:
    """An atom of a class of tied atoms: its j-th argument is the site's argument places[j]; its value that of the site,
    or the opposite without `sign`."""

    predicate: int
    places: tuple[int, ...]
    sign: bool = True


@dataclass(frozen=True)
class Signature:
    """A predicate's structure: sorts of its arguments, places of `!` arguments, and whether it has sites of its own.

    `images`: of a predicate that leads a class of tied atoms, all of the class, itself first; `apart`: pairs of
    arguments between which a tied predicate's atoms are known to be false where they are equal.
    """

    sorts: tuple[int, ...]
    exclusive: tuple[int, ...] = ()
    free: bool = True
    images: tuple[Image, ...] = ()
    apart: tuple[tuple[int, int], ...] = ()

    @property
    def home(self) -> tuple[int, ...]:
        """The orientation in which the predicate is always kept: words along the last argument."""
        return (len(self.sorts) - 1,) if self.sorts else ()


@dataclass(frozen=True)
class Theory:
    """All that the code depends on. `words` of a sort is the number of machine words of a row if small, else 0."""

    words: tuple[int, ...]
    signatures: tuple[Signature, ...]
    shapes: tuple[Shape, ...]
    observed: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class Instances:
    """The formulas of one shape: constants in its slots, and a weight (an array with `+`; hard formulas: zero)."""

    constants: np.ndarray  # int32[m, slots]
    weights: np.ndarray  # float64[m, sizes of the plus variables]


@dataclass
class _Numbering:
    """Predicates by name; variables and slots of one formula, counted in order of first occurrence."""

    predicates: dict[str, int]
    variables: dict[str, int]
    slots: dict[tuple[str, int], int]

    def term(self, t: theory.Term) -> Term:
        if isinstance(t, theory.Variable):
            return Variable(self.variables[t.name])
        return Slot(self.slots.setdefault((t.sort, t.index), len(self.slots)))

    def exists(self, names: tuple[str, ...], body: theory.Formula, sign: bool) -> Exists:
        return Exists(tuple(self.variables[x] for x in names), self.expression(body, sign))

    def expression(self, f: theory.Formula, sign: bool = True) -> Expr:
        """The formula (or its negation, without `sign`); nothing is folded: every occurrence stays."""
        match f:
            case theory.Truth(value):
                return Constant(value == sign)
            case theory.Atom(predicate, args):
                return Literal(Read(self.predicates[predicate], tuple(self.term(t) for t in args)), sign)
            case theory.Equal(left, right):
                same = equality(self.term(left), self.term(right))
                return same if sign else negate(same)
            case theory.Not(part):
                return self.expression(part, not sign)
            case theory.And(parts) | theory.Or(parts):
                kind = And if isinstance(f, theory.And) == sign else Or
                return kind(tuple(self.expression(p, sign) for p in parts))
            case theory.Implies(left, right):
                return (Or if sign else And)((self.expression(left, not sign), self.expression(right, sign)))
            case theory.Iff(left, right):
                return Xor(self.expression(left), self.expression(right, not sign))
            case theory.Exist(names, body):
                return Literal(self.exists(names, body, True), sign)
            case theory.Forall(names, body):
                return Literal(self.exists(names, body, False), not sign)
        raise ModelError(f"a formula holds {f!r}, which is no formula node")


def shape_of(
    formula: theory.WeightedFormula, sort_number: dict[str, int], predicates: dict[str, int]
) -> tuple[Shape, tuple[int, ...]]:
    """The shape of a formula and the constants in its slots."""
    names = list(formula.free) + [x for x in formula.sorts if x not in formula.free]
    numbering = _Numbering(predicates, {x: i for i, x in enumerate(names)}, {})
    body = numbering.expression(formula.body)
    plus = tuple(numbering.variables[x] for x in formula.plus)
    slots = tuple(sort_number[sort] for sort, _ in numbering.slots)
    sorts = tuple(sort_number[formula.sorts[x]] for x in names)
    shape = Shape(body, sorts, len(formula.free), plus, slots, formula.hard)
    return shape, tuple(index for _, index in numbering.slots)


def shapes_of(
    model: theory.MarkovLogic, formulas: tuple[theory.WeightedFormula, ...]
) -> tuple[tuple[Shape, ...], tuple[Instances, ...]]:
    """The distinct shapes of the formulas, each with its instances; equal instances have their weights added."""
    sort_number = {name: i for i, name in enumerate(model.sorts)}
    predicates = {name: i for i, name in enumerate(model.predicates)}
    sizes = [s.size for s in model.sorts.values()]
    found: dict[Shape, dict[tuple[int, ...], np.ndarray]] = {}
    for formula in formulas:
        shape, constants = shape_of(formula, sort_number, predicates)
        box = tuple(sizes[shape.sorts[v]] for v in shape.plus)
        weight = np.asarray(0.0 if formula.weight is None else formula.weight, dtype=float)
        if weight.shape not in ((), box) or not np.isfinite(weight).all():
            raise ModelError(
                f"the weight of {formula.source or 'a formula'!r} has shape {weight.shape} or is not finite; "
                f"its `+` variables ask for finite numbers of shape {box}"
            )
        group = found.setdefault(shape, {})
        group[constants] = group.get(constants, 0.0) + np.broadcast_to(weight, box)
    instances = []
    for shape, group in found.items():
        constants = np.array(list(group), dtype=np.int32).reshape(len(group), len(shape.slots))
        instances.append(Instances(constants, np.stack([np.asarray(w) for w in group.values()])))
    return tuple(found), tuple(instances)
