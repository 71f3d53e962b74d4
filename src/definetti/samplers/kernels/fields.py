"""Gibbs sweeps for binary variables with few possible local fields: a word holds one variable's values in 64 chains.

The state is `state[variable, word]`, chains are bits (*lanes*), and every operation is Boolean algebra on words. The
*code* of the local field (an index into the variable's table of thresholds) is one mask per code: the lanes that have
it. A draw compares 8 random bits of each lane with the top 8 bits of a 48-bit threshold, bit by bit; on a tie 40
further bits decide, so that P(value 1) = threshold / 2^48 exactly. Thresholds of p and 1 - p add up to 2^48: value
flips are respected to the last bit. Counts are kept as bit planes too (plane p holds the bits of weight 2^p).

Rows of scratch are WORDS apart, whatever the number of words in use: distances that are known when compiling are what
lets LLVM turn the loops over words into vector instructions. A few chains alone are rows of bytes, advanced one by one
(`narrow`). A site's helpers are inlined before LLVM sees them: a call would pass every array's shape and strides along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

CODES = 16  # at most so many local fields per variable
WORDS = 8  # at most so many words, of 64 lanes each, in a block
BITS = 8  # of a lane's first draw
LOW = 3  # planes of the small counters, which hold 7 visits
PLANES = 48  # of the large counters
NONE, ALL, ONE = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint8(1)


class Fields(NamedTuple):
    """A compiled binary model: the code is the sum of coefficient · value over a variable's neighbours.

    What an update needs to know of a site is one row of `near`, so that it is fetched at once: four neighbours with
    coefficient one (the all-zero row `n` where there are fewer), the table, where its further neighbours begin and end,
    and its cell (see `Cells`).
    """

    near: np.ndarray  # int32[n, 8]
    neighbour: np.ndarray  # int32: further neighbours
    coefficient: np.ndarray  # uint8
    table: np.ndarray  # int32[n]: which table of thresholds
    codes: np.ndarray  # int64[T]: how many codes a table has
    flip: (
        np.ndarray
    )  # uint64[T, CODES + 4, BITS]: ALL where a top bit of code k's threshold is not code 0's (k = 0: is 1)
    rest: np.ndarray  # uint64[T, CODES]: the other 40 bits, 2^40 where the probability is one
    threshold: np.ndarray  # uint64[T, CODES]: 48 bits


class Streams(NamedTuple):
    """Random streams of one block, all xoshiro256++: one for each word of lanes, one for ties and narrow blocks."""

    lanes: np.ndarray  # uint64[4 · WORDS]
    ties: np.ndarray  # uint64[4]


class Scratch(NamedTuple):
    """One block's working rows. The first four have rows of WORDS words, the others rows of as many as are in use."""

    code: np.ndarray  # uint64[(CODES + 4) · WORDS]: row k, the lanes whose code is k
    top: np.ndarray  # uint64[BITS · WORDS]: top bits of the thresholds, highest first
    draw: np.ndarray  # uint64[BITS · WORDS]: random bits
    tie: np.ndarray  # uint64[WORDS]: the lanes whose random bits equal the threshold's
    met: (
        np.ndarray
    )  # uint64[n, rows · words]: the last update of each site: its values, then the masks of codes 1, 2, …
    carry: np.ndarray  # uint64[rows · words]


class Cells(NamedTuple):
    """Where statistics are folded: a cell is a set of variables of one orbit row that share a table of thresholds."""

    site: np.ndarray  # int32: the free variables, cell by cell
    of: np.ndarray  # int32[n]: the variable's cell, -1 for observed ones
    table: np.ndarray  # int32[C]
    row: np.ndarray  # int64[C]: the orbit row
    slot: np.ndarray  # int64[C]: the slot of the row's value 0; value 1 comes next


class Counts(NamedTuple):
    """What one block counts in each cell, row by row as in `Scratch.met`: values 1, and meetings with codes 1, 2, …"""

    visits: np.ndarray  # int64[C]
    pending: np.ndarray  # int64[C]: visits that `low` holds
    low: np.ndarray  # uint64[LOW, C, rows · words]
    high: np.ndarray  # uint64[PLANES, C, rows · words]: planes that no count reaches take no memory
    single: (
        np.ndarray
    )  # int64[lanes, C, 2 · rows]: in a narrow block instead, how often value v came with code k, at 2k + v


# --- random words ------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, inline="always")
def xoshiro(s0, s1, s2, s3):
    """xoshiro256++ (Blackman and Vigna), period 2^256 - 1: a word, and the next state."""
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    return word, s0, s1, s2 ^ shifted, (s3 << np.uint64(45)) | (s3 >> np.uint64(19))


@njit(nogil=True, cache=True, inline="always")
def next_word(stream):
    word, stream[0], stream[1], stream[2], stream[3] = xoshiro(stream[0], stream[1], stream[2], stream[3])
    return word


