"""Distinct rows of integer matrices, packed into one integer per row where they fit, and hashes of integers."""

from __future__ import annotations

import numpy as np

COUNTED = 4  # times as large as their number keys may be to be counted, not sorted


def packed(rows: np.ndarray) -> np.ndarray | None:
    """int64 keys that order rows as their columns do, or None if 62 bits do not hold them."""
    if not len(rows) or not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.int64)
    low, high = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
    key, room = np.zeros(len(rows), dtype=np.int64), 1
    for column, first, last in zip(rows.T, low, high, strict=True):
        room *= last - first + 1
        if room >= 1 << 62:
            return None
        key *= last - first + 1
        key += column - first
    return key


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the distinct rows in order, for each row the number of its like, how many there are of each)."""
    key = packed(rows)
    if key is None:
        values, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        return values, inverse.reshape(-1), counts
    first, inverse = first_and_number(key)
    return rows[first], inverse, np.bincount(inverse, minlength=len(first))


def first_and_number(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where each different key occurs first, in order of keys; for each key the number of its like).

    Keys are nonnegative. Where they are small they are counted, which is much quicker than `np.unique`, which sorts.
    """
    span = int(key.max(initial=0)) + 1
    if span > COUNTED * len(key):
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return first, number.reshape(-1)
    if span == 1:
        return np.arange(min(len(key), 1)), np.zeros(len(key), dtype=np.int64)
    first = np.full(span, -1, dtype=np.int64)
    first[key[::-1]] = np.arange(len(key) - 1, -1, -1)  # of several the last assignment stays, the first occurrence
    present = first >= 0
    return first[present], (np.cumsum(present) - 1)[key]


def increasing(values: np.ndarray) -> np.ndarray:
    """The different values of an array of integers, in order. Since NumPy 2.3 `np.unique` hashes them, and takes sixty
    times as long for millions."""
    found = np.sort(values)
    return found[np.concatenate([[True], found[1:] != found[:-1]])] if len(found) else found


def mix(x: np.ndarray) -> np.ndarray:
    """splitmix64: a well-mixed uint64 for each integer. Sums of such are hashes of multisets."""
    x = np.asarray(x).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
