"""Parallel tempering: energies of the states on all levels, and the exchange of states between neighbouring levels."""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import uniform

FROM_TOP, RETURNING = 1, 2  # where a replica comes from: the top, the bottom after the top


@njit(nogil=True, cache=True)
def happens(probability, stream):
    """The one line that draws."""
    return uniform(stream) < probability


@njit(nogil=True, cache=True)
def weigh(parts, state, mask, lanes, soft, broken):
    """Of each lane: the sum of the possible log entries, and the number of impossible ones."""
    for lane in range(lanes):
        soft[lane] = 0.0
        broken[lane] = 0
    for k in range(parts.first.shape[0]):
        for lane in range(lanes):
            entry = parts.first[k]
            for p in range(parts.start[k], parts.start[k + 1]):
                entry += parts.stride[p] * (state[parts.scope[p], lane] & mask)
            soft[lane] += parts.log[entry]
            broken[lane] += not parts.possible[entry]


@njit(nogil=True, cache=True)
def level_density(level, penalty, soft, broken):
    """The log density on a level; nothing broken costs nothing, also where the penalty is infinite."""
    return level * soft - (penalty * broken if broken > 0 else 0.0)


@njit(nogil=True, cache=True)
def chances(levels, penalties, k, soft, broken, lane):
    """The probability to exchange the states on levels k and k + 1 (Metropolis)."""
    stay = level_density(levels[k], penalties[k], soft[k, lane], broken[k, lane])
    stay += level_density(levels[k + 1], penalties[k + 1], soft[k + 1, lane], broken[k + 1, lane])
    swap = level_density(levels[k], penalties[k], soft[k + 1, lane], broken[k + 1, lane])
    swap += level_density(levels[k + 1], penalties[k + 1], soft[k, lane], broken[k, lane])
    return 1.0 if swap >= stay else np.exp(swap - stay)


@njit(nogil=True, cache=True)
def exchange(a, a_mask, b, b_mask, lane):
    for i in range(min(a.shape[0], b.shape[0])):
        held = a[i, lane] & a_mask
        a[i, lane] = b[i, lane] & b_mask
        b[i, lane] = held


@njit(nogil=True, cache=True)
def swap_levels(levels, penalties, k, a, a_mask, b, b_mask, soft, broken, replica, rejected, lanes, stream):
    """Exchange levels k (states a) and k + 1 (states b) lane by lane; adds up rejections and attempts."""
    for lane in range(lanes):
        chance = chances(levels, penalties, k, soft, broken, lane)
        rejected[0, k] += 1.0 - chance
        rejected[1, k] += 1.0
        if happens(chance, stream):
            exchange(a, a_mask, b, b_mask, lane)
            soft[k, lane], soft[k + 1, lane] = soft[k + 1, lane], soft[k, lane]
            broken[k, lane], broken[k + 1, lane] = broken[k + 1, lane], broken[k, lane]
            replica[k, lane], replica[k + 1, lane] = replica[k + 1, lane], replica[k, lane]


@njit(nogil=True, cache=True)
def count_trips(replica, heading, trips):
    """Round trips that end: a replica is back at the top after it was at the bottom after it was at the top."""
    top = replica.shape[0] - 1
    for lane in range(replica.shape[1]):
        high, low = replica[top, lane], replica[0, lane]
        if heading[high, lane] == RETURNING:
            trips[0] += 1
        heading[high, lane] = FROM_TOP
        if heading[low, lane] == FROM_TOP:
            heading[low, lane] = RETURNING
