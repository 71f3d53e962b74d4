"""What is known of a statistic without a single draw: hard factors force it, every state gives it the same value, or
the factors bound it over all states.

The bounds: P(x_i = v) ≤ max over states of p(v | others) ≤ exp Σ_f max (log f at v − log f at w), for any other value
w; the maximum is over the other variables of f, factor by factor (interval arithmetic): no state is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from definetti.inference.assemble import PROVEN
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.samplers.graph.lanes import Slots

if TYPE_CHECKING:
    from definetti.inference.graph.events import Event

MOST_VALUES = 16  #: of a variable that is bounded
MOST_PAIRS = 4_000_000  #: of values, over all variables


def certain_statistics(
    model: FactorGraph, slots: Slots, of_slot: np.ndarray, statistic_of: np.ndarray, events: Sequence[Event]
) -> tuple[np.ndarray, np.ndarray]:
    """float64[singles + events]: the value of each statistic that is known beforehand, NaN elsewhere; and how far off
    that may be."""
    singles = _balanced(slots, of_slot)
    possible = _possible(model)
    variable = np.repeat(np.arange(model.n), model.cards)
    ways = np.bincount(variable[possible], minlength=model.n)
    free = model.evidence[variable] == FREE
    alone, chance = _alone(model)
    singles[statistic_of[free & alone]] = chance[free & alone]
    singles[statistic_of[free & ~possible]] = 0.0
    singles[statistic_of[free & possible & (ways[variable] == 1)]] = 1.0
    bounds = _bounded(model, singles, statistic_of)
    joint = [_event(event, singles, bounds, statistic_of) for event in events]
    return np.append(singles, [value for value, _ in joint]), np.append(bounds, [bound for _, bound in joint])


def _bounded(model: FactorGraph, singles: np.ndarray, statistic_of: np.ndarray) -> np.ndarray:
    """How far off; and in `singles` 0 or 1 for what is nowhere farther from it than `PROVEN`."""
    bounds = np.zeros(len(singles))
    share = np.exp(log_bounds(model))
    variable, rest = model.variable_of, _of_other_values(model, share)
    for value, error in ((0.0, share), (1.0, rest)):
        open_ = (model.evidence[variable] == FREE) & (error < PROVEN)
        open_[open_] &= np.isnan(singles[statistic_of[open_]])
        bounds[statistic_of[open_]] = error[open_]
        singles[statistic_of[open_]] = value
    return bounds


def _of_other_values(model: FactorGraph, share: np.ndarray) -> np.ndarray:
    """By literal: the sum over the other values of its variable; that of the largest literal is added up without it,
    since a difference would lose what is small."""
    variable = model.variable_of
    order = np.lexsort((share, variable))
    largest = order[model.literal_start[1:] - 1]
    others = share.copy()
    others[largest] = 0.0
    below = np.bincount(variable, weights=others, minlength=model.n)
    rest = (below + share[largest])[variable] - share
    rest[largest] = below
    return rest


def _alone(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Literals of variables that share no factor with others, and their probabilities."""
    arity = model.arity
    tied = np.zeros(model.n, dtype=bool)
    tied[model.scope[np.repeat(arity > 1, arity)]] = True
    log = np.zeros(int(model.literal_start[-1]))
    for k in np.flatnonzero(arity == 1).tolist():
        i = int(model.variables(k)[0])
        if not tied[i]:
            log[model.literal_start[i] : model.literal_start[i + 1]] += model.table(k)
    variable = np.repeat(np.arange(model.n), model.cards)
    weight = np.exp(log - np.maximum.reduceat(log, model.literal_start[:-1])[variable]) if model.n else log
    return ~tied[variable], weight / np.bincount(variable, weights=weight, minlength=model.n)[variable]


def _possible(model: FactorGraph) -> np.ndarray:
    """bool[L]: false where hard factors rule out a literal."""
    if not len(model.hard_factors):
        return np.ones(int(model.literal_start[-1]), dtype=bool)
    from definetti.constraints.graph.arc_consistency import possible_literals

    return possible_literals(model)


def _balanced(slots: Slots, of_slot: np.ndarray) -> np.ndarray:
    """Orbits that hold either all values of a variable or none: in every state as many of their literals are true.

    So it is with value flips: the mean is 1/2, whatever the draws.
    """
    count = int(of_slot.max(initial=-1)) + 1
    row = np.repeat(np.arange(len(slots.cards)), slots.cards)
    pairs, held = np.unique(row * max(count, 1) + of_slot, return_counts=True)  # (row, statistic): how many values
    row, statistic = np.divmod(pairs, max(count, 1))
    uneven = np.bincount(statistic, weights=held != slots.cards[row], minlength=count) > 0
    true = np.bincount(statistic, weights=slots.sizes[row], minlength=count)
    size = np.bincount(statistic, weights=slots.sizes[row] * held, minlength=count)
    return np.where(uneven, np.nan, true / np.maximum(size, 1))


def _event(event: Event, singles: np.ndarray, bounds: np.ndarray, statistic_of: np.ndarray) -> tuple[float, float]:
    """Known where each way to satisfy the query is one literal that is known."""
    if any(members.shape[1] > 1 for members in event.tuples):
        return float("nan"), 0.0
    statistics = [statistic_of[members[0, 0]] for members in event.tuples]
    known = sum(singles[k] for k in statistics)
    return float(event.certain + event.sign * known), float(sum(bounds[k] for k in statistics))


# --- bounds over all states -----------------------------------------------------------------------------------------


def log_bounds(model: FactorGraph) -> np.ndarray:
    """float64[literals]: the logarithm of an upper bound of each probability, 0 where nothing better is known."""
    cards = model.cards.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(cards * cards)])
    if not model.n or cards.max() > MOST_VALUES or start[-1] > MOST_PAIRS:
        return np.zeros(int(model.literal_start[-1]))
    most = np.zeros(int(start[-1]))  # of log p(v) − log p(w) at start[i] + v · cards[i] + w
    for alike in model.by_shape:
        kinds, which = np.unique(alike.tables, return_inverse=True)
        tables = model.tables[model.table_start[kinds][:, None] + np.arange(alike.size)].reshape(-1, *alike.shape)
        for axis, card in enumerate(alike.shape):
            rows = np.moveaxis(tables, axis + 1, 1).reshape(len(kinds), card, -1)
            first = start[alike.scopes[:, axis]]
            for v in range(card):
                for w in range(card):
                    if v != w:
                        change = _largest(rows[:, v] - _finite(rows[:, w]))[which.ravel()]
                        with np.errstate(invalid="ignore"):
                            np.add.at(most, first + v * card + w, change)
    return _smallest(np.where(np.isnan(most), -np.inf, most), start, cards)  # what one factor rules out is impossible


def _finite(values: np.ndarray) -> np.ndarray:
    """Where w is impossible nothing bounds v."""
    return np.where(np.isneginf(values), np.nan, values)


def _largest(difference: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(difference), np.inf, difference).max(axis=1)


def _smallest(most: np.ndarray, start: np.ndarray, cards: np.ndarray) -> np.ndarray:
    """Per literal the best of its bounds."""
    variable = np.repeat(np.arange(len(cards)), cards)
    value = np.arange(len(variable)) - np.repeat(np.cumsum(cards) - cards, cards)
    out = np.zeros(len(variable))
    for w in range(int(cards.max())):
        other = (w < cards[variable]) & (w != value)
        place = (start[variable] + value * cards[variable] + w)[other]
        out[other] = np.fmin(out[other], most[place])
    return out
