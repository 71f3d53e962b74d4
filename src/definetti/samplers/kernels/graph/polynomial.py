"""Gibbs sweeps for binary variables whose log density is a polynomial of degree three at most: lanes of chains over
counts of products.

The log odds of a variable are a sum of coefficient · a · b over pairs of others, where b may be negated (1 - b), and
a · a is one of them alone. Products whose coefficients have one size are counted together, those with a minus sign
where they are 0, so that a count is never negative. A lane's count is a byte: none exceeds 255, and one addition of
vectors serves 32 lanes. The odds are then a product of powers, one look-up for each size; nothing computes exp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.graph.products import LANES, vector_counts
from definetti.samplers.kernels.graph.tables import (
    FULL,
    Cells,
    Counts,
    carry_over,
    collect,
    fold,
    next_uniforms,
)

__all__ = ["LANES", "MOST", "Cells", "Counts", "Polynomial", "Scratch", "carry_over", "collect", "fold", "run_sweeps"]

MOST = 255  # products that are counted together
SIGN, PLACE = np.uint32(31), np.uint32(0x7FFFFFFF)  # of a variable in a product: its highest bit, and which one it is


class Polynomial(NamedTuple):
    """A compiled model. Group g of a variable multiplies its odds by powers[base + count], where `count` is that
    of its products with a plus sign that are 1 and of those with a minus sign that are 0."""

    card: np.ndarray  # int64[n]
    odds: np.ndarray  # float64[n]: of value 1 while all others are 0
    start: np.ndarray  # int64[n + 1]: where a variable's groups begin
    group: np.ndarray  # int32[G, 3]: where its products begin, their end, its base
    product: np.ndarray  # uint32[P, 2]: two variables. Highest bits: it has a minus sign; the second one is negated
    power: np.ndarray  # float64: for each size, exp(size · k) from the least k on


class Scratch(NamedTuple):
    """One block's working rows."""

    counts: np.ndarray  # uint8[lanes, as many as a row of the state has]
    ratio: np.ndarray  # float64[lanes]: the odds
    uniform: np.ndarray  # float64[lanes]
    chance: np.ndarray  # float64[lanes]: P(value 1)


def count_products(state, product, first, end, count):
    """How many of a group's products are 1 in every lane; of those with a minus sign, how many are 0."""
    count[:] = 0
    for e in range(first, end):
        a, b = product[e]
        count += (state[a & PLACE] & (state[b & PLACE] ^ np.uint8(b >> SIGN))) ^ np.uint8(a >> SIGN)


@overload(count_products)
def compiled_count(state, product, first, end, count):
    return lambda state, product, first, end, count: vector_counts(state, product, first, end, count)  # pyright: ignore[reportCallIssue]


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def draw(state, i, ratio, uniform, chance):
    """Draw variable i in every lane by its odds; `chance` becomes P(value 1)."""
    for lane in range(ratio.shape[0]):
        total = 1.0 + ratio[lane]
        state[i, lane] = np.uint8(uniform[lane] * total >= 1.0)
        chance[lane] = ratio[lane] / total


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def count_ones(words, i, first, visits, pending, low, high, low_words):
    """Count variable i's values (F), eight lanes at once."""
    if pending[first] == FULL:
        carry_over(first, 2, pending, low, high)
    pending[first] += 1
    visits[first] += 1
    for w in range(words.shape[1]):
        low_words[first + 1, w] += words[i, w]


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(model, state, words, order, streams, scratch, cells, drawn, conditional, folded):
    """Update the sites of `order`."""
    _, odds, start, group, product, power = model
    count, ratio, uniform, chance = scratch
    visits, pending, low, high = drawn
    firsts, low_words = cells.first, low.view(np.uint64)
    for q in range(order.shape[0]):
        i = order[q]
        ratio[:] = odds[i]
        for g in range(start[i], start[i + 1]):
            count_products(state, product, group[g, 0], group[g, 1], count)
            base = np.uint64(group[g, 2])
            for lane in range(ratio.shape[0]):
                ratio[lane] *= power[base + np.uint64(count[lane])]
        next_uniforms(streams, uniform)
        draw(state, i, ratio, uniform, chance)
        if folded:
            count_ones(words, i, firsts[i], visits, pending, low, high, low_words)
        if folded == 2:
            row = np.uint64(firsts[i] >> 1)
            for lane in range(chance.shape[0]):
                conditional[row, lane] += chance[lane]


@njit(nogil=True, cache=True)
def run_sweeps(model, state, words, orders, streams, scratch, cells, drawn, final, conditional, folded, visits_too):
    """As of `kernels/graph/tables.py`; `words` is the memory of `state`, `conditional` has one row of lanes per row."""
    for s in range(orders.shape[0]):
        sweep(model, state, words, orders[s], streams, scratch, cells, drawn, conditional, folded)
        if folded and visits_too:
            fold(state, model.card, cells, final)
