"""MC-SAT on binary factor graphs: slices decided on demand, unit propagation, and uniform solutions of what is
left.

A slice lets each factor fall from the value it has to lower ones with the chance exp(lower - higher), level by level:
for a weighted formula this keeps a satisfied grounding with probability 1 - exp(-|w|). Whether it falls is a draw
keyed by sample, factor and level, so that no slice is stored and only factors that touch a variable still free are
ever looked at. The current state satisfies its slice; so what propagation fixes has its current value. What stays
free falls into components: small ones are drawn exactly uniformly from their solutions, large ones by SampleSAT.
Random choices are made in `keeps` and `pick` alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

U = np.uint64
EXACT = 10  # variables of a component whose solutions are listed
SAMPLE, FAILED, LARGEST, UPDATES, WALKED = 0, 1, 2, 3, 4  # places of the clock
helper = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(inline="always", error_model="numpy")  # a call would count references of every array it is given


class Graph(NamedTuple):
    factors: int
    table_start: np.ndarray  # int64[T + 1]
    entry_level: np.ndarray  # int64: the level of each table entry among its table's, lowest first; -1 is impossible
    level_start: np.ndarray  # int64[T + 1]
    level_mask: np.ndarray  # uint64: entries at least as high
    level_drop: np.ndarray  # float64: the chance to fall to the level below
    halves: np.ndarray  # uint64[7, 6]: entries in which the j-th of w variables is 1
    start: np.ndarray  # int64[n + 1]: where a variable's records start
    records: np.ndarray  # int32: number, table, width and variables of each of its factors of two or more variables
    loose: np.ndarray  # float64[n, 2]: the chance that the factors of a variable alone let it change, by its value
    free: np.ndarray  # int32
    orbit: np.ndarray  # int64[n]: place of a variable's statistic; 0 belongs to none


class State(NamedTuple):
    x: np.ndarray  # int8[n]: the current state
    y: np.ndarray  # int8[n]: the next one
    fixed: np.ndarray  # int8[n]
    queue: np.ndarray  # int32[n]
    members: np.ndarray  # int32[n]: a component's variables
    place: np.ndarray  # int32[n]: their places in it
    seen: np.ndarray  # int64[n]: the sample in which a variable was put into a component
    stamp: np.ndarray  # int64[F]: the same for factors
    active: np.ndarray  # int64[capacity]: the records of a component's factors
    masks: np.ndarray  # uint64[capacity]: their allowed entries
    starts: np.ndarray  # int64[n + 1]: by place: where its factors start in `touching`
    touching: np.ndarray  # int32[6 capacity]
    bad: np.ndarray  # int32[2, capacity]: violated factors, and where each stands among them
    solutions: np.ndarray  # int32[2^EXACT]
    clock: np.ndarray  # int64[8]
    streams: np.ndarray  # uint64[5]: xoshiro256++, then the key of the slices
    sums: np.ndarray  # float64[3, orbits + 1]: counts of this sample, of the batch, sum of squares


@inlined
def mixed(z):
    """The finaliser of SplitMix64."""
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


@inlined
def keeps(key, item, level, chance):
    """A draw keyed by the sample (in `key`), the factor and the level: the same whenever it is asked for."""
    z = mixed(mixed(key + U(item) * U(0x9E3779B97F4A7C15)) + U(level) * U(0xD1B54A32D192ED03))
    return float(z >> U(11)) * 1.1102230246251565e-16 < chance


@helper
def uniform(streams):
    """A number in [0, 1) of 53 bits from xoshiro256++."""
    s0, s1, s2, s3 = streams[0], streams[1], streams[2], streams[3]
    x = s0 + s3
    x = ((x << U(23)) | (x >> U(41))) + s0
    t = s1 << U(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << U(45)) | (s3 >> U(19))
    streams[0], streams[1], streams[2], streams[3] = s0, s1, s2, s3
    return float(x >> U(11)) * 1.1102230246251565e-16


@helper
def pick(streams, count):
    """A whole number below `count`."""
    return int(uniform(streams) * count)


@inlined
def entry_of(records, x, r):
    """The entry of a factor's table in a state; `r` is where one of its records starts."""
    e = 0
    for k in range(r + 3, r + 3 + records[r + 2]):
        e = 2 * e + x[records[k]]
    return e


@inlined
def room_of(g, s, r):
    """The entries of a factor's table that agree with what is fixed."""
    w = g.records[r + 2]
    room = U(0xFFFFFFFFFFFFFFFF) >> U(64 - (1 << w))
    for j in range(w):
        v = g.records[r + 3 + j]
        if s.fixed[v] != 0:
            room &= g.halves[w, j] if s.x[v] != 0 else ~g.halves[w, j]
    return room


