"""Gibbs sweeps for binary variables with few possible local fields: chains are lanes, one byte each.

The state is `state[variable, lane]`: bit 0 is the value, the bits above it the *code* of the local field met at the
last update (the code indexes the variable's table of thresholds). Every operation is one small loop over the lanes, which is
what LLVM turns into vector instructions; fused loops of several arrays are not vectorised.

A draw compares 8 random bits with the top 8 bits of a 48-bit threshold; on a tie, 40 further bits decide, so that
P(value 1) = threshold / 2^48 exactly. Thresholds of p and 1 - p add up to 2^48: value flips are respected to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

CODES = 16  # at most so many local fields per variable
ZERO, ONE = np.uint8(0), np.uint8(1)
BYTE_LOW, BYTE_HIGH = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


class Fields(NamedTuple):
    """A compiled binary model. Neighbour lists are padded to multiples of four with the all-zero row `n`."""

    neighbour_start: np.ndarray  # int64[n + 1]
    neighbour: np.ndarray  # int32
    coefficient: np.ndarray  # uint8: the code is the sum of coefficient · value over the neighbours
    unit: np.ndarray  # bool[n]: all coefficients are one
    table: np.ndarray  # int32[n]: which table of thresholds
    codes: np.ndarray  # int64[T]: how many codes a table has
    step: np.ndarray  # uint8[T, CODES + 1]: top 8 bits of the thresholds, as differences modulo 256
    rest: np.ndarray  # uint64[T, CODES]: the other 40 bits, 2^40 where the probability is one
    threshold: np.ndarray  # uint64[T, CODES]: 48 bits


class Streams(NamedTuple):
    """Random streams of one block of lanes: xoshiro128++ in each 32-bit lane, xoshiro256++ for ties and narrow blocks."""

    lanes: np.ndarray  # uint32[4, width / 4]
    ties: np.ndarray  # uint64[4]


class Scratch(NamedTuple):
    """One block's working rows; the views show the same bytes as words."""

    code: np.ndarray  # uint8[width]
    top: np.ndarray  # uint8[width]: top 8 bits of the chosen threshold
    top_words: np.ndarray  # uint64[width / 8], a view of top
    draw: np.ndarray  # uint8[width]: 8 random bits
    draw_words: np.ndarray  # uint64[width / 8], a view of draw
    draw_quads: np.ndarray  # uint32[width / 4], a view of draw


class Cells(NamedTuple):
    """Where statistics are folded: a cell is a set of variables of one orbit row that share a table of thresholds."""

    start: np.ndarray  # int64[C + 1]
    member: np.ndarray  # int32: variables, by cell
    of: np.ndarray  # int32[n]: the variable's cell, -1 for observed ones
    table: np.ndarray  # int32[C]


class Counts(NamedTuple):
    """Folded counts of one block: bytes that are flushed into integers before they can overflow."""

    ones: np.ndarray  # uint8[C, width]: values 1
    pending: np.ndarray  # int64[C]: how many visits the bytes hold
    met: np.ndarray  # uint8[codes - 1, C, width]: how often each code was met, code 0 left out
    total_ones: np.ndarray  # int64[C, width]
    total_met: np.ndarray  # int64[codes - 1, C, width]
    visits: np.ndarray  # int64[C]


