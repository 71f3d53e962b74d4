"""The engine for soft models of binary variables in twos and threes: their log density as a polynomial of degree three.

Ground Markov logic has many factors and few weights, so that most coefficients of a variable are alike up to their sign
(`kernels/graph/polynomial.py` says how these are counted together).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import CountingBlock, Engine, Seeds, Slots
from definetti.samplers.graph.tables import RANGE

GRID = 2.0**46  # coefficients whose sizes, in steps of 1 / GRID, are equal are counted together
MINUS, NEGATED = np.array([[1 << 31, 0], [0, 1 << 31]])  # highest bits of a product (`Polynomial.product`)
MOST_PRODUCTS = 2**31 - 1  # places are 32-bit integers


@dataclass(frozen=True, eq=False)
class PolynomialEngine(Engine):
    model: Any  # kernels.polynomial.Polynomial
    slots: Slots
    names: tuple[str, ...]
    name: str = "polynomial"
    width: int = 32
    together: int = 8

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> PolynomialBlock:
        return PolynomialBlock(self, starts, seeds, visits_too, conditionals)

    def memory(self, chains: int, conditionals: bool) -> int:
        return chains * (len(self.names) + 28 * self.slots.count)


def build(model: FactorGraph, slots: Slots) -> PolynomialEngine | None:
    """Compile a simplified model; None if it has other factors, or odds that could leave the range of doubles."""
    from definetti.samplers.kernels.graph import polynomial as kernels

    binary = (model.cards[model.free] == 2).all() and (model.cards[model.scope] == 2).all()
    if not binary or model.arity.max(initial=0) > 3 or not np.isfinite(model.tables).all():
        return None
    own, site, product, coefficient = _log_odds(model)
    reach = np.abs(own) + np.bincount(site, weights=np.abs(coefficient), minlength=model.n)
    if reach.max(initial=0.0) > RANGE or len(site) > MOST_PRODUCTS:
        return None
    start, group, order, power = _groups(model.n, site, coefficient, kernels.MOST)
    product = np.where((coefficient < 0)[:, None], product | MINUS, product)[order].astype(np.uint32)
    cards = np.full(model.n, 2, dtype=np.int64)
    return PolynomialEngine(kernels.Polynomial(cards, np.exp(own), start, group, product, power), slots, model.names)


def _log_odds(model: FactorGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The log odds of every variable: what is left where all others are 0, and terms (variable, product, coefficient)
    of which none is 0."""
    own, terms = np.zeros(model.n), [(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros(0))]
    for scope, coefficients in _coefficients(model):
        arity = scope.shape[1]
        for axis in range(arity):
            found = np.moveaxis(coefficients, axis + 1, 1)[:, 1].reshape(len(scope), -1)
            np.add.at(own, scope[:, axis], found[:, 0])
            for product, value in _products(np.delete(scope, axis, axis=1).astype(np.int64), found):
                met = np.flatnonzero(value)
                terms.append((scope[met, axis], product[met], value[met]))
    site, product, coefficient = (np.concatenate(parts) for parts in zip(*terms, strict=True))
    return own, site, product, coefficient


def _products(others: np.ndarray, coefficient: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Products int64[F, 2] and their coefficients, from those of each subset of one or two others. Where that of a · b
    takes back that of a, as in a body of an implication, a · (1 - b) is one product for two."""
    if others.shape[1] == 1:
        yield others[:, [0, 0]], coefficient[:, 1]
    elif others.shape[1] == 2:
        first, second, both = coefficient[:, 2], coefficient[:, 1], coefficient[:, 3]
        one = (first != 0) & (np.abs(both + first) < 1 / GRID)
        two = (second != 0) & (np.abs(both + second) < 1 / GRID) & ~one
        yield others[:, [0, 0]], np.where(one, 0.0, first)
        yield others[:, [1, 1]], np.where(two, 0.0, second)
        yield others, np.where(one | two, 0.0, both)
        yield others | NEGATED, np.where(one, first, 0.0)
        yield others[:, ::-1] | NEGATED, np.where(two, second, 0.0)


def _coefficients(model: FactorGraph) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scopes and coefficients float64[F, 2, …] of the factors of each shape: a factor's log table is the sum over
    subsets of its variables of coefficient · product of their values."""
    for alike in model.by_shape:
        entries = model.table_start[alike.tables][:, None] + np.arange(alike.size)
        found = model.tables[entries].reshape(-1, *alike.shape)
        for axis in range(1, alike.arity + 1):
            low, high = np.take(found, 0, axis), np.take(found, 1, axis)
            found = np.stack([low, high - low], axis)
        yield alike.scopes, found


def _groups(
    n: int, site: np.ndarray, coefficient: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`Polynomial.start` and `.group`, the order of the terms, and `.power`."""
    minus = coefficient < 0
    _, first, size = np.unique(np.rint(np.abs(coefficient) * GRID), return_index=True, return_inverse=True)
    alike = site.astype(np.int64) * max(len(first), 1) + size.ravel()
    order = np.argsort(alike, kind="stable")
    alike, minus = alike[order], minus[order]
    place = np.arange(len(alike))
    begins = np.concatenate([[True], np.diff(alike) != 0])[: len(alike)]
    begins |= (place - np.maximum.accumulate(np.where(begins, place, 0))) % most == 0
    begin = np.flatnonzero(begins)
    end = np.append(begin[1:], len(alike))[: len(begin)]
    below = np.add.reduceat(minus.astype(np.int64), begin) if len(begin) else begin
    least, largest = (np.zeros(len(first), np.int64) for _ in range(2))
    of = alike[begin] % max(len(first), 1)
    np.maximum.at(least, of, below)
    np.maximum.at(largest, of, end - begin - below)
    table = np.concatenate([[0], np.cumsum(least + largest + 1)])
    k = np.arange(table[-1]) - np.repeat(table[:-1] + least, np.diff(table))
    power = np.exp(np.repeat(np.abs(coefficient)[first], np.diff(table)) * k)
    group = np.column_stack([begin, end, table[of] + least[of] - below]).astype(np.int32)
    start = np.searchsorted(site[order][begin], np.arange(n + 1))
    return start.astype(np.int64), group, order, power


class PolynomialBlock(CountingBlock):
    """A block of chains whose rows are whole words."""

    mask = 1

    def __init__(
        self, engine: PolynomialEngine, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool
    ) -> None:
        from definetti.samplers.kernels.graph import polynomial as kernels

        super().__init__(engine, kernels, starts, seeds, visits_too, conditionals, kernels.LANES)
        self._scratch = kernels.Scratch(np.zeros(self.state.shape[1], np.uint8), *np.zeros((3, self.lanes)))

    def _no_conditional(self) -> np.ndarray:
        return np.zeros((len(self._engine.slots.cards) if self._conditionals else 0, self.lanes))

    def run(self, orders: np.ndarray, folded: int) -> None:
        self._kernels.run_sweeps(
            self._engine.model, self.state, self.state.view(np.uint64), orders, self._streams, self._scratch,
            self._cells, self._drawn, self._final, self._conditional, min(folded, 2 if self._conditionals else 1),
            self._visits_too,
        )  # fmt: skip

    def _by_slot(self, conditional: np.ndarray, visits: np.ndarray) -> np.ndarray:
        """The kernel keeps those of value 1."""
        out = np.empty((2 * len(conditional), self.lanes))
        out[1::2] = conditional
        np.subtract(visits[: len(out) : 2, None], conditional, out=out[::2])
        return out
