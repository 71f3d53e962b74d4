"""The part of every relational kernel that does not depend on the model: places in its arrays, random streams, scans.

Compiled once for all models, and linked into the loop over sweeps (`sweeping.py`). A chunk is up to CHUNK sites of one
predicate: `fill` chooses them, `fold` (`folding.py`) adds up what was drawn. The scan has a stream of its own, equal in
all chains, so all chains share the order of sites. The text below the line `# --- text ---`, here and in the files
beside, also runs as plain Python (`lumping/logic_branches.py`).
"""
# ruff: noqa: E741
# pyright: reportCallIssue=false

import numpy as np

from definetti.samplers.kernels.logic.intrinsics import cell, helper, part, peek, test
from definetti.samplers.kernels.rng import next_word, unit

# --- text ---

U, I = np.uint64, np.int64
ZERO = np.uint64(0)
NOW, SUM, VISITS, SQUARE = 0, 1, 2, 2  # rows of the sums by orbit: this sweep, this batch
SYMMETRIC, RANDOM, FIXED = 0, 1, 2
OWN, SCAN = np.int64(0), np.int64(4)  # where the chain's own stream and the scan's start in `streams`
# clock: where the chain stands
SWEEP, ENTRY, POSITION, PENDING, FAILED, UPDATES, OPEN = 0, 1, 2, 3, 4, 5, 6
# a row of `entries`: predicate, sites, skip mask (offset or -1), list (offset or -1), values of a block, rank, then
# (argument, sort, size) for each axis of the sites, (argument, -1 - constant, 1) where all have this constant; the last
# three columns are its turn in a sweep (rows with one turn are the same sites with their axes in another order), the
# set of turns that are shuffled (or -1), and half a square
PREDICATE, SITES, SKIP, LISTED, VALUES, RANK, AXES = 0, 1, 2, 3, 4, 5, 6
# a row of `folds`: offset of the lookup, rank, pairs, then (offset of the class array, classes) by argument, the pairs,
# for blocks the (argument, size) of the exclusive arguments after their number, for tied classes the (predicate, sign,
# arguments) of the images after theirs
LOOKUP, ARITY, PAIRS, CLASSES = 0, 1, 2, 3
# a level: what local fields are multiplied by, what a violation costs, what fields of orbits are multiplied by, whether
# there are any, whether the tally follows the state
SCALE, PENALTY, SHARE, ON, FOLLOWED = 0, 1, 2, 3, 4
# the tally of a state: weighted groundings of the shapes with several weights, violated groundings, the orbits' fields
# of what is true; of a look: normaliser of the product of these fields, entropies of the conditionals, their divergence
# from the product; then true groundings by shape
SOFT, BROKEN, TILTED, NORMALISER, ENTROPY, DIVERGENCE, COUNTS = 0, 1, 2, 3, 4, 5, 6


@part
def uniforms(streams, first, out, m):
    """m numbers in [0, 1) from the stream whose state starts at `first` and stays in registers for the whole chunk."""
    s0, s1, s2, s3 = streams[first], streams[first + 1], streams[first + 2], streams[first + 3]
    for i in range(m):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        out[i] = unit(word)
    streams[first], streams[first + 1] = s0, s1
    streams[first + 2], streams[first + 3] = s2, s3


@helper
def shuffle(streams, scratch, items, start, n):
    """A uniformly random order (the bias of one choice among i is under i / 2^53)."""
    for i in range(n - 1, 0, -1):
        uniforms(streams, SCAN, scratch, I(1))
        j = I(scratch[0] * (i + 1))
        items[start + i], items[start + j] = items[start + j], items[start + i]


@part
def begin_sweep(scan, clock, streams, scratch, order, sorts, entries):
    """Fresh orders: of every sort's constants, and of the sites of predicates with few free atoms."""
    clock[OPEN] = 1
    clock[ENTRY] = 0
    clock[POSITION] = 0
    if scan == SYMMETRIC:
        for s in range(sorts.shape[0]):
            shuffle(streams, scratch, order, cell(sorts, s, 0), cell(sorts, s, 1))
        for e in range(entries.shape[0]):
            if cell(entries, e, LISTED) >= 0:
                shuffle(streams, scratch, order, cell(entries, e, LISTED), cell(entries, e, SITES))
        take_turns(streams, scratch, order, entries, order.shape[0] - entries.shape[0])


@helper
def take_turns(streams, scratch, order, entries, start):
    """The entries of the sweep in order, at the end of `order` (-1: none): for each turn one of its entries at random,
    then those of a set exchanged with an earlier one of the set, or with itself. Without choices it stays as it is."""
    turn, total, width = entries.shape[1] - 3, entries.shape[0], entries.shape[1]
    choices = False
    for e in range(total):
        choices |= cell(entries, e, turn) != e or cell(entries, e, width - 2) >= 0
    for t in range(total if choices else 0):
        found = 0
        for e in range(total):
            if cell(entries, e, turn) == t:
                found += 1
                if found == 1 or pick(streams, scratch, found) == 0:
                    order[start + t] = e
        if found == 0:
            order[start + t] = -1
            continue
        group, found, chosen = cell(entries, order[start + t], width - 2), 1, t
        for s in range(t if group >= 0 else 0):
            if cell(entries, order[start + s], width - 2) == group:
                found += 1
                if pick(streams, scratch, found) == 0:
                    chosen = s
        order[start + t], order[start + chosen] = order[start + chosen], order[start + t]


