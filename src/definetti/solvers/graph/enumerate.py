"""Enumeration: every state of the free variables, or one for each orbit of states. Slow, plain, the judge of others.

Within a block the first variable changes fastest. Variables are added one after the other, each as a new slowest axis,
and a factor is added as soon as its last variable is there: most factors are added while the array is still small.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from definetti import groups
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

if TYPE_CHECKING:
    from definetti.symmetry.graph.group import GraphSymmetries

MOST_STATES = 2**24
BLOCK = 2**20
MOST_ELEMENTS = 5_000  # of a group whose orbits are enumerated
MOST_REPRESENTATIVES = 1 << 21
CURE = "use elimination or sampling, or observe some variables"
ORBIT_CURE = "use elimination or sampling"


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


# --- one state for each orbit ----------------------------------------------------------------------------------------
# States are built variable by variable; a beginning that some element of the group maps to a smaller one is dropped at
# once, so about 1/|G| of the states are ever looked at. The sums over an orbit need no listing: a literal's indicator
# has the mean (literals of its orbit in the state) / (size of its orbit), Lemma 1 with single variables.


@dataclass(frozen=True, eq=False)
class Orbits:
    """States that stand for their orbits, over all variables (observed ones at their values)."""

    states: np.ndarray  # int8[orbit, variable]
    sizes: np.ndarray  # int64[orbit]


@dataclass(frozen=True, eq=False)
class _Element:
    """Where the value at each free variable of an image comes from, and what becomes of it."""

    source: np.ndarray  # of each place
    value: np.ndarray  # int8[place, value at the source]


def orbit_solution(symmetries: GraphSymmetries) -> Solution:
    """log Z and the marginals of all variables."""
    model = symmetries.model
    refuse_cancelling(model)
    found = orbits_of_states(symmetries)
    logs = np.concatenate([np.zeros(0), *(model.log_factors(found.states[k : k + 65536].astype(np.int32))
                                          for k in range(0, len(found.states), 65536))])  # fmt: skip
    if not len(logs) or logs.max() == -np.inf:
        raise no_state(model)
    weights = np.exp(logs - logs.max()) * found.sizes
    total = weights.sum()
    literals, label = start_literals(model), symmetries.literal_orbit
    sums = np.zeros(int(label.max(initial=-1)) + 1)
    for i in model.free.tolist():
        sums += np.bincount(label[model.literal_start[i] + found.states[:, i]], weights=weights, minlength=len(sums))
    means = sums / total / symmetries.literal_orbit_size
    for i in model.free.tolist():
        span = slice(int(model.literal_start[i]), int(model.literal_start[i + 1]))
        literals[span] = means[label[span]] / means[label[span]].sum()
    return Solution(float(symmetries.model.log_constant + logs.max() + np.log(total)), literals)


def orbits_of_states(symmetries: GraphSymmetries) -> Orbits:
    """All orbits of the states that agree with the evidence."""
    model = symmetries.model
    elements, free = _elements(symmetries), model.free
    rows = np.zeros((1, 0), dtype=np.int8)
    reach = [0] * len(elements)
    for t in range(1, len(free) + 1):
        card = int(model.cards[free[t - 1]])
        rows = np.concatenate(
            [np.repeat(rows, card, axis=0), np.tile(np.arange(card, dtype=np.int8), len(rows))[:, None]], 1
        )
        for k, g in enumerate(elements):
            known = g.source[:t] < t
            length = t if known.all() else int(known.argmin())
            if length > reach[k]:
                reach[k] = length
                rows = rows[~_smaller(g, rows, length)[0]]
        if len(rows) > MOST_REPRESENTATIVES:
            raise TooLarge("the number of orbits of states", len(rows), MOST_REPRESENTATIVES, ORBIT_CURE, at_least=True)
    fixed = np.ones(len(rows), dtype=np.int64)
    for g in elements:
        fixed[_smaller(g, rows, len(free))[1]] += 1
    states = np.tile(np.maximum(model.evidence, 0).astype(np.int8), (len(rows), 1))
    states[:, free] = rows
    return Orbits(states, (len(elements) + 1) // fixed)


def _smaller(g: _Element, rows: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """(whether g makes a row smaller on its first places, the rows that it leaves alone there)."""
    smaller, left = np.zeros(len(rows), dtype=bool), np.arange(len(rows))
    for place in range(length):
        image = g.value[place][rows[left, g.source[place]]]
        smaller[left[image < rows[left, place]]] = True
        left = left[image == rows[left, place]]
        if not len(left):
            break
    return smaller, left


def _elements(symmetries: GraphSymmetries) -> list[_Element]:
    """All elements of the group but the identity."""
    model, group = symmetries.model, symmetries.group
    if symmetries.order is None or symmetries.order > MOST_ELEMENTS:
        raise TooLarge("the order of the group", symmetries.order or np.inf, MOST_ELEMENTS, ORBIT_CURE)
    degree = int(model.literal_start[-1])
    generators = [groups.dense(g, degree) for g in group.generators]
    identity = np.arange(degree)
    seen, waiting = {identity.tobytes()}, [identity]
    found = []
    while waiting:
        one = waiting.pop()
        for g in generators:
            other = g[one]
            if other.tobytes() not in seen:
                seen.add(other.tobytes())
                waiting.append(other)
                found.append(_element(model, other))
    return found


def _element(model: FactorGraph, image: np.ndarray) -> _Element:
    free = model.free
    place = np.full(model.n, -1, dtype=np.int64)
    place[free] = np.arange(len(free))
    variable = model.variable_of
    source, value = np.zeros(len(free), np.int64), np.zeros((len(free), int(model.cards.max(initial=1))), np.int8)
    for k, i in enumerate(free.tolist()):
        literals = image[model.literal_start[i] : model.literal_start[i + 1]]
        j = int(variable[literals[0]])
        source[place[j]] = k
        value[place[j], : len(literals)] = literals - model.literal_start[j]
    return _Element(source, value)