@njit(nogil=True, cache=True)
def next_words(stream, draw, count):
    """`count` words at once: the stream stays in registers meanwhile."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for d in range(count):
        draw[d], s0, s1, s2, s3 = xoshiro(s0, s1, s2, s3)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(nogil=True, cache=True, inline="always")
def next_bytes(streams, draw, words):
    """BITS random words for every word of lanes, each lane's bits from the same place of its own word's stream."""
    for w in range(words):
        s0, s1, s2, s3 = streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w]
        for b in range(BITS):
            draw[WORDS * b + w], s0, s1, s2, s3 = xoshiro(s0, s1, s2, s3)
        streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w] = s0, s1, s2, s3


# --- one site ------------------------------------------------------------------------------------------------------
# The helpers take plain arrays: handing them the tuples would count references at every site.


@njit(nogil=True, cache=True, inline="always")
def count_four(state, a, b, c, d, code):
    """How many of four neighbours are 1, as masks 0 … 4: two pairs, each with one or both of its bits set."""
    for w in range(state.shape[1]):
        one, both = state[a, w] ^ state[b, w], state[a, w] & state[b, w]
        one_more, both_more = state[c, w] ^ state[d, w], state[c, w] & state[d, w]
        odd, pair = one ^ one_more, both ^ both_more
        code[w] = ~(one | both | one_more | both_more)
        code[WORDS + w] = odd & ~pair
        code[2 * WORDS + w] = ~odd & (pair | (one & one_more))
        code[3 * WORDS + w] = odd & pair
        code[4 * WORDS + w] = both & both_more


@njit(nogil=True, cache=True, inline="always")
def shift_codes(state, j, weight, codes, code):
    """Lanes in which neighbour j is 1 move up by its weight."""
    for k in range(codes - 1, -1, -1):
        row, below = WORDS * k, WORDS * max(k - weight, 0)
        keep = ALL if k >= weight else NONE
        for w in range(state.shape[1]):
            moves = state[j, w]
            code[row + w] = (code[row + w] & ~moves) | (code[below + w] & moves & keep)


@njit(nogil=True, cache=True, inline="always")
def local_codes(state, near, neighbour, coefficient, i, codes, code):
    """The masks of variable i's codes: the deterministic part of an update."""
    count_four(state, near[i, 0], near[i, 1], near[i, 2], near[i, 3], code)
    for at in range(WORDS * 5, WORDS * codes):
        code[at] = NONE
    for e in range(near[i, 5], near[i, 6]):
        shift_codes(state, neighbour[e], np.int64(coefficient[e]), codes, code)


@njit(nogil=True, cache=True, inline="always")
def threshold_tops(flip, codes, t, code, top, words):
    """The top bits of the threshold in every lane, four codes a pass (past the last one nothing flips)."""
    for k in range(1, max(codes, 2), 4):
        for w in range(words):
            m1, m2 = code[WORDS * k + w], code[WORDS * (k + 1) + w]
            m3, m4 = code[WORDS * (k + 2) + w], code[WORDS * (k + 3) + w]
            for b in range(BITS):
                before = flip[t, 0, b] if k == 1 else top[WORDS * b + w]
                first = (m1 & flip[t, k, b]) ^ (m2 & flip[t, k + 1, b])
                top[WORDS * b + w] = before ^ first ^ (m3 & flip[t, k + 2, b]) ^ (m4 & flip[t, k + 3, b])


@njit(nogil=True, cache=True, inline="always")
def draw_wide(state, i, top, draw, tie):
    """Draw variable i in every lane from its full conditional: 1 where the random bits are less; true if some tie."""
    some = NONE
    for w in range(state.shape[1]):
        less, equal = NONE, ALL
        for b in range(BITS):
            wanted, got = top[WORDS * b + w], draw[WORDS * b + w]
            less |= equal & wanted & ~got
            equal &= ~(wanted ^ got)
        state[i, w] = less
        tie[w] = equal
        some |= equal
    return some != NONE


@njit(nogil=True, cache=True, inline="always")
def settle_ties(state, i, code, codes, tie, rest, t, ties):
    """Lanes whose random bits equal the threshold's (and are 0 so far): 40 further bits decide."""
    for w in range(state.shape[1]):
        left = tie[w]
        while left:
            lane = left & (NONE - left)  # the lowest bit
            left ^= lane
            k = 0
            for other in range(1, codes):
                k += other * np.int64((code[WORDS * other + w] & lane) != NONE)
            further = next_word(ties) >> np.uint64(24)
            if further < rest[t, k]:
                state[i, w] |= lane


@njit(nogil=True, cache=True, inline="always")
def draw_narrow(threshold, word):
    """Draw one variable in one lane: 48 random bits against its threshold."""
    return ONE if word >> np.uint64(16) < threshold else np.uint8(0)


# --- folding ---------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def carry_over(c, pending, low, high, carry):
    """Add a cell's small counters to its large ones and clear them."""
    pending[c] = 0
    for x in range(carry.shape[0]):
        carry[x] = NONE
    for p in range(LOW):
        for x in range(carry.shape[0]):
            a, b, more = low[p, c, x], high[p, c, x], carry[x]
            low[p, c, x] = NONE
            high[p, c, x] = a ^ b ^ more
            carry[x] = (a & b) | (more & (a ^ b))
    some = ALL
    plane = LOW
    while some:
        some = NONE
        for x in range(carry.shape[0]):
            b, more = high[plane, c, x], carry[x]
            high[plane, c, x] = b ^ more
            carry[x] = more & b
            some |= more & b
        plane += 1


