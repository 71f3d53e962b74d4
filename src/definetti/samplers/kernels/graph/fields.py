"""Gibbs sweeps for binary variables with few possible local fields: a word holds one variable's values in 64 chains.

The state is `state[variable, word]`, chains are bits (*lanes*), and every operation is Boolean algebra on words. The
*code* of the local field (an index into the variable's table of thresholds) is one mask per code: the lanes that have
it. A draw compares BITS random bits of each lane with the top bits of a 48-bit threshold, bit by bit; on a tie FURTHER
bits decide, so that P(value 1) = threshold / 2^48 exactly. Thresholds of p and 1 - p add up to 2^48: value
flips are respected to the last bit. Counts are kept as bit planes too (plane p holds the bits of weight 2^p).

Rows of scratch are WORDS apart, whatever the number of words in use: distances that are known when compiling are what
lets LLVM turn the loops over words into vector instructions. A few chains alone are rows of bytes, advanced one by one
(`narrow`). A site's helpers are inlined before LLVM sees them: a call would pass every array's shape and strides along.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import next_word

WORDS = 8  # at most so many words, of 64 lanes each, in a block
BITS = 10  # of a lane's first draw; as many further ones as make 48 decide where they tie
FURTHER = 48 - BITS
LOW = 6  # planes of the small counters, which hold 63 visits
PLANES = 48  # of the large counters
PLACES = np.arange(8)
NONE, ALL, ONE = np.uint64(0), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint8(1)


class Fields(NamedTuple):
    """A compiled binary model: the code is the sum of coefficient · value over a variable's neighbours.

    What an update needs to know of a site is one row of `near`, so that it is fetched at once: four neighbours with
    coefficient one (the all-zero row `n` where there are fewer), the table, where its further neighbours begin and end,
    and its cell (see `Cells`).
    """

    near: np.ndarray  # uint32[n, 8]
    neighbour: np.ndarray  # int32: further neighbours
    coefficient: np.ndarray  # uint8
    table: np.ndarray  # int32[n]: which table of thresholds
    codes: np.ndarray  # int64[T]: how many codes a table has
    flip: np.ndarray  # uint64[T, CODES + 4, BITS]: ALL where a top bit of code k's threshold is not code 0's (k = 0: 1)
    rest: np.ndarray  # uint64[T, CODES]: the other bits, 2^FURTHER where the probability is one
    threshold: np.ndarray  # uint64[T, CODES]: 48 bits


class Streams(NamedTuple):
    """Random streams of one block, all xoshiro256++: one for each word of lanes, one for ties."""

    lanes: np.ndarray  # uint64[4 · WORDS]
    ties: np.ndarray  # uint64[4]


class Scratch(NamedTuple):
    """One block's working rows. The first four have rows of WORDS words, the others rows of as many as are in use."""

    code: np.ndarray  # uint64[(CODES + 4) · WORDS]: row k, the lanes whose code is k
    top: np.ndarray  # uint64[BITS · WORDS]: top bits of the thresholds, highest first
    draw: np.ndarray  # uint64[BITS · WORDS]: random bits
    tie: np.ndarray  # uint64[WORDS]: the lanes whose random bits equal the threshold's
    held: np.ndarray  # uint64[9, rows · words]: up to eight updates to be folded together (values, codes 1, …); zeros
    carry: np.ndarray  # uint64[rows · words]


class Cells(NamedTuple):
    """Where statistics are folded: a cell is a set of variables of one orbit row that share a table of thresholds."""

    site: np.ndarray  # int32: the free variables, cell by cell
    start: np.ndarray  # int64[C + 1]: where a cell's begin
    of: np.ndarray  # int32[n]: the variable's cell, -1 for observed ones
    table: np.ndarray  # int32[C]
    row: np.ndarray  # int64[C]: the orbit row
    slot: np.ndarray  # int64[C]: the slot of the row's value 0; value 1 comes next


class Counts(NamedTuple):
    """What one block counts in each cell, in rows of words: values 1, then meetings with codes 1, 2, …"""

    visits: np.ndarray  # int64[C]
    pending: np.ndarray  # int64[C]: visits that `low` holds
    low: np.ndarray  # uint64[C, LOW, rows · words]: a cell's planes lie together
    high: np.ndarray  # uint64[PLANES, C, rows · words]: planes that no count reaches take no memory
    single: np.ndarray  # int64[lanes, C, 2 · rows]: in a narrow block instead, value v with code k at 2k + v


