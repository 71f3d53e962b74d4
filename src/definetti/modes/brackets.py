"""Bounds on the weight of a region from the averages of chains that stay in it.

log Z_m = E_m[log f] + H_m, and for every product q: H_m ≤ −E_m[log q], H_m ≥ Σ_i E_m[h(g_i)] with g_i the full
conditionals (the erasure entropy). With one product and one window for both ends
upper = E_m[log f − log q], lower = upper − E_m[Σ_i KL(g_i ‖ q_i)],
which keeps the noise of the two ends together.

Errors of means cannot show what was not met: chains that flip nothing for a thousand sweeps have no spread at all. A
share w of the region that they did not enter makes log Z larger than what they saw by −log(1 − w); N sweeps that
missed it say w ≤ 3 / N (95 %), N being as many independent ones as the spread of their means shows. At the lower end
the conditionals count ways out of the region as if they were ways inside it: a site whose conditional gives them e
counts at most e (1 + KL) too much, and Σ e is how often chains leave in a sweep, of which k exits were seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti.diagnose import expected_at_most

ERRORS = 3.0  # by which the ends are moved outwards
BATCHES = 4  # of each chain
ROUNDING = 1e-9  # of values that are the same
AGREEING = 16  # draws that such values of few chains are worth


@dataclass(frozen=True)
class Bracket:
    """Bounds of log Z of a region, moved outwards by three standard errors and by what may not have been met; `width`
    is without these."""

    lower: float
    upper: float
    width: float


def bracket(log_ratio: np.ndarray, divergence: np.ndarray, rate: float = 0.0) -> Bracket:
    """From log f − log q at the sweeps' ends and Σ KL(g ‖ q) inside the sweeps, [sweeps, chains]; `rate`: exits from
    the region in a sweep, at most."""
    low = log_ratio - divergence
    width = float(divergence.mean())
    errors = standard_error(low), standard_error(log_ratio)
    draws = min(independent(low, errors[0]), independent(log_ratio, errors[1]))
    return Bracket(
        float(low.mean()) - ERRORS * errors[0] - max(expected_at_most(0) / draws, rate) * (1.0 + width),
        float(log_ratio.mean()) + ERRORS * errors[1] + beyond(draws),
        width,
    )


def beyond(draws: float) -> float:
    """Nats by which log Z may exceed what so many independent draws of a region show, by what they have not met."""
    unmet = expected_at_most(0) / draws
    return -math.log1p(-unmet) if unmet < 1.0 else math.inf


def highest(log_weights: np.ndarray, chain: np.ndarray | None = None) -> float:
    """An upper end of log Z from the log weights of paths down from the region, float64[paths]; `chain`: as in
    `effective`."""
    draws = effective(log_weights, chain)
    return float(log_weights.mean() + ERRORS * log_weights.std(ddof=1) / math.sqrt(draws)) + beyond(draws)


def effective(values: np.ndarray, chain: np.ndarray | None) -> float:
    """How many independent draws values[paths] are worth, by the spread between chains, at most as many as there are;
    `chain`: of the state in which each path begins (None: one of each)."""
    far = values - values.mean()
    if chain is None:
        return len(values)
    if np.abs(far).max(initial=0.0) < ROUNDING:  # kinds that chains keep would be regions of their own
        return max(len(np.unique(chain)), min(len(values), AGREEING))
    between = (np.bincount(chain, far) ** 2).sum()
    return len(values) * min(float((far**2).sum() / between), 1.0) if between > 0 else len(values)


def exit_rate(walks: Sequence[np.ndarray]) -> float:
    """How often chains leave a region in a sweep, at most (95 %), by whether they were in it after each sweep of walks
    that began in it, bool[sweeps, chains] each."""
    exits = sweeps = 0
    for inside in walks:
        before = np.concatenate([np.ones_like(inside[:1]), inside[:-1]])
        exits, sweeps = exits + int((before & ~inside).sum()), sweeps + int(before.sum())
    return expected_at_most(exits) / max(sweeps, 1)


def independent(values: np.ndarray, error: float) -> float:
    """As how many independent ones values [sweeps, chains] show their mean, whose standard error is given: not more
    than there are, and not fewer than batches. (That chains differ is in the error.)"""
    sweeps, chains = values.shape
    if error == 0.0:
        return float(values.size)
    return float(np.clip(values.var() / error**2, min(BATCHES, sweeps) * chains, values.size))


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
