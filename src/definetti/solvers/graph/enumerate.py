"""Enumeration: every state of the free variables, in blocks of arrays. Slow, plain, and the judge of the others.

Within a block the first variable changes fastest. Variables are added one after the other, each as a new slowest axis,
and a factor is added as soon as its last variable is there: most factors are added while the array is still small.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from definetti.constraints.graph.legal_states import refuse_cancelling
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.model.queries import Query
from definetti.solvers.graph.solution import (
    Event,
    Solution,
    active_variables,
    log_idle,
    no_state,
    open_events,
    start_literals,
)

MOST_STATES = 2**24
MOST_LISTED = 2**20
BLOCK = 2**20
CURE = "use elimination or sampling, or observe some variables"


def enumerate_states(model: FactorGraph, queries: Sequence[Query] = (), *, limit: float = MOST_STATES) -> Solution:
    """Exact marginals of all variables, log Z, and the probability of each event among the queries."""
    model = simplify(model)
    refuse_cancelling(model)
    events = open_events(model, queries)
    variables = enumerated(model, events)
    _check(model, variables, limit, "enumeration")
    cards = [int(c) for c in model.cards[variables]]
    inner = _inner_count(cards)
    base = _log_weights(model, variables[:inner], np.zeros(1), _factors_within(model, variables[:inner]))
    totals = _Totals(cards, inner, variables, events)
    outside = _factors_beyond(model, variables[:inner])
    for outer in itertools.product(*(range(c) for c in cards[inner:])):
        given = dict(zip(variables[inner:].tolist(), outer, strict=True))
        totals.add(_add_factors(model, variables[:inner], base.copy(), outside, given), outer)
    if totals.weight == 0:
        raise no_state(model)
    literals = start_literals(model)
    for variable, sums in zip(variables, totals.literals, strict=True):
        literals[model.literal_start[variable] : model.literal_start[variable + 1]] = sums / sums.sum()
    log_z = model.log_constant + log_idle(model, variables) + totals.top + float(np.log(totals.weight))
    return Solution(log_z, literals, tuple(min(1.0, float(e) / totals.weight) for e in totals.events))


def distribution(model: FactorGraph, *, limit: float = MOST_LISTED) -> tuple[np.ndarray, np.ndarray]:
    """All states that agree with the evidence, int32[S, n], and their probabilities, for small models."""
    free = model.free
    _check(model, free, limit, "the list of states")
    simple = simplify(model)
    refuse_cancelling(simple)
    log = _log_weights(simple, free, np.zeros(1), range(simple.factor_count))
    if log.max() == -np.inf:
        raise no_state(model)
    weight = np.exp(log - log.max())
    states = np.tile(model.evidence, (len(log), 1))
    if len(free):
        states[:, free] = np.stack(np.unravel_index(np.arange(len(log)), model.cards[free], order="F"), axis=1)
    return states, weight / weight.sum()


def enumerated(model: FactorGraph, events: Sequence[Event]) -> np.ndarray:
    """Of a simplified model: the variables with factors and those of events; all others are uniform by themselves."""
    asked = [i for event in events for i in event.variables]
    return np.union1d(active_variables(model), np.array(asked, dtype=np.int64)).astype(np.int64)


def state_bits(model: FactorGraph, variables: np.ndarray) -> float:
    """log2 of the number of states of the variables."""
    return float(np.log2(model.cards[variables]).sum())


def _check(model: FactorGraph, variables: np.ndarray, limit: float, what: str) -> None:
    bits = state_bits(model, variables)
    if bits > np.log2(limit) + 1e-9:
        size = 2.0**bits if bits < 1000 else 10 ** int(bits * np.log10(2))
        raise TooLarge(what, size, limit, CURE, unit="states")


def _inner_count(cards: list[int]) -> int:
    """How many variables fit into one block."""
    size = np.cumprod([1.0, *cards])
    return int(np.searchsorted(size, BLOCK, side="right")) - 1


# --- log weights ---------------------------------------------------------------------------------------------


def _factors_within(model: FactorGraph, variables: np.ndarray) -> list[int]:
    return [k for k in range(model.factor_count) if np.isin(model.variables(k), variables).all()]


def _factors_beyond(model: FactorGraph, variables: np.ndarray) -> list[int]:
    return [k for k in range(model.factor_count) if not np.isin(model.variables(k), variables).all()]


def _log_weights(model: FactorGraph, variables: np.ndarray, log: np.ndarray, factors: Sequence[int]) -> np.ndarray:
    """The sum of the given factors over all states of the variables, flat."""
    last: dict[int, list[int]] = {}
    for k in factors:
        last.setdefault(int(model.variables(k)[-1]), []).append(k)
    for j, variable in enumerate(variables.tolist()):
        log = np.tile(log, int(model.cards[variable]))
        log = _add_factors(model, variables[: j + 1], log, last.get(variable, []), {})
    return log


def _add_factors(
    model: FactorGraph, variables: np.ndarray, log: np.ndarray, factors: Sequence[int], given: dict[int, int]
) -> np.ndarray:
    """Add factors to the flat array over all states of `variables`, with the other variables of their scopes given."""
    place = {int(i): j for j, i in enumerate(variables)}
    strides = np.cumprod([1, *model.cards[variables]]).tolist()
    for k in factors:
        scope = model.variables(k).tolist()
        table = model.table(k)[tuple(given.get(i, slice(None)) for i in scope)]
        shape, small, end = [], [], strides[-1]
        for i in [i for i in reversed(scope) if i not in given]:  # slowest first, everything between collapsed
            above = strides[place[i] + 1]
            shape += [end // above, int(model.cards[i])]
            small += [1, int(model.cards[i])]
            end = strides[place[i]]
        view = log.reshape([*shape, end])
        view += table.T.reshape([*small, 1])
    return log


# --- sums ----------------------------------------------------------------------------------------------------


class _Totals:
    """Sums of weights over blocks, all relative to exp(top)."""

    def __init__(self, cards: list[int], inner: int, variables: np.ndarray, events: Sequence[Event]) -> None:
        self.cards, self.inner = cards, inner
        self.top, self.weight = -np.inf, 0.0
        self.literals = [np.zeros(c) for c in cards]
        self.events = np.zeros(len(events))
        place = {int(i): j for j, i in enumerate(variables)}
        self.columns = [[place[i] for i in event.variables] for event in events]
        self.rows = [event.rows for event in events]

    def add(self, log: np.ndarray, outer: tuple[int, ...]) -> None:
        highest = float(log.max())
        if highest == -np.inf:
            return
        if highest > self.top:
            self._rescale(float(np.exp(self.top - highest)))
            self.top = highest
        weights = np.exp(log - self.top)
        for e in range(len(self.events)):
            self.events[e] += self._event(weights, outer, self.columns[e], self.rows[e])
        self.weight += float(weights.sum())
        for j in range(self.inner, len(self.cards)):
            self.literals[j][outer[j - self.inner]] += weights.sum()
        for j in reversed(range(self.inner)):  # fold the slowest variable away
            weights = weights.reshape(self.cards[j], -1)
            self.literals[j] += weights.sum(axis=1)
            weights = weights.sum(axis=0)

    def _rescale(self, by: float) -> None:
        self.weight *= by
        self.events *= by
        for sums in self.literals:
            sums *= by

    def _event(self, weights: np.ndarray, outer: tuple[int, ...], columns: list[int], rows: np.ndarray) -> float:
        keep = np.ones(len(rows), dtype=bool)
        for c, j in enumerate(columns):
            if j >= self.inner:
                keep &= rows[:, c] == outer[j - self.inner]
        mine = sorted((j, c) for c, j in enumerate(columns) if j < self.inner)
        for j in reversed(range(self.inner)):  # the marginal over the event's variables: fold all others away
            below = int(np.prod(self.cards[:j], dtype=np.int64))
            weights = weights.reshape(-1, self.cards[j], below)
            weights = weights if any(j == mine_j for mine_j, _ in mine) else weights.sum(axis=1)
        index = tuple(rows[keep, c] for _, c in mine)
        sizes = tuple(self.cards[j] for j, _ in mine)
        flat = np.ravel_multi_index(index, sizes, order="F") if index else np.zeros(int(keep.sum()), dtype=np.int64)
        return float(weights.ravel()[flat].sum())
