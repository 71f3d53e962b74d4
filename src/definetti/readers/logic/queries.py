"""Queries over a Markov logic network. `docs/queries.md` has the language with its grammar.

`Cancer(Anna)` · `Smokes`, `Smokes(x)`, `Friends(Anna,y)`: every grounding of an atom · `Friends(Anna,Bob) ^
!Smokes(Bob)`, `EXIST x Smokes(x)`: a formula · `Friends(x,y) ^ Smokes(x)`: the mean over all x and y · `Cancer(x) |
Smokes(x)`: given · `#Smokes`, `#{x,y: Friends(x,y) ^ Smokes(x)}`: how many. It stands with the readers because it needs
their grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import numpy as np

from definetti import show
from definetti.errors import ModelError, Notice, TooLarge, suggestion
from definetti.model.logic.formulas import atoms, free_variables, quantified, substitute
from definetti.model.logic.normal_forms import written_out
from definetti.model.logic.text import format_atom
from definetti.model.logic.theory import And, Atom, Constant, Exist, Formula, MarkovLogic, Variable
from definetti.model.queries import Query
from definetti.readers.logic.lowering import guarded, lower_all, lower_guards
from definetti.readers.logic.meaning import Annotated, Language, UnknownPlace, annotate
from definetti.readers.logic.raw import Raw, RawQuery, Source
from definetti.readers.logic.syntax import parse
from definetti.readers.logic.terms import Relations

MOST_GROUNDINGS = 20_000  # of a pattern that is answered exactly


@dataclass(frozen=True)
class LogicQuery:
    """A query as given and what it asks: the probability of `formula`, given `condition`, averaged over the values of
    `free`; or, of a count, for how many of these values the formula is true."""

    text: str
    formula: Formula
    free: tuple[tuple[str, str], ...] = ()  # (variable, sort)
    condition: Formula | None = None
    count: bool = False
    sorts: Mapping[str, str] = field(default_factory=dict)  # of quantified variables

    @property
    def predicate(self) -> bool:
        """Whether the answer is one number per grounding."""
        return bool(self.free) and isinstance(self.formula, Atom) and self.condition is None and not self.count

    @property
    def plain(self) -> bool:
        """A formula over constants, without quantifiers."""
        special = self.count or self.condition is not None or self.free
        return not special and not any(quantified(self.formula))

    def tuples(self, model: MarkovLogic) -> int:
        """How many values the free variables have together."""
        return prod(model.sorts[sort].size for _, sort in self.free)

    def at(self, model: MarkovLogic) -> Iterator[tuple[Formula, Formula | None]]:
        """The formula and the condition at all values of the free variables."""
        names = [name for name, _ in self.free]
        for chosen in product(*([Constant(s, i) for i in range(model.sorts[s].size)] for _, s in self.free)):
            binding = dict(zip(names, chosen, strict=True))
            given = None if self.condition is None else substitute(self.condition, binding)
            yield substitute(self.formula, binding), given


@dataclass(frozen=True)
class QueryPart:
    """A formula over constants that an exact engine is asked for, under a key that no query has; `sorts` are those of
    quantified variables."""

    key: str
    formula: Formula
    sorts: Mapping[str, str] = field(default_factory=dict)


def language_of(model: MarkovLogic) -> Language:
    """What words mean in a query: constants with a small first letter are constants."""
    small = {sort.name: {name for name in sort.constants if not name[:1].isupper()} for sort in model.sorts.values()}
    return Language(model.predicates, small)


def parse_query(model: MarkovLogic, text: str) -> LogicQuery:
    """Read one query; unknown names and anything but the forms above are errors with a caret."""
    source = Source("<query>", text)
    asked: RawQuery = parse(source, "query")
    if asked.formula is None:
        return _count_atoms(model, source, str(asked.count)[1:].strip())
    bare = _bare_predicate(model, asked.formula)
    if bare is not None and asked.condition is None and asked.count is None and text.strip() == bare:
        return _all_atoms(model, text, bare)
    raws = [asked.formula] if asked.condition is None else [asked.formula, asked.condition]
    together = Raw("and", raws, asked.formula.token, asked.formula.start, raws[-1].stop)
    found = annotate(source, together, language_of(model))
    _refuse_marks(source, found, asked)
    relations = Relations(model.sorts, model.predicates, fixed=True)
    (whole,) = lower_all(found, model.sorts, relations)
    guards = lower_guards(found, model.sorts, relations)
    made = whole.parts if len(raws) == 2 and isinstance(whole, And) else (whole,)
    bodies = [_with_values(part, guards) for part in made]
    values = {guard.binder.name for guard in found.guards}
    free = tuple((b.name, b.sort or "") for b in found.free if b.name not in values)
    sorts = {b.name: b.sort or "" for b in found.binders if b.quantified or b.name in values}
    if asked.count is not None:
        free = _counted(source, asked, free)
    return LogicQuery(text, bodies[0], free, bodies[1] if len(raws) == 2 else None, asked.count is not None, sorts)


def _bare_predicate(model: MarkovLogic, raw: Raw) -> str | None:
    """The name of a predicate with arguments that stands alone, without them."""
    if raw.kind != "atom" or raw.parts or raw.starred or raw.grouped:
        return None
    predicate = model.predicates.get(str(raw.token))
    return predicate.name if predicate is not None and predicate.sorts else None


def _all_atoms(model: MarkovLogic, text: str, name: str, count: bool = False) -> LogicQuery:
    free = tuple((f"x{k}", sort) for k, sort in enumerate(model.predicates[name].sorts))
    return LogicQuery(text, Atom(name, tuple(Variable(variable) for variable, _ in free)), free, count=count)


def _count_atoms(model: MarkovLogic, source: Source, name: str) -> LogicQuery:
    if "|" in name:
        message = "a count takes no condition; give the condition as evidence"
        raise source.error(message, 1, source.text.index("|") + 1)
    if name not in model.predicates:
        known = suggestion(name, model.predicates)
        raise source.error(f"no predicate is called {name}{known}", 1, source.text.index("#") + 2, UnknownPlace)
    return _all_atoms(model, source.text, name, count=True)


def _refuse_marks(source: Source, found: Annotated, asked: RawQuery) -> None:
    if found.stars:
        raise source.error_at("* has no meaning in a query", found.stars[0].starred or found.stars[0].token)
    for binder in found.binders:
        if binder.plus is not None:
            raise source.error_at("+ has no meaning in a query", binder.plus)


def _with_values(body: Formula, guards: Mapping[str, Formula]) -> Formula:
    """Values of functions: there is one for which the formula is true."""
    names = tuple(name for name in free_variables(body) if name in guards)
    return Exist(names, guarded(body, guards, hard=False)) if names else body


def _counted(source: Source, asked: RawQuery, free: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The variables that a count runs over: those that it names, and no others."""
    named = [str(token).removeprefix("?") for token in asked.variables]
    sorts = dict(free)
    for token, name in zip(asked.variables, named, strict=True):
        if name not in sorts:
            raise source.error_at(f"{name} does not occur in the formula that is counted", token)
    if len(set(named)) < len(named):
        raise source.error_at("a count names a variable twice", asked.variables[-1])
    for name in sorts:
        if name not in named:
            message = f"{name} is neither counted nor quantified; add it before the colon, or write EXIST {name}"
            raise source.error(message, 1, asked.variables[0].column or 1)
    return tuple((name, sorts[name]) for name in named)


