"""What is estimated, and how far an estimate is from it: the mean over all unknown variables of the Kullback-Leibler
divergence (the paper's direction and the other one) and of the squared error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

FLOOR = 1e-9  # stands for 0 in a denominator


@dataclass(frozen=True, eq=False)
class Target:
    """The marginals of a model with symmetries: members of an orbit share their truth.

    Attributes
    ----------
    sizes : int64[orbits]
        How many variables or ground atoms each orbit has.
    members : function that gives int64[variables]
        The orbit of each variable or ground atom; -1 for those that are known. Crowds have too many to list.
    truth, error : float64[orbits]
        P(true), and the standard error of this number where it comes from a long run.
    names : tuple of str
        One member of each orbit.
    """

    sizes: np.ndarray
    members: Callable[[], np.ndarray]
    truth: np.ndarray
    error: np.ndarray
    names: tuple[str, ...]

    @cached_property
    def orbit_of(self) -> np.ndarray:
        return self.members()

    @property
    def variables(self) -> int:
        return int(self.sizes.sum())

    @property
    def orbits(self) -> int:
        return len(self.truth)

    @property
    def gain(self) -> float:
        """What averaging over orbits can divide a squared error by, if the members of an orbit were independent."""
        return self.variables / self.orbits

    def over_orbits(self, means: np.ndarray) -> np.ndarray:
        """float64[orbits]: the orbit estimates that estimates of single variables make."""
        free = self.orbit_of >= 0
        return np.bincount(self.orbit_of[free], weights=means[free], minlength=self.orbits) / self.sizes

    def standard(self, means: np.ndarray) -> dict[str, float]:
        """The divergence of one estimate per variable."""
        free = self.orbit_of >= 0
        return divergence(means[free], self.truth[self.orbit_of[free]], np.ones(int(free.sum())))

    def orbit(self, means: np.ndarray) -> dict[str, float]:
        """The divergence of one estimate per orbit, each member counted."""
        return divergence(means, self.truth, self.sizes)

    def noise(self) -> float:
        """The mean divergence that the errors of the truth itself stand for."""
        p = np.clip(self.truth, FLOOR, 1 - FLOOR)
        return float(np.average(self.error**2 / (2 * p * (1 - p)), weights=self.sizes))


def divergence(estimate: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Means over binary variables: KL(estimate‖truth), the other direction, and the squared error."""
    return {
        "kl": float(np.average(_kl(estimate, truth), weights=weights)),
        "kl_reverse": float(np.average(_kl(truth, estimate), weights=weights)),
        "mse": float(np.average((estimate - truth) ** 2, weights=weights)),
    }


def _kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    total = np.zeros(len(p))
    for a, b in ((p, q), (1 - p, 1 - q)):
        positive = a > 0
        total[positive] += a[positive] * np.log(a[positive] / np.maximum(b[positive], FLOOR))
    return np.maximum(total, 0.0)


def target_of(group: Any, truth: Mapping[str, float] | Callable[[str], Any], error: Any = None) -> Target:
    """The target of a model's group. `truth` (and `error`) from the name of an orbit's member to its number."""
    look = truth.__getitem__ if isinstance(truth, Mapping) else truth
    names = tuple(row.representative for row in group.orbits)
    values = np.array([float(look(name)) for name in names])
    errors = np.zeros(len(names)) if error is None else np.array([float(error(name)) for name in names])
    sizes = np.array([row.size for row in group.orbits])
    return Target(sizes, partial(_orbits, group), values, errors, names)


def _orbits(group: Any) -> np.ndarray:
    if group.model.kind == "graph":
        return np.asarray(group.row_of, dtype=np.int64)
    parts = [np.asarray(group.orbit_grid(name)).ravel() for name in group.model.predicates]
    return np.concatenate(parts).astype(np.int64)
