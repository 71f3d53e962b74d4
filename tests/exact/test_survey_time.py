"""The survey of modes within a time limit: no clock without one; what would last too long is not begun."""

from __future__ import annotations

import numpy as np
import pytest

import definetti as dft
from definetti.inference.survey_time import LEFT_OUT, OutOfTime, Timed

MODEL = dft.factor_graph([2] * 6, [([i, i + 1], [[3, 1], [1, 2]]) for i in range(5)])


class Walking:
    """Sweeps that take a second each, by a clock of their own."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, 0

    def take(self, states: list[int], chains: list[int]) -> list[int]:
        return [states[c] for c in chains]

    def count(self, states: list[int]) -> int:
        return len(states)

    def walk(self, states: list[int], sweeps: int, key: tuple[int, ...]) -> str:
        self.now += len(states) * sweeps
        self.asked += 1
        return "walked"


def test_a_walk_that_would_end_too_late_is_refused_before_it_begins() -> None:
    walking = Walking()
    timed = Timed(walking, 100.0, lambda: walking.now)
    assert timed.walk([1, 2, 3], 10, (1,)) == "walked"  # 3 sweeps of each chain to learn, then 10
    with pytest.raises(OutOfTime):
        timed.walk([1, 2, 3], 30, (2,))
    assert walking.now == 39 and walking.asked == 3
    timed.deadline = None
    assert timed.walk([1, 2, 3], 1000, (2,)) == "walked"


def test_without_a_limit_nothing_is_tried_first() -> None:
    walking = Walking()
    assert Timed(walking, None).walk([1], 5, (1,)) == "walked"
    assert walking.asked == 1


def test_no_time_for_a_survey_is_said_and_the_answer_is_there() -> None:
    found = dft.marginals(MODEL, sampler="gibbs", seconds=1e-9, seed=1)
    assert any(n.kind == "time-limit" and "survey" in n.message for n in found.notices)
    assert 0 < found["X0"].probability < 1


def test_what_is_under_way_is_reported() -> None:
    phases: list[str] = []
    dft.marginals(MODEL, sampler="gibbs", sweeps=20, seed=1, progress=lambda report: phases.append(report.phase))
    first = list(dict.fromkeys(phases))
    assert first[:2] == ["compiling gibbs", "looking for modes"] and "sampling" in first


def test_timing_changes_no_number() -> None:
    """A survey that is in time says what it says without a limit."""
    timed = dft.marginals(MODEL, sampler="gibbs", seconds=600.0, until=0.05, seed=3)
    plain = dft.marginals(MODEL, sampler="gibbs", until=0.05, seed=3)
    assert not any(n.message == LEFT_OUT.message for n in timed.notices)
    np.testing.assert_array_equal([r.probability for r in timed.orbits], [r.probability for r in plain.orbits])
