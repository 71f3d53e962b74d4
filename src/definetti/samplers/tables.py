"""The engine for any factor graph: products of table rows (`kernels/tables.py` says how)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import DefinettiError, TooLarge
from definetti.model.factors import FactorGraph
from definetti.samplers.blocks import Harvest, Slots, count_values, words

RANGE = 600.0  # a product of rows stays a normal double while its logarithms add up to no less than -RANGE
MOST_WEIGHTS = 2**31 - 1  # places are 32-bit integers
MOST_VALUES = 256


class Stuck(DefinettiError):
    """A site all of whose values are impossible: the state was illegal."""


@dataclass(frozen=True, eq=False)
class TablesEngine:
    model: Any  # kernels.tables.Tables
    slots: Slots
    names: tuple[str, ...]
    name: str = "tables"
    width: int = 32

    def block(
        self, starts: np.ndarray, seed: np.random.SeedSequence, visits_too: bool, conditionals: bool = True
    ) -> TablesBlock:
        return TablesBlock(self, starts, seed, visits_too)

    def memory(self, chains: int, conditionals: bool) -> int:
        return chains * (len(self.names) + 32 * self.slots.count)


def build(model: FactorGraph, slots: Slots) -> TablesEngine:
    """Compile a simplified model."""
    from definetti.samplers.kernels import tables as kernels

    pads = -(-model.cards.astype(np.int64) // 4) * 4
    _check_values(model)
    factor, axis = _pairs(model)
    site = model.scope[model.scope_start[factor] + axis]
    order = np.argsort(site, kind="stable")
    factor, axis, site = factor[order], axis[order], site[order]
    key = model.table_of[factor].astype(np.int64) * 64 + axis  # equal tables seen along the same axis are stored once
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    which = which.ravel()
    offset, logs, depth = _rows(model, factor[first], axis[first], pads)
    deep = np.bincount(site, weights=depth[which], minlength=model.n) > RANGE
    other_start, other, stride = _others(model, factor, axis, pads[site])
    compiled = kernels.Tables(
        pair_start=np.concatenate([[0], np.cumsum(np.bincount(site, minlength=model.n))]).astype(np.int64),
        base=offset[which].astype(np.int32),
        deep=deep,
        other_start=other_start,
        other=other,
        stride=stride,
        weights=np.exp(logs),
        logs=logs if deep.any() else np.empty(0),
        card=model.cards.astype(np.int64),
        pad=pads,
    )
    return TablesEngine(_with_blanks(compiled), slots, model.names)


def _check_values(model: FactorGraph) -> None:
    """A value is one byte of the state."""
    if len(model.free) and model.cards[model.free].max() > MOST_VALUES:
        i = int(model.free[model.cards[model.free].argmax()])
        raise TooLarge(
            f"the number of values of {model.names[i]}",
            int(model.cards[i]),
            MOST_VALUES,
            "split it into several variables",
        )


def _with_blanks(compiled: Any) -> Any:
    """Padding values must have weight zero, also at a site without factors: such a site gets one pair of its own."""
    bare = np.flatnonzero(np.diff(compiled.pair_start) == 0)
    if len(bare) == 0:
        return compiled
    cards, which = np.unique(compiled.card[bare], return_inverse=True)
    blanks = [np.where(np.arange(-(-c // 4) * 4) < c, 1.0, 0.0) for c in cards.tolist()]  # never deep: no logs
    at = len(compiled.weights) + np.concatenate([[0], np.cumsum([len(b) for b in blanks])])[:-1]
    place = compiled.pair_start[bare]
    counts = np.diff(compiled.pair_start)
    counts[bare] = 1
    return compiled._replace(
        pair_start=np.concatenate([[0], np.cumsum(counts)]),
        base=np.insert(compiled.base, place, at[which.ravel()].astype(np.int32)),
        other_start=np.insert(compiled.other_start, place, compiled.other_start[place]),
        weights=np.concatenate([compiled.weights, *blanks]),
    )


def _pairs(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Every (factor, axis)."""
    arity = np.diff(model.scope_start)
    factor = np.repeat(np.arange(model.factor_count), arity)
    return factor, np.arange(len(factor)) - model.scope_start[factor]


