"""The exact answer of a Markov logic network: counted lifted where it can be, else from its ground model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from definetti import show
from definetti.constraints.logic.forced_atoms import explain_clashes, with_forced_atoms
from definetti.errors import ModelError, TooLarge
from definetti.model.logic.theory import MarkovLogic
from definetti.model.marginals import Marginals, OrbitRow
from definetti.model.queries import Query
from definetti.solvers.work import GROUNDING, Budget, TooMuch

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.readers.logic.queries import QueryPart
    from definetti.solvers.graph.solution import Solution
    from definetti.symmetry.logic.renaming import RenamingSymmetries
    from definetti.symmetry.protocol import Symmetries

MOST_FACTORS = 300_000  #: of a ground model that elimination is tried on


def logic_answer(
    model: MarkovLogic,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
    budget: Budget | None,
) -> Marginals:
    from definetti.solvers.query_parts import parts_of

    parts = parts_of(model, queries, method)
    with explain_clashes(model):
        if parts is None:
            return _of_logic(model, queries, method, wanted, time_limit, budget)
        found = _of_logic(model, parts.asked, method, wanted, time_limit, budget)
    return parts.put_together(found, [q for q in queries if isinstance(q, Query)])


def _logic_group(
    model: MarkovLogic, wanted: str | Symmetries, time_limit: float, with_forced: bool
) -> RenamingSymmetries:
    """Renamings; without what hard formulas force the numbers themselves say what that is."""
    from definetti.symmetry.find import symmetries as find
    from definetti.symmetry.logic.renaming import renaming, trivial, with_theory

    if isinstance(wanted, str) and with_forced:
        return find(model, wanted, None, time_limit)  # type: ignore[return-value]
    if isinstance(wanted, str):
        found = trivial(model) if wanted == "none" else renaming(model, time_limit)
        return with_theory(found) if wanted == "theory" else found
    return wanted  # type: ignore[return-value]


def _of_logic(
    model: MarkovLogic,
    queries: Sequence[str | QueryPart | Query],
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
    as_sampled = budget is not None  # forced atoms are reported like evidence

    def grouped() -> RenamingSymmetries:
        return _logic_group(model, wanted, time_limit, as_sampled)

    found, reason = None, "rows are orbits of the ground model"
    if not of_ground:
        found, reason = _lifted(model, queries, method, grouped, budget)
        if isinstance(found, Marginals):
            return found
    from definetti.solvers.graph.answers import SomeRows, answers_by, by_group, graph_group, solve

    try:
        graph, asked = _ground(with_forced_atoms(model) if as_sampled else model, queries, budget)
        if given:
            require_fit(graph, wanted)
        solution, used = solve(graph, asked, method, budget)
    except TooMuch as refusal:
        raise refusal if found is None or refusal.work < found.work else found from None
    except TooLarge as refusal:
        raise _refused(model, reason, refusal) if found is None else found from None
    if of_ground:
        return by_atoms(model, by_group(graph, asked, solution, used, graph_group(graph, wanted, time_limit)))
    group = grouped()
    if any(predicate.exclusive for predicate in model.predicates.values()):  # a variable is a block of atoms
        alone = SomeRows.of(np.full(graph.n, -1), graph.free)
        answers = answers_by(graph, asked, solution, used, alone, graph.evidence)
        return _by_renaming(model, graph, solution, answers, group)
    orbit = np.concatenate([group.orbit_grid(name).ravel() for name in model.predicates])
    rows = SomeRows.of(orbit, graph.free)
    return by_atoms(model, answers_by(graph, asked, solution, used, rows, graph.evidence))


def _by_renaming(
    model: MarkovLogic, graph: FactorGraph, solution: Solution, answers: Marginals, group: RenamingSymmetries
) -> Marginals:
    """A variable of the ground model may be a `!` block: its atoms are asked for, as sampling answers for them."""
    from definetti.model.logic.atom_literals import layout
    from definetti.model.logic.text import find_atom
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


def _lifted(
    model: MarkovLogic,
    queries: Sequence[str | QueryPart | Query],
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
        return lifted_marginals(model, [q for q in queries if not isinstance(q, Query)], group, own), ""
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
    bits = model.knowledge.free_total
    return f"{show.power_of_two(bits)} states"


def _ground(
    model: MarkovLogic, queries: Sequence[str | QueryPart | Query], budget: Budget | None
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
    asked = [*ground_queries(model, [q for q in queries if not isinstance(q, Query)])]
    return graph, [*asked, *(q for q in queries if isinstance(q, Query))]
