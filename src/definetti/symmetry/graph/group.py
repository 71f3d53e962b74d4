"""Symmetries of a factor graph: found by graph automorphism, or given by generators; always checked against the model.

The group acts on the literals of the *simplified* model, so value flips and permuted values count as well as renamings.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import groups, show
from definetti.errors import Notice, SymmetryError
from definetti.groups import Generator, PermutationGroup
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.symmetry import bliss
from definetti.symmetry.graph.check import ScopeIndex, scope_index, violation
from definetti.symmetry.graph.coloured_graph import ColouredGraph, literal_graph, variable_graph
from definetti.symmetry.graph.twins import Twins, twins
from definetti.symmetry.protocol import Orbit

if TYPE_CHECKING:
    from definetti.symmetry.state_count import StateCount

MOST_NODES = 4_000_000  # of the graph over literals
TUPLE_CAP = 2_000_000  # members of a tuple's orbit


@dataclass(frozen=True, eq=False, repr=False)
class GraphSymmetries(show.Shown):
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
    GraphSymmetries(order 4, 1 orbits of 2 variables, literals)
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
        """int64: the number of literals in each orbit of literals."""
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
        """int64: the number of free variables in each row."""
        return frozen(np.bincount(self.row_of[self.model.free]), np.int64)

    @cached_property
    def row_representative(self) -> np.ndarray:
        """int64: the smallest variable of each row."""
        return frozen(self.model.free[np.unique(self.row_of[self.model.free], return_index=True)[1]], np.int64)

    @property
    def orbits(self) -> tuple[Orbit, ...]:
        """One entry per row, in the order of rows."""
        return self._orbits

    @cached_property
    def _orbits(self) -> tuple[Orbit, ...]:
        """One entry per row, in the order of rows."""
        names = self.model.names
        pairs = zip(self.row_representative.tolist(), self.row_size.tolist(), strict=True)
        return tuple(Orbit(names[i], size) for i, size in pairs)

    @property
    def generators(self) -> tuple[Generator, ...]:
        """Permutations of literals that generate the group, each as (literals that move, their images)."""
        return self.group.generators

    @property
    def generator_count(self) -> int:
        """The number of generators."""
        return len(self.group.generators)

    def row_number(self, name: str) -> int:
        """The row of a variable, -1 for an observed one."""
        return int(self.row_of[self.model.index(name)])

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
        """A nearly uniform element: the image of each literal."""
        return groups.random_element(self.group, rng)

    def count_states(self, seed: int = 0) -> StateCount:
        """The number of assignments of the free variables and of their orbits, exact or estimated."""
        from definetti.symmetry.graph.count_states import count_states

        return count_states(self, seed)

    def plot(self) -> Any:
        """An Altair chart, coloured by orbit: the factor graph, or the atoms by their constants (needs the extra
        `report`)."""
        return show.above("pages.charts").group_chart(self)

    def __repr__(self) -> str:
        order = "unknown" if self.order is None else show.large(self.order)
        orbits = f"{len(self.row_size)} orbits of {len(self.model.free)} variables"
        doubt = "".join(f", {notice.kind}" for notice in self.notices)
        return f"GraphSymmetries(order {order}, {orbits}, {self.kind}{doubt})"


# --- verbs -------------------------------------------------------------------------------------------------------


def none(model: FactorGraph) -> GraphSymmetries:
    """No symmetry: every orbit has size one."""
    return GraphSymmetries(model, PermutationGroup(int(model.literal_start[-1])), 1, "none")


def given(model: FactorGraph, generators: Any) -> GraphSymmetries:
    """The group that the given generators generate; `SymmetryError` names the factor that one of them breaks."""
    started = time.monotonic()
    from definetti.symmetry.graph.generator_text import read_generators

    read = read_generators(model, generators)
    wrong = violation(scope_index(model), read)
    if wrong is not None:
        which = f"generator {wrong.generator + 1} of {len(read)}"
        raise SymmetryError(f"{which} is no symmetry of the model: {wrong.reason}")
    group = PermutationGroup(int(model.literal_start[-1]), tuple(read))
    return GraphSymmetries(model, group, _order(model, group), "given", (), time.monotonic() - started)


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
) -> GraphSymmetries:
    """The symmetries of a *simplified* model by graph automorphism, over literals or only over variables.

    When the time limit ends the search, what is known by then is returned (the twins), with a notice. Where the graph
    over literals would have more than `most_nodes` nodes, only symmetries of variables are sought, with a notice.
    """
    started = time.monotonic()
    index = scope_index(model)
    over, merged, graph, notices = _graph(model, over, most_nodes)
    spent = time.monotonic() - started if graph.count > bliss.IN_PROCESS else 0.0  # a small search takes no time
    found = bliss.search(graph.edges, graph.colours, time_limit - spent)
    if not found.complete:
        notices += (_stopped(found, time_limit, merged),)
    carried = [merged.extend(*graph.carry(generator)) for generator in found.generators]
    carried = [generator for generator in carried if len(generator[0])]
    carried += graph.flips
    _require_symmetries(index, carried + merged.proof())
    group = PermutationGroup(int(model.literal_start[-1]), (*carried, *merged.generators()))
    order = found.order * merged.order << len(graph.flips)
    return GraphSymmetries(model, group, order, over, notices, time.monotonic() - started)


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