@njit(nogil=True, cache=True)
def fold(bits, words, codes, sites, cells, counts, carry):
    """Count some sites' rows of bits (as in `Scratch.met`; or only their values): one more where a bit is set."""
    _, of, table, _, _ = cells
    visits, pending, low, high, _ = counts
    for m in range(sites.shape[0]):
        i = sites[m]
        c = of[i]
        if pending[c] == (1 << LOW) - 1:
            carry_over(c, pending, low, high, carry)
        pending[c] += 1
        visits[c] += 1
        for x in range(min(words * codes[table[c]], bits.shape[1])):
            more, p0, p1 = bits[i, x], low[0, c, x], low[1, c, x]
            low[0, c, x] = p0 ^ more
            low[1, c, x] = p1 ^ (more & p0)
            low[2, c, x] ^= more & p0 & p1


# --- sweeps --------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def sweep_wide(model, state, order, streams, scratch, cells, counts, keep, visits_too):
    """Update the sites of `order` one after the other, all lanes at once.

    `keep`: how much of an update is kept for folding, as `folded` says; in the random scan it is folded at once.
    """
    near, neighbour, coefficient, _, codes, flip, rest, _ = model
    lanes, ties = streams
    code, top, draw, tie, met, carry = scratch
    words = state.shape[1]
    for q in range(order.shape[0]):
        i = order[q]
        t = near[i, 4]
        local_codes(state, near, neighbour, coefficient, i, codes[t], code)
        threshold_tops(flip, codes[t], t, code, top, words)
        next_bytes(lanes, draw, words)
        if draw_wide(state, i, top, draw, tie):
            settle_ties(state, i, code, codes[t], tie, rest, t, ties)
        if keep == 2:
            for w in range(words):
                code[w] = state[i, w]
            for k in range(codes[t]):
                for w in range(words):
                    met[i, words * k + w] = code[WORDS * k + w]
        if keep and visits_too:
            fold(met if keep == 2 else state, words, codes, order[q : q + 1], cells, counts, carry)


@njit(nogil=True, cache=True)
def run_sweeps(model, state, orders, streams, scratch, cells, drawn, final, folded, visits_too):
    """One sweep per row of `orders`; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G.

    Where each site is met once in a sweep, `drawn` counts at its end. In the random scan (`visits_too`) a site may be
    met never or twice, so `drawn` counts at the visits themselves, and `final` the values at the end.
    """
    for s in range(orders.shape[0]):
        sweep_wide(model, state, orders[s], streams, scratch, cells, drawn, folded, visits_too)
        if folded:  # cell by cell, so that counters are fetched once
            bits = scratch.met if folded == 2 and not visits_too else state
            counts = final if visits_too else drawn
            carry = scratch.carry[: counts.low.shape[2]]
            fold(bits, state.shape[1], model.codes, cells.site, cells, counts, carry)


@njit(nogil=True, cache=True)
def further_code(state, neighbour, coefficient, lo, hi):
    """What neighbours past the first four add to a code: out of the way, because few models have them."""
    code = 0
    for e in range(lo, hi):
        code += state[neighbour[e]] * coefficient[e]
    return code


@njit(nogil=True, cache=True)
def sweep_narrow(model, state, order, stream, draw, single, folded):
    """Update the sites of `order` in one chain; values and codes are counted as they come."""
    near, neighbour, coefficient, _, _, _, _, threshold = model
    made, used = 0, 0  # random words, made some sites ahead
    for q in range(order.shape[0]):
        if used == made:
            made, used = min(draw.shape[0], order.shape[0] - q), 0
            next_words(stream, draw, made)
        i = order[q]
        code = np.int64(state[near[i, 0]]) + state[near[i, 1]] + state[near[i, 2]] + state[near[i, 3]]
        if near[i, 5] < near[i, 6]:
            code += further_code(state, neighbour, coefficient, near[i, 5], near[i, 6])
        value = draw_narrow(threshold[near[i, 4], code], draw[used])
        used += 1
        state[i] = value
        if folded:
            single[near[i, 7], (2 * code if folded == 2 else 0) + value] += 1


@njit(nogil=True, cache=True)
def run_narrow_sweeps(model, state, orders, streams, draw, cells, drawn, final, folded, visits_too):
    """`run_sweeps` for a narrow block: state[lane, variable] and a stream for each lane."""
    for lane in range(state.shape[0]):
        row, counted, at_end = state[lane], drawn.single[lane], final.single[lane]
        for s in range(orders.shape[0]):
            sweep_narrow(model, row, orders[s], streams[lane], draw, counted, folded)
            if visits_too and folded:
                for i in cells.site:
                    at_end[cells.of[i], row[i]] += 1
