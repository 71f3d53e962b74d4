"""Bounds on the full conditionals of a factor graph over all states: what they make small is small without a draw.

P(x_i = v) ≤ max over states of p(v | others) ≤ exp Σ_f max (log f at v − log f at w), for any other value w; the
maximum is over the other variables of f, factor by factor (interval arithmetic), so that no state is looked at.
"""

from __future__ import annotations

import numpy as np

from definetti.model.graph.factors import FactorGraph

MOST_VALUES = 16  #: of a variable
MOST_PAIRS = 4_000_000  #: of values, over all variables


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
