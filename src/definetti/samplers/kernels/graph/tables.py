"""Gibbs sweeps for variables with any number of values and factors of any arity: lanes of chains over tables of
weights.

Each (variable, factor) pair has the factor's table as weights, with the variable's own values fastest, and scaled so
that the largest weight of each row is one: a full conditional is then a product of rows, without exp. Where that
product could leave the range of doubles (`deep` sites), logarithms are added instead.

An update is a few passes over the lanes, each a loop so plain that LLVM makes vector instructions of it: rows of
scratch are indexed [row, lane], nothing divides with a check for zero (`error_model`), and places that come out of
memory are unsigned, so that no negative index has to be looked for. Only the product of rows reads from all over the
weights, and stays scalar: there one lane's four values are kept in registers while the factors pass by.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import next_word, unit

PAIRS = 16  # so many pairs of a site are looked up together
FULL = 255  # what a small counter holds
U1, U2, U3 = np.uint64(1), np.uint64(2), np.uint64(3)


class Parts(NamedTuple):
    """All factors; entry = first[k] + the sum of stride · value over the scope."""

    start: np.ndarray  # int64[F + 1]
    scope: np.ndarray  # int32
    stride: np.ndarray  # int64
    first: np.ndarray  # int64[F]
    log: np.ndarray  # float64: by entry, 0 where impossible
    possible: np.ndarray  # bool: by entry


class Tables(NamedTuple):
    """A compiled model. Pair e of variable i multiplies by the row of weights that begins at base + the sum of
    stride · value over the factor's other variables.

    What is needed to know of a pair is one row of `near`, so that it is fetched at once: its base; two other
    variables, each with its stride (0 where there are fewer); where its further variables begin and end in `further`,
    which has two to a row.
    """

    card: np.ndarray  # int64[n]
    deep: np.ndarray  # bool[n]: the product may leave the range of doubles
    pair_start: np.ndarray  # int64[n + 1]
    near: np.ndarray  # int32[E, 8]
    further: np.ndarray  # int32[M, 4]
    weights: np.ndarray  # float64, and three entries more: rows are read four values at a time
    logs: np.ndarray  # float64: the logarithms of the weights, empty if no site is deep


class Scratch(NamedTuple):
    """One block's working rows."""

    place: np.ndarray  # int32[PAIRS, lanes]: where in the weights
    product: np.ndarray  # float64[values, lanes]: the full conditional, not normalised; values a multiple of four
    uniform: np.ndarray  # float64[lanes]
    value: np.ndarray  # int64[lanes]: the values drawn
    scale: np.ndarray  # float64[lanes]: one over the product's sum


class Cells(NamedTuple):
    """Where statistics are folded: slot `first[i] + v` counts value v of the variables of an orbit row."""

    first: np.ndarray  # int64[n]: the slot of the variable's value 0, -1 for observed variables
    site: np.ndarray  # int32: the free variables
    row: np.ndarray  # int64[R + 1]: where the slots of each row begin


class Counts(NamedTuple):
    """How often each value was there, in small counters that are carried over when they are full.

    Value 0 was there whenever no other one was, and is not counted. A row's visits are kept at its value 0.
    """

    visits: np.ndarray  # int64[slots]
    pending: np.ndarray  # int64[slots]: visits that `low` holds
    low: np.ndarray  # uint8[slots, lanes]
    high: np.ndarray  # int64[slots, lanes]


# --- one site ------------------------------------------------------------------------------------------------------
# The helpers take plain arrays: handing them the tuples would count references at every site.


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def next_uniforms(streams, out):
    """xoshiro256++ in every lane (period 2^256 - 1); 53 bits each."""
    for lane in range(out.shape[0]):
        s0, s1, s2, s3 = streams[0, lane], streams[1, lane], streams[2, lane], streams[3, lane]
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        out[lane] = unit(word)
        streams[0, lane] = s0
        streams[1, lane] = s1
        streams[2, lane] = s2
        streams[3, lane] = s3


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def find_rows(state, near, further, lo, hi, place):
    """Where in the weights each lane's row is, for some pairs, given the values of their factors' other variables."""
    for e in range(lo, hi):
        base, a, stride_a, b, stride_b = near[e, 0], near[e, 1], near[e, 2], near[e, 3], near[e, 4]
        for lane in range(state.shape[1]):
            place[e - lo, lane] = base + stride_a * np.int32(state[a, lane]) + stride_b * np.int32(state[b, lane])
        for k in range(near[e, 5], near[e, 6]):
            c, stride_c, d, stride_d = further[k, 0], further[k, 1], further[k, 2], further[k, 3]
            for lane in range(state.shape[1]):
                place[e - lo, lane] += stride_c * np.int32(state[c, lane]) + stride_d * np.int32(state[d, lane])


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def multiply_rows(product, card, weights, place, pairs):
    """Multiply each lane's product by its rows of weights; past the last value it gathers what nobody reads."""
    for v in range(0, card, 4):
        for lane in range(place.shape[1]):
            p0, p1, p2, p3 = product[v, lane], product[v + 1, lane], product[v + 2, lane], product[v + 3, lane]
            for e in range(pairs):
                at = np.uint64(place[e, lane]) + np.uint64(v)
                p0 *= weights[at]
                p1 *= weights[at + U1]
                p2 *= weights[at + U2]
                p3 *= weights[at + U3]
            product[v, lane], product[v + 1, lane], product[v + 2, lane], product[v + 3, lane] = p0, p1, p2, p3


