"""Legal starts, clashes, and the cubes that hard tables forbid."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from hard_models import DIFFER, hard_grid, independent_sets, one_of, parity
from hypothesis import assume, given, settings
from random_models import brute_force, models

from definetti.constraints.graph.legal_states import (
    cubes,
    decision_diagram,
    explain,
    impossible_literals,
    possible,
    unsat_core,
    violated,
)
from definetti.errors import Unsatisfiable
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph.starts import starts


@pytest.mark.parametrize("seed", range(20))
def test_cubes_cover_what_is_forbidden_and_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 4, size=rng.integers(1, 5))
    forbidden = rng.random(shape) < rng.random()
    covered = np.zeros(shape, dtype=bool)
    for cube in cubes(forbidden):
        held = dict(cube)
        covered[tuple(held.get(axis, slice(None)) for axis in range(len(shape)))] = True
    np.testing.assert_array_equal(covered, forbidden)


@pytest.mark.parametrize("seed", range(20))
def test_diagrams_lead_to_what_is_forbidden(seed: int) -> None:
    rng = np.random.default_rng(seed)
    forbidden = rng.random(rng.integers(1, 4, size=rng.integers(1, 5))) < rng.random()
    levels = decision_diagram(forbidden)
    assert len(levels[0]) == 1
    for entry in np.ndindex(forbidden.shape):
        node = 0
        for level, value in zip(levels, entry, strict=True):
            node = int(level[node, value])
        assert node == forbidden[entry]


@settings(max_examples=60)
@given(models())
def test_diagrams_and_cubes_allow_the_same(model: FactorGraph) -> None:
    legal, encoding = {}, import_module("definetti.constraints.graph.legal_states")
    for largest in (encoding.LARGE_TABLE, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoding, "LARGE_TABLE", largest)
            try:
                simple = simplify(model)
                every = np.stack([x.ravel() for x in np.indices(simple.cards.tolist())], axis=1)
                asked = np.arange(simple.n)
                legal[largest] = encoding.possible_tuples(simple, [(asked.tolist(), every)])[0].tolist()
                assert legal[largest] == (~violated(simple, every)).tolist()
            except Unsatisfiable:
                legal[largest] = unsat_core(model)
    assert legal[1] == legal[encoding.LARGE_TABLE]


def test_a_parity_of_twenty_variables(cpu_limit) -> None:
    even = np.indices((2,) * 20).sum(axis=0) % 2 == 0
    model = factor_graph([2] * 20, [(list(range(20)), even)])
    assert [len(level) for level in decision_diagram(~even)] == [1] + [2] * 19
    with cpu_limit(20):
        states = starts(simplify(model), 6, np.random.default_rng(1))
        assert not len(impossible_literals(simplify(model)))
    assert not (states.sum(axis=1) % 2).any()


def test_one_of_k_is_pairs_and_one_row() -> None:
    found = cubes(one_of(6)[1] == 0)
    assert sorted(len(cube) for cube in found) == [2] * 15 + [6]


@settings(max_examples=100)
@given(models())
def test_starts_are_legal_or_there_are_none(model: FactorGraph) -> None:
    _, weights = brute_force(model)
    try:
        simple = simplify(model)
        states = starts(simple, 6, np.random.default_rng(1))
    except Unsatisfiable:
        assert not weights.any()
        return
    assert weights.any()
    assert np.isfinite(model.log_density(states)).all()
    assert not violated(model, states.astype(np.int64)).any()


@settings(max_examples=100)
@given(models())
def test_a_clash_clashes_and_every_part_is_needed(model: FactorGraph) -> None:
    _, weights = brute_force(model)
    factors, seen = unsat_core(model)
    if weights.any():
        assert (factors, seen) == ([], [])
        return
    assert not _satisfiable(model, factors, seen)
    for k in factors:
        assert _satisfiable(model, [f for f in factors if f != k], seen)
    for i in seen:
        assert _satisfiable(model, factors, [j for j in seen if j != i])


def _satisfiable(model: FactorGraph, factors: list[int], seen: list[int]) -> bool:
    tables = [(model.variables(k).tolist(), model.table(k)) for k in factors]
    part = factor_graph(model.cards.tolist(), tables, log=True).condition({i: int(model.evidence[i]) for i in seen})
    return bool(brute_force(part)[1].any())


@pytest.mark.parametrize("side", [100, 101])
def test_colouring_grid_starts_in_both_states_and_quickly(side: int, cpu_limit) -> None:
    model = simplify(hard_grid(side, side))
    with cpu_limit(5):
        states = starts(model, 64, np.random.default_rng(3))
    assert not violated(model, states).any()
    assert set(states[:, 0].tolist()) == {0, 1}


def test_large_clash_is_told_quickly_and_names_evidence(cpu_limit) -> None:
    model = hard_grid(100, 100).condition({0: 0, 1: 0, 9999: 1})
    with cpu_limit(10):
        factors, seen = unsat_core(model)
        message = str(explain(model))
    assert (len(factors), seen) == (1, [0, 1])
    assert message == (
        "no state has positive probability: the factor over (X0, X1) and the evidence X0=0, X1=0 contradict each other"
    )


def test_an_odd_ring_has_no_colouring() -> None:
    ring = factor_graph([2] * 5, [([i, (i + 1) % 5], DIFFER) for i in range(5)])
    assert unsat_core(ring) == ([0, 1, 2, 3, 4], [])
    with pytest.raises(Unsatisfiable, match=r"the factors over \(X0, X1\), .* contradict each other"):
        starts(simplify(ring), 3, np.random.default_rng(0))


def test_a_table_of_zeros_clashes_with_nothing_but_itself() -> None:
    message = str(explain(factor_graph([2, 2], [([1], [0, 0]), ([0, 1], DIFFER)])))
    assert message == "no state has positive probability: the factor over (X1) allows no values"


def test_each_value_is_preferred_in_turn() -> None:
    """Of the two regions of a hard model the rarer one is seen as well."""
    table = np.zeros((2,) * 10)
    table[(0,) * 10], table[(1,) * 10] = 1.0, 1.0
    field = [([i], [1.0, 1e-3]) for i in range(10)]
    states = starts(simplify(factor_graph([2] * 10, [(list(range(10)), table), *field])), 8, np.random.default_rng(0))
    assert {0, 10} <= set(states.sum(axis=1).tolist())


def test_possible_tells_forced_from_free() -> None:
    model = factor_graph([2] * 4, [([0, 1, 2], parity(3)), ([0, 1], DIFFER), ([3], [1.0, 1.0])])
    states = starts(simplify(model), 1, np.random.default_rng(0)).astype(np.int64)
    assert possible(model, np.array([0, 1, 2, 3]), states).tolist() == [True, True, False, True]


def test_soft_models_have_no_hard_factors() -> None:
    assert len(simplify(hard_grid(3, 3, [[1.0, 2.0], [2.0, 1.0]])).hard_factors) == 0
    assert len(simplify(independent_sets(2, 2)).hard_factors) == 4


@settings(max_examples=100)
@given(models())
def test_impossible_literals_are_those_of_brute_force(model: FactorGraph) -> None:
    states, weights = brute_force(model)
    assume(weights.any())
    simple = simplify(model)
    met = {(i, int(v)) for state in states[weights > 0] for i, v in enumerate(state)}
    never = [
        int(simple.literal_start[i]) + v
        for i in simple.free.tolist()
        for v in range(int(simple.cards[i]))
        if (i, v) not in met
    ]
    assert impossible_literals(simple).tolist() == never
