"""`auto` answers exactly where that is cheap: the numbers are those of brute force, what asks for sampling samples, and
the decision is a count that neither clock nor memory enters."""

from __future__ import annotations

import itertools
from typing import Any

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_models import brute_force, models
from small_theories import evidence_theory, renaming_theory, two_variable_theory

import definetti as dft
from definetti.inference.exact_first import exact_first
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.logic.text import atom_text
from definetti.readers.logic.queries import LogicQuery
from definetti.solvers.graph.eliminate import eliminate
from definetti.solvers.graph.enumerate import enumerate_states
from definetti.solvers.graph.routes import routes
from definetti.solvers.work import CHEAP, Budget, TooMuch

RING = factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])


@given(models())
@settings(max_examples=60)
def test_factor_graphs_against_brute_force(model: FactorGraph) -> None:
    states, weights = brute_force(model)
    assume(weights.sum() > 0)
    pair = [f"X{i}=0 ^ X{j}=0" for i, j in itertools.combinations(range(model.n), 2)][:2]
    found = dft.marginals(model, [*(f"X{i}" for i in range(model.n)), *pair])
    assert found.run["sampler"] == "exact" and found.trusted and found.run["method"] == found.method
    for i in range(model.n):
        if model.cards[i] > 1:
            truth = np.bincount(states[:, i], weights=weights, minlength=model.cards[i]) / weights.sum()
            assert found[f"X{i}"].array == pytest.approx(truth, abs=1e-10)
            assert np.all(np.array(found[f"X{i}"].mcse) == 0) and np.all(np.array(found[f"X{i}"].half_width) == 0)
    for text, (i, j) in zip(pair, itertools.combinations(range(model.n), 2), strict=False):
        both = weights[(states[:, i] == 0) & (states[:, j] == 0)].sum() / weights.sum()
        assert found[text].probability == pytest.approx(both, abs=1e-10)


@pytest.mark.parametrize("make", [two_variable_theory, evidence_theory, renaming_theory])
@pytest.mark.parametrize("seed", range(8))
def test_theories_against_all_worlds(make: Any, seed: int) -> None:
    model = make(seed)
    if np.isneginf(lw.worlds(model)[2]).all():
        with pytest.raises(dft.Unsatisfiable):
            dft.marginals(model)
        return
    truth = lw.marginals(model)
    found = dft.marginals(model)
    assert found.run["sampler"] == "exact" and found.trusted
    for (name, constants), p in truth.items():
        assert found[atom_text(model, name, constants)].probability == pytest.approx(p, abs=1e-9)


@given(models(zeros=True, evidence=False, most=5))
@settings(max_examples=40)
def test_every_way_gives_one_answer(model: FactorGraph) -> None:
    assume(brute_force(model)[1].sum() > 0)
    ways, _ = routes(model, (), 2.0**20)
    assert {way.method for way in ways} >= {"enumerate", "eliminate"}
    wanted = enumerate_states(model)
    for way in ways:
        solution = way.solve()
        assert solution.literals == pytest.approx(wanted.literals, abs=1e-10)
        assert solution.log_z == pytest.approx(wanted.log_z, abs=1e-9)


