"""The experiments' own arithmetic: divergences, exact values of the grid, orbits of edges, verdicts from numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti.experiments import claims, curves, domain_sizes, models, panels, truths
from definetti.experiments.figure import QUICK, Measured
from definetti.experiments.run import FIGURES, figure_file, is_finished, run_figures
from definetti.experiments.targets import Target, divergence, target_of

rng = np.random.default_rng(3)


def test_divergences_are_those_of_compare() -> None:
    a, b = (dft.factor_graph([2], [([0], [1.0, w])]) for w in (2.0, 3.0))
    compared = dft.exact(a).compare(dft.exact(b))
    found = divergence(np.array([2 / 3]), np.array([3 / 4]), np.ones(1))
    assert found == pytest.approx({"kl": compared.kl_ab, "kl_reverse": compared.kl_ba, "mse": compared.mse})
    assert divergence(np.zeros(1), np.array([0.25]), np.ones(1))["kl"] == pytest.approx(-np.log(0.75))


def test_an_orbit_estimate_is_never_worse_whatever_the_samples() -> None:
    model = models.smokers(4, True)
    group = dft.symmetries(model)
    target = target_of(group, {row.representative: 0.1 * (k + 1) for k, row in enumerate(group.orbits)})
    assert (target.variables, target.orbits) == (24, 4)
    for _ in range(50):
        means = rng.random(24)
        standard, orbit = target.standard(means), target.orbit(target.over_orbits(means))
        assert all(orbit[key] <= standard[key] + 1e-15 for key in ("kl", "mse"))


@pytest.mark.parametrize("side", [2, 3])
def test_kac_and_ward_agree_with_exact_answers(side: int) -> None:
    edges = models.grid_edges(side)
    queries = [f"!(X{a}=1 <=> X{b}=1)" for a, b in edges.tolist()]
    answer = dft.exact(models.grid(side), queries)
    assert truths.disagreement(side) == pytest.approx([answer[q].probability for q in queries], abs=1e-12)


def test_orbits_of_edges_are_those_of_the_square() -> None:
    for side in (2, 3, 4):
        pairs = dft.symmetries(models.grid(side), "variables")
        orbit, edges = truths.edge_orbits(side), models.grid_edges(side)
        row = np.asarray(pairs.row_of)[edges]
        for k in range(orbit.max() + 1):  # edges of one orbit join the same orbits of variables
            assert len(np.unique(np.sort(row[orbit == k], axis=1), axis=0)) == 1
    assert len(np.unique(truths.edge_orbits(models.SIDE))) == 2500
    kept = truths.truth("grid-edges").values
    assert kept["X0!=X1"] == pytest.approx((1 + 0.100668) / 2, abs=1e-6)
    assert kept["X4949!=X4950"] == pytest.approx(0.5508443, abs=1e-7)


def test_fields_that_the_square_leaves_alone() -> None:
    fields = models.symmetric_fields(6)
    model = models.grid(6, fields=fields)
    assert len(dft.symmetries(model, "variables").orbits) == len(np.unique(fields)) == 6


def test_evidence_is_that_of_the_paper() -> None:
    evidence = models.known_people(50, 1)
    assert evidence.count("smokes") == 5 and evidence.count("friends") == 50
    assert models.known_smokers(evidence) == evidence.count("smokes") - evidence.count("!smokes")
    assert dft.symmetries(models.smokers(50, evidence=evidence)).sizes.sum() == 2600 - 55


def rows(curve: str, values: list[float]) -> list[dict]:
    at = enumerate(values)
    return [curves.point(curve, 0, 10 ** (k + 1), 1, 10.0**k, {"kl": v, "kl_reverse": v, "mse": v}) for k, v in at]


@pytest.mark.parametrize(("orbit", "held"), [([1e-3, 1e-4], True), ([1e-3, 1e-2], False), ([1e-3, 1e-7], False)])
def test_a_gain_is_held_against_variables_by_orbits(orbit: list[float], held: bool) -> None:
    facts = {"variables": 100, "orbits": 1}
    measured = Measured(rows(curves.STANDARD, [1e-1, 1e-2]) + rows(curves.ORBIT, orbit), facts)
    assert claims.gain_by_symmetry("x", measured).held is held
    worse = Measured(rows(curves.STANDARD, [1e-1, 1e-2]) + rows(curves.ORBIT, [1e-3, 2e-2]), facts)
    assert not claims.never_worse("x", worse, [(curves.STANDARD, curves.ORBIT)]).held


def test_short_runs_are_allowed_a_factor_that_is_said() -> None:
    some = rows(curves.STANDARD, [1e-1, 1e-2]) + rows(curves.AUTO, [1e-5, 5e-6])  # 2,000 times at equal time
    long, short = (claims.gain_by_default("x", Measured(some, {"short": short}), 5000) for short in (False, True))
    assert not long.held and "factor" not in long.expected
    assert (
        short.held and "within a factor 3" in short.expected and "2,000 times smaller (2,000 at equal" in short.measured
    )


def test_shares_of_predicates_weigh_orbits_by_their_members() -> None:
    truth = np.array([0.2, 0.1, 0.01, 0.4])
    names = ("smokes(A)", "cancer(A)", "friends(A,B)", "friends(A,A)")
    sizes = np.array([10, 10, 90, 10])
    goal = Target(sizes, lambda: np.repeat(np.arange(4), sizes), truth, truth / 100, names)
    assert domain_sizes.shares(goal, truth) == pytest.approx([0.1, 0.049, 0.2])  # by name
    assert domain_sizes.share_error(goal) == pytest.approx(0.01)
    assert domain_sizes.is_close(goal, truth * 1.009) and not domain_sizes.is_close(goal, truth * 1.011)
    assert domain_sizes.is_close(goal, truth * [1, 1, 1.05, 1])  # 90 of 100 friends have a fifth of the share


@pytest.mark.parametrize(("power", "error", "censored", "held"), [
    (1.5, 0.001, 10**6, True), (2.5, 0.001, 10**6, False), (1.5, 0.005, 10**6, False), (1.5, 0.001, 2000, False),
    (1.5, 0.001, 100_000, True),
])  # fmt: skip
def test_growth_of_crowds(power: float, error: float, censored: int, held: bool) -> None:
    """`censored`: crowds from this size on met the time limit."""
    made = [
        {"curve": curves.CROWD_CLOSE, "people": n, "run": 0, "seconds": 1e-3 * n**power, "samples": n, "sweeps": 1,
         "censored": n >= censored, "truth_error": error}
        for n in (100, 500, 2000, 100_000)
    ]  # fmt: skip
    verdict = domain_sizes.growth_of_crowds("fig3c", Measured(made))
    assert verdict.held is held and f"n^{power:.2f}" in verdict.measured
    assert ("100,000: not within" in verdict.measured) == (censored <= 100_000)


def test_every_figure_has_its_parts() -> None:
    for name in FIGURES:
        found = figure_file(name)
        assert found.CAPTION and len(found.SECONDS) == 2 and found.SECONDS[1] <= found.SECONDS[0]
        assert all(callable(getattr(found, part)) for part in ("measure", "draw", "judge"))
    assert sum(figure_file(name).SECONDS[1] for name in FIGURES) < 300
    assert sum(figure_file(name).SECONDS[0] for name in FIGURES) < 90 * 60


def test_a_figure_is_measured_drawn_judged_and_kept(tmp_path) -> None:
    said: list[str] = []
    verdicts = run_figures(["fig1"], tmp_path, True, said.append)
    assert all(v.held for v in verdicts) and is_finished("fig1", tmp_path, QUICK)
    assert {p.name for p in tmp_path.iterdir()} == {
        "fig1.csv", "fig1.json", "fig1.png", "fig1.svg", "index.html", "README.md", "verdicts.json"
    }  # fmt: skip
    for row in json.loads((tmp_path / "verdicts.json").read_text()):
        assert {"figure", "claim", "expected", "measured", "held"} <= row.keys() and row["held"] is True
    assert "10 orbits of 16 states" in (tmp_path / "index.html").read_text()
    before = (tmp_path / "fig1.csv").stat().st_mtime_ns
    run_figures(["fig1"], tmp_path, True, said.append)
    assert "fig1: finished before, kept" in said and (tmp_path / "fig1.csv").stat().st_mtime_ns == before
    _numbers_of_other_code(tmp_path, said)


def _numbers_of_other_code(out: Path, said: list[str]) -> None:
    """A figure that other code has kept beside it, of the same version, is left out, and not drawn or judged."""
    other = json.loads((out / "fig1.json").read_text())
    other["parameters"]["code"], other["facts"] = "0" * 16, {}
    (out / "fig2a.json").write_text(json.dumps(other))
    (out / "fig2a.csv").write_text("a,b\n1,2\n")
    (out / "fig2b.json").write_text("[]")
    verdicts = run_figures(["fig1"], out, True, said.append)
    assert {verdict.figure for verdict in verdicts} == {"fig1"}
    assert all(any(line.startswith(f"{name}: left out") for line in said) for name in ("fig2a", "fig2b"))
    assert not is_finished("fig2a", out, QUICK)


def test_curves_of_a_sampler_of_states_are_means_of_its_draws() -> None:
    model = models.smokers(3)
    group = dft.symmetries(model)
    target = target_of(group, {row.representative: 0.1 * (k + 1) for k, row in enumerate(group.orbits)})
    rows = curves.mcsat_curves(model, target, runs=1, samples=8, sampler="gibbs", names=("single", "orbit"))
    drawn = dft.sample(model, sampler="gibbs", chains=1, draws=8, burn_in=0, seed=100, workers=1)
    means = np.concatenate(list(drawn))[:, 0].mean(axis=0)
    last = [row for row in rows if row["curve"] == "single"][-1]
    assert last["kl"] == pytest.approx(target.standard(means)["kl"])


def test_sizes_of_orbits_are_those_of_their_members() -> None:
    for model in (models.smokers(12), models.grid()):
        made = target_of(panels.partition(model)[0], lambda name: 0.5)
        assert made.sizes.tolist() == np.bincount(made.orbit_of[made.orbit_of >= 0]).tolist()
