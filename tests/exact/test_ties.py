"""The core of a model and its variables as functions of the core's carry the same distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hard_models import DIFFER, NOT_BOTH, SAME, hard_grid, independent_sets, one_of, parity
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_models import brute_force, models

from definetti.constraints.graph.contract import contract, entries_connected
from definetti.errors import Unsatisfiable
from definetti.inference.marginals import marginals
from definetti.model.graph.factors import FREE, FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.model.queries import parse_query
from definetti.solvers.exact import exact


@st.composite
def hard_models(draw: st.DrawFn) -> FactorGraph:
    """Ties, exclusions, parities and one-of-k among up to six variables, some soft factors, some evidence."""
    cards = draw(st.lists(st.sampled_from([2, 2, 2, 3]), min_size=2, max_size=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for _ in range(draw(st.integers(1, 6))):
        scope = rng.permutation(len(cards))[: rng.integers(1, min(len(cards), 4) + 1)].tolist()
        shape = [cards[i] for i in scope]
        kept = rng.random(shape) < rng.choice([0.3, 0.5, 0.8, 1.1])
        if len(scope) == 2 and rng.random() < 0.6:
            kept = np.zeros(shape, dtype=bool)
            kept[np.arange(min(shape)), rng.permutation(min(shape))] = True
        factors.append((scope, kept * np.exp(rng.normal(size=shape))))
    model = factor_graph(cards, factors)
    return model.condition({i: int(rng.integers(cards[i])) for i in range(len(cards)) if rng.random() < 0.1})


def check_core(model: FactorGraph) -> None:
    states, weights = brute_force(model)
    try:
        found = contract(model)
    except Unsatisfiable:
        assert not weights.any()
        return
    core_states, core_weights = brute_force(found.core)
    if not weights.any():
        assert not core_weights.any()
        return
    images = found.states(core_states)
    possible = core_weights > 0
    assert len(np.unique(images[possible], axis=0)) == possible.sum()  # one to one
    carried = {tuple(state): w for state, w in zip(images[possible].tolist(), core_weights[possible], strict=True)}
    given = {tuple(state): w for state, w in zip(states.tolist(), weights, strict=True) if w > 0}
    assert carried.keys() == given.keys()
    np.testing.assert_allclose([carried[s] for s in given], list(given.values()), rtol=1e-7)
    _, own = brute_force(found.model)  # the model with what is forced as evidence
    np.testing.assert_allclose(own, weights, rtol=1e-7, atol=1e-300)


@settings(max_examples=150)
@given(hard_models())
def test_hard_models_keep_their_distribution(model: FactorGraph) -> None:
    check_core(model)


@settings(max_examples=100)
@given(models())
def test_random_models_keep_their_distribution(model: FactorGraph) -> None:
    check_core(model)


@settings(max_examples=60)
@given(hard_models())
def test_events_keep_their_probability(model: FactorGraph) -> None:
    states, weights = brute_force(model)
    assume(weights.any() and model.n >= 2)
    found = contract(model)
    query = parse_query(f"X0=1 v X{model.n - 1}=0", model)
    carried = found.query(query)
    core_states, core_weights = brute_force(found.core)
    holds = (core_states[:, None, list(carried.variables)] == carried.satisfying[None]).all(axis=2).any(axis=1)
    truth = (states[:, 0] == 1) | (states[:, -1] == 0)
    assert core_weights[holds].sum() / core_weights.sum() == pytest.approx(
        weights[truth].sum() / weights.sum(), abs=1e-9
    )


@pytest.mark.parametrize("side", [100, 101])
def test_the_colouring_grid_is_one_variable(side: int, cpu_limit) -> None:
    with cpu_limit(5):
        found = contract(hard_grid(side, side))
    assert (found.core.n, found.core.factor_count, found.merged) == (1, 0, True)
    board = np.indices((side, side)).sum(axis=0).ravel() % 2
    np.testing.assert_array_equal(found.states(np.array([[0], [1]])), [board, 1 - board])


def test_what_is_forced_becomes_evidence() -> None:
    chain = [([i, i + 1], SAME) for i in range(2000)]
    found = contract(factor_graph([2] * 2001, [*chain, ([0], [0.0, 1.0])]))
    assert (found.model.evidence == 1).all()
    implied = factor_graph([2] * 3, [([0, 1], [[1, 1], [0, 1]]), ([1, 2], [[1, 1], [0, 1]]), ([0, 2], NOT_BOTH)])
    assert contract(implied).model.evidence.tolist() == [0, FREE, FREE]  # 0 implies 1 implies 2, and not both 0 and 2


def test_implications_around_a_ring_are_equalities() -> None:
    ring = factor_graph([2] * 5, [([i, (i + 1) % 5], [[1, 1], [0, 1]]) for i in range(5)])
    assert contract(ring).core.n == 1


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_one_of_k_is_one_variable(count: int) -> None:
    found = contract(factor_graph([2] * count, [one_of(count)]))
    assert found.core.cards.tolist() == [count]


def test_parities_that_overlap() -> None:
    model = factor_graph([2] * 5, [([0, 1, 2], parity(3)), ([2, 3, 4], parity(3)), ([0, 4], [[1, 2], [3, 4]])])
    check_core(model)
    assert contract(model).core.n == 1


def test_what_single_moves_connect_is_left_alone() -> None:
    for model in (independent_sets(3, 3), hard_grid(3, 3, [[1, 2], [2, 1]])):
        found = contract(model)
        assert not found.merged and found.core is found.model
        np.testing.assert_array_equal(found.model.tables, simplify(model).tables)


def test_no_table_grows_beyond_its_limit() -> None:
    """Rows and columns of a permutation matrix of size 7: a column would become a table of 7^7 entries."""
    rows = [one_of(7, 7 * r) for r in range(7)]
    columns = [([7 * r + c for r in range(7)], one_of(7)[1]) for c in range(7)]
    found = contract(factor_graph([2] * 49, [*rows, *columns]))
    assert np.diff(found.core.table_start).max() <= 2**14


def test_connected() -> None:
    assert entries_connected(np.array([[0, 0], [0, 1], [1, 1]]))
    assert not entries_connected(np.array([[0, 0], [1, 1]]))


def test_a_contradiction_is_told() -> None:
    with pytest.raises(Unsatisfiable):
        contract(factor_graph([2] * 3, [([0, 1], DIFFER), ([1, 2], DIFFER), ([0, 2], DIFFER)]))


@settings(max_examples=80)
@given(hard_models())
def test_exact_answers_by_the_core_are_those_of_enumeration(model: FactorGraph) -> None:
    queries = [f"X0=1 ^ X{model.n - 1}=0", "X1"]
    try:
        by_core = exact(model, queries)
    except Unsatisfiable:
        assert not brute_force(model)[1].any()
        return
    listed = exact(model, queries, method="enumerate")
    assert by_core.log_z == pytest.approx(listed.log_z, abs=1e-7)
    for name in [*model.names, *queries]:
        np.testing.assert_allclose(by_core[name].probability, listed[name].probability, atol=1e-7)


def test_the_colouring_grid_is_solved_exactly() -> None:
    found = exact(hard_grid(101, 101), ["X0=1 ^ X1=0 v X0=0 ^ X1=1"])
    assert found.log_z == pytest.approx(np.log(2)) and found["X7"].probability == 0.5
    assert found["X0=1 ^ X1=0 v X0=0 ^ X1=1"].probability == 1.0


def test_merging_respects_symmetries_of_overlapping_factors() -> None:
    """Six variables, three one-of-three factors that share corners: all corners alike, all sides alike."""
    table = one_of(3)[1]
    model = factor_graph([2] * 6, [([0, 1, 2], table), ([2, 3, 4], table), ([4, 5, 0], table)])
    check_core(model)
    assert contract(model).core.n == 1
    found = marginals(model, sweeps=50, seed=1)
    assert sorted(row.size for row in found.orbits) == [3, 3]
    assert found["X0"].mcse == found["X2"].mcse and found["X1"].probability == found["X5"].probability
