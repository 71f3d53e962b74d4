"""From raw formulas to formulas: which predicate, which variable, which sort.

`annotate` binds every variable, infers sorts from the places where terms stand, and writes them into the raw terms; it
needs the predicates only, so that it can run before all constants are known. `lower` makes the final formula.

A function's value, `Mother(x)` in a term's place, becomes a variable z with a guard `Mother(x, z)`, bound where the
innermost variable of the term is bound: under EXIST the guard is one more conjunct, under FORALL a condition, and of a
whole formula `guarded` decides. Exactly one z has the guard, so each grounding is counted once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lark import Token

from definetti.errors import ParseError, UnknownName, suggestion
from definetti.model.logic.theory import (
    Predicate,
)
from definetti.readers.logic.raw import Raw, RawTerm, Source
from definetti.readers.logic.terms import (
    FUNCTIONS,
    OPERATORS,
    PREDICATES,
    constant_value,
    is_computed,
    variables_of,
)

MOST_STARS = 10
COMPARISONS = frozenset({"equal", "unequal", "<", ">", "<=", ">=", "substr"})


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
    depth: int = 0  # of the quantifiers around it
    owner: Raw | None = None  # its quantifier


@dataclass(slots=True)
class Guard:
    """`binder` is the value of a term: of a declared function of `args`, or of arithmetic."""

    binder: Binder
    term: RawTerm
    predicate: str | None


@dataclass(frozen=True)
class Language:
    """What words mean: predicates, constants that start with a small letter, and whether `?` marks variables."""

    predicates: Mapping[str, Predicate]
    small: Mapping[str, Collection[str]] = field(default_factory=dict)  # sort → constants
    marked: bool = False


@dataclass
class Annotated:
    """What is known of a formula before its constants have numbers."""

    source: Source
    raw: Raw
    binders: list[Binder] = field(default_factory=list)  # in order of first occurrence
    constants: list[RawTerm] = field(default_factory=list)  # those whose sort is known
    equalities: list[Raw] = field(default_factory=list)
    stars: list[Raw] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)  # of the formula as a whole
    computed: list[tuple[RawTerm, str]] = field(default_factory=list)  # arithmetic and the sort of its place
    values: dict[tuple[str, int], Binder] = field(default_factory=dict)  # a term and its scope → its variable

    @property
    def free(self) -> list[Binder]:
        return [binder for binder in self.binders if not binder.quantified]


# --- variables and sorts ----------------------------------------------------------------------------------------------


def annotate(source: Source, raw: Raw, predicates: Mapping[str, Predicate] | Language) -> Annotated:
    """Bind variables and infer sorts. Errors: unknown predicate, wrong number of arguments, clash of sorts."""
    language = predicates if isinstance(predicates, Language) else Language(predicates)
    found = Annotated(source, raw)
    _walk(raw, {}, found, language)
    for term, sort in found.computed:
        for variable in variables_of([term]):
            variable.binder.sort = variable.binder.sort or sort
    _equal_sorts(found, language)
    for equality in found.equalities:
        _check_equality(found, equality)
    _check_small(found)
    for binder in found.binders:
        if binder.sort is None:
            message = f"{binder.name} stands in no predicate, so its sort is unknown"
            raise source.error_at(message, binder.token)
    _rename_apart(found)
    if len(found.stars) > MOST_STARS:
        message = f"more than {MOST_STARS} atoms with * would make {2 ** len(found.stars)} formulas"
        raise source.error_at(message, found.stars[0].token)
    return found


def _walk(raw: Raw, scope: dict[str, Binder], found: Annotated, language: Language) -> None:
    if raw.kind == "atom":
        _walk_atom(raw, scope, found, language)
    elif raw.kind in COMPARISONS:
        _walk_comparison(raw, scope, found, language)
    elif raw.kind in ("exist", "forall"):
        depth = 1 + max((binder.depth for binder in scope.values()), default=0)
        raw.binders = [_quantify(found, token, raw, depth) for token in raw.variables]
        names = [binder.name for binder in raw.binders]
        if len(set(names)) < len(names):
            raise found.source.error_at("a quantifier names a variable twice", raw.variables[-1])
        _walk(raw.parts[0], {**scope, **dict(zip(names, raw.binders, strict=True))}, found, language)
    else:
        for part in raw.parts:
            _walk(part, scope, found, language)


def _quantify(found: Annotated, token: Token, raw: Raw, depth: int) -> Binder:
    name = str(token).removeprefix("?")
    if name[0].isupper() and token.type != "QUERY_NAME":
        raise found.source.error_at(f"{token} is a constant; a variable starts with a lower-case letter", token)
    binder = Binder(name, token, True, depth=depth, owner=raw)
    found.binders.append(binder)
    return binder


def is_truth(raw: Raw, predicates: Mapping[str, Predicate]) -> bool:
    """TRUE and FALSE are formulas, unless a predicate has that name."""
    name = str(raw.token)
    return not raw.parts and name.upper() in ("TRUE", "FALSE") and name not in predicates


def _walk_atom(raw: Raw, scope: dict[str, Binder], found: Annotated, language: Language) -> None:
    source, name, predicates = found.source, str(raw.token), language.predicates
    if is_truth(raw, predicates):
        raw.kind = "truth"
        return
    if name not in predicates and name in PREDICATES and len(raw.parts) == 2:
        raw.kind = PREDICATES[name]
        return _walk_comparison(raw, scope, found, language)
    if name not in predicates:
        raise source.error_at(f"no predicate is called {name}{suggestion(name, predicates)}", raw.token, UnknownPlace)
    if raw.starred is not None:
        found.stars.append(raw)
    predicate = predicates[name]
    if len(raw.parts) != len(predicate.sorts):
        raise source.error_at(_miscounted(predicate, len(raw.parts)), raw.token)
    for term, sort in zip(raw.parts, predicate.sorts, strict=True):
        _place(term, sort, scope, found, language)


def _miscounted(predicate: Predicate, given: int) -> str:
    """The message about a wrong number of arguments."""
    name, sorts = predicate.name, predicate.sorts
    if predicate.function:
        return f"{name}({', '.join(sorts[:-1])}) is a function into {sorts[-1]}; compare it, as in {name}(x) = y"
    return f"{name}({', '.join(sorts)}) has {len(sorts)} arguments, here are {given}"


def _place(term: RawTerm, sort: str, scope: dict[str, Binder], found: Annotated, language: Language) -> None:
    """A term in a place of this sort."""
    source = found.source
    if term.bang is not None:
        raise source.error_at("! after an argument belongs into a predicate's declaration", term.bang)
    if term.function is not None:
        if term.plus is not None:
            raise source.error_at("+ belongs before a variable, not before a function", term.plus)
        _value(term, sort, scope, found, language)
        return
    _small_constant(term, sort, scope, language)
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


def _small_constant(term: RawTerm, sort: str | None, scope: dict[str, Binder], language: Language) -> None:
    """A word with a small first letter is a constant where the sort lists it, or where `?` marks the variables."""
    if term.constant or term.token.type == "QUERY_NAME" or term.text in scope:
        return
    term.constant = language.marked or (sort is not None and term.text in language.small.get(sort, ()))


# --- functions and arithmetic -----------------------------------------------------------------------------------------


def _value(term: RawTerm, sort: str, scope: dict[str, Binder], found: Annotated, language: Language) -> None:
    """A function's value or arithmetic in a place of this sort: a constant, or a variable with a guard."""
    _resolve(term, found, language)
    if term.function is None or term.function in OPERATORS:
        _operands(term, scope, found, language, sort)
        if not variables_of([term]):
            _fold(term, sort, found)
            return
        copy = RawTerm(term.text, False, term.token, function=term.function, parts=term.parts)
        found.computed.append((copy, sort))
        predicate = None
    else:
        predicate = _call(term, scope, found, language)
        if language.predicates[predicate].sorts[-1] != sort:
            message = f"{predicate} has values in {language.predicates[predicate].sorts[-1]}, here a {sort} is needed"
            raise found.source.error_at(message, term.token)
    _guard(term, predicate, sort, found)


