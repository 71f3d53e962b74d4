"""Mixing times, exactly: the first t at which no start is further than ε from the stationary distribution, in total
variation; and that distance as a curve.

The distance from a start never grows, so τ is found by doubling: powers 1, 2, 4, … of the matrix until all starts are
close, then down again along the powers that were kept, with only those starts that are not close yet. Entries are
sums of products of probabilities: nothing cancels, and small probabilities stay exact. A sparse chain with few starts
is stepped instead where that is less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from definetti.errors import TooLarge
from definetti.memory import available_memory

MOST_DOUBLINGS = 40
SPARSE_COST = 30.0  # of a multiplication with a sparse matrix against one of dense ones (measured)
GALLOP = 8  # so few of the starts left: go on with the power that there is instead of squaring it
MOST_DENSE = 1024  # states of a chain whose curve is computed


def mixing_time(
    matrix: Any, stationary: np.ndarray, starts: np.ndarray, epsilon: float, gap: float
) -> int | None:
    """τ(ε) from the worst of these starts; None where it is beyond 2^40 steps."""
    size = len(stationary)
    if 1.0 - stationary[starts].min() <= epsilon:
        return 0
    guess = np.log(1.0 / epsilon) / max(gap, 1e-15) + 1
    sparse = not isinstance(matrix, np.ndarray)
    stepped = SPARSE_COST * len(starts) * matrix.nnz * guess if sparse else np.inf
    if stepped < size**3 * (np.log2(guess) + 1):
        return _stepped(matrix, stationary, starts, epsilon)
    return _doubled(matrix, stationary, starts, epsilon)


def total_variation(rows: np.ndarray, stationary: np.ndarray) -> np.ndarray:
    """Half the sum of |P(x, y) − π(y)|, for rows P(x, ·)."""
    return 0.5 * np.abs(rows - stationary).sum(axis=1)


def _stepped(matrix: Any, stationary: np.ndarray, starts: np.ndarray, epsilon: float) -> int:
    back = matrix.T.tocsr()
    columns = np.zeros((len(stationary), len(starts)))
    columns[starts, np.arange(len(starts))] = 1.0
    steps = 0
    while columns.shape[1]:
        columns = back @ columns
        steps += 1
        far = 0.5 * np.abs(columns - stationary[:, None]).sum(axis=0) > epsilon
        if not far.all():
            columns = np.ascontiguousarray(columns[:, far])
    return steps


def _doubled(matrix: Any, stationary: np.ndarray, starts: np.ndarray, epsilon: float) -> int | None:
    need, have = 12 * 8 * len(stationary) ** 2, 0.8 * available_memory()
    if need > have:
        raise TooLarge("the mixing time", need, have, "use a smaller model", unit="bytes")
    powers = [matrix]
    steps, rows = 0, np.eye(len(stationary))[starts]
    while True:  # `rows` are those of the starts that are still far after `steps`; try as many again as the last power
        further = _times(rows, powers[-1])
        far = total_variation(further, stationary) > epsilon
        if not far.any():
            break
        steps, rows = steps + (1 << (len(powers) - 1)), further[far]
        if GALLOP * len(rows) > len(stationary) or steps >= GALLOP << len(powers):
            if len(powers) > MOST_DOUBLINGS:
                return None
            powers.append(_squared(powers, matrix))
    for k in range(len(powers) - 2, -1, -1):
        further = _times(rows, powers[k])
        far = total_variation(further, stationary) > epsilon
        if far.any():
            steps, rows = steps + (1 << k), further[far]
    return steps + 1


def _times(rows: np.ndarray, power: Any) -> np.ndarray:
    return rows @ power if isinstance(power, np.ndarray) else (power.T @ rows.T).T


def _squared(powers: list[Any], matrix: Any) -> Any:
    """The last power times itself: sparse while few entries are there, by steps of a sparse matrix while these are few."""
    last, size = powers[-1], matrix.shape[0]
    if isinstance(matrix, np.ndarray):
        return last @ last
    if not isinstance(last, np.ndarray):
        if last.nnz < size**2 / (2 * SPARSE_COST):
            return (last @ last).tocsr()
        last = last.toarray()
    steps = 1 << (len(powers) - 1)
    if SPARSE_COST * steps * matrix.nnz >= size**2:
        return last @ last
    for _ in range(steps):
        last = matrix @ last
    return last


def distances(matrix: Any, stationary: np.ndarray, starts: np.ndarray, times: Sequence[int]) -> np.ndarray | None:
    """float64[times]: the distance from the worst start at ascending times; None for chains of many states."""
    if len(stationary) > MOST_DENSE:
        return None
    dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
    rows, now, out, known = np.eye(len(stationary))[starts], 0, [], {}
    for time in times:
        step = time - now
        if step not in known:
            known[step] = np.linalg.matrix_power(dense, step)
        rows, now = rows @ known[step], time
        out.append(total_variation(rows, stationary).max())
    return np.array(out)


def grid(last: int, points: int = 120) -> list[int]:
    """Times from 0 to `last`: every one of them, or equally spaced with the first few."""
    if last <= points:
        return list(range(last + 1))
    stride = -(-last // points)
    return sorted({*range(0, last + stride, stride), 1, 2, 4, 8} - {t for t in (1, 2, 4, 8) if t > stride})
