"""Components of what a slice of MC-SAT leaves open: values, factors and where they touch. `mcsat.py` has the whole."""

from __future__ import annotations

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import uniform

helper = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(inline="always", error_model="numpy", _nrt=False)


@helper
def pick(streams, count):
    """A whole number below `count`."""
    return int(uniform(streams) * count)


@inlined
def satisfied(g, s, a):
    """Whether the next state satisfies a component's a-th factor."""
    r = s.active[a]
    shape = g.records[r + 1]
    e = g.shapes[shape + 1]
    for j in range(g.shapes[shape]):
        e += g.shapes[shape + 2 + j] * s.y[g.records[r + 2 + j]]
    return g.weights[e] >= s.levels[a]


@inlined
def open_value(g, s, v, number):
    """The open value of a variable with this number among its open ones."""
    a = g.literal[v]
    while s.open[a] == 0 or number > 0:
        number -= s.open[a]
        a += 1
    return a - g.literal[v]


@inlined
def index_factors(g, s, size, factors):
    """Which factors touch each variable of a component: counted, summed up, then filled in."""
    for j in range(size + 1):
        s.starts[j] = 0
    for a in range(factors):
        r = s.active[a]
        for k in range(r + 2, r + 2 + g.shapes[g.records[r + 1]]):
            if s.left[g.records[k]] > 1:
                s.starts[s.place[g.records[k]]] += 1
    for j in range(size):
        s.starts[j + 1] += s.starts[j]
    for a in range(factors):
        r = s.active[a]
        for k in range(r + 2, r + 2 + g.shapes[g.records[r + 1]]):
            if s.left[g.records[k]] > 1:
                j = s.place[g.records[k]]
                s.starts[j] -= 1
                s.touching[s.starts[j]] = a
