"""Local maxima of a factor graph by the ascents that chains on factor graphs begin with (`samplers/graph/starts.py`),
for the ground model of a theory, whose group is known as orbits of literals."""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.modes.graph.walkers import GraphWalkers
from definetti.modes.walkers import Key
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.graph.sampling import Statistics
from definetti.samplers.graph.starts import maxima
from definetti.symmetry.graph.group import none

MOST_FACTORS, MOST_HARD = 20_000, 2_000  # of a model that is climbed; with hard factors, which are solved for
MOST_ENTRIES = 1 << 24  # of its tables, should each factor need one of its own


def summits(model: FactorGraph, cell: np.ndarray, key: Key, wanted: int, climbs: int) -> np.ndarray:
    """uint8[n, at most `wanted`]: ends of ascents that differ, the best and some of the others, none of large models;
    `cell`: int64[literals]: literals that symmetries carry into each other have one number; `climbs`: sweeps of single
    chains."""
    if free_entries(model) > MOST_ENTRIES:
        return np.zeros((model.n, 0), dtype=np.uint8)
    model = simplify(model)
    if len(model.arity) > (MOST_HARD if len(model.hard_factors) else MOST_FACTORS):
        return np.zeros((model.n, 0), dtype=np.uint8)
    free = model.evidence == FREE
    statistic = np.zeros(len(cell), dtype=np.int64)
    literals = np.repeat(free, model.cards)
    statistic[literals] = np.unique(cell[literals], return_inverse=True)[1]
    row = np.full(model.n, -1)
    row[model.free] = np.arange(len(model.free))
    slots = slots_of(model, row)
    of_slot = statistic[literals]
    # of values that are atoms the last one's orbit stands for the variable's
    orbit_of = cell[model.literal_start[1:] - 1]
    statistics = Statistics(of_slot, np.bincount(of_slot), orbit_of=orbit_of)
    return maxima(GraphWalkers(none(model), statistics, statistic, slots), key, wanted, climbs)


def free_entries(model: FactorGraph) -> float:
    """Of the tables of all factors over what evidence leaves free."""
    cards = np.where(model.evidence == FREE, model.cards, 1)
    digits = np.concatenate([[0.0], np.cumsum(np.log(cards[model.scope]))])[model.scope_start]
    return float(np.exp(np.diff(digits)).sum())
