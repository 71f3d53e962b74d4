"""What a variable that hardly ever moved may do to the conditionals of its neighbours.

Let a variable j leave its common value with probability q, so rarely that a run of N draws should see it a few times
at most. A neighbour i has other conditionals while j is away: by the factor that joins them, p(v) becomes p'(v), in
proportion to p(v)·exp(change of the log weight of v). If j was never away, nothing in the draws of i shows it: the
mean of conditionals looks quiet and is off by q·(p' − p). But q is known from the conditionals of j, and the change
from the model. The number of draws with j away is nearly a Poisson variable with mean N·q, so that the mean of i has
at least the variance q·(p' − p)² / N from this neighbour. Where j did move, the spread of batch means shows the same.
"""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FREE, FactorGraph
from definetti.samplers.draws import Draws

FEW = 10.0  # expected draws of an orbit away from its common value: more are seen in the spread of batch means
LARGEST = 700.0  # of a change of a log weight: its exponential is finite


def least_variance(model: FactorGraph, statistic_of: np.ndarray, value: np.ndarray, draws: Draws) -> np.ndarray:
    """float64[statistics]: the least variance of each mean, by neighbours that are rarely away from their common
    value."""
    found = np.zeros(len(value))
    count = draws.sweeps * draws.chains
    if not count or not len(found):
        return found
    statistic_of = np.minimum(statistic_of, len(found) - 1)  # literals of observed variables may have none
    chance = np.clip(value[statistic_of], 0.0, 1.0)
    common, away = _common(model, chance)
    size = draws.sizes[statistic_of[model.literal_start[:-1]]]
    rare = (model.evidence == FREE) & (away > 0) & (away * size * count < FEW)
    if not rare.any():
        return found
    one, two, at = _pairs(model, rare, common)
    stride = model.strides
    i, j = model.scope[one], model.scope[two]
    for w in range(int(model.cards[j].max(initial=0))):
        other = np.flatnonzero((w != common[j]) & (w < model.cards[j]) & (model.evidence[i] == FREE))
        a, b, of, by = one[other], two[other], i[other], j[other]
        values = np.arange(int(model.cards[of].max(initial=0)))
        known = values < model.cards[of][:, None]
        entry = at[other][:, None] + np.where(known, values, 0) * stride[a][:, None]
        with np.errstate(invalid="ignore"):
            change = model.tables[entry + ((w - common[by]) * stride[b])[:, None]] - model.tables[entry]
        change = np.clip(np.nan_to_num(change, nan=0.0), -LARGEST, LARGEST)
        literal = np.where(known, model.literal_start[of][:, None] + values, 0)
        before = np.where(known, chance[literal], 0.0)
        after = before * np.exp(change - change.max(axis=1, keepdims=True, initial=-LARGEST))
        total = after.sum(axis=1, keepdims=True)
        after = np.divide(after, total, out=before.copy(), where=total > 0)
        variance = chance[model.literal_start[by] + w][:, None] * (after - before) ** 2 / count
        statistic = statistic_of[literal[known]]
        found += np.bincount(statistic, variance[known] / draws.sizes[statistic] ** 2, minlength=len(found))
    return found


def _common(model: FactorGraph, chance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per variable its most probable value, and the probability of all others."""
    first = model.literal_start[:-1]
    order = np.lexsort((chance, np.repeat(np.arange(model.n), model.cards)))
    common = order[model.literal_start[1:] - 1] - first
    common = np.where(model.evidence == FREE, common, np.maximum(model.evidence, 0))
    rest = np.add.reduceat(chance, first) - chance[first + common]
    return common, np.maximum(rest, 0.0)


def _pairs(model: FactorGraph, rare: np.ndarray, common: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places (a, b) of scopes where b has a rare variable and a another one, and the table's entry with all others at
    their common values and a at 0."""
    arity, stride = np.diff(model.scope_start), model.strides
    factor = np.repeat(np.arange(len(arity)), arity)
    steps = common[model.scope] * stride
    entry = model.table_start[model.table_of] + np.bincount(factor, steps, minlength=len(arity)).astype(np.int64)
    two = np.flatnonzero(rare[model.scope])
    times = arity[factor[two]]
    two = np.repeat(two, times)
    within = np.arange(len(two)) - np.repeat(np.cumsum(times) - times, times)
    one = model.scope_start[factor[two]] + within
    other = one != two
    one, two = one[other], two[other]
    return one, two, entry[factor[two]] - steps[one]
