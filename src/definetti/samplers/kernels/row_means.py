"""From slots to statistics: means over the slots of an orbit of literals."""

from __future__ import annotations

from definetti.samplers.kernels.compiling import njit


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
