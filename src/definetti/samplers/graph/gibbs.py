"""Single-site Gibbs sampling as a frozen value: which scan; and how a model is compiled for it.

Scans (`docs/architecture.md` says which commute with the symmetries):
- `symmetric`: every site once per sweep, orbit by orbit, each orbit in a fresh uniformly random order that all chains
  share. The group leaves the law of the order alone; that orbits take turns keeps chance out of what an update has
  seen of the others (`docs/architecture.md`);
- `random`: sites drawn with replacement, the paper's scan;
- `fixed`: always the same order. It does not commute with the group: the theory's promises on chains do not hold for
  it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from definetti.errors import ModelError
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph import fields, tables
from definetti.samplers.graph.lanes import Engine, Slots, words

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

    def __post_init__(self) -> None:
        if self.scan not in SCANS:
            raise ModelError(f"scan {self.scan!r} is not known; choose one of {', '.join(SCANS)}")

    @property
    def name(self) -> str:
        return "gibbs"

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time: with hard factors the others may hold them for ever."""
        return model.free

    @property
    def visits_once(self) -> bool:
        """Each site once per sweep: then its value at the sweep's end is the one drawn."""
        return self.scan != "random"

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        """The fastest engine that can run this simplified model."""
        return fields.build(model, slots) or tables.build(model, slots)

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return Orders(self.scan, sites, words(seed, (4,)), orbit_of)


class Orders:
    """The stream of scan orders. `orbit_of[i]` is the orbit of variable i; without it all sites are taken for one."""

    def __init__(self, scan: str, sites: np.ndarray, stream: np.ndarray, orbit_of: np.ndarray | None = None) -> None:
        self._scan, self._stream = scan, stream
        orbit = np.zeros(len(sites), np.int64) if orbit_of is None else orbit_of[sites]
        _, first, place, sizes = np.unique(orbit, return_index=True, return_inverse=True, return_counts=True)
        by_orbit = np.argsort(first[place.ravel()], kind="stable")  # orbits in the order of their first sites
        if scan == "symmetric":
            sites = sites[by_orbit]
        self._sites = np.ascontiguousarray(sites, dtype=np.int32)
        self._starts = np.concatenate([[0], np.cumsum(sizes[np.argsort(first)])]).astype(np.int64)

    def next(self, sweeps: int) -> np.ndarray:
        """int32[sweeps, sites]: the sites to update, one row per sweep."""
        from definetti.samplers.kernels import orders as kernels

        if self._scan == "fixed":
            return np.broadcast_to(self._sites, (sweeps, len(self._sites))).copy()
        rows = np.empty((sweeps, len(self._sites)), dtype=np.int32)
        if self._scan == "symmetric":
            kernels.shuffled(self._stream, self._sites, self._starts, rows)
        else:
            kernels.with_replacement(self._stream, self._sites, rows)
        return rows
