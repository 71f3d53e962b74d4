"""Gibbs sweeps for binary variables whose log density is a polynomial of degree three at most: lanes of chains over
counts of products.

The log odds of a variable are a sum of coefficient · a · b over pairs of others, where b may be negated (1 - b), and
a · a is one of them alone. Products whose coefficients have one size are counted together, those with a minus sign down
from their number, so that a count is never negative. A word holds eight lanes' bytes: no count exceeds 255, and one
addition serves them all. The odds are then a product of powers, one look-up for each size; nothing computes exp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.graph.tables import (
    FULL,
    Cells,
    Counts,
    carry_over,
    collect,
    fold,
    next_uniforms,
)

__all__ = ["MOST", "WORDS", "Cells", "Counts", "Polynomial", "Scratch", "carry_over", "collect", "fold", "run_sweeps"]

WORDS = 4  # a row of the state is a multiple of so many words, of eight lanes each
MOST = 255  # products that are counted together
ONES = np.uint64(0x0101010101010101)
SIGN, PLACE = np.uint32(31), np.uint32(0x7FFFFFFF)  # of the second variable of a product: is it negated, which is it


class Polynomial(NamedTuple):
    """A compiled model. Group g of a variable multiplies its odds by powers[base + count], where `count` begins at the
    number of the group's products with a minus sign."""

    card: np.ndarray  # int64[n]
    odds: np.ndarray  # float64[n]: of value 1 while all others are 0
    start: np.ndarray  # int64[n + 1]: where a variable's groups begin
    group: np.ndarray  # int32[G, 4]: where its products begin, where those with a minus sign do, their end, its base
    product: np.ndarray  # uint32[P, 2]: two other variables, the second one negated where its highest bit is set
    power: np.ndarray  # float64: for each size, exp(size · k) from the least k on


class Scratch(NamedTuple):
    """One block's working rows."""

    counts: np.ndarray  # uint64[words]
    bytewise: np.ndarray  # uint8[8 · words]: the same memory
    ratio: np.ndarray  # float64[lanes]: the odds
    uniform: np.ndarray  # float64[lanes]
    chance: np.ndarray  # float64[lanes]: P(value 1)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def count_products(words, product, first, minus, end, count):
    """How many of a group's products are 1 in every lane: up for those with a plus sign, down for the others."""
    zero = np.uint64(end - minus) * ONES
    for w in range(0, words.shape[1], WORDS):
        c0, c1, c2, c3 = zero, zero, zero, zero
        for e in range(first, minus):
            a, b, no = product[e, 0], product[e, 1] & PLACE, np.uint64(product[e, 1] >> SIGN) * ONES
            c0 += words[a, w] & (words[b, w] ^ no)
            c1 += words[a, w + 1] & (words[b, w + 1] ^ no)
            c2 += words[a, w + 2] & (words[b, w + 2] ^ no)
            c3 += words[a, w + 3] & (words[b, w + 3] ^ no)
        for e in range(minus, end):
            a, b, no = product[e, 0], product[e, 1] & PLACE, np.uint64(product[e, 1] >> SIGN) * ONES
            c0 -= words[a, w] & (words[b, w] ^ no)
            c1 -= words[a, w + 1] & (words[b, w + 1] ^ no)
            c2 -= words[a, w + 2] & (words[b, w + 2] ^ no)
            c3 -= words[a, w + 3] & (words[b, w + 3] ^ no)
        count[w], count[w + 1], count[w + 2], count[w + 3] = c0, c1, c2, c3


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
    count, bytewise, ratio, uniform, chance = scratch
    visits, pending, low, high = drawn
    firsts, low_words = cells.first, low.view(np.uint64)
    for q in range(order.shape[0]):
        i = order[q]
        for lane in range(ratio.shape[0]):
            ratio[lane] = odds[i]
        for g in range(start[i], start[i + 1]):
            count_products(words, product, group[g, 0], group[g, 1], group[g, 2], count)
            base = np.uint64(group[g, 3])
            for lane in range(ratio.shape[0]):
                ratio[lane] *= power[base + np.uint64(bytewise[lane])]
        next_uniforms(streams, uniform)
        draw(state, i, ratio, uniform, chance)
        if folded:
            count_ones(words, i, firsts[i], visits, pending, low, high, low_words)
        if folded == 2:
            for lane in range(chance.shape[0]):
                conditional[firsts[i] >> 1, lane] += chance[lane]


@njit(nogil=True, cache=True)
def run_sweeps(model, state, words, orders, streams, scratch, cells, drawn, final, conditional, folded, visits_too):
    """As of `kernels/graph/tables.py`; `words` is the memory of `state`, `conditional` has one row of lanes per row."""
    for s in range(orders.shape[0]):
        sweep(model, state, words, orders[s], streams, scratch, cells, drawn, conditional, folded)
        if folded and visits_too:
            fold(state, model.card, cells, final)
