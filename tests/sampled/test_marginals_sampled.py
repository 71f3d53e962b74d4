"""Whole runs with fixed seeds against exact answers: every engine, scan and estimator; what must hold on every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_models import hard_pairs, ising_ring, mean_field, potts_ring, triples

import definetti as dft
from definetti.model.graph.factors import FactorGraph, factor_graph

FALSE_ALARM = 1e-4  # of this whole file
SEED = 20140611

MODELS = {
    "fields": (mean_field(5, -0.3, 0.25), ("X0=1 ^ X1=1", "X0=0 ^ X1=0 ^ X2=1")),
    "fields, observed": (ising_ring(7, 0.6, 0.1).condition({2: 1}), ("X0=1 ^ X1=1", "X1 <=> X3")),
    "tables": (triples(), ("X0=2 ^ X2=2", "X1=1 v X3=1")),
    "tables, observed": (triples(5).condition({4: 3}), ("X0=1 ^ X1=1", "X2=0 ^ X4=3")),
    "values may be permuted": (potts_ring(4, 3, 0.9), ("X0=1 ^ X1=1", "X0=0 ^ X2=1")),
    "hard": (hard_pairs(), ("X0=1 ^ X2=1", "X0=0 ^ X1=0")),
}
CHAINS = {"fields": [8, 40], "fields, observed": [3, 64], "hard": [10, 33]}  # narrow and wide


def entries(estimate: dft.Estimate) -> list[tuple[float, float | None]]:
    """(probability, mcse) of each number of an answer."""
    if isinstance(estimate.probability, list):
        return list(zip(estimate.probability, estimate.mcse, strict=True))  # type: ignore[arg-type]
    return [(estimate.probability, estimate.mcse)]  # type: ignore[list-item]


def z_scores(found: dft.Marginals, truth: dft.Marginals) -> list[float]:
    """Of queries and orbits; an exact number must be exactly right."""
    out = []
    names = [*found.queries, *(row.representative for row in found.orbits)]
    for name in names:
        for (p, mcse), (want, _) in zip(entries(found[name]), entries(truth[name]), strict=True):
            if mcse == 0.0:
                assert p == pytest.approx(want, abs=1e-12)
            else:
                assert mcse is not None
                out.append((p - want) / mcse)
    return out


def z_limit(count: int) -> float:
    """The two-sided limit that the largest of `count` numbers passes with probability below the false alarm.

    Of Student's t: errors from some dozens of means have heavier tails than normal ones.
    """
    from scipy.stats import t

    return float(t.ppf(1 - FALSE_ALARM / (2 * count), df=40))


NUMBERS = 1500  # in this file, an upper bound


@pytest.mark.parametrize("estimator", ["standard", "orbit", "conditional"])
@pytest.mark.parametrize("scan", ["symmetric", "random", "fixed"])
@pytest.mark.parametrize("name", MODELS)
def test_against_exact(name: str, scan: str, estimator: str) -> None:
    model, queries = MODELS[name]
    truth = dft.exact(model, queries)
    for chains in CHAINS.get(name, [40]):
        found = dft.marginals(
            model, queries, scan=scan, estimator=estimator, chains=chains, sweeps=40_000 // chains, seed=SEED
        )
        scores = z_scores(found, truth)
        assert found.trusted and len(scores) >= 2
        assert np.abs(scores).max() < z_limit(NUMBERS)
        worst = max(mcse for row in found.orbits for _, mcse in entries(row.estimate()) if mcse is not None)
        assert worst < 0.02, "an error bar so large sees nothing"


# --- Jensen ------------------------------------------------------------------------------------------------------


def losses(p: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Squared error and KL(truth ‖ estimate) of a distribution over values."""
    with np.errstate(divide="ignore", invalid="ignore"):
        kl = np.where(truth > 0, truth * np.log(truth / p), 0.0).sum()
    return float(((p - truth) ** 2).sum()), float(kl)


def vector(estimate: dft.Estimate) -> np.ndarray:
    if isinstance(estimate.probability, list):
        return np.array(estimate.probability)
    return np.array([1.0 - estimate.probability, estimate.probability])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("sweeps", [2, 30])
@pytest.mark.parametrize("name", MODELS)
def test_jensen(name: str, sweeps: int, seed: int) -> None:
    """Same seed, same draws: the loss of the orbit mean is at most the mean of its members' losses. Always."""
    model, _ = MODELS[name]
    if name == "values may be permuted":  # the literals of all variables are one orbit: nothing random is left
        model = potts_ring(4, 3, 0.9).condition({0: 1})
    truth = dft.exact(model)
    options = {"sampler": "gibbs", "chains": 3, "sweeps": sweeps, "seed": seed, "symmetries": "variables"}
    orbit = dft.marginals(model, estimator="orbit", **options)
    standard = dft.marginals(model, estimator="standard", **options)
    for row in orbit.orbits:
        members = dft.symmetries(model, "variables").orbit_of(row.representative)
        assert len(members) == row.size
        mean = losses(vector(row.estimate()), vector(truth[row.representative]))
        each = np.array([losses(vector(standard[m]), vector(truth[m])) for m in members])
        assert mean[0] <= each[:, 0].mean() + 1e-12
        assert mean[1] <= each[:, 1].mean() + 1e-12
        np.testing.assert_allclose(
            vector(row.estimate()), np.mean([vector(standard[m]) for m in members], axis=0), atol=1e-12
        )


