"""Parallel tempering as a frozen value, for both kinds of model: over which sampler, and on which levels.

Level 0 is uniform, level 1 the model. In between, logarithms are multiplied by the level, and what is impossible costs
a penalty that grows without bound towards level 1: hot chains walk through states that the model forbids, so every
legal state can be reached. Only the chain at level 1 is folded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from definetti.errors import ModelError
from definetti.samplers.gibbs import Gibbs

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.samplers.graph.lanes import Engine, Orders, Slots
    from definetti.samplers.logic.queries import Asked
    from definetti.samplers.protocol import GraphSampler, Plan, Sampling


@dataclass(frozen=True)
class Tempering:
    """Parallel tempering: chains at flatter versions of the model exchange states with those of the model.

    Parameters
    ----------
    over : Gibbs, Blocks, SwendsenWang or MCSat
        The sampler of every level.
    levels : tuple of float, optional
        From 0 (uniform) or above to 1 (the model); placed for equally many exchanges where it is left out.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[2, 1], [1, 2]]) for i in range(4)])
    >>> sampler = dft.Tempering(dft.Gibbs(), levels=(0.5, 1.0))
    >>> dft.marginals(ring, sampler=sampler, sweeps=10, seed=7).run["sampler"]
    'tempering'
    """

    over: GraphSampler = field(default_factory=Gibbs)
    levels: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.over, type) or not hasattr(self.over, "single_site"):
            raise ModelError(f"tempering is over a sampler such as dft.Gibbs(), got {self.over!r}")
        if self.over.name == self.name:
            raise ModelError("tempering over tempering has no meaning; give the ladder more levels")
        if self.levels is not None and not _rise_to_one(self.levels):
            raise ModelError(
                f"the levels of a ladder are at least two numbers from 0 on that rise to 1, got {self.levels!r}"
            )

    name = "tempering"
    single_site = False
    warms_up = True

    @property
    def kinds(self) -> tuple[str, ...]:
        """Gibbs sampling has levels on both kinds of model."""
        return ("graph", "logic") if self.over.single_site else ("graph",)

    @property
    def scan(self) -> str | None:
        return self.over.scan

    @property
    def conditionals(self) -> bool:
        return self.over.conditionals

    @property
    def visits_once(self) -> bool:
        return self.over.visits_once

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        from definetti.samplers.graph.tempering import build, ladder

        levels = self.levels if self.levels is not None else ladder(model, self.over, slots)
        return build(model, self.over, slots, levels)

    def alone(self, model: FactorGraph) -> np.ndarray:
        return model.free[:0]

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return self.over.orders(sites, seed, orbit_of)

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        from definetti.samplers.logic.tempering import tempered_sampling

        return tempered_sampling(asked, self.scan or "symmetric", self.levels, plan)


def _rise_to_one(levels: object) -> bool:
    try:
        found = np.array(levels, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return (
        found.ndim == 1 and len(found) > 1 and found[0] >= 0 and found[-1] == 1.0 and bool((np.diff(found) > 0).all())
    )
