"""From annotated formulas to final ones, once all constants have numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from definetti.errors import UnknownName
from definetti.model.logic.formulas import free_variables
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
    Sort,
    Term,
    Truth,
    Variable,
)
from definetti.readers.logic.meaning import COMPARISONS, Annotated, Guard, UnknownPlace
from definetti.readers.logic.raw import Raw, RawTerm
from definetti.readers.logic.terms import COMPARED, Relations, constant_value, is_computed, number_of, variables_of


def lower_all(found: Annotated, sorts: Mapping[str, Sort], relations: Relations) -> Iterator[Formula]:
    """The formula, or with * all its versions, the one without negations first. `guards` are apart."""
    for signs in range(1 << len(found.stars)):
        negated = {id(raw) for bit, raw in enumerate(found.stars) if signs >> bit & 1}
        yield _Lower(found, sorts, relations, negated).formula(found.raw)


def lower_guards(found: Annotated, sorts: Mapping[str, Sort], relations: Relations) -> dict[str, Formula]:
    """The guards of a formula as a whole, by the variable that each gives its value."""
    lower = _Lower(found, sorts, relations, set())
    return {guard.binder.name: lower.guard(guard) for guard in found.guards}


def guarded(body: Formula, guards: Mapping[str, Formula], hard: bool) -> Formula:
    """A soft formula counts where its terms have values, a hard one is required there. Guards of terms that a part of
    the formula does not mention are left out."""
    names: list[str] = []
    waiting = [name for name in free_variables(body) if name in guards]
    while waiting:
        name = waiting.pop(0)
        if name not in names:
            names.append(name)
            waiting += [other for other in free_variables(guards[name]) if other in guards and other != name]
    if not names:
        return body
    needed = tuple(guards[name] for name in guards if name in names)
    if hard:
        return Implies(needed[0] if len(needed) == 1 else And(needed), body)
    return And((*needed, body))


@dataclass(frozen=True)
class _Lower:
    found: Annotated
    sorts: Mapping[str, Sort]
    relations: Relations
    negated: set[int]

    def formula(self, raw: Raw) -> Formula:
        if raw.kind == "truth":
            return Truth(str(raw.token).upper() == "TRUE")
        if raw.kind == "atom":
            atom = Atom(str(raw.token), tuple(self.term(term) for term in raw.parts))
            return Not(atom) if id(raw) in self.negated else atom
        if raw.kind in COMPARISONS:
            return self.comparison(raw)
        inner = tuple(self.formula(part) for part in raw.parts)
        match raw.kind:
            case "not":
                return Not(inner[0])
            case "and":
                return inner[0] if len(raw.parts) == 1 else And(inner)
            case "or":
                return Or(inner)
            case "implies":
                return Implies(*inner)
            case "iff":
                return Iff(*inner)
        kind = Exist if raw.kind == "exist" else Forall
        names = (*(binder.name for binder in raw.binders), *(guard.binder.name for guard in raw.guards))
        guards = tuple(self.guard(guard) for guard in raw.guards)
        if not guards:
            return kind(names, inner[0])
        if kind is Exist:
            return Exist(names, And((*guards, inner[0])))
        return Forall(names, Implies(guards[0] if len(guards) == 1 else And(guards), inner[0]))

    def guard(self, guard: Guard) -> Formula:
        value = RawTerm(guard.binder.name, False, guard.term.token, binder=guard.binder)
        if guard.predicate is not None:
            return Atom(guard.predicate, tuple(self.term(term) for term in (*guard.term.parts, value)))
        return self.computed("equal", guard.term, value)

    def comparison(self, raw: Raw) -> Formula:
        left, right = raw.parts
        if raw.kind not in ("equal", "unequal") or is_computed(left) or is_computed(right):
            return self.computed(raw.kind, left, right)
        formula = _lower_equality(raw, self.found, self.sorts)
        return formula if raw.kind == "equal" else Not(formula)

    def computed(self, kind: str, left: RawTerm, right: RawTerm) -> Formula:
        """The atom of the relation that says it; the truth where no variable occurs."""
        if not variables_of([left, right]):
            return Truth(_compare(kind, left, right))
        made = self.relations.of(kind, left, right)
        if made is None:
            message = "arithmetic with variables is not known in a query, unless the model has the same; name constants"
            raise self.found.source.error_at(message, left.token)
        return Atom(made[0], tuple(self.term(term) for term in made[1]))

    def term(self, term: RawTerm) -> Term:
        return _term(term, self.found, self.sorts)


def _compare(kind: str, left: RawTerm, right: RawTerm) -> bool:
    if kind == "substr":
        return left.text in right.text
    one, other = (number_of(constant_value(term) or "") for term in (left, right))
    return bool(COMPARED[kind](np.array(one), np.array(other)))


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
