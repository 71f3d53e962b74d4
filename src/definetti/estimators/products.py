"""Products of tall matrices on one thread.

BLAS starts threads for products of any size, and on a busy machine they wait for each other longer than the work
takes. Pieces below its threshold stay on the caller's thread and cost as little.
"""

from __future__ import annotations

import numpy as np

PIECE = 1 << 18  # multiplications; OpenBLAS works on one thread up to here


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """aᵀb of a[n, p] and b[n, q]."""
    a = np.ascontiguousarray(a.T)
    out = np.empty((len(a), b.shape[1]))
    wide = max(1, min(b.shape[1], PIECE // max(1, min(len(a), 64) * a.shape[1])))
    tall = max(1, PIECE // max(1, wide * a.shape[1]))
    for i in range(0, len(a), tall):
        for j in range(0, b.shape[1], wide):
            np.matmul(a[i : i + tall], b[:, j : j + wide], out=out[i : i + tall, j : j + wide])
    return out
