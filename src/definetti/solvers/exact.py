"""exact: the marginals by whichever exact engine is cheaper, in the same noun as sampled ones (error bars 0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from definetti import show
from definetti.constraints.graph.contract import Contracted, contract
from definetti.constraints.graph.legal_states import explain
from definetti.constraints.logic.forced_atoms import explain_clashes
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.graph.factors import FactorGraph
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query, parse_query
from definetti.solvers.graph.eliminate import MOST_ENTRIES, eliminate
from definetti.solvers.graph.elimination_order import CURE, Order, has_core, min_fill
from definetti.solvers.graph.enumerate import MOST_STATES, enumerate_states, enumerated, state_bits
from definetti.solvers.graph.solution import Solution, open_events

if TYPE_CHECKING:
    from definetti.symmetry.graph.group import GraphSymmetries
    from definetti.symmetry.logic.renaming import RenamingSymmetries
    from definetti.symmetry.protocol import Symmetries

MOST_BITS = 33  #: of states that are enumerated over orbits, if the group is large enough
MOST_FACTORS = 300_000  #: of a ground model that elimination is tried on
METHODS = ("auto", "lifted", "enumerate", "eliminate", "orbits")


def exact(
    model: FactorGraph | MarkovLogic,
    queries: str | Sequence[str | Query] = (),
    *,
    method: str = "auto",
    symmetries: str | Symmetries | None = "auto",
    cardinality: Mapping[str, int] | None = None,
    time_limit: float = 10.0,
) -> Marginals:
    """Exact marginals of all free variables, of queries, and log Z.

    Markov logic is counted lifted where it can be (at most two logical variables in a formula), otherwise grounded.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        What is asked about.
    queries : str or sequence of str
        Variables, atoms or formulas over them, as for `marginals`.
    method : {"auto", "lifted", "enumerate", "eliminate", "orbits"}
        The engine; "auto" takes the cheapest that fits.
    symmetries : {"auto", "none", "variables", "literals", "theory", "renaming"}, group or None
        What groups the rows of the answer, as for `marginals`: one row for each orbit of variables. None and "none"
        give every variable a row of its own.
    cardinality : mapping, optional
        Predicates to their numbers of true atoms, `{"Friends": 120}`: a condition (lifted counting only).
    time_limit : float
        Seconds for the search for symmetries.

    Returns
    -------
    Marginals
        With error bars 0, `log_z` and `method`.

    Raises
    ------
    TooLarge
        Where no engine fits, before memory is taken.
    Unsatisfiable
        Where no state is possible.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 5, [([i, (i + 1) % 5], [[1, 2], [2, 1]]) for i in range(5)])
    >>> p = dft.exact(ring, ["X0=1 ^ X1=1"])
    >>> p
    Marginals(5 variables in 1 orbits, exact by eliminate)
    >>> round(p["X0=1 ^ X1=1"].probability, 4)
    0.1694
    """
    if method not in METHODS:
        raise ModelError(f"no exact method is called {method!r}; there are {', '.join(METHODS)}")
    if getattr(model, "kind", None) not in ("graph", "logic"):
        raise ModelError(f"exact needs a model, got a {type(model).__name__}; dft.read makes one")
    queries = [queries] if isinstance(queries, str) else queries
    wanted = _wanted(model, symmetries)
    if cardinality:
        if wanted not in ("auto", "renaming"):
            raise ModelError("with given numbers of true atoms the rows are orbits of renamings; leave symmetries out")
        return _given(model, queries, method, cardinality)
    if isinstance(model, MarkovLogic):
        with explain_clashes(model):
            return _of_logic(model, queries, method, wanted, time_limit)
    if method == "lifted":
        raise ModelError("lifted counting is for Markov logic; a factor graph has no logical variables")
    asked = [q if isinstance(q, Query) else parse_query(q, model) for q in queries]
    try:
        solution, used = _solve(model, asked, method)
    except Unsatisfiable:
        raise explain(model) from None  # which factors and evidence clash, as they were given
    return _by_group(model, asked, solution, used, _graph_group(model, wanted, time_limit))


def _wanted(model: FactorGraph | MarkovLogic, symmetries: object) -> str | Symmetries:
    """What was asked for: a kind of symmetries, or a group that belongs to the model."""
    from definetti.symmetry.find import KINDS, is_group, require_fit

    if symmetries is None:
        return "none"
    if is_group(symmetries):
        require_fit(model, symmetries)
    elif symmetries not in KINDS:
        kinds = ", ".join(KINDS)
        raise ModelError(f"symmetries is one of {kinds}, None or a group that dft.symmetries gave, not {symmetries!r}")
    return symmetries  # type: ignore[return-value]


def _graph_group(model: FactorGraph, wanted: str | Symmetries, time_limit: float) -> GraphSymmetries:
    from definetti.symmetry.find import symmetries as find

    return find(model, wanted, None, time_limit) if isinstance(wanted, str) else wanted  # type: ignore[return-value]


def _logic_group(model: MarkovLogic, wanted: str | Symmetries, time_limit: float) -> RenamingSymmetries:
    """Renamings that may be found without what hard formulas force: the numbers say so themselves."""
    from definetti.symmetry.logic.renaming import renaming, trivial, with_theory

    if isinstance(wanted, str):
        found = trivial(model) if wanted == "none" else renaming(model, time_limit)
        return with_theory(found) if wanted == "theory" else found
    return wanted  # type: ignore[return-value]


def _of_logic(
    model: MarkovLogic,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
) -> Marginals:
    from definetti.symmetry.find import require_fit
    from definetti.symmetry.logic.members import by_atoms

    given = not isinstance(wanted, str) and wanted.model.kind == "graph"  # a group of the ground model
    of_ground = given or wanted in ("variables", "literals")
    if of_ground and method == "lifted":
        raise ModelError("lifted counting groups rows by renaming; leave symmetries out, or choose another method")
    reason = "rows are orbits of the ground model"
    if not of_ground:
        found, reason = _lifted(model, queries, method, lambda: _logic_group(model, wanted, time_limit))
        if found is not None:
            return found
    try:
        graph, asked = _ground(model, queries)
        if given:
            require_fit(graph, wanted)
        solution, used = _solve(graph, asked, method)
    except TooLarge as refusal:
        raise _refused(model, reason, refusal) from None
    if of_ground:
        return by_atoms(model, _by_group(graph, asked, solution, used, _graph_group(graph, wanted, time_limit)))
    group = _logic_group(model, wanted, time_limit)
    if any(predicate.exclusive for predicate in model.predicates.values()):  # a variable is a block of atoms
        alone = AtomRows.of(np.full(graph.n, -1), graph.free)
        answers = _marginals(graph, asked, solution, used, alone, graph.evidence)
        return _by_renaming(model, graph, solution, answers, group)
    orbit = np.concatenate([group.orbit_grid(name).ravel() for name in model.predicates])
    rows = AtomRows.of(orbit, graph.free)
    return by_atoms(model, _marginals(graph, asked, solution, used, rows, graph.evidence))


def _by_renaming(
    model: MarkovLogic, graph: FactorGraph, solution: Solution, answers: Marginals, group: RenamingSymmetries
) -> Marginals:
    """A variable of the ground model may be a `!` block: its atoms are asked for, as sampling answers for them."""
    from definetti.model.logic.atom_literals import layout
    from definetti.model.logic.atom_names import find_atom
    from definetti.symmetry.logic.members import AtomMembers, by_atoms

    boxes = layout(model)
    if len(group.atom_orbits) < len(model.predicates):  # too many kinds of atoms to number
        return by_atoms(model, answers)
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

    if model.kind != "logic" or method not in ("auto", "lifted"):
        raise ModelError("the number of true atoms can be given where a Markov logic network is counted lifted")
    try:
        return given_answer(cast("MarkovLogic", model), cardinality, [q for q in queries if isinstance(q, str)])
    except NotLiftable as refusal:
        raise ModelError(f"this model cannot be counted lifted: {refusal}") from None


def _lifted(
    model: MarkovLogic, queries: Sequence[str | Query], method: str, group: Callable[[], RenamingSymmetries]
) -> tuple[Marginals | None, str]:
    """The answer by lifted counting, or why there is none."""
    from definetti.solvers.lifted.marginals import lifted_marginals
    from definetti.solvers.lifted.theory import NotLiftable

    if method not in ("auto", "lifted"):
        return None, f"the method is {method}"
    if any(isinstance(q, Query) for q in queries):
        return None, "queries are about ground variables"
    try:
        return lifted_marginals(model, [q for q in queries if isinstance(q, str)], group), ""
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


def _ground(model: MarkovLogic, queries: Sequence[str | Query]) -> tuple[FactorGraph, list[Query]]:
    """The one place where Markov logic becomes a factor graph for exact solvers."""
    from definetti.model.logic.ground import ground, ground_size
    from definetti.readers.logic.queries import ground_queries

    size = ground_size(model)
    if size.factors > MOST_FACTORS:
        raise TooLarge("the ground model", size.factors, MOST_FACTORS, "sample it instead", unit="ground formulas")
    graph = ground(model)
    asked = [*ground_queries(model, [q for q in queries if isinstance(q, str)])]
    return graph, [*asked, *(q for q in queries if isinstance(q, Query))]


@dataclass(frozen=True, eq=False)
class AtomRows:
    """Which variables of a ground model share a row, from their orbit numbers; a free one without an orbit is alone."""

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

    if any(query.kind == "event" for query in queries):
        return None
    group = find(model, "literals")
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


def _by_group(
    model: FactorGraph, queries: Sequence[Query], solution: Solution, method: str, group: GraphSymmetries
) -> Marginals:
    """The rows of a group, whose model has as evidence what it could show to be forced."""
    answers = _marginals(model, queries, solution, method, group, group.model.evidence)
    return replace(answers, notices=group.notices)


def _marginals(
    model: FactorGraph,
    queries: Sequence[Query],
    solution: Solution,
    method: str,
    grouped: AtomRows | GraphSymmetries,
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
