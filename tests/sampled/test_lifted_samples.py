"""Independent exact samples: chi-square against enumeration, and agreement with exact marginals at fifty people."""

from __future__ import annotations

import logic_worlds as lw
import numpy as np
import pytest
from scipy.stats import chi2
from small_theories import evidence_theory, two_variable_theory

import definetti as dft
from definetti.errors import ModelError
from definetti.model.logic.theory import Exist, Predicate
from definetti.solvers.lifted import sampling as lifted_sample

DRAWS = 300
FALSE_ALARMS = 1e-4  #: of all the chi-square tests here together


def p_value(model, seed: int) -> float | None:
    """Of the counts of all worlds in DRAWS draws; rare worlds are pooled. None where there is nothing to test."""
    free, state, weight = lw.worlds(model)
    if weight.max() == -np.inf:
        return None
    try:
        sampler = lifted_sample.sampler_of(model)
    except ModelError:
        return None
    p = np.exp(weight - weight.max())
    p /= p.sum()
    counts, rng = np.zeros(len(p)), np.random.default_rng(seed)
    for _ in range(DRAWS):
        drawn = sampler.draw(rng)
        counts[sum(int(drawn[n][c]) << k for k, (n, c) in enumerate(free))] += 1
        assert all(drawn[n][c] == v[0] for (n, c), v in state.items() if (n, c) not in free)
    assert not counts[p == 0].any()
    common = p * DRAWS >= 5
    expected = np.append(p[common], p[~common].sum()) * DRAWS
    seen = np.append(counts[common], counts[~common].sum())
    if expected[-1] < 5:
        expected, seen = np.append(expected[:-2], expected[-2:].sum()), np.append(seen[:-2], seen[-2:].sum())
    if len(expected) < 2:
        return None
    return float(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.parametrize("listed", [0, lifted_sample.DIRECT])
def test_worlds_come_with_their_probabilities(listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifted_sample, "DIRECT", listed)  # polynomials walked backwards, or vectors listed
    models = [two_variable_theory(s, 7) for s in range(10)] + [evidence_theory(s, 6) for s in range(10)]
    found = [p for k, model in enumerate(models) if (p := p_value(model, k)) is not None]
    assert len(found) >= 6
    assert min(found) > FALSE_ALARMS / (2 * len(models))


def test_exact_and_lifted_samples_agree_with_evidence() -> None:
    """The verdict of `compare` has a family-wise false-alarm rate of 1e-4."""
    model = lw.smokers(50, lw.paper_evidence(50, 2))
    asked = ["Smokes(P0) ^ Friends(P0,P1)", "Cancer(P0)"]
    truth = dft.exact(model, asked)
    found = dft.marginals(model, asked, sampler="lifted", chains=4, sweeps=64, seed=5)
    assert found.run["sampler"] == "lifted" and found.run["burn_in"] == 0
    assert "they agree" in str(found.compare(truth))


def test_quantifiers_are_refused() -> None:
    body = Exist(("y",), lw.at("R", "x", "y"))
    some = lw.network({"a": 3}, (Predicate("R", ("a", "a")),), [(1.0, body)])
    with pytest.raises(ModelError, match="quantifiers cannot be sampled lifted"):
        dft.marginals(some, sampler="lifted", sweeps=4)


def test_gibbs_and_counting_agree_on_fifty_people_with_evidence() -> None:
    model = lw.smokers(50, lw.paper_evidence(50, 2))
    truth = dft.exact(model)
    assert truth.method is not None and "lifted" in truth.method
    for estimator in ("orbit", "auto"):
        found = dft.marginals(model, estimator=estimator, sweeps=600, seed=5)
        for row in found.orbits:
            assert abs(row.probability - truth[row.representative].probability) <= 5.5 * row.mcse + 1e-10, row
