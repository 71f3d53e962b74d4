"""Factor graphs with hard constraints: what is sampled agrees with enumeration, and what is stuck says so."""

from __future__ import annotations

import numpy as np
import pytest
from hard_models import DIFFER, SAME, hard_grid, independent_sets, one_of, parity

import definetti as dft
from definetti.inference.graph.prepare import choose
from definetti.inference.graph.question import ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph.block_gibbs import Blocks
from definetti.samplers.protocol import Plan
from definetti.samplers.run import Illegal
from definetti.symmetry.graph.group import none

SOFT = [[1.0, 2.0], [3.0, 1.5]]

MODELS = {
    "ties": factor_graph([2] * 4, [([0, 1], SAME), ([1, 2], DIFFER), ([2, 3], SOFT), ([0], [1.0, 2.0])]),
    "one of three": factor_graph([2] * 4, [one_of(3), ([2, 3], SOFT), ([0], [1.0, 2.0])]),
    "parity": factor_graph([2] * 4, [([0, 1, 2], parity(3)), ([2, 3], SOFT), ([0, 3], SOFT)]),
    "forced": factor_graph([2] * 4, [([0], [0.0, 1.0]), ([0, 1], DIFFER), ([1, 2], [[1, 3], [1, 1]]), ([2, 3], SAME)]),
    "independent sets": independent_sets(3, 3, 1.7),
    "function": factor_graph([3, 2, 2], [([0, 1], [[1, 0], [0, 1], [0, 2]]), ([1, 2], SOFT)]),
    "shifted": factor_graph([3, 3], [([0, 1], [[0, 1, 0], [0, 0, 2], [3, 0, 0]])]),
    "impossible value": factor_graph([3, 3], [([0, 1], [[1, 2, 0], [3, 1, 0], [0, 0, 0]])]),
}
QUERIES = ["X0=1 ^ X1=0", "X0=1 v X2=1", "X1"]


def kinds(found: dft.Marginals) -> set[str]:
    return {notice.kind for notice in found.notices}


def largest_z(model: FactorGraph, sampler: object, queries: list[str], **settings: object) -> float:
    """The largest distance from the exact answer in standard errors; an error bar of 0 must be exact."""
    found = dft.marginals(model, queries, sampler=sampler, **({"sweeps": 400, "seed": 11} | settings))  # type: ignore[arg-type]
    truth = dft.exact(model, queries)
    assert found.trusted, found.notices
    worst = 0.0
    for name in [*model.names, *queries]:
        p, q = np.atleast_1d(found[name].probability), np.atleast_1d(truth[name].probability)
        error = np.atleast_1d(np.array(found[name].mcse, dtype=np.float64))
        exact = error == 0
        np.testing.assert_allclose(p[exact], q[exact], atol=1e-9, err_msg=name)
        worst = max(worst, float((np.abs(p - q)[~exact] / error[~exact]).max(initial=0.0)))
    return worst


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("symmetries", ["auto", None])
def test_auto_agrees_with_enumeration(name: str, symmetries: object) -> None:
    queries = QUERIES if MODELS[name].n > 2 else QUERIES[:1]
    assert largest_z(MODELS[name], "auto", queries, symmetries=symmetries) < 4.9


@pytest.mark.parametrize("estimator", ["conditional", "control"])
def test_estimators_may_use_the_conditionals_of_blocks(estimator: str) -> None:
    """Two hard rings, each a tree of clusters, that soft factors tie to each other and to single variables."""
    rng = np.random.default_rng(8)
    rings = [([k + i, k + (i + 1) % 7], 1.0 - np.eye(3)) for k in (0, 7) for i in range(7)]
    ties = [(0, 7), (3, 10), (0, 14), (5, 14), (9, 15), (14, 15)]
    soft = [(list(pair), np.exp(rng.normal(size=(3, 3)))) for pair in ties]
    model = factor_graph([3] * 16, [*rings, *soft]).condition({12: 1})
    assert choose(simplify(model), "symmetric") == (Blocks(), [])
    assert largest_z(model, "auto", [], estimator=estimator) < 4.9


def test_groups_given_for_the_model_serve_the_core() -> None:
    model = MODELS["ties"]
    assert largest_z(model, "auto", QUERIES, symmetries=dft.symmetries(model)) < 4.9
    grid = hard_grid(4, 4)
    found = dft.marginals(grid, symmetries=dft.symmetries(grid), sweeps=100, seed=1)
    assert found.trusted and all(found[name].probability == 0.5 for name in grid.names)


@pytest.mark.parametrize("side", [4, 5])
@pytest.mark.parametrize("symmetries", ["auto", None])
def test_plain_gibbs_is_frozen_on_the_colouring_grid(side: int, symmetries: object) -> None:
    """Even where symmetry makes the number perfect."""
    found = dft.marginals(hard_grid(side, side), sampler="gibbs", symmetries=symmetries, sweeps=60, seed=2)
    assert "frozen" in kinds(found) and not found.trusted
    if symmetries is None:
        assert "divided" in kinds(found)
    else:
        assert found["X0"].probability == 0.5


