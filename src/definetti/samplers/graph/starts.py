"""Starts of chains: each free variable from its own unary factor, then the legal state that a solver finds near it.

The law of such a start is left alone by the group, which the theory needs (`docs/architecture.md`): unary factors are
carried along by symmetries, and the solver numbers its variables in a random order. Where there are hard factors, the
first chains prefer each value in turn (all 0, all 1, …), so that separate regions of what is possible are seen.
"""

from __future__ import annotations

import numpy as np

from definetti.constraints.graph.arc_consistency import hard_factors
from definetti.model.graph.factors import FREE, FactorGraph

TURNS = 4  # at most one chain in so many prefers one value everywhere
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
        from definetti.constraints.graph.legal_states import legalise

        _prefer_in_turn(model, states, hard)
        legalise(model, states, rng)
    return states


def _prefer_in_turn(model: FactorGraph, states: np.ndarray, hard: np.ndarray) -> None:
    """Chain v wishes for value v at every variable of a hard factor (the last value of those that have fewer)."""
    spread = [k for k in hard.tolist() if len(model.variables(k)) > 1]
    sites = np.unique(np.concatenate([model.variables(k) for k in spread] or [np.zeros(0, np.int64)])).astype(np.int64)
    if not len(sites):
        return
    for value in range(min(int(model.cards[sites].max()), len(states) // TURNS)):
        states[value, sites] = np.minimum(value, model.cards[sites] - 1)


def _unary(model: FactorGraph, card: int) -> np.ndarray:
    """float64[n, card]: the weights of the variables' own factors, for variables with so many values."""
    own = np.flatnonzero(model.arity == 1)
    own = own[model.cards[model.scope[model.scope_start[own]]] == card]
    logs = np.zeros((model.n, card))
    logs[model.scope[model.scope_start[own]]] = model.tables[
        model.table_start[model.table_of[own]][:, None] + np.arange(card)
    ]
    return np.exp(logs - logs.max(axis=1, keepdims=True))
