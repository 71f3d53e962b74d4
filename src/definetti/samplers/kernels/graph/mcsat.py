"""MC-SAT on factor graphs: slices decided on demand, propagation, and uniform solutions of what is left.

A slice draws a level uniformly below the weight that each factor has in the current state, and allows the entries of
its table that reach it: a satisfied formula is kept with probability 1 - exp(-|w|). The level is a draw keyed by sample
and factor, so that no slice is stored and only factors at variables still open are looked at. What stays open after
propagation falls into components. One of few assignments is drawn uniformly from the list of its solutions, a larger
one from a decision diagram that counts them: a layer for each variable, in the order in which they were found, where
assignments are one node that agree on what the factors still to come can see. Both leave the distribution alone
exactly. Where the diagram gets too large SampleSAT looks for a solution: that is only nearly uniform, and such samples
are counted. Random choices are made in `level`, `uniform`, `pick` and `branch` alone. Nothing else depends on the order
of variables, values and factors (propagation ends the same in any order, a draw from all solutions has no order, ties
are broken at random): a step commutes with symmetries.
"""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.graph.components import index_factors, open_value, pick, satisfied
from definetti.samplers.kernels.graph.sample_sat import sample_sat
from definetti.samplers.kernels.rng import UNIT, mixed, uniform

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
ROOM = 1024  # entries of a table that propagation looks through; assignments of a component that are listed
NODES = 1 << 14  # of a decision diagram
FEWER = 32  # so much smaller are those of a chain some component of which was too large anyway
PLACES = 32749  # of the table by which nodes are found: a prime number
KEY_BITS = 62
SAMPLE, FAILED, LARGEST, UPDATES, WALKED, ROUGH = 0, 1, 2, 3, 4, 5  # places of the clock
# `_nrt=False`: counting references took half of the time. Each level of calls is compiled once more: so few are left.
helper = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(inline="always", error_model="numpy", _nrt=False)


@inlined
def level(key, item, weight):
    """A draw from (0, weight] keyed by the sample (in `key`) and the factor: the same whenever it is asked for."""
    return float((mixed(key + U(item) * GOLDEN) >> U(11)) + U(1)) * UNIT * weight


@helper
def branch(streams, counts, to, low, high):
    """One of the edges low to high of a node, by the number of solutions behind each."""
    total, taken = 0.0, low
    for e in range(low, high):
        total += counts[to[e]]
    part, reached = uniform(streams) * total, 0.0
    for e in range(low, high):
        if counts[to[e]] > 0.0:
            taken = e
            reached += counts[to[e]]
            if part < reached:
                break
    return taken


@inlined
def widened(g, s, v, step, count):
    """The entries in `room`, once for every open value of one more variable; how many there are then."""
    more = 0
    for a in range(g.literal[v], g.literal[v + 1]):
        if s.open[a] != 0:
            more += count
            for m in range(count):
                s.room[more + m] = s.room[m] + step * (a - g.literal[v])
    for m in range(more):
        s.room[m] = s.room[m + count]
    return more


@inlined
def surveyed(g, s, r):
    """Of a factor: how many of its variables are open, the first of these, what a step of it adds, the place of the
    entry with all open variables at 0, and of the current entry."""
    shape = g.records[r + 1]
    base, now, opens, first, width = g.shapes[shape + 1], g.shapes[shape + 1], 0, -1, 0
    for j in range(g.shapes[shape] - 1, -1, -1):
        v, step = g.records[r + 2 + j], g.shapes[shape + 2 + j]
        now += step * s.x[v]
        if s.left[v] > 1:
            opens, first, width = opens + 1, v, step
        else:
            base += step * s.x[v]
    return opens, first, width, base, now