# --- symmetry ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ising_ring(6), mean_field(5, -0.8), ising_ring(5, 3.0)])
def test_one_sample_of_a_value_flip_model_is_exact(model: FactorGraph) -> None:
    found = dft.marginals(model, chains=1, sweeps=1, seed=SEED)
    assert found["X0"].probability == 0.5 and found["X0"].mcse == 0.0 and found.trusted


def test_relabelled_model_relabelled_answer() -> None:
    """Variables in another order, values named the other way round: the same marginals within their errors; and where
    nothing but names changes, the same to the last bit."""
    rng = np.random.default_rng(9)
    table, field = np.exp(rng.normal(size=(3, 2))), np.exp(rng.normal(size=3))
    one = factor_graph(
        {"a": 3, "b": 2, "c": 3}, [(["a", "b"], table), (["c", "b"], table), (["a"], field), (["c"], field)]
    )
    other = factor_graph(
        {"C": 3, "B": 2, "A": 3},
        [(["B", "A"], table[::-1].T), (["B", "C"], table[::-1].T), (["C"], field[::-1]), (["A"], field[::-1])],
    )
    renamed = factor_graph(
        {"x": 3, "y": 2, "z": 3}, [(["x", "y"], table), (["z", "y"], table), (["x"], field), (["z"], field)]
    )
    p, q, r = (dft.marginals(m, chains=40, sweeps=2000, seed=SEED) for m in (one, other, renamed))
    assert dft.symmetries(one).order == dft.symmetries(other).order == 2
    for a, b, c in (("a", "A", "x"), ("b", "B", "y"), ("c", "C", "z")):
        assert p[a] == r[c]
        values = slice(None, None, -1) if a != "b" else slice(None)
        for (x, dx), (y, dy) in zip(entries(p[a]), entries(q[b])[values], strict=True):
            assert abs(x - y) < z_limit(NUMBERS) * np.hypot(dx, dy)  # type: ignore[arg-type]


def test_long_run_and_two_exact_engines_agree() -> None:
    model = triples(7).condition({1: 1})
    queries = ["X0=1 ^ X2=1", "X3"]
    by_enumeration, by_elimination = (dft.exact(model, queries, method=m) for m in ("enumerate", "eliminate"))
    run = dft.marginals(model, queries, chains=64, sweeps=8000, seed=SEED)
    assert run.trusted
    for name in ("X0", "X2", "X3", "X4", "X0=1 ^ X2=1"):
        for (p, mcse), (a, _), (b, _) in zip(
            entries(run[name]), entries(by_enumeration[name]), entries(by_elimination[name]), strict=True
        ):
            assert a == pytest.approx(b, abs=1e-10)
            assert mcse is not None and abs(p - a) <= 4 * mcse < 0.01


# --- how long to run ---------------------------------------------------------------------------------------------


def test_until_an_error_is_reached() -> None:
    model, queries = MODELS["fields"]
    found = dft.marginals(model, queries, until=0.004, chains=16, seed=SEED)
    assert max(mcse for name in queries for _, mcse in entries(found[name]) if mcse is not None) * 1.96 <= 0.004
    assert found.run["sweeps"] >= 160 and found.trusted
    assert np.abs(z_scores(found, dft.exact(model, queries))).max() < z_limit(NUMBERS)
    everything = dft.marginals(model, until=0.02, chains=16, seed=SEED)
    assert 160 <= everything.run["sweeps"] <= found.run["sweeps"]


def test_seconds(cpu_limit) -> None:
    model, _ = MODELS["fields"]
    dft.marginals(model, chains=16, sweeps=1, seed=1)  # kernels loaded
    with cpu_limit(2.0):
        found = dft.marginals(model, seconds=1.0, chains=16, seed=SEED)
    assert found.run["sweeps"] > 1


def test_interrupted_run_keeps_whole_batches() -> None:
    """Ctrl-C between chunks: what there is so far, marked."""
    model, _ = MODELS["fields"]
    calls = 0

    def progress(step) -> None:
        nonlocal calls
        calls += step.phase == "sampling"
        if calls == 7:
            raise KeyboardInterrupt

    found = dft.marginals(model, chains=4, sweeps=3200, seed=1, progress=progress)
    assert found.interrupted and 0 < found.run["sweeps"] < 3200
    with pytest.raises(KeyboardInterrupt):
        dft.marginals(
            model, chains=4, sweeps=3200, seed=1, progress=lambda step: (_ for _ in ()).throw(KeyboardInterrupt)
        )


@pytest.mark.parametrize("sweeps", [1, 2])
def test_any_number_of_sweeps_runs_without_a_warning(sweeps: int, examples: Path) -> None:
    """Of many chains and orbits, so that there are control variates to fit though there is no second batch."""
    model = dft.read(examples / "smokers.mln", evidence=examples / "town.db", domain={"person": 8})
    found = dft.marginals(dft.ground(model), sampler="gibbs", chains=32, sweeps=sweeps, seed=1)
    assert all(0 <= row.probability <= 1 for row in found.orbits)
