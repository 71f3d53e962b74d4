"""Exact bias, variance and mean squared error of the standard and the orbit estimator.

f is the indicator of an event in a state, F = Πf its mean over the orbit of the state. The standard estimator is the
mean of f over the draws, the orbit estimator that of F. Draws are independent, or N states of a chain after a burn-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_DENSE = 2048  # states of a linear system that is solved directly though its matrix is sparse


@dataclass(frozen=True, eq=False)
class Chain:
    """A transition matrix with its stationary distribution."""

    matrix: Any  # scipy.sparse.csr_array or np.ndarray
    stationary: np.ndarray
    reversible: bool

    def centred(self, values: np.ndarray) -> np.ndarray:
        return values - self.stationary @ values


def draw_variance(chain: Chain, values: np.ndarray) -> np.ndarray:
    """float64[q]: Var of values[S, q] under the stationary distribution: that of one independent draw."""
    return chain.stationary @ chain.centred(values) ** 2


def asymptotic_variance(chain: Chain, values: np.ndarray) -> np.ndarray:
    """float64[q]: lim N · Var(mean of N steps) = 2 ⟨f, g⟩ − ⟨f, f⟩ with (1 − Q) g = f, f centred."""
    centred = chain.centred(values)
    solution = _solved(chain, centred)
    return np.asarray(chain.stationary @ (centred * (2.0 * solution - centred)))


def _solved(chain: Chain, centred: np.ndarray) -> np.ndarray:
    """g of mean 0 with (1 − Q) g = f."""
    matrix, pi = chain.matrix, chain.stationary
    if isinstance(matrix, np.ndarray) or len(pi) <= MOST_DENSE or not chain.reversible:
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return np.linalg.solve(np.eye(len(pi)) - dense + pi, centred)
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import LinearOperator, cg

    root = np.sqrt(pi)
    symmetric = (diags_array(root) @ matrix @ diags_array(1.0 / root)).tocsr()
    shape = (len(root), len(root))
    operator = LinearOperator(shape, matvec=lambda x: x - symmetric @ x + root * (root @ x), dtype=float)
    columns = [cg(operator, root * f, rtol=1e-11, maxiter=100_000)[0] / root for f in centred.T]
    return np.stack(columns, axis=1)


def worst_bias(chain: Chain, values: np.ndarray, times: Sequence[int]) -> np.ndarray:
    """float64[times, q]: the largest |E f(X_t) − P(f)| over all starts, at ascending times."""
    now, current, out = 0, chain.centred(values), []
    powers: dict[int, Any] = {}
    for time in times:
        current, now = _advanced(chain.matrix, current, time - now, powers), time
        out.append(np.abs(current).max(axis=0))
    return np.array(out)


def _advanced(matrix: Any, values: np.ndarray, steps: int, powers: dict[int, Any]) -> np.ndarray:
    """Q^steps f; small chains take equal strides at once."""
    if steps > 8 and matrix.shape[0] <= MOST_DENSE // 2:
        if steps not in powers:
            dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
            powers[steps] = np.linalg.matrix_power(dense, steps)
        return powers[steps] @ values
    for _ in range(steps):
        values = matrix @ values
    return values


def mean_squared_error(chain: Chain, values: np.ndarray, draws: int, burn_in: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean over `draws` steps after `burn_in`: float64[q] in stationarity, and from the worst start.

    With s and v the first two moments, by start, of the sum of the next n centred values:
    s ← Q (f + s), v ← Q (f² + 2 f s + v).
    """
    f = chain.centred(values)
    s, v = np.zeros_like(f), np.zeros_like(f)
    for _ in range(draws):
        s, v = chain.matrix @ (f + s), chain.matrix @ (f**2 + 2.0 * f * s + v)
    late = _advanced(chain.matrix, v, burn_in, {})
    return chain.stationary @ v / draws**2, late.max(axis=0) / draws**2
