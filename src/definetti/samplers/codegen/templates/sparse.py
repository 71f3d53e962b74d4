"""The part of every sparse kernel around what is generated: growing lists, classes, the clock, marks of a row.

Never imported: this text stands at the top of each generated file, below it what `samplers/sparse/emit.py` writes and
the row loop of each binary predicate (`text/rows.py`). Tests replace what stands above the line
`# --- text ---` to run the rest as plain Python, and `first_tick` and `draw` to follow every branch.
"""
# ruff: noqa: E741, F401
# pyright: reportUndefinedVariable=false, reportCallIssue=false

import math
from collections import namedtuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.linking import Whole
from definetti.samplers.kernels.logic.intrinsics import BARE
from definetti.samplers.kernels.prefetching import prefetch
from definetti.samplers.kernels.rng import next_word, unit

helper = njit(**BARE, forceinline=True)
entry = njit(
    cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False, pipeline_class=Whole
)  # fmt: skip


# --- text ---

I = np.int64
# a chain without its systems: functions of one system are handed what they read, and not the arrays of all
Lists = namedtuple(
    "Lists", "clock streams remainder order types turns live head pool blocks true_atoms sum_f sum_g"
)  # fmt: skip
OWN, SCAN = np.int64(0), np.int64(4)  # where the chain's own stream and the scan's start in `streams`
# places of `clock`; ROOM: the pool is to grow; CROWDED: a dense sweep is to be made, if LOOKS
SWEEP, ENTRY, POSITION, OPEN, UPDATES, ROOM, CROWDED, LOOKS = 0, 1, 2, 3, 4, 5, 6, 7
NOW, SUM, SQUARE = 0, 1, 2  # rows of the sums by orbit
# a node's record, one cache line: stamp of its last row, change of its key in this row, marks, class, place in it, its
# class key, its orbit class, its place in the order
STAMP, CHANGE, MARKS, CLASS, PLACE, KEY, ORBIT, POS = 0, 1, 2, 3, 4, 5, 6, 7
TRUE, CANDIDATE, QUEUED, EXCLUDED = 1, 2, 4, 8  # marks
# small numbers of a system: stamp, touched nodes, queue, classes in use, where the orbits of the row's atoms start, how
# many sites it has; how keys are packed (mask and width of the bits of a and b; mask, bias and width of a unit; whether
# there are hard ones; the key of nothing); from ROW_KEYS on the part of keys that the row shares, by the bits of b
ROW_STAMP, TOUCHED, QUEUE, IN_USE, ROW_ORBIT, SITES = 0, 1, 2, 3, 4, 5
BITS_MASK, BITS_WIDTH, UNIT_MASK, UNIT_BIAS, UNIT_WIDTH, HARD, NOTHING, ROW_KEYS = 8, 9, 10, 11, 12, 13, 14, 16
LIST = 8  # a node's lists: (offset, length, room) of the atoms it comes first in, and, four further, of the others
START, LENGTH, CAPACITY = 0, 1, 2
WHERE, CLASS_KEY, CLASS_ORBIT = 3, 4, 5  # of a class, behind the list of its members
SMALLEST = 4  # room of the smallest list
TOP, FREE = 0, 1  # of the pool: where it is unused from, then the first free block of each size
HASH = np.int64(-7046029254386353131)
# from how many constants on they do not fit into the caches, and how many rows ahead each step of the walk is made:
# heads of lists, lists, heads of neighbours, their lists, the nodes in these
LARGE = 1 << 15
HEADS, LISTS, NEIGHBOURS, THEIR_LISTS, NODES = 16, 12, 8, 5, 2


# --- random numbers ---


@helper
def uniform(streams, first):
    word, s0, s1, s2, s3 = next_word(streams[first], streams[first + 1], streams[first + 2], streams[first + 3])
    streams[first], streams[first + 1] = s0, s1
    streams[first + 2], streams[first + 3] = s2, s3
    return unit(word)


@helper
def draw(streams, chance):
    """The one place that draws a yes or no of given chance."""
    return uniform(streams, OWN) < chance


@helper
def first_tick(streams, remainder, start, count, rate):
    """The first of the members `start` … `count` - 1 that the clock ticks for, or `count`.

    Each member is a stretch of the clock of length `rate`, so that it is ticked with probability 1 - exp(-rate),
    independently of all others. What is left to the next tick is carried on from stretch to stretch; the rest of the
    stretch in which it falls is skipped, as an exponential time has no memory.
    """
    if start >= count:
        return count
    left = (count - start) * rate
    if not remainder[0] < left:
        remainder[0] -= left
        return count
    found = min(start + I(remainder[0] / rate), count - 1)
    remainder[0] = -math.log(1.0 - uniform(streams, OWN))
    return found


@helper
def logistic(h):
    e = math.exp(-abs(h))
    return 1.0 / (1.0 + e) if h >= 0.0 else e / (1.0 + e)