@inlined
def allowed(g, s, r, key, room):
    """The entries among `room` that the slice allows a factor. Most allow all, whatever the draw."""
    t = g.records[r + 1]
    first, level = g.level_start[t], g.entry_level[g.table_start[t] + entry_of(g.records, s.x, r)]
    mask = g.level_mask[first + level] & room
    while mask != room and level > 0 and keeps(key, g.records[r], level, g.level_drop[first + level]):
        level -= 1
        mask = g.level_mask[first + level] & room
    return mask


@inlined
def examine(g, s, r, key, top):
    """Unit propagation at one factor: a variable without an allowed alternative is fixed and put into the queue."""
    room = room_of(g, s, r)
    mask = allowed(g, s, r, key, room)
    if mask != room:
        w = g.records[r + 2]
        for j in range(w):
            v = g.records[r + 3 + j]
            if s.fixed[v] == 0 and mask & (g.halves[w, j] if s.x[v] == 0 else ~g.halves[w, j]) == U(0):
                s.fixed[v] = 1
                s.queue[top] = v
                top += 1
    return top


@helper
def propagate(g, s, key):
    """Fix what the factors of one variable and unit propagation fix."""
    top, at = 0, 0
    for i in g.free:
        s.fixed[i] = 0 if keeps(key, g.factors + i, 1, g.loose[i, s.x[i]]) else 1
    initial = g.free.shape[0]
    while at < initial + top:
        v = g.free[at] if at < initial else s.queue[at - initial]
        if at >= initial or s.fixed[v] == 0:
            r = g.start[v]
            while r < g.start[v + 1]:
                top = examine(g, s, r, key, top)
                r += 3 + g.records[r + 2]
        at += 1


@helper
def gather(g, s, first, key, sample):
    """The component of a free variable: (its variables, its factors; -1 where there are too many)."""
    s.members[0], s.seen[first] = first, sample
    size, factors, at = 1, 0, 0
    while at < size:
        v = s.members[at]
        s.place[v] = at
        r = g.start[v]
        while r < g.start[v + 1]:
            room = room_of(g, s, r)
            mask = allowed(g, s, r, key, room)
            if mask != room and s.stamp[g.records[r]] != sample:
                s.stamp[g.records[r]] = sample
                if factors >= 0 and factors < s.active.shape[0]:
                    s.active[factors], s.masks[factors] = r, mask
                    factors += 1
                else:
                    factors = -1
                for k in range(r + 3, r + 3 + g.records[r + 2]):
                    w = g.records[k]
                    if s.fixed[w] == 0 and s.seen[w] != sample:
                        s.seen[w] = sample
                        s.members[size] = w
                        size += 1
            r += 3 + g.records[r + 2]
        at += 1
    return size, factors


@inlined
def satisfied(records, masks, active, y, a):
    """Whether the next state satisfies a component's a-th factor."""
    return (masks[a] >> U(entry_of(records, y, active[a]))) & U(1) != U(0)


@helper
def put(s, size, code):
    for j in range(size):
        s.y[s.members[j]] = (code >> j) & 1


@helper
def solve_exactly(g, s, size, factors):
    """One of the solutions of a small component, each with the same chance."""
    found = 0
    for code in range(1 << size):
        put(s, size, code)
        legal = True
        for a in range(factors):
            if not satisfied(g.records, s.masks, s.active, s.y, a):
                legal = False
                break
        if legal:
            s.solutions[found] = code
            found += 1
    put(s, size, s.solutions[pick(s.streams, found)])


@helper
def index_factors(g, s, size, factors):
    """Which factors touch each variable of a component: counted, summed up, then filled in."""
    for j in range(size + 1):
        s.starts[j] = 0
    for a in range(factors):
        r = s.active[a]
        for k in range(r + 3, r + 3 + g.records[r + 2]):
            if s.fixed[g.records[k]] == 0:
                s.starts[s.place[g.records[k]]] += 1
    for j in range(size):
        s.starts[j + 1] += s.starts[j]
    for a in range(factors):
        r = s.active[a]
        for k in range(r + 3, r + 3 + g.records[r + 2]):
            if s.fixed[g.records[k]] == 0:
                j = s.place[g.records[k]]
                s.starts[j] -= 1
                s.touching[s.starts[j]] = a


