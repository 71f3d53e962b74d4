"""The orbits of states under a group, whether a chain can be lumped by them, and the lumped chain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import groups
from definetti.lumping.state_space import StateSpace

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Partition:
    """The orbit of each state, orbits numbered by their first states."""

    orbit_of: np.ndarray  # int64[S]
    images: tuple[np.ndarray, ...]  # what each generator makes of the states

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.bincount(self.orbit_of)

    @cached_property
    def first(self) -> np.ndarray:
        """A state of each orbit."""
        return np.unique(self.orbit_of, return_index=True)[1]

    @cached_property
    def indicator(self) -> csr_array:
        """float64[S, K]: 1 where a state is in an orbit."""
        from scipy.sparse import csr_array

        states = len(self.orbit_of)
        return csr_array((np.ones(states), self.orbit_of, np.arange(states + 1)), shape=(states, len(self)))

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Of states' values[S, …]: the mean over each orbit, [K, …]. The group's average of a function of states."""
        return np.asarray(self.indicator.T @ values) / self.sizes.reshape(-1, *[1] * (values.ndim - 1))

    def total(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(self.indicator.T @ values)


def partition(space: StateSpace, elements: Iterable[np.ndarray]) -> Partition:
    """The orbits of states under the group that permutations of literals generate."""
    images = tuple(space.moved(element) for element in elements)
    for image in images:
        assert (image >= 0).all(), "a symmetry takes a possible state to an impossible one"
        assert np.allclose(space.probability[image], space.probability, rtol=1e-8), "a symmetry changes a probability"
    if not images:
        return Partition(np.arange(len(space)), ())
    source = np.tile(np.arange(len(space)), len(images))
    return Partition(groups.components(len(space), source, np.concatenate(images)).astype(np.int64), images)


@dataclass(frozen=True)
class Lumpability:
    """The largest violations: 0 up to rounding where a chain can be lumped."""

    ordinary: float  # of equal probabilities to go from the states of an orbit to another orbit
    exact: float  # of equal probabilities to come from an orbit to the states of another one
    stationary: float  # of equal probabilities of the states of an orbit


def lumpability(matrix: Any, probability: np.ndarray, parts: Partition) -> Lumpability:
    from scipy.sparse import csr_array

    out, back = csr_array(matrix @ parts.indicator), csr_array(matrix.T @ parts.indicator)
    most = np.maximum.reduceat(probability[np.argsort(parts.orbit_of, kind="stable")], _starts(parts.sizes))
    least = np.minimum.reduceat(probability[np.argsort(parts.orbit_of, kind="stable")], _starts(parts.sizes))
    return Lumpability(_spread(out, parts), _spread(back, parts), float((most - least).max()))


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.cumsum(sizes) - sizes


def _spread(rows: csr_array, parts: Partition) -> float:
    """The largest difference between the rows of one orbit; an entry that is not stored is 0."""
    if not rows.nnz:
        return 0.0
    row = np.repeat(np.arange(len(parts.orbit_of)), np.diff(rows.indptr))
    key = parts.orbit_of[row] * len(parts) + rows.indices
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    most, least = (f.reduceat(rows.data[order], starts) for f in (np.maximum, np.minimum))
    full = np.diff(np.append(starts, len(order))) == parts.sizes[key[order][starts] // len(parts)]
    return float((np.maximum(most, 0.0) - np.where(full, least, np.minimum(least, 0.0))).max())


def lumped_matrix(matrix: Any, parts: Partition) -> Any:
    """The quotient's transition matrix: the mean over the states of an orbit, which are all alike if lumpable."""
    from scipy.sparse import csr_array, diags_array

    found = diags_array(1.0 / parts.sizes) @ (parts.indicator.T @ csr_array(matrix @ parts.indicator))
    return csr_array(found) if not isinstance(matrix, np.ndarray) else found.toarray()


def commuting_error(matrix: Any, images: Sequence[np.ndarray]) -> float:
    """The largest |Q(gx, gy) − Q(x, y)| over the generators g."""
    worst = 0.0
    for image in images:
        apart = matrix[image][:, image] - matrix
        worst = max(worst, float(abs(apart).max()))
    return worst
