"""Random numbers: xoshiro256++ (Blackman and Vigna; period 2^256 - 1), seeded by SplitMix64 (Steele, Lea, Flood).

A stream is four words of state. Kernels that keep it in registers, or have one stream per lane, loop over `next_word`.
"""

from __future__ import annotations

import numpy as np

from definetti.samplers.kernels.compiling import njit

U = np.uint64
UNIT = 2.0**-53
WORD = (1 << 64) - 1
inlined = njit(inline="always", nogil=True, error_model="numpy", _nrt=False)
helper = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)


@inlined
def next_word(s0, s1, s2, s3):
    """A word, and the next state."""
    total = s0 + s3
    word = ((total << U(23)) | (total >> U(41))) + s0
    shifted = s1 << U(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    return word, s0, s1, s2 ^ shifted, (s3 << U(45)) | (s3 >> U(19))


@inlined
def unit(word):
    """A word as a number in [0, 1) of 53 bits."""
    return float(word >> U(11)) * UNIT


@helper
def uniform(stream):
    """A number in [0, 1) from a stream that stands in the first four places of an array."""
    word, stream[0], stream[1], stream[2], stream[3] = next_word(stream[0], stream[1], stream[2], stream[3])
    return unit(word)


@helper
def lane_uniform(streams, lane):
    """A number in [0, 1) from the stream of one lane: a column of `streams`."""
    s0, s1, s2, s3 = streams[0, lane], streams[1, lane], streams[2, lane], streams[3, lane]
    word, streams[0, lane], streams[1, lane], streams[2, lane], streams[3, lane] = next_word(s0, s1, s2, s3)
    return unit(word)


@inlined
def mixed(z):
    """The finaliser of SplitMix64: a well-mixed word for each word."""
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


def splitmix64(state: int) -> tuple[int, int]:
    """(next state, output) of SplitMix64, in Python's integers."""
    state = (state + 0x9E3779B97F4A7C15) & WORD
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return state, z ^ (z >> 31)


def seed_words(seed: int, chain: int) -> np.ndarray:
    """Four words for the stream of a chain, -1 being the scan's: seeds of any size, streams apart by hashing twice."""
    state = 0x6465666E65747469
    for part in (chain + 1, seed, seed >> 64):
        state, out = splitmix64(state ^ (part & WORD))
        state = out
    words = []
    for _ in range(4):
        state, out = splitmix64(state)
        words.append(out)
    return np.array(words, dtype=np.uint64)