@pytest.mark.parametrize("side", [4, 5])
def test_auto_solves_the_colouring_grid(side: int) -> None:
    found = dft.marginals(hard_grid(side, side), ["X0=1 ^ X1=0 v X0=0 ^ X1=1", "X0=1 ^ X1=1"], sweeps=200, seed=2)
    assert found.trusted
    assert found["X0=1 ^ X1=0 v X0=0 ^ X1=1"].probability == 1.0 and found["X0=1 ^ X1=1"].probability == 0.0
    assert all(abs(row.probability - 0.5) <= 4 * row.mcse for row in found.orbits)  # type: ignore[operator]


@pytest.mark.parametrize("name", MODELS)
def test_frozen_exactly_where_single_moves_cannot(name: str) -> None:
    found = dft.marginals(MODELS[name], sampler="gibbs", sweeps=60, seed=3)
    assert ("frozen" in kinds(found)) == (name not in ("independent sets", "impossible value"))


def test_rare_is_not_frozen() -> None:
    """A variable that is 1 once in 10^5 updates has conditionals between 0 and 1: its number says how rare."""
    model = factor_graph([2, 2, 2], [([0], [1e5, 1.0]), ([0, 1], [[1, 1], [1, 0]]), ([2], [1.0, 1.0])])
    found = dft.marginals(model, sampler="gibbs", sweeps=40, seed=1)
    assert not {"frozen", "divided"} & kinds(found)


def test_forced_by_wide_factors_is_no_alarm() -> None:
    """Neither arc consistency nor pairs see that X0 is 1; the solver does."""

    def clause(*signs: int) -> np.ndarray:
        table = np.ones([2] * len(signs))
        table[tuple(1 - s for s in signs)] = 0.0
        return table

    model = factor_graph(
        [2] * 4,
        [
            ([0, 1, 2], clause(1, 1, 1)),
            ([0, 1, 3], clause(1, 0, 1)),
            ([0, 2, 3], clause(1, 0, 1)),
            ([0, 3], clause(1, 0)),
        ],
    )
    found = dft.marginals(model, sampler="gibbs", sweeps=60, seed=1)
    assert "frozen" not in kinds(found)
    assert (found["X0"].probability, found["X0"].mcse) == (1.0, 0.0)


@pytest.mark.parametrize("weight", [0.2, 0.8])
def test_soft_models_raise_no_alarm(weight: float) -> None:
    found = dft.marginals(hard_grid(6, 6, np.exp([[0.0, weight], [weight, 0.0]])), sweeps=300, seed=4)
    assert found.trusted, found.notices


def test_chains_that_see_different_parts_are_told() -> None:
    """Two regions, each with room to move."""
    table = np.zeros((2,) * 4)
    table[0, 0], table[1, 1] = 1.0, 0.5
    model = factor_graph([2] * 4, [([0, 1, 2, 3], table), ([0, 2], SOFT)])
    found = dft.marginals(model, sampler="gibbs", symmetries=None, sweeps=100, seed=5)
    assert {"divided", "frozen"} <= kinds(found) and not found.trusted
    assert largest_z(model, "auto", []) < 4.9


def test_every_sweep_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFINETTI_DEBUG", "1")
    for name in MODELS:
        dft.marginals(MODELS[name], sampler="gibbs", sweeps=20, seed=6)
        dft.marginals(MODELS[name], sampler="auto", sweeps=20, seed=6)


def test_an_illegal_state_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look after a sweep, at states planted between."""
    monkeypatch.setenv("DEFINETTI_DEBUG", "1")
    question = ask(none(simplify(hard_grid(2, 2, 1.0 - np.eye(3)))), [], "orbit", 1)
    sampling = question.sampling(dft.Gibbs(), Plan(chains=2, burn_in=2, sweeps=6, seed=1, workers=1), "orbit")
    watch = sampling._watches[0]
    watch.look()
    sampling.blocks[0].state[:] = 0
    with pytest.raises(Illegal, match=r"the hard factor over \(X0, X1\) is violated"):
        watch.look()


# --- the figures of the paper's grid ---------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [20, 21, *(pytest.param(side, marks=pytest.mark.slow) for side in (100, 101))])
def test_the_large_colouring_grid(side: int) -> None:
    """Plain Gibbs is frozen; clusters and auto give 1/2 everywhere within their error, edges exactly 1."""
    model = hard_grid(side, side)
    edges = [f"X{a}=1 ^ X{a + 1}=0 v X{a}=0 ^ X{a + 1}=1" for a in (0, side // 2, side * (side - 1))]
    frozen = dft.marginals(model, sampler="gibbs", symmetries=None, chains=4, sweeps=4, burn_in=1, seed=1)
    notice = next(n for n in frozen.notices if n.kind == "frozen")
    assert notice.message.startswith(f"{side**2} of {side**2} variables") and not frozen.trusted
    for sampler in ("swendsen-wang", "auto"):
        found = dft.marginals(model, edges, sampler=sampler, symmetries=None, chains=16, sweeps=20, burn_in=2, seed=1)
        assert found.trusted, found.notices
        assert all((found[edge].probability, found[edge].mcse) == (1.0, 0.0) for edge in edges)
        assert all(abs(row.probability - 0.5) <= 5 * row.mcse for row in found.orbits)  # type: ignore[operator]
        assert sum(row.size for row in found.orbits) == side**2
