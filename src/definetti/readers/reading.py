"""`read`: any source of a model, by the suffix of its file or the type of its object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from definetti.errors import ModelError, Notice, ParseError
from definetti.files import as_path, require_file
from definetti.model.graph.factors import FactorGraph
from definetti.readers.graph.uai import read_evid

if TYPE_CHECKING:
    from definetti.model.logic.theory import MarkovLogic

Model: TypeAlias = "FactorGraph | MarkovLogic"
Evidence = (
    str
    | PathLike[str]
    | Iterable[str | PathLike[str]]
    | Mapping[str, int | str | bool | None]
    | Mapping[int, int | str]
)

FACTOR_GRAPHS = {".uai": "read_uai", ".fg": "read_fg"}  # suffix → function of the module of that name
SUFFIXES = (*FACTOR_GRAPHS, ".mln")
WORLDS = ("open", "alchemy")


def read(
    source: object,
    evidence: Evidence | None = None,
    *,
    domain: Mapping[str, int] | None = None,
    open_world: Iterable[str] = (),
    closed_world: Iterable[str] = (),
    weights: str = "formula",
    dialect: str = "auto",
    default_weight: float | None = None,
    beta: float | None = None,
    coupling: float | None = None,
) -> Model:
    """A model from a file or from an object of another library.

    Parameters
    ----------
    source : path or object
        A .uai, .fg or .mln file; a pgmpy Markov or Bayesian network, a dimod BinaryQuadraticModel or
        DiscreteQuadraticModel, an undirected networkx graph of spins, or a list of (scope, table).
    evidence : path or mapping, optional
        An .evid file for a factor graph, a .db file (or several) for Markov logic, or a mapping from names to values.
    domain : mapping, optional
        Of Markov logic: sorts to their number of constants.
    open_world, closed_world : iterables of str
        Of Markov logic: predicates whose atoms are unknown, or false, where the evidence does not name them. Open is
        the default.
    weights : {"formula", "alchemy"}
        Of Markov logic: a weight counts once per grounding in which the whole formula is true, or is split over the
        clauses of the formula.
    dialect : {"auto", "alchemy", "tuffy", "pracmln"}
        Of Markov logic: the dialect of the file; recognised by default. `model.dialect` says which was read.
    default_weight : float, optional
        Of Markov logic: the weight of formulas that have none. Without it such a model has a structure and symmetries,
        but no marginals.
    beta : float, optional
        Of dimod's models: the inverse temperature, 1 by default.
    coupling : float, optional
        Of networkx graphs: the coupling of edges without the attribute `coupling`.

    Returns
    -------
    FactorGraph or MarkovLogic
        The model, frozen.

    Raises
    ------
    ParseError
        For a file that cannot be read, with line and column.
    ModelError
        For an object that is no model, or options that do not apply to it.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.read([(["rain", "wet"], [[9, 1], [1, 4]])], evidence={"wet": 1})
    FactorGraph(2 variables, 1 observed, 1 factors, 1 tables)
    """
    logic: dict[str, Any] = {"domain": domain, "open_world": open_world, "closed_world": closed_world}
    logic = {name: value for name, value in logic.items() if value}
    chosen = {"weights": (weights, "formula"), "dialect": (dialect, "auto"), "default_weight": (default_weight, None)}
    logic |= {name: value for name, (value, default) in chosen.items() if value != default}
    options = {name: value for name, value in (("beta", beta), ("coupling", coupling)) if value is not None}
    if isinstance(source, str | PathLike):
        path = as_path(source, "a model")
        suffix = _suffix(path)
        if options:
            raise ModelError(f"{_and(options)} cannot be given for a file, only for models of dimod or networkx")
        if suffix == ".mln":
            return _read_mln(path, evidence, logic)
        _refuse_logic(logic, f"{path} is a factor graph")
        return observe(_reader(suffix)(path), evidence)
    _refuse_logic(logic, f"this is a {type(source).__name__} already")
    if getattr(source, "kind", None) == "logic":
        if evidence is not None or options:
            raise ModelError("a MarkovLogic model is complete; model.condition({'Smokes(Anna)': True}) adds evidence")
        return cast("MarkovLogic", source)
    from definetti.readers.graph.adapters import adapt

    return observe(adapt(source, **options), evidence)


def markov_logic(
    text: str,
    evidence: Evidence | None = None,
    *,
    domain: Mapping[str, int] | None = None,
    open_world: Iterable[str] = (),
    closed_world: Iterable[str] = (),
    weights: str = "formula",
    dialect: str = "auto",
    default_weight: float | None = None,
) -> MarkovLogic:
    """A Markov logic network from text in the language of .mln files.

    Parameters
    ----------
    text : str
        Declarations and formulas, one in a line.
    evidence : str, path or mapping, optional
        The text of a .db file (`Smokes(Anna)`, `!Smokes(Bob)`, one atom in a line), the path to one, or a mapping such
        as `{"Smokes(Anna)": True}`. A single line that ends in .db is a path.
    domain : mapping, optional
        Sorts to their number of constants.
    open_world, closed_world : iterables of str
        Predicates whose atoms are unknown (the default), or false, where the evidence does not name them.
    weights : {"formula", "alchemy"}
        A weight counts once per grounding in which the whole formula is true, or is split over its clauses.
    dialect : {"auto", "alchemy", "tuffy", "pracmln"}
        The dialect of the file; recognised by default. `model.dialect` says which was read.
    default_weight : float, optional
        The weight of formulas that have none. Without it such a model has a structure and symmetries,
        but no marginals.

    Returns
    -------
    MarkovLogic
        The model, frozen. `condition` and `with_domain` make others from it.

    Raises
    ------
    ParseError
        With line and column of the text.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.markov_logic('''
    ...     Smokes(person)
    ...     Friends(person, person)
    ...     0.5 Friends(x,y) ^ Smokes(x) => Smokes(y)
    ... ''', evidence="Friends(Anna, Bob)", domain={"person": 100})
    >>> model
    MarkovLogic(person=100; 10100 atoms, 1 formulas, 10000 groundings)
    """
    if not isinstance(text, str):
        raise ModelError(f"markov_logic takes the text of a model, not a {type(text).__name__}; dft.read takes a path")
    if "\n" not in text and text.strip().endswith(".mln"):
        raise ModelError(f"markov_logic takes the text of a model; dft.read({text!r}) reads the file")
    from definetti.readers.logic.mln import read_mln_text  # lark is loaded only for Markov logic

    worlds = {"open_world": open_world, "closed_world": closed_world}
    how = {"weights": weights, "dialect": dialect, "default_weight": default_weight}
    return read_mln_text(text, cast("Any", evidence), domain=domain, **how, **worlds)


def observe(model: FactorGraph, evidence: Evidence | None) -> FactorGraph:
    """The factor graph with evidence from an .evid file or a mapping."""
    if evidence is None:
        return model
    if isinstance(evidence, str | PathLike):
        return read_evid(evidence, model)
    if isinstance(evidence, Mapping):
        return model.condition(cast("Mapping[str, int | str]", evidence))
    kind = type(evidence).__name__
    raise ModelError(f"evidence must be a path to an .evid file or a mapping from names to values, not a {kind}")


def _reader(suffix: str) -> Callable[[Path], FactorGraph]:
    """Of this format, the others not loaded."""
    return getattr(import_module(f"definetti.readers.graph{suffix}"), FACTOR_GRAPHS[suffix])


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

    return read_mln(path, evidence=cast("Any", evidence), **logic)


def _refuse_logic(logic: Mapping[str, Any], why: str) -> None:
    if logic:
        raise ModelError(f"{_and(logic)} cannot be given: {why}, and this is for Markov logic (.mln files)")


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)


def with_world(model: Any, queries: Sequence[object], world: str) -> tuple[Any, tuple[Notice, ...]]:
    """The model that is asked about, with weights and with Alchemy's closed world if asked for; what to say of it."""
    if not isinstance(world, str) or world not in WORLDS:
        raise ModelError(f"world is 'open' or 'alchemy', not {world!r}")
    if model.kind != "logic":
        if world != "open":
            raise ModelError("world='alchemy' is for Markov logic; a factor graph has no closed predicates")
        return model, ()
    model.require_weights()
    if world == "open":
        return model, ()
    from definetti.readers.logic.queries import alchemy_world

    return alchemy_world(model, [query for query in queries if isinstance(query, str)])


def language(model: Any) -> dict[str, str]:
    """What is taken for false without being said, and the dialect that was read: for the record of a run."""
    if model.kind != "logic":
        return {"world": "open"}
    closed = sorted(model.closed - model.computed)
    return {"world": f"closed: {','.join(closed)}" if closed else "open", "dialect": model.dialect}
