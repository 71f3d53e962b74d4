"""Log weights far apart: large penalties leave small weights alone, or are refused; many tiny weights add up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import definetti as dft
from definetti.errors import ModelError, Unsatisfiable
from definetti.model.graph.factors import FREE, FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph import fields, tables

METHODS = ("auto", "enumerate", "eliminate", "orbits")
SIZES = (1e3, 2.0**18, 1e6, 1e9, 1e12, 1e15, 1e17, 1e50)


def by_hand(cards: list[int], factors: list[tuple[list[int], np.ndarray]]) -> np.ndarray:
    """P(X0 = v) by exact sums over all states, with penalties and small weights added up apart."""
    logs: dict[tuple[int, ...], float] = {}
    for state in np.ndindex(*cards):
        logs[state] = math.fsum(float(table[tuple(state[i] for i in scope)]) for scope, table in factors)
    top = max(logs.values())
    out = np.zeros(cards[0])
    for state, log in logs.items():
        out[state[0]] += math.exp(log - top)
    return out / out.sum()


def answers(model: FactorGraph, variable: str = "X0") -> dict[str, np.ndarray]:
    out = {}
    for method in METHODS:
        p = dft.exact(model, method=method)[variable].probability
        out[method] = np.array([1 - p, p]) if isinstance(p, float) else np.array(p)
    return out


def corner(size: float) -> np.ndarray:
    return np.array([[0.0, -size], [-size, 0.7]])


def potts(size: float) -> np.ndarray:
    return np.where(np.eye(3, dtype=bool), np.diag([0.0, 0.7, -0.4]), -size)


def mostly_penalty(size: float) -> np.ndarray:
    """Three variables, two states without penalty: the most frequent entry is far from the largest."""
    table = np.full((2, 2, 2), -size)
    table[0, 0, 0], table[1, 1, 0], table[1, 1, 1] = 0.0, 0.7, -0.2
    return table


def shifted(size: float) -> np.ndarray:
    """The same as `corner` with a constant that a double adds exactly."""
    return np.array([[size, 0.0], [0.0, size]])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [corner, potts, mostly_penalty, shifted])
def test_a_large_penalty_leaves_small_weights_alone(make, size: float) -> None:
    table = make(size)
    scope = list(range(table.ndim))
    field = np.linspace(-0.3, 0.2, table.shape[0])
    factors = [(scope, table), ([0], field)]
    model = factor_graph(list(table.shape), factors, log=True)
    want = by_hand(list(table.shape), [(scope, table - table.max()), ([0], field)])
    for method, found in answers(model).items():
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-9, err_msg=method)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e4, 1e7, 1e11, 1e15, 1e40]))
def test_penalties_answer_like_impossible_entries(seed: int, size: float) -> None:
    """One state is never penalised, so that no large terms cancel."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=5).tolist()
    legal = [int(rng.integers(card)) for card in cards]
    soft, hard = [], []
    for _ in range(6):
        scope = rng.choice(5, size=int(rng.integers(1, 4)), replace=False).tolist()
        shape = [cards[i] for i in scope]
        never = rng.random(shape) < 0.4
        never[tuple(legal[i] for i in scope)] = False
        weights = rng.normal(size=shape)
        soft.append((scope, np.where(never, -size, weights)))
        hard.append((scope, np.where(never, -np.inf, weights)))
    want = dft.exact(factor_graph(cards, hard, log=True), method="enumerate")
    model = factor_graph(cards, soft, log=True)
    for method in ("auto", "enumerate", "eliminate"):
        found = dft.exact(model, method=method)
        for i in range(5):
            np.testing.assert_allclose(found[f"X{i}"].probability, want[f"X{i}"].probability, rtol=0, atol=1e-9)
    once = simplify(model)
    twice = simplify(once)
    np.testing.assert_array_equal(once.tables, twice.tables)
    np.testing.assert_array_equal(once.scope, twice.scope)


# --- cancelling ------------------------------------------------------------------------------------------------------


def one_hot(size: float, count: int = 3) -> FactorGraph:
    """size · (1 - Σ x)² with small weights on the variables, written out as QUBOs are."""
    field = [0.3, -0.2, 0.7][:count]
    own = [([i], np.array([0.0, size + field[i]])) for i in range(count)]
    pairs = [([i, j], np.array([[0.0, 0.0], [0.0, -2 * size]])) for i in range(count) for j in range(i)]
    return factor_graph([2] * count, [*own, *pairs], log=True)


