"""Symmetries of a factor graph: found by graph automorphism, or given by generators; always checked against the model.

The group acts on the literals of the *simplified* model, so value flips and permuted values count as well as renamings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from definetti import groups, show
from definetti.errors import ModelError, Notice, SymmetryError
from definetti.groups import Generator, PermutationGroup
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.graph import bliss
from definetti.symmetry.graph.check import ScopeIndex, scope_index, violation
from definetti.symmetry.graph.coloured_graph import ColouredGraph, literal_graph
from definetti.symmetry.graph.generator_text import read_generators
from definetti.symmetry.graph.twins import Twins, twins
from definetti.symmetry.graph.variable_graph import variable_graph

if TYPE_CHECKING:
    from definetti.symmetry.logic.renaming import RenamingSymmetries

MOST_NODES = 4_000_000  # of the graph over literals
TUPLE_CAP = 2_000_000  # members of a tuple's orbit
KINDS = ("auto", "literals", "variables", "renaming", "none")
Model = FactorGraph | MarkovLogic
Generators = str | PathLike[str] | PermutationGroup | Sequence[str | Sequence[int] | np.ndarray]


@dataclass(frozen=True)
class Orbit:
    """A set of variables with equal marginals: a name that stands for them, and how many they are."""

    representative: str
    size: int


@dataclass(frozen=True, eq=False, repr=False)
class Symmetries:
    """A group of symmetries of a factor graph, acting on literals; `symmetries` finds it.

    Attributes
    ----------
    model : FactorGraph
        The simplified model.
    group : PermutationGroup
        Its generators.
    order : int or None
        The number of its elements; None where it is not known.
    kind : {"literals", "variables", "given", "none"}
        Where it comes from.
    notices : tuple of Notice
        What limits it.
    seconds : float
        What the search took.

    Examples
    --------
    >>> import definetti as dft
    >>> dft.symmetries(dft.factor_graph([2, 2], [([0, 1], [[1, 2], [2, 1]])]))
    Symmetries(order 4, 1 orbits of 2 variables, literals)
    """

    model: FactorGraph
    group: PermutationGroup
    order: int | None
    kind: str  # "literals", "variables", "given" or "none"
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0

    @cached_property
    def literal_orbit(self) -> np.ndarray:
        """int32[L]: the orbit of each literal, numbered by smallest member."""
        return frozen(groups.orbits(self.group))

    @cached_property
    def literal_orbit_size(self) -> np.ndarray:
        return frozen(np.bincount(self.literal_orbit), np.int64)

    @cached_property
    def row_of(self) -> np.ndarray:
        """int32[n]: i and j share a row if (i, v) and (j, v) share an orbit for every v; -1 for observed variables."""
        model = self.model
        first = np.full(model.n, -1, dtype=np.int64)  # the smallest variable with the same row
        for card in np.unique(model.cards[model.free]).tolist():
            variables = model.free[model.cards[model.free] == card]
            labels = self.literal_orbit[model.literal_start[variables][:, None] + np.arange(card)]
            order = np.lexsort(labels.T[::-1])  # stable: the first of equal rows is the smallest variable
            new = np.ones(len(order), dtype=bool)
            new[1:] = (labels[order[1:]] != labels[order[:-1]]).any(axis=1)
            start = np.flatnonzero(new)
            first[variables[order]] = np.repeat(variables[order[start]], np.diff(np.append(start, len(order))))
        row = np.full(model.n, -1, dtype=np.int32)
        row[model.free] = np.unique(first[model.free], return_inverse=True)[1].ravel()
        return frozen(row, np.int32)

    @cached_property
    def row_size(self) -> np.ndarray:
        return frozen(np.bincount(self.row_of[self.model.free]), np.int64)

    @cached_property
    def row_representative(self) -> np.ndarray:
        """int64: the smallest variable of each row."""
        return frozen(self.model.free[np.unique(self.row_of[self.model.free], return_index=True)[1]], np.int64)

    @cached_property
    def orbits(self) -> tuple[Orbit, ...]:
        """One entry per row, in the order of rows."""
        names = self.model.names
        pairs = zip(self.row_representative.tolist(), self.row_size.tolist(), strict=True)
        return tuple(Orbit(names[i], size) for i, size in pairs)

    @property
    def generator_count(self) -> int:
        return len(self.group.generators)

    def orbit_of(self, name: str) -> list[str]:
        """The variables that share a row with this one; an observed variable is alone."""
        i = self.model.index(name)
        if self.row_of[i] < 0:
            return [name]
        return [self.model.names[j] for j in np.flatnonzero(self.row_of == self.row_of[i]).tolist()]

    def tuple_orbit(self, literals: Sequence[int] | np.ndarray, cap: int = TUPLE_CAP) -> np.ndarray | None:
        """int64[m, k]: the orbit of an ordered tuple of literals, or None if it has more than `cap` members."""
        return groups.tuple_orbit(self.group, literals, cap)

    def random_elements(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Nearly uniform elements as dense permutations of literals, for ever."""
        return groups.random_elements(self.group, rng)

    def random_element(self, rng: np.random.Generator) -> np.ndarray:
        return groups.random_element(self.group, rng)

    def __repr__(self) -> str:
        order = "unknown" if self.order is None else show.large(self.order)
        orbits = f"{len(self.row_size)} orbits of {len(self.model.free)} variables"
        doubt = "".join(f", {notice.kind}" for notice in self.notices)
        return f"Symmetries(order {order}, {orbits}, {self.kind}{doubt})"


