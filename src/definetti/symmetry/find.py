"""symmetries: the verb for both kinds of model. It loads only what the model at hand needs."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

from definetti.errors import ModelError

KINDS = ("auto", "literals", "variables", "renaming", "none")


def symmetries(model: Any, kind: str = "auto", generators: Any = None, time_limit: float = 10.0) -> Any:
    """The symmetries of a model after evidence and simplification: found (`kind`), or given by `generators`.

    Of a factor graph `GraphSymmetries`; of a Markov logic network `RenamingSymmetries`, unless `kind` is `variables` or
    `literals`, which ground it and ask for the symmetries of the ground model. Both are `Symmetries`.
    """
    if kind not in KINDS:
        raise ModelError(f"symmetries of kind {kind!r} are not known; choose one of {', '.join(KINDS)}")
    if getattr(model, "kind", None) not in ("graph", "logic"):
        raise ModelError(f"symmetries are of a model, got a {type(model).__name__}; dft.read makes one")
    if not (isinstance(time_limit, Real) and time_limit > 0):
        raise ModelError(f"time_limit must be a positive number of seconds, got {time_limit!r}")
    if model.kind == "logic":
        return _of_logic(model, kind, generators, time_limit)
    from definetti.model.graph.simplify import simplify
    from definetti.symmetry.graph.group import find, given, none

    if kind == "renaming":
        raise ModelError("renaming is for Markov logic; a factor graph has symmetries of literals or of variables")
    simple = simplify(model)
    if generators is not None:
        return given(simple, generators)
    if kind == "none":
        return none(simple)
    return find(simple, "variables" if kind == "variables" else "literals", time_limit)


def _of_logic(model: Any, kind: str, generators: Any, time_limit: float) -> Any:
    from definetti.constraints.logic.forced_atoms import explain_clashes, with_forced_atoms

    if generators is None and kind in ("auto", "renaming", "none"):
        from definetti.symmetry.logic.renaming import renaming, trivial

        more = with_forced_atoms(model)
        return replace(trivial(more) if kind == "none" else renaming(more, time_limit), source=model)
    from definetti.model.logic.ground import ground

    with explain_clashes(model):
        return symmetries(ground(model), kind, generators, time_limit)
