"""Statistics of orbits: means over the slots of an orbit of literals, and orbit Hamming weights of joint events (how
many tuples of an orbit carry the wanted values: Lemma 1 of the paper)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit


class Tuples(NamedTuple):
    """The orbits of several joint events, one after the other; each event is a conjunction of literals."""

    event_start: np.ndarray  # int64[Q + 1]: event q owns the tuples event_start[q] : event_start[q + 1]
    start: np.ndarray  # int64[M + 1]: tuple m owns the literals start[m] : start[m + 1]
    variable: np.ndarray  # int32
    value: np.ndarray  # uint8


@njit(nogil=True, cache=True)
def count_tuples(tuples, state, mask, hits):
    """Add to hits[q, lane] the number of event q's tuples that hold in the lane."""
    event_start, start, variable, value = tuples
    for q in range(event_start.shape[0] - 1):
        for m in range(event_start[q], event_start[q + 1]):
            for lane in range(hits.shape[1]):
                holds = True
                for k in range(start[m], start[m + 1]):
                    holds &= (state[variable[k], lane] & mask) == value[k]
                hits[q, lane] += holds


@njit(nogil=True, cache=True, error_model="numpy")  # 0 / 0 is not a number: an orbit that was not visited
def mean_over_slots(sums, slots, start, divisor, out, first):
    """out[k, first + lane]: the sum of sums[slot, lane] over slots[start[k]:start[k + 1]], divided by divisor[k]."""
    for k in range(divisor.shape[0]):
        for lane in range(sums.shape[1]):
            out[k, first + lane] = 0.0
        for at in range(start[k], start[k + 1]):
            for lane in range(sums.shape[1]):
                out[k, first + lane] += sums[slots[at], lane]
        for lane in range(sums.shape[1]):
            out[k, first + lane] /= divisor[k]
