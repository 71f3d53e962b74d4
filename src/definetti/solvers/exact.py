"""exact: the marginals by whichever exact engine is cheaper, in the same noun as sampled ones (error bars 0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from definetti import show
from definetti.constraints.graph.contract import Contracted, contract
from definetti.constraints.graph.legal_states import explain
from definetti.constraints.logic.forced_atoms import explain_clashes
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query, parse_query
from definetti.solvers.graph.eliminate import MOST_ENTRIES, eliminate
from definetti.solvers.graph.elimination_order import CURE, Order, has_core, min_fill
from definetti.solvers.graph.enumerate import MOST_STATES, enumerate_states, enumerated, state_bits
from definetti.solvers.graph.solution import Solution, open_events

MOST_BITS = 33  #: of states that are enumerated over orbits, if the group is large enough
MOST_FACTORS = 300_000  #: of a ground model that elimination is tried on
METHODS = ("auto", "lifted", "enumerate", "eliminate", "orbits")


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
    cardinality: Mapping[str, int] | None = None,
) -> Marginals:
    """Exact marginals of all free variables, of queries, and log Z.

    Markov logic is counted lifted where it can be (at most two logical variables in a formula), otherwise grounded.
    `cardinality` gives numbers of true atoms of predicates: `{"Friends": 120}` (lifted counting only).
    Without `symmetries` every variable is a row of its own. `TooLarge` names both sizes where neither engine fits,
    before memory is taken; `Unsatisfiable` where no state is possible.
    """
    if method not in METHODS:
        raise ModelError(f"no exact method is called {method!r}; there are {', '.join(METHODS)}")
    if not isinstance(model, FactorGraph | MarkovLogic):
        raise ModelError(f"exact needs a model, got a {type(model).__name__}; dft.read makes one")
    queries = [queries] if isinstance(queries, str) else queries
    if cardinality:
        return _given(model, queries, method, cardinality)
    if isinstance(model, MarkovLogic):
        with explain_clashes(model):
            return _of_logic(model, queries, method)
    if method == "lifted":
        raise ModelError("lifted counting is for Markov logic; a factor graph has no logical variables")
    graph, asked = model, [q if isinstance(q, Query) else parse_query(q, model) for q in queries]
    try:
        solution, used = _solve(graph, asked, method)
    except Unsatisfiable:
        raise explain(graph) from None  # which factors and evidence clash, as they were given
    return _marginals(graph, asked, solution, used, symmetries)


def _of_logic(model: MarkovLogic, queries: Sequence[str | Query], method: str) -> Marginals:
    found, reason = _lifted(model, queries, method)
    if found is not None:
        return found
    try:
        graph, asked, symmetries = _ground(model, queries)
        solution, used = _solve(graph, asked, method)
    except TooLarge as refusal:
        raise _refused(model, reason, refusal) from None
    answers = _marginals(graph, asked, solution, used, symmetries)
    blocks = any(predicate.exclusive for predicate in model.predicates.values())
    return _by_atoms(model, graph, solution, answers) if blocks else answers


def _by_atoms(model: MarkovLogic, graph: FactorGraph, solution: Solution, answers: Marginals) -> Marginals:
    """A variable of the ground model may be a `!` block: its atoms are asked for, as sampling answers for them."""
    from definetti.model.logic.atom_literals import layout
    from definetti.model.logic.atom_names import find_atom
    from definetti.symmetry.logic.members import AtomMembers
    from definetti.symmetry.logic.renaming import renaming

    group, boxes = renaming(model), layout(model)
    if len(group.atom_orbits) < len(model.predicates):  # too many kinds of atoms to number
        return answers
    rows = []
    for orbit in group.orbits:
        name, constants = find_atom(model, orbit.representative)
        variable, value = boxes[name].literal(constants)
        rows.append(OrbitRow(orbit.representative, orbit.size, float(solution.marginal(graph, variable)[value])))
    return replace(answers, orbits=tuple(rows), members=AtomMembers(group))


def _given(
    model: FactorGraph | MarkovLogic, queries: Sequence[str | Query], method: str, cardinality: Mapping[str, int]
) -> Marginals:
    from definetti.solvers.lifted.cardinality import given_answer
    from definetti.solvers.lifted.theory import NotLiftable

    if not isinstance(model, MarkovLogic) or method not in ("auto", "lifted"):
        raise ModelError("the number of true atoms can be given where a Markov logic network is counted lifted")
    try:
        return given_answer(model, cardinality, [q for q in queries if isinstance(q, str)])
    except NotLiftable as refusal:
        raise ModelError(f"this model cannot be counted lifted: {refusal}") from None


def _lifted(model: MarkovLogic, queries: Sequence[str | Query], method: str) -> tuple[Marginals | None, str]:
    """The answer by lifted counting, or why there is none."""
    from definetti.solvers.lifted.marginals import lifted_marginals
    from definetti.solvers.lifted.theory import NotLiftable

    if method not in ("auto", "lifted"):
        return None, f"the method is {method}"
    if any(isinstance(q, Query) for q in queries):
        return None, "queries are about ground variables"
    try:
        return lifted_marginals(model, [q for q in queries if isinstance(q, str)]), ""
    except NotLiftable as refusal:
        if method == "lifted":
            raise ModelError(f"this model cannot be counted lifted: {refusal}") from None
        return None, str(refusal)
    except TooLarge as refusal:
        if method == "lifted":
            raise
        return None, refusal.finding


def _refused(model: MarkovLogic, reason: str, refusal: TooLarge) -> TooLarge:
    """Nothing fits: why not lifted, how many states, and what grounding would need."""
    what = f"the exact answer ({reason}; {_state_text(model)})"
    cure, unit = "sample it: `marginals` needs no ground model", refusal.unit or f"as {refusal.what}"
    return TooLarge(what, refusal.size, refusal.limit, cure, unit=unit, at_least=refusal.at_least)


def _state_text(model: MarkovLogic) -> str:
    """An upper bound of the number of states: every atom that is not observed is free."""
    bits = sum(model.knowledge.free_count(name) for name in model.predicates)
    return f"{show.power_of_two(bits)} states"


def _ground(model: MarkovLogic, queries: Sequence[str | Query]) -> tuple[FactorGraph, list[Query], Rows | None]:
    """The one place where Markov logic becomes a factor graph for exact solvers; its rows are orbits of atoms."""
    from definetti.model.logic.ground import ground, ground_size
    from definetti.readers.logic.queries import ground_queries
    from definetti.symmetry.logic.renaming import renaming

    size = ground_size(model)
    if size.factors > MOST_FACTORS:
        raise TooLarge("the ground model", size.factors, MOST_FACTORS, "sample it instead", unit="ground formulas")
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
    if method == "orbits":
        found = _by_orbits(model, queries)
        if found is None:
            raise ModelError("enumeration over orbits answers queries about single variables only")
        return found, method
    contracted = contract(model)
    if not contracted.merged:
        return _cheaper(contracted.model, queries)
    solution, used = _cheaper(contracted.core, [contracted.query(query) for query in queries])
    return replace(solution, literals=_of_model(contracted, solution)), used


def _of_model(contracted: Contracted, solution: Solution) -> np.ndarray:
    """P(x_i = v) is the sum over the values of the core variable that mean it."""
    core, links, model = contracted.core, contracted.links, contracted.model
    parts = [
        np.bincount(links.function(i), weights=solution.marginal(core, int(links.parent[i])), minlength=int(card))
        for i, card in enumerate(model.cards.tolist())
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _cheaper(simple: FactorGraph, queries: Sequence[Query]) -> tuple[Solution, str]:
    """By enumeration or elimination of a simplified model."""
    bits = state_bits(simple, enumerated(simple, open_events(simple, queries)))
    order = _order(simple)
    if isinstance(order, Order) and order.total < 2.0 ** min(bits, 1000):
        return eliminate(simple, queries, order=order), "eliminate"
    if bits <= np.log2(MOST_STATES) + 1e-9:
        return enumerate_states(simple, queries), "enumerate"
    if isinstance(order, Order):
        return eliminate(simple, queries, order=order), "eliminate"
    if bits <= MOST_BITS:  # a group may make them few enough
        try:
            found = _by_orbits(simple, queries)
        except TooLarge:
            found = None
        if found is not None:
            return found, "orbits"
    what = f"the exact answer ({show.power_of_two(bits)} states) by elimination"
    raise TooLarge(what, order.size, order.limit, order.cure, unit=order.unit, at_least=True)


def _by_orbits(model: FactorGraph, queries: Sequence[Query]) -> Solution | None:
    """One state for each orbit; None where an event is asked for."""
    from definetti.solvers.graph.enumerate import orbit_solution
    from definetti.symmetry.find import symmetries as find
    from definetti.symmetry.graph.group import GraphSymmetries

    if any(query.kind == "event" for query in queries):
        return None
    group = find(model, "literals")
    assert isinstance(group, GraphSymmetries)
    return orbit_solution(group)


def _order(model: FactorGraph) -> Order | TooLarge:
    width = int(np.log2(MOST_ENTRIES))
    if has_core(model, width):  # then some table has more entries than allowed, whatever the order
        return TooLarge("elimination", 2 ** (width + 1), MOST_ENTRIES, CURE, unit="table entries", at_least=True)
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