@njit(nogil=True, cache=True)
def add_rows(product, card, logs, place, pairs):
    """The same for logarithms."""
    for v in range(card):
        for e in range(pairs):
            for lane in range(place.shape[1]):
                product[v, lane] += logs[place[e, lane] + v]


@njit(nogil=True, cache=True)
def exponentiate(product, card):
    """Turn logarithms into weights, the largest one (all zero where nothing is possible, for `choose` to report)."""
    for lane in range(product.shape[1]):
        largest = -math.inf
        for v in range(card):
            largest = max(largest, product[v, lane])
        for v in range(card):
            product[v, lane] = math.exp(product[v, lane] - largest) if largest > -math.inf else 0.0


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def choose(product, card, uniform, value, scale):
    """Draw a value in each lane by its weight; true if in some lane every value is impossible.

    The value is how many running sums a random part of the whole sum reaches. It is less than the whole (a double below
    one times another stays below it), and so the running sum first rises above it at a value of positive weight.
    """
    for v in range(card):
        for lane in range(scale.shape[0]):
            scale[lane] = scale[lane] + product[v, lane] if v else product[0, lane]
    for lane in range(scale.shape[0]):
        uniform[lane] *= scale[lane]
        value[lane] = 0
    for v in range(card):
        for lane in range(scale.shape[0]):
            scale[lane] = scale[lane] + product[v, lane] if v else product[0, lane]
            value[lane] += np.int64(uniform[lane] >= scale[lane])
    most = np.int64(0)
    for lane in range(scale.shape[0]):
        most = max(most, value[lane])
    if most == card:
        return True
    for lane in range(scale.shape[0]):
        scale[lane] = 1.0 / scale[lane]
    return False


# --- folding ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def carry_over(first, card, pending, low, high):
    """Add a row's small counters to its large ones and clear them."""
    pending[first] = 0
    for slot in range(first + 1, first + card):
        for lane in range(low.shape[1]):
            high[slot, lane] += low[slot, lane]
            low[slot, lane] = 0


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def count_values(state, i, first, card, visits, pending, low, high):
    """Count variable i's values (F)."""
    if pending[first] == FULL:
        carry_over(first, card, pending, low, high)
    pending[first] += 1
    visits[first] += 1
    for v in range(1, card):
        for lane in range(state.shape[1]):
            low[first + v, lane] += np.uint8(state[i, lane] == np.uint8(v))


@njit(nogil=True, cache=True, error_model="numpy")
def collect(row, counts, out):
    """Write how often each value was there to out[slots, lanes], and clear the counts."""
    visits, pending, low, high = counts
    for r in range(row.shape[0] - 1):
        first, card = row[r], row[r + 1] - row[r]
        carried = visits[first] > pending[first]
        for lane in range(out.shape[1]):
            out[first, lane] = visits[first]
        for slot in range(first + 1, first + card):
            for lane in range(out.shape[1]):
                count = np.float64(low[slot, lane])
                out[slot, lane] = count
                out[first, lane] -= count
                low[slot, lane] = 0
            if carried:
                for lane in range(out.shape[1]):
                    count = np.float64(high[slot, lane])
                    out[slot, lane] += count
                    out[first, lane] -= count
                    high[slot, lane] = 0
        visits[first] = 0
        pending[first] = 0


# --- sweeps --------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, error_model="numpy")
def sweep(model, state, order, streams, scratch, cells, drawn, conditional, folded):
    """Update the sites of `order`; returns -1, or the first site all of whose values are impossible."""
    cards, deep, pair_start, near, further, weights, logs = model
    place, product, uniform, value, scale = scratch
    visits, pending, low, high = drawn
    firsts = cells.first
    for q in range(order.shape[0]):
        i = order[q]
        card, first = cards[i], firsts[i]
        product[: -(-card // 4) * 4] = 0.0 if deep[i] else 1.0
        for lo in range(pair_start[i], pair_start[i + 1], PAIRS):
            hi = min(lo + PAIRS, pair_start[i + 1])
            find_rows(state, near, further, lo, hi, place)
            if deep[i]:
                add_rows(product, card, logs, place, hi - lo)
            else:
                multiply_rows(product, card, weights, place, hi - lo)
        if deep[i]:
            exponentiate(product, card)
        next_uniforms(streams, uniform)
        if choose(product, card, uniform, value, scale):
            return i
        for lane in range(value.shape[0]):
            state[i, lane] = value[lane]
        if folded:
            count_values(state, i, first, card, visits, pending, low, high)
        if folded == 2:
            for v in range(card):
                for lane in range(value.shape[0]):
                    conditional[first + v, lane] += product[v, lane] * scale[lane]
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def fold(state, cards, cells, final):
    """Count the values at a sweep's end."""
    visits, pending, low, high = final
    firsts, sites, _ = cells
    for m in range(sites.shape[0]):
        i = sites[m]
        count_values(state, i, firsts[i], cards[i], visits, pending, low, high)


@njit(nogil=True, cache=True)
def run_sweeps(model, state, orders, streams, scratch, cells, drawn, final, conditional, folded, visits_too):
    """One sweep per row of `orders`; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G. Returns as `sweep` does.

    Where a sweep visits every site once, the values drawn are those at its end; else (`visits_too`) both are counted.
    """
    for s in range(orders.shape[0]):
        stuck = sweep(model, state, orders[s], streams, scratch, cells, drawn, conditional, folded)
        if stuck >= 0:
            return stuck
        if folded and visits_too:
            fold(state, model.card, cells, final)
    return -1
