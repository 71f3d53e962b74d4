"""Expectation and variance of estimators by enumeration; Lemma 1 and Example 1 of the paper; folding the slow way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from folding import fold_error, folded, indicators
from small_models import all_elements, hard_pairs, ising_ring, mean_field, moved, potts_ring, triples
from uncompiled import target

import definetti as dft
from definetti.inference.draws.samples import fold
from definetti.inference.graph.assemble import with_events
from definetti.inference.graph.question import GraphQuestion, ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.queries import parse_query
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

MODELS = {
    "ring with flips": (ising_ring(4), ("X0=1 ^ X1=1", "X0=1 ^ X2=0 ^ X1=1")),
    "antiferromagnet": (mean_field(4, -0.5, 0.2), ("X0=1 ^ X1=0", "X0=1 v X3=1")),
    "hard": (hard_pairs(), ("X0=1 ^ X2=1", "X0=0 ^ X1=0")),
    "potts": (potts_ring(3, 3), ("X0=1 ^ X1=1", "X0=0 ^ X1=2")),
    "observed": (potts_ring(4, 3).condition({1: 2}), ("X0=2 ^ X2=2", "X1=2 ^ X3=0", "X0=1 <=> X2=1")),
    "triples": (triples(), ("X0=2 ^ X2=2", "X0=2 ^ X1=1 ^ X4=3")),
}


def questions(name: str) -> tuple[GraphQuestion, GraphQuestion]:
    """Asked of the orbit estimator, and of the standard one."""
    model, queries = MODELS[name]
    group = symmetries(model)
    return ask(group, queries, "orbit", 0), ask(group, queries, "standard", 0)


def truths(question: GraphQuestion, states: np.ndarray, probability: np.ndarray) -> np.ndarray:
    return probability @ indicators(question, states)


@pytest.mark.parametrize("name", MODELS)
def test_lemma_1(name: str) -> None:
    """The mean of the indicator over the orbit of a state, by brute force over the group, is its orbit Hamming weight
    over the size of the orbit of the literals: also where values are permuted, and for tuples."""
    question, _ = questions(name)
    group, model = question.group, question.group.model
    aim = target(MODELS[name][0])
    assert aim is not None
    elements = all_elements(group)
    assert len(elements) == group.order and group.order > 1
    alone = ask(group, MODELS[name][1], "standard", 0)
    over_group = np.mean([indicators(alone, moved(aim.states, model, g)) for g in elements], axis=0)
    f = folded(question, aim.states)
    for i in model.free.tolist():
        for q in range(model.literal_start[i], model.literal_start[i + 1]):
            single = over_group[:, alone.columns.statistic_of[q]]
            np.testing.assert_allclose(f[:, question.columns.statistic_of[q]], single, atol=1e-12)
    joint = f[:, question.columns.singles :]
    np.testing.assert_allclose(joint, over_group[:, alone.columns.singles :], atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_orbit_estimator_is_unbiased_with_less_variance(name: str) -> None:
    orbit, standard = questions(name)
    aim = target(MODELS[name][0])
    assert aim is not None
    model, p = orbit.group.model, aim.probability
    f_orbit, f_standard = folded(orbit, aim.states), folded(standard, aim.states)
    np.testing.assert_allclose(f_orbit, indicators(orbit, aim.states), atol=1e-12)
    np.testing.assert_allclose(f_standard, indicators(standard, aim.states), atol=1e-12)

    def variance(f: np.ndarray) -> np.ndarray:
        return p @ (f - p @ f) ** 2

    smaller = 0
    for i in model.free.tolist():
        for v in range(int(model.cards[i])):
            k, s = (question.columns.statistic_of[model.literal_start[i] + v] for question in (orbit, standard))
            truth = p[aim.states[:, i] == v].sum()
            assert p @ f_orbit[:, k] == pytest.approx(truth, abs=1e-12)
            assert p @ f_standard[:, s] == pytest.approx(truth, abs=1e-12)
            before, after = variance(f_standard[:, s]), variance(f_orbit[:, k])
            assert after <= before + 1e-12
            smaller += after < before - 1e-3
    assert smaller > 0
    joint = [f[:, question.columns.singles :] for f, question in ((f_orbit, orbit), (f_standard, standard))]
    np.testing.assert_allclose(p @ joint[0], p @ joint[1], atol=1e-12)
    assert (variance(joint[0]) <= variance(joint[1]) + 1e-12).all()


@pytest.mark.parametrize("name", MODELS)
def test_events_are_sums_of_their_tuples(name: str) -> None:
    model, queries = MODELS[name]
    aim = target(model)
    assert aim is not None
    truth = dft.exact(model, queries)
    for question in questions(name):
        joined = with_events(fold(aim.states[:, None], question, 0), question.events, question.columns.singles)
        for k, text in enumerate(queries):
            query = parse_query(text, model)
            rows = {tuple(row) for row in query.satisfying.tolist()}
            holds = np.array([tuple(s[list(query.variables)].tolist()) in rows for s in aim.states])
            assert truth[text].probability == pytest.approx(aim.probability @ holds, abs=1e-12)
            estimate = aim.probability @ joined.f[0][:, question.columns.singles + k]
            assert estimate == pytest.approx(truth[text].probability, abs=1e-12)


# --- the paper ---------------------------------------------------------------------------------------------------


def figure_1() -> FactorGraph:
    """smokes(A), smokes(B), cancer(A), cancer(B): three formulas, grounded for two people."""
    names = ["smokes(A)", "smokes(B)", "cancer(A)", "cancer(B)"]
    implies = np.array([[1.5, 1.5], [0.0, 1.5]])
    factors = [([i], [1.4, 0.0]) for i in (0, 1)] + [([i, i + 2], implies) for i in (0, 1)]
    return factor_graph([2] * 4, [*factors, ([0, 1], 1.1 * np.eye(2))], names=names, log=True)


def test_example_1() -> None:
    model = figure_1()
    group = symmetries(model)
    assert group.order == 2 and group.orbit_of("smokes(A)") == ["smokes(A)", "smokes(B)"]
    question = ask(group, (), "orbit", 0)
    state = np.array([[1, 0, 1, 0]])
    (weight,) = folded(question, state)[:, question.columns.statistic_of[1]] * 2
    assert weight == 1
    assert dft.marginals(state, ["smokes(A)"], model=model)["smokes(A)"].probability == 0.5


def test_figure_1_has_ten_orbits_of_states() -> None:
    model = figure_1()
    group = symmetries(model)
    states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    images = [moved(states, group.model, g) for g in all_elements(group)]
    orbits = {frozenset(tuple(image[s].tolist()) for image in images) for s in range(len(states))}
    assert (len(states), len(orbits)) == (16, 10)


# --- the conditionals, and folding the slow way ------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 20])
@pytest.mark.parametrize("name", MODELS)
def test_conditionals_are_unbiased(name: str, copies: int) -> None:
    """One update from every state (a lane each, in narrow and wide blocks): E[g] = marginal for every site and value,
    and E[G] = marginal for every orbit."""
    orbit, standard = questions(name)
    aim = target(MODELS[name][0])
    assert aim is not None
    model = aim.simple
    engine = Gibbs("random").engine(model, standard.slots)
    p = np.tile(aim.probability, copies) / copies
    starts = np.tile(aim.states, (copies, 1))
    if copies == 1:
        engine = replace(engine, width=16)
    g = np.full(int(model.literal_start[-1]), np.nan)  # by literal
    for i in model.free.tolist():
        mine = standard.slots.start[standard.slots.row_of[i]] + np.arange(int(model.cards[i]))
        total = np.zeros(len(mine))
        for at in range(0, len(starts), engine.width):
            block = engine.block(starts[at : at + engine.width], [np.random.SeedSequence(1)], True)
            block.run(np.array([[i]], dtype=np.int32), 2)
            harvest = block.harvest()
            assert harvest.visits[mine].tolist() == [1] * len(mine) and harvest.visits.sum() == len(mine)
            total += harvest.conditional[mine] @ p[at : at + engine.width]
        g[model.literal_start[i] : model.literal_start[i + 1]] = total
    known = ~np.isnan(g)
    alone = truths(standard, aim.states, aim.probability)
    np.testing.assert_allclose(g[known], alone[standard.columns.statistic_of[known]], atol=1e-12)
    gathered = np.bincount(orbit.columns.statistic_of[known], weights=g[known]) / orbit.statistics.sizes
    np.testing.assert_allclose(gathered, truths(orbit, aim.states, aim.probability)[: len(gathered)], atol=1e-12)


def run(question: GraphQuestion, scan: str, chains: int, sweeps: int) -> GraphSampling:
    gibbs, model = Gibbs(scan), question.group.model
    return GraphSampling(
        model, gibbs, gibbs.engine(model, question.slots), question.statistics, Plan(chains, 0, sweeps, 7, 1)
    )


@pytest.mark.parametrize("scan", ["symmetric", "random", "fixed"])
@pytest.mark.parametrize("chains", [3, 40, 500])
@pytest.mark.parametrize("name", MODELS)
def test_folding_the_slow_way(name: str, scan: str, chains: int) -> None:
    """F, its last sweep and G of whole runs against indicators and conditionals recomputed at each sweep and update."""
    for question in questions(name):
        assert fold_error(question, run(question, scan, chains, 1), run(question, scan, chains, 1), 1) < 1e-12
    orbit, _ = questions(name)
    assert fold_error(orbit, run(orbit, scan, chains, 5), run(orbit, scan, chains, 5), 5) < 1e-12


@pytest.mark.parametrize("scan", ["symmetric", "random"])
def test_folding_many_sweeps(scan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More visits to a cell than a byte can count."""
    monkeypatch.setattr("definetti.samplers.graph.sampling.BATCHES", 4)
    monkeypatch.setattr("definetti.samplers.graph.sampling._most_batches", lambda count, chains: 1)
    question = ask(symmetries(mean_field(5, -0.2, 0.1)), ("X0=1 ^ X1=0",), "orbit", 0)
    assert fold_error(question, run(question, scan, 18, 120), run(question, scan, 18, 120), 120) < 1e-12
