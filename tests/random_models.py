"""Random small factor graphs for hypothesis, and their distribution by brute force (no code shared with solvers)."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from definetti.model.graph.factors import FactorGraph, factor_graph

ENTRIES = [0.0, 0.25, 0.5, 1.0, 1.0, 1.0, 2.0, 3.0, 7.5]


@st.composite
def models(draw: st.DrawFn, zeros: bool = True, evidence: bool = True, most: int = 5) -> FactorGraph:
    """Up to `most` variables with 1–4 values, repeated scopes, structured and arbitrary tables, zeros, evidence."""
    cards = draw(st.lists(st.sampled_from([1, 2, 2, 2, 3, 3, 4]), min_size=1, max_size=most))
    n = len(cards)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(draw(st.integers(0, 7))):
        scope = rng.permutation(n)[: rng.integers(0, min(n, 4) + 1)].tolist()
        shape = [cards[i] for i in scope]
        kind = rng.integers(4)
        if kind == 0:
            table = np.exp(rng.normal(size=shape))
        elif kind == 1:
            table = rng.choice(ENTRIES if zeros else ENTRIES[1:], size=shape)
        elif kind == 2:  # a clause
            table = np.ones(shape)
            table[tuple(rng.integers(shape)) if shape else ()] = 0.0 if zeros and rng.random() < 0.5 else 5.0
        else:  # does not depend on one of its variables
            table = np.exp(rng.normal(size=[c if j else 1 for j, c in enumerate(shape)])) * np.ones(shape)
        factors.append((scope, table))
    model = factor_graph(cards, factors)
    if evidence:
        seen = {i: int(rng.integers(cards[i])) for i in range(n) if rng.random() < 0.25}
        model = model.condition(seen)
    return model


def brute_force(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """All states [S, n] and their weights (not normalised), one factor and one state at a time."""
    states = list(itertools.product(*(range(c) for c in model.cards)))
    weights = []
    for state in states:
        weight = np.exp(model.log_constant)
        for k in range(model.factor_count):
            weight *= np.exp(model.table(k)[tuple(state[i] for i in model.variables(k))])
        if any(e >= 0 and e != v for e, v in zip(model.evidence, state, strict=True)):
            weight = 0.0
        weights.append(weight)
    return np.array(states, dtype=np.int64).reshape(len(states), model.n), np.array(weights)
