"""`read`: any source of a model, by the suffix of its file or the type of its object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from definetti.errors import ModelError, ParseError
from definetti.files import require_file
from definetti.model.graph.factors import FactorGraph
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.graph.adapters import adapt
from definetti.readers.graph.fg import read_fg
from definetti.readers.graph.uai import read_evid, read_uai

Model = FactorGraph | MarkovLogic
Evidence = str | PathLike[str] | Mapping[Any, Any]

FACTOR_GRAPHS = {".uai": read_uai, ".fg": read_fg}
SUFFIXES = (*FACTOR_GRAPHS, ".mln")


def read(
    source: Any,
    evidence: Evidence | None = None,
    *,
    domain: Mapping[str, Any] | None = None,
    open_world: Iterable[str] = (),
    closed_world: Iterable[str] = (),
    weights: str = "formula",
    beta: float | None = None,
    coupling: float | None = None,
) -> Model:
    """A model from a file (.uai, .fg, .mln) or from an object (pgmpy, dimod, networkx, a list of (scope, table)).

    `evidence` is a file (.evid for a factor graph, .db for Markov logic) or a mapping from names
    to values. `domain`, `open_world`, `closed_world` and `weights` belong to Markov logic, `beta` to dimod's models
    and `coupling` to networkx graphs.
    """
    logic: dict[str, Any] = {"domain": domain, "open_world": open_world, "closed_world": closed_world}
    logic = {name: value for name, value in logic.items() if value}
    if weights != "formula":
        logic["weights"] = weights
    options = {name: value for name, value in (("beta", beta), ("coupling", coupling)) if value is not None}
    if isinstance(source, str | PathLike):
        path = Path(fspath(source))
        suffix = _suffix(path)
        if options:
            raise ModelError(f"{_and(options)} cannot be given for a file, only for models of dimod or networkx")
        if suffix == ".mln":
            return _read_mln(path, evidence, logic)
        _refuse_logic(logic, f"{path} is a factor graph")
        return observe(FACTOR_GRAPHS[suffix](path), evidence)
    _refuse_logic(logic, f"this is a {type(source).__name__} already")
    if isinstance(source, MarkovLogic):
        if evidence is not None or options:
            raise ModelError("a MarkovLogic model is complete; give evidence when its file is read")
        return source
    return observe(adapt(source, **options), evidence)


def observe(model: FactorGraph, evidence: Evidence | None) -> FactorGraph:
    """The factor graph with evidence from an .evid file or a mapping."""
    if evidence is None:
        return model
    if isinstance(evidence, str | PathLike):
        return read_evid(evidence, model)
    if isinstance(evidence, Mapping):
        return model.condition(evidence)
    kind = type(evidence).__name__
    raise ModelError(f"evidence must be a path to an .evid file or a mapping from names to values, not a {kind}")


def _suffix(path: Path) -> str:
    """The suffix, in small letters, of a model file that is there."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return suffix
    known = ", ".join(SUFFIXES)
    if suffix in (".evid", ".db"):
        raise ParseError(f"a {suffix} file holds evidence; give the model first and this file as evidence", path=path)
    if suffix in (".gz", ".bz2", ".xz", ".zip", ".zst"):
        raise ParseError(f"the file is compressed; decompress it first (models are {known})", path=path)
    require_file(path)
    raise ParseError(f"unknown kind of file; the name of a model ends in one of {known}", path=path)


def _read_mln(path: Path, evidence: Evidence | None, logic: dict[str, Any]) -> MarkovLogic:
    require_file(path)
    from definetti.readers.logic.mln import read_mln  # lark is loaded only for Markov logic

    return read_mln(path, evidence=evidence, **logic)


def _refuse_logic(logic: Mapping[str, Any], why: str) -> None:
    if logic:
        raise ModelError(f"{_and(logic)} cannot be given: {why}, and this is for Markov logic (.mln files)")


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