@pytest.mark.parametrize("size", [30.0, 1e3, 1e5])
def test_small_cancelling_penalties_are_answered(size: float) -> None:
    weights = np.exp([0.3, -0.2, 0.7])
    for method, found in answers(one_hot(size)).items():
        tolerance = 1e-9 + 10 * math.exp(-size)
        assert found[1] == pytest.approx(weights[0] / weights.sum(), abs=tolerance), method


def triangle(size: float) -> FactorGraph:
    """Every state has an edge whose ends are equal."""
    differ = -size * np.eye(2)
    pairs = [([i, j], differ) for i, j in ((0, 1), (1, 2), (0, 2))]
    return factor_graph([2] * 3, [*pairs, ([0], np.array([0.0, 0.7]))], log=True)


def unary(size: float) -> FactorGraph:
    return factor_graph([2, 2], [([0], np.array([0.0, s])) for s in (size, 0.3, -size)], log=True)


def pair(size: float) -> FactorGraph:
    up = size * np.eye(2)
    return factor_graph([2, 2], [([0, 1], up), ([1, 0], -up), ([0, 1], np.array([[0.0, 0.3], [0.0, 0.0]]))], log=True)


def forced(size: float) -> FactorGraph:
    """A hard factor makes every state pay one of two penalties."""
    differ = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    penalties = [([i], np.array([-size, 0.0])) for i in range(2)]
    return factor_graph([2, 2], [([0, 1], differ), *penalties, ([0], np.array([0.0, 0.7]))], log=True)


@pytest.mark.parametrize("size", [1e10, 1e16, 1e60])
@pytest.mark.parametrize("make", [one_hot, triangle, unary, pair, forced])
def test_large_weights_that_cancel_are_refused(make, size: float) -> None:
    model = make(size)
    for method in METHODS:
        with pytest.raises(ModelError, match=r"log weights of up to .* cancel.*1e-9 is needed; make penalties smaller"):
            dft.exact(model, method=method)
    with pytest.raises(ModelError, match="cancel"):
        dft.marginals(model, sweeps=10, seed=1)


def test_the_same_model_with_smaller_weights_is_answered() -> None:
    odds = math.exp(0.7) / (1 + math.exp(0.7))
    for make in (triangle, forced):
        for method, found in answers(make(1e4)).items():
            assert found[1] == pytest.approx(odds, abs=1e-9), method
    assert answers(unary(1e4))["auto"][1] == pytest.approx(1 / (1 + math.exp(-0.3)), abs=1e-9)


def test_a_penalised_qubo_is_refused_by_every_route() -> None:
    import dimod

    bqm = dimod.BinaryQuadraticModel("BINARY")
    for i, bias in enumerate([0.3, -0.2, 0.7]):
        bqm.add_linear(f"x{i}", bias)
    bqm.add_linear_equality_constraint([(f"x{i}", 1) for i in range(3)], 1e16, -1)
    for source in (bqm, bqm.change_vartype("SPIN", inplace=False)):
        model = dft.read(source)
        assert isinstance(model, FactorGraph)
        for method in METHODS:
            with pytest.raises(ModelError, match="cancel"):
                dft.exact(model, method=method)


def test_large_terms_that_only_add_up_are_not_refused() -> None:
    table = np.array([1e15, 1e15 + 0.25, 0.0])
    model = factor_graph([3, 2], [([0], table), ([0], table), ([0], table)], log=True)
    weights = np.exp([0.0, 0.75])
    np.testing.assert_allclose(answers(model)["auto"], [*(weights / weights.sum()), 0], atol=1e-9)
    disjoint = [([i], np.array([0.0, 1e12])) for i in range(30)]  # each decides its own variable
    assert dft.exact(factor_graph([2] * 30, disjoint, log=True))["X7"].probability == 1.0


