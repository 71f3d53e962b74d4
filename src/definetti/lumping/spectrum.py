"""Reversibility and spectral gaps of a chain whose stationary distribution is known."""

from __future__ import annotations

from typing import Any

import numpy as np

MOST_DENSE = 512  # states: beyond it the second eigenvalue is found by Lanczos' or Arnoldi's method
ROUNDING = 1e-12
TOLERANCE = 1e-10  # of iterative eigenvalues


def is_reversible(matrix: Any, stationary: np.ndarray) -> bool:
    """Detailed balance, up to rounding."""
    flow = _scaled(matrix, stationary)
    return float(abs(flow - flow.T).max()) < ROUNDING


def _scaled(matrix: Any, rows: np.ndarray, columns: np.ndarray | None = None) -> Any:
    """diag(rows) · matrix · diag(columns)."""
    if isinstance(matrix, np.ndarray):
        return rows[:, None] * matrix * (1.0 if columns is None else columns)
    from scipy.sparse import csr_array, diags_array

    left = diags_array(rows) @ matrix
    return csr_array(left if columns is None else left @ diags_array(columns))


def spectral_gap(matrix: Any, stationary: np.ndarray, reversible: bool) -> float:
    """1 − the largest modulus of an eigenvalue other than the first; 0 where the chain does not reach every state."""
    size = len(stationary)
    if size == 1:
        return 1.0
    if not connected(matrix):
        return 0.0
    second = _second_symmetric(matrix, stationary) if reversible else _second(matrix, stationary)
    return float(min(max(1.0 - second, 0.0), 1.0))


def connected(matrix: Any) -> bool:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    return connected_components(csr_array(matrix), directed=True, connection="strong")[0] == 1


def _second_symmetric(matrix: Any, stationary: np.ndarray) -> float:
    root = np.sqrt(stationary)
    symmetric = _scaled(matrix, root, 1.0 / root)
    symmetric = (symmetric + symmetric.T) / 2
    if len(root) <= MOST_DENSE:
        dense = symmetric if isinstance(symmetric, np.ndarray) else symmetric.toarray()
        return float(np.abs(np.linalg.eigvalsh(dense - np.outer(root, root))).max())
    from scipy.sparse.linalg import LinearOperator, eigsh

    def apply(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        return symmetric @ x - root * (root @ x)

    operator = LinearOperator((len(root), len(root)), matvec=apply, dtype=float)
    start = np.random.default_rng(0).normal(size=len(root))
    found = eigsh(operator, k=1, which="LM", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return float(np.abs(found).max())


def _second(matrix: Any, stationary: np.ndarray) -> float:
    if len(stationary) <= MOST_DENSE:
        dense = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return float(np.abs(np.linalg.eigvals(dense - stationary)).max())
    from scipy.sparse.linalg import LinearOperator, eigs

    def apply(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        return matrix @ x - stationary @ x

    operator = LinearOperator(matrix.shape, matvec=apply, dtype=float)
    start = np.random.default_rng(0).normal(size=len(stationary))
    found = eigs(operator, k=2, which="LM", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return float(np.abs(found).max())


def mixing_bounds(gap: float, stationary: np.ndarray, epsilon: float) -> tuple[float, float] | None:
    """Of a reversible chain: (1/gap − 1) ln(1/2ε) ≤ τ(ε) ≤ ln(1/(ε min π)) / gap (Levin, Peres and Wilmer, ch. 12)."""
    if gap <= ROUNDING:
        return None
    low = max(0.0, (1.0 / gap - 1.0) * np.log(1.0 / (2.0 * epsilon)))
    return float(np.floor(low)), float(np.ceil(np.log(1.0 / (epsilon * stationary.min())) / gap))
