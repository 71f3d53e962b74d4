"""The exact answer of a factor graph: by the cheapest way that fits into memory, or into a budget of counted work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show
from definetti.constraints.graph.contract import contract
from definetti.constraints.graph.legal_states import explain
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.memory import available_memory
from definetti.model.graph.factors import FactorGraph
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query, parse_query, unconditional
from definetti.solvers.graph.eliminate import eliminate
from definetti.solvers.graph.elimination_order import CURE
from definetti.solvers.graph.enumerate import enumerate_states, state_bits
from definetti.solvers.graph.routes import BYTES, routes
from definetti.solvers.graph.solution import Solution, active_variables

if TYPE_CHECKING:
    from definetti.solvers.work import Budget
    from definetti.symmetry.graph.group import GraphSymmetries
    from definetti.symmetry.protocol import Symmetries

MOST_BITS = 33  #: of states that are enumerated over orbits, if the group is large enough
FEWEST_ENTRIES = 1 << 20  #: that there is always room for
# For an answer nobody asked for: factors, steps of a search for an order, entries of all tables (2 GB)
MOST_TRIED, MOST_STEPS, WITHIN_REACH = 50_000, 300_000, 2.0**28


def graph_answer(
    model: FactorGraph,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
    budget: Budget | None,
) -> Marginals:
    if method == "lifted":
        raise ModelError("lifted counting is for Markov logic; a factor graph has no logical variables")
    found = [q if isinstance(q, Query) else parse_query(q, model) for q in queries]
    asked = unconditional(found)
    try:
        solution, used = solve(model, asked, method, budget)
    except Unsatisfiable:
        raise explain(model) from None  # which factors and evidence clash, as they were given
    return with_ratios(by_group(model, asked, solution, used, graph_group(model, wanted, time_limit)), found)


def with_ratios(answer: Marginals, queries: Sequence[Query]) -> Marginals:
    """The answers to `A | B` from those to A ∧ B and to B."""
    conditional = [query for query in queries if query.given is not None]
    if not conditional:
        return answer
    found = dict(answer.queries)
    for query in conditional:
        assert query.given is not None
        both, given = (found[part.text].probability for part in (query, query.given))
        if not given:
            raise ModelError(f"the condition of {query.text!r} is never true: its probability is 0")
        found[query.text] = Estimate(min(1.0, both / given))  # type: ignore[operator]
    hidden = {query.given.text for query in conditional if query.given is not None}
    return replace(answer, queries={text: one for text, one in found.items() if text not in hidden})


def graph_group(model: FactorGraph, wanted: str | Symmetries, time_limit: float) -> GraphSymmetries:
    from definetti.symmetry.find import symmetries as find

    return find(model, wanted, None, time_limit) if isinstance(wanted, str) else wanted  # type: ignore[return-value]


def solve(model: FactorGraph, queries: Sequence[Query], method: str, budget: Budget | None) -> tuple[Solution, str]:
    """The solution and the engine that found it; with a budget only by what it allows."""
    if budget is not None:
        return _within(model, queries, budget)
    if method == "enumerate":
        return enumerate_states(model, queries), method
    entries = most_entries()
    if method == "eliminate":
        return eliminate(model, queries, limit=entries), method
    if method == "orbits":
        found = _by_orbits(model, queries)
        if found is None:
            raise ModelError("enumeration over orbits answers queries about single variables only")
        return found, method
    ways, refusal = routes(model, queries, entries)
    for way in ways:
        if way.method == "enumerate" or way.bytes <= BYTES * entries:
            return way.solve(), way.method
    core = contract(model).core
    bits = state_bits(core, active_variables(core))
    if bits <= MOST_BITS:  # a group may make them few enough
        try:
            found = _by_orbits(model, queries)
        except TooLarge:
            found = None
        if found is not None:
            return found, "orbits"
    what = f"the exact answer ({show.power_of_two(bits)} states) by elimination"
    if refusal is None:
        raise TooLarge(what, min(way.bytes for way in ways), BYTES * entries, CURE, unit="bytes")
    raise TooLarge(what, refusal.size, refusal.limit, refusal.cure, unit=refusal.unit, at_least=True)


def most_entries() -> float:
    """Table entries that the memory of this process has room for."""
    return max(FEWEST_ENTRIES, available_memory() // BYTES)


def _within(model: FactorGraph, queries: Sequence[Query], budget: Budget) -> tuple[Solution, str]:
    """By the cheapest way that is known without a long search."""
    if model.factor_count > MOST_TRIED:
        raise TooLarge("the model", model.factor_count, MOST_TRIED, CURE, unit="factors")
    ways, refusal = routes(model, queries, WITHIN_REACH, MOST_STEPS)
    if not ways:
        assert refusal is not None
        raise refusal
    budget.charge(ways[0].work)
    return ways[0].solve(), ways[0].method


def _by_orbits(model: FactorGraph, queries: Sequence[Query]) -> Solution | None:
    """One state for each orbit; None where an event is asked for."""
    from definetti.solvers.graph.enumerate import orbit_solution
    from definetti.symmetry.find import symmetries as find

    if any(query.kind == "event" for query in queries):
        return None
    group = find(model, "literals")
    return orbit_solution(group)


# --- from literals to the noun -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Which variables of a ground model share a row, from their orbit numbers; a free one without an orbit is alone."""

    row_of: np.ndarray
    row_size: np.ndarray
    row_representative: np.ndarray

    @classmethod
    def of(cls, orbit: np.ndarray, free: np.ndarray) -> SomeRows:
        key = np.where(orbit >= 0, orbit, orbit.max(initial=0) + 1 + np.arange(len(orbit)))
        first, row, size = np.unique(key[free], return_index=True, return_inverse=True, return_counts=True)[1:]
        row_of = np.full(len(orbit), -1, dtype=np.int32)
        row_of[free] = row.ravel()
        return cls(row_of, size, free[first])


def by_group(
    model: FactorGraph, queries: Sequence[Query], solution: Solution, method: str, group: GraphSymmetries
) -> Marginals:
    """The rows of a group, whose model has as evidence what it could show to be forced."""
    answers = answers_by(model, queries, solution, method, group, group.model.evidence)
    return replace(answers, notices=group.notices)


def answers_by(
    model: FactorGraph,
    queries: Sequence[Query],
    solution: Solution,
    method: str,
    grouped: SomeRows | GraphSymmetries,
    evidence: np.ndarray,
) -> Marginals:
    rows = tuple(
        OrbitRow(model.names[i], int(size), **_numbers(solution.marginal(model, int(i))))
        for i, size in zip(grouped.row_representative, grouped.row_size, strict=True)
    )
    members = Variables(model.names, grouped.row_of, evidence, model.cards, model.index)
    events = iter(solution.events)
    answers: dict[str, Estimate] = {}
    for query in queries:
        if query.kind == "event":
            answers[query.text] = Estimate(next(events))
        else:
            found = members.find(model.names[query.variables[0]])
            answers[query.text] = found if isinstance(found, Estimate) else rows[found].estimate()
    return Marginals(rows, members, answers, log_z=solution.log_z, method=method)


def _numbers(marginal: np.ndarray) -> dict[str, Any]:
    """P(value 1) of a variable with two values; lists for one with more."""
    if len(marginal) <= 2:
        return {"probability": float(marginal[1]) if len(marginal) == 2 else 0.0}
    none = [None] * len(marginal)
    return {"probability": [float(p) for p in marginal], "mcse": [0.0] * len(marginal), "rhat": none, "ess": none}
