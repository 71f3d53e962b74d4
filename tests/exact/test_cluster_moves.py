"""Swendsen–Wang leaves the distribution alone: exact transition matrices, every random choice followed."""

from __future__ import annotations

import numpy as np
import pytest
from hard_models import DIFFER, NOT_BOTH, SAME
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import brute_force
from small_models import dense, moved
from uncompiled import cluster_branches as branches
from uncompiled import uncompiled

from definetti.errors import ModelError
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph import swendsen_wang as cluster
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels.graph import swendsen_wang as kernels
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph.group import none

TOLERANCE = 1e-12


def matrix(model: FactorGraph, *changes: tuple[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Possible states, their probabilities, and the transition matrix between them."""
    states, weights = brute_force(model)
    states, weights = states[weights > 0], weights[weights > 0]
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    source, simple = uncompiled(kernels, *changes), simplify(model)
    out = np.zeros((len(states), len(states)))
    for k, state in enumerate(states):
        for chance, reached, _ in branches(source, simple, state):
            out[k, number[tuple(reached.tolist())]] += chance
    return states, weights / weights.sum(), out


def flow_error(model: FactorGraph, *changes: tuple[str, str]) -> float:
    _, probability, step = matrix(model, *changes)
    assert np.abs(step.sum(axis=1) - 1).max() < TOLERANCE
    return float(np.abs(probability @ step - probability).max())


@st.composite
def bonds(draw: st.DrawFn) -> FactorGraph:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 4))
    factors = [([i], np.exp(rng.normal(size=2))) for i in range(n) if rng.random() < 0.7]
    for i in range(n):
        for j in range(i):
            kind = rng.integers(4)
            if kind == 0:
                factors.append(([i, j], np.exp(rng.normal(size=(2, 2)))))
            elif kind == 1 and rng.random() < 0.4:
                table = np.diag(rng.exponential(size=2))
                factors.append(([i, j], table if rng.random() < 0.5 else table[::-1]))
    return factor_graph([2] * n, factors)


def applies(model: FactorGraph) -> bool:
    """Whether every factor is a field or a bond."""
    try:
        return bool(cluster.couplings(model))
    except ModelError:
        return False


@settings(max_examples=60)
@given(bonds())
def test_random_models_are_left_alone(model: FactorGraph) -> None:
    if brute_force(model)[1].any() and applies(simplify(model)):
        assert flow_error(model) < TOLERANCE


def ring(coupling: float, field: float) -> FactorGraph:
    table = np.exp([[coupling, -coupling], [-coupling, coupling]])
    return factor_graph(
        [2] * 4, [([i, (i + 1) % 4], table) for i in range(4)] + [([i], [1, np.exp(field)]) for i in range(4)]
    )


@pytest.mark.parametrize("coupling", [0.6, -0.6])
@pytest.mark.parametrize("field", [0.0, 0.4])
def test_rings(coupling: float, field: float) -> None:
    model = ring(coupling, field)
    assert flow_error(model) < TOLERANCE
    states, _, step = matrix(model)
    assert (np.linalg.matrix_power(step, 3) > 0).all()  # every state can be reached
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    simple = simplify(model)
    group = symmetries(model)
    assert group.group.generators
    for element in dense(group):  # the update commutes with the group
        image = [number[tuple(s)] for s in moved(states, simple, element).tolist()]
        assert np.abs(step[np.ix_(image, image)] - step).max() < TOLERANCE


def test_the_hard_colouring_flips_as_one() -> None:
    model = factor_graph([2] * 4, [([0, 1], DIFFER), ([1, 2], DIFFER), ([2, 3], DIFFER), ([0, 3], DIFFER)])
    _, _, step = matrix(model)
    np.testing.assert_allclose(step, [[0.5, 0.5], [0.5, 0.5]], atol=TOLERANCE)


def test_conditionals_have_the_mean_of_what_is_drawn() -> None:
    """F - G is a martingale difference from every state."""
    model = simplify(ring(0.5, 0.3))
    source = uncompiled(kernels)
    for state in ([0, 0, 1, 1], [1, 1, 1, 1]):
        total = sum(
            chance * (sums.final - sums.conditional)  # type: ignore[attr-defined]
            for chance, _, sums in branches(source, model, np.array(state))
        )
        assert np.abs(total).max() < TOLERANCE  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        ("satisfied = (state[site[a], lane] ^ state[site[b], lane]) == differ[e]", "satisfied = True"),
        ("else -field[k]", "else field[k]"),
        ("pull[root[k]] +=", "pull[root[k]] ="),
        ("flips[k] = 0 if", "flips[k] = 1 if"),
    ],
)
def test_planted_bugs_are_seen(change: tuple[str, str]) -> None:
    assert flow_error(ring(0.6, 0.4), change) > 1e-4


@pytest.mark.parametrize("table", [NOT_BOTH, [[1, 0], [1, 1]], [[1, 1, 2], [3, 1, 2]]])
def test_other_factors_are_refused(table: object) -> None:
    cards = list(np.shape(table))  # type: ignore[arg-type]
    model = factor_graph(cards, [([0, 1], np.array(table, dtype=float))])
    with pytest.raises(ModelError, match="cluster flips need"):
        cluster.build(simplify(model), slots_of(simplify(model), none(simplify(model)).row_of))
    assert applies(simplify(factor_graph([2, 2], [([0, 1], SAME)])))
