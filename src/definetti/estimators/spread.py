"""Asymptotic variances outside each fold, for choosing between estimators: many folds and statistics at once.

By the rule of `diagnose.standard_error` (the finest level of merging where neighbouring batch means are nearly
uncorrelated, what is left corrected for), as sums over batches: those outside a fold are a product with a matrix of
zeros and ones.
"""

from __future__ import annotations

import numpy as np

from definetti.diagnose import CORRELATION, FEWEST_MERGED
from definetti.estimators.regression import cross

TINY = 1e-300


def outside_variance(batches: np.ndarray, lengths: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """float64[folds, statistics]: the squared standard error of the mean of batches [B, C, K] that are `outside`
    [folds, B, C]."""
    found = np.full((len(outside), batches.shape[2]), np.nan)
    batches = batches - batches.mean(axis=(0, 1))
    weight = outside.astype(float)
    while True:
        count, chains = batches.shape[:2]
        last = (count // 2) * chains < FEWEST_MERGED or count < 2
        variance, rho, known = _level(batches, weight, last)
        take = np.isnan(found) & (last | (np.abs(rho) <= CORRELATION))
        error = variance * (1.0 + 2.0 * (1.0 - 1.0 / count) * rho) / known
        found[take] = error[take]
        if last or not np.isnan(found).any():
            return found
        one, two = slice(0, count - 1, 2), slice(1, count, 2)  # an odd batch at the end is left out
        share = (lengths[one] / (lengths[one] + lengths[two]))[:, None, None]
        batches = batches[two] + share * (batches[one] - batches[two])
        lengths = lengths[one] + lengths[two]
        weight = weight[:, one] * weight[:, two]  # both parts are outside


def _level(batches: np.ndarray, weight: np.ndarray, last: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variance of batch means, their correlation with the next (around the mean, made unbiased as in `diagnose`), and
    how many there are, each [folds, statistics] or [folds, 1]."""
    folds, statistics = len(weight), batches.shape[2]

    def total(w: np.ndarray, x: np.ndarray) -> np.ndarray:
        return cross(w.reshape(folds, -1).T, x.reshape(len(x) * x.shape[1], statistics))

    known = weight.sum(axis=(1, 2))[:, None]
    mean = total(weight, batches) / np.maximum(known, 1.0)
    variance = np.maximum(total(weight, batches**2) - known * mean**2, 0.0) / np.maximum(known - 1.0, 1.0)
    if last:
        return variance, np.zeros_like(variance), known
    both = weight[:, 1:] * weight[:, :-1]
    pairs = both.sum(axis=(1, 2))[:, None]
    products = total(both, batches[1:] * batches[:-1]) - mean * total(both, batches[1:] + batches[:-1])
    rho = products / np.maximum(pairs, 1.0) + mean**2 + variance / np.maximum(known, 1.0)
    rho = np.where(variance > TINY, rho / np.where(variance > TINY, variance, 1.0), 0.0)
    return variance, np.clip(rho, -1.0, 1.0), known
