"""Swendsen–Wang cluster flips for pairwise binary models with fields, ferro- and antiferromagnetic pairs mixed at
will.

On hard pairs (x = y, x ≠ y) bonds are certain, so what is tied moves as one: on the hard two-colouring grid the
single cluster flips. Pairs with one or two impossible entries of another kind (`not both`) have no such bonds: the
sampler refuses the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import ByteBlock, Engine, Orders, Seeds, Slots, words


@dataclass(frozen=True)
class SwendsenWang:
    """Swendsen-Wang cluster flips, for models of binary variables with pairwise factors and fields.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[2, 1], [1, 2]]) for i in range(4)])
    >>> dft.marginals(ring, sampler=dft.SwendsenWang(), sweeps=10, seed=7).run["sampler"]
    'swendsen-wang'
    """

    name = "swendsen-wang"
    scan = "clusters"  # all variables at once
    kinds = ("graph",)
    single_site = False
    visits_once = conditionals = warms_up = True

    def engine(self, model: FactorGraph, slots: Slots) -> ClusterEngine:
        return build(model, slots)

    def alone(self, model: FactorGraph) -> np.ndarray:
        return model.free[:0]

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return Orders("fixed", sites, words(seed, (4,)))  # only their number counts


@dataclass(frozen=True, eq=False)
class ClusterEngine(Engine):
    model: Any  # kernels.cluster.Clusters
    slots: Slots
    n: int
    name: str = "clusters"
    width: int = 16
    together: int = 1

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> ClusterBlock:
        return ClusterBlock(self, starts, seeds[0])

    def memory(self, chains: int, conditionals: bool) -> int:
        return chains * (self.n + 16 * self.slots.count)


def build(model: FactorGraph, slots: Slots) -> ClusterEngine:
    """Compile a simplified model; `ModelError` if it has other factors."""
    from definetti.samplers.kernels.graph import swendsen_wang as kernels

    pairs, coupling, field = couplings(model)
    place = np.full(model.n, -1, dtype=np.int64)
    place[model.free] = np.arange(len(model.free))
    ends = place[pairs].astype(np.int32)
    compiled = kernels.Clusters(
        site=model.free.astype(np.int32),
        left=np.ascontiguousarray(ends[:, 0]),
        right=np.ascontiguousarray(ends[:, 1]),
        differ=(coupling < 0).astype(np.uint8),
        bond=-np.expm1(-2.0 * np.abs(coupling)),
        field=field[model.free],
        first=slots.start[slots.row_of[model.free]].astype(np.int64),
    )
    return ClusterEngine(compiled, slots, model.n)


def couplings(model: FactorGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs, half the log ratio of equal to different values (infinite for hard pairs), and the fields."""
    arity = model.arity
    if (model.cards[model.free] != 2).any() or (arity > 2).any():
        raise ModelError("cluster flips need variables with two values and factors over pairs; use another sampler")
    field = np.zeros(model.n)
    single = np.flatnonzero(arity == 1)
    tables = model.tables[model.table_start[model.table_of[single]][:, None] + np.arange(2)].reshape(-1, 2)
    np.add.at(field, model.scope[model.scope_start[single]], tables[:, 1] - tables[:, 0])
    factors = np.flatnonzero(arity == 2)
    pairs = model.scope[model.scope_start[factors][:, None] + np.arange(2)].reshape(-1, 2)
    tables = model.tables[model.table_start[model.table_of[factors]][:, None] + np.arange(4)].reshape(-1, 4)
    possible = np.isfinite(tables)
    same, other = possible[:, [0, 3]], possible[:, [1, 2]]
    usable = (same.all(axis=1) & (other.all(axis=1) | ~other.any(axis=1))) | (other.all(axis=1) & ~same.any(axis=1))
    if not usable.all() or not np.isfinite(field).all():
        bad = pairs[np.argmin(usable)] if not usable.all() else [int(np.argmin(np.isfinite(field)))]
        names = ", ".join(model.names[i] for i in bad)
        raise ModelError(f"cluster flips need soft pairs, x = y or x ≠ y; the factor over ({names}) is neither")
    finite = np.where(possible, tables, 0.0)
    # log weights a, b, c, d of 00, 01, 10, 11: coupling (a + d - b - c) / 4; what is left over are fields
    coupling = (finite[:, 0] + finite[:, 3] - finite[:, 1] - finite[:, 2]) / 4.0
    left = (finite[:, 2] + finite[:, 3] - finite[:, 0] - finite[:, 1]) / 2.0
    right = (finite[:, 1] + finite[:, 3] - finite[:, 0] - finite[:, 2]) / 2.0
    equal, unequal = ~other.any(axis=1), ~same.any(axis=1)
    coupling = np.where(equal, np.inf, np.where(unequal, -np.inf, coupling))
    # A hard pair has one degree of freedom: its log odds are a field of its first variable.
    left = np.where(equal, finite[:, 3] - finite[:, 0], np.where(unequal, finite[:, 2] - finite[:, 1], left))
    right = np.where(equal | unequal, 0.0, right)
    np.add.at(field, pairs[:, 0], left)
    np.add.at(field, pairs[:, 1], right)
    return pairs, coupling, field


class ClusterBlock(ByteBlock):
    """Chains whose clusters are flipped."""

    mask = 1

    def __init__(self, engine: ClusterEngine, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        from definetti.samplers.kernels.graph import swendsen_wang as kernels

        super().__init__(engine.slots, starts, seed)
        self._kernels, self._engine = kernels, engine
        m = len(engine.model.site)
        self._scratch = kernels.Scratch(np.zeros(m, np.int32), np.zeros(m), np.zeros(m), np.zeros(m, np.uint8))

    def run(self, orders: np.ndarray, folded: int) -> None:
        self._kernels.run_steps(
            self._engine.model, self.state, len(orders), self._streams, self._scratch, self._sums, folded
        )