# --- random words ------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def next_word(stream):
    """xoshiro256++ (Blackman and Vigna), period 2^256 - 1."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    stream[0], stream[1], stream[2] = s0, s1, s2
    stream[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word


@njit(nogil=True, cache=True)
def next_bytes(streams, words):
    """xoshiro128++ in every 32-bit lane, period 2^128 - 1; each word holds the bytes of four chains."""
    for i in range(words.shape[0]):
        s0, s1, s2, s3 = streams[0, i], streams[1, i], streams[2, i], streams[3, i]
        total = np.uint32(s0 + s3)
        words[i] = np.uint32(np.uint32((total << np.uint32(7)) | (total >> np.uint32(25))) + s0)
        shifted = np.uint32(s1 << np.uint32(9))
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= shifted
        streams[0, i] = s0
        streams[1, i] = s1
        streams[2, i] = s2
        streams[3, i] = np.uint32((s3 << np.uint32(11)) | (s3 >> np.uint32(21)))


# --- one site ------------------------------------------------------------------------------------------------------
# The helpers take plain arrays: handing them the tuples would count references at every site.


@njit(nogil=True, cache=True)
def local_codes(state, neighbour, coefficient, lo, hi, unit, code):
    """The code of a variable's local field in every lane: the deterministic part of an update."""
    a, b, c, d = neighbour[lo], neighbour[lo + 1], neighbour[lo + 2], neighbour[lo + 3]
    if unit:
        for lane in range(code.shape[0]):
            code[lane] = (
                (state[a, lane] & ONE) + (state[b, lane] & ONE) + (state[c, lane] & ONE) + (state[d, lane] & ONE)
            )
        lo += 4
    else:
        for lane in range(code.shape[0]):
            code[lane] = ZERO
    for e in range(lo, hi):
        j, weight = neighbour[e], coefficient[e]
        for lane in range(code.shape[0]):
            code[lane] += (ZERO - (state[j, lane] & ONE)) & weight


@njit(nogil=True, cache=True)
def threshold_tops(step, codes, t, code, top):
    """The top 8 bits of the threshold in every lane: a sum of steps, four codes a pass."""
    first = step[t, 0]
    for k in range(1, max(codes, 2), 4):  # a site without neighbours has one code, and needs its pass too
        s1, s2, s3, s4 = step[t, k], step[t, k + 1], step[t, k + 2], step[t, k + 3]
        k1, k2, k3, k4 = np.uint8(k), np.uint8(k + 1), np.uint8(k + 2), np.uint8(k + 3)
        for lane in range(top.shape[0]):
            c = code[lane]
            low = (s1 if c >= k1 else ZERO) + (s2 if c >= k2 else ZERO)
            high = (s3 if c >= k3 else ZERO) + (s4 if c >= k4 else ZERO)
            top[lane] = (first if k == 1 else top[lane]) + low + high


@njit(nogil=True, cache=True)
def settle_ties(state, i, code, top_words, draw_words, rest, t, ties):
    """Lanes whose 8 random bits equal the threshold's: 40 further bits decide."""
    for w in range(top_words.shape[0]):
        gap = top_words[w] ^ draw_words[w]
        if (gap - BYTE_LOW) & ~gap & BYTE_HIGH:  # some byte is zero
            for lane in range(8 * w, 8 * w + 8):
                if gap & np.uint64(255) == 0:
                    further = next_word(ties) >> np.uint64(24)
                    value = ONE if further < rest[t, code[lane]] else ZERO
                    state[i, lane] = (code[lane] << ONE) | value
                gap >>= np.uint64(8)


@njit(nogil=True, cache=True)
def draw_wide(state, i, code, top, draw):
    """Draw variable i in every lane from its full conditional; true if some lane ties."""
    for lane in range(code.shape[0]):
        state[i, lane] = (code[lane] + code[lane]) | (ONE if draw[lane] < top[lane] else ZERO)
    smallest = np.uint8(255)
    for lane in range(code.shape[0]):
        smallest = min(smallest, np.uint8(draw[lane] ^ top[lane]))
    return smallest == ZERO


@njit(nogil=True, cache=True)
def draw_narrow(threshold, stream):
    """Draw one variable in one lane: 48 random bits against its threshold."""
    return ONE if next_word(stream) >> np.uint64(16) < threshold else ZERO


# --- sweeps --------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def sweep_wide(model, state, order, streams, scratch):
    """Update the sites of `order` one after the other, all lanes at once."""
    start, neighbour, coefficient, unit, table, codes, step, rest, _ = model
    lanes, ties = streams
    code, top, top_words, draw, draw_words, draw_quads = scratch
    for q in range(order.shape[0]):
        i = order[q]
        t = table[i]
        local_codes(state, neighbour, coefficient, start[i], start[i + 1], unit[i], code)
        threshold_tops(step, codes[t], t, code, top)
        next_bytes(lanes, draw_quads)
        if draw_wide(state, i, code, top, draw):
            settle_ties(state, i, code, top_words, draw_words, rest, t, ties)


