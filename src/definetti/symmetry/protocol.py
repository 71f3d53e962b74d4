"""Symmetries: what the groups of both kinds of model have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from definetti.errors import Notice
from definetti.groups import Generator

if TYPE_CHECKING:
    from definetti.symmetry.state_count import StateCount


@dataclass(frozen=True)
class Orbit:
    """A set of variables with equal marginals: a name that stands for them, and how many they are."""

    representative: str
    size: int


@runtime_checkable
class Symmetries(Protocol):
    """A group of symmetries of `model`, as `symmetries(model)` finds it.

    The group permutes *points*: the literals of a factor graph, numbered as in `FactorGraph.literal_start`, or the
    constants of a Markov logic network, all sorts in one numbering; where it moves predicates, too, each has two points
    (true, false) and one for each argument behind those. `orbits` are the rows of the answer: sets of
    variables, or of ground atoms, with equal marginals. Observed variables are in none.

    Examples
    --------
    >>> import definetti as dft
    >>> group = dft.symmetries(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])]))
    >>> isinstance(group, dft.Symmetries), group.order, [(orbit.representative, orbit.size) for orbit in group.orbits]
    (True, 2, [('X0', 2)])
    """

    @property
    def model(self) -> Any:
        """The model whose symmetries these are."""
        ...

    @property
    def kind(self) -> str:
        """How the group was found: "literals", "variables", "theory", "renaming", "given" or "none"."""
        ...

    @property
    def order(self) -> int | None:
        """The number of elements, None where it is not known."""
        ...

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What was given up in the search for symmetries, if anything."""
        ...

    @property
    def seconds(self) -> float:
        """How long the search took."""
        ...

    @property
    def orbits(self) -> Sequence[Orbit]:
        """One entry per row, in the order of rows."""
        ...

    def orbit_of(self, name: str) -> Collection[str]:
        """The names of the variables that share a row with this one; an observed variable is alone."""
        ...

    def row_number(self, name: str) -> int:
        """The place of a variable's orbit in `orbits`, -1 for an observed variable."""
        ...

    @property
    def generator_count(self) -> int:
        """The number of generators."""
        ...

    @property
    def generators(self) -> Iterable[Generator]:
        """Permutations of points that generate the group, each as (points that move, their images)."""
        ...

    def random_element(self, rng: np.random.Generator) -> np.ndarray:
        """A nearly uniform element: the image of each point."""
        ...

    def count_states(self, seed: int = 0) -> StateCount:
        """How many assignments there are, and how many orbits of them: exact, or estimated with an error."""
        ...