@pytest.mark.parametrize(
    "asked",
    [
        {"sampler": "gibbs"},
        {"estimator": "auto"},
        {"scan": "symmetric"},
        {"chains": 64},
        {"sweeps": 20},
        {"burn_in": 5},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_asks_for_sampling_samples(asked: dict[str, Any]) -> None:
    short = {} if "sweeps" in asked else {"seconds": 0.01} if "sampler" not in asked else {"sweeps": 20}
    assert dft.marginals(RING, seed=1, **asked, **short).run["sampler"] == "gibbs"


@pytest.mark.parametrize("more", [{}, {"seed": 3}, {"workers": 1}, {"seconds": 5}, {"until": 0.1}, {"sampler": "auto"}])
def test_everything_else_leaves_the_choice(more: dict[str, Any]) -> None:
    found = dft.marginals(RING, ["X0"], **more)
    assert found.run["sampler"] == "exact" and found["X0"].probability == dft.exact(RING)["X0"].probability
    sampled = dft.marginals(RING, ["X0"], sweeps=10, seed=1)
    assert set(found.to_json()) == set(sampled.to_json()) and set(found.run) >= set(sampled.run) - {
        "gain",
        "choices",
        "bias",
        "advice",  # of an answer that is not trusted
    }


def test_observed_and_forced_variables_are_told_like_evidence() -> None:
    differ = [[0, 1], [1, 0]]
    chain = factor_graph([2] * 4, [([0, 1], differ), ([1, 2], differ), ([2, 3], [[1, 2], [3, 4]])]).condition({0: 1})
    by_both = [dft.marginals(chain, ["X0", "X1", "X2", "X3"], **more) for more in ({}, {"sampler": "gibbs", "seed": 1})]
    for name in ("X0", "X1", "X2"):
        exact_, sampled = (found[name] for found in by_both)
        assert (exact_.probability, exact_.mcse, exact_.orbit_size) == (sampled.probability, 0.0, 1)
    text = "n={A,B,C}\nF(n,n)\nS(n)\n!F(x,x).\n1 F(x,y) ^ S(x) => S(y)\n"
    logic = dft.markov_logic(text, evidence="S(A)")
    queries = ["F", "S", "F(A,B) ^ S(B)"]
    one, two = dft.marginals(logic, queries), dft.marginals(logic, queries, sweeps=2000, seed=1)
    assert list(one.queries) == list(two.queries) and one["F(A,A)"] == two["F(A,A)"] and one["S(A)"] == two["S(A)"]
    assert [(row.representative, row.size) for row in one.orbits] == [(r.representative, r.size) for r in two.orbits]
    assert max(abs(one[q].probability - two[q].probability) - 5 * (two[q].mcse or 0) for q in one) < 1e-9


CLASHES = {
    "graph": factor_graph([2, 2], [([0, 1], [[1, 0], [0, 1]])]).condition({0: 0, 1: 1}),
    "triangle": factor_graph([2] * 3, [(p, [[0, 1], [1, 0]]) for p in ([0, 1], [1, 2], [0, 2])]),
    "logic": dft.markov_logic("n={A,B}\nP(n)\nQ(n)\nP(x) => Q(x).\n", evidence="P(A)\n!Q(A)"),
    "unsatisfiable": dft.markov_logic("n={A,B}\nP(n)\nEXIST x P(x).\nP(x) => !P(y).\n"),
}


@pytest.mark.parametrize("name", CLASHES)
def test_a_clash_reads_the_same_by_both_routes(name: str) -> None:
    said = []
    for more in ({}, {"sweeps": 10}):
        with pytest.raises(dft.Unsatisfiable) as caught:
            dft.marginals(CLASHES[name], **more)
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_elimination_is_tried_on_the_model_as_given_and_on_its_core() -> None:
    """Each leaf is a function of a hub with 4 values; merged into it or not, the cheaper count is taken."""
    function = np.zeros((4, 2))
    function[[0, 1, 2, 3], [0, 0, 1, 1]] = 1.0
    pairs = [([i, j], [[2, 1], [1, 3]]) for i, j in itertools.combinations(range(1, 4), 2)]
    model = factor_graph([4, 2, 2, 2], [*(([0, i], function) for i in (1, 2, 3)), *pairs])
    ways, _ = routes(model, (), 2.0**20)
    assert len({id(way.model) for way in ways}) == 2
    assert ways[0].size == min(way.size for way in ways)


def grid(side: int) -> FactorGraph:
    edges = [((r, c), (r + a, c + b)) for r in range(side) for c in range(side) for a, b in ((0, 1), (1, 0))]
    scopes = [[a * side + b, c * side + d] for (a, b), (c, d) in edges if c < side and d < side]
    return factor_graph([2] * side**2, [(scope, [[3, 1], [1, 2]]) for scope in scopes])


def test_what_takes_longer_is_a_note_and_what_is_out_of_reach_is_nothing() -> None:
    said = exact_first(grid(16), [], "auto", 10.0)
    assert isinstance(said, dft.Notice) and said.kind == "note" and said.message.startswith("exact would take about ")
    assert exact_first(grid(40), [], "auto", 10.0) is None
    sampled = dft.marginals(grid(16), ["X0"], seconds=0.2, seed=1)
    assert sampled.run["sampler"] != "exact" and said in sampled.notices


def test_a_count_of_many_free_atoms_is_declined_after_a_few_groundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^20 states of its atoms are the limit: the 21st free atom of 40,000 decides. Three variables in a formula leave
    lifted counting out."""
    walked, at = itertools.count(), LogicQuery.at

    def counted(self: LogicQuery, model: dft.MarkovLogic) -> Any:
        return (pair for pair, _ in zip(at(self, model), walked, strict=False))

    monkeypatch.setattr(LogicQuery, "at", counted)
    model = dft.markov_logic("R(n,n)\n1 R(x,y) ^ R(y,z) => R(x,z)\n", domain={"n": 200})
    assert exact_first(model, ["#R"], "auto", 10.0) is None
    assert next(walked) == 21


def test_the_count_decides_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0.0, 1e6)
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    monkeypatch.setattr("definetti.solvers.graph.answers.available_memory", lambda: 0)
    assert dft.marginals(grid(8), ["X0"]).run["sampler"] == "exact"


def test_budgets_are_charged_before_the_work() -> None:
    budget = Budget(1.0)
    budget.charge(0.4, times=2)
    with pytest.raises(TooMuch) as caught:
        budget.charge(0.4, times=2)
    assert budget.spent == 0.4 and caught.value.work == pytest.approx(1.2)


@pytest.mark.parametrize("n", [10, 100])
def test_the_work_of_lifted_counting_grows_with_the_theory(n: int) -> None:
    names = ",".join(f"C{i}" for i in range(n))
    fields = "".join(f"{0.01 * i} S(C{i})\n" for i in range(n))
    model = dft.markov_logic(f"n={{{names}}}\nF(n,n)\nS(n)\n0.1 F(x,y) ^ S(x) => S(y)\n{fields}")
    found = exact_first(model, [], "auto", 10.0)
    assert isinstance(found, dft.Marginals) == (n == 10)


def test_elimination_with_an_event_counts_its_passes() -> None:
    model = grid(6)
    asked = [dft_query(model, " ^ ".join(f"X{i}=1" for i in range(k))) for k in (2, 6)]
    works = [routes(model, [q] * 3, 2.0**26)[0][0].work for q in asked]
    assert routes(model, [], 2.0**26)[0][0].work < works[0] <= CHEAP
    assert eliminate(model, asked).events == pytest.approx(routes(model, asked, 2.0**26)[0][0].solve().events)


def dft_query(model: FactorGraph, text: str) -> Any:
    from definetti.model.queries import parse_query

    return parse_query(text, model)


@given(st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_same_command_gives_the_same_numbers(seed: int) -> None:
    first, second = dft.marginals(RING, ["X0"], seed=seed), dft.marginals(RING, ["X0"])
    assert first.queries == second.queries