@helper
def restricts(g, s, r, key, base, now):
    """The level of a factor, 0 if it allows all that is open (most do, whatever the draw), and how many of its entries
    are open (0: too many); their places past `base` are in `room`, the first open variable fastest."""
    shape, count, s.room[0] = g.records[r + 1], 1, 0
    for j in range(g.shapes[shape]):
        v = g.records[r + 2 + j]
        if s.left[v] > 1:
            count = widened(g, s, v, g.shapes[shape + 2 + j], count) if count * s.left[v] <= ROOM else 0
    cut, least = g.weights[now], 1.0 if count > 0 else 0.0
    for m in range(count):
        least = min(least, g.weights[base + s.room[m]])
    if least < cut:
        cut = level(key, g.records[r], cut)
    return cut if least < cut else 0.0, count


@inlined
def narrow_one(g, s, r, key, top, v, step, base, now):
    """Propagation at a factor of one open variable: its values below the level are closed."""
    first, cut, before = g.literal[v], g.weights[now], s.left[v]
    for a in range(first, g.literal[v + 1]):
        here = g.weights[base + step * (a - first)]
        if s.open[a] != 0 and here < cut and here < level(key, g.records[r], cut):
            s.open[a] = 0
            s.left[v] -= 1
    if s.left[v] < before:
        s.members[top] = v
        top += 1
    return top


@inlined
def narrow_several(g, s, r, key, top, base, now):
    """Propagation at a factor: values without an allowed entry are closed, their variables put into the queue."""
    cut, count = restricts(g, s, r, key, base, now)
    shape, step = g.records[r + 1], 1
    for j in range(g.shapes[shape] if cut > 0.0 else 0):
        v = g.records[r + 2 + j]
        before, at = s.left[v], 0
        for a in range(g.literal[v], g.literal[v + 1] if before > 1 and count > 0 else g.literal[v]):
            if s.open[a] != 0:
                best = 0.0
                for m in range(at * step, count, before * step):
                    for q in range(m, m + step):
                        best = max(best, g.weights[base + s.room[q]])
                if best < cut:
                    s.open[a] = 0
                    s.left[v] -= 1
                at += 1
        if s.left[v] < before:
            s.members[top] = v
            top += 1
        step *= before
    return top


@helper
def propagate(g, s, key):
    """Close what the factors of one variable alone close, then what follows."""
    for i in g.free:
        first = g.literal[i]
        cut = level(key, -1 - i, g.own[first + s.x[i]])
        s.left[i], s.place[i] = 0, -1
        for a in range(first, g.literal[i + 1]):
            s.open[a] = g.own[a] >= cut
            s.left[i] += s.open[a]
    top, at, initial = 0, 0, len(g.free)
    while at < initial + top:
        v = g.free[at] if at < initial else s.members[at - initial]
        if at >= initial or s.left[v] > 1:
            r = g.start[v]
            while r < g.start[v + 1]:
                opens, w, step, base, now = surveyed(g, s, r)
                if opens == 1:
                    top = narrow_one(g, s, r, key, top, w, step, base, now)
                elif opens > 1:
                    top = narrow_several(g, s, r, key, top, base, now)
                r += 2 + g.shapes[g.records[r + 1]]
        at += 1


@helper
def gather(g, s, first, key):
    """The component of an open variable: how many variables, and factors (more than `active` holds: too many)."""
    s.members[0], s.place[first] = first, 0
    size, factors, at = 1, 0, 0
    while at < size:
        v, at = s.members[at], at + 1
        r = g.start[v]
        while r < g.start[v + 1]:
            after = r + 2 + g.shapes[g.records[r + 1]]
            opens, foremost, _, base, now = surveyed(g, s, r)
            cut = restricts(g, s, r, key, base, now)[0] if opens > 1 else 0.0  # one alone has been narrowed
            if cut > 0.0:
                for k in range(r + 2, after):
                    w = g.records[k]
                    if s.left[w] > 1 and s.place[w] < 0:
                        s.members[size], s.place[w] = w, size
                        size += 1
                if foremost == v:  # met at each of its variables, a factor is noted at one
                    if factors < len(s.active):
                        s.active[factors], s.levels[factors] = r, cut
                    factors += 1
            r = after
    return size, factors