def groundings(model: MarkovLogic, query: LogicQuery) -> Iterator[tuple[str, Formula]]:
    """(key, formula): the query as given, or for a predicate one per grounding, keyed by its atom."""
    if not query.predicate:
        yield query.text, query.formula
        return
    for atom, _ in query.at(model):
        assert isinstance(atom, Atom)
        yield format_atom(atom, model.sorts), atom


def parse_all(model: MarkovLogic, texts: Iterable[str | LogicQuery]) -> dict[str, LogicQuery]:
    """All queries by key, in the order asked; a predicate is one key for each of its atoms."""
    found: dict[str, LogicQuery] = {}
    for text in texts:
        if isinstance(text, LogicQuery):
            found[text.text] = text
            continue
        query = parse_query(model, text)
        if query.predicate:
            found |= {key: LogicQuery(key, atom) for key, atom in groundings(model, query)}
        else:
            found[text] = query
    return found


def parse_queries(model: MarkovLogic, texts: Iterable[str | QueryPart]) -> dict[str, Formula]:
    """Queries that are formulas over constants, key → formula, in the order asked; parts may have quantifiers."""
    found: dict[str, Formula] = {}
    for text in texts:
        if isinstance(text, QueryPart):
            found[text.key] = text.formula
            continue
        for key, query in parse_all(model, [text]).items():
            if not query.plain:
                what = "has a condition, a quantifier, variables or a count"
                raise ModelError(f"the query {key!r} {what}; here it must be a formula over constants")
            found[key] = query.formula
    return found


