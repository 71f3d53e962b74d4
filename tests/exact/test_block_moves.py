"""Joint draws of parts of the hard factors: exact transition matrices, legal tuples, and that everything is reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType

import numpy as np
import pytest
from hard_models import DIFFER, NOT_BOTH, SAME, hard_grid, one_of, parity
from hypothesis import given, settings
from random_models import brute_force, models
from small_models import dense, moved
from uncompiled import uncompiled

import definetti as dft
from definetti.errors import ModelError, Unsatisfiable
from definetti.model.factors import FactorGraph, factor_graph
from definetti.model.hard import legal_tuples
from definetti.model.simplify import simplify
from definetti.samplers import joint
from definetti.samplers.blocks import slots_of
from definetti.samplers.choose import choose
from definetti.samplers.joint import Blocks
from definetti.samplers.kernels import joint as kernels
from definetti.samplers.tables import Stuck
from definetti.solvers.connectivity import hard_tables, regions
from definetti.symmetry.factors import none, symmetries

TOLERANCE = 1e-12
SOFT = [[1.0, 2.0], [3.0, 1.5]]
MODELS = {
    "tie": factor_graph([2] * 3, [([0, 1], SAME), ([1, 2], SOFT), ([0], [1.0, 2.0])]),
    "one of three": factor_graph([2] * 4, [one_of(3), ([2, 3], SOFT)]),
    "two parts": factor_graph([2] * 4, [([0, 1], DIFFER), ([2, 3], SAME), ([1, 2], SOFT)]),
    "parity": factor_graph([2] * 4, [([0, 1, 2], parity(3)), ([2, 3], NOT_BOTH)]),
    "shift": factor_graph([3, 3, 2], [([0, 1], [[0, 1, 0], [0, 0, 2], [3, 0, 0]]), ([1, 2], [[1, 2], [3, 1], [1, 1]])]),
}


def branches(
    source: ModuleType, model: FactorGraph, state: np.ndarray, order: np.ndarray
) -> Iterator[tuple[float, np.ndarray, object]]:
    """(probability, state reached, sums) for every way that the draws of one sweep can fall."""
    engine = joint.build(model, slots_of(model, none(model).row_of), Blocks().parts(model))
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        script = waiting.pop()
        made: list[int] = []
        chance = 1.0

        def pick(weight, count, total, streams, lane, script=script, made=made) -> int:
            nonlocal chance
            possible = [t for t in range(count) if weight[t] > 0]
            if len(made) < len(script):
                chosen = script[len(made)]
            else:
                chosen = possible[0]
                waiting.extend((*made, t) for t in possible[1:])
            made.append(chosen)
            chance *= weight[chosen] / total
            return chosen

        source.pick = pick  # type: ignore[attr-defined]
        block = joint.JointBlock(engine, state[None], np.random.SeedSequence(0))
        block._kernels = source
        block.run(order[None], 2)
        yield chance, block.state[:, 0].astype(np.int64), block.harvest()


def matrix(model: FactorGraph, order: np.ndarray, *changes: tuple[str, str]) -> tuple[np.ndarray, ...]:
    states, weights = brute_force(model)
    states, weights = states[weights > 0], weights[weights > 0]
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    source, simple = uncompiled(kernels, *changes), simplify(model)
    out = np.zeros((len(states), len(states)))
    for k, state in enumerate(states):
        for chance, reached, _ in branches(source, simple, state, order):
            out[k, number[tuple(reached.tolist())]] += chance
    return states, weights / weights.sum(), out


def flow_error(model: FactorGraph, *changes: tuple[str, str]) -> float:
    _, probability, step = matrix(model, simplify(model).free[::-1], *changes)
    return float(np.abs(probability @ step - probability).max())


@pytest.mark.parametrize("name", MODELS)
def test_block_moves_leave_the_distribution_alone_and_reach_everything(name: str) -> None:
    model = MODELS[name]
    _, probability, step = matrix(model, simplify(model).free)
    assert np.abs(step.sum(axis=1) - 1).max() < TOLERANCE
    assert np.abs(probability @ step - probability).max() < TOLERANCE
    assert (np.linalg.matrix_power(step, 8) > 0).all()


@settings(max_examples=40)
@given(models(most=4))
def test_random_models_are_left_alone(model: FactorGraph) -> None:
    if brute_force(model)[1].any() and len(simplify(model).free) and np.prod(model.cards) <= 32:
        assert flow_error(model) < TOLERANCE


def test_sweeps_commute_with_the_group() -> None:
    """Averaged over all orders, as a fresh random order does."""
    from itertools import permutations

    model = factor_graph([2] * 4, [([0, 1], DIFFER), ([2, 3], DIFFER), ([0, 2], SOFT), ([1, 3], SOFT)])
    steps = [matrix(model, np.array(order)) for order in permutations(range(4))]
    states, step = steps[0][0], np.mean([s for _, _, s in steps], axis=0)
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    group = symmetries(model)
    assert group.group.generators
    for element in dense(group):
        image = [number[tuple(s)] for s in moved(states, simplify(model), element).tolist()]
        assert np.abs(step[np.ix_(image, image)] - step).max() < TOLERANCE


def test_conditionals_have_the_mean_of_what_is_drawn() -> None:
    model = simplify(MODELS["two parts"])
    for state in ([0, 1, 0, 0], [1, 0, 1, 1]):
        found = list(branches(uncompiled(kernels), model, np.array(state), model.free))
        total = sum(chance * (sums.final - sums.conditional) for chance, _, sums in found)  # type: ignore[attr-defined]
        assert np.abs(total).max() < TOLERANCE  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        ("log += factors.log[entry]", "log = factors.log[entry]"),
        ("entry += factors.stride[p] * state[factors.scope[p], lane]", "entry += 0"),
        ("put(model, b, t, state, lane)\n        log = 0.0", "log = 0.0"),
    ],
)
def test_planted_bugs_are_seen(change: tuple[str, str]) -> None:
    with suppress(KeyError, Stuck):  # an illegal state was reached
        assert flow_error(MODELS["two parts"], change) > 1e-4


@settings(max_examples=60)
@given(models(most=4))
def test_legal_tuples_are_those_of_brute_force(model: FactorGraph) -> None:
    try:
        simple = simplify(model)
    except Unsatisfiable:
        return
    parts = hard_tables(simple)
    if not parts:
        return
    found = legal_tuples(simple, parts, 4096)
    assert found is not None
    variables, tuples = found
    hard = factor_graph(simple.cards.tolist(), [(scope, allowed.astype(float)) for scope, allowed in parts])
    states, weights = brute_force(hard)
    np.testing.assert_array_equal(
        np.unique(tuples, axis=0).reshape(-1, len(variables)),
        np.unique(states[weights > 0][:, variables], axis=0).reshape(-1, len(variables)),
    )


def test_auto_draws_small_parts_jointly() -> None:
    rows = [one_of(5, 5 * r) for r in range(5)]
    columns = [([5 * r + c for r in range(5)], one_of(5)[1]) for c in range(5)]
    fields = np.random.default_rng(3).exponential(size=(25, 2)) + 0.5
    model = factor_graph([2] * 25, [*rows, *columns, *(([i], f) for i, f in enumerate(fields))])
    truth = dft.exact(model)
    for sampler in ("auto", "blocks"):
        found = dft.marginals(model, sampler=sampler, sweeps=200, seed=2)
        assert found.run["sampler"] == "blocks" and found.trusted, found.notices
        assert found.compare(truth).agrees


def test_parts_too_large_are_left_and_watched() -> None:
    model = simplify(hard_grid(6, 6))
    assert Blocks(most=1).parts(model) == []
    found = dft.marginals(hard_grid(6, 6), sampler=Blocks(most=1), sweeps=50, seed=1)
    assert "frozen" in {notice.kind for notice in found.notices}
    assert dft.marginals(hard_grid(6, 6), sampler="blocks", sweeps=100, seed=1).trusted


def test_random_scan_is_refused() -> None:
    with pytest.raises(ModelError, match="once per sweep"):
        Blocks("random")


@pytest.mark.parametrize("seed", range(30))
def test_auto_reaches_every_state_where_that_is_decided(seed: int) -> None:
    """On small random hard models auto's kernel is irreducible: Gibbs only where the legal states are connected."""
    from definetti.model.ties import untie

    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=5).tolist()
    factors = []
    for _ in range(4):
        scope = rng.permutation(5)[: rng.integers(2, 4)].tolist()
        factors.append((scope, (rng.random([cards[i] for i in scope]) < 0.5).astype(float)))
    try:
        core = untie(factor_graph(cards, factors)).core
    except Unsatisfiable:
        return
    weights = brute_force(core)[1]
    if not weights.any():
        return
    sampler, _ = choose(core, "symmetric")
    if sampler.name == "gibbs":
        assert regions((weights > 0).reshape(core.cards)) == 1
    else:
        assert sampler.name == "blocks"
        assert len(matrix(core, core.free)[0]) == (weights > 0).sum()
        assert (np.linalg.matrix_power(matrix(core, core.free)[2], 8) > 0).all()
