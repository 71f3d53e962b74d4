"""Queries over a Markov logic network: an atom, a predicate (all its groundings), or a formula over constants.

`Cancer(Anna)` · `Smokes`, `Smokes(x)`, `Friends(Anna,y)`, `Friends(x,x)` · `Friends(Anna,Bob) ^ !Smokes(Bob)`
It stands with the readers because it needs their grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from definetti import show
from definetti.errors import ModelError, Notice
from definetti.model.logic.formulas import atoms, free_variables, quantified, substitute
from definetti.model.logic.text import format_atom
from definetti.model.logic.theory import Atom, Constant, Formula, MarkovLogic, Variable
from definetti.model.queries import Query
from definetti.readers.logic.lowering import lower_all
from definetti.readers.logic.meaning import Language, annotate
from definetti.readers.logic.raw import RawQuery, Source
from definetti.readers.logic.syntax import parse
from definetti.readers.logic.terms import Relations


@dataclass(frozen=True)
class LogicQuery:
    """A query as given and what it asks. With `free` variables it asks for every grounding of an atom."""

    text: str
    formula: Formula
    free: tuple[tuple[str, str], ...] = ()  # (variable, sort)

    @property
    def predicate(self) -> bool:
        """Whether the answer is one number per grounding."""
        return bool(self.free)


def language_of(model: MarkovLogic) -> Language:
    """What words mean in a query: constants with a small first letter are constants."""
    small = {sort.name: {name for name in sort.constants if not name[:1].isupper()} for sort in model.sorts.values()}
    return Language(model.predicates, small)


def parse_query(model: MarkovLogic, text: str) -> LogicQuery:
    """Read one query; unknown names and anything but the forms above are errors with a caret."""
    source = Source("<query>", text)
    asked: RawQuery = parse(source, "query")
    raw = asked.formula
    if raw is None or asked.count is not None or asked.condition is not None:
        raise source.error("counts and conditions are not known here", 1, 1)
    if raw.kind == "atom" and not raw.parts and not raw.starred and text.strip() == str(raw.token):
        predicate = model.predicates.get(str(raw.token))
        if predicate is not None and predicate.sorts:
            free = tuple((f"x{k}", sort) for k, sort in enumerate(predicate.sorts))
            return LogicQuery(text, Atom(predicate.name, tuple(Variable(name) for name, _ in free)), free)
    found = annotate(source, raw, language_of(model))
    if found.stars:
        raise source.error_at("* has no meaning in a query", found.stars[0].starred or found.stars[0].token)
    for binder in found.binders:
        if binder.plus is not None:
            raise source.error_at("+ has no meaning in a query", binder.plus)
        if binder.quantified:
            raise source.error_at("a query has no quantifiers; ask for a formula over constants", binder.token)
        if raw.kind != "atom":
            message = (
                f"{binder.name} is a variable; a query names constants, or is a single predicate such as Smokes(x)"
            )
            raise source.error_at(message, binder.token)
    relations = Relations(model.sorts, model.predicates, fixed=True)
    (formula,) = lower_all(found, model.sorts, relations)
    return LogicQuery(text, formula, tuple((binder.name, binder.sort or "") for binder in found.binders))


def groundings(model: MarkovLogic, query: LogicQuery) -> Iterator[tuple[str, Formula]]:
    """(key, formula over constants): the query as given, or for a predicate one per grounding, keyed by its atom."""
    if not isinstance(query.formula, Atom) or not query.free:
        yield query.text, query.formula
        return
    names = [name for name, _ in query.free]
    choices = [[Constant(sort, i) for i in range(model.sorts[sort].size)] for _, sort in query.free]
    for chosen in product(*choices):
        atom = substitute(query.formula, dict(zip(names, chosen, strict=True)))
        assert isinstance(atom, Atom)
        yield format_atom(atom, model.sorts), atom


def parse_queries(model: MarkovLogic, texts: Iterable[str]) -> dict[str, Formula]:
    """All queries, key → formula over constants, in the order asked."""
    found: dict[str, Formula] = {}
    for text in texts:
        for key, formula in groundings(model, parse_query(model, text)):
            assert not free_variables(formula) and not list(quantified(formula))
            found[key] = formula
    return found


def ground_queries(model: MarkovLogic, texts: Iterable[str]) -> list[Query]:
    """The same queries about the variables of `ground(model)`."""
    from definetti.model.logic.ground import ground_event

    found = []
    for key, formula in parse_queries(model, texts).items():
        variables, satisfying = ground_event(model, formula)
        plain = isinstance(formula, Atom) and not model.predicates[formula.predicate].exclusive
        nothing = np.empty((0, 1), dtype=np.int32)
        found.append(Query(key, variables, "variable" if plain else "event", nothing if plain else satisfying))
    return found


# --- Alchemy's closed world -------------------------------------------------------------------------------------------


def alchemy_world(model: MarkovLogic, queries: Sequence[str]) -> tuple[MarkovLogic, tuple[Notice, ...]]:
    """The model with every predicate closed that has evidence and that no query names, as Alchemy does, and a notice
    of what that takes for false."""
    if not queries:
        cure = "name what you ask for (--query), or close predicates by name (--closed-world)"
        raise ModelError(
            f"world alchemy closes predicates with evidence that are not queried, so it needs queries: {cure}"
        )
    asked = {atom.predicate for formula in parse_queries(model, queries).values() for atom in atoms(formula)}
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
