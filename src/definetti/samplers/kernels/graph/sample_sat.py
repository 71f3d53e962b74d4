"""SampleSAT (Wei, Erenrich, Selman): nearly uniform solutions of a component whose decision diagram is too large."""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.graph.components import index_factors, open_value, pick, satisfied
from definetti.samplers.kernels.rng import uniform

helper = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(inline="always", error_model="numpy", _nrt=False)


@inlined
def another(g, s, v):
    """An open value of a variable other than the one it has, each with the same chance."""
    number, own = pick(s.streams, np.int64(s.left[v]) - 1), 0
    for a in range(g.literal[v], g.literal[v] + s.y[v]):
        own += s.open[a]
    return open_value(g, s, v, number + (number >= own))


@helper
def worse(g, s, v, value):
    """By how much the number of violated factors grows if a variable takes this value."""
    j, kept, change = s.place[v], s.y[v], 0
    for k in range(s.starts[j], s.starts[j + 1]):
        change += satisfied(g, s, s.touching[k])
    s.y[v] = value
    for k in range(s.starts[j], s.starts[j + 1]):
        change -= satisfied(g, s, s.touching[k])
    s.y[v] = kept
    return change


@helper
def put(g, s, v, value, count):
    """Gives a variable a value and keeps the list of violated factors; returns its length."""
    j, s.y[v] = s.place[v], value
    for k in range(s.starts[j], s.starts[j + 1]):
        a = s.touching[k]
        at, legal = s.bad[1, a], satisfied(g, s, a)
        if legal and at >= 0:
            count -= 1
            s.bad[0, at] = s.bad[0, count]
            s.bad[1, s.bad[0, at]] = at
            s.bad[1, a] = -1
        elif not legal and at < 0:
            s.bad[0, count], s.bad[1, a] = a, count
            count += 1
    return count


@inlined
def walk_step(g, s, count):
    """A WalkSAT move at a random violated factor: any or the best change of a variable, ties broken at random."""
    r = s.active[s.bad[0, pick(s.streams, np.int64(count))]]
    chosen, taken, best, ties, noise = 0, 0, 1 << 30, 0, uniform(s.streams) < 0.5
    for k in range(r + 2, r + 2 + g.shapes[g.records[r + 1]]):
        v = np.int64(g.records[k])
        for value in range(g.literal[v + 1] - g.literal[v] if s.left[v] > 1 else 0):
            if value != s.y[v] and s.open[g.literal[v] + value] != 0:
                cost = 0 if noise else worse(g, s, v, np.int64(value))
                ties = ties + 1 if cost == best else 1 if cost < best else ties
                if cost < best or (cost == best and pick(s.streams, np.int64(ties)) == 0):
                    chosen, taken, best = v, value, cost
    return put(g, s, np.int64(chosen), np.int64(taken), np.int64(count))


@helper
def sample_sat(g, s, size, factors, temperature):
    """SampleSAT (Wei, Erenrich, Selman) from a random assignment, then a walk among solutions; says if it found one."""
    index_factors(g, s, size, factors)
    count = 0
    for j in range(size):
        v = s.members[j]
        s.y[v] = open_value(g, s, v, pick(s.streams, np.int64(s.left[v])))
    for a in range(factors):
        s.bad[1, a] = -1
        if not satisfied(g, s, a):
            s.bad[0, count], s.bad[1, a] = a, count
            count += 1
    for _ in range(2000 + 100 * size):
        if count == 0:
            break
        if uniform(s.streams) < 0.5:
            v = s.members[pick(s.streams, size)]
            value = np.int64(another(g, s, v))
            change = worse(g, s, v, value)
            if change <= 0 or uniform(s.streams) < np.exp(-change / temperature):
                count = put(g, s, v, value, np.int64(count))
        else:
            count = walk_step(g, s, count)
    for _ in range(10 * size if count == 0 else 0):  # leaves the uniform distribution over solutions as it is
        v = s.members[pick(s.streams, size)]
        value = np.int64(another(g, s, v))
        if worse(g, s, v, value) == 0:
            s.y[v] = value
    return count == 0
