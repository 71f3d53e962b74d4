"""The scan of every relational kernel: random streams, and which sites come next. Compiled once for all models.

A chunk is up to CHUNK sites of one predicate. The scan has a stream of its own, equal in all chains, so all chains
share the order of sites. The text below the line `# --- text ---` also runs as plain Python (see `relational_module`).
"""
# ruff: noqa: E741

import numpy as np
from numba import njit

helper = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # wrappers cost compile time
part = njit(cache=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # called by kernels


# --- text ---

U, I = np.uint64, np.int64
ZERO, ONE = np.uint64(0), np.uint64(1)
SYMMETRIC, RANDOM, FIXED = 0, 1, 2
OWN, SCAN = 0, 4  # where the chain's own stream and the scan's start in `streams`
# clock: where the chain stands
SWEEP, ENTRY, POSITION, PENDING, FAILED, UPDATES, OPEN = 0, 1, 2, 3, 4, 5, 6
# a row of `entries`: predicate, sites, skip mask (offset or -1), list (offset or -1), values of a block, rank, then
# (argument, sort, size) for each axis of the sites
PREDICATE, SITES, SKIP, LISTED, VALUES, RANK, AXES = 0, 1, 2, 3, 4, 5, 6


@part
def uniforms(streams, first, out, m):
    """m numbers in [0, 1) of 53 bits from xoshiro256++ (Blackman and Vigna; period 2^256 - 1), whose four words of
    state start at `first` and stay in registers for the whole chunk."""
    s0, s1 = streams[first], streams[first + 1]
    s2, s3 = streams[first + 2], streams[first + 3]
    for i in range(m):
        x = s0 + s3
        x = ((x << U(23)) | (x >> U(41))) + s0
        t = s1 << U(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = (s3 << U(45)) | (s3 >> U(19))
        out[i] = float(x >> U(11)) * 1.1102230246251565e-16
    streams[first], streams[first + 1] = s0, s1
    streams[first + 2], streams[first + 3] = s2, s3


@helper
def shuffle(streams, scratch, items, start, n):
    """A uniformly random order (the bias of one choice among i is under i / 2^53)."""
    for i in range(n - 1, 0, -1):
        uniforms(streams, SCAN, scratch, 1)
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
            shuffle(streams, scratch, order, sorts[s, 0], sorts[s, 1])
        for e in range(entries.shape[0]):
            if entries[e, LISTED] >= 0:
                shuffle(streams, scratch, order, entries[e, LISTED], entries[e, SITES])


@helper
def fill_row(entries, e, words, sorts, order, coords, position, room):
    """Free sites of one row (all axes but the last fixed) from `position` on. Returns (how many, next position)."""
    rank = entries[e, RANK]
    if rank == 0:
        return 1, 1
    last = AXES + 3 * (rank - 1)
    size, start = entries[e, last + 2], sorts[entries[e, last + 1], 0]
    r, row, stride = position // size, 0, 1
    column = position - r * size
    if entries[e, entries.shape[1] - 1] != 0 and column < r:  # tied to (column, r), which has had its turn
        position += r - column
        column = r
    for j in range(rank - 2, -1, -1):
        axis = AXES + 3 * j
        n = entries[e, axis + 2]
        value = order[sorts[entries[e, axis + 1], 0] + r % n]
        r //= n
        row += value * stride
        stride *= n
        for i in range(min(room, size - column)):
            coords[entries[e, axis], i] = value
    m, target, skip = 0, entries[e, last], entries[e, SKIP]
    if skip < 0:
        m = min(room, size - column)
        for i in range(m):
            coords[target, i] = order[start + column + i]
        return m, position + m
    base = skip + row * ((size + 63) >> 6)
    while m < room and column < size:
        value = order[start + column]
        if (words[base + (value >> 6)] >> U(value & 63)) & ONE == ZERO:
            coords[target, m] = value
            m += 1
        column += 1
        position += 1
    return m, position


@helper
def decode(entries, e, coords, flat, i):
    """Puts a site, given by its place in the box of its axes, at place i of the chunk."""
    for j in range(entries[e, RANK] - 1, -1, -1):
        n = entries[e, AXES + 3 * j + 2]
        coords[entries[e, AXES + 3 * j], i] = flat % n
        flat //= n


@part
def fill(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """The next chunk of a sweep over all sites: (how many, of which entry); 0 sites mean that the sweep is over."""
    while clock[ENTRY] < entries.shape[0]:
        e, position = clock[ENTRY], clock[POSITION]
        if position >= entries[e, SITES]:
            clock[ENTRY] += 1
            clock[POSITION] = 0
            continue
        here = min(room, max(1, longest // entries[e, VALUES]))
        if entries[e, LISTED] >= 0:
            m = min(here, entries[e, SITES] - position)
            for i in range(m):
                decode(entries, e, coords, order[entries[e, LISTED] + position + i], i)
            position += m
        else:
            m, position = fill_row(entries, e, words, sorts, order, coords, position, here)
        clock[POSITION] = position
        if m > 0:
            return m, e
    return 0, 0


@helper
def skipped(entries, e, words, flat):
    if entries[e, entries.shape[1] - 1] != 0 and flat % entries[e, AXES + 5] < flat // entries[e, AXES + 5]:
        return True
    if entries[e, SKIP] < 0 or entries[e, LISTED] >= 0:
        return False
    size = entries[e, AXES + 3 * (entries[e, RANK] - 1) + 2] if entries[e, RANK] > 0 else 1
    word = entries[e, SKIP] + flat // size * ((size + 63) >> 6) + (flat % size >> 6)
    return (words[word] >> U(flat % size & 63)) & ONE != ZERO


@part
def fill_random(entries, words, sorts, order, coords, clock, streams, scratch, room, longest, free, every):
    """Sites drawn uniformly with replacement, as many as stay in one predicate. `PENDING` keeps a draw not yet used."""
    m, e = 0, 0
    room = min(room, free - clock[POSITION])
    while m < room:
        pick = clock[PENDING]
        if pick < 0:
            uniforms(streams, SCAN, scratch, 1)
            pick = I(scratch[0] * every)
        at, flat = 0, pick
        while flat >= entries[at, SITES]:
            flat -= entries[at, SITES]
            at += 1
        clock[PENDING] = -1
        if skipped(entries, at, words, flat):
            continue
        if m > 0 and (at != e or m >= longest // entries[e, VALUES]):
            clock[PENDING] = pick
            break
        e = at
        decode(entries, e, coords, order[entries[e, LISTED] + flat] if entries[e, LISTED] >= 0 else flat, m)
        m += 1
    clock[POSITION] += m
    return m, e