def test_a_table_that_lies_far_from_zero_as_a_whole_keeps_its_differences() -> None:
    """Its constant is taken out before it meets the other tables of its variables, not after."""
    far = np.array([2.0**47 + 0.625, 2.0**47])
    factors = [([0], far), ([0], np.array([0.1, 0.0])), ([0, 1], -(2.0**45) + np.array([[0.0, 0.5], [0.25, 0.0]]))]
    model = factor_graph([2, 2], [*factors, ([0, 1], np.array([[0.3, 0.0], [0.0, 0.1]]))], log=True)
    near = [([0], far - 2.0**47), factors[1], ([0, 1], factors[2][1] + 2.0**45), ([0, 1], model.table(3))]
    want = by_hand([2, 2], near)
    for method, found in answers(model).items():
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12, err_msg=method)


def test_regions_that_pay_a_penalty_beyond_doubles_have_look_alikes() -> None:
    """Ten nats below 1e17 is 1e17: the heaviest light region was none of its own kind, and an IndexError."""
    no = -1.4649331444493117e17
    factors = [
        ([2, 1, 0], [[[no, -1.5, no], [2.3, no, 0.5], [-0.8, 0.5, -1.4]],
                     [[0.2, -0.1, no], [no, -0.3, -0.5], [no, no, 1.5]],
                     [[-0.3, 0.7, no], [no, 0.5, -1.4], [-0.8, 0.9, -1.9]]]),
        ([2], [1125899906842623.8, no, no]),
        ([0, 2], [[0.5, 0.4, 1.1], [no, no, -1.0], [no, 0.1, 0.3]]),
        ([2, 1], [[-0.7, 2.0, -1.5], [no, -0.4, no], [1.4, no, no]]),
        ([2, 0], [[-0.3, -0.7, no], [1.5, no, -1.5], [0.6, -1.0, no]]),
        ([1, 2, 0], [[[no, -0.2, no], [1.2, no, -0.2], [no, no, no]],
                     [[0.6, no, no], [no, 0.3, 1.0], [no, no, -0.8]],
                     [[2.1, -0.3, -0.1], [-1.3, -0.3, no], [-0.6, 0.6, -0.8]]]),
    ]  # fmt: skip
    model = factor_graph([3] * 3, factors, log=True)
    truth = dft.exact(model)["X1"].probability
    found = dft.marginals(model, sampler="gibbs", seed=1, sweeps=500, chains=16)
    np.testing.assert_allclose(found["X1"].probability, truth, atol=0.05)


def test_a_model_without_states_is_still_unsatisfiable() -> None:
    clash = [([0, 1], np.array([[0.0, -np.inf], [-np.inf, 0.0]])), ([0, 1], np.array([[-np.inf, 0.0], [0.0, -np.inf]]))]
    with pytest.raises(Unsatisfiable):
        dft.exact(factor_graph([2] * 3, [*clash, *[([2], np.array([-1e15, 0.0]))] * 2], log=True))


# --- what samplers read ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e6, 1e12, 1e15, 1e30])
def test_thresholds_keep_small_odds_beside_penalties(size: float) -> None:
    """Given X1 = 1 the log odds of X0 are 0.7 and its own field; given X1 = 0 a penalty forbids X0 = 1."""
    penalised = factor_graph(
        [2, 2], [([0, 1], np.array([[0.0, 0.0], [-size, 0.7]])), ([0], np.array([0.0, 0.3]))], log=True
    )
    simple = simplify(penalised)
    made = fields._tables(simple, fields._edges(simple))
    assert made is not None
    table, _, _, odds = made
    chance, threshold = fields._thresholds(odds[table[0]])
    np.testing.assert_allclose(chance[:2], [0.0, 1 / (1 + math.exp(-1.0))], atol=1e-9)
    assert threshold[0] == 0
    factor, axis = tables._pairs(simple)
    own = np.flatnonzero(simple.scope == 0)
    offset, logs, _ = tables._rows(simple, factor[own], axis[own])
    given = np.zeros(2)
    for k, at in zip(factor[own].tolist(), offset.tolist(), strict=True):
        given += logs[at + 2 : at + 4] if simple.arity[k] == 2 else logs[at : at + 2]
    assert given[1] - given[0] == pytest.approx(1.0, abs=1e-9)


