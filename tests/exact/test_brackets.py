"""Brackets of the weight of a region hold it, also where chains met nothing but one state."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from definetti.modes.brackets import bracket, effective, exit_rate, independent, standard_error

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import trap_models
from brackets import compare

SWEEPS, CHAINS = 100, 8


def test_what_was_not_met_has_a_share_of_three_in_the_sweeps() -> None:
    nothing = np.zeros((SWEEPS, CHAINS))
    found = bracket(nothing, nothing)
    assert found.width == 0.0
    assert found.upper == pytest.approx(-math.log1p(-3 / 800)) and found.lower == pytest.approx(-3 / 800)
    assert bracket(nothing[:1, :3], nothing[:1, :3]).upper == math.inf


@pytest.mark.parametrize("expected", [0.3, 1.0, 2.0, 5.0, 30.0])
def test_a_place_that_is_met_rarely_is_inside(expected: float) -> None:
    """Independent draws of two states, one of share w = expected / draws: log Z = log f(0) − log(1 − w). The product q
    is that of the first state, which knows nothing of the second."""
    rng, draws = np.random.default_rng(5), SWEEPS * CHAINS
    share, inside = expected / draws, 0
    truth = -math.log1p(-share)
    for _ in range(500):
        other = rng.random((SWEEPS, CHAINS)) < share
        ratio = np.where(other, math.log(share / (1 - share) / 1e-9), 0.0)  # log f − log q, with q = 1e-9 of it
        found = bracket(ratio, np.zeros_like(ratio))
        inside += found.upper >= truth
    assert inside >= 475


def test_exits_are_counted_where_a_chain_was_inside_before() -> None:
    stays = np.ones((4, 2), dtype=bool)
    leaves = np.array([[True, False], [False, False], [True, True], [False, True]])
    assert exit_rate([stays]) == pytest.approx(3 / 8)
    # the first chain leaves twice, the second once; they were inside before 3 and 2 of the sweeps
    assert exit_rate([leaves, stays]) == pytest.approx((3 + 2 * math.sqrt(3) + 3) / (5 + 8))


def test_ways_out_lower_the_lower_end() -> None:
    ratio, divergence = np.zeros((SWEEPS, CHAINS)), np.full((SWEEPS, CHAINS), 0.5)
    still, leaving = bracket(ratio, divergence), bracket(ratio, divergence, 0.02)
    assert leaving.upper == still.upper and leaving.lower == pytest.approx(-0.5 - 0.02 * 1.5)
    assert still.lower == pytest.approx(-0.5 - 3 / 800 * 1.5)


def test_slow_chains_are_fewer_sweeps() -> None:
    rng = np.random.default_rng(2)
    slow = np.repeat(rng.normal(size=(4, CHAINS)), SWEEPS // 4, axis=0)
    fast = rng.normal(size=(SWEEPS, CHAINS))
    assert 15 < independent(slow, standard_error(slow)) < 70
    assert independent(fast, standard_error(fast)) > 300
    nothing = np.zeros((2, 3))
    assert independent(nothing, 0.0) == 6.0
    apart = np.repeat(10.0 * rng.normal(size=(1, CHAINS)), SWEEPS, axis=0) + fast  # each in a place of its own
    assert independent(apart, standard_error(apart)) == 4 * CHAINS


@pytest.mark.parametrize(
    "trap",
    [
        trap_models.needle(8, 10.1128, (True,), (-0.5676,)),  # chains leave the needle now and then
        trap_models.curie_weiss(12, 0.8, -9.0),  # one flip in 700 sweeps
    ],
    ids=lambda trap: trap.name,
)
def test_weights_that_are_summed_lie_in_their_brackets(trap: trap_models.Trap) -> None:
    found = [c for seed in (1, 2) for c in compare(trap, seed)]
    assert len(found) == 4 and all(c.holds for c in found), found
    assert all(c.upper - c.lower < 2.0 for c in found)


def test_values_that_differ_by_rounding_say_little_of_chains() -> None:
    """Weights of a region of one state: its error was that of two draws."""
    values = 3.0 + 1e-15 * np.random.default_rng(1).random(96)
    assert [effective(values, np.arange(96) % chains) for chains in (4, 24)] == [16, 24]
    assert effective(values[:8], np.arange(8)) == 8
    assert effective(np.repeat([1.0, 2.0, 3.0, 4.0], 24), np.repeat(np.arange(4), 24)) == 4
    assert effective(np.tile([1.0, 2.0, 3.0, 4.0], 24), np.repeat(np.arange(4), 24)) == 96