# --- verbs -------------------------------------------------------------------------------------------------------


@overload
def symmetries(
    model: FactorGraph, kind: str = "auto", generators: Generators | None = None, time_limit: float = 10.0
) -> Symmetries: ...
@overload
def symmetries(
    model: MarkovLogic, kind: str = "auto", generators: Generators | None = None, time_limit: float = 10.0
) -> Symmetries | RenamingSymmetries: ...
def symmetries(
    model: Model,
    kind: str = "auto",
    generators: Generators | None = None,
    time_limit: float = 10.0,
) -> Symmetries | RenamingSymmetries:
    """The symmetries of a model after evidence and simplification: found, or given by generators.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        The model.
    kind : {"auto", "literals", "variables", "renaming", "none"}
        What to look for. "auto" means permutations of literals (variable, value) for a factor graph and renamings of
        constants for Markov logic; "literals" and "variables" ground a Markov logic network.
    generators : str, path, sequence or PermutationGroup, optional
        The group instead: permutations in cycle notation, `(X0 X1)(X2 X3)` or `(X0=0 X0=1)`, one in a line; the path
        of a file of them; or arrays of images. Each is checked against the model.
    time_limit : float
        Seconds for the search. What is known by then is returned, with a notice.

    Returns
    -------
    Symmetries or RenamingSymmetries
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
    from definetti.model.graph.simplify import simplify

    if kind not in KINDS:
        raise ModelError(f"symmetries of kind {kind!r} are not known; choose one of {', '.join(KINDS)}")
    if not isinstance(model, FactorGraph | MarkovLogic):
        raise ModelError(f"symmetries are of a model, got a {type(model).__name__}; dft.read makes one")
    if not (isinstance(time_limit, Real) and time_limit > 0):
        raise ModelError(f"time_limit must be a positive number of seconds, got {time_limit!r}")
    if isinstance(model, MarkovLogic):
        if generators is None and kind in ("auto", "renaming", "none"):
            from definetti.constraints.logic.forced_atoms import settled
            from definetti.symmetry.logic.renaming import renaming, trivial

            more = settled(model)
            return replace(trivial(more) if kind == "none" else renaming(more, time_limit), source=model)
        from definetti.constraints.logic.forced_atoms import told_in_formulas
        from definetti.model.logic.ground import ground

        with told_in_formulas(model):
            return symmetries(ground(model), kind, generators, time_limit)
    if kind == "renaming":
        raise ModelError("renaming is for Markov logic; a factor graph has symmetries of literals or of variables")
    simple = simplify(model)
    if generators is not None:
        return given(simple, generators)
    if kind == "none":
        return none(simple)
    return find(simple, "variables" if kind == "variables" else "literals", time_limit)


def none(model: FactorGraph) -> Symmetries:
    """No symmetry: every orbit has size one."""
    return Symmetries(model, PermutationGroup(int(model.literal_start[-1])), 1, "none")


def given(model: FactorGraph, generators: Any) -> Symmetries:
    """The group that the given generators generate; `SymmetryError` names the factor that one of them breaks."""
    started = time.monotonic()
    read = read_generators(model, generators)
    wrong = violation(scope_index(model), read)
    if wrong is not None:
        which = f"generator {wrong.generator + 1} of {len(read)}"
        raise SymmetryError(f"{which} is no symmetry of the model: {wrong.reason}")
    group = PermutationGroup(int(model.literal_start[-1]), tuple(read))
    return Symmetries(model, group, _order(model, group), "given", (), time.monotonic() - started)


def _order(model: FactorGraph, group: PermutationGroup) -> int | None:
    """Where no generator changes a value the group acts faithfully on the variables, which are fewer."""
    _, points, images = group.moves
    start = model.literal_start
    at, to = (np.searchsorted(start, x, side="right") - 1 for x in (points, images))
    if ((points - start[at]) != (images - start[to])).any():
        return groups.order(group)
    renamings = []
    for points, images in group.generators:
        at, to = (np.searchsorted(start, x, side="right") - 1 for x in (points, images))
        first = points == start[at]
        renamings.append((at[first], to[first]))
    return groups.order(PermutationGroup(model.n, tuple(renamings)))


def find(
    model: FactorGraph, over: str = "literals", time_limit: float = 10.0, most_nodes: int = MOST_NODES
) -> Symmetries:
    """The symmetries of a *simplified* model by graph automorphism, over literals or only over variables.

    When the time limit ends the search, what is known by then is returned (the twins), with a notice. Where the graph
    over literals would have more than `most_nodes` nodes, only symmetries of variables are sought, with a notice.
    """
    started = time.monotonic()
    index = scope_index(model)
    over, merged, graph, notices = _graph(model, over, most_nodes)
    found = bliss.search(graph.edges, graph.colours, time_limit - (time.monotonic() - started))
    if not found.complete:
        notices += (_stopped(found, time_limit, merged),)
    carried = [merged.extend(*graph.carry(generator)) for generator in found.generators]
    generators = [generator for generator in carried if len(generator[0])] + merged.generators()
    _require_symmetries(index, generators)
    group = PermutationGroup(int(model.literal_start[-1]), tuple(generators))
    return Symmetries(model, group, found.order * merged.order, over, notices, time.monotonic() - started)


def _graph(model: FactorGraph, over: str, most_nodes: int) -> tuple[str, Twins, ColouredGraph, tuple[Notice, ...]]:
    """What is sought, the twins that were merged for it, the graph of the others."""
    merged = twins(model, over)
    graph = literal_graph(model, merged, over, most_nodes)
    if isinstance(graph, ColouredGraph):
        return over, merged, graph, ()
    notices: tuple[Notice, ...] = ()
    if over == "literals":
        size = f"the graph over literals would have {show.count(graph)} nodes, the limit is {show.count(most_nodes)}"
        notices = (Notice("fallback", f"{size}; only symmetries of variables were sought"),)
        merged = twins(model, "variables")
    return "variables", merged, variable_graph(model, merged), notices


def _stopped(found: bliss.Found, time_limit: float, merged: Twins) -> Notice:
    known = "only twins are used" if merged.order > 1 else "none are used"
    if found.status is not None:
        return Notice("fallback", f"the search for symmetries ended with status {found.status}; {known}")
    cure = "raise the time limit or give generators"
    return Notice("time-limit", f"the search for symmetries was stopped after {time_limit:g} s; {known}; {cure}")


def _require_symmetries(index: ScopeIndex, generators: list[Generator]) -> None:
    """What the search found must pass the same check as what a user gives."""
    wrong = violation(index, generators)
    if wrong is not None:
        raise AssertionError(f"a generator that was found is no symmetry: {wrong.reason}; please report this")
