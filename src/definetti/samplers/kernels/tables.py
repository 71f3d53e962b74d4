"""Gibbs sweeps for variables with any number of values and factors of any arity: lanes of chains over tables of
weights.

Each (variable, factor) pair has the factor's table as weights, with the variable's own values fastest, padded to a
multiple of
four, and scaled so that the largest weight of each row is one: a full conditional is then a product of rows, without
exp. Where that product could leave the range of doubles (`deep` sites), logarithms are added instead.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

UNIT = 2.0**-53


class Tables(NamedTuple):
    """A compiled model. Pair e of variable i multiplies by weights[base[e] + sum of stride · value over the others]."""

    pair_start: np.ndarray  # int64[n + 1]
    base: np.ndarray  # int32[E]
    deep: np.ndarray  # bool[n]: the product may leave the range of doubles
    other_start: np.ndarray  # int64[E + 1]
    other: np.ndarray  # int32: variables
    stride: np.ndarray  # int32
    weights: np.ndarray  # float64
    logs: np.ndarray  # float64: the logarithms of the weights, empty if no site is deep
    card: np.ndarray  # int64[n]
    pad: np.ndarray  # int64[n]


class Scratch(NamedTuple):
    """One block's working rows."""

    product: np.ndarray  # float64[width, largest pad]: the full conditional, not normalised
    place: np.ndarray  # int32[width]: where in the weights
    uniform: np.ndarray  # float64[width]
    value: np.ndarray  # int32[width]: the values drawn
    scale: np.ndarray  # float64[width]: one over the product's sum


class Cells(NamedTuple):
    """Where statistics are folded: cell `first[row] + v` counts value v of the variables of an orbit row."""

    first: np.ndarray  # int64[n]: the cell of the variable's value 0, -1 for observed variables
    quad: np.ndarray  # int64[n]: where its conditionals begin; four values are kept together
    site: np.ndarray  # int32: the free variables


class Sums(NamedTuple):
    """Folded sums of one block, float64[cells, width]; `drawn` and `conditional` are taken at the updates."""

    final: np.ndarray  # values at the sweep's end
    drawn: np.ndarray  # values drawn (only in the random scan: otherwise they are the final ones)
    conditional: np.ndarray  # float64[quads, width, 4]
    visits: np.ndarray  # int64[cells]


@njit(nogil=True, cache=True, inline="always")
def next_uniforms(streams, out):
    """xoshiro256++ in every lane (period 2^256 - 1); 53 bits each."""
    for lane in range(out.shape[0]):
        s0, s1, s2, s3 = streams[0, lane], streams[1, lane], streams[2, lane], streams[3, lane]
        total = s0 + s3
        out[lane] = ((((total << np.uint64(23)) | (total >> np.uint64(41))) + s0) >> np.uint64(11)) * UNIT
        shifted = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        streams[0, lane] = s0
        streams[1, lane] = s1
        streams[2, lane] = s2 ^ shifted
        streams[3, lane] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))


# The helpers take plain arrays (handing them the tuples would count references at every site) and do all lanes in one
# call. Rows are read in full before they are written: otherwise four values do not become one vector.


@njit(nogil=True, cache=True, inline="always")
def find_rows(state, lo, hi, base, other, stride, place):
    """Where in the weights each lane's row is, given the values of a factor's other variables."""
    for lane in range(place.shape[0]):
        place[lane] = base
    for k in range(lo, hi):
        j, jump = other[k], stride[k]
        for lane in range(place.shape[0]):
            place[lane] += jump * np.int32(state[j, lane])


@njit(nogil=True, cache=True, inline="always")
def multiply_rows(product, weights, place, pad):
    """Multiply each lane's product by its row of weights, four values at a time."""
    for v in range(0, pad, 4):
        for lane in range(place.shape[0]):
            at = place[lane] + v
            w0, w1, w2, w3 = weights[at], weights[at + 1], weights[at + 2], weights[at + 3]
            p0, p1, p2, p3 = product[lane, v], product[lane, v + 1], product[lane, v + 2], product[lane, v + 3]
            product[lane, v] = p0 * w0
            product[lane, v + 1] = p1 * w1
            product[lane, v + 2] = p2 * w2
            product[lane, v + 3] = p3 * w3


