"""Control variates: mean(F) − βᵀ mean(F − G) over orbit statistics.

F − G has mean exactly 0 when both are taken at the same updates, so every fixed β is unbiased: β = 0 is the orbit
estimator, β = 1 on a statistic's own difference the conditional one. β is fitted on batch means of several chains
pooled, and used on other batches than it was fitted on (`folds`): the spread of the results contains the noise of
the fit.

Joint events have no conditional of their own; the differences of single variables have mean 0 beside them as well,
and serve them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from definetti.diagnose import weighted_mean
from definetti.errors import ModelError
from definetti.estimators.regression import MANY, Coefficients, apply, fit
from definetti.estimators.values import CONTROL, ORBIT, Estimates, Streams, halved, streams
from definetti.samplers.draws import Draws

SAME = 1e-13
FOLDS = 8  # at least 5, so that little is lost from each fit
MOST_ROWS, MOST_ROWS_OF_MANY = 512, 128  # batch means in a fit; more are merged first


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients fitted outside a fold: `inside` marks the fold's own batches."""

    inside: np.ndarray  # bool[B, C]
    coefficients: Coefficients


def estimate(draws: Draws) -> Estimates:
    if draws.g is None:
        raise ModelError("these draws carry no full conditionals; use the estimator 'orbit'")
    half = halved(draws)
    return half.restored(_estimate(half.draws))


def _estimate(draws: Draws) -> Estimates:
    seen = streams(draws)
    batches = seen.paired.copy()
    fitted = np.ones(batches.shape[2], dtype=bool)
    for part in fits(seen):
        batches[part.inside] = apply(part.coefficients, seen.paired[part.inside], seen.d[part.inside])
        fitted &= part.coefficients.fitted
    batches[:, :, ~fitted] = seen.f[:, :, ~fitted]
    certain = seen.known & (np.abs(seen.g - seen.g[:1, :1]) <= SAME).all(axis=(0, 1))
    batches[:, :, certain] = seen.g[:, :, certain]
    method = np.where(fitted, CONTROL, ORBIT).astype(np.int8)
    return Estimates(weighted_mean(batches, draws.lengths), batches, ~fitted, method)


def fits(seen: Streams) -> Iterator[Fit]:
    """One fit per fold, on the other folds' batch means."""
    count, chains, statistics = seen.f.shape
    of = folds(count, chains)
    moves = _moves(seen.f, of)
    rows = of
    if chains >= 5:  # folds are whole chains
        seen = seen.condensed(max(1, (MOST_ROWS if statistics <= MANY else MOST_ROWS_OF_MANY) // chains))
        rows = of[: len(seen.lengths)]
    for k in range(len(moves)):
        outside = rows != k
        number = np.cumsum(outside).reshape(outside.shape) - 1
        both = outside[1:] & outside[:-1]
        after = np.stack([number[:-1][both], number[1:][both]])
        yield Fit(of == k, fit(seen.paired[outside], seen.d[outside], after, seen.known, seen.groups, moves[k]))


def folds(batches: int, chains: int) -> np.ndarray:
    """int64[batches, chains]: the fold of each batch. Whole chains where there are 5 or more, else stretches of chains.

    What is fitted or chosen on the other folds is independent, or nearly so, of the batches it is used on: their mean
    stays unbiased, and the spread of the results is an honest error that contains the noise of the fit.
    """
    if chains >= 5:
        return np.broadcast_to(np.arange(chains) % min(FOLDS, chains), (batches, chains))
    stretches = min(-(-FOLDS // chains), batches)
    return np.arange(chains)[None] * stretches + (np.arange(batches) * stretches // max(batches, 1))[:, None]


def _moves(f: np.ndarray, of: np.ndarray) -> np.ndarray:
    """int64[folds, K]: how often F changed from one batch of a chain to the next, both outside the fold."""
    count = int(of.max(initial=0)) + 1
    own = np.zeros((count, f.shape[2]), dtype=np.int64)  # changes with either end in the fold
    total = np.zeros(f.shape[2], dtype=np.int64)
    for c in range(f.shape[1]):
        changed = f[1:, c] != f[:-1, c]
        total += changed.sum(axis=0)
        for k in np.unique(of[:, c]).tolist():
            own[k] += changed[(of[1:, c] == k) | (of[:-1, c] == k)].sum(axis=0)
    return total - own
