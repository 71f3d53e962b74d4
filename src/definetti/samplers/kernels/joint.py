"""Joint draws of blocks: every legal tuple of a block's variables is weighed given all other variables, and one is
drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

UNIT = 2.0**-53


class Joint(NamedTuple):
    """A compiled model. Block b has the variables start[b] : start[b + 1], its tuples begin at values[place[b]]."""

    start: np.ndarray  # int64[B + 1]
    variable: np.ndarray  # int32
    slot: np.ndarray  # int64 beside `variable`: the slot of value 0
    block_of: np.ndarray  # int64[n]: -1 for observed variables
    rows: np.ndarray  # int64[B]: number of tuples
    place: np.ndarray  # int64[B]: where the block's tuples begin in `values`
    values: np.ndarray  # uint8
    touch_start: np.ndarray  # int64[B + 1]
    touch: np.ndarray  # int64: the factors that a block's variables are in


class Factors(NamedTuple):
    """entry = first[k] + the sum of stride · value over the scope."""

    start: np.ndarray  # int64[F + 1]
    scope: np.ndarray  # int32
    stride: np.ndarray  # int64
    first: np.ndarray  # int64[F]
    log: np.ndarray  # float64: by entry, -inf where impossible


class Sums(NamedTuple):
    """Folded sums of one block of lanes, float64[slots, lanes]."""

    final: np.ndarray
    conditional: np.ndarray
    visits: np.ndarray  # int64[slots]


@njit(nogil=True, cache=True)
def uniform(streams, lane):
    """xoshiro256++ (period 2^256 - 1); 53 bits."""
    s0, s1, s2, s3 = streams[0, lane], streams[1, lane], streams[2, lane], streams[3, lane]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    streams[0, lane], streams[1, lane], streams[2, lane] = s0, s1, s2 ^ shifted
    streams[3, lane] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return (word >> np.uint64(11)) * UNIT


@njit(nogil=True, cache=True)
def pick(weight, count, total, streams, lane):
    """The one line that draws: a tuple by its weight."""
    target = uniform(streams, lane) * total
    for t in range(count):
        target -= weight[t]
        if target < 0.0 and weight[t] > 0.0:
            return t
    for t in range(count - 1, -1, -1):  # rounding
        if weight[t] > 0.0:
            return t
    return -1


@njit(nogil=True, cache=True)
def put(model, b, t, state, lane):
    """Give the block's variables the values of its t-th tuple."""
    begin = model.start[b]
    width = model.start[b + 1] - begin
    for j in range(width):
        state[model.variable[begin + j], lane] = model.values[model.place[b] + t * width + j]


@njit(nogil=True, cache=True)
def weigh(model, factors, b, state, lane, weight):
    """The weight of every tuple given the other variables, the largest 1; their sum (0: nothing is possible)."""
    top = -np.inf
    for t in range(model.rows[b]):
        put(model, b, t, state, lane)
        log = 0.0
        for m in range(model.touch_start[b], model.touch_start[b + 1]):
            k = model.touch[m]
            entry = factors.first[k]
            for p in range(factors.start[k], factors.start[k + 1]):
                entry += factors.stride[p] * state[factors.scope[p], lane]
            log += factors.log[entry]
        weight[t] = log
        top = max(top, log)
    total = 0.0
    for t in range(model.rows[b]):
        weight[t] = np.exp(weight[t] - top) if top > -np.inf else 0.0
        total += weight[t]
    return total


@njit(nogil=True, cache=True)
def draw_block(model, factors, b, state, lane, streams, weight, conditional, folded):
    """Draw a block in one lane; false if every tuple is impossible."""
    total = weigh(model, factors, b, state, lane, weight)
    if total <= 0.0:
        return False
    put(model, b, pick(weight, model.rows[b], total, streams, lane), state, lane)
    if folded == 2:
        begin = model.start[b]
        width = model.start[b + 1] - begin
        for t in range(model.rows[b]):
            for j in range(width):
                value = model.values[model.place[b] + t * width + j]
                conditional[model.slot[begin + j] + value, lane] += weight[t] / total
    return True


@njit(nogil=True, cache=True)
def run_sweeps(model, factors, state, orders, streams, weight, done, sums, cards, folded):
    """One sweep per row of `orders`: a block is drawn when its first variable comes. -1, or a block that is stuck."""
    final, conditional, visits = sums
    for s in range(orders.shape[0]):
        done[:] = False
        for q in range(orders.shape[1]):
            b = model.block_of[orders[s, q]]
            if done[b]:
                continue
            done[b] = True
            for lane in range(state.shape[1]):
                if not draw_block(model, factors, b, state, lane, streams, weight, conditional, folded):
                    return b
        if folded:
            for j in range(model.variable.shape[0]):
                for lane in range(state.shape[1]):
                    final[model.slot[j] + state[model.variable[j], lane], lane] += 1.0
                if folded == 2:
                    for v in range(cards[model.variable[j]]):
                        visits[model.slot[j] + v] += 1
    return -1
