"""The default: per variable the quietest of orbit, conditional and control, by estimated asymptotic variance.

The smallest of several noisy variances is too small, and for rare events it goes with the smallest estimate. So the
choice for a fold of batches is made on the other batches (`folds.py`), where β is fitted too: what is reported was
not looked at when choosing. `orbit` stays unless another is clearly better; all values of a variable are treated
alike, so that they add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from definetti.diagnose import MANY_CHAINS, chain_means, weighted_mean
from definetti.estimators import orbit
from definetti.estimators.control import Fit, fits
from definetti.estimators.pairs import halved
from definetti.estimators.regression import apply
from definetti.estimators.spread import outside_variance
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
    assert draws.g is not None
    f, paired, differences = draws.f, draws.paired, draws.differences
    g = np.where(np.isnan(draws.g), f, draws.g)
    batches = f.copy()
    votes = np.zeros((CONTROL + 1, f.shape[2]))
    parts = list(fits(draws))
    for part, choice in zip(parts, _choices(draws, g, parts), strict=True):
        inside = part.inside
        controlled = apply(part.coefficients, paired[inside], differences[inside])
        batches[inside] = np.where(choice == CONTROL, controlled, np.where(choice == CONDITIONAL, g[inside], f[inside]))
        votes[choice, np.arange(len(choice))] += 1
    method = votes.argmax(axis=0).astype(np.int8)
    return Estimates(weighted_mean(batches, draws.lengths), batches, np.zeros(len(method), dtype=bool), method)


def _choices(draws: Draws, g: np.ndarray, parts: Sequence[Fit]) -> list[np.ndarray]:
    """int8[K] per fold: the estimator for its batches, chosen on the others."""
    f, paired, d, lengths = draws.f, draws.paired, draws.differences, draws.lengths
    outside = np.stack([~part.inside for part in parts])
    if draws.chains >= MANY_CHAINS:  # then folds are whole chains, and chains' means say all
        f, g, paired, d = (chain_means(x, lengths)[None] for x in (f, g, paired, d))
        lengths, outside = lengths.sum(keepdims=True), outside[:, :1]
    of_orbit, of_conditional = (outside_variance(x, lengths, outside) for x in (f, g))
    never = np.stack([_never_moved(f[where]) for where in outside])
    known = np.asarray(~np.isnan(draws.g).all(axis=(0, 1)))
    groups = np.arange(f.shape[2]) if draws.groups is None else draws.groups
    out = []
    for k, part in enumerate(parts):
        rows = int(outside[k].sum())
        lost = rows / np.maximum(rows - part.coefficients.used - 1.0, 1.0)  # the fit's degrees of freedom
        residual = apply(part.coefficients, paired, d)
        of_control = outside_variance(residual, lengths, outside[k : k + 1])[0] * lost
        of_control[~part.coefficients.fitted] = np.inf
        quiet = [_by_group(v, groups) for v in (of_orbit[k], of_conditional[k], of_control)]
        out.append(_choose(*quiet, known, never[k]))
    return out


def _choose(
    of_orbit: np.ndarray, of_conditional: np.ndarray, of_control: np.ndarray, known: np.ndarray, never: np.ndarray
) -> np.ndarray:
    """int8[K]: by the variances of the three. `known`: there are conditionals; `never`: it was always 0, or always
    1."""
    choice = np.full(len(known), ORBIT, dtype=np.int8)
    better = known & (CLEARLY * of_conditional < of_orbit)
    choice[better] = CONDITIONAL
    best = np.where(better, of_conditional * CLEARLY / BETTER, of_orbit)
    choice[CLEARLY * of_control < best] = CONTROL
    still = (of_orbit == 0.0) & known & (of_conditional > 0.0)
    choice[still & never] = CONDITIONAL  # the conditionals say how rare it is
    return choice


def _never_moved(f: np.ndarray) -> np.ndarray:
    mean = f.mean(axis=0)
    return (mean < SAME) | (mean > 1.0 - SAME)


def _by_group(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The sum over the statistics that belong together, for each of them."""
    _, place = np.unique(groups, return_inverse=True)
    return np.bincount(place.ravel(), weights=values)[place.ravel()]
