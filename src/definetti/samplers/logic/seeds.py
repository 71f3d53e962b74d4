"""Seeds of the relational kernel's random streams."""

from __future__ import annotations

import numpy as np

_MASK = (1 << 64) - 1


def splitmix64(state: int) -> tuple[int, int]:
    """(next state, output) of SplitMix64 (Steele, Lea, Flood), which seeds xoshiro streams."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


def seed_words(seed: int, chain: int) -> np.ndarray:
    """Four words for the stream of a chain, -1 being the scan's: seeds of any size, streams apart by hashing twice."""
    state = 0x6465666E65747469
    for part in (chain + 1, seed, seed >> 64):
        state, out = splitmix64(state ^ (part & _MASK))
        state = out
    words = []
    for _ in range(4):
        state, out = splitmix64(state)
        words.append(out)
    return np.array(words, dtype=np.uint64)
