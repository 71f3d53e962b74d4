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
from definetti.samplers.kernels.graph.tables import PAIRS, add_rows, choose, exponentiate, find_rows, next_uniforms


class Scratch(NamedTuple):
    """Working rows, as in `kernels.tables.Scratch`."""

    place: np.ndarray
    product: np.ndarray
    broken: np.ndarray  # as `product`; empty if nothing is impossible
    uniform: np.ndarray
    value: np.ndarray
    scale: np.ndarray


class Rows(NamedTuple):
    """A compiled model (`kernels.tables.Tables` says what `pair_start`, `near` and `further` are)."""

    card: np.ndarray  # int64[n]
    pair_start: np.ndarray  # int64[n + 1]
    near: np.ndarray  # int32[E, 8]
    further: np.ndarray  # int32[M, 4]
    soft: np.ndarray  # float64: log entries, 0 where impossible; the largest of a row is 0
    hard: np.ndarray  # float64: −1 where impossible (relative to the row's largest); empty if nothing is
    literal: np.ndarray  # int64[n + 1]: where a variable's values begin among all literals


@njit(nogil=True, cache=True, error_model="numpy")
def tempered(product, broken, card, level, penalty, tilt, first):
    """Log weights of a level from those of the model, in place."""
    for v in range(card):
        shift = (1.0 - level) * tilt[first + v] if level < 1.0 else 0.0
        for lane in range(product.shape[1]):
            product[v, lane] = level * product[v, lane] + shift
        if broken.shape[0]:
            for lane in range(product.shape[1]):
                if broken[v, lane] < 0.0:
                    product[v, lane] = -np.inf if penalty == np.inf else product[v, lane] + penalty * broken[v, lane]


@njit(nogil=True, cache=True, error_model="numpy")
def divergences(product, scale, card, tilt, first, diverged):
    """Σ g log(g / q) of one full conditional, of every lane; `tilt` is log q."""
    for v in range(card):
        for lane in range(product.shape[1]):
            g = product[v, lane] * scale[lane]
            if g > 0.0:
                diverged[lane] += g * (math.log(g) - tilt[first + v])


@njit(nogil=True, cache=True, error_model="numpy")
def level_sweep(rows, state, order, streams, scratch, level, penalty, tilt, orbit, values, conditional, diverged):
    """One update of each site of `order` in every lane. Adds up the values drawn and the conditionals by the orbits of
    literals, and the divergences of the conditionals from q. Returns -1, or a site all of whose values are
    impossible."""
    card, pair_start, near, further, soft, hard, literal = rows
    place, product, broken, uniform, value, scale = scratch
    lanes = value.shape[0]
    for s in range(order.shape[0]):
        i = order[s]
        count, first = card[i], literal[i]
        product[: -(-count // 4) * 4] = 0.0
        broken[:] = 0.0
        for lo in range(pair_start[i], pair_start[i + 1], PAIRS):
            hi = min(lo + PAIRS, pair_start[i + 1])
            find_rows(state, near, further, lo, hi, place)
            add_rows(product, count, soft, place, hi - lo)
            if hard.shape[0]:
                add_rows(broken, count, hard, place, hi - lo)
        tempered(product, broken, count, level, penalty, tilt, first)
        exponentiate(product, count)
        next_uniforms(streams, uniform)
        if choose(product, count, uniform, value, scale):
            return i
        for lane in range(lanes):
            state[i, lane] = value[lane]
        if diverged.shape[0]:
            divergences(product, scale, count, tilt, first, diverged)
        if conditional.shape[0]:
            for lane in range(lanes):
                values[orbit[first + value[lane]], lane] += 1.0
            for v in range(count):
                for lane in range(lanes):
                    conditional[orbit[first + v], lane] += product[v, lane] * scale[lane]
    return -1


@njit(nogil=True, cache=True, error_model="numpy")
def read_states(parts, state, count_of, tilt, literal, free, entry, soft, broken, log_q, counts):
    """Of each lane: the possible log entries' sum, the number of impossible ones, log q, and how often each counted
    table entry (`count_of[entry]` >= 0) occurs. `entry` is scratch, int64[lanes]."""
    lanes = state.shape[1]
    soft[:], broken[:], log_q[:] = 0.0, 0, 0.0
    counts[:] = 0.0
    for k in range(parts.first.shape[0]):
        entry[:] = parts.first[k]
        for p in range(parts.start[k], parts.start[k + 1]):
            stride, i = parts.stride[p], parts.scope[p]
            for lane in range(lanes):
                entry[lane] += stride * state[i, lane]
        for lane in range(lanes):
            soft[lane] += parts.log[entry[lane]]
            broken[lane] += not parts.possible[entry[lane]]
        if counts.shape[0]:
            for lane in range(lanes):
                counts[count_of[entry[lane]], lane] += 1.0
    if tilt.shape[0]:
        for s in range(free.shape[0]):
            i = free[s]
            for lane in range(lanes):
                log_q[lane] += tilt[literal[i] + state[i, lane]]
