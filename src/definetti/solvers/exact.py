"""exact: the marginals by whichever exact engine is cheaper, in the same noun as sampled ones (error bars 0).

It loads only what the model at hand needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from definetti.errors import ModelError, query_list
from definetti.model.checked_input import cardinalities, require_model
from definetti.model.marginals import Marginals
from definetti.model.queries import Query
from definetti.readers.reading import language, with_world

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.solvers.work import Budget
    from definetti.symmetry.protocol import Symmetries

METHODS = ("auto", "lifted", "enumerate", "eliminate", "orbits")


def exact(
    model: FactorGraph | MarkovLogic,
    queries: str | Sequence[str | Query] = (),
    *,
    method: str = "auto",
    symmetries: str | Symmetries | None = "auto",
    cardinality: Mapping[str, int] | None = None,
    time_limit: float = 10.0,
    world: str = "open",
    formulas: bool = False,
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
    world : {"open", "alchemy"}
        Of Markov logic: "alchemy" closes what Alchemy would, the predicates with evidence that no query names.
    formulas : bool
        Of Markov logic: add the expected number of true groundings of every formula (`Marginals.formulas`).

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
    if not isinstance(method, str) or method not in METHODS:
        raise ModelError(f"no exact method is called {method!r}; there are {', '.join(METHODS)}")
    require_model(model, "exact needs a model")
    queries = query_list(queries)
    model, said = with_world(model, queries, world)
    if formulas:
        from definetti.solvers.formula_counts import formula_queries

        queries = [*queries, *formula_queries(model)]  # type: ignore[list-item]
    wanted = _wanted(model, symmetries)
    cardinality = cardinalities(cardinality)
    if cardinality:
        if wanted not in ("auto", "renaming"):
            raise ModelError("with given numbers of true atoms the rows are orbits of renamings; leave symmetries out")
        result = _given(model, queries, method, cardinality)
    else:
        result = _answer(model, queries, method, wanted, time_limit)
    result = replace(result, run={**result.run, **language(model)}, notices=(*said, *result.notices))
    if formulas:
        from definetti.solvers.formula_counts import with_formulas

        return with_formulas(cast("MarkovLogic", model), result)
    return result


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
    model: Any,
    queries: Sequence[str | Query],
    method: str,
    wanted: str | Symmetries,
    time_limit: float,
    budget: Budget | None = None,
) -> Marginals:
    if model.kind == "logic":
        from definetti.solvers.lifted_or_ground import logic_answer

        return logic_answer(model, queries, method, wanted, time_limit, budget)
    from definetti.solvers.graph.answers import graph_answer

    return graph_answer(model, queries, method, wanted, time_limit, budget)


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
