"""Scan orders: one row per sweep, shared by all chains, from a stream of their own."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def next_word(stream):
    """xoshiro256++ (Blackman and Vigna), period 2^256 - 1."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    total = s0 + s3
    word = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    stream[0], stream[1], stream[2] = s0, s1, s2 ^ shifted
    stream[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return word


@njit(nogil=True, cache=True)
def below(stream, bound):
    """A uniform integer below `bound` < 2^32, without bias (Lemire's multiplication, with his rejection)."""
    limit = np.uint64(bound)
    product = (next_word(stream) >> np.uint64(32)) * limit
    low = product & np.uint64(0xFFFFFFFF)
    if low < limit:
        least = (np.uint64(1 << 32) - limit) % limit
        while low < least:
            product = (next_word(stream) >> np.uint64(32)) * limit
            low = product & np.uint64(0xFFFFFFFF)
    return np.int64(product >> np.uint64(32))


@njit(nogil=True, cache=True)
def shuffled(stream, sites, starts, orders):
    """`symmetric`: in each row the orbits sites[starts[k]:starts[k + 1]] one after the other, each in a fresh uniformly
    random order (Fisher and Yates)."""
    for s in range(orders.shape[0]):
        for k in range(starts.shape[0] - 1):
            first = starts[k]
            orders[s, first] = sites[first]
            for q in range(first + 1, starts[k + 1]):
                other = first + below(stream, q - first + 1)
                orders[s, q] = orders[s, other]
                orders[s, other] = sites[q]


@njit(nogil=True, cache=True)
def with_replacement(stream, sites, orders):
    """`random`: each entry is a site drawn uniformly, the paper's scan."""
    for s in range(orders.shape[0]):
        for q in range(orders.shape[1]):
            orders[s, q] = sites[below(stream, sites.shape[0])]
