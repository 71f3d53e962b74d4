"""Formulas as values: walking, substituting, and the plain interpreter that everything faster is tested against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np

from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Term,
    Truth,
    Variable,
    WeightedFormula,
)


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The formulas directly inside a formula."""
    match formula:
        case Not(part):
            return (part,)
        case And(inner) | Or(inner):
            return inner
        case Implies(left, right) | Iff(left, right):
            return (left, right)
        case Exist(_, body) | Forall(_, body):
            return (body,)
    return ()


def rebuild(formula: Formula, inner: tuple[Formula, ...]) -> Formula:
    """The same connective over other parts."""
    match formula:
        case Not():
            return Not(inner[0])
        case And():
            return And(inner)
        case Or():
            return Or(inner)
        case Implies():
            return Implies(*inner)
        case Iff():
            return Iff(*inner)
        case Exist(variables, _):
            return Exist(variables, inner[0])
        case Forall(variables, _):
            return Forall(variables, inner[0])
    return formula


def atoms(formula: Formula) -> Iterator[Atom]:
    """The atoms from left to right, repetitions included."""
    if isinstance(formula, Atom):
        yield formula
    for part in parts(formula):
        yield from atoms(part)


def equalities(formula: Formula) -> Iterator[Equal]:
    """The equalities from left to right, repetitions included."""
    if isinstance(formula, Equal):
        yield formula
    for part in parts(formula):
        yield from equalities(part)


def terms(formula: Formula) -> Iterator[Term]:
    """The terms of atoms and equalities from left to right, repetitions included."""
    match formula:
        case Atom(_, args):
            yield from args
        case Equal(left, right):
            yield left
            yield right
    for part in parts(formula):
        yield from terms(part)


def quantified(formula: Formula) -> Iterator[str]:
    """The variables bound by a quantifier somewhere in the formula."""
    if isinstance(formula, Exist | Forall):
        yield from formula.variables
    for part in parts(formula):
        yield from quantified(part)


def free_variables(formula: Formula) -> tuple[str, ...]:
    """In order of first occurrence. Names are unique within a formula, so no scopes need to be kept."""
    bound = set(quantified(formula))
    names = [term.name for term in terms(formula) if isinstance(term, Variable)]
    return tuple(name for name in dict.fromkeys(names) if name not in bound)


def substitute(formula: Formula, binding: Mapping[str, Term]) -> Formula:
    """Every free occurrence of the bound names replaced."""
    if not binding:
        return formula
    match formula:
        case Atom(predicate, args):
            return Atom(predicate, tuple(_replaced(term, binding) for term in args))
        case Equal(left, right):
            return Equal(_replaced(left, binding), _replaced(right, binding))
        case Truth():
            return formula
        case Exist(variables, _) | Forall(variables, _):
            binding = {name: term for name, term in binding.items() if name not in variables}
    return rebuild(formula, tuple(substitute(part, binding) for part in parts(formula)))


def _replaced(term: Term, binding: Mapping[str, Term]) -> Term:
    return binding.get(term.name, term) if isinstance(term, Variable) else term


def replace_constants(formula: Formula, names: Mapping[Constant, str]) -> Formula:
    """Constants let loose: each one that has a name becomes that variable."""

    def loose(term: Term) -> Term:
        return Variable(names[term]) if isinstance(term, Constant) and term in names else term

    return map_terms(formula, loose)


def map_terms(formula: Formula, change: Callable[[Term], Term]) -> Formula:
    """The formula with every term of its atoms and equalities changed."""
    match formula:
        case Atom(predicate, args):
            return Atom(predicate, tuple(change(term) for term in args))
        case Equal(left, right):
            return Equal(change(left), change(right))
        case Truth():
            return formula
    return rebuild(formula, tuple(map_terms(part, change) for part in parts(formula)))


def holds(
    formula: Formula,
    binding: Mapping[str, int],
    truth: Callable[[str, tuple[int, ...]], bool],
    sizes: Mapping[str, int],
) -> bool:
    """Whether a formula is true.

    `binding` gives each free variable a constant's index, `truth(predicate, indices)` each atom its value, `sizes` each
    quantified variable the size of its sort.
    """

    def value(term: Term) -> int:
        return term.index if isinstance(term, Constant) else binding[term.name]

    match formula:
        case Truth(known):
            return known
        case Atom(predicate, args):
            return bool(truth(predicate, tuple(value(term) for term in args)))
        case Equal(left, right):
            return value(left) == value(right)
        case Not(part):
            return not holds(part, binding, truth, sizes)
        case And(inner):
            return all(holds(part, binding, truth, sizes) for part in inner)
        case Or(inner):
            return any(holds(part, binding, truth, sizes) for part in inner)
        case Implies(left, right):
            return not holds(left, binding, truth, sizes) or holds(right, binding, truth, sizes)
        case Iff(left, right):
            return holds(left, binding, truth, sizes) == holds(right, binding, truth, sizes)
        case Exist(variables, body) | Forall(variables, body):
            values = product(*(range(sizes[name]) for name in variables))
            found = (holds(body, {**binding, **dict(zip(variables, v, strict=True))}, truth, sizes) for v in values)
            return any(found) if isinstance(formula, Exist) else all(found)


def with_body(formula: WeightedFormula, body: Formula, weight: object = ...) -> WeightedFormula:
    """The same weighted formula with another body; variables that have become free are universal."""
    free = free_variables(body)
    names = dict.fromkeys([*free, *quantified(body)])
    gone = tuple(name for name in formula.plus if name not in free)
    order = [name for name in formula.sorts if name in names]
    return WeightedFormula(
        body=body,
        weight=formula.weight if weight is ... else weight,  # pyright: ignore[reportArgumentType]
        sorts={name: formula.sorts[name] for name in order},
        free=tuple(name for name in order if name in free) + gone,
        plus=formula.plus,
        source=formula.source,
        line=formula.line,
    )


def evaluate(formula: Formula, truth: Mapping[Formula, np.ndarray | bool]) -> np.ndarray | np.bool_ | bool:
    """The truth of a formula without quantifiers in all states at once, given that of its atoms and equalities."""
    match formula:
        case Truth(value):
            return np.bool_(value)
        case Atom() | Equal():
            return truth[formula]
        case Not(part):
            return np.logical_not(evaluate(part, truth))
        case Implies(left, right):
            return np.logical_or(np.logical_not(evaluate(left, truth)), evaluate(right, truth))
        case Iff(left, right):
            return np.equal(evaluate(left, truth), evaluate(right, truth))
    combine = np.logical_and if isinstance(formula, And) else np.logical_or
    assert isinstance(formula, And | Or), "quantifiers are written out before"
    total: np.ndarray | np.bool_ | bool = np.bool_(isinstance(formula, And))
    for part in formula.parts:
        total = combine(total, evaluate(part, truth))
    return total
