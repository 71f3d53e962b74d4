"""Starts of chains: each free variable from its own unary factor, then repaired to a legal state.

The law of such a start is left alone by the group, which the theory needs (`docs/architecture.md`): unary factors are carried along by
symmetries, and repair breaks ties at random.
"""

from __future__ import annotations

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.factors import FREE, FactorGraph

REPAIRS = 20  # repair moves per variable before giving up


def starts(model: FactorGraph, chains: int, rng: np.random.Generator) -> np.ndarray:
    """uint8[chains, n]: legal states of a simplified model, observed variables at their values."""
    states = np.zeros((chains, model.n), dtype=np.uint8)
    states[:, model.evidence != FREE] = model.evidence[model.evidence != FREE]
    unary = _unary(model)
    for card in np.unique(model.cards[model.free]).tolist():
        sites = model.free[model.cards[model.free] == card]
        weights = np.stack([unary[i] for i in sites.tolist()]) if len(sites) else np.ones((0, card))
        reach = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
        draws = rng.random((chains, len(sites)))
        states[:, sites] = np.minimum((draws[..., None] >= reach[None]).sum(axis=-1), card - 1)
    hard = _hard_factors(model)
    if len(hard):
        for state in states:
            _repair(model, state, hard, rng)
    return states


def _unary(model: FactorGraph) -> dict[int, np.ndarray]:
    """The weights of each free variable's own factor."""
    out = {int(i): np.ones(int(model.cards[i])) for i in model.free}
    for k in np.flatnonzero(np.diff(model.scope_start) == 1):
        table = model.table(int(k))
        out[int(model.variables(int(k))[0])] = np.exp(table - table.max())
    return out


def _hard_factors(model: FactorGraph) -> np.ndarray:
    """The factors with impossible entries."""
    impossible = np.array(
        [
            np.isneginf(model.tables[a:b]).any()
            for a, b in zip(model.table_start[:-1], model.table_start[1:], strict=True)
        ],
        dtype=bool,
    )
    return np.flatnonzero(impossible[model.table_of]) if len(impossible) else np.zeros(0, dtype=np.int64)


def _repair(model: FactorGraph, state: np.ndarray, hard: np.ndarray, rng: np.random.Generator) -> None:
    """Min-conflicts: while a hard factor is violated, move one of its variables to a value with fewest violations."""
    touching: dict[int, list[int]] = {}
    for k in hard.tolist():
        for i in model.variables(k).tolist():
            touching.setdefault(i, []).append(k)

    def violated(k: int) -> bool:
        return bool(np.isneginf(model.table(k)[tuple(state[model.variables(k)])]))

    broken = {k for k in hard.tolist() if violated(k)}
    for _ in range(REPAIRS * max(len(model.free), 10)):
        if not broken:
            return
        k = sorted(broken)[rng.integers(len(broken))]
        i = int(rng.choice(model.variables(k)))
        costs = np.empty(int(model.cards[i]))
        for v in range(len(costs)):
            state[i] = v
            costs[v] = sum(violated(f) for f in touching[i])
        best = np.flatnonzero(costs == costs.min()) if rng.random() > 0.1 else np.arange(len(costs))
        state[i] = rng.choice(best)
        broken.difference_update(touching[i])
        broken.update(f for f in touching[i] if violated(f))
    if broken:
        names = ", ".join(model.names[i] for i in model.variables(min(broken)).tolist())
        raise Unsatisfiable(
            f"no state of positive probability was found; the factor over {names} stayed violated. "
            "The model or its evidence may contradict itself"
        )
