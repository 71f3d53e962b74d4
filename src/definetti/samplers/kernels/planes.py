"""Counts kept as bit planes, 64 lanes to a word: plane p holds the bits of weight 2^p. Counting up and reading out.

Planes are `planes[plane, counter, word]`; those that no count reaches stay untouched and take no memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def count_up(state, variable, counter, planes):
    """One more, for every m, in the lanes of counter[m] in which variable[m] is 1."""
    for m in range(variable.shape[0]):
        for w in range(state.shape[1]):
            carry, plane = state[variable[m], w], 0
            while carry:
                before = planes[plane, counter[m], w]
                planes[plane, counter[m], w] = before ^ carry
                carry &= before
                plane += 1


@njit(nogil=True, cache=True)
def read(planes, most, c, first, out):
    """Add the counts of counter c, which are at most `most`, to out[lane]; its words begin at `first`."""
    for plane in range(planes.shape[0]):
        if most >> plane == 0:
            break
        for w in range(out.shape[0] // 64):
            word = planes[plane, c, first + w]
            for bit in range(64):
                out[64 * w + bit] += np.int64((word >> np.uint64(bit)) & ONE) << plane


@njit(nogil=True, cache=True)
def read_all(planes, most, out):
    """The counts of every counter: out[counter, lane]; the planes are cleared."""
    for c in range(out.shape[0]):
        read(planes, most, c, 0, out[c])
    planes[:] = 0


@njit(nogil=True, cache=True)
def collect(planes, visits, slot, chance, ones, given, out):
    """Add what the cells counted to sums over slots of value 1; clear the counters.

    A counter holds rows of words: values 1, then meetings with codes 1, 2, …, of which `given` sums P(value 1). Code 0
    was met as often as no other code was, so chance[c, k] is P(value 1) of code k less that of code 0 (k = 0: itself).
    Without conditionals `given` is empty.
    """
    words, lanes = out.shape[0] // 64, ones.shape[1]
    rows = chance.shape[1] if given.shape[0] else 1
    for c in range(visits.shape[0]):
        for row in range(rows):
            out[:] = 0
            read(planes, visits[c], c, words * row, out)
            for lane in range(lanes):
                if row > 0:
                    given[slot[c], lane] += chance[c, row] * out[lane]
                else:
                    ones[slot[c], lane] += out[lane]
        if given.shape[0]:
            for lane in range(lanes):
                given[slot[c], lane] += chance[c, 0] * visits[c]
        clear(planes, visits[c], c)


@njit(nogil=True, cache=True)
def clear(planes, most, c):
    for plane in range(planes.shape[0]):
        if most >> plane == 0:
            break
        planes[plane, c] = 0
