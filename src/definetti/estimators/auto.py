"""The default: per variable the quietest of orbit, conditional and control, by estimated asymptotic variance.

The smallest of several noisy variances is too small, and for rare events it goes with the smallest estimate. So the
choice for a fold of batches is made on the other batches (`folds.py`), where β is fitted too: what is reported was
not looked at when choosing. `orbit` stays unless another is clearly better; all values of a variable are treated
alike, so that they add up to 1.
"""

from __future__ import annotations

import numpy as np

from definetti.diagnose import MANY_CHAINS, chain_means, standard_error, weighted_mean
from definetti.estimators import orbit
from definetti.estimators.control import Fit, fits
from definetti.estimators.regression import apply
from definetti.estimators.values import CONDITIONAL, CONTROL, ORBIT, Estimates
from definetti.samplers.draws import Draws

CLEARLY = 1.25  # times smaller must a variance be to leave `orbit`
BETTER = 1.1  # and to prefer `control` to `conditional`
SAME = 1e-12
FEWEST = 20  # batches of all chains to choose by


def estimate(draws: Draws) -> Estimates:
    if draws.g is None or draws.f.shape[0] * draws.f.shape[1] < FEWEST:
        return orbit.estimate(draws)
    f, paired, differences = draws.f, draws.paired, draws.differences
    groups = np.arange(f.shape[2]) if draws.groups is None else draws.groups
    known = np.asarray(~np.isnan(draws.g).all(axis=(0, 1)))
    g = np.where(np.isnan(draws.g), f, draws.g)
    batches = f.copy()
    votes = np.zeros((CONTROL + 1, f.shape[2]))
    for part in fits(draws):
        choice = _choose(part, (f, g, paired, differences), draws.lengths, groups, known)
        inside = part.inside
        controlled = apply(part.coefficients, paired[inside], differences[inside])
        batches[inside] = np.where(choice == CONTROL, controlled, np.where(choice == CONDITIONAL, g[inside], f[inside]))
        votes[choice, np.arange(len(choice))] += 1
    method = votes.argmax(axis=0).astype(np.int8)
    return Estimates(weighted_mean(batches, draws.lengths), batches, np.zeros(len(method), dtype=bool), method)


def _choose(
    part: Fit, streams: tuple[np.ndarray, ...], lengths: np.ndarray, groups: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """int8[K]: the estimator for the fold's batches, chosen on the others. `streams`: F, G, F at G's updates, and D."""
    f, g, paired, d = streams
    if f.shape[1] >= MANY_CHAINS:  # then folds are whole chains, and chains' means say all
        outside = ~part.inside[0]
        f, g, paired, d = (chain_means(x[:, outside], lengths)[None] for x in streams)
        lengths = lengths.sum(keepdims=True)
    else:
        hole = np.where(part.inside, np.nan, 1.0)[:, :, None]
        f, g, paired = f * hole, g * hole, paired * hole
    rows = np.isfinite(f).sum(axis=(0, 1))
    used = part.coefficients.used
    lost = rows / np.maximum(rows - used - 1.0, 1.0)  # the fit's degrees of freedom
    quiet = [standard_error(x, lengths)[0] ** 2 for x in (f, g, apply(part.coefficients, paired, d))]
    of_orbit, of_conditional, of_control = (_by_group(v, groups) for v in (*quiet[:2], quiet[2] * lost))
    able = _by_group(np.where(part.coefficients.fitted, 0.0, np.nan), groups) == 0.0
    choice = np.full(len(groups), ORBIT, dtype=np.int8)
    better = known & (CLEARLY * of_conditional < of_orbit)
    choice[better] = CONDITIONAL
    best = np.where(better, of_conditional * CLEARLY / BETTER, of_orbit)
    choice[able & (CLEARLY * of_control < best)] = CONTROL
    still = (of_orbit == 0.0) & known & (of_conditional > 0.0)  # never moved: the conditionals say how rare it is
    mean = np.nanmean(f, axis=(0, 1)) if f.size else np.zeros(len(groups))
    choice[still & ((mean < SAME) | (mean > 1.0 - SAME))] = CONDITIONAL
    return choice


def _by_group(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The sum over the statistics that belong together, for each of them; NaN if one is unknown."""
    _, place = np.unique(groups, return_inverse=True)
    return np.bincount(place.ravel(), weights=values)[place.ravel()]
