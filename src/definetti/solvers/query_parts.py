"""Queries beyond formulas over constants, answered by exact engines.

Each becomes formulas that an engine knows, and the numbers that come back are put together: a pattern is the mean over
its groundings, `A | B` a ratio, a count a sum. A count's distribution comes from lifted counting (all atoms of a
predicate) or from the states of the atoms that it speaks of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.logic.atom_literals import atom_literal, layout
from definetti.model.logic.formulas import atoms, equalities, evaluate
from definetti.model.logic.ground import LARGEST_TABLE
from definetti.model.logic.normal_forms import written_out
from definetti.model.logic.theory import Atom, Formula, MarkovLogic, Variable
from definetti.model.marginals import Count, Estimate, Marginals
from definetti.model.queries import Query
from definetti.readers.logic.queries import LogicQuery, QueryPart, parse_all, pattern_parts
from definetti.solvers.work import TooMuch


@dataclass
class Parts:
    """What an engine is asked in place of the queries, and how the answers are put together."""

    model: MarkovLogic
    queries: dict[str, LogicQuery]
    asked: list[str | QueryPart | Query] = field(default_factory=list)
    means: dict[str, list[str]] = field(default_factory=dict)  # query → keys of its groundings
    given: dict[str, list[str]] = field(default_factory=dict)  # of the condition
    counts: dict[str, dict[int, str]] = field(default_factory=dict)  # count → the key of each value
    lifted: dict[str, np.ndarray] = field(default_factory=dict)  # count → its distribution

    def put_together(self, found: Marginals, others: Sequence[Query]) -> Marginals:
        out = {key: self._answer(key, query, found.queries) for key, query in self.queries.items()}
        return replace(found, queries=out | {q.text: found.queries[q.text] for q in others})

    def _answer(self, key: str, query: LogicQuery, found: Mapping[str, Estimate]) -> Estimate:
        def mean(keys: Sequence[str]) -> float:
            return float(np.mean([found[k].probability for k in keys]))

        if query.plain:
            return found[key]
        if query.count:
            return self._count(key, query, mean)
        if query.condition is None:
            return Estimate(mean(self.means[key]), orbit_size=len(self.means[key]))
        below = mean(self.given[key])
        if below <= 0:
            raise ModelError(f"the condition of {key!r} is never true: its probability is 0")
        return Estimate(min(1.0, mean(self.means[key]) / below), orbit_size=len(self.means[key]))

    def _count(self, key: str, query: LogicQuery, mean: Any) -> Count:
        if key in self.lifted:
            shares = dict(enumerate(self.lifted[key].tolist()))
        elif key in self.counts:
            shares = {value: mean([part]) for value, part in self.counts[key].items()}
        else:
            return Count(mean(self.means[key]) * query.tuples(self.model), 0.0)
        middle = sum(k * p for k, p in shares.items())
        spread = sum((k - middle) ** 2 * p for k, p in shares.items())
        rows = ({"value": k, "probability": p, "half_width": 0.0} for k, p in shares.items() if p > 0)
        return Count(middle, 0.0, std=sqrt(max(spread, 0.0)), distribution=tuple(rows))


def parts_of(model: MarkovLogic, queries: Sequence[str | Query], method: str) -> Parts | None:
    """None where all queries are formulas over constants."""
    found = parse_all(model, [q for q in queries if not isinstance(q, Query)])
    if all(query.plain for query in found.values()):
        return None
    made = Parts(model, found)
    for key, query in found.items():
        if query.plain:
            made.asked.append(QueryPart(key, query.formula))
        elif not query.count or not _distribution(made, key, query, method):
            made.means[key] = _add(made, pattern_parts(model, query, f"{key}\0m", True))
            if query.condition is not None:
                made.given[key] = _add(made, pattern_parts(model, query, f"{key}\0g", False))
    made.asked += [q for q in queries if isinstance(q, Query)]
    return made


def _add(made: Parts, parts: list[QueryPart]) -> list[str]:
    made.asked += parts
    return [part.key for part in parts]


def _distribution(made: Parts, key: str, query: LogicQuery, method: str) -> bool:
    """Whether the distribution of a count can be had: counted lifted, or from the states of its atoms."""
    if method in ("auto", "lifted") and _whole_predicate(query):
        from definetti.solvers.lifted.cardinality import count_distribution

        assert isinstance(query.formula, Atom)
        try:
            made.lifted[key] = count_distribution(made.model, query.formula.predicate)
            return True
        except (ModelError, TooLarge, TooMuch):
            pass
    if method == "lifted":
        return False
    try:
        events = count_events(made.model, query, key)
    except TooLarge:
        return False
    made.counts[key] = {value: event.text for value, event in events.items()}
    made.asked += events.values()
    return True


def _whole_predicate(query: LogicQuery) -> bool:
    if not isinstance(query.formula, Atom):
        return False
    names = {term.name for term in query.formula.args if isinstance(term, Variable)}
    return len(names) == len(query.formula.args)


def count_events(model: MarkovLogic, query: LogicQuery, key: str) -> dict[int, Query]:
    """For each number that a count can be, the event about variables of `ground(model)` that it is that."""
    boxes, sizes = layout(model), {name: (sort, model.sorts[sort].size) for name, sort in query.sorts.items()}
    if query.tuples(model) > LARGEST_TABLE:
        raise TooLarge("a count", query.tuples(model), LARGEST_TABLE, "sample it", unit="groundings")
    bodies, literals, known, cards, states = [], {}, {}, {}, 1
    for formula, _ in query.at(model):
        bodies.append(written_out(formula, sizes) if sizes else formula)
        for atom in atoms(bodies[-1]):
            if atom in literals:
                continue
            literals[atom] = variable, _ = atom_literal(boxes, atom)
            known[atom] = model.knowledge.value(atom.predicate, [t.index for t in atom.args])  # type: ignore[union-attr]
            if known[atom] is None and variable not in cards:
                cards[variable] = boxes[atom.predicate].card
                states *= cards[variable]
        if states > LARGEST_TABLE:  # a count of many free atoms is refused after a few groundings
            what = "the number of states of a count's atoms"
            raise TooLarge(what, states, LARGEST_TABLE, "sample it", at_least=True)
    variables = tuple(sorted(cards))
    shape = tuple(cards[variable] for variable in variables)
    truth: dict[Formula, Any] = {e: e.left == e.right for body in bodies for e in equalities(body)}
    for atom, (variable, value) in literals.items():
        if known[atom] is not None:
            truth[atom] = bool(known[atom])
            continue
        axis = variables.index(variable)
        truth[atom] = (np.arange(shape[axis]) == value).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    total = np.zeros(shape, np.int64)
    for body in bodies:
        total += np.asarray(evaluate(body, truth))
    return {
        k: Query(f"{key}\0v{k}", variables, "event", np.argwhere(total == k).astype(np.int32))
        for k in np.unique(total).tolist()
    }
