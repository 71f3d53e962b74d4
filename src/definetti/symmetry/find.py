"""symmetries: the verb for both kinds of model, and whether a given group belongs to one.

It loads only what the model at hand needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from definetti.errors import ModelError
from definetti.model.checked_input import require_model

if TYPE_CHECKING:
    from definetti.groups import PermutationGroup
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.symmetry.graph.group import GraphSymmetries
    from definetti.symmetry.logic.renaming import RenamingSymmetries

    Generators = str | PathLike[str] | PermutationGroup | Sequence[str | Sequence[int] | np.ndarray]

KINDS = ("auto", "literals", "variables", "theory", "renaming", "none")


@overload
def symmetries(
    model: FactorGraph, kind: str = "auto", generators: Generators | None = None, time_limit: float = 10.0
) -> GraphSymmetries: ...
@overload
def symmetries(
    model: MarkovLogic, kind: str = "auto", generators: Generators | None = None, time_limit: float = 10.0
) -> RenamingSymmetries | GraphSymmetries: ...
def symmetries(
    model: FactorGraph | MarkovLogic,
    kind: str = "auto",
    generators: Generators | None = None,
    time_limit: float = 10.0,
) -> GraphSymmetries | RenamingSymmetries:
    """The symmetries of a model after evidence and simplification: found, or given by generators.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        The model.
    kind : {"auto", "literals", "variables", "theory", "renaming", "none"}
        What to look for. "auto" means permutations of literals (variable, value) for a factor graph. For Markov logic
        it means "theory": renamings of constants, and exchanges and negations of predicates. "renaming" leaves
        predicates alone; "literals" and "variables" ground a Markov logic network.
    generators : str, path, sequence or PermutationGroup, optional
        The group instead: permutations in cycle notation, `(X0 X1)(X2 X3)` or `(X0=0 X0=1)`, one in a line; the path
        of a file of them; or arrays of images. Each is checked against the model.
    time_limit : float
        Seconds for the search. What is known by then is returned, with a notice.

    Returns
    -------
    GraphSymmetries or RenamingSymmetries
        The group: `order`, `orbits`, `orbit_of(name)`.

    Raises
    ------
    SymmetryError
        For a given permutation that is no symmetry; the message names the factor that breaks.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
    >>> group = dft.symmetries(ring)
    >>> group.order, group.orbit_of("X0")
    (8, ['X0', 'X1', 'X2', 'X3'])
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"symmetries of kind {kind!r} are not known; choose one of {', '.join(KINDS)}")
    require_model(model, "symmetries are of a model")
    if not (isinstance(time_limit, Real) and time_limit > 0):
        raise ModelError(f"time_limit must be a positive number of seconds, got {time_limit!r}")
    if model.kind == "logic":
        return _of_logic(model, kind, generators, time_limit)
    from definetti.model.graph.simplify import simplify
    from definetti.symmetry.graph.group import find, given, none

    if kind in ("renaming", "theory"):
        raise ModelError(f"{kind} is for Markov logic; a factor graph has symmetries of literals or of variables")
    simple = simplify(cast("FactorGraph", model))
    if generators is not None:
        return given(simple, generators)
    if kind == "none":
        return none(simple)
    return find(simple, "variables" if kind == "variables" else "literals", time_limit)


def _of_logic(model: Any, kind: str, generators: Any, time_limit: float) -> Any:
    from definetti.constraints.logic.forced_atoms import explain_clashes, with_forced_atoms

    if generators is None and kind in ("auto", "theory", "renaming", "none"):
        from definetti.symmetry.logic.renaming import renaming, trivial, with_theory

        more = with_forced_atoms(model)
        found = trivial(more) if kind == "none" else renaming(more, time_limit)
        return replace(with_theory(found) if kind in ("auto", "theory") else found, source=model)
    from definetti.model.logic.ground import ground

    with explain_clashes(model):
        return symmetries(ground(model), kind, generators, time_limit)


# --- a group that is given -------------------------------------------------------------------------------------


def is_group(wanted: Any) -> bool:
    """Whether symmetries are given as a group, not by the name of their kind."""
    return not isinstance(wanted, type) and hasattr(wanted, "model") and hasattr(wanted, "order")


def require_fit(model: Any, group: Any) -> None:
    """`ModelError` unless the group is one of this model with this evidence, or may be one of its ground model."""
    if not (_fits_graph(model, group) if model.kind == "graph" else _fits_logic(model, group)):
        raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")


def _fits_graph(model: Any, group: Any) -> bool:
    """Of the same simplified variables, evidence and factors."""
    if group.model.kind != "graph":
        return False
    from definetti.model.graph.simplify import simplify

    simple, parts = simplify(model), ("cards", "evidence", "scope_start", "scope", "table_of", "table_start", "tables")
    same = (np.array_equal(getattr(simple, part), getattr(group.model, part)) for part in parts)
    return simple.names == group.model.names and all(same)


def _fits_logic(model: Any, group: Any) -> bool:
    """Of the same theory and evidence."""
    if group.model.kind != "logic":
        return True  # of a ground model, which is compared once it is made
    other = group.source or group.model
    if any(getattr(model, part) != getattr(other, part) for part in ("formulas", "sorts", "closed")):
        return False
    pairs = [(model.evidence.get(name), other.evidence.get(name)) for name in model.predicates]
    return all(
        (x is y is None) or (x and y and np.array_equal(x.tuples, y.tuples) and np.array_equal(x.values, y.values))
        for x, y in pairs
    )
