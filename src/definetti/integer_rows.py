"""Distinct rows of integer matrices, packed into one integer per row where they fit, and hashes of integers."""

from __future__ import annotations

import numpy as np


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
    _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return rows[first], inverse, counts


def mix(x: np.ndarray) -> np.ndarray:
    """splitmix64: a well-mixed uint64 for each integer. Sums of such are hashes of multisets."""
    x = np.asarray(x).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