@helper
def pick(streams, scratch, n):
    """A uniform choice among n."""
    uniforms(streams, SCAN, scratch, I(1))
    return I(scratch[0] * n)


@helper
def fill_row(entries, e, words, sorts, order, coords, position, room):
    """Free sites of one row (all axes but the last fixed) from `position` on. Returns (how many, next position)."""
    rank, half = cell(entries, e, RANK), cell(entries, e, entries.shape[1] - 1)
    if rank == 0:
        return 1, 1
    last = AXES + 3 * (rank - 1)
    size, start = cell(entries, e, last + 2), cell(sorts, cell(entries, e, last + 1), 0)
    r, row, stride = position // size, 0, 1
    column = position - r * size
    end = size
    if half == 1 and column < r:  # tied to (column, r), which has had its turn
        position += r - column
        column = r
    if half == 2:  # the same backwards: tied to (column, r), whose turn comes later
        end = r + 1
        if column >= end:
            return 0, (r + 1) * size
    for j in range(rank - 2, -1, -1):
        axis = AXES + 3 * j
        n, sort = cell(entries, e, axis + 2), cell(entries, e, axis + 1)
        value = I(-1 - sort)
        if sort >= 0:
            value = peek(order, cell(sorts, sort, 0) + r % n)
            r //= n
            row += value * stride
            stride *= n
        for i in range(min(room, end - column)):
            coords[cell(entries, e, axis), i] = value
    m, target, skip = 0, cell(entries, e, last), cell(entries, e, SKIP)
    if skip < 0:
        m = min(room, end - column)
        for i in range(m):
            coords[target, i] = peek(order, start + column + i)
        return m, position + m
    base = skip + row * ((size + 63) >> 6)
    while m < room and column < end:
        value = peek(order, start + column)
        if test(words, base + (value >> 6), value) == ZERO:
            coords[target, m] = value
            m += 1
        column += 1
        position += 1
    return m, position


@helper
def decode(entries, e, coords, flat, i):
    """Puts a site, given by its place in the box of its axes, at place i of the chunk."""
    for j in range(cell(entries, e, RANK) - 1, -1, -1):
        n, sort = cell(entries, e, AXES + 3 * j + 2), cell(entries, e, AXES + 3 * j + 1)
        coords[cell(entries, e, AXES + 3 * j), i] = flat % n if sort >= 0 else -1 - sort
        flat //= n


@part
def fill(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """The next chunk of a sweep over all sites: (how many, of which entry); 0 sites mean that the sweep is over."""
    while clock[ENTRY] < entries.shape[0]:
        e, position = peek(order, order.shape[0] - entries.shape[0] + clock[ENTRY]), clock[POSITION]
        if e < 0 or position >= cell(entries, e, SITES):
            clock[ENTRY] += 1
            clock[POSITION] = 0
            continue
        here = min(room, max(1, longest // cell(entries, e, VALUES)))
        if cell(entries, e, LISTED) >= 0:
            m = min(here, cell(entries, e, SITES) - position)
            for i in range(m):
                decode(entries, e, coords, peek(order, cell(entries, e, LISTED) + position + i), i)
            position += m
        else:
            m, position = fill_row(entries, e, words, sorts, order, coords, position, here)
        clock[POSITION] = position
        if m > 0:
            return m, e
    return 0, 0


@helper
def skipped(entries, e, words, flat):
    rank, skip = cell(entries, e, RANK), cell(entries, e, SKIP)
    size = cell(entries, e, AXES + 3 * rank - 1) if rank > 0 else 1
    row, column = flat // size, flat % size
    if cell(entries, e, entries.shape[1] - 1) != 0 and column < row:
        return True
    if skip < 0 or cell(entries, e, LISTED) >= 0:
        return False
    return test(words, skip + row * ((size + 63) >> 6) + (column >> 6), column) != ZERO


@part
def fill_random(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """Sites drawn uniformly with replacement, as many as stay in one predicate. `PENDING` keeps a draw not yet used."""
    m, e = I(0), 0
    room = min(room, free - clock[POSITION])
    while m < room:
        pick = clock[PENDING]
        if pick < 0:
            uniforms(streams, SCAN, scratch, I(1))
            pick = I(scratch[0] * every)
        at, flat = 0, pick
        while flat >= cell(entries, at, SITES):
            flat -= cell(entries, at, SITES)
            at += 1
        clock[PENDING] = -1
        if skipped(entries, at, words, flat):
            continue
        if m > 0 and (at != e or m >= longest // cell(entries, e, VALUES)):
            clock[PENDING] = pick
            break
        e = at
        listed = cell(entries, e, LISTED)
        decode(entries, e, coords, peek(order, listed + flat) if listed >= 0 else flat, m)
        m += 1
    clock[POSITION] += m
    return m, e
