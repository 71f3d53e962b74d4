"""The engine of MC-SAT on factor graphs: blocks of chains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import Notice
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import Engine, Harvest, Seeds, Slots, count_values, words
from definetti.samplers.graph.tables import check_values
from definetti.samplers.mcsat import DIAGRAM, MOST_ACTIVE, Graph, approximate_share, doubts, graph_of, state_of
from definetti.samplers.protocol import prefixed


def build(model: FactorGraph, slots: Slots, temperature: float) -> MCSatEngine:
    """Compile a simplified model."""
    check_values(model)
    cell = np.zeros(int(model.literal_start[-1]), dtype=np.int64)
    literals = np.flatnonzero(np.repeat(slots.row_of >= 0, model.cards))
    variable = np.repeat(np.arange(model.n), model.cards)[literals]
    cell[literals] = 1 + slots.start[slots.row_of[variable]] + literals - model.literal_start[variable]
    return MCSatEngine(model, graph_of(model, cell), slots, temperature)


@dataclass(frozen=True, eq=False)
class MCSatEngine(Engine):
    model: FactorGraph
    graph: Graph
    slots: Slots
    temperature: float
    name: str = "mcsat"
    width: int = 8
    together: int = 1
    look_every: int = 2

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> MCSatBlock:
        return MCSatBlock(self, starts, seeds[0])

    def memory(self, chains: int, conditionals: bool) -> int:
        scratch = 56 * self.model.n + 16 * len(self.graph.cell) + 38 * min(self.model.factor_count, MOST_ACTIVE)
        return chains * (self.model.n + 24 * self.slots.count) + -(-chains // self.width) * (scratch + DIAGRAM)

    def notices(self, blocks: Sequence[MCSatBlock]) -> list[Notice]:
        return doubts(clock for block in blocks for clock in block.clocks)

    def report(self, blocks: Sequence[MCSatBlock]) -> dict[str, Any]:
        return {"approximate_share": approximate_share(clock for block in blocks for clock in block.clocks)}


class MCSatBlock:
    """A block of chains: one byte per variable and lane. They take turns in the same scratch."""

    mask = 255

    def __init__(self, engine: MCSatEngine, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        self._engine, self.lanes = engine, len(starts)
        self.state = np.ascontiguousarray(starts.T, dtype=np.uint8)
        streams = words(seed, (self.lanes, 5))
        scratch = state_of(engine.model, starts[0], streams[0], engine.slots.count)
        # a sample's key is the chain's own count of samples: chains that take turns must not count for each other
        own = ((s, np.zeros_like(scratch.clock), np.zeros_like(scratch.sums)) for s in streams)
        self._chains = [scratch._replace(streams=s, clock=clock, sums=sums) for s, clock, sums in own]
        self.clocks = [chain.clock for chain in self._chains]

    def run(self, orders: np.ndarray, folded: int) -> None:
        from definetti.samplers.kernels.graph.mcsat import advance

        for lane, chain in enumerate(self._chains):
            chain.x[:] = chain.y[:] = self.state[:, lane]
            advance(self._engine.graph, chain, len(orders), self._engine.temperature, folded > 0)
            self.state[:, lane] = chain.x

    def harvest(self) -> Harvest:
        """There are no conditionals."""
        final = np.stack([chain.sums[1, 1:] for chain in self._chains], axis=1)
        for chain in self._chains:
            chain.sums[:] = 0.0
        return Harvest(final, None, None, np.zeros(len(final), np.int64))

    def present(self) -> np.ndarray:
        return count_values(self.state, self._engine.slots)

    def arrays(self) -> dict[str, np.ndarray]:
        found = {"state": self.state}
        for k, chain in enumerate(self._chains):
            found |= prefixed(str(k), {"streams": chain.streams, "clock": chain.clock, "sums": chain.sums})
        return found
