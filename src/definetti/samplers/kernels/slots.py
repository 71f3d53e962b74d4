"""From slots to statistics: sums over the slots of an orbit of literals."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def add_slots(sums, statistic, first, out):
    """Add sums[slot, lane] to out[statistic[slot], first + lane]."""
    for slot in range(sums.shape[0]):
        into = out[statistic[slot], first : first + sums.shape[1]]
        for lane in range(sums.shape[1]):
            into[lane] += sums[slot, lane]
