"""Boolean expressions in negation normal form over leaves: the language of formulas inside the generator.

A leaf is a bit of the state, an equality of terms or a quantifier; a term is a variable of the formula, one of its
constants or a constant of the atom that is updated. The functions that build expressions fold constants, so that a
formula with the updated atom put in loses what the atom decides; the classes themselves fold nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

# --- terms ---


@dataclass(frozen=True)
class Term:
    """What stands at an argument; as text, the name that its value has in generated code."""

    number: int
    prefix: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.prefix}{self.number}"

    def __lt__(self, other: Term) -> bool:
        return (self.prefix, self.number) < (other.prefix, other.number)


class Argument(Term):
    """A constant of the updated atom."""

    prefix = "a"


class Slot(Term):
    """A constant of the formula: formulas that differ in these only are instances of one shape."""

    prefix = "k"


class Variable(Term):
    prefix = "v"


# --- leaves ---


@dataclass(frozen=True)
class Read:
    """An atom's bit in the state."""

    predicate: int
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Equal:
    """Two terms are the same constant; `equality` puts them in order."""

    left: Term
    right: Term

    def other(self, term: Term) -> Term:
        return self.left if self.right == term else self.right


@dataclass(frozen=True)
class Exists:
    """Some values of the variables with these numbers make the body true."""

    variables: tuple[int, ...]
    body: Expr


Leaf: TypeAlias = Read | Equal | Exists

# --- expressions ---


@dataclass(frozen=True)
class Constant:
    value: bool


@dataclass(frozen=True)
class Literal:
    leaf: Leaf
    sign: bool = True


@dataclass(frozen=True)
class And:
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Expr, ...]


@dataclass(frozen=True)
class Xor:
    left: Expr
    right: Expr


Expr: TypeAlias = Constant | Literal | And | Or | Xor
TRUE, FALSE = Constant(True), Constant(False)


def equality(a: Term, b: Term) -> Expr:
    return TRUE if a == b else Literal(Equal(*sorted((a, b))))


def negate(e: Expr) -> Expr:
    match e:
        case Constant(value):
            return FALSE if value else TRUE
        case Literal(leaf, sign):
            return Literal(leaf, not sign)
        case And(parts):
            return either(negate(p) for p in parts)
        case Or(parts):
            return both(negate(p) for p in parts)
        case Xor(left, right):
            return xor(left, negate(right))


def both(parts: Iterable[Expr]) -> Expr:
    """The conjunction. A literal among the parts is put into the others: p & (p | q) is p, p & (!p | q) is p & q."""
    return _gathered(And, parts)


def either(parts: Iterable[Expr]) -> Expr:
    """The disjunction, folded in the same way."""
    return _gathered(Or, parts)


def _gathered(kind: type[And] | type[Or], parts: Iterable[Expr]) -> Expr:
    unit, zero = (TRUE, FALSE) if kind is And else (FALSE, TRUE)
    found: list[Expr] = []
    for part in parts:
        for p in part.parts if isinstance(part, kind) else (part,):
            if p == zero or negate(p) in found:
                return zero
            if p != unit and p not in found:
                found.append(p)
    if len(found) < 2:
        return found[0] if found else unit
    single = {p.leaf: p.sign == (kind is And) for p in found if isinstance(p, Literal)}
    if not single or len(single) == len(found):
        return kind(tuple(found))
    new = [p if isinstance(p, Literal) else assign(p, single) for p in found]
    return kind(tuple(found)) if new == found else _gathered(kind, new)


def xor(a: Expr, b: Expr) -> Expr:
    if isinstance(a, Constant):
        return negate(b) if a.value else b
    if isinstance(b, Constant):
        return negate(a) if b.value else a
    if a == b:
        return FALSE
    return TRUE if a == negate(b) else Xor(a, b)


def rebuild(e: Expr, put: Callable[[Leaf, bool], Expr]) -> Expr:
    """The expression with `put(leaf, sign)` in place of each literal."""
    match e:
        case Constant():
            return e
        case Literal(leaf, sign):
            return put(leaf, sign)
        case And(parts):
            return both(rebuild(p, put) for p in parts)
        case Or(parts):
            return either(rebuild(p, put) for p in parts)
        case Xor(left, right):
            return xor(rebuild(left, put), rebuild(right, put))


def assign(e: Expr, values: dict[Leaf, bool]) -> Expr:
    """The expression where some leaves are known."""

    def put(leaf: Leaf, sign: bool) -> Expr:
        return Constant(values[leaf] == sign) if leaf in values else Literal(leaf, sign)

    return rebuild(e, put)


def leaves(e: Expr) -> Iterator[Leaf]:
    """Every leaf, in the order in which it is written; those inside quantifiers apart."""
    match e:
        case Literal(leaf):
            yield leaf
        case And(parts) | Or(parts):
            for p in parts:
                yield from leaves(p)
        case Xor(left, right):
            yield from leaves(left)
            yield from leaves(right)


def variables_of(leaf: Leaf) -> frozenset[int]:
    """The variables a leaf depends on, those bound inside it apart."""
    match leaf:
        case Read(_, terms):
            return frozenset(t.number for t in terms if isinstance(t, Variable))
        case Equal(left, right):
            return frozenset(t.number for t in (left, right) if isinstance(t, Variable))
        case Exists(variables, body):
            return frozenset().union(*(variables_of(x) for x in leaves(body))) - set(variables)


def possible(e: Expr, known: Callable[[Leaf], bool]) -> Expr:
    """An expression over known leaves that is true whenever `e` can be: unknown literals count as true.

    Sound because negation normal form is monotone in its literals; an exclusive or is kept only if wholly known.
    """
    match e:
        case Literal(leaf):
            return e if known(leaf) else TRUE
        case And(parts):
            return both(possible(p, known) for p in parts)
        case Or(parts):
            return either(possible(p, known) for p in parts)
        case Xor():
            return e if all(known(leaf) for leaf in leaves(e)) else TRUE
    return e


def conjuncts(e: Expr) -> tuple[Expr, ...]:
    return e.parts if isinstance(e, And) else (e,)


def without(e: Expr, parts: frozenset[Expr]) -> Expr:
    """The expression given that the conjuncts `parts` are true."""
    return both(p for p in conjuncts(e) if p not in parts)
