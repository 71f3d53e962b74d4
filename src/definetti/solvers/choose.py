"""exact: the marginals by whichever exact engine is cheaper, in the same noun as sampled ones (error bars 0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.factors import FREE, FactorGraph
from definetti.model.logic import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query, parse_query
from definetti.model.simplify import simplify
from definetti.solvers.eliminate import MOST_ENTRIES, eliminate
from definetti.solvers.enumerate import MOST_STATES, enumerate_states, enumerated, show_count, state_bits
from definetti.solvers.order import Order, min_fill
from definetti.solvers.solution import Solution, open_events

METHODS = ("auto", "enumerate", "eliminate")


class Rows(Protocol):
    """The part of `Symmetries` that is needed here: which variables share a row. Observed variables have row -1."""

    @property
    def row_of(self) -> np.ndarray: ...
    @property
    def row_size(self) -> np.ndarray: ...
    @property
    def row_representative(self) -> np.ndarray: ...


def exact(
    model: FactorGraph | MarkovLogic,
    queries: Sequence[str | Query] = (),
    *,
    method: str = "auto",
    symmetries: Rows | None = None,
) -> Marginals:
    """Exact marginals of all free variables, of queries, and log Z.

    Without `symmetries` every variable is a row of its own. `TooLarge` names both sizes where neither engine fits,
    before memory is taken; `Unsatisfiable` where no state is possible.
    """
    if method not in METHODS:
        raise ModelError(f"no exact method is called {method!r}; there are {', '.join(METHODS)}")
    if isinstance(model, MarkovLogic):
        graph, asked, symmetries = _ground(model, queries)
    else:
        graph, asked = model, [q if isinstance(q, Query) else parse_query(q, model) for q in queries]
    solution, used = _solve(graph, asked, method)
    return _marginals(graph, asked, solution, used, symmetries)


def _ground(model: MarkovLogic, queries: Sequence[str | Query]) -> tuple[FactorGraph, list[Query], Rows | None]:
    """The one place where Markov logic becomes a factor graph for exact solvers; its rows are orbits of atoms."""
    from definetti.model.ground import ground
    from definetti.readers.logic_queries import ground_queries
    from definetti.symmetry.logic import renaming

    graph = ground(model)
    asked = [*ground_queries(model, [q for q in queries if isinstance(q, str)])]
    asked += [q for q in queries if isinstance(q, Query)]
    if any(predicate.exclusive for predicate in model.predicates.values()):
        return graph, asked, None  # a variable is a block of atoms
    number = renaming(model)
    orbit = np.concatenate([number.orbit_grid(name).ravel() for name in model.predicates])
    return graph, asked, AtomRows.of(orbit, graph.free)


@dataclass(frozen=True, eq=False)
class AtomRows:
    """`Rows` from the orbit numbers of a ground model's variables; a free variable without an orbit is alone."""

    row_of: np.ndarray
    row_size: np.ndarray
    row_representative: np.ndarray

    @classmethod
    def of(cls, orbit: np.ndarray, free: np.ndarray) -> AtomRows:
        key = np.where(orbit >= 0, orbit, orbit.max(initial=0) + 1 + np.arange(len(orbit)))
        first, row, size = np.unique(key[free], return_index=True, return_inverse=True, return_counts=True)[1:]
        row_of = np.full(len(orbit), -1, dtype=np.int32)
        row_of[free] = row.ravel()
        return cls(row_of, size, free[first])


def _solve(model: FactorGraph, queries: Sequence[Query], method: str) -> tuple[Solution, str]:
    if method == "enumerate":
        return enumerate_states(model, queries), method
    if method == "eliminate":
        return eliminate(model, queries), method
    simple = simplify(model)
    bits = state_bits(simple, enumerated(simple, open_events(simple, queries)))
    order = _order(simple)
    if isinstance(order, Order) and order.total < 2.0 ** min(bits, 1000):
        return eliminate(simple, queries, order=order), "eliminate"
    if bits <= np.log2(MOST_STATES) + 1e-9:
        return enumerate_states(simple, queries), "enumerate"
    if isinstance(order, Order):
        return eliminate(simple, queries, order=order), "eliminate"
    what = f"the exact answer (enumeration: {show_count(bits)} states, elimination: table entries, at least)"
    raise TooLarge(what, order.size, order.limit, order.cure)


def _order(model: FactorGraph) -> Order | TooLarge:
    try:
        return min_fill(model, MOST_ENTRIES)
    except TooLarge as refusal:
        return refusal


# --- from literals to the noun -------------------------------------------------------------------------------


def _marginals(
    model: FactorGraph, queries: Sequence[Query], solution: Solution, method: str, symmetries: Rows | None
) -> Marginals:
    if symmetries is None:
        row_of = np.where(model.evidence == FREE, np.cumsum(model.evidence == FREE) - 1, -1)
        sizes, representatives = np.ones(len(model.free), dtype=np.int64), model.free
    else:
        row_of, sizes = symmetries.row_of, symmetries.row_size
        representatives = symmetries.row_representative
    rows = tuple(
        OrbitRow(model.names[i], int(size), **_numbers(solution.marginal(model, int(i))))
        for i, size in zip(representatives, sizes, strict=True)
    )
    members = Variables(model.names, row_of, model.evidence, model.cards, model.index)
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