@helper
def solve_exactly(g, s, size, factors, assignments):
    """One of the solutions of a small component, each with the same chance."""
    found = 0
    for j in range(size):
        s.y[s.members[j]] = open_value(g, s, s.members[j], 0)
    for code in range(assignments):
        for a in range(factors):
            if not satisfied(g, s, a):
                break
        else:
            s.room[found] = code
            found += 1
        for j in range(size):  # on to the next assignment, the first variable fastest
            v = s.members[j]
            a = g.literal[v] + s.y[v] + 1
            while a < g.literal[v + 1] and s.open[a] == 0:
                a += 1
            if a < g.literal[v + 1]:
                s.y[v] = a - g.literal[v]
                break
            s.y[v] = open_value(g, s, v, 0)
    code = s.room[pick(s.streams, np.int64(found))]
    for j in range(size):
        v = s.members[j]
        s.y[v] = open_value(g, s, v, code % s.left[v])
        code //= s.left[v]


@helper
def last_uses(g, s, size, factors):
    """Of each factor the last of its variables, of each variable the last that it shares a factor with (by place); how
    many bits a value needs."""
    index_factors(g, s, size, factors)
    bits = 1
    for a in range(factors):
        r, at = s.active[a], -1
        for k in range(r + 2, r + 2 + g.shapes[g.records[r + 1]]):
            if s.left[g.records[k]] > 1:
                at = max(at, s.place[g.records[k]])
        s.last[a] = at
    for j in range(size):
        v, s.leaves[j] = s.members[j], j
        for k in range(s.starts[j], s.starts[j + 1]):
            s.leaves[j] = max(s.leaves[j], s.last[s.touching[k]])
        while g.literal[v + 1] - g.literal[v] > 1 << bits:
            bits += 1
    return bits


@inlined
def allowed(g, s, j):
    """Whether the factors whose last variable is the j-th are satisfied."""
    fine = True
    for k in range(s.starts[j], s.starts[j + 1]):
        if fine and s.last[s.touching[k]] == j:
            fine = satisfied(g, s, s.touching[k])
    return fine


@inlined
def node_of(s, key, first, top):
    """The node of the layer under way (from `first` on) that has this key, a new one if there is none."""
    at = key % PLACES
    while s.table[at] >= 0 and s.keys[s.table[at]] != key:
        at = at + 1 if at + 1 < PLACES else 0
    if s.table[at] < 0:
        s.table[at], s.keys[top], s.found[top] = top, key, at
    return s.table[at]


@inlined
def layer(g, s, j, first, stop, edge, fronts, bits, kept, most):
    """The nodes after the j-th variable, from those before it (first to stop): how many there are, and edges. A key has
    the values of the variables that are still needed, in fields of so many bits; `kept` are the bits of those that are
    needed after this one. More than `most` nodes: too many."""
    top, v = stop, s.members[j]
    for node in range(first, stop):
        for q in range(fronts):
            i = s.front[q]
            s.y[s.members[i]] = (s.keys[node] >> s.field[i]) & ((1 << bits) - 1)
        s.edges[node] = edge
        for a in range(g.literal[v], g.literal[v + 1]):
            if s.open[a] != 0 and top < most and edge < len(s.to):
                value = a - g.literal[v]
                s.y[v] = value
                if allowed(g, s, j):
                    to = node_of(s, (s.keys[node] | (value << s.field[j])) & kept, stop, top)
                    top = max(top, to + 1)
                    s.to[edge], s.value[edge] = to, value
                    edge += 1
    for node in range(stop, top):
        s.table[s.found[node]] = -1
    return top, edge


