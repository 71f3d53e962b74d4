"""Block moves: the variables of a connected part of the hard factors are drawn together, given all others.

Parts which single moves do not connect (or may not) are blocks, however many legal states they have, if elimination
on them needs small tables only (`solvers/graph/join_tree.py`); every other variable is a block of its own. Blocks are
parts of the model, and the order of elimination does not change what is drawn, so the moves commute with its
symmetries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from definetti.constraints.graph.connectivity import Part, unconnected_parts
from definetti.errors import ModelError
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.block_arrays import compiled
from definetti.samplers.graph.lanes import Engine, Harvest, Orders, Seeds, Slots, count_values, taken, words
from definetti.samplers.graph.tables import Stuck
from definetti.samplers.protocol import prefixed
from definetti.solvers.graph.join_tree import Tree, join_tree

MOST_ROWS = 4096  # legal tuples in the largest table of elimination


@dataclass(frozen=True)
class Blocks:
    """Joint draws of parts of the hard factors; `most`: legal tuples in the largest table that this needs."""

    scan: str = "symmetric"
    most: int = MOST_ROWS

    def __post_init__(self) -> None:
        if self.scan not in ("symmetric", "fixed"):
            raise ModelError(f"blocks are drawn once per sweep, in the scan 'symmetric' or 'fixed', not {self.scan!r}")

    name = "blocks"
    kinds = ("graph",)
    single_site = False
    visits_once = conditionals = warms_up = True

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time."""
        together = [i for tree in self.parts(model) for cluster in tree for i in cluster.variables]
        return np.setdiff1d(model.free, together)

    def parts(self, model: FactorGraph) -> list[Tree]:
        """A join tree for every part that is drawn jointly."""
        return [tree for tree in _trees(model, self.most) if tree is not None]

    def covers(self, model: FactorGraph) -> bool:
        """Whether every part that single moves may not connect is a block: then every state can be reached."""
        return all(tree is not None for tree in _trees(model, self.most))

    def engine(self, model: FactorGraph, slots: Slots) -> JointEngine:
        return build(model, slots, self.parts(model))

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return Orders(self.scan, sites, words(seed, (4,)), orbit_of)


@lru_cache(maxsize=1)  # choosing a sampler, compiling it and watching it ask the same about the same model
def _trees(model: FactorGraph, most: int) -> tuple[Tree | None, ...]:
    """For every part that single moves may not connect; None where a table would be too large."""
    parts = unconnected_parts(model)
    scopes = _scopes_within(model, parts)
    return tuple(join_tree(model, part, inside, most) for part, inside in zip(parts, scopes, strict=True))


def _scopes_within(model: FactorGraph, parts: Sequence[Sequence[Part]]) -> list[list[list[int]]]:
    """For every part the variables that each factor, hard or soft, has in it."""
    part_of = np.full(model.n, -1)
    for p, part in enumerate(parts):
        part_of[[i for scope, _ in part for i in scope]] = p
    factor = model.owner_of
    inside: dict[tuple[int, int], list[int]] = {}
    at = np.flatnonzero(part_of[model.scope] >= 0)
    variables = model.scope[at]
    for p, k, i in zip(part_of[variables].tolist(), factor[at].tolist(), variables.tolist(), strict=True):
        inside.setdefault((p, k), []).append(i)
    out: list[list[list[int]]] = [[] for _ in parts]
    for (p, _), scope in inside.items():
        out[p].append(scope)
    return out


@dataclass(frozen=True, eq=False)
class JointEngine(Engine):
    model: Any  # kernels.joint.Joint
    cards: np.ndarray
    slots: Slots
    names: tuple[str, ...]
    name: str = "joint"
    width: int = 16
    together: int = 1

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> JointBlock:
        return JointBlock(self, starts, seeds[0])

    def memory(self, chains: int, conditionals: bool) -> int:
        rows, groups, clusters = self.largest
        return chains * (len(self.names) + 16 * self.slots.count + 8 * (rows + 2 * groups + clusters + 1))

    @property
    def largest(self) -> tuple[int, int, int]:
        """The most rows, groups of them and clusters that a block has."""
        group = self.model.group[self.model.start]
        counts = (self.model.row[group], group, self.model.start)
        rows, groups, clusters = (int(np.diff(count).max(initial=0)) for count in counts)
        return rows, groups, clusters


def build(model: FactorGraph, slots: Slots, parts: list[Tree]) -> JointEngine:
    """Compile a simplified model with these parts as blocks."""
    return JointEngine(compiled(model, slots, parts), model.cards.astype(np.int64), slots, model.names)


class JointBlock:
    """A block of lanes: one byte per variable and chain."""

    mask = 255

    def __init__(self, engine: JointEngine, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        from definetti.samplers.kernels import block_gibbs as kernels

        self._kernels, self._engine = kernels, engine
        self.lanes = len(starts)
        self.state = np.ascontiguousarray(starts.T, dtype=np.uint8)
        self._streams = words(seed, (4, self.lanes))
        rows, groups, clusters = engine.largest
        self._work = kernels.Work(
            np.zeros((rows, self.lanes)),
            np.zeros((groups, self.lanes)),
            np.zeros((groups, self.lanes)),
            np.zeros((clusters, self.lanes), np.int64),
            np.zeros(self.lanes, np.int64),
            np.zeros(len(engine.model.start) - 1, np.bool_),
        )
        slots = engine.slots.count
        self._sums = kernels.Sums(
            np.zeros((slots, self.lanes)), np.zeros((slots, self.lanes)), np.zeros(slots, np.int64)
        )

    def run(self, orders: np.ndarray, folded: int) -> None:
        engine = self._engine
        stuck = self._kernels.run_sweeps(
            engine.model, self.state, orders, self._streams, self._work, self._sums, engine.cards, folded
        )
        if stuck >= 0:
            root = engine.model.start[stuck + 1] - 1
            name = engine.names[engine.model.variable[engine.model.own[root]]]
            raise Stuck(f"every value of {name} became impossible: the chain's start was illegal")

    def harvest(self) -> Harvest:
        return taken(self._sums)

    def present(self) -> np.ndarray:
        return count_values(self.state, self._engine.slots)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"state": self.state, "streams": self._streams} | prefixed("sums", self._sums._asdict())
