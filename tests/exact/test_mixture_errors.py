"""Errors of the mixture of modes for what no draw has met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from definetti.diagnose import Diagnosis
from definetti.estimators.values import Estimates
from definetti.inference.assemble import Estimated, Regions
from definetti.inference.derived import Derived, answers
from definetti.model.marginals import Estimate
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


def ratio_of_a_mixture(regions: list[np.ndarray], shares: np.ndarray) -> Estimate:
    """P(A | B) by draws of A ∧ B and of B in each region."""
    parts = []
    for f in regions:
        draws = Draws(f, None, np.full(8, 50), np.ones(2, dtype=int))
        parts.append((Estimates(f.mean(axis=(0, 1)), f, np.zeros(2, bool), np.zeros(2, np.int8)), draws))
    both = np.ones(2)
    found = Diagnosis(1e-6 * both, both, both, both == 0, both == 0, 20 * both)
    whole = replace(parts[0][0], value=shares @ np.stack([estimates.value for estimates, _ in parts]))
    made = Estimated(whole, found, parts[0][1], Regions(tuple(parts), shares, np.zeros(2), 0.0))
    return answers(made, [Derived("A | B", (0, 1), 1)])[0]["A | B"]


def test_a_ratio_of_a_mixture_may_have_missed_one_draw_where_neither_part_moved() -> None:
    """A ∧ B and B were true in all draws of the heavy region; in the light one B now and then, A with it never. The
    error was that of the light region: 1.9e-6, trusted, where the ratio was 2.2e-5 off."""
    rare = np.zeros((8, 4, 2))
    rare[::4, 0, 1] = 0.02
    answer = ratio_of_a_mixture([np.ones((8, 4, 2)), rare], np.array([0.999, 0.001]))
    below = 0.999 + 0.001 * rare[:, :, 1].mean()
    assert answer.mcse == pytest.approx(0.999 / 1600 / below, rel=1e-2)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_ratio_that_is_0_or_1_in_a_region_may_have_missed_one_draw(share: float) -> None:
    """B comes and goes in the heavy region, A with it never, or always: the error of .0002 was 2.9e-6, where one draw
    is 1.25e-3."""
    met = (np.random.default_rng(1).random((8, 4, 50)) < 0.5).mean(axis=2)
    other = np.stack([np.full((8, 4), 1.0 - share), np.ones((8, 4))], axis=2)
    answer = ratio_of_a_mixture([np.stack([share * met, met], axis=2), other], np.array([0.9999, 0.0001]))
    assert answer.mcse == pytest.approx(1 / 1600 / met.mean(), rel=1e-2)


def test_ratios_may_be_moved_by_what_the_draws_cannot_show() -> None:
    """Of a place of weight 1e-3 at most, in which neither A nor B is true, or both are."""
    rng = np.random.default_rng(1)
    f = 0.5 + 1e-4 * rng.normal(size=(8, 4, 2))
    both, estimates = np.ones(2), Estimates(f.mean(axis=(0, 1)), f, np.zeros(2, bool), np.zeros(2, np.int8))
    found = Diagnosis(1e-6 * both, both, both, both == 0, both == 0, 20 * both)
    draws = Draws(f, None, np.full(8, 5000), np.ones(2, dtype=int), left_out=1e-3 * both)
    answer = answers(Estimated(estimates, found, draws), [Derived("A | B", (0, 1), 1)])[0]["A | B"]
    assert answer.mcse == pytest.approx(2e-3 / 0.5, rel=0.1)


def test_what_no_draw_of_a_region_shows_is_part_of_the_errors_of_what_never_moved() -> None:
    one, f = np.ones(1), np.zeros((2, 2, 1))
    draws = Draws(f, None, np.array([500, 500]), np.array([1]), left_out=0.01 * one)
    estimates = Estimates(0.0 * one, f, np.zeros(1, bool), np.zeros(1, np.int8))
    found = Diagnosis(np.nan * one, one, np.nan * one, np.ones(1, bool), np.zeros(1, bool), 20 * one)
    _, made = mixed([(estimates, found, draws)], one, np.zeros(1), 0.0)
    assert made.mcse[0] == pytest.approx(0.01, rel=0.01)
