"""Scan orders: one row per sweep, shared by all chains, from a stream of their own."""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import next_word


@njit(nogil=True, cache=True, inline="always")
def below(bound, s0, s1, s2, s3):
    """A uniform integer below `bound` < 2^32, without bias (Lemire's multiplication, with his rejection)."""
    limit = np.uint64(bound)
    word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
    product = (word >> np.uint64(32)) * limit
    low = product & np.uint64(0xFFFFFFFF)
    if low < limit:
        least = (np.uint64(1 << 32) - limit) % limit
        while low < least:
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            product = (word >> np.uint64(32)) * limit
            low = product & np.uint64(0xFFFFFFFF)
    return product >> np.uint64(32), s0, s1, s2, s3


@njit(nogil=True, cache=True)
def shuffled(stream, sites, starts, orders):
    """`symmetric`: in each row the orbits sites[starts[k]:starts[k + 1]] one after the other, each in a fresh uniformly
    random order (Fisher and Yates)."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for s in range(orders.shape[0]):
        for k in range(starts.shape[0] - 1):
            first = starts[k]
            orders[s, first] = sites[first]
            for q in range(first + 1, starts[k + 1]):
                other, s0, s1, s2, s3 = below(q - first + 1, s0, s1, s2, s3)
                place = first + np.int64(other)
                orders[s, q] = orders[s, place]
                orders[s, place] = sites[q]
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(nogil=True, cache=True)
def with_replacement(stream, sites, orders):
    """`random`: each entry is a site drawn uniformly, the paper's scan."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for s in range(orders.shape[0]):
        for q in range(orders.shape[1]):
            site, s0, s1, s2, s3 = below(sites.shape[0], s0, s1, s2, s3)
            orders[s, q] = sites[site]
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
