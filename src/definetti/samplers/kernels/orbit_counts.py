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
    holds = np.empty(hits.shape[1], np.uint8)
    for q in range(event_start.shape[0] - 1):
        for m in range(event_start[q], event_start[q + 1]):
            holds[:] = 1
            for k in range(start[m], start[m + 1]):
                i, wanted = variable[k], value[k]
                for lane in range(holds.shape[0]):
                    holds[lane] &= np.uint8((state[i, lane] & mask) == wanted)
            for lane in range(holds.shape[0]):
                hits[q, lane] += holds[lane]


@njit(nogil=True, cache=True, error_model="numpy")  # 0 / 0 is not a number: an orbit that was not visited
def mean_over_slots(sums, slots, start, divisor, out, first):
    """out[k, first + lane]: the sum of sums[slot, lane] over slots[start[k]:start[k + 1]], divided by divisor[k]."""
    for k in range(divisor.shape[0]):
        row, over, slot = out[k], divisor[k], np.uint64(slots[start[k]])  # no orbit is empty
        if start[k + 1] - start[k] == 1:
            for lane in range(sums.shape[1]):
                row[first + lane] = sums[slot, lane] / over
            continue
        for lane in range(sums.shape[1]):
            row[first + lane] = sums[slot, lane]
        for at in range(start[k] + 1, start[k + 1]):
            slot = np.uint64(slots[at])
            for lane in range(sums.shape[1]):
                row[first + lane] += sums[slot, lane]
        for lane in range(sums.shape[1]):
            row[first + lane] /= over