def test_sampling_moves_as_if_penalties_were_impossible() -> None:
    """X0 and X1 are free where X2 = 1, held at 0 where X2 = 0: single moves connect all states that count."""
    table = np.full((2, 2, 2), -1e15)
    table[..., 1] = np.random.default_rng(4).normal(size=(2, 2))
    table[0, 0, 0] = 0.5
    model = factor_graph([2] * 3, [([0, 1, 2], table)], log=True)
    truth = dft.exact(model)
    found = dft.marginals(model, sampler="gibbs", chains=64, sweeps=2_000, seed=1)
    for name in ("X0", "X1", "X2"):
        estimate = found[name]
        assert abs(estimate.probability - truth[name].probability) < 5 * max(estimate.mcse, 1e-4)


# --- many tiny weights -----------------------------------------------------------------------------------------------


def star(couplings: np.ndarray) -> FactorGraph:
    """One variable coupled to each of the others by [[0, 0], [0, 2 j]]."""
    n = len(couplings)
    scope = np.stack([np.zeros(n, np.int64), np.arange(1, n + 1)], axis=1)
    made = [np.array([[0.0, 0.0], [0.0, 2 * j]]) for j in couplings.tolist()]
    return FactorGraph.from_arrays(np.full(n + 1, 2), 2 * np.arange(n + 1), scope.ravel(), np.arange(n), made)


def hub_probability(couplings: np.ndarray) -> float:
    return 1 / (1 + math.exp(-math.fsum(np.log1p(np.expm1(2 * couplings) / 2).tolist())))


def test_couplings_that_are_tiny_add_up() -> None:
    couplings = np.random.default_rng(1).random(3_000) * 4e-7
    model = star(couplings)
    want = hub_probability(couplings)
    assert abs(want - 0.5) > 1e-4
    assert dft.exact(model, method="eliminate")["X0"].probability == pytest.approx(want, abs=1e-11)
    few = couplings[:11] * 1e-3  # below the tolerance one by one
    assert dft.exact(star(few), method="enumerate")["X0"].probability == pytest.approx(hub_probability(few), abs=1e-8)


def test_a_hundred_thousand_couplings_keep_their_sum() -> None:
    couplings = np.random.default_rng(2).random(100_000) * 1e-6
    simple = simplify(star(couplings))
    own = np.flatnonzero((simple.arity == 1) & (simple.scope[simple.scope_start[:-1]] == 0))
    assert len(own) == 1
    assert np.ptp(simple.table(int(own[0]))) == pytest.approx(math.fsum(couplings.tolist()), abs=1e-9)
    pairs = simple.tables[simple.table_start[simple.table_of[simple.arity == 2]]]
    assert pairs.sum() == pytest.approx(math.fsum(couplings.tolist()) / 2, abs=1e-8)


def test_equal_couplings_with_rounding_are_still_one_table() -> None:
    couplings = np.full(10_000, 0.3) + np.random.default_rng(3).integers(-2, 3, 10_000) * 1e-16
    simple = simplify(star(couplings))
    assert len(simple.table_start) - 1 == 3  # the pair, the leaves, the hub
    assert (simple.evidence == FREE).all()


# --- theories that are never grounded --------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["auto", "gibbs", "mcsat", "tempering", "orbital"])
def test_theories_whose_large_weights_cancel_are_not_sampled(sampler: str) -> None:
    """P(A) was .5, trusted, where it is .668: conditionals of a theory add up what a double cannot hold."""
    for text in ("1e17 P(x)\n0.7 P(x)\n-1e17 P(x)", "1e12 P(x)\n1e12 !P(x)\n0.7 P(x)"):
        model = dft.markov_logic(f"P(p)\n{text}", domain={"p": 3})
        with pytest.raises(ModelError, match="cancel"):
            dft.marginals(model, sampler=sampler, sweeps=50, seed=1)


@pytest.mark.parametrize("size", ["1e15", "1e17"])
@pytest.mark.parametrize("sampler", ["gibbs", "tempering"])
def test_penalties_of_theories_leave_small_weights_alone(sampler: str, size: str) -> None:
    """Log densities of 4e15 are multiples of a half: tempering was off by five half-widths."""
    text = f"P(p)\nQ(p)\n{size} P(x) v Q(y)\n0.7 P(x)\n0.3 P(x) ^ Q(x)"
    model = dft.markov_logic(text, domain={"p": 2})
    found = dft.marginals(model, "P(P1)", sampler=sampler, sweeps=2_000, seed=1)
    assert found.trusted and any("lost beside" in notice.message for notice in found.notices)
    assert abs(found["P(P1)"].probability - dft.exact(model, "P(P1)")["P(P1)"].probability) < 4 * found["P(P1)"].mcse