@helper
def worse(g, s, j):
    """By how much the number of violated factors grows if the j-th variable flips."""
    v, change = s.members[j], 0
    for k in range(s.starts[j], s.starts[j + 1]):
        change += satisfied(g.records, s.masks, s.active, s.y, s.touching[k])
    s.y[v] ^= 1
    for k in range(s.starts[j], s.starts[j + 1]):
        change -= satisfied(g.records, s.masks, s.active, s.y, s.touching[k])
    s.y[v] ^= 1
    return change


@helper
def flip(g, s, j, count):
    """Flips the j-th variable and keeps the list of violated factors; returns its length."""
    s.y[s.members[j]] ^= 1
    for k in range(s.starts[j], s.starts[j + 1]):
        a = s.touching[k]
        at, legal = s.bad[1, a], satisfied(g.records, s.masks, s.active, s.y, a)
        if legal and at >= 0:
            count -= 1
            s.bad[0, at] = s.bad[0, count]
            s.bad[1, s.bad[0, at]] = at
            s.bad[1, a] = -1
        elif not legal and at < 0:
            s.bad[0, count], s.bad[1, a] = a, count
            count += 1
    return count


@helper
def walk_step(g, s, count):
    """A WalkSAT move: a variable of a random violated factor, at random or the best one, ties broken at random."""
    r = s.active[s.bad[0, pick(s.streams, count)]]
    chosen, best, ties, noise = -1, 1 << 30, 0, uniform(s.streams) < 0.5
    for k in range(r + 3, r + 3 + g.records[r + 2]):
        if s.fixed[g.records[k]] == 0:
            j = s.place[g.records[k]]
            cost = 0 if noise else worse(g, s, j)
            ties = ties + 1 if cost == best else 1 if cost < best else ties
            if cost < best or (cost == best and pick(s.streams, ties) == 0):
                chosen, best = j, cost
    return flip(g, s, chosen, count)


@helper
def sample_sat(g, s, size, factors, temperature):
    """SampleSAT (Wei, Erenrich, Selman) from a random assignment, then a walk among solutions; says if it found one."""
    index_factors(g, s, size, factors)
    count = 0
    for j in range(size):
        s.y[s.members[j]] = pick(s.streams, 2)
    for a in range(factors):
        s.bad[1, a] = -1
        if not satisfied(g.records, s.masks, s.active, s.y, a):
            s.bad[0, count], s.bad[1, a] = a, count
            count += 1
    for _ in range(2000 + 100 * size):
        if count == 0:
            break
        if uniform(s.streams) < 0.5:
            j = pick(s.streams, size)
            change = worse(g, s, j)
            if change <= 0 or uniform(s.streams) < math.exp(-change / temperature):
                count = flip(g, s, j, count)
        else:
            count = walk_step(g, s, count)
    if count > 0:
        return False
    for _ in range(10 * size):  # leaves the uniform distribution over solutions as it is
        j = pick(s.streams, size)
        if worse(g, s, j) == 0:
            s.y[s.members[j]] ^= 1
    return True


@helper
def solve(g, s, size, factors, temperature):
    """The next values of one component."""
    s.clock[LARGEST] = max(s.clock[LARGEST], size)
    if factors == 0:
        s.y[s.members[0]] = pick(s.streams, 2)
    elif factors > 0 and size <= EXACT:
        solve_exactly(g, s, size, factors)
    else:
        s.clock[WALKED] += 1
        if factors < 0 or not sample_sat(g, s, size, factors, temperature):
            s.clock[FAILED] += 1
            for j in range(size):
                s.y[s.members[j]] = s.x[s.members[j]]


@helper
def step(g, s, temperature):
    """One sample."""
    s.clock[SAMPLE] += 1
    sample = s.clock[SAMPLE]
    key = mixed(s.streams[4] + U(sample) * U(0x9E3779B97F4A7C15))
    propagate(g, s, key)
    for i in g.free:
        if s.fixed[i] == 0 and s.seen[i] != sample:
            size, factors = gather(g, s, i, key, sample)
            solve(g, s, size, factors, temperature)
    for i in g.free:
        if s.fixed[i] == 0:
            s.x[i] = s.y[i]
        else:
            s.y[i] = s.x[i]


@helper
def advance(g, s, samples, temperature):
    """So many samples; counts by orbit are added up."""
    for _ in range(samples):
        step(g, s, temperature)
        s.sums[0, :] = 0.0
        for i in g.free:
            s.sums[0, g.orbit[i]] += s.x[i]
        for o in range(s.sums.shape[1]):
            s.sums[1, o] += s.sums[0, o]
            s.sums[2, o] += s.sums[0, o] * s.sums[0, o]
    s.clock[UPDATES] += samples * g.free.shape[0]