def _resolve(term: RawTerm, found: Annotated, language: Language) -> None:
    """Alchemy's names of operators, as operators."""
    name = term.function or ""
    if name in language.predicates or name in OPERATORS:
        return
    operator = FUNCTIONS.get(name)
    if operator == "succ" and len(term.parts) == 1:
        term.function, term.parts = "+", [term.parts[0], RawTerm("1", True, term.token)]
    elif operator is not None and operator != "succ" and len(term.parts) == 2:
        term.function = operator
    else:
        functions = [p.name for p in language.predicates.values() if p.function]
        message = f"no function is called {name}{suggestion(name, [*functions, *FUNCTIONS])}"
        raise found.source.error_at(message, term.token, UnknownPlace)


def _call(term: RawTerm, scope: dict[str, Binder], found: Annotated, language: Language) -> str:
    """The arguments of a declared function, in their places; its name."""
    predicate = language.predicates[term.function or ""]
    if not predicate.function and predicate.exclusive != (len(predicate.sorts) - 1,):
        raise found.source.error_at(f"{predicate.name} is a predicate and has no value", term.token)
    if len(term.parts) != len(predicate.sorts) - 1:
        wanted = f"{predicate.name}({', '.join(predicate.sorts[:-1])})"
        message = f"{wanted} has {len(predicate.sorts) - 1} arguments, here are {len(term.parts)}"
        raise found.source.error_at(message, term.token)
    for part, sort in zip(term.parts, predicate.sorts[:-1], strict=True):
        _place(part, sort, scope, found, language)
    return predicate.name


