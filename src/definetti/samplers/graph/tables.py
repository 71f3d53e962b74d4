"""The engine for any factor graph: products of table rows (`kernels/graph/tables.py` says how)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.errors import DefinettiError, TooLarge
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.samplers.graph.lanes import CountingBlock, Engine, Seeds, Slots

RANGE = 600.0  # a product of rows stays a normal double while its logarithms add up to no less than -RANGE
MOST_WEIGHTS = 2**31 - 1  # places are 32-bit integers
MOST_VALUES = 256


class Stuck(DefinettiError):
    """A site all of whose values are impossible: the state was illegal."""


@dataclass(frozen=True, eq=False)
class TablesEngine(Engine):
    model: Any  # kernels.tables.Tables
    slots: Slots
    names: tuple[str, ...]
    name: str = "tables"
    width: int = 32
    together: int = 8

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> TablesBlock:
        return TablesBlock(self, starts, seeds, visits_too, conditionals)

    def memory(self, chains: int, conditionals: bool) -> int:
        return chains * (len(self.names) + 32 * self.slots.count)


def build(model: FactorGraph, slots: Slots) -> TablesEngine:
    """Compile a simplified model."""
    from definetti.samplers.kernels.graph import tables as kernels

    check_values(model)
    pairs = _sorted_pairs(model)
    deep = np.bincount(pairs.site, weights=pairs.depth[pairs.which], minlength=model.n) > RANGE
    compiled = kernels.Tables(
        card=model.cards.astype(np.int64),
        deep=deep,
        pair_start=pairs.start,
        near=pairs.near,
        further=pairs.further,
        weights=np.exp(pairs.logs),
        logs=pairs.logs if deep.any() else np.empty(0),
    )
    return TablesEngine(compiled, slots, model.names)


def log_rows(model: FactorGraph) -> Any:
    """Compile a simplified model for sweeps on levels (`kernels.annealing.Rows`)."""
    from definetti.samplers.kernels.graph import annealing as kernels

    check_values(model)
    impossible = np.isneginf(model.tables)
    soft = _sorted_pairs(replace(model, tables=frozen(np.where(impossible, 0.0, model.tables))))
    hard = _sorted_pairs(replace(model, tables=frozen(-1.0 * impossible))).logs if impossible.any() else np.empty(0)
    card, literal = model.cards.astype(np.int64), model.literal_start.astype(np.int64)
    return kernels.Rows(card, soft.start, soft.near, soft.further, soft.logs, hard, literal)


def all_parts(model: FactorGraph) -> Any:
    """All factors as flat arrays (`kernels.tables.Parts`)."""
    from definetti.samplers.kernels.graph import tables as kernels

    return kernels.Parts(
        start=np.ascontiguousarray(model.scope_start),
        scope=np.ascontiguousarray(model.scope),
        stride=np.ascontiguousarray(model.strides),
        first=np.ascontiguousarray(model.table_start[model.table_of]),
        log=np.nan_to_num(model.tables, neginf=0.0),
        possible=~np.isneginf(model.tables),
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every (variable, factor) pair by variable: its rows of log tables and where to find them."""

    site: np.ndarray  # of each pair
    which: np.ndarray  # of the different tables
    depth: np.ndarray  # of each of these
    start: np.ndarray  # int64[n + 1]
    near: np.ndarray
    further: np.ndarray
    logs: np.ndarray


def _sorted_pairs(model: FactorGraph) -> Pairs:
    factor, axis = _pairs(model)
    site = model.scope[model.scope_start[factor] + axis]
    order = np.argsort(site, kind="stable")
    factor, axis, site = factor[order], axis[order], site[order]
    first, which = _different(model.table_of[factor].astype(np.int64) * 64 + axis)
    offset, logs, depth = _rows(model, factor[first], axis[first])
    near, further = _others(model, factor, axis)
    near[:, 0] = offset[which]
    start = np.concatenate([[0], np.cumsum(np.bincount(site, minlength=model.n))]).astype(np.int64)
    return Pairs(site, which, depth, start, near, further, logs)


