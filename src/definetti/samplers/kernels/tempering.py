"""Parallel tempering: energies of the states on all levels, and the exchange of states between neighbouring levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import uniform


class Parts(NamedTuple):
    """All factors; entry = first[k] + the sum of stride · value over the scope."""

    start: np.ndarray  # int64[F + 1]
    scope: np.ndarray  # int32
    stride: np.ndarray  # int64
    first: np.ndarray  # int64[F]
    log: np.ndarray  # float64: by entry, 0 where impossible
    possible: np.ndarray  # bool: by entry


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
def swap_levels(levels, penalties, k, a, a_mask, b, b_mask, soft, broken, lanes, stream):
    """Exchange levels k (states a) and k + 1 (states b) lane by lane; how many exchanges there were."""
    count = 0
    for lane in range(lanes):
        if happens(chances(levels, penalties, k, soft, broken, lane), stream):
            count += 1
            exchange(a, a_mask, b, b_mask, lane)
            soft[k, lane], soft[k + 1, lane] = soft[k + 1, lane], soft[k, lane]
            broken[k, lane], broken[k + 1, lane] = broken[k + 1, lane], broken[k, lane]
    return count
