"""Counts kept as bit planes, 64 lanes to a word: plane p holds the bits of weight 2^p. Counting up and reading out.

Planes are `planes[plane, counter, word]`; those that no count reaches stay untouched and take no memory.
"""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit

BITS = 8  # of the numbers that planes are read into
BYTE = np.uint64(255)
SPREAD = np.array([sum((byte >> k & 1) << 8 * k for k in range(8)) for byte in range(256)], np.uint64)  # a byte a bit


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
def read(planes, low, high, c, first, out):
    """The planes from `low` up to `high` (at most BITS) of counter c, whose words begin at `first`: out[lane]."""
    eight = out.view(np.uint64)
    eight[:] = 0
    for plane in range(low, high):
        for w in range(out.shape[0] // 64):
            word = planes[plane, c, first + w]
            for k in range(8):
                eight[8 * w + k] |= SPREAD[(word >> np.uint64(8 * k)) & BYTE] << np.uint64(plane - low)


@njit(nogil=True, cache=True)
def read_all(planes, most, out):
    """The counts, which are at most `most`, of every counter: out[counter, lane]; the planes are cleared."""
    bits, part = length(most), np.zeros(out.shape[1], np.uint8)
    for c in range(out.shape[0]):
        out[c] = 0
        for low in range(0, bits, BITS):
            read(planes, low, min(bits, low + BITS), c, 0, part)
            for lane in range(out.shape[1]):
                out[c, lane] += np.int64(part[lane]) << low
    planes[:bits] = 0


@njit(nogil=True, cache=True)
def length(number):
    """How many binary digits a number has."""
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@njit(nogil=True, cache=True)
def collect(planes, visits, slot, chance, ones, given):
    """What the cells counted, as sums over slots and lanes; the counters are cleared. A slot's cells follow each other.

    A counter holds rows of words: values 1, then meetings with codes 1, 2, …, of which `given` sums P(value 1). Code 0
    was met as often as no other code was, so chance[c, k] is P(value 1) of code k less that of code 0 (k = 0: itself).
    slot[c] is that of value 1; value 0, in the slot before, has the rest of the visits. Without conditionals `given` is
    empty.
    """
    lanes, rows, seen = ones.shape[1], chance.shape[1] if given.shape[0] else 1, 0
    words = -(-lanes // 64)
    part = np.zeros(64 * words, np.uint8)
    for c in range(visits.shape[0]):
        if c == 0 or slot[c] != slot[c - 1]:
            clear(slot[c], ones, given)
            seen = 0
        seen += visits[c]
        bits = length(visits[c])
        for row in range(rows):
            for low in range(0, bits, BITS):
                read(planes, low, min(bits, low + BITS), c, words * row, part)
                add(part, chance[c, row] * 2.0**low if row else 2.0**low, (given if row else ones)[slot[c]])
        if given.shape[0]:
            given[slot[c]] += chance[c, 0] * visits[c]
        complete(slot[c], seen, ones, given)
        planes[:bits, c] = 0


@njit(nogil=True, cache=True)
def add(part, weight, sums):
    for lane in range(sums.shape[0]):
        sums[lane] += weight * part[lane]


@njit(nogil=True, cache=True)
def collect_narrow(counts, slot, chance, ones, given):
    """The same where counts[lane, c, 2k + v] says how often value v came with code k."""
    seen = 0
    for c in range(counts.shape[1]):
        if c == 0 or slot[c] != slot[c - 1]:
            clear(slot[c], ones, given)
            seen = 0
        visits = counts[0, c].sum()
        seen += visits
        for lane in range(counts.shape[0]):
            ones[slot[c], lane] += counts[lane, c, 1::2].sum()
            for k in range(1, chance.shape[1] if given.shape[0] else 1):
                given[slot[c], lane] += chance[c, k] * counts[lane, c, 2 * k : 2 * k + 2].sum()
        if given.shape[0]:
            given[slot[c]] += chance[c, 0] * visits
        complete(slot[c], seen, ones, given)
    counts[:] = 0


@njit(nogil=True, cache=True)
def clear(slot, ones, given):
    ones[slot] = 0.0
    if given.shape[0]:
        given[slot] = 0.0


@njit(nogil=True, cache=True)
def complete(slot, visits, ones, given):
    """Value 0 has what value 1 leaves of the visits."""
    ones[slot - 1] = visits - ones[slot]
    if given.shape[0]:
        given[slot - 1] = visits - given[slot]