def _different(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each different key first occurs, and which of these a key is: equal tables seen along the same axis are
    stored once, and a site's tables side by side."""
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.sort(first), rank[which.ravel()]


def check_values(model: FactorGraph) -> None:
    """A value is one byte of the state."""
    if len(model.free) and model.cards[model.free].max() > MOST_VALUES:
        i = int(model.free[model.cards[model.free].argmax()])
        raise TooLarge(
            f"the number of values of {model.names[i]}",
            int(model.cards[i]),
            MOST_VALUES,
            "split it into several variables",
        )


def _pairs(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Every (factor, axis)."""
    return model.owner_of, np.arange(len(model.scope)) - model.scope_start[model.owner_of]


def _rows(model: FactorGraph, factor: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log tables of (factor, axis) pairs: where each begins, all of them, and how deep each one's rows reach below 0.

    One axis is last, and each row has its largest entry at 0.
    """
    sizes = np.diff(model.table_start)[model.table_of[factor]]
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if offset[-1] > MOST_WEIGHTS:
        raise TooLarge("the number of table entries", int(offset[-1]), MOST_WEIGHTS, "use fewer or smaller tables")
    out, depth = np.full(int(offset[-1]) + 3, -np.inf), np.zeros(len(factor))
    for mine, shape, a in _shapes(model, factor, axis):
        entries = model.table_start[model.table_of[factor[mine]]][:, None] + np.arange(math.prod(shape))
        logs = np.moveaxis(model.tables[entries].reshape(-1, *shape), a + 1, -1)
        logs = logs.reshape(len(mine), -1, shape[a])
        largest = logs.max(axis=2, keepdims=True)
        logs = logs - np.where(np.isfinite(largest), largest, 0.0)
        depth[mine] = -np.where(np.isfinite(logs), logs, 0.0).min(axis=(1, 2))
        out[offset[mine][:, None] + np.arange(math.prod(shape))] = logs.reshape(len(mine), -1)
    return offset[:-1], out, depth


def _shapes(
    model: FactorGraph, factor: np.ndarray, axis: np.ndarray
) -> Iterator[tuple[np.ndarray, tuple[int, ...], int]]:
    """The pairs whose tables have one shape and which look along one axis."""
    number = np.zeros(model.factor_count, dtype=np.int64)
    for s, alike in enumerate(model.by_shape):
        number[alike.factors] = s
    for s, alike in enumerate(model.by_shape):
        mine = np.flatnonzero(number[factor] == s)
        for a in np.unique(axis[mine]).tolist():
            yield mine[axis[mine] == a], alike.shape, a


def _others(model: FactorGraph, factor: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`Tables.near`, without bases, and `Tables.further`: each pair's other variables, and what a step of each adds to
    the place in the weights."""
    arity = model.arity[factor]
    rows = np.maximum(arity // 2, 1)  # of two others each
    start = np.concatenate([[0], np.cumsum(rows)])
    other = np.zeros(
        (start[-1], 2, 2), dtype=np.int32
    )  # (variable, stride); variable 0 with stride 0 where there is none
    for k in np.unique(arity).tolist():
        for a in range(k):
            pairs = np.flatnonzero((arity == k) & (axis == a))
            scope = model.scope[model.scope_start[factor[pairs]][:, None] + np.arange(k)]
            jump = model.cards[scope[:, a]]
            rest = [b for b in range(k) if b != a]
            for slot in range(len(rest) - 1, -1, -1):
                place = start[pairs] + slot // 2, slot % 2
                other[*place] = np.column_stack([scope[:, rest[slot]], jump])
                jump = jump * model.cards[scope[:, rest[slot]]]
    nearest = np.zeros(len(other), dtype=bool)
    nearest[start[:-1]] = True
    near = np.zeros((len(factor), 8), dtype=np.int32)
    near[:, 1:5] = other[nearest].reshape(-1, 4)
    near[:, 6] = np.cumsum(rows - 1)
    near[:, 5] = near[:, 6] - (rows - 1)
    return near, other[~nearest].reshape(-1, 4)


class TablesBlock(CountingBlock):
    """A block of chains with states of any values."""

    def __init__(
        self, engine: TablesEngine, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool
    ) -> None:
        from definetti.samplers.kernels.graph import tables as kernels

        super().__init__(engine, kernels, starts, seeds, visits_too, conditionals)
        values = -(-int(engine.model.card.max(initial=1)) // 4) * 4
        self._scratch = kernels.Scratch(
            place=np.zeros((kernels.PAIRS, self.lanes), np.int32),
            product=np.zeros((values, self.lanes)),
            uniform=np.zeros(self.lanes),
            value=np.zeros(self.lanes, np.int64),
            scale=np.zeros(self.lanes),
        )

    def run(self, orders: np.ndarray, folded: int) -> None:
        stuck = self._kernels.run_sweeps(
            self._engine.model, self.state, orders, self._streams, self._scratch, self._cells, self._drawn,
            self._final, self._conditional, min(folded, 2 if self._conditionals else 1), self._visits_too,
        )  # fmt: skip
        if stuck >= 0:
            raise Stuck(f"every value of {self._engine.names[stuck]} became impossible: the chain's start was illegal")
