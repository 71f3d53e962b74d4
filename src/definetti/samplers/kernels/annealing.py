"""Sweeps of a factor graph on the way to a product distribution, and what is read off the states beside them.

On level t the log density is t · (log density of the model) + (1 − t) · log q, q a product over the variables, and what
the model forbids costs a penalty; on level 1 it is impossible again. Rows of log tables are those of `tables.py`, in
two parts: the possible entries' logarithms, and −1 for each impossible entry.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import lane_uniform


class Rows(NamedTuple):
    """A compiled model (`kernels.tables.Tables` says what `pair_start`, `near` and `further` are)."""

    card: np.ndarray  # int64[n]
    pair_start: np.ndarray  # int64[n + 1]
    near: np.ndarray  # int32[E, 8]
    further: np.ndarray  # int32[M, 4]
    soft: np.ndarray  # float64: log entries, 0 where impossible; the largest of a row is 0
    hard: np.ndarray  # float64: −1 where impossible (relative to the row's largest); empty if nothing is
    literal: np.ndarray  # int64[n + 1]: where a variable's values begin among all literals


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def place_of(state, near, further, e, lane):
    """Where a lane's row of pair e begins."""
    place = np.int64(near[e, 0]) + near[e, 2] * np.int64(state[near[e, 1], lane])
    place += near[e, 4] * np.int64(state[near[e, 3], lane])
    for k in range(near[e, 5], near[e, 6]):
        place += further[k, 1] * np.int64(state[further[k, 0], lane])
        place += further[k, 3] * np.int64(state[further[k, 2], lane])
    return place


@njit(nogil=True, cache=True, error_model="numpy")
def local_fields(rows, state, i, lane, level, penalty, tilt, field):
    """The log weights of a variable's values on a level, given all others."""
    card, pair_start, near, further, soft, hard, literal = rows
    values = card[i]
    for v in range(values):
        field[v] = 0.0
        field[values + v] = 0.0
    for e in range(pair_start[i], pair_start[i + 1]):
        place = place_of(state, near, further, e, lane)
        for v in range(values):
            field[v] += soft[place + v]
        if hard.shape[0]:
            for v in range(values):
                field[values + v] += hard[place + v]
    for v in range(values):
        field[v] *= level
        if level < 1.0:
            field[v] += (1.0 - level) * tilt[literal[i] + v]
        if field[values + v] < 0.0:
            field[v] = -np.inf if penalty == np.inf else field[v] + penalty * field[values + v]


@njit(nogil=True, cache=True, error_model="numpy")
def chances(field, values):
    """Log weights as probabilities, in place; false if there is none above zero."""
    top = -np.inf
    for v in range(values):
        top = max(top, field[v])
    if top == -np.inf:
        return False
    total = 0.0
    for v in range(values):
        field[v] = math.exp(field[v] - top)
        total += field[v]
    for v in range(values):
        field[v] /= total
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def divergence(field, values, tilt, first):
    """Σ g log(g / q) of one full conditional; `tilt` is log q."""
    total = 0.0
    for v in range(values):
        if field[v] > 0.0:
            total += field[v] * (math.log(field[v]) - tilt[first + v])
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def choose(uniform, field, values):
    """The one place that draws: the first value whose cumulated chance exceeds the uniform."""
    total, last = 0.0, 0
    for v in range(values):
        if field[v] > 0.0:
            total += field[v]
            last = v
            if uniform < total:
                return v
    return last


@njit(nogil=True, cache=True, error_model="numpy")
def level_sweep(rows, state, order, streams, level, penalty, tilt, field, conditional, diverged):
    """One update of each site of `order` in every lane; adds up conditionals by literal and lane, and divergences from
    q by lane. Returns -1, or a site all of whose values are impossible."""
    for s in range(order.shape[0]):
        i = order[s]
        values, first = rows.card[i], rows.literal[i]
        for lane in range(state.shape[1]):
            local_fields(rows, state, i, lane, level, penalty, tilt, field)
            if not chances(field, values):
                return i
            if diverged.shape[0]:
                diverged[lane] += divergence(field, values, tilt, first)
            if conditional.shape[0]:
                for v in range(values):
                    conditional[first + v, lane] += field[v]
            state[i, lane] = choose(lane_uniform(streams, lane), field, values)
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def read_states(parts, state, count_of, tilt, literal, free, soft, broken, log_q, counts):
    """Of each lane: the possible log entries' sum, the number of impossible ones, log q, and how often each counted
    table entry (`count_of[entry]` >= 0) occurs."""
    for lane in range(state.shape[1]):
        total, illegal, product = 0.0, 0, 0.0
        for c in range(counts.shape[0]):
            counts[c, lane] = 0.0
        for k in range(parts.first.shape[0]):
            entry = parts.first[k]
            for p in range(parts.start[k], parts.start[k + 1]):
                entry += parts.stride[p] * state[parts.scope[p], lane]
            total += parts.log[entry]
            illegal += not parts.possible[entry]
            if count_of[entry] >= 0:
                counts[count_of[entry], lane] += 1.0
        for s in range(free.shape[0]):
            product += tilt[literal[free[s]] + state[free[s], lane]]
        soft[lane], broken[lane], log_q[lane] = total, illegal, product
