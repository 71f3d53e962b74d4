"""Standard errors, R-hat and effective sizes on chains whose true values are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from small_models import mean_field

import definetti as dft
from definetti.diagnose import diagnose, split_rhat, standard_error, weighted_mean
from definetti.errors import FAILURES
from definetti.model.graph.factors import factor_graph

BATCHES, LENGTH = 32, 64

ONE = np.ones(1)  # each statistic is a single indicator


def autoregressive(rho: float, chains: int, rng: np.random.Generator, statistics: int = 40) -> np.ndarray:
    """float64[draws, chains, statistics]: stationary AR(1) with variance 1."""
    draws = BATCHES * LENGTH
    x = np.empty((draws, chains, statistics))
    x[0] = rng.normal(size=(chains, statistics))
    noise = rng.normal(size=x.shape) * np.sqrt(1 - rho**2)
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + noise[t]
    return x


def folded(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Batch means, lengths, last draws."""
    parts = x.reshape(BATCHES, LENGTH, *x.shape[1:])
    return parts.mean(axis=1), np.full(BATCHES, LENGTH), parts[:, -1]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("chains", [4, 64])
def test_error_of_known_chains(rho: float, chains: int) -> None:
    """Of AR(1): the variance of the mean is (1 + ρ)/(1 − ρ) per draw, the effective size draws · (1 − ρ)/(1 + ρ)."""
    x = autoregressive(rho, chains, np.random.default_rng(1))
    f, lengths, last = folded(x)
    found = diagnose(f, lengths, f, last**2, ONE)
    draws = BATCHES * LENGTH * chains
    want = np.sqrt((1 + rho) / (1 - rho) / draws)
    assert np.mean(found.mcse) == pytest.approx(want, rel=0.08)
    assert np.mean(found.ess) == pytest.approx(
        draws * (1 - rho) / (1 + rho), rel=0.25
    )  # batches of 64 are short for 0.9
    assert np.abs(weighted_mean(f, lengths)).max() < 5 * want
    assert found.rhat.min() > 0.98 and found.rhat.max() < 1.05
    assert not found.constant.any() and not found.frozen.any()


def test_nominal_coverage() -> None:
    x = autoregressive(0.6, 4, np.random.default_rng(2), statistics=1000)
    f, lengths, _ = folded(x)
    inside = np.abs(weighted_mean(f, lengths)) < 1.96 * standard_error(f, lengths)[0]
    assert 0.92 < inside.mean() < 0.975


def test_rhat_by_hand() -> None:
    """Four batches of two chains: the textbook formula on half-chains."""
    rng = np.random.default_rng(3)
    f, last = rng.random((4, 2, 3)), rng.random((4, 2, 3))
    lengths = np.array([5, 5, 5, 5])
    halves = np.stack([f[:2, 0].mean(0), f[:2, 1].mean(0), f[2:, 0].mean(0), f[2:, 1].mean(0)])
    square = np.maximum((last**2).mean(axis=(0, 1)), f.mean(axis=(0, 1)) / 9)  # a mean of nine indicators
    within = square - (halves**2).mean(axis=0)
    total = 9 / 10 * within + halves.var(axis=0, ddof=1)
    rhat, variance = split_rhat(f, lengths, last**2, 9 * ONE)
    np.testing.assert_allclose(variance, total)
    np.testing.assert_allclose(rhat, np.sqrt(total / within))


def test_chains_apart_have_large_rhat() -> None:
    x = autoregressive(0.3, 8, np.random.default_rng(4))
    x[:, ::2] += 3.0
    f, lengths, last = folded(x)
    assert diagnose(f, lengths, f, last**2, ONE).rhat.min() > 1.5


def test_drift_has_large_rhat() -> None:
    """Splitting chains finds what all chains do alike."""
    x = autoregressive(0.3, 8, np.random.default_rng(5)) + np.linspace(0, 3, BATCHES * LENGTH)[:, None, None]
    f, lengths, last = folded(x)
    assert diagnose(f, lengths, f, last**2, ONE).rhat.min() > 1.1


def test_constant_statistics() -> None:
    f = np.full((8, 4, 2), 0.5)
    f[:, :, 1] = [0.0, 1.0, 0.0, 1.0]
    found = diagnose(f, np.full(8, 3), f, f**2, np.array([2, 1]))
    assert found.constant.tolist() == [True, False]
    assert np.isnan(found.rhat[0]) and np.isposinf(found.rhat[1])
    assert np.isnan(found.ess[0])


