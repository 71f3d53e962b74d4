"""Every update is a sample: how long each variable of a factor graph, and each edge between two, held its value."""

from definetti.samplers.kernels.compiling import njit


@njit(nogil=True, cache=True)
def without_repeats(order, begin, met):
    """Where the longest piece of `order` from `begin` on ends that meets no site twice; `met` remembers by piece."""
    met[0] += 1
    for q in range(begin, order.shape[0]):
        if met[1 + order[q]] == met[0]:
            return q
        met[1 + order[q]] = met[0]
    return order.shape[0]


@njit(nogil=True, cache=True)
def change(place, now, held, since, total):
    """The place takes its other value at sample `now`."""
    if held[place]:
        total[place] += now - since[place]
    held[place] ^= 1
    since[place] = now


@njit(nogil=True, cache=True)
def occupy(order, state, first_edge, edges, held, since, total, time):
    """The updates of a piece that meets no site twice, so that `state` after it has the values that they drew.

    Places behind those of the variables are edges, true where their ends differ: they change with either end.
    """
    for q in range(order.shape[0]):
        i = order[q]
        time[0] += 1
        if state[i] != held[i]:
            change(i, time[0], held, since, total)
            for k in range(first_edge[i], first_edge[i + 1]):
                change(edges[k], time[0], held, since, total)