@helper
def chance_of(h, hard):
    """The probability of true, given its field and how many more hard groundings it satisfies than false."""
    if hard != 0:
        return 1.0 if hard > 0 else 0.0
    return logistic(h)


# --- lists that grow ---


@helper
def allocate(pool, blocks, size, room):
    """The offset of a block of `room` = SMALLEST · 2^size integers."""
    at = blocks[FREE + size]
    if at >= 0:
        blocks[FREE + size] = pool[at]
        return at
    at = blocks[TOP]
    blocks[TOP] += room
    return at


@helper
def append(pool, blocks, head, h, value):
    length, room = head[h + LENGTH], head[h + CAPACITY]
    if length == room:
        size, more = I(0), I(SMALLEST)
        while more <= room:
            size += 1
            more *= 2
        at = allocate(pool, blocks, size, more)
        old = head[h]
        for i in range(length):
            pool[at + i] = pool[old + i]
        if room > 0:
            pool[old] = blocks[FREE + size - 1]
            blocks[FREE + size - 1] = old
        head[h] = at
        head[h + CAPACITY] = more
    pool[head[h] + length] = value
    head[h + LENGTH] = length + 1


@helper
def remove(pool, head, h, value):
    """Takes a value out; the last one gets its place."""
    at, last = head[h], head[h + LENGTH] - 1
    i = at
    while pool[i] != value:
        i += 1
    pool[i] = pool[at + last]
    head[h + LENGTH] = last


@helper
def linked(pool, head, h, value):
    i, end = head[h], head[h] + head[h + LENGTH]
    while i < end and pool[i] != value:
        i += 1
    return i < end


# --- classes of nodes with equal keys ---


@helper
def is_class(s, k, key, orbit):
    return s.classes[LIST * k + CLASS_KEY] == key and s.classes[LIST * k + CLASS_ORBIT] == orbit


@helper
def class_place(s, key, orbit):
    """Where the class stands in the hash table, or the free place where it would."""
    mask = s.table.shape[0] - 1
    at = ((key * HASH) ^ (orbit * I(40503))) >> 20 & mask
    while s.table[at] >= 0 and not is_class(s, s.table[at], key, orbit):
        at = (at + 1) & mask
    return at


@helper
def close_gap(s, at):
    """Empties a place of the hash table; those behind it move up where they would not be found otherwise."""
    mask = s.table.shape[0] - 1
    s.table[at] = -1
    hole = (at + 1) & mask
    while s.table[hole] >= 0:
        k = s.table[hole]
        s.table[hole] = -1
        s.table[class_place(s, s.classes[LIST * k + CLASS_KEY], s.classes[LIST * k + CLASS_ORBIT])] = k
        hole = (hole + 1) & mask


@helper
def leave_class(pool, s, b):
    k, place = s.node[b, CLASS], s.node[b, PLACE]
    h = LIST * k
    last = s.classes[h + LENGTH] - 1
    other = pool[s.classes[h] + last]
    pool[s.classes[h] + place] = other
    s.node[other, PLACE] = place
    s.classes[h + LENGTH] = last
    if last == 0:
        close_gap(s, class_place(s, s.classes[h + CLASS_KEY], s.classes[h + CLASS_ORBIT]))
        end = s.small[IN_USE] - 1
        moved, where = s.in_use[end], s.classes[h + WHERE]
        s.in_use[where] = moved
        s.classes[LIST * moved + WHERE] = where
        s.in_use[end] = k
        s.small[IN_USE] = end


@helper
def join_class(pool, blocks, s, b, key):
    orbit = s.node[b, ORBIT]
    at = class_place(s, key, orbit)
    k = s.table[at]
    if k < 0:
        end = s.small[IN_USE]
        k = s.in_use[end]  # numbers that are not in use stand behind those that are
        s.classes[LIST * k + CLASS_KEY] = key
        s.classes[LIST * k + CLASS_ORBIT] = orbit
        s.classes[LIST * k + WHERE] = end
        s.small[IN_USE] = end + 1
        s.table[at] = k
    s.node[b, KEY] = key
    s.node[b, CLASS] = k
    s.node[b, PLACE] = s.classes[LIST * k + LENGTH]
    append(pool, blocks, s.classes, LIST * k, b)


@helper
def change_class(pool, blocks, s, b, key):
    if s.node[b, KEY] != key:
        leave_class(pool, s, b)
        join_class(pool, blocks, s, b, key)


# --- a row under way ---


@helper
def hard_count(s, key):
    """How many more hard groundings a site satisfies true than false."""
    shift = s.small[BITS_WIDTH] + s.small[UNIT_WIDTH] * s.units.shape[0]
    return ((key >> shift) & s.small[UNIT_MASK]) - s.small[UNIT_BIAS]


