"""Starts of chains: each free variable from its own unary factor, then repaired to a legal state.

The law of such a start is left alone by the group, which the theory needs (`docs/architecture.md`): unary factors are carried along by
symmetries, and repair breaks ties at random.
"""

from __future__ import annotations

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.factors import FREE, FactorGraph
from definetti.model.possible import hard_factors

REPAIRS = 20  # repair moves per variable before giving up
CHUNK = 1 << 22  # uniform numbers drawn at once


def starts(model: FactorGraph, chains: int, rng: np.random.Generator) -> np.ndarray:
    """uint8[chains, n]: legal states of a simplified model, observed variables at their values."""
    states = np.zeros((chains, model.n), dtype=np.uint8)
    states[:, model.evidence != FREE] = model.evidence[model.evidence != FREE]
    for card in np.unique(model.cards[model.free]).tolist():
        sites = model.free[model.cards[model.free] == card]
        weights = _unary(model, card)[sites]
        reach = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        step = max(1, CHUNK // (len(sites) * card))
        for lo in range(0, chains, step):
            draws = rng.random((len(states[lo : lo + step]), len(sites)))
            states[lo : lo + step, sites] = np.minimum((draws[..., None] >= reach).sum(axis=-1), card - 1)
    hard = hard_factors(model)
    if len(hard):
        repair = Repair(model, hard)
        for state in states:
            repair(state, rng)
    return states


def _unary(model: FactorGraph, card: int) -> np.ndarray:
    """float64[n, card]: the weights of the variables' own factors, for variables with so many values."""
    own = np.flatnonzero(np.diff(model.scope_start) == 1)
    own = own[model.cards[model.scope[model.scope_start[own]]] == card]
    logs = np.zeros((model.n, card))
    logs[model.scope[model.scope_start[own]]] = model.tables[
        model.table_start[model.table_of[own]][:, None] + np.arange(card)
    ]
    return np.exp(logs - logs.max(axis=1, keepdims=True))


class Repair:
    """Min-conflicts: while a hard factor is violated, one of its variables moves to a value with fewest violations."""

    def __init__(self, model: FactorGraph, hard: np.ndarray) -> None:
        self.model, self.hard = model, hard
        self.impossible = np.isneginf(model.tables).tolist()
        self.first = model.table_start[model.table_of[hard]].tolist()
        scopes = [(int(model.scope_start[k]), int(model.scope_start[k + 1])) for k in hard]
        self.scope = [model.scope[a:b].tolist() for a, b in scopes]
        self.stride = [model._strides[a:b].tolist() for a, b in scopes]
        self.touching: dict[int, list[int]] = {}
        for k, scope in enumerate(self.scope):
            for i in scope:
                self.touching.setdefault(i, []).append(k)

    def violated(self, k: int, state: list[int]) -> bool:
        entry = self.first[k]
        for i, stride in zip(self.scope[k], self.stride[k], strict=True):
            entry += stride * state[i]
        return self.impossible[entry]

    def __call__(self, start: np.ndarray, rng: np.random.Generator) -> None:
        """Make a state legal, in place; `Unsatisfiable` where that takes too many moves."""
        state: list[int] = start.tolist()
        broken = [k for k in range(len(self.hard)) if self.violated(k, state)]
        place = {k: at for at, k in enumerate(broken)}  # so that a factor leaves the list in no time
        for _ in range(REPAIRS * max(len(self.model.free), 10)):
            if not broken:
                break
            scope = self.scope[broken[rng.integers(len(broken))]]
            i = scope[rng.integers(len(scope))]
            state[i] = self._value(i, state, rng)
            for k in self.touching[i]:
                if self.violated(k, state):
                    if k not in place:
                        place[k] = len(broken)
                        broken.append(k)
                elif k in place:
                    at, last = place.pop(k), broken.pop()
                    if last != k:
                        broken[at], place[last] = last, at
        if broken:
            names = ", ".join(self.model.names[i] for i in self.scope[min(broken)])
            raise Unsatisfiable(
                f"no state of positive probability was found; the factor over {names} stayed violated. "
                "The model or its evidence may contradict itself"
            )
        start[:] = state

    def _value(self, i: int, state: list[int], rng: np.random.Generator) -> int:
        """A value with fewest violations, ties broken at random; now and then any value."""
        costs = []
        for v in range(int(self.model.cards[i])):
            state[i] = v
            costs.append(sum(self.violated(k, state) for k in self.touching[i]))
        best = [v for v, cost in enumerate(costs) if cost == min(costs)] if rng.random() > 0.1 else range(len(costs))
        return best[rng.integers(len(best))]