# --- random words ------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True, inline="always")
def stream_word(stream):
    word, stream[0], stream[1], stream[2], stream[3] = next_word(stream[0], stream[1], stream[2], stream[3])
    return word


@njit(nogil=True, cache=True, inline="always")
def next_bytes(streams, draw, words):
    """BITS random words for every word of lanes, each lane's bits from the same place of its own word's stream."""
    for w in range(words):
        s0, s1, s2, s3 = streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w]
        for b in range(BITS):
            draw[WORDS * b + w], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
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
    """Lanes whose random bits equal the threshold's (and are 0 so far): FURTHER bits decide."""
    for w in range(state.shape[1]):
        left = tie[w]
        while left:
            lane = left & (NONE - left)  # the lowest bit
            left ^= lane
            k = 0
            for other in range(1, codes):
                k += other * np.int64((code[WORDS * other + w] & lane) != NONE)
            further = stream_word(ties) >> np.uint64(64 - FURTHER)
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
            a, b, more = low[c, p, x], high[p, c, x], carry[x]
            low[c, p, x] = NONE
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
def carry_all(counts, carry):
    """Leave nothing in small counters."""
    _, pending, low, high, _ = counts
    for c in range(pending.shape[0]):
        if pending[c]:
            carry_over(c, pending, low, high, carry)


@njit(nogil=True, cache=True, inline="always")
def add(a, b, c):
    """The sum of three bits in every lane: its bits of weight 1 and 2."""
    odd = a ^ b
    return odd ^ c, (a & b) | (c & odd)


@njit(nogil=True, cache=True, inline="always")
def add_eight(bits, rows, width, low, c):
    """Count eight rows of bits in a cell's small counters."""
    i, j, k, m, n, o, p, q = rows
    for x in range(np.uint64(width)):
        odd, two = add(bits[i, x], bits[j, x], bits[k, x])
        other, pair = add(bits[m, x], bits[n, x], bits[o, x])
        third, couple = add(bits[p, x], bits[q, x], low[c, 0, x])
        low[c, 0, x], more = add(odd, other, third)
        odd, two = add(two, pair, couple)  # of weight 2, and what is carried
        low[c, 1, x], more = add(odd, more, low[c, 1, x])
        low[c, 2, x], more = add(two, more, low[c, 2, x])
        before = low[c, 3, x]
        low[c, 3, x] = before ^ more
        more &= before
        before = low[c, 4, x]
        low[c, 4, x] = before ^ more
        low[c, 5, x] ^= before & more


@njit(nogil=True, cache=True, inline="always")
def fold(bits, rows, count, width, c, visits, pending, low, high, carry):
    """Count `count` rows of bits, and the others of eight, which are zero, in a cell."""
    if pending[c] + count >= 1 << LOW:
        carry_over(c, pending, low, high, carry)
    pending[c] += count
    visits[c] += count
    if width == WORDS:  # known when compiling, the loop has no remainder
        add_eight(bits, rows, WORDS, low, c)
    else:
        add_eight(bits, rows, width, low, c)


@njit(nogil=True, cache=True, inline="always")
def eight(site, m, end, none):
    """Eight variables from m on; `none`, whose values are zero, past the end."""
    second, third = site[m + 1] if m + 1 < end else none, site[m + 2] if m + 2 < end else none
    fourth, fifth = site[m + 3] if m + 3 < end else none, site[m + 4] if m + 4 < end else none
    sixth, seventh = site[m + 5] if m + 5 < end else none, site[m + 6] if m + 6 < end else none
    return site[m], second, third, fourth, fifth, sixth, seventh, site[m + 7] if m + 7 < end else none


@njit(nogil=True, cache=True)
def fold_values(state, site, start, visits, pending, low, high, carry):
    """Count the values as they stand, cell by cell."""
    words, none = state.shape[1], np.int32(state.shape[0] - 1)
    for c in range(visits.shape[0]):
        end = start[c + 1]
        for m in range(start[c], end, 8):
            rows = eight(site, m, end, none)
            fold(state, rows, min(8, end - m), words, c, visits, pending, low, high, carry)


@njit(nogil=True, cache=True, inline="always")
def fold_held(held, count, width, c, visits, pending, low, high, carry):
    """Count the updates that are held."""
    if count:
        fold(held, eight(PLACES, 0, count, 8), count, width, c, visits, pending, low, high, carry)


