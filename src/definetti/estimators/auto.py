"""The default: per variable the quietest of orbit, conditional and control, by estimated asymptotic variance.

The smallest of several noisy variances is too small, and for rare events it goes with the smallest estimate. So the
choice for a fold of batches is made on the other batches (`control.folds`), where β is fitted too: what is reported was
not looked at when choosing. `orbit` stays unless another is clearly better; all values of a variable are treated
alike, so that they add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from definetti.diagnose import MANY_CHAINS, weighted_mean
from definetti.estimators import orbit
from definetti.estimators.control import Fit, fits
from definetti.estimators.pairs import halved
from definetti.estimators.regression import apply
from definetti.estimators.spread import outside_variance
from definetti.estimators.streams import Streams, streams
from definetti.estimators.values import CONDITIONAL, CONTROL, ORBIT, Estimates
from definetti.samplers.draws import Draws

CLEARLY = 1.25  # times smaller must a variance be to leave `orbit`
BETTER = 1.1  # and to prefer `control` to `conditional`
SAME = 1e-12
FEWEST = 20  # batches of all chains to choose by


def estimate(draws: Draws) -> Estimates:
    if draws.g is None or draws.f.shape[0] * draws.f.shape[1] < FEWEST:
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
