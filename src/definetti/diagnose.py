"""Standard errors, R-hat and effective sizes from batch means of several chains. A leaf: it knows arrays, no models.

All functions take arrays [batches, chains, statistics]. A statistic that never moved has no R-hat and no effective size: it is
*constant*, which is said by `None` downstream and never by NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MANY_CHAINS = 32  # with so many chains, the spread between them gives the standard error by itself
FEWEST_MEANS = 8  # means (chains, or batches of all chains) below which no standard error is given


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Per statistic: standard error, split R-hat (infinite: chains that never move stand apart), effective size.

    NaN = cannot be told. `constant`: it never moved; `frozen`: no update could have moved it.
    """

    mcse: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    constant: np.ndarray
    frozen: np.ndarray


def weighted_mean(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The mean over batches and chains; batches that are unknown (NaN) are left out."""
    if not np.isnan(batches).any():
        return (
            np.average(batches.mean(axis=1), axis=0, weights=lengths)
            if len(lengths)
            else np.full(batches.shape[2], np.nan)
        )
    weights = np.broadcast_to(lengths[:, None, None], batches.shape)
    known = ~np.isnan(batches)
    total = np.where(known, weights, 0).sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, batches * weights, 0.0).sum(axis=(0, 1)) / total


def standard_error(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Replicated batch means: the spread of independent, or nearly independent, means around their mean."""
    means = _nearly_independent(batches, lengths)
    known = (~np.isnan(means)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.nansum(means, axis=0) / known
        spread = np.nansum((means - centre) ** 2, axis=0)
        error = np.sqrt(spread / (known * (known - 1.0)))
    return np.where(known >= FEWEST_MEANS, error, np.nan)


def _nearly_independent(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """float64[means, statistics]: chain means where chains are many, otherwise the batch means of all chains."""
    count, chains, statistics = batches.shape
    if chains >= MANY_CHAINS:
        if not np.isnan(batches).any():
            return np.average(batches, axis=0, weights=lengths)
        weights = np.broadcast_to(lengths[:, None, None], batches.shape)
        known = ~np.isnan(batches)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(known, batches * weights, 0.0).sum(axis=0) / np.where(known, weights, 0).sum(axis=0)
    return batches.reshape(count * chains, statistics)


def split_rhat(
    batches: np.ndarray, lengths: np.ndarray, squares: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split R-hat, and the variance of single draws.

    Each chain is cut into halves; the halves' means are compared with the spread of single draws within them. `squares` are
    means of F², perhaps of few draws: a rare event may be missing from them altogether. But F is a mean of `sizes` indicators, so F² is
    at least F / size, which is known from all draws.
    """
    count = len(lengths)
    if count < 4:
        nothing = np.full(batches.shape[2], np.nan)
        return nothing, nothing
    half = count // 2
    parts = [slice(0, half), slice(half, count)]
    means = np.concatenate([np.average(batches[p], axis=0, weights=lengths[p]) for p in parts])
    square = np.maximum(squares.mean(axis=(0, 1)), means.mean(axis=0) / sizes)
    within = square - (means**2).mean(axis=0)
    within[within < 1e-14] = 0.0
    size = lengths[:half].sum()
    total = (size - 1) / size * within + means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = np.sqrt(total / within)
    rhat[(within == 0) & (total < 1e-14)] = np.nan
    return rhat, total


def diagnose(
    batches: np.ndarray, lengths: np.ndarray, f: np.ndarray, squares: np.ndarray, sizes: np.ndarray
) -> Diagnosis:
    """Of an estimate made from `batches`; R-hat always looks at the draws themselves, F."""
    mcse = standard_error(batches, lengths)
    rhat, variance = split_rhat(f, lengths, squares, sizes)
    constant = (f == f[:1, :1]).all(axis=(0, 1)) if f.size else np.ones(f.shape[2], dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        ess = variance / mcse**2
    ess[~np.isfinite(ess)] = np.nan
    return Diagnosis(mcse, rhat, ess, constant, np.zeros_like(constant))