def _operands(term: RawTerm, scope: dict[str, Binder], found: Annotated, language: Language, sort: str | None) -> None:
    """Bind the variables of arithmetic; values of functions inside it get variables of their own."""
    for part in term.parts:
        if part.function is None:
            _small_constant(part, sort, scope, language)
            _bind(part, scope, found)
            continue
        _resolve(part, found, language)
        if part.function in OPERATORS:
            _operands(part, scope, found, language, sort)
        else:
            name = _call(part, scope, found, language)
            _guard(part, name, language.predicates[name].sorts[-1], found)


def _fold(term: RawTerm, sort: str, found: Annotated) -> None:
    name = constant_value(term)
    if name is None:
        raise found.source.error_at("this arithmetic has no value", term.token)
    term.text, term.constant, term.function, term.parts, term.sort = name, True, None, [], sort
    found.constants.append(term)


def _guard(term: RawTerm, predicate: str | None, sort: str, found: Annotated) -> None:
    """The variable that stands for a term's value, bound where the innermost variable of the term is bound."""
    inner = [variable.binder for variable in variables_of(term.parts)]
    innermost = max(inner, key=lambda binder: binder.depth, default=None)
    owner = innermost.owner if innermost is not None else None
    key = (_key(term), id(owner))
    binder = found.values.get(key)
    if binder is None:
        depth = innermost.depth if innermost is not None else 0
        binder = Binder(_fresh(found), term.token, owner is not None, sort, term.token, depth=depth, owner=owner)
        found.values[key] = binder
        found.binders.append(binder)
        copy = RawTerm(term.text, False, term.token, function=term.function, parts=term.parts)
        (owner.guards if owner is not None else found.guards).append(Guard(binder, copy, predicate))
    term.binder, term.function, term.parts = binder, None, []


def _key(term: RawTerm) -> str:
    if term.binder is not None:
        return f"?{id(term.binder)}"
    return f"{term.function}({','.join(map(_key, term.parts))})" if term.function else f"{term.text!r}"


def _fresh(found: Annotated) -> str:
    taken = {binder.name for binder in found.binders}
    return next(name for k in range(len(taken) + 1) if (name := f"z{k or ''}") not in taken)


