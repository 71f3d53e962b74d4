"""Single-site Gibbs sampling as a frozen value, for both kinds of model: which scan.

Scans (`docs/architecture.md` says which commute with the symmetries):
- `symmetric`: every site once per sweep, in an order whose law the group leaves alone. On a factor graph orbit by
  orbit, each orbit in a fresh uniformly random order that all chains share; that orbits take turns keeps chance out of
  what an update has seen of the others. On Markov logic a raster over freshly shuffled constants;
- `random`: sites drawn with replacement, the paper's scan;
- `fixed`: always the same order. It does not commute with the group: the theory's promises on chains do not hold for
  it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from definetti.errors import ModelError

if TYPE_CHECKING:
    import numpy as np

    from definetti.model.graph.factors import FactorGraph
    from definetti.samplers.graph.lanes import Engine, Orders, Slots
    from definetti.samplers.logic.queries import Asked
    from definetti.samplers.protocol import Plan, Sampling

SCANS = ("symmetric", "random", "fixed")


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling of one site at a time.

    Parameters
    ----------
    scan : {"symmetric", "random", "fixed"}
        The order of a sweep: every site once in an order whose law the symmetries leave alone, sites with
        replacement, or always the same order.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])
    >>> dft.marginals(model, sampler=dft.Gibbs(scan="random"), sweeps=10, seed=7).run["scan"]
    'random'
    """

    scan: str = "symmetric"

    name = "gibbs"
    kinds = ("graph", "logic")
    single_site = conditionals = warms_up = True

    def __post_init__(self) -> None:
        if not isinstance(self.scan, str) or self.scan not in SCANS:
            raise ModelError(f"scan {self.scan!r} is not known; choose one of {', '.join(SCANS)}")

    @property
    def visits_once(self) -> bool:
        """Each site once per sweep: then its value at the sweep's end is the one drawn."""
        return self.scan != "random"

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time: with hard factors the others may hold them for ever."""
        return model.free

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        """The fastest engine that can run this simplified model."""
        from definetti.samplers.graph import fields

        made = fields.build(model, slots)
        if made is not None:
            return made
        from definetti.samplers.graph import polynomial

        made = polynomial.build(model, slots)
        if made is not None:
            return made
        from definetti.samplers.graph import tables

        return tables.build(model, slots)

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        from definetti.samplers.graph.lanes import Orders, words

        return Orders(self.scan, sites, words(seed, (4,)), orbit_of)

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        from definetti.samplers.sparse.choice import sparse_engine

        found = sparse_engine(asked, self.scan)
        if not isinstance(found, str):
            from definetti.samplers.sparse.sampling import SparseSampling

            return SparseSampling(found, asked, plan)
        return self.dense_sampling(asked, plan)

    def dense_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        """The same chains as bits, for what looks at whole states after every sweep."""
        from definetti.samplers.logic.sampling import relational_sampling

        return relational_sampling(asked, self.scan, plan)
