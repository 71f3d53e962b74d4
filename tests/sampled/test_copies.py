"""Regions that are left out as light, of which there are so many that they carry the weight."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import definetti as dft

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import gated_traps

GATES, TIE, TOGETHER = 8, 12.0, 2.0


def gated(pairs: int, lighter: float, seed: int) -> tuple[dft.FactorGraph, float]:
    """Gates that are alike; where they are open, two variables of each pair are tied: 2^pairs modes that single moves
    do not leave, each `lighter` than the one with closed gates and free pairs. And P(open), gates being alike."""
    rng, factors, weights = np.random.default_rng(seed), [], np.zeros(2)
    for i in range(GATES):
        factors += [([j, i], np.exp([[TOGETHER, 0.0], [0.0, TOGETHER]])) for j in range(i)]
    bonus = np.log(4.0) - lighter / pairs
    for i in range(pairs):
        h = 0.1 * rng.normal()
        table = [[[0.0, 0.0], [0.0, 0.0]], [[bonus - h, -TIE], [-TIE, bonus + h]]]
        factors.append(([i % GATES, GATES + 2 * i, GATES + 2 * i + 1], np.exp(table)))
        weights += np.log(4.0), np.logaddexp(bonus - h, bonus + h)
    return dft.factor_graph([2] * (GATES + 2 * pairs), factors), float(1 / (1 + np.exp(weights[0] - weights[1])))


@pytest.mark.parametrize("seed", [0, 1])
def test_many_light_modes_are_not_left_out(seed: int) -> None:
    model, truth = gated(60, 25.0, seed)
    assert truth > 0.999999
    found = dft.marginals(model, ["X0"], chains=64, sweeps=500, seed=seed)
    assert not found.trusted, found.notices
    assert any(n.kind == "divided" and "look-alikes" in n.message for n in found.notices)


def test_many_light_modes_that_are_weighed() -> None:
    """Hard pairs beside them make the brackets wide: the few copies that are met are annealed, and found light."""
    trap = gated_traps.open_pairs(24, GATES, np.round(0.1 * np.random.default_rng(0).normal(size=24), 6), 12.0)
    assert trap.truth["G(A0)"][0] > 0.99
    found = dft.marginals(trap.build(), ["G(A0)"], chains=8, sweeps=300, seed=2)
    assert not found.trusted, found.queries


def test_a_few_light_modes_are_left_out() -> None:
    """Four copies that weigh nothing."""
    model, truth = gated(2, 40.0, 3)
    found = dft.marginals(model, ["X0"], chains=64, sweeps=500, seed=1)
    assert truth < 1e-12 and not any("look-alikes" in n.message for n in found.notices)