@helper
def draw_diagram(g, s, size, factors, most):
    """The decision diagram of a component, from its first variable to its last; its number of nodes, 0: too large."""
    bits = last_uses(g, s, size, factors)
    whole = (1 << KEY_BITS) - 1
    first, stop, edge, fronts, used, kept = 0, 1, 0, 0, 0, whole
    s.keys[0] = 0
    for j in range(size):
        field = 0
        while used & (1 << field) != 0:
            field += bits
        if field + bits > KEY_BITS:
            return 0
        s.field[j], used = field, used | (1 << field)
        s.front[fronts] = j
        after, kept = 0, 0
        for q in range(fronts + 1):  # those that a later factor has
            i = s.front[q]
            if s.leaves[i] > j:
                kept |= ((1 << bits) - 1) << s.field[i]
        top, edge = layer(g, s, j, first, stop, edge, fronts, bits, kept, most)
        if top >= most or edge >= len(s.to):
            return 0
        for q in range(fronts + 1):
            i = s.front[q]
            if s.leaves[i] > j:
                s.front[after] = i
                after += 1
            else:
                used &= ~(1 << s.field[i])
        first, stop, fronts = stop, top, after
    s.edges[first] = edge
    return stop


@helper
def solve_by_counting(g, s, size, factors):
    """One of the solutions of a component, each with the same chance; says if its diagram was small enough."""
    most = len(s.keys) if s.clock[WALKED] == 0 else len(s.keys) // FEWER
    nodes = draw_diagram(g, s, size, factors, most)
    if nodes == 0:
        return False
    s.counts[nodes - 1] = 1.0
    for node in range(nodes - 2, -1, -1):
        s.counts[node] = 0.0
        for e in range(s.edges[node], s.edges[node + 1]):
            s.counts[node] += s.counts[s.to[e]]
    if not s.counts[0] < 1e300:
        return False
    node = 0
    for j in range(size):
        e = branch(s.streams, s.counts, s.to, s.edges[node], s.edges[node + 1])
        s.y[s.members[j]], node = s.value[e], s.to[e]
    return True


@inlined
def solve(g, s, size, factors, temperature):
    """The next values of one component."""
    s.clock[LARGEST] = max(s.clock[LARGEST], size)
    assignments = 1
    for j in range(size):
        assignments = min(assignments * s.left[s.members[j]], ROOM + 1)
    if factors == 0:
        s.y[s.members[0]] = open_value(g, s, s.members[0], pick(s.streams, np.int64(s.left[s.members[0]])))
    elif factors <= len(s.active) and assignments <= ROOM:
        solve_exactly(g, s, size, factors, np.int64(assignments))
    elif factors > len(s.active) or not solve_by_counting(g, s, size, factors):
        s.clock[WALKED] += 1
        if factors > len(s.active) or not sample_sat(g, s, size, factors, temperature):
            s.clock[FAILED] += 1
            for j in range(size):
                s.y[s.members[j]] = s.x[s.members[j]]


@inlined
def step(g, s, temperature):
    """One sample."""
    s.clock[SAMPLE] += 1
    key, walked = mixed(s.streams[4] + U(s.clock[SAMPLE]) * GOLDEN), s.clock[WALKED]
    propagate(g, s, key)
    for i in g.free:
        if s.left[i] > 1 and s.place[i] < 0:
            size, factors = gather(g, s, np.int64(i), key)
            solve(g, s, size, factors, temperature)
    s.clock[ROUGH] += s.clock[WALKED] > walked
    for i in g.free:  # both are equal where nothing was open
        s.x[i] = s.y[i]


@helper
def advance(g, s, samples, temperature, folded):
    """So many samples; if they are to be folded, counts of literals are added up."""
    for _ in range(samples):
        step(g, s, temperature)
        if folded:
            for i in g.free:
                s.sums[0, g.cell[g.literal[i] + s.x[i]]] += 1.0
            for o in range(s.sums.shape[1]):
                s.sums[1, o] += s.sums[0, o]
                s.sums[2, o] += s.sums[0, o] * s.sums[0, o]
                s.sums[0, o] = 0.0
    s.clock[UPDATES] += samples * len(g.free)
