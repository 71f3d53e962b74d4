"""From raw formulas to formulas: which predicate, which variable, which sort.

`annotate` binds every variable, infers sorts from the places where terms stand, and writes them into the raw terms; it
needs the predicates only, so that it can run before all constants are known. `lower` makes the final formula.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lark import Token

from definetti.errors import ParseError, UnknownName, suggestion
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
    Predicate,
    Sort,
    Term,
    Truth,
    Variable,
)
from definetti.readers.logic.syntax import Raw, RawTerm, Source

MOST_STARS = 10


class UnknownPlace(ParseError, UnknownName):  # pyright: ignore[reportUnsafeMultipleInheritance]
    """A name that the model does not have, with the place where it stands."""


@dataclass(slots=True)
class Binder:
    """One variable of a formula: free, or bound by one quantifier."""

    name: str
    token: Token
    quantified: bool
    sort: str | None = None
    where: Token | None = None  # the place that decided its sort
    plus: Token | None = None


@dataclass
class Annotated:
    """What is known of a formula before its constants have numbers."""

    source: Source
    raw: Raw
    binders: list[Binder] = field(default_factory=list)  # in order of first occurrence
    constants: list[RawTerm] = field(default_factory=list)  # those whose sort is known
    equalities: list[Raw] = field(default_factory=list)
    stars: list[Raw] = field(default_factory=list)

    @property
    def free(self) -> list[Binder]:
        return [binder for binder in self.binders if not binder.quantified]


# --- variables and sorts ----------------------------------------------------------------------------------------------


def annotate(source: Source, raw: Raw, predicates: Mapping[str, Predicate]) -> Annotated:
    """Bind variables and infer sorts. Errors: unknown predicate, wrong number of arguments, clash of sorts."""
    found = Annotated(source, raw)
    _walk(raw, {}, found, predicates)
    for equality in found.equalities:
        _check_equality(found, equality)
    for binder in found.binders:
        if binder.sort is None:
            message = f"{binder.name} stands in no predicate, so its sort is unknown"
            raise source.error_at(message, binder.token)
    _rename_apart(found)
    if len(found.stars) > MOST_STARS:
        message = f"more than {MOST_STARS} atoms with * would make {2 ** len(found.stars)} formulas"
        raise source.error_at(message, found.stars[0].token)
    return found


def _walk(raw: Raw, scope: dict[str, Binder], found: Annotated, predicates: Mapping[str, Predicate]) -> None:
    if raw.kind == "atom":
        _walk_atom(raw, scope, found, predicates)
    elif raw.kind in ("equal", "unequal"):
        for term in raw.parts:
            _bind(term, scope, found)
        found.equalities.append(raw)
    elif raw.kind in ("exist", "forall"):
        raw.binders = [_quantify(found, token) for token in raw.variables]
        names = [binder.name for binder in raw.binders]
        if len(set(names)) < len(names):
            raise found.source.error_at("a quantifier names a variable twice", raw.variables[-1])
        _walk(raw.parts[0], {**scope, **dict(zip(names, raw.binders, strict=True))}, found, predicates)
    else:
        for part in raw.parts:
            _walk(part, scope, found, predicates)


def _quantify(found: Annotated, token: Token) -> Binder:
    if token[0].isupper():
        raise found.source.error_at(f"{token} is a constant; a variable starts with a lower-case letter", token)
    binder = Binder(str(token), token, True)
    found.binders.append(binder)
    return binder


def is_truth(raw: Raw, predicates: Mapping[str, Predicate]) -> bool:
    """TRUE and FALSE are formulas, unless a predicate has that name."""
    name = str(raw.token)
    return not raw.parts and name.upper() in ("TRUE", "FALSE") and name not in predicates


def _walk_atom(raw: Raw, scope: dict[str, Binder], found: Annotated, predicates: Mapping[str, Predicate]) -> None:
    source, name = found.source, str(raw.token)
    if is_truth(raw, predicates):
        raw.kind = "truth"
        return
    if name not in predicates:
        raise source.error_at(f"no predicate is called {name}{suggestion(name, predicates)}", raw.token, UnknownPlace)
    if raw.starred is not None:
        found.stars.append(raw)
    predicate = predicates[name]
    if len(raw.parts) != len(predicate.sorts):
        wanted = f"{name}({', '.join(predicate.sorts)})"
        raise source.error_at(f"{wanted} has {len(predicate.sorts)} arguments, here are {len(raw.parts)}", raw.token)
    for term, sort in zip(raw.parts, predicate.sorts, strict=True):
        if term.bang is not None:
            raise source.error_at("! after an argument belongs into a predicate's declaration", term.bang)
        binder = _bind(term, scope, found)
        if binder is None:
            term.sort = sort
            found.constants.append(term)
        elif binder.sort is None:
            binder.sort, binder.where = sort, term.token
        elif binder.sort != sort:
            place = f"line {binder.where.line}, column {binder.where.column}" if binder.where else ""
            message = f"{term.text} stands for a {binder.sort} at {place} and cannot stand for a {sort} here"
            raise source.error_at(message, term.token)


def _bind(term: RawTerm, scope: dict[str, Binder], found: Annotated) -> Binder | None:
    """The variable that a term is, or None for a constant."""
    if term.constant:
        if term.plus is not None:
            raise found.source.error_at(f"+ belongs before a variable, {term.text} is a constant", term.plus)
        return None
    binder = scope.get(term.text)
    if binder is None:
        binder = next((b for b in found.binders if b.name == term.text and not b.quantified), None)
    if binder is None:
        binder = Binder(term.text, term.token, False)
        found.binders.append(binder)
    if term.plus is not None:
        if binder.quantified:
            raise found.source.error_at(f"+ belongs before a free variable, {term.text} is quantified", term.plus)
        binder.plus = term.plus
    term.binder = binder
    return binder


def _check_equality(found: Annotated, equality: Raw) -> None:
    left, right = equality.parts
    sorts = [term.binder.sort for term in (left, right) if term.binder is not None]
    for term in (left, right):
        if term.binder is None and sorts and sorts[0] is not None:
            term.sort = sorts[0]
            found.constants.append(term)
    if len(sorts) == 2 and None not in sorts and sorts[0] != sorts[1]:
        message = f"{left.text} is a {sorts[0]} and {right.text} is a {sorts[1]}: they cannot be compared"
        raise found.source.error_at(message, equality.token)


def _rename_apart(found: Annotated) -> None:
    """No name is bound twice or both free and bound."""
    taken = {binder.name for binder in found.binders}
    seen = {binder.name for binder in found.free}
    for binder in found.binders:
        if not binder.quantified:
            continue
        if binder.name in seen:
            number = 1
            while f"{binder.name}{number}" in taken:
                number += 1
            binder.name = f"{binder.name}{number}"
            taken.add(binder.name)
        seen.add(binder.name)


# --- final formulas ---------------------------------------------------------------------------------------------------


def lower_all(found: Annotated, sorts: Mapping[str, Sort]) -> Iterator[Formula]:
    """The formula, or with * all its versions, the one without negations first."""
    for signs in range(1 << len(found.stars)):
        negated = {id(raw) for bit, raw in enumerate(found.stars) if signs >> bit & 1}
        yield _lower(found.raw, found, sorts, negated)


def _lower(raw: Raw, found: Annotated, sorts: Mapping[str, Sort], negated: set[int]) -> Formula:
    if raw.kind == "truth":
        return Truth(str(raw.token).upper() == "TRUE")
    if raw.kind == "atom":
        atom = Atom(str(raw.token), tuple(_term(term, found, sorts) for term in raw.parts))
        return Not(atom) if id(raw) in negated else atom
    if raw.kind in ("equal", "unequal"):
        formula = _lower_equality(raw, found, sorts)
        return formula if raw.kind == "equal" else Not(formula)
    inner = tuple(_lower(part, found, sorts, negated) for part in raw.parts)
    match raw.kind:
        case "not":
            return Not(inner[0])
        case "and":
            return And(inner)
        case "or":
            return Or(inner)
        case "implies":
            return Implies(*inner)
        case "iff":
            return Iff(*inner)
    kind = Exist if raw.kind == "exist" else Forall
    return kind(tuple(binder.name for binder in raw.binders), inner[0])


def _lower_equality(raw: Raw, found: Annotated, sorts: Mapping[str, Sort]) -> Formula:
    left, right = raw.parts
    if left.binder is None and right.binder is None:  # two constants: no place decides a sort, their names decide
        for term in (left, right):
            if not any(term.text in sort.constants for sort in sorts.values()):
                raise found.source.error_at(f"no sort has the constant {term.text}", term.token, UnknownPlace)
        return Truth(left.text == right.text)
    return Equal(_term(left, found, sorts), _term(right, found, sorts))


def _term(term: RawTerm, found: Annotated, sorts: Mapping[str, Sort]) -> Term:
    if term.binder is not None:
        return Variable(term.binder.name)
    sort = sorts[term.sort or ""]
    try:
        return Constant(sort.name, sort.index(term.text))
    except UnknownName as error:
        raise found.source.error_at(str(error), term.token, UnknownPlace) from None