@helper
def chances(s, key):
    """The place in `known_keys` whose chance and rate are those of a key: computed once, and kept until another key
    needs the place."""
    at = ((key * HASH) >> 30) & (s.known_keys.shape[0] - 1)
    if s.known_keys[at] != key:
        h, rest = s.base[key & s.small[BITS_MASK]], key >> s.small[BITS_WIDTH]
        for u in range(s.units.shape[0]):
            h += s.units[u] * ((rest & s.small[UNIT_MASK]) - s.small[UNIT_BIAS])
            rest = rest >> s.small[UNIT_WIDTH]
        hard = hard_count(s, key) if s.small[HARD] != 0 else I(0)
        p = chance_of(h, hard)
        s.known_keys[at] = key
        s.known[at, 0] = p
        s.known[at, 1] = math.inf if p == 1.0 and hard > 0 else (max(h, 0.0) + math.log1p(math.exp(-abs(h))))
        if p == 0.0 and hard < 0:
            s.known[at, 1] = 0.0
    return at


@helper
def fresh(s, b):
    """The node's record is of this row."""
    if s.node[b, STAMP] != s.small[ROW_STAMP]:
        s.node[b, STAMP] = s.small[ROW_STAMP]
        s.node[b, CHANGE] = 0
        s.node[b, MARKS] = 0
        s.touched[s.small[TOUCHED]] = b
        s.small[TOUCHED] += 1


@helper
def touch(s, b, change):
    fresh(s, b)
    s.node[b, CHANGE] += change


@helper
def push(s, b):
    """Puts a node into the queue of events, which is a heap by the place in the order."""
    if s.node[b, MARKS] & QUEUED:
        return
    s.node[b, MARKS] |= QUEUED
    item = (s.node[b, POS] << 32) | b
    i = s.small[QUEUE]
    s.small[QUEUE] += 1
    while i > 0:
        parent = (i - 1) >> 1
        if s.queue[parent] <= item:
            break
        s.queue[i] = s.queue[parent]
        i = parent
    s.queue[i] = item


@helper
def pop(s):
    top = s.queue[0]
    n = s.small[QUEUE] - 1
    s.small[QUEUE] = n
    item, i = s.queue[n], I(0)
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and s.queue[child + 1] < s.queue[child]:
            child += 1
        if s.queue[child] >= item:
            break
        s.queue[i] = s.queue[child]
        i = child
    s.queue[i] = item
    return top & I(0xFFFFFFFF)


@helper
def make_candidate(s, b):
    fresh(s, b)
    if not s.node[b, MARKS] & EXCLUDED:
        s.node[b, MARKS] |= CANDIDATE
        push(s, b)


@helper
def add_chance(s, sum_g, orbit_class, p):
    """G gains p at a site of the row; where the site is two atoms, R(a,b) and R(b,a), both count."""
    o = s.orbits[s.small[ROW_ORBIT] + orbit_class]
    sum_g[NOW, o] += p
    if s.mirror.shape[0] > 0:
        sum_g[NOW, s.mirror[o]] += p


@helper
def move_chance(s, streams, remainder, sum_g, b, before, after):
    """Site b's key changes before its visit: its mark as a candidate changes with it, so that its chance is the new
    key's; G follows."""
    i, j = chances(s, before), I(0)
    p, rate = s.known[i, 0], s.known[i, 1]
    j = chances(s, after)
    q, faster = s.known[j, 0], s.known[j, 1]
    add_chance(s, sum_g, s.node[b, ORBIT], q - p)
    if q > p:
        if not s.node[b, MARKS] & CANDIDATE and first_tick(streams, remainder, I(0), I(1), faster - rate) == 0:
            s.node[b, MARKS] |= CANDIDATE
            push(s, b)
    elif q < p and s.node[b, MARKS] & CANDIDATE and not draw(streams, q / p):
        s.node[b, MARKS] &= ~CANDIDATE


@helper
def lists_of(c):
    return Lists(
        c.clock, c.streams, c.remainder, c.order, c.types, c.turns, c.live, c.head, c.pool, c.blocks, c.true_atoms,
        c.sum_f, c.sum_g,
    )  # fmt: skip


@helper
def later(c, first, at, size):
    """The constant whose turn comes at this place, or -1."""
    return c.order[first + at] if at < size else I(-1)


# --- a sweep ---


@helper
def shuffle(streams, items, start, n):
    """A uniformly random order (the bias of one choice among i is under i / 2^53)."""
    for i in range(n - 1, 0, -1):
        j = I(uniform(streams, SCAN) * (i + 1))
        items[start + i], items[start + j] = items[start + j], items[start + i]


@helper
def end_sweep(clock, true_atoms, sum_f, sum_g):
    """Adds the sweep to the sums of the batch; each site was drawn once, so F is what is true now."""
    for o in range(sum_f.shape[1]):
        f = true_atoms[o]
        sum_f[NOW, o] = 0
        sum_f[SUM, o] += f
        sum_g[SUM, o] += sum_g[NOW, o]
        sum_g[SQUARE, o] += float(f) * float(f)
        sum_g[NOW, o] = 0.0
    clock[OPEN] = 0
    clock[SWEEP] += 1
