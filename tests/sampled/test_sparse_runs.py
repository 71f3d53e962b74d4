"""Runs of the sparse engine against the dense one on the same theory, and against exact answers."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from small_theories import smokers, with_evidence

import definetti as dft
from definetti.samplers.sparse import choice

FALSE_ALARM = 4.9  # of two-sided z-scores: 1e-6 each


def answer(model: dft.MarkovLogic, dense: bool, seed: int) -> dft.Marginals:
    refused = patch.object(choice, "sparse_engine", lambda *_: "dense is asked for")
    taken = patch.object(choice, "ADVANTAGE", 0.0)
    with refused if dense else taken:
        return dft.marginals(model, sampler="gibbs", chains=8, sweeps=400, seed=seed, workers=1)


@pytest.mark.parametrize("known", [False, True])
def test_both_engines_agree(known: bool) -> None:
    """Evidence on some people splits the orbits; the same kernel's draws have the same law."""
    facts = {"friends": {(0, 1): True, (1, 0): True, (0, 2): False}, "smokes": {(0,): True, (1,): True}}
    model = with_evidence(smokers(40), facts) if known else smokers(40)
    one, other = answer(model, False, 11), answer(model, True, 12)
    assert one.run["engine"] == "sparse"
    assert "engine" not in other.run
    assert one.run["updates"] / (400 + one.run["burn_in"]) == other.run["updates"] / (400 + other.run["burn_in"])
    rows = {row.representative: row for row in other.orbits}
    assert set(rows) == {row.representative for row in one.orbits}
    for row in one.orbits:
        error = np.hypot(row.mcse, rows[row.representative].mcse)
        assert abs(row.probability - rows[row.representative].probability) <= FALSE_ALARM * error + 1e-12


HARD = "S(n)\nE(n,n)\n0.4 S(x)\n-2.5 E(x,y)\n0.1 E(x,y) ^ E(y,z) => E(x,z)\nE(x,y) => !E(y,x).\nE(x,y) => S(x)."
TERNARY = "P(n)\nR(n,n,k)\n0.2 P(x)\n-2.5 R(x,y,v)\n0.3 R(x,y,v) ^ P(x) => P(y)\n0.4 R(x,y,v) ^ R(x,y,w) ^ v != w"
SOME = "P(n)\nE(n,n)\n0.2 P(x)\n-3.5 E(x,y)\n0.9 P(x) => EXIST y E(x,y)\n-0.3 E(N1,x)"


@pytest.mark.slow
@pytest.mark.parametrize("text", [HARD, TERNARY, SOME])
def test_both_engines_agree_on_other_forms(text: str) -> None:
    """What hard formulas hold now and then is no alarm of the watch."""
    model = dft.markov_logic(text, domain={"n": 24, "k": 2} if "k)" in text else {"n": 24})
    one, other = answer(model, False, 11), answer(model, True, 12)
    assert one.run["engine"] == "sparse"
    assert not {n.kind for n in one.notices} & {"frozen", "divided", "not-mixed"}
    for row in one.orbits:
        error = np.hypot(row.mcse, other[row.representative].mcse)
        assert abs(row.probability - other[row.representative].probability) <= FALSE_ALARM * error + 1e-12


@pytest.mark.slow
def test_by_default_at_a_hundred() -> None:
    """Without transitivity the answer is known exactly: P(smokes) .0379213197, P(cancer) .0994240349."""
    p = dft.marginals(smokers(100, transitive=False), sampler="gibbs", chains=8, sweeps=300, seed=5, workers=1)
    assert p.run["engine"] == "sparse"
    for name, truth in {"smokes(P0)": 0.0379213197, "cancer(P0)": 0.0994240349}.items():
        assert abs(p[name].probability - truth) < FALSE_ALARM * p[name].mcse
    assert p["friends(P0,P0)"].probability == pytest.approx(1 / (1 + np.exp(4.6)), abs=1e-12)
