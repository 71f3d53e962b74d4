"""Block moves: the variables of a connected part of the hard factors are drawn together, given all others.

Parts with few legal states, which single moves do not connect (or may not), are blocks; every other variable is a
block of its own. Blocks are parts of the model, so the moves commute with its symmetries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.factors import FactorGraph
from definetti.model.hard import legal_tuples
from definetti.samplers.blocks import Harvest, Seeds, Slots, count_values, taken, words
from definetti.samplers.gibbs import Orders
from definetti.samplers.tables import Stuck
from definetti.solvers.connectivity import unconnected_parts

MOST_TUPLES = 4096  # legal states of one block


@dataclass(frozen=True)
class Blocks:
    """Joint draws of small parts of the hard factors; `most`: legal states of one part."""

    scan: str = "symmetric"
    most: int = MOST_TUPLES

    def __post_init__(self) -> None:
        if self.scan not in ("symmetric", "fixed"):
            raise ModelError(f"blocks are drawn once per sweep, in the scan 'symmetric' or 'fixed', not {self.scan!r}")

    name = "blocks"
    visits_once = True

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time."""
        together = [i for variables, _ in self.parts(model) for i in variables]
        return np.setdiff1d(model.free, together)

    def parts(self, model: FactorGraph) -> list[tuple[list[int], np.ndarray]]:
        """(variables, legal tuples) of every part that is drawn jointly."""
        listed = [legal_tuples(model, part, self.most) for part in unconnected_parts(model)]
        return [part for part in listed if part is not None]

    def covers(self, model: FactorGraph) -> bool:
        """Whether every part that single moves may not connect is a block: then every state can be reached."""
        return len(self.parts(model)) == len(unconnected_parts(model))

    def engine(self, model: FactorGraph, slots: Slots) -> JointEngine:
        return build(model, slots, self.parts(model))

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return Orders(self.scan, sites, words(seed, (4,)), orbit_of)


@dataclass(frozen=True, eq=False)
class JointEngine:
    model: Any  # kernels.joint.Joint
    factors: Any  # kernels.joint.Factors
    cards: np.ndarray
    slots: Slots
    names: tuple[str, ...]
    name: str = "joint"
    width: int = 16
    together: int = 1

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> JointBlock:
        return JointBlock(self, starts, seeds[0])

    def memory(self, chains: int, conditionals: bool) -> int:
        return chains * (len(self.names) + 16 * self.slots.count)


def build(model: FactorGraph, slots: Slots, parts: list[tuple[list[int], np.ndarray]]) -> JointEngine:
    """Compile a simplified model with these parts as blocks."""
    from definetti.samplers.kernels import joint as kernels

    together = {i for variables, _ in parts for i in variables}
    alone = [([i], np.arange(int(model.cards[i]))[:, None]) for i in model.free.tolist() if i not in together]
    blocks = sorted([*parts, *alone], key=lambda block: min(block[0]))
    variable = np.array([i for variables, _ in blocks for i in variables], dtype=np.int32)
    block_of = np.full(model.n, -1, dtype=np.int64)
    for b, (variables, _) in enumerate(blocks):
        block_of[variables] = b
    touching: list[list[int]] = [[] for _ in blocks]
    for k in range(model.factor_count):
        for b in np.unique(block_of[model.variables(k)]).tolist():
            touching[b].append(k)
    sizes = np.array([tuples.size for _, tuples in blocks], dtype=np.int64)
    compiled = kernels.Joint(
        start=_starts([len(variables) for variables, _ in blocks]),
        variable=variable,
        slot=slots.start[slots.row_of[variable]].astype(np.int64),
        block_of=block_of,
        rows=np.array([len(tuples) for _, tuples in blocks], dtype=np.int64),
        place=np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if blocks else np.zeros(0, np.int64),
        values=np.concatenate([t.ravel() for _, t in blocks] or [np.zeros(0)]).astype(np.uint8),
        touch_start=_starts([len(factors) for factors in touching]),
        touch=np.array([k for factors in touching for k in factors], dtype=np.int64),
    )
    factors = kernels.Factors(
        start=np.ascontiguousarray(model.scope_start),
        scope=np.ascontiguousarray(model.scope),
        stride=np.ascontiguousarray(model._strides),
        first=np.ascontiguousarray(model.table_start[model.table_of]),
        log=np.ascontiguousarray(model.tables),
    )
    return JointEngine(compiled, factors, model.cards.astype(np.int64), slots, model.names)


def _starts(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


class JointBlock:
    """A block of lanes: one byte per variable and chain."""

    mask = 255

    def __init__(self, engine: JointEngine, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        from definetti.samplers.kernels import joint as kernels

        self._kernels, self._engine = kernels, engine
        self.lanes = len(starts)
        self.state = np.ascontiguousarray(starts.T, dtype=np.uint8)
        self._streams = words(seed, (4, self.lanes))
        self._weight = np.zeros(int(engine.model.rows.max(initial=1)))
        self._done = np.zeros(max(len(engine.model.rows), 1), dtype=np.bool_)
        slots = engine.slots.count
        self._sums = kernels.Sums(
            np.zeros((slots, self.lanes)), np.zeros((slots, self.lanes)), np.zeros(slots, np.int64)
        )

    def run(self, orders: np.ndarray, folded: int) -> None:
        engine = self._engine
        stuck = self._kernels.run_sweeps(
            engine.model, engine.factors, self.state, orders, self._streams, self._weight, self._done, self._sums,
            engine.cards, folded,
        )  # fmt: skip
        if stuck >= 0:
            name = engine.names[engine.model.variable[engine.model.start[stuck]]]
            raise Stuck(f"every value of {name} became impossible: the chain's start was illegal")

    def harvest(self) -> Harvest:
        return taken(self._sums)

    def present(self) -> np.ndarray:
        return count_values(self.state, self._engine.slots)
