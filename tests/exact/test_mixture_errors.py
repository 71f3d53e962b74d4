"""Errors of the mixture of modes for what no draw has met."""

from __future__ import annotations

import numpy as np
import pytest

from definetti.diagnose import Diagnosis
from definetti.estimators.values import Estimates
from definetti.modes.mixture import mixed
from definetti.samplers.draws import Draws


@pytest.mark.parametrize(("met", "error"), [(0.0, 1 / 2000), (0.01, 1e-9)])
def test_what_was_never_met_may_be_one_in_the_draws(met: float, error: float) -> None:
    """Conditionals of the states that were met are tiny; a neighbourhood that was not met had fifty times as much
    as they said, with an error of a tenth."""
    one = np.ones(1)
    f = np.zeros((2, 2, 1))
    f[0, 0, 0] = met
    draws = Draws(f, np.full((2, 2, 1), 1e-8), np.array([500, 500]), np.array([1]))
    estimates = Estimates(1e-8 * one, np.full((2, 2, 1), 1e-8), np.zeros(1, bool), np.zeros(1, np.int8))
    found = Diagnosis(1e-9 * one, one, 500 * one, np.zeros(1, bool), np.zeros(1, bool), 20 * one)
    _, made = mixed([(estimates, found, draws)], one, np.zeros(1), 0.0)
    assert made.mcse[0] == pytest.approx(error)