def test_tempering_of_large_theories_with_large_weights_is_refused() -> None:
    model = dft.markov_logic("P(p)\nQ(p)\n1e15 P(x) v Q(y)\n0.7 P(x)", domain={"p": 400})
    with pytest.raises(ModelError, match="log densities, which tempering compares, are coarse"):
        dft.marginals(model, sampler="tempering", sweeps=10, seed=1)


def test_symmetries_that_are_given_hide_no_penalty() -> None:
    """The theory is sampled on its ground model, of which they are no group: .856 ± .004, trusted, for .871."""
    model = dft.markov_logic("P(p)\nQ(p)\n1e17 P(x) v Q(y)\n0.7 P(x)\n0.3 P(x) ^ Q(x)", domain={"p": 2})
    with pytest.raises(ModelError, match=r"1e\+17 unless these are looked at apart, in the ground model; leave symm"):
        dft.marginals(model, symmetries=dft.symmetries(model), sampler="tempering", sweeps=10, seed=1)
    literals = dft.symmetries(model, kind="literals")
    assert dft.marginals(model, symmetries=literals, sampler="gibbs", sweeps=10, seed=1).run["sampler"] == "gibbs"


def split(size: str, people: int) -> str:
    """All alike, in favour of all true by .7 nats."""
    return f"P(p)\n{size} P(x) <=> P(y)\n{0.7 / people!r} P(x)"


@pytest.mark.parametrize("sampler", [{"chains": 8}, {"sweeps": 200}])
def test_weights_of_modes_are_not_lost_beside_the_constant_of_the_model(sampler: dict[str, int]) -> None:
    """Two modes had equal shares where penalties were 1e15: .5, trusted, for .668."""
    model = dft.markov_logic(split("1e15", 12), domain={"p": 12})
    found = dft.marginals(model, "P(P1)", seed=1, **sampler)
    assert found.trusted and any("2 modes were weighed" in notice.message for notice in found.notices)
    assert found["P(P1)"].probability == pytest.approx(1 / (1 + math.exp(-0.7)), abs=1e-6)


def test_weights_of_modes_that_log_densities_do_not_hold_are_not_trusted() -> None:
    """Too large to be grounded: log densities of 1e17 are multiples of 16. Shares were equal, and trusted."""
    model = dft.markov_logic(split("1e12", 320), domain={"p": 320})
    found = dft.marginals(model, "P(P1)", sweeps=200, seed=1)
    assert not found.trusted


@pytest.mark.parametrize("text", ["1e17 P(x,y)\n0.7 P(x,y)\n-1e17 P(x,y)", "1e12 P(x,y)\n1e12 !P(x,y)\n0.7 P(x,y)"])
def test_large_theories_whose_large_weights_may_cancel_are_refused(text: str) -> None:
    model = dft.markov_logic(f"P(p,p)\n{text}\n0.1 P(x,y) ^ P(y,z) => P(x,z)", domain={"p": 50})
    with pytest.raises(ModelError, match="too large to look"):
        dft.marginals(model, "P(P1,P2)", sweeps=10, seed=1)


def test_densities_are_compared_without_the_constant() -> None:
    model = factor_graph([2], [([], np.array(1e17)), ([0], np.array([0.0, 0.7]))], log=True)
    assert np.diff(simplify(model).log_factors([[0], [1]])) == pytest.approx(0.7)
    assert dft.quotient(model).space.probability == pytest.approx([1 / (1 + math.exp(0.7)), 1 / (1 + math.exp(-0.7))])


def test_weights_of_regions_are_shown_beside_the_constant() -> None:
    """Both were in [1e+15, 1e+15]."""
    pairs = [([i, j], 0.5 * np.array([[1.0, -1.0], [-1.0, 1.0]])) for i in range(12) for j in range(i)]
    fields = [([i], np.array([0.0, 0.06])) for i in range(12)]
    model = factor_graph([2] * 12, [([], np.array(1e15)), *pairs, *fields], log=True)
    found = dft.marginals(model, sampler="gibbs", sweeps=300, seed=1)
    low, high = found.run["regions"][0]["bracket"]
    assert any(f"log Z in 1e+15 + [{low:.5g}, {high:.5g}]" in notice.message for notice in found.notices)
