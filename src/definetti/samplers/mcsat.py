"""MC-SAT (Poon and Domingos, 2006) as a frozen value, and a binary factor graph laid out for its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.factors import FactorGraph
from definetti.samplers.kernels.relational_seeds import seed_words

if TYPE_CHECKING:
    from definetti.samplers.kernels.mcsat import Graph, State

WIDEST = 6  # variables of one factor: its entries are bits of a word
MOST_ACTIVE = 1 << 18  # factors of one component


@dataclass(frozen=True)
class MCSat:
    """Slice sampling over formulas: each sample is a nearly uniform solution of a random part of the model.

    `temperature` is that of SampleSAT's annealing moves, used for components of more than ten free variables only.
    """

    temperature: float = 0.5

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ModelError(f"the temperature of MC-SAT must be positive, got {self.temperature}")

    @property
    def name(self) -> str:
        return "mcsat"

    @property
    def scan(self) -> str:
        return "none"


def graph_of(model: FactorGraph, orbit: np.ndarray) -> Graph:
    """The kernel's arrays; `orbit[i]` is the place of a variable's statistic, 0 for none."""
    from definetti.samplers.kernels.mcsat import Graph

    widths = np.diff(model.scope_start)
    if (model.cards[model.free] > 2).any():
        raise ModelError("MC-SAT samples variables of two values (no `!` arguments); use the Gibbs sampler")
    if widths.max(initial=0) > WIDEST:
        raise TooLarge("the number of atoms of one ground formula", int(widths.max()), WIDEST, "use the Gibbs sampler")
    levels = [_levels(model.tables[a:b]) for a, b in zip(model.table_start[:-1], model.table_start[1:], strict=True)]
    start, records = _records(model, widths)
    joined = [
        np.concatenate([np.zeros(0, t), *(level[k] for level in levels)]) for k, t in enumerate((int, np.uint64, float))
    ]
    return Graph(
        len(widths),
        model.table_start.astype(np.int64),
        joined[0].astype(np.int64),
        np.concatenate([[0], np.cumsum([len(level[1]) for level in levels])]).astype(np.int64),
        joined[1].astype(np.uint64),
        joined[2].astype(np.float64),
        _halves(),
        start,
        records,
        _loose(model, widths),
        model.free.astype(np.int32),
        orbit.astype(np.int64),
    )


def _records(model: FactorGraph, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel reads at each variable, in one stream: number, table, width, variables of each of its factors."""
    blocks = [(w, j, np.flatnonzero(widths == w).astype(np.int32)) for w in range(2, WIDEST + 1) for j in range(w)]
    blocks = [(w, j, factor) for w, j, factor in blocks if len(factor)]
    start = np.zeros(model.n + 1, dtype=np.int64)
    for w, j, factor in blocks:
        start[1:] += (3 + w) * np.bincount(model.scope[model.scope_start[factor] + j], minlength=model.n)
    np.cumsum(start, out=start)
    records, used = np.zeros(int(start[-1]), dtype=np.int32), start[:-1].copy()
    for w, j, factor in blocks:
        owner = model.scope[model.scope_start[factor] + j]
        order = np.argsort(owner, kind="stable").astype(np.int32)
        factor, owner = factor[order], owner[order]
        counts = np.bincount(owner, minlength=model.n)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = used[owner] + rank * (3 + w)
        for k, column in enumerate((factor, model.table_of[factor], w)):
            records[at + k] = column
        for k in range(w):
            records[at + 3 + k] = model.scope[model.scope_start[factor] + k]
        used += (3 + w) * counts
    return start, records


def _levels(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(level of each entry, mask of entries at least as high, chance to fall) of one table."""
    values = np.unique(table[np.isfinite(table)])
    level = np.where(np.isfinite(table), np.searchsorted(values, table), -1)
    if len(table) > 1 << WIDEST:
        return level, np.zeros(len(values), np.uint64), np.zeros(len(values))
    bits = np.uint64(1) << np.arange(len(table), dtype=np.uint64)
    masks = [np.bitwise_or.reduce(bits[level >= k]) for k in range(len(values))]
    drop = np.concatenate([np.zeros(min(1, len(values))), np.exp(-np.diff(values))])
    return level, np.array(masks, dtype=np.uint64), drop


def _halves() -> np.ndarray:
    out = np.zeros((WIDEST + 1, WIDEST), dtype=np.uint64)
    for w in range(1, WIDEST + 1):
        for j in range(w):
            out[w, j] = sum(1 << e for e in range(1 << w) if e >> (w - 1 - j) & 1)
    return out


def _loose(model: FactorGraph, widths: np.ndarray) -> np.ndarray:
    """The chance that a variable's own factors let it leave its value."""
    own = np.zeros((model.n, 2))
    single = np.flatnonzero(widths == 1)
    at = model.table_start[model.table_of[single]]
    for value in (0, 1):
        np.add.at(own[:, value], model.scope[model.scope_start[single]], model.tables[at + value])
    with np.errstate(invalid="ignore"):
        gap = own[:, 1] - own[:, 0]
    return np.exp(np.minimum(0.0, np.stack([gap, -gap], 1)))


def state_of(graph: Graph, x: np.ndarray, seed: int, chain: int, orbits: int) -> State:
    """A chain at a legal state."""
    from definetti.samplers.kernels.mcsat import EXACT, State

    n, factors = len(x), graph.factors
    capacity = max(1, min(factors, MOST_ACTIVE))
    words = np.concatenate([seed_words(seed, chain), seed_words(seed, -2 - chain)[:1]])
    fixed = np.ones(n, dtype=np.int8)
    return State(
        x.astype(np.int8),
        x.astype(np.int8),
        fixed,
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int64),
        np.zeros(factors, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity, np.uint64),
        np.zeros(n + 1, np.int64),
        np.zeros(WIDEST * capacity, np.int32),
        np.zeros((2, capacity), np.int32),
        np.zeros(1 << EXACT, np.int32),
        np.zeros(8, np.int64),
        words,
        np.zeros((3, orbits + 1)),
    )