def _rows(
    model: FactorGraph, factor: np.ndarray, axis: np.ndarray, pads: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log tables of (factor, axis) pairs: where each begins, all of them, and how deep each one's rows reach below 0.

    One axis is last, padded, and each row has its largest entry at 0.
    """
    site = model.scope[model.scope_start[factor] + axis]
    volume = np.diff(model.table_start)[model.table_of[factor]]
    sizes = volume // model.cards[site] * pads[site]
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if offset[-1] > MOST_WEIGHTS:
        raise TooLarge("the number of table entries", float(offset[-1]), MOST_WEIGHTS, "use fewer or smaller tables")
    out, depth = np.full(int(offset[-1]), -np.inf), np.zeros(len(factor))
    for mine, shape, a in _shapes(model, factor, axis):
        entries = model.table_start[model.table_of[factor[mine]]][:, None] + np.arange(math.prod(shape))
        logs = np.moveaxis(model.tables[entries].reshape(-1, *shape), a + 1, -1)
        logs = logs.reshape(len(mine), -1, shape[a])
        largest = logs.max(axis=2, keepdims=True)
        logs = logs - np.where(np.isfinite(largest), largest, 0.0)
        depth[mine] = -np.where(np.isfinite(logs), logs, 0.0).min(axis=(1, 2))
        rows = np.arange(logs.shape[1])[:, None] * int(pads[site[mine[0]]]) + np.arange(shape[a])
        out[offset[mine][:, None, None] + rows] = logs
    return offset[:-1], out, depth


def _shapes(
    model: FactorGraph, factor: np.ndarray, axis: np.ndarray
) -> Iterator[tuple[np.ndarray, tuple[int, ...], int]]:
    """The pairs whose tables have one shape and which look along one axis."""
    arity = np.diff(model.scope_start)[factor]
    for k in np.unique(arity).tolist():
        mine = np.flatnonzero(arity == k)
        shapes = model.cards[model.scope[model.scope_start[factor[mine]][:, None] + np.arange(k)]]
        kinds, which = np.unique(np.column_stack([shapes, axis[mine]]), axis=0, return_inverse=True)
        for number, kind in enumerate(kinds.tolist()):
            yield mine[which.ravel() == number], tuple(kind[:-1]), kind[-1]


def _others(
    model: FactorGraph, factor: np.ndarray, axis: np.ndarray, pad: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The other variables of each pair's factor, and what a step of each adds to the place in the weights."""
    arity = np.diff(model.scope_start)
    start = np.concatenate([[0], np.cumsum(arity[factor] - 1)]).astype(np.int64)
    other = np.empty(start[-1], dtype=np.int32)
    stride = np.empty(start[-1], dtype=np.int32)
    for k in np.unique(arity[factor]).tolist():
        for a in range(k):
            pairs = np.flatnonzero((arity[factor] == k) & (axis == a))
            scope = model.scope[model.scope_start[factor[pairs]][:, None] + np.arange(k)]
            jump = pad[pairs].copy()
            rest = [b for b in range(k) if b != a]
            for slot in range(len(rest) - 1, -1, -1):
                other[start[pairs] + slot] = scope[:, rest[slot]]
                stride[start[pairs] + slot] = jump
                jump = jump * model.cards[scope[:, rest[slot]]]
    return start, other, stride


class TablesBlock:
    """A block of chains: one byte per variable and lane."""

    mask = 255

    def __init__(
        self, engine: TablesEngine, starts: np.ndarray, seed: np.random.SeedSequence, visits_too: bool
    ) -> None:
        from definetti.samplers.kernels import tables as kernels

        self._kernels, self._engine, self._visits_too = kernels, engine, visits_too
        self.lanes = len(starts)
        self.state = np.ascontiguousarray(starts.T, dtype=np.uint8)
        slots = engine.slots
        free = np.flatnonzero(slots.row_of >= 0)
        first, quad = (np.full(len(engine.names), -1, dtype=np.int64) for _ in range(2))
        first[free] = slots.start[slots.row_of[free]]
        quads = -(-slots.cards // 4)
        quad[free] = (np.cumsum(quads) - quads)[slots.row_of[free]]
        self._cells = kernels.Cells(first, quad, free.astype(np.int32))
        self._streams = words(seed, (4, self.lanes))
        self._scratch = kernels.Scratch(
            np.zeros((self.lanes, int(engine.model.pad.max(initial=4)))), np.zeros(self.lanes, np.int32),
            np.zeros(self.lanes), np.zeros(self.lanes, np.int32), np.zeros(self.lanes),
        )  # fmt: skip
        drawn = np.zeros((slots.count if visits_too else 0, self.lanes))
        conditional, visits = np.zeros((int(quads.sum()), self.lanes, 4)), np.zeros(slots.count, np.int64)
        self._sums = kernels.Sums(np.zeros((slots.count, self.lanes)), drawn, conditional, visits)

    def run(self, orders: np.ndarray, folded: int) -> None:
        stuck = self._kernels.run_sweeps(
            self._engine.model, self.state, orders, self._streams, self._scratch, self._cells, self._sums, folded,
            self._visits_too,
        )  # fmt: skip
        if stuck >= 0:
            raise Stuck(f"every value of {self._engine.names[stuck]} became impossible: the chain's start was illegal")

    def harvest(self) -> Harvest:
        final, drawn, visits = self._sums.final.copy(), self._sums.drawn.copy(), self._sums.visits.copy()
        slots = self._engine.slots
        pads = -(-slots.cards // 4) * 4
        at = np.arange(slots.count) + np.repeat(np.cumsum(pads) - pads - slots.start[:-1], slots.cards)
        conditional = self._sums.conditional[at // 4, :, at % 4]
        for part in self._sums:
            part[...] = 0
        return Harvest(final, drawn if self._visits_too else None, conditional, visits)

    def present(self) -> np.ndarray:
        return count_values(self.state, self._engine.slots)