def _walk_comparison(raw: Raw, scope: dict[str, Binder], found: Annotated, language: Language) -> None:
    """`x = y`, `Mother(x) = y` (an atom), or arithmetic on both sides of a sign."""
    left, right = raw.parts
    for term in (left, right):
        if term.function is not None:
            _resolve(term, found, language)
    calls = [term for term in (left, right) if term.function is not None and not is_computed(term)]
    plain = raw.kind in ("equal", "unequal") and not is_computed(left) and not is_computed(right)
    if plain and calls:
        value = right if calls[-1] is left else left  # the other side is the last argument
        call = calls[-1]
        atom = Raw("atom", [*call.parts, value], call.token, raw.start, raw.stop)
        atom.token = Token("NAME", call.function or "", line=call.token.line, column=call.token.column)
        if not language.predicates[call.function or ""].function:
            raise found.source.error_at(f"{call.function} is a predicate and has no value", call.token)
        raw.kind, raw.parts = ("not", [atom]) if raw.kind == "unequal" else ("and", [atom])
        return _walk_atom(atom, scope, found, language)
    for term in (left, right):
        if term.function is not None and not is_computed(term):
            name = _call(term, scope, found, language)
            _guard(term, name, language.predicates[name].sorts[-1], found)
        elif term.function is not None:
            _operands(term, scope, found, language, None)
        else:
            _small_constant(term, None, scope, language)
            _bind(term, scope, found)
    found.equalities.append(raw)


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


def _equal_sorts(found: Annotated, language: Language) -> None:
    """A word that stands in no predicate has the sort of what it is equal to, or not equal to: a variable, or a
    constant with a small first letter. One that is left has the sort of what it is compared with in other ways."""
    while _sorts_of_equals(found, language) or _sorts_of_compared(found):
        pass


def _sorts_of_equals(found: Annotated, language: Language) -> bool:
    """Whether there was something to learn."""
    learnt = False
    for one, other in (raw.parts for raw in found.equalities if raw.kind in ("equal", "unequal")):
        for left, right in ((one.binder, other.binder), (other.binder, one.binder)):
            if left is None or right is None or left.sort is not None or right.sort is None:
                continue
            left.sort, left.where, learnt = right.sort, right.where, True
            if left.name in language.small.get(right.sort, ()) and not left.quantified and left.plus is None:
                _make_constant(found, left)
    return learnt


def _sorts_of_compared(found: Annotated) -> bool:
    """The same for comparisons by size or text, and with computed terms."""
    learnt = False
    for binders in ([t.binder for t in variables_of(raw.parts)] for raw in found.equalities if not _is_plain(raw)):
        known = next((binder.sort for binder in binders if binder.sort is not None), None)
        unknown = [binder for binder in binders if binder.sort is None and known is not None]
        for binder in unknown:
            binder.sort, learnt = known, True
    return learnt


def _is_plain(comparison: Raw) -> bool:
    """Whether two words are said to be equal, or not."""
    return comparison.kind in ("equal", "unequal") and not any(is_computed(term) for term in comparison.parts)


def _make_constant(found: Annotated, binder: Binder) -> None:
    for term in (term for raw in found.equalities for term in raw.parts if term.binder is binder):
        term.binder, term.constant = None, True
    found.binders.remove(binder)


def _check_small(found: Annotated) -> None:
    """A word that is a constant in one place of a formula and a variable in another is a mistake in one of them."""
    names = {binder.name: binder for binder in found.binders if binder.token.type != "QUERY_NAME"}
    for term in found.constants:
        if term.token.type == "NAME" and not term.text[:1].isupper() and term.text in names:
            message = f"{term.text} is a constant of sort {term.sort} here and a variable elsewhere in this formula"
            raise found.source.error_at(f"{message}; rename the variable, or quote the constant", term.token)


def _check_equality(found: Annotated, equality: Raw) -> None:
    left, right = equality.parts
    if not _is_plain(equality):
        return
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
