"""What is known of a statistic without a single draw: hard factors force it, or every state gives it the same value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from definetti.constraints.graph.arc_consistency import possible_literals
from definetti.inference.graph.events import Event
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.samplers.graph.lanes import Slots


def certain_statistics(
    model: FactorGraph, slots: Slots, of_slot: np.ndarray, statistic_of: np.ndarray, events: Sequence[Event]
) -> np.ndarray:
    """float64[singles + events]: the value of each statistic that is known beforehand, NaN elsewhere."""
    singles = _balanced(slots, of_slot)
    possible = possible_literals(model)
    variable = np.repeat(np.arange(model.n), model.cards)
    ways = np.bincount(variable[possible], minlength=model.n)
    free = model.evidence[variable] == FREE
    alone, chance = _alone(model)
    singles[statistic_of[free & alone]] = chance[free & alone]
    singles[statistic_of[free & ~possible]] = 0.0
    singles[statistic_of[free & possible & (ways[variable] == 1)]] = 1.0
    return np.concatenate([singles, [_event(event, singles, statistic_of) for event in events]])


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


def _event(event: Event, singles: np.ndarray, statistic_of: np.ndarray) -> float:
    """Known where each way to satisfy the query is one literal that is known."""
    if any(members.shape[1] > 1 for members in event.tuples):
        return float("nan")
    known = sum(singles[statistic_of[members[0, 0]]] for members in event.tuples)
    return float(event.certain + event.sign * known)
