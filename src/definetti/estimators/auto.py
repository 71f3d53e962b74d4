"""The default: per variable the quietest of orbit, conditional and control, by estimated asymptotic variance.

The smallest of several noisy variances is too small, and for rare events it goes with the smallest estimate. So the
choice for a fold of batches is made on the other batches (`control.folds`), where β is fitted too: what is reported was
not looked at when choosing. `orbit` stays unless another is clearly better; all values of a variable are treated
alike, so that they add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from definetti.diagnose import CORRELATION, FEWEST_MEANS, MANY_CHAINS, weighted_mean
from definetti.estimators.control import Fit, fits
from definetti.estimators.regression import apply, cross
from definetti.estimators.values import CONDITIONAL, CONTROL, ORBIT, Estimates, Streams, halved, streams
from definetti.samplers.draws import Draws

CLEARLY = 1.25  # times smaller must a variance be to leave `orbit`
BETTER = 1.1  # and to prefer `control` to `conditional`
SAME = 1e-12
FEWEST = 20  # batches of all chains to choose by


def estimate(draws: Draws) -> Estimates:
    if draws.g is None or draws.f.shape[0] * draws.f.shape[1] < FEWEST:
        from definetti.estimators import orbit

        return orbit.estimate(draws)
    half = halved(draws)
    return half.restored(_estimate(half.draws))


def _estimate(draws: Draws) -> Estimates:
    seen = streams(draws)
    batches = seen.f.copy()
    votes = np.zeros((CONTROL + 1, batches.shape[2]))
    parts = list(fits(seen))
    for part, choice in zip(parts, _choices(seen, parts), strict=True):
        where, control, conditional = part.inside, choice == CONTROL, choice == CONDITIONAL
        controlled = apply(part.coefficients, seen.paired[where], seen.d[where])
        batches[where] = np.where(control, controlled, np.where(conditional, seen.g[where], seen.f[where]))
        votes[choice, np.arange(len(choice))] += 1
    method = votes.argmax(axis=0).astype(np.int8)
    return Estimates(weighted_mean(batches, draws.lengths), batches, np.zeros(len(method), dtype=bool), method)


def _choices(seen: Streams, parts: Sequence[Fit]) -> list[np.ndarray]:
    """int8[K] per fold: the estimator for its batches, chosen on the others."""
    outside = np.stack([~part.inside for part in parts])
    if outside.shape[2] >= MANY_CHAINS:  # then folds are whole chains, and chains' means say all
        seen, outside = seen.condensed(1), outside[:, :1]
    of_orbit, of_conditional = (outside_variance(x, seen.lengths, outside) for x in (seen.f, seen.g))
    out = []
    for k, part in enumerate(parts):
        rows = int(outside[k].sum())
        lost = rows / np.maximum(rows - part.coefficients.used - 1.0, 1.0)  # the fit's degrees of freedom
        residual = apply(part.coefficients, seen.paired, seen.d)
        of_control = outside_variance(residual, seen.lengths, outside[k : k + 1])[0] * lost
        of_control[~part.coefficients.fitted] = np.inf
        variances = np.stack([of_orbit[k], of_conditional[k], of_control])
        mean = seen.f[outside[k]].mean(axis=0)
        never = _by_group(((mean >= SAME) & (mean <= 1.0 - SAME))[None].astype(float), seen.groups)[0] == 0.0
        out.append(_choose(_by_group(variances, seen.groups), seen.known, never))
    return out


def _choose(variances: np.ndarray, known: np.ndarray, never: np.ndarray) -> np.ndarray:
    """int8[K]: by the variances [3, K] of orbit, conditional and control. `known`: there are conditionals; `never`: it
    was always 0, or always 1."""
    of_orbit, of_conditional, of_control = variances
    choice = np.full(len(known), ORBIT, dtype=np.int8)
    better = known & (CLEARLY * of_conditional < of_orbit)
    better |= (
        known & (of_conditional == 0.0) & ~never
    )  # then of_orbit is 0 only where means of counts are equal by chance
    choice[better] = CONDITIONAL
    best = np.where(better, of_conditional * CLEARLY / BETTER, of_orbit)
    choice[CLEARLY * of_control < best] = CONTROL
    still = (of_orbit == 0.0) & known & (of_conditional > 0.0)
    choice[still & never] = CONDITIONAL  # the conditionals say how rare it is
    return choice


def _by_group(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Each row's sum over the statistics that belong together, for each of them."""
    _, place = np.unique(groups, return_inverse=True)
    return np.stack([np.bincount(place.ravel(), weights=row)[place.ravel()] for row in values])


# --- asymptotic variances outside each fold ---------------------------------------------------------------------------
# By the rule of `diagnose.standard_error` (the finest level of merging where neighbouring batch means are nearly
# uncorrelated, what is left corrected for), as sums over batches: those outside a fold are a product with a matrix of
# zeros and ones, many folds and statistics at once.

TINY = 1e-300


def outside_variance(batches: np.ndarray, lengths: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """float64[folds, statistics]: the squared standard error of the mean of batches [B, C, K] that are `outside`
    [folds, B, C]."""
    found = np.full((len(outside), batches.shape[2]), np.nan)
    batches = batches - batches.mean(axis=(0, 1))
    weight = outside.astype(float)
    while True:
        count, chains = batches.shape[:2]
        last = (count // 2) * chains < FEWEST_MEANS or count < 2
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