@njit(nogil=True, cache=True)
def sweep_narrow(model, state, order, ties):
    """The same for a few lanes, where vectors would be mostly empty."""
    start, neighbour, coefficient, _, table, _, _, _, threshold = model
    for q in range(order.shape[0]):
        i = order[q]
        for lane in range(state.shape[1]):
            code = 0
            for e in range(start[i], start[i + 1]):
                code += (state[neighbour[e], lane] & ONE) * coefficient[e]
            state[i, lane] = np.uint8(code << 1) | draw_narrow(threshold[table[i], code], ties)


# --- folding ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def move(row, total, c):
    """Add a row of bytes to a row of integers and clear it."""
    for lane in range(row.shape[1]):
        total[c, lane] += row[c, lane]
    for lane in range(row.shape[1]):
        row[c, lane] = ZERO


@njit(nogil=True, cache=True)
def fold_site(state, i, c, codes, ones, met):
    """Count variable i's value and the code it was drawn with (`codes` = 0: only the value)."""
    for lane in range(state.shape[1]):
        ones[c, lane] += state[i, lane] & ONE
    for k in range(1, codes):
        code = np.uint8(k)
        for lane in range(state.shape[1]):
            met[k - 1, c, lane] += ONE if (state[i, lane] >> ONE) == code else ZERO


@njit(nogil=True, cache=True)
def flush(counts, c):
    """Move cell c's bytes into its integers before they overflow."""
    ones, pending, met, total_ones, total_met, _ = counts
    if pending[c]:
        pending[c] = 0
        move(ones, total_ones, c)
        for k in range(met.shape[0]):
            move(met[k], total_met[k], c)


@njit(nogil=True, cache=True)
def fold_visit(codes, state, i, c, counts, conditionals):
    """Fold one site into cell c, flushing the bytes in time."""
    ones, pending, met, _, _, visits = counts
    if pending[c] == 255:
        flush(counts, c)
    pending[c] += 1
    visits[c] += 1
    fold_site(state, i, c, codes if conditionals else 0, ones, met)


@njit(nogil=True, cache=True)
def fold(codes, state, cells, counts, conditionals):
    """Fold the state at a sweep's end: F from the values, G from the codes met at the last update of each site."""
    start, member, _, table = cells
    ones, pending, met, _, _, visits = counts
    for c in range(table.shape[0]):
        visits[c] += start[c + 1] - start[c]
        for m in range(start[c], start[c + 1]):
            if pending[c] == 255:
                flush(counts, c)
            pending[c] += 1
            fold_site(state, member[m], c, codes[table[c]] if conditionals else 0, ones, met)


@njit(nogil=True, cache=True)
def sweep(model, state, order, streams, scratch):
    if state.shape[1] > 16:
        sweep_wide(model, state, order, streams, scratch)
    else:
        sweep_narrow(model, state, order, streams.ties)


@njit(nogil=True, cache=True)
def run_sweeps(model, state, orders, streams, scratch, cells, final, visited, folded, visits_too):
    """One sweep per row of `orders`; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G.

    `final` counts states at sweeps' ends. In the random scan (`visits_too`) a site may be met never or twice, so values
    and codes are counted at the visits themselves, in `visited`.
    """
    for s in range(orders.shape[0]):
        if visits_too and folded == 2:
            for q in range(orders.shape[1]):
                i = orders[s, q]
                sweep(model, state, orders[s, q : q + 1], streams, scratch)
                fold_visit(model.codes[model.table[i]], state, i, cells.of[i], visited, True)
        else:
            sweep(model, state, orders[s], streams, scratch)
        if folded:
            fold(model.codes, state, cells, final, folded == 2 and not visits_too)


@njit(nogil=True, cache=True)
def flush_all(counts):
    for c in range(counts.pending.shape[0]):
        flush(counts, c)
