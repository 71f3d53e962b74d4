"""The protocol of the paper: one chain of uniform random single-site updates from a given start, no warm-up, and a
sample after every single update.

The engines are those of every other run. An observer keeps for how many samples each variable was true: a number
changes only when its variable does, so that seeing every update costs little more than making it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Occupancy:
    """For how many samples each of some events held. Kernels change the arrays in place."""

    def __init__(self, start: np.ndarray) -> None:
        self.held = np.ascontiguousarray(start, dtype=np.uint8)
        self.since = np.ones(len(start), np.int64)  # the first sample since which an event holds
        self.total = np.zeros(len(start), np.int64)
        self.time = np.zeros(1, np.int64)  # samples

    def means(self) -> np.ndarray:
        """The share of all samples in which each event held."""
        now = int(self.time[0])
        return (self.total + np.where(self.held, now + 1 - self.since, 0)) / max(now, 1)


class Followed(Protocol):
    """A chain that is looked at after every update."""

    @property
    def updates(self) -> int: ...

    def advance(self, updates: int) -> None:
        """Draws so many sites."""
        ...

    def means(self) -> np.ndarray:
        """float64: in which share of the samples each variable or ground atom was 1, in the order of the model's."""
        ...


def every_update(model: Any, *, start: np.ndarray | int = 0, seed: int = 0, **more: Any) -> Followed:
    """A chain of uniform random scan from `start` (one value for all, or one for each variable or ground atom, where
    the evidence says nothing), every update of which is a sample.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        Its variables are binary.
    start : int or array
        It must be possible.
    seed : int
        The same seed gives the same chain.
    **more
        Of a factor graph `edges`, int[m, 2]: pairs of variables whose disagreement is counted too.

    Returns
    -------
    Followed
        At its start; `advance` draws sites.

    Examples
    --------
    >>> import definetti as dft
    >>> from definetti.samplers.every_update import every_update
    >>> chain = every_update(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])]), start=0, seed=7)
    >>> chain.advance(10_000)
    >>> abs(chain.means() - 3 / 7).max() < 0.05
    np.True_
    """
    if model.kind == "logic":
        from definetti.samplers.logic.every_update import FollowedAtoms

        return FollowedAtoms(model, start, seed)
    from definetti.samplers.graph.every_update import FollowedVariables

    return FollowedVariables(model, start, seed, **more)
