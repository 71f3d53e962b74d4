"""Enumeration over orbits of states: one representative for each orbit, the smallest in lexicographic order, with
its size.

States are built variable by variable; a beginning that some element of the group maps to a smaller one is
dropped at once, so about 1/|G| of the states are ever looked at. The sums over an orbit need no listing: a
literal's indicator has the mean (literals of its orbit in the state) / (size of its orbit), Lemma 1 with single
variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from definetti import groups
from definetti.constraints.graph.legal_states import refuse_cancelling
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph
from definetti.solvers.graph.solution import Solution, no_state, start_literals
from definetti.symmetry.graph.group import Symmetries

MOST_ELEMENTS = 5_000
MOST_REPRESENTATIVES = 1 << 21
CURE = "use elimination or sampling"


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


def orbit_solution(symmetries: Symmetries) -> Solution:
    """log Z and the marginals of all variables."""
    model = replace(symmetries.model, log_constant=0.0)  # it may be so large that the tables are lost beside it
    refuse_cancelling(model)
    found = orbits_of_states(symmetries)
    logs = np.concatenate([np.zeros(0), *(model.log_density(found.states[k : k + 65536].astype(np.int32))
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


def orbits_of_states(symmetries: Symmetries) -> Orbits:
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
            raise TooLarge("the number of orbits of states", len(rows), MOST_REPRESENTATIVES, CURE, at_least=True)
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


def _elements(symmetries: Symmetries) -> list[_Element]:
    """All elements of the group but the identity."""
    model, group = symmetries.model, symmetries.group
    if symmetries.order is None or symmetries.order > MOST_ELEMENTS:
        raise TooLarge("the order of the group", symmetries.order or np.inf, MOST_ELEMENTS, CURE)
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
