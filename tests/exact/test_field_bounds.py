"""Bounds on conditionals hold in every state, and what they prove is known without an alarm; what only looks certain in
the draws is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from logic_worlds import atoms, worlds
from random_models import brute_force, models
from small_theories import evidence_theory, renaming_theory

import definetti as dft
from definetti.inference.graph.certain import log_bounds
from definetti.inference.logic.field_bounds import field_bounds
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify


@given(models(evidence=False))
@settings(max_examples=60)
def test_no_state_passes_the_bound_of_a_factor_graph(model: FactorGraph) -> None:
    states, weights = brute_force(model)
    assume(weights.sum() > 0)
    bounds = np.exp(log_bounds(simplify(model)))
    for i in range(model.n):
        others = [tuple(s) for s in np.delete(states, i, axis=1).tolist()]
        whole: dict[tuple, float] = {}
        for rest, weight in zip(others, weights.tolist(), strict=True):
            whole[rest] = whole.get(rest, 0.0) + weight
        for state, rest, weight in zip(states, others, weights, strict=True):
            if whole[rest] > 0:
                assert weight / whole[rest] <= bounds[model.literal_start[i] + state[i]] * (1 + 1e-6)


@pytest.mark.parametrize("make", [evidence_theory, renaming_theory])
@pytest.mark.parametrize("seed", range(12))
def test_no_state_passes_the_bound_of_a_theory(make, seed: int) -> None:
    model = make(seed)
    free, columns, log_weight = worlds(model)
    if any(p.exclusive for p in model.predicates.values()):
        name = next(name for name, p in model.predicates.items() if p.exclusive)
        assert field_bounds(model, name, [0] * len(model.predicates[name].sorts)) == (-np.inf, np.inf)
        return
    if not free:
        return
    table = np.stack([np.broadcast_to(columns[a], log_weight.shape) for a in free], axis=1)
    place = {row.tobytes(): k for k, row in enumerate(table)}
    for j, (name, constants) in enumerate(free):
        low, high = field_bounds(model, name, constants)
        for k, row in enumerate(table):
            if not row[j]:
                other = row.copy()
                other[j] = True
                up, down = log_weight[place[other.tobytes()]], log_weight[k]
                if np.isfinite(up) or np.isfinite(down):
                    assert low - 1e-9 <= up - down <= high + 1e-9
    assert atoms(model)


EQUIVALENCE = "P(n)\nQ(n)\n40 P(x) <=> Q(x)\n-6 P(x)\n6 Q(x)\n"


@pytest.mark.parametrize("n", [1, 5, 20])
def test_a_nearly_hard_equivalence_is_an_alarm_when_sampled_and_right_by_default(n: int) -> None:
    model = dft.markov_logic(EQUIVALENCE, domain={"n": n})
    sampled = dft.marginals(model, chains=8, sweeps=300, seed=1)
    if sampled.trusted:  # both modes were found and weighed
        assert all(abs(row.probability - 0.5) < 2 * row.half_width for row in sampled.orbits)
    else:
        assert {notice.kind for notice in sampled.notices} & {"frozen", "few-samples", "divided"}
    assert all(row.mcse != 0 for row in sampled.orbits)
    assert [row.probability for row in dft.marginals(model).orbits] == pytest.approx([0.5, 0.5], abs=1e-12)


def test_the_same_as_a_factor_graph() -> None:
    tie = np.exp(np.array([[0, -40], [-40, 0]]))
    model = factor_graph([2, 2], [([0, 1], tie), ([0], [1, np.exp(6)]), ([1], [1, np.exp(-6)])])
    sampled = dft.marginals(model, chains=64, sweeps=300, seed=1)
    assert not sampled.trusted and all(row.mcse != 0 for row in sampled.orbits)
    assert dft.marginals(model)["X0"].probability == pytest.approx(0.5, abs=1e-9)


def test_a_bound_over_all_states_is_the_error() -> None:
    logic = dft.markov_logic("P(n)\nS(n)\n-40 P(x)\n0.1 P(x) ^ S(y)\n", domain={"n": 4})
    found = dft.marginals(logic, chains=8, sweeps=300, seed=1)
    assert found.trusted and found["P(N1)"].probability < 1e-12
    assert found["P(N1)"].mcse == pytest.approx(np.exp(-40 + 0.4))
    chain = factor_graph([2] * 3, [(p, [[1, 2], [2, 1]]) for p in ([0, 1], [1, 2])] + [([0], [1, np.exp(-40)])])
    graph = dft.marginals(chain, chains=64, sweeps=300, seed=1)
    assert graph.trusted and graph["X0"].mcse == pytest.approx(2 * np.exp(-40), rel=1e-6)
    assert dft.exact(chain)["X0"].probability <= graph["X0"].mcse


def test_a_field_below_the_bound_proves_nothing() -> None:
    """Conditionals of 1e-11 are no proof, and neither is a strong field beside a strong coupling."""
    weak = factor_graph([2, 2], [([0], [1, 1e-11]), ([0, 1], [[1, 2], [2, 1]])])
    assert dft.marginals(weak, chains=64, sweeps=100, seed=1)["X0"].mcse > 0
    strong = [[1.0, 1.0], [1.0, np.exp(60)]]
    coupled = factor_graph([2, 2], [([i], [1, np.exp(-40)]) for i in range(2)] + [([0, 1], strong)])
    assert log_bounds(simplify(coupled)) == pytest.approx(np.zeros(4), abs=25)
    sampled = dft.marginals(coupled, chains=64, sweeps=100, seed=1)
    assert not sampled.trusted or abs(sampled["X0"].probability - dft.exact(coupled)["X0"].probability) < 1e-6
    assert list(itertools.chain(sampled.orbits))
