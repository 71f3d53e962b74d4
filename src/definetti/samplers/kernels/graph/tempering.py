"""Parallel tempering: energies of the states on all levels, and the exchange of states between neighbouring levels.

Where lanes are bits of words (`fields.py`), values of factors that are alike are counted in bit planes, 64 lanes at
once, and states are exchanged under a mask: both cost little beside a sweep.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import uniform

FROM_TOP, RETURNING = 1, 2  # where a replica comes from: the top, the bottom after the top
ENTRIES = 3  # of a pair that are counted: 11, 10, 01; the rest is 00
ONE, LANES = np.uint64(1), np.uint64(63)


class WordParts(NamedTuple):
    """Factors over one and two binary variables, by the kind of their tables."""

    left: np.ndarray  # int64[factors]: a row of the state
    right: np.ndarray  # the same; a row of zeros for factors over one
    kind: np.ndarray  # int64[factors]
    gain: np.ndarray  # float64[kinds, ENTRIES]: log entry less that of 00
    ground: float  # the sum of the entries 00


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
def count_words(parts, state, planes):
    """How many factors of each kind have each entry, in bit planes[plane, kind · ENTRIES + entry, word]."""
    planes[:] = 0
    for m in range(parts.left.shape[0]):
        first = ENTRIES * parts.kind[m]
        for w in range(state.shape[1]):
            a, b = state[parts.left[m], w], state[parts.right[m], w]
            for entry in range(ENTRIES):
                carry = a & b if entry == 0 else (a & ~b if entry == 1 else ~a & b)
                plane = 0
                while carry:
                    before = planes[plane, first + entry, w]
                    planes[plane, first + entry, w] = before ^ carry
                    carry &= before
                    plane += 1


@njit(nogil=True, cache=True)
def weigh_words(parts, state, planes, lanes, soft):
    """As `weigh`, where lanes are bits and nothing is impossible."""
    count_words(parts, state, planes)
    for lane in range(lanes):
        soft[lane] = parts.ground
    for counter in range(planes.shape[1]):
        gain = parts.gain[counter // ENTRIES, counter % ENTRIES]
        for plane in range(planes.shape[0]):
            worth = gain * (1 << plane)
            for lane in range(lanes):
                if planes[plane, counter, lane >> 6] >> (np.uint64(lane) & LANES) & ONE:
                    soft[lane] += worth


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
def agreed(levels, penalties, k, soft, broken, replica, rejected, lane, stream):
    """Whether levels k and k + 1 exchange the states of a lane; all but the states themselves is exchanged."""
    chance = chances(levels, penalties, k, soft, broken, lane)
    rejected[0, k] += 1.0 - chance
    rejected[1, k] += 1.0
    if not happens(chance, stream):
        return False
    soft[k, lane], soft[k + 1, lane] = soft[k + 1, lane], soft[k, lane]
    broken[k, lane], broken[k + 1, lane] = broken[k + 1, lane], broken[k, lane]
    replica[k, lane], replica[k + 1, lane] = replica[k + 1, lane], replica[k, lane]
    return True


@njit(nogil=True, cache=True)
def swap_levels(levels, penalties, k, a, a_mask, b, b_mask, soft, broken, replica, rejected, lanes, stream):
    """Exchange levels k (states a) and k + 1 (states b) lane by lane; adds up rejections and attempts."""
    for lane in range(lanes):
        if agreed(levels, penalties, k, soft, broken, replica, rejected, lane, stream):
            exchange(a, a_mask, b, b_mask, lane)


@njit(nogil=True, cache=True)
def swap_words(levels, penalties, k, a, b, soft, broken, replica, rejected, lanes, stream, chosen):
    """The same where lanes are bits; `chosen`: uint64[words], the lanes that exchange."""
    chosen[:] = 0
    for lane in range(lanes):
        if agreed(levels, penalties, k, soft, broken, replica, rejected, lane, stream):
            chosen[lane >> 6] |= ONE << (np.uint64(lane) & LANES)
    for i in range(a.shape[0]):
        for w in range(a.shape[1]):
            differ = (a[i, w] ^ b[i, w]) & chosen[w]
            a[i, w] ^= differ
            b[i, w] ^= differ


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