@njit(nogil=True, cache=True, inline="always")
def hold(state, i, code, rows, held, at):
    """Keep an update: the values drawn, and the codes met."""
    words = state.shape[1]
    for w in range(words):
        held[at, w] = state[i, w]
    if words == WORDS:  # one run
        for x in range(WORDS, WORDS * rows):
            held[at, x] = code[x]
    else:
        for k in range(1, rows):
            for w in range(words):
                held[at, words * k + w] = code[WORDS * k + w]


# --- sweeps --------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def sweep_wide(model, state, order, streams, scratch, counts, folded):
    """Update the sites of `order` one after the other, all lanes at once; if `folded`, values and codes are counted.

    Updates are held until there are eight, or one of another cell comes: in the symmetric scan a cell's sites follow
    each other, so that its counters are fetched once.
    """
    near, neighbour, coefficient, _, codes, flip, rest, _ = model
    lanes, ties = streams
    code, top, draw, tie, held, carry = scratch
    visits, pending, low, high, _ = counts
    words, count, width, cell = state.shape[1], 0, 0, 0
    for q in range(order.shape[0]):
        i = np.uint32(order[q])
        t = near[i, 4]
        local_codes(state, near, neighbour, coefficient, i, codes[t], code)
        threshold_tops(flip, codes[t], t, code, top, words)
        next_bytes(lanes, draw, words)
        if draw_wide(state, i, top, draw, tie):
            settle_ties(state, i, code, codes[t], tie, rest, t, ties)
        if folded:
            if count == 8 or cell != near[i, 7]:
                fold_held(held, count, width, cell, visits, pending, low, high, carry)
                count = 0
            cell = np.int64(near[i, 7])
            width = codes[t] * words
            hold(state, i, code, codes[t], held, count)
            count += 1
    fold_held(held, count, width, cell, visits, pending, low, high, carry)


@njit(nogil=True, cache=True)
def run_sweeps(model, state, orders, streams, scratch, cells, drawn, final, folded, visits_too):
    """One sweep per row of `orders`; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G.

    F and G are counted at the updates, in `drawn`. Where each site is met once in a sweep, these are also the values at
    its end, and F alone can wait for it; in the random scan (`visits_too`) a site may be met never or twice, and
    `final` counts the values at the end.
    """
    visits, pending, low, high, _ = final if visits_too else drawn
    for s in range(orders.shape[0]):
        sweep_wide(model, state, orders[s], streams, scratch, drawn, folded == 2)
        if folded == 1 or (folded == 2 and visits_too):
            fold_values(state, cells.site, cells.start, visits, pending, low, high, scratch.carry[: low.shape[2]])


@njit(nogil=True, cache=True)
def further_code(state, neighbour, coefficient, lo, hi):
    """What neighbours past the first four add to a code: out of the way, because few models have them."""
    code = np.uint32(0)
    for e in range(lo, hi):
        code += state[neighbour[e]] * coefficient[e]
    return code


@njit(nogil=True, cache=True)
def sweep_narrow(model, state, order, stream, draw, used, single, folded):
    """Update the sites of `order` in one chain; values and codes are counted as they come.

    Random words are made ahead; returns how many of those in `draw` are used by now.
    """
    near, neighbour, coefficient, _, _, _, _, threshold = model
    for q in range(order.shape[0]):
        if used == draw.shape[0]:
            next_bytes(stream, draw, WORDS)
            used = 0
        i = np.uint32(order[q])
        code = np.uint32(state[near[i, 0]]) + state[near[i, 1]] + state[near[i, 2]] + state[near[i, 3]]
        if near[i, 5] < near[i, 6]:
            code += further_code(state, neighbour, coefficient, near[i, 5], near[i, 6])
        value = draw_narrow(threshold[near[i, 4], code], draw[used])
        used += 1
        state[i] = value
        if folded:
            single[near[i, 7], (code + code if folded == 2 else np.uint32(0)) + value] += 1
    return used


@njit(nogil=True, cache=True)
def run_narrow_sweeps(model, state, orders, streams, draws, used, cells, drawn, final, folded, visits_too):
    """`run_sweeps` for a narrow block: state[lane, variable], and streams and words ahead for each lane."""
    for lane in range(state.shape[0]):
        row, counted, at_end = state[lane], drawn.single[lane], final.single[lane]
        for s in range(orders.shape[0]):
            used[lane] = sweep_narrow(model, row, orders[s], streams[lane], draws[lane], used[lane], counted, folded)
            if visits_too and folded:
                for i in cells.site:
                    at_end[cells.of[i], row[i]] += 1
