"""exact: the marginals by whichever exact engine is cheaper, in the same noun as sampled ones (error bars 0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from definetti import show
from definetti.constraints.graph.contract import contract
from definetti.constraints.graph.legal_states import explain
from definetti.constraints.logic.forced_atoms import explain_clashes, with_forced_atoms
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.graph.factors import FactorGraph
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.model.queries import Query, parse_query
from definetti.memory import available_memory
from definetti.solvers.graph.eliminate import MOST_ENTRIES, eliminate
from definetti.solvers.graph.elimination_order import CURE
from definetti.solvers.graph.enumerate import enumerate_states, state_bits
from definetti.solvers.graph.routes import BYTES, routes
from definetti.solvers.graph.solution import Solution, active_variables
from definetti.solvers.work import GROUNDING, Budget, TooMuch

if TYPE_CHECKING:
    from definetti.symmetry.graph.group import GraphSymmetries
    from definetti.symmetry.logic.renaming import RenamingSymmetries
    from definetti.symmetry.protocol import Symmetries

MOST_BITS = 33  #: of states that are enumerated over orbits, if the group is large enough
MOST_FACTORS = 300_000  #: of a ground model that elimination is tried on
MOST_TRIED, MOST_STEPS = 50_000, 300_000  #: factors; steps of a search for an order: for an answer nobody asked for
FEWEST_ENTRIES = 1 << 20  #: that there is always room for
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
    symmetries : {"auto", "none", "variables", "literals", "renaming"}, group or None
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
    Marginals(5 variables in 1 orbits, exact by enumerate)
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
    return _answer(model, queries, method, wanted, time_limit)


def exact_within(
    model: FactorGraph | MarkovLogic,
    queries: Sequence[str | Query],
    symmetries: str | Symmetries | None,
    time_limit: float,
    budget: Budget,
) -> Marginals:
    """The exact marginals, if they take no more counted work than the budget has; else `TooMuch`, or `TooLarge` where
    no engine is within reach."""
    return _answer(model, queries, "auto", _wanted(model, symmetries), time_limit, budget)


def _answer(
    model: FactorGraph | MarkovLogic,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
    budget: Budget | None = None,
) -> Marginals:
    if isinstance(model, MarkovLogic):
        with explain_clashes(model):
            return _of_logic(model, queries, method, wanted, time_limit, budget)
    if method == "lifted":
        raise ModelError("lifted counting is for Markov logic; a factor graph has no logical variables")
    asked = [q if isinstance(q, Query) else parse_query(q, model) for q in queries]
    try:
        solution, used = _solve(model, asked, method, budget)
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


def _logic_group(
    model: MarkovLogic, wanted: str | Symmetries, time_limit: float, with_forced: bool
) -> RenamingSymmetries:
    """Renamings; without what hard formulas force the numbers themselves say what that is."""
    from definetti.symmetry.find import symmetries as find
    from definetti.symmetry.logic.renaming import renaming, trivial

    if isinstance(wanted, str) and with_forced:
        return find(model, wanted, None, time_limit)  # type: ignore[return-value]
    if isinstance(wanted, str):
        return trivial(model) if wanted == "none" else renaming(model, time_limit)
    return wanted  # type: ignore[return-value]


def _of_logic(
    model: MarkovLogic,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
    budget: Budget | None,
) -> Marginals:
    from definetti.symmetry.find import require_fit
    from definetti.symmetry.logic.members import by_atoms

    given = not isinstance(wanted, str) and wanted.model.kind == "graph"  # a group of the ground model
    of_ground = given or wanted in ("variables", "literals")
    if of_ground and method == "lifted":
        raise ModelError("lifted counting groups rows by renaming; leave symmetries out, or choose another method")
    as_sampled = budget is not None  # forced atoms are told like evidence

    def grouped() -> RenamingSymmetries:
        return _logic_group(model, wanted, time_limit, as_sampled)

    found, reason = None, "rows are orbits of the ground model"
    if not of_ground:
        found, reason = _lifted(model, queries, method, grouped, budget)
        if isinstance(found, Marginals):
            return found
    try:
        graph, asked = _ground(with_forced_atoms(model) if as_sampled else model, queries, budget)
        if given:
            require_fit(graph, wanted)
        solution, used = _solve(graph, asked, method, budget)
    except TooMuch as refusal:
        raise refusal if found is None or refusal.work < found.work else found from None
    except TooLarge as refusal:
        raise _refused(model, reason, refusal) if found is None else found from None
    if of_ground:
        return by_atoms(model, _by_group(graph, asked, solution, used, _graph_group(graph, wanted, time_limit)))
    group = grouped()
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
    model: MarkovLogic,
    queries: Sequence[str | Query],
    method: str,
    group: Callable[[], RenamingSymmetries],
    budget: Budget | None,
) -> tuple[Marginals | TooMuch | None, str]:
    """The answer by lifted counting, or why there is none; the work, where that is too much."""
    from definetti.solvers.lifted.marginals import lifted_marginals
    from definetti.solvers.lifted.theory import NotLiftable

    if method not in ("auto", "lifted"):
        return None, f"the method is {method}"
    if any(isinstance(q, Query) for q in queries):
        return None, "queries are about ground variables"
    try:
        own = Budget() if budget is None else Budget(budget.limit)
        return lifted_marginals(model, [q for q in queries if isinstance(q, str)], group, own), ""
    except TooMuch as refusal:
        return refusal, ""
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


def _ground(
    model: MarkovLogic, queries: Sequence[str | Query], budget: Budget | None
) -> tuple[FactorGraph, list[Query]]:
    """The one place where Markov logic becomes a factor graph for exact solvers."""
    from definetti.model.logic.ground import ground, ground_size
    from definetti.readers.logic.queries import ground_queries

    size = ground_size(model)
    if size.factors > MOST_FACTORS:
        raise TooLarge("the ground model", size.factors, MOST_FACTORS, "sample it instead", unit="ground formulas")
    if budget is not None:
        budget.charge(GROUNDING * size.factors)
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


def _solve(model: FactorGraph, queries: Sequence[Query], method: str, budget: Budget | None) -> tuple[Solution, str]:
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
    ways, refusal = routes(model, queries, MOST_ENTRIES, MOST_STEPS)
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