@njit(nogil=True, cache=True)
def add_rows(product, logs, place, pad):
    """The same for logarithms."""
    for lane in range(place.shape[0]):
        for v in range(pad):
            product[lane, v] += logs[place[lane] + v]


@njit(nogil=True, cache=True)
def exponentiate(product, pad):
    """Turn logarithms into weights, the largest one (all zero where nothing is possible, for `choose` to report)."""
    for lane in range(product.shape[0]):
        largest = -math.inf
        for v in range(pad):
            largest = max(largest, product[lane, v])
        for v in range(pad):
            product[lane, v] = math.exp(product[lane, v] - largest) if largest > -math.inf else 0.0


@njit(nogil=True, cache=True, inline="always")
def choose(product, pad, uniform, value, scale):
    """Draw a value in each lane by its weight; true if in some lane every value is impossible."""
    stuck = False
    for lane in range(uniform.shape[0]):
        r0 = product[lane, 0]
        r1 = r0 + product[lane, 1]
        r2 = r1 + product[lane, 2]
        mass = r2 + product[lane, 3]
        for v in range(4, pad):
            mass += product[lane, v]
        target = uniform[lane] * mass
        chosen = np.int32(target >= r0) + np.int32(target >= r1) + np.int32(target >= r2)
        reached = r2
        for v in range(3, pad - 1):
            reached += product[lane, v]
            chosen += np.int32(target >= reached)
        while chosen >= 0 and product[lane, chosen] <= 0.0:  # rounding, or nothing is possible
            chosen -= 1
        stuck |= chosen < 0
        value[lane] = chosen
        scale[lane] = 1.0 / mass if mass > 0.0 else 0.0
    return stuck


@njit(nogil=True, cache=True, inline="always")
def fold_update(quad, pad, product, scale, conditional):
    """Add the full conditional (G), four values at a time, as `product` holds them."""
    for v in range(0, pad, 4):
        for lane in range(scale.shape[0]):
            s = scale[lane]
            p0, p1, p2, p3 = product[lane, v], product[lane, v + 1], product[lane, v + 2], product[lane, v + 3]
            conditional[quad, lane, 0] += p0 * s
            conditional[quad, lane, 1] += p1 * s
            conditional[quad, lane, 2] += p2 * s
            conditional[quad, lane, 3] += p3 * s
        quad += 1


@njit(nogil=True, cache=True)
def sweep(model, state, order, streams, scratch, cells, sums, folded, visits_too):
    """Update the sites of `order`; returns -1, or the first site all of whose values are impossible."""
    pair_start, base, deep, other_start, other, stride, weights, logs, cards, pads = model
    product, place, uniform, value, scale = scratch
    _, drawn, conditional, visits = sums
    first, quad = cells.first, cells.quad
    for q in range(order.shape[0]):
        i = order[q]
        product[:] = 0.0 if deep[i] else 1.0
        for e in range(pair_start[i], pair_start[i + 1]):
            find_rows(state, other_start[e], other_start[e + 1], base[e], other, stride, place)
            if deep[i]:
                add_rows(product, logs, place, pads[i])
            else:
                multiply_rows(product, weights, place, pads[i])
        if deep[i]:
            exponentiate(product, pads[i])
        next_uniforms(streams, uniform)
        if choose(product, pads[i], uniform, value, scale):
            return i
        for lane in range(value.shape[0]):
            state[i, lane] = value[lane]
        if folded == 2:
            fold_update(quad[i], pads[i], product, scale, conditional)
            for v in range(cards[i]):
                visits[first[i] + v] += 1
            if visits_too:
                for lane in range(value.shape[0]):
                    drawn[first[i] + value[lane], lane] += 1.0
    return -1


@njit(nogil=True, cache=True)
def fold(state, cells, sums):
    """Count the values at a sweep's end."""
    final = sums.final
    first, _, site = cells
    for m in range(site.shape[0]):
        i = site[m]
        for lane in range(state.shape[1]):
            final[first[i] + state[i, lane], lane] += 1.0


@njit(nogil=True, cache=True)
def run_sweeps(model, state, orders, streams, scratch, cells, sums, folded, visits_too):
    """One sweep per row of `orders`; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G. Returns as `sweep` does."""
    for s in range(orders.shape[0]):
        stuck = sweep(model, state, orders[s], streams, scratch, cells, sums, folded, visits_too)
        if stuck >= 0:
            return stuck
        if folded:
            fold(state, cells, sums)
    return -1
