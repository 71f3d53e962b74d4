"""Bounds on the weight of a region from the averages of chains that stay in it.

log Z_m = E_m[log f] + H_m, and for every product q: H_m ≤ −E_m[log q], H_m ≥ Σ_i E_m[h(g_i)] with g_i the full
conditionals (the erasure entropy). With one product and one window for both ends
upper = E_m[log f − log q], lower = upper − E_m[Σ_i KL(g_i ‖ q_i)],
which keeps the noise of the two ends together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ERRORS = 3.0  # by which the ends are moved outwards
BATCHES = 4  # of each chain


@dataclass(frozen=True)
class Bracket:
    """Bounds of log Z of a region, moved outwards by three standard errors; `width` is without these."""

    lower: float
    upper: float
    width: float


def bracket(log_ratio: np.ndarray, divergence: np.ndarray) -> Bracket:
    """From log f − log q at the sweeps' ends and Σ KL(g ‖ q) inside the sweeps, [sweeps, chains]."""
    low = log_ratio - divergence
    width = float(divergence.mean())
    return Bracket(
        float(low.mean()) - ERRORS * standard_error(low),
        float(log_ratio.mean()) + ERRORS * standard_error(log_ratio),
        width,
    )


def standard_error(values: np.ndarray) -> float:
    """Of the mean of [sweeps, chains], from the spread of batches."""
    sweeps, _ = values.shape
    count = min(BATCHES, sweeps)
    cuts = np.arange(count) * sweeps // count
    means = np.add.reduceat(values, cuts, axis=0) / np.diff(cuts, append=sweeps)[:, None]
    if means.size < 2:
        return float("inf")
    error = means.std(ddof=1) / np.sqrt(means.size)
    by_chain = means.mean(axis=0)
    if len(by_chain) >= 4:  # chains that differ: their own spread, if it is larger
        error = max(error, by_chain.std(ddof=1) / np.sqrt(len(by_chain)))
    return float(error)
