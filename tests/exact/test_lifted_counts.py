"""Counts of true atoms: their distribution and models in which they are given, against enumeration."""

from __future__ import annotations

from math import comb, log

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from logic_worlds import at
from small_theories import two_variable_theory

import definetti as dft
from definetti.errors import ModelError, TooLarge, UnknownName, Unsatisfiable
from definetti.model.logic.theory import Predicate
from definetti.solvers.lifted.magnitudes import logs_of


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_distribution_of_a_count(seed: int) -> None:
    model = two_variable_theory(seed, 9)
    _, state, weight = lw.worlds(model)
    assume(weight.max() > -np.inf)
    p = np.exp(weight - weight.max())
    p /= p.sum()
    for name in model.predicates:
        count = sum(v.astype(int) for (n, _), v in state.items() if n == name)
        wanted = np.bincount(count, weights=p, minlength=int(np.prod(model.shape(name))) + 1)
        try:
            found = dft.count_distribution(model, name)
        except ModelError as refusal:
            assert "cannot be counted lifted" in str(refusal)
            return
        assert found == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize(
    "given_", [{"Friends": 4}, {"Smokes": 2}, {"Friends": 4, "Smokes": 2}, {"Smokes": 1, "Cancer": 0}]
)
def test_given_counts(given_: dict[str, int]) -> None:
    model = lw.smokers(3, {"Smokes": [((0,), 1)], "Friends": [((0, 1), 0)]})
    _, state, weight = lw.worlds(model)
    for name, count in given_.items():
        true = sum(v.astype(int) for (n, _), v in state.items() if n == name)
        weight = np.where(true == count, weight, -np.inf)
    p = np.exp(weight - weight.max())
    found = dft.exact(model, ["Smokes(P1)"], cardinality=given_)
    assert found.log_z == pytest.approx(weight.max() + log(p.sum()), abs=1e-9)
    for (name, constants), true in state.items():
        text = f"{name}({','.join(f'P{c}' for c in constants)})"
        assert found[text].probability == pytest.approx((p * true).sum() / p.sum(), abs=1e-9)
    assert list(found.queries) == ["Smokes(P1)"]


def test_counts_of_many() -> None:
    """Fifty people: the histogram's mean is the marginal; coins make binomials; a given count of coins is uniform."""
    histogram = dft.count_distribution(lw.smokers(50), "Smokes")
    assert histogram.sum() == pytest.approx(1.0) and histogram @ np.arange(51) / 50 == pytest.approx(
        0.0513120843, abs=1e-9
    )
    coins = lw.network({"a": 20}, (Predicate("P", ("a",)), Predicate("Q", ("a",))), [(0.0, at("P", "x"))])
    assert dft.count_distribution(coins, "P") == pytest.approx([comb(20, k) / 2**20 for k in range(21)])
    assert dft.exact(coins, cardinality={"Q": 5})["Q(A7)"].probability == pytest.approx(0.25)


def test_counts_that_cannot_be() -> None:
    model = lw.smokers(3, {"Smokes": [((0,), 1)]})
    with pytest.raises(Unsatisfiable, match="3 atoms: 4 of them cannot be true"):
        dft.exact(model, cardinality={"Smokes": 4})
    with pytest.raises(Unsatisfiable):
        dft.exact(model, cardinality={"Smokes": 0})
    with pytest.raises(UnknownName, match="no predicate 'Snores'"):
        dft.count_distribution(model, "Snores")
    with pytest.raises(ModelError, match="three variables"):
        dft.exact(lw.smokers(3, transitivity=True), cardinality={"Friends": 2})


def test_a_hundred_thousand_constants() -> None:
    """Factors to the power of some 10^10: what is left of their logarithms beside whole units adds up to thousands."""
    n, pull = 100_000, 0.00009
    gain = float(np.log1p(np.exp(-4.0)) - np.log1p(np.exp(-5.0)))  # of a relation's atom, by P of its first constant
    push = -8.99999 - n * gain  # two modes, one of which is nearly three times as likely
    model = dft.markov_logic(
        f"P(t)\nR(t,t)\n{push!r} P(x)\n-5 R(x,y)\n1 R(x,y) ^ P(x)\n{pull!r} P(x) ^ P(y)\n", domain={"t": n}
    )
    k, factorial = np.arange(n + 1, dtype=np.longdouble), np.cumsum(np.log(np.maximum(np.arange(n + 1), 1)), dtype="g")
    log_weight = factorial[-1] - factorial - factorial[::-1] + k * (push + n * np.longdouble(gain)) + pull * k * k
    weight = np.exp(log_weight - log_weight.max())
    smokes = float((k * weight).sum() / weight.sum() / n)
    assert 0.01 < smokes < 0.99
    found = dft.exact(model)
    assert np.ravel(found["P(T1)"].probability)[-1] == pytest.approx(smokes, abs=1e-6)
    related = smokes / (1 + np.exp(4)) + (1 - smokes) / (1 + np.exp(5))
    assert np.ravel(found["R(T1,T2)"].probability)[-1] == pytest.approx(related, abs=1e-6)


def test_logarithms_beyond_their_range() -> None:
    with pytest.raises(TooLarge, match="sample it"):
        logs_of([2**30, 1]).times(10**12)