def ground_queries(model: MarkovLogic, texts: Iterable[str | QueryPart]) -> list[Query]:
    """The same queries about the variables of `ground(model)`, quantifiers written out."""
    from definetti.model.logic.atom_literals import layout
    from definetti.model.logic.ground import ground_event

    items, boxes = list(texts), layout(model)
    sorts = {item.key: item.sorts for item in items if isinstance(item, QueryPart)}
    found = []
    for key, formula in parse_queries(model, items).items():
        sizes = {name: (sort, model.sorts[sort].size) for name, sort in sorts.get(key, {}).items()}
        variables, satisfying = ground_event(boxes, written_out(formula, sizes) if sizes else formula)
        plain = isinstance(formula, Atom) and not model.predicates[formula.predicate].exclusive
        nothing = np.empty((0, 1), dtype=np.int32)
        found.append(Query(key, variables, "variable" if plain else "event", nothing if plain else satisfying))
    return found


def pattern_parts(model: MarkovLogic, query: LogicQuery, key: str, conditioned: bool) -> list[QueryPart]:
    """The groundings of a query for an exact engine: of the formula with the condition, or of the condition alone."""
    if query.tuples(model) > MOST_GROUNDINGS:
        cure = "sample it: `marginals --sampler gibbs` counts patterns without grounding"
        raise TooLarge(f"the query {query.text!r}", query.tuples(model), MOST_GROUNDINGS, cure, unit="groundings")
    out = []
    for number, (formula, given) in enumerate(query.at(model)):
        body = formula if given is None else And((formula, given)) if conditioned else given
        out.append(QueryPart(f"{key}\0{number}", body, query.sorts))
    return out


# --- Alchemy's closed world -------------------------------------------------------------------------------------------


def alchemy_world(model: MarkovLogic, queries: Sequence[str]) -> tuple[MarkovLogic, tuple[Notice, ...]]:
    """The model with every predicate closed that has evidence and that no query names, as Alchemy does, and a notice
    of what that takes for false."""
    if not queries:
        cure = "name what you ask for (--query), or close predicates by name (--closed-world)"
        raise ModelError(
            f"world alchemy closes predicates with evidence that are not queried, so it needs queries: {cure}"
        )
    formulas = [f for q in parse_all(model, queries).values() for f in (q.formula, q.condition) if f is not None]
    asked = {atom.predicate for formula in formulas for atom in atoms(formula)}
    more = {name for name in model.evidence if name not in asked and name not in model.closed}
    for name in sorted(more):
        if model.predicates[name].exclusive and model.knowledge.free_count(name):
            more.discard(name)  # a block needs a value: Alchemy keeps these open, too
    before = sum(model.knowledge.free_count(name) for name in more)
    closed = replace(model, closed=model.closed | more)
    after = sum(closed.knowledge.free_count(name) for name in more)
    if not more:
        return closed, (Notice("closed-world", "no predicate has evidence and is not queried: nothing was closed"),)
    names = ", ".join(sorted(more))
    text = f"{names}: {show.count(before - after)} atoms that the evidence does not name were taken as false"
    return closed, (Notice("closed-world", text),)