def test_unvisited_batches_are_left_out() -> None:
    rng = np.random.default_rng(6)
    g = rng.random((16, 2, 3))
    g[::2, :, 1] = np.nan
    g[:, :, 2] = np.nan
    lengths = np.full(16, 4)
    np.testing.assert_allclose(weighted_mean(g, lengths)[:2], [g[:, :, 0].mean(), np.nanmean(g[:, :, 1])])
    error = standard_error(g, lengths)[0]
    assert error[1] == pytest.approx(np.nanstd(g[:, :, 1], ddof=1) / np.sqrt(16))
    assert np.isnan(error[2]) and np.isnan(weighted_mean(g, lengths)[2])


def test_too_few_means_give_no_error() -> None:
    assert np.isnan(standard_error(np.random.default_rng(0).random((7, 1, 2)), np.ones(7))[0]).all()
    assert np.isfinite(standard_error(np.random.default_rng(0).random((8, 1, 2)), np.ones(8))[0]).all()


# --- what a run says of itself -----------------------------------------------------------------------------------


def kinds(result: dft.Marginals) -> set[str]:
    json.dumps(result.to_json(), allow_nan=False)
    return {notice.kind for notice in result.notices}


@pytest.mark.parametrize("chains", [2, 8, 64])
def test_two_modes_are_not_trusted(chains: int) -> None:
    """Two variables that only move together: single-site chains stay where they started."""
    equal = factor_graph([2, 2], [([0, 1], np.eye(2)), ([0], [1.0, 2.0])])
    result = dft.marginals(equal, chains=chains, sweeps=200, seed=3, sampler="gibbs")
    assert kinds(result) & FAILURES
    if chains > 2:
        assert "not-mixed" in kinds(result) and result["X0"].rhat == np.inf
        assert result.to_json()["orbits"][0]["rhat"] is None


def test_frozen_chain_is_not_exact() -> None:
    """One chain in one of two states: the number it gives has no error, and is said to be frozen."""
    equal = factor_graph([2, 2], [([0, 1], np.eye(2)), ([0], [1.0, 2.0])])
    result = dft.marginals(equal, chains=1, sweeps=200, seed=3, sampler="gibbs")
    assert "frozen" in kinds(result) and result["X0"].mcse is None


def test_strong_couplings_are_not_exact() -> None:
    """Not hard, but no update will ever move it."""
    bond = np.array([[0.0, -200.0], [-200.0, 0.0]])
    result = dft.marginals(
        factor_graph([2, 2], [([0, 1], bond), ([0], [0, 1])], log=True), sampler="gibbs", chains=1, sweeps=50, seed=1
    )
    assert "frozen" in kinds(result) and result["X0"].mcse is None


def test_forced_values_are_exact() -> None:
    """X0 = 1 is forced by a table, X1 through X0, X2 = 2 has no chance."""
    same = np.eye(2)
    third = np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])
    model = factor_graph([2, 2, 3, 2], [([0], [0.0, 1.0]), ([0, 1], same), ([1, 2], third), ([3], [1, 2])])
    result = dft.marginals(model, chains=64, sweeps=400, seed=1, symmetries="none")
    assert (result["X0"].probability, result["X0"].mcse) == (1.0, 0.0)
    assert (result["X1"].probability, result["X1"].mcse) == (1.0, 0.0)
    assert result["X2"].probability[2] == 0.0 and result["X2"].mcse[2] == 0.0  # type: ignore[index]
    assert result.trusted


def test_rare_value_never_seen_is_as_uncertain_as_its_conditionals_say() -> None:
    rare = factor_graph([2, 2], [([0], [1.0, 1e-9]), ([1], [1.0, 2.0])])
    for source, more in ((rare, {"chains": 4, "sweeps": 50}), (np.zeros((4, 50, 2), dtype=int), {"model": rare})):
        result = dft.marginals(source, ["X0=1 ^ X1=1", "X0"], seed=1, **more)
        for query in ("X0=1 ^ X1=1", "X0"):
            assert result[query].probability == 0.0
            told = query == "X0" and "model" not in more  # conditionals of samples and joint events are not known
            assert result[query].mcse == (pytest.approx(np.sqrt(1e-9 / 200), rel=1e-6) if told else None)
        assert "few-samples" in kinds(result)


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("chains", [1, 64])
def test_few_sweeps_say_so(sweeps: int, chains: int) -> None:
    result = dft.marginals(mean_field(4, -0.3, 0.2), ["X0", "X0=1 ^ X1=1"], chains=chains, sweeps=sweeps, seed=1)
    assert "few-samples" in kinds(result)
    assert result.run["sweeps"] == sweeps
    assert 0 <= result["X0"].probability <= 1  # type: ignore[operator]
    assert (result["X0"].mcse is None) == (chains == 1)
