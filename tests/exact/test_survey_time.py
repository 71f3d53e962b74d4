"""The survey of modes within a time limit: no clock without one; what would last too long is not begun."""

from __future__ import annotations

import numpy as np
import pytest
from sparse_worlds import plain

import definetti as dft
from definetti.errors import INTERRUPTED
from definetti.inference.modes import FEWEST, MOST, QUICK, budget_of
from definetti.inference.survey_time import LEFT_OUT, OutOfTime, Timed
from definetti.modes.graph.walkers import work_of_sweep
from definetti.modes.logic.sparse_walkers import SparseWalkers
from definetti.modes.logic.walkers import logic_walkers
from definetti.samplers.logic.queries import Asked

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


class Slow(Walking):
    """Walkers of a large model, whose chains are slow to make."""

    weighs = False

    def starts(self, key: tuple[int, ...], most: int, climbs: int) -> list[int]:
        self.now += 10 * most
        return list(range(most))


def test_one_chain_of_a_large_model_tells_that_a_survey_would_end_too_late() -> None:
    """At 100,000 people eight starts and three sweeps of each took half of a minute that was given."""
    walking = Slow()
    with pytest.raises(OutOfTime):
        Timed(walking, 8 * 32 / 8, lambda: walking.now).starts((1,), 8, 0)
    assert walking.now == 10 + 3
    walking = Slow()
    assert Timed(walking, 1e6, lambda: walking.now).starts((1,), 8, 0) == list(range(8))
    walking = Slow()
    assert Timed(walking, None, lambda: walking.now).starts((1,), 8, 0) == list(range(8))
    assert walking.now == 80


@pytest.fixture
def crowd() -> SparseWalkers:
    r, group = plain(dft.markov_logic("P(n)\nE(n,n)\n0.2 P(x)\n-2 E(x,y)\n0.3 E(x,y) ^ P(x) => P(y)", domain={"n": 6}))
    return SparseWalkers(r, Asked(group, dict, (), ()))


def test_a_walk_of_a_large_model_stops_inside_a_sweep(crowd: SparseWalkers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of a million constants takes seconds, and a survey many minutes: Ctrl-C does not wait for them."""
    monkeypatch.setattr(INTERRUPTED, "is_set", lambda: True)
    with pytest.raises(KeyboardInterrupt):
        crowd.walk(crowd.starts((1,), 3, 0), 2, (2,))


def test_where_a_walk_looks_up_changes_nothing(crowd: SparseWalkers) -> None:
    states = crowd.starts((1,), 3, 0)
    whole = crowd.walk(states, 4, (2,))
    crowd._stretch = 1
    stopping = crowd.walk(states, 4, (2,))
    assert np.array_equal(whole.statistics, stopping.statistics)
    assert all(
        np.array_equal(x, y) for a, b in zip(whole.ends, stopping.ends, strict=True) for x, y in zip(a, b, strict=True)
    )


def test_without_a_limit_nothing_is_tried_first() -> None:
    walking = Walking()
    assert Timed(walking, None).walk([1], 5, (1,)) == "walked"
    assert walking.asked == 1


def test_no_time_for_a_survey_fails_and_the_answer_is_there() -> None:
    found = dft.marginals(MODEL, sampler="gibbs", seconds=1e-9, seed=1)
    assert any(n.fails and "survey" in n.message for n in found.notices)
    assert 0 < found["X0"].probability < 1


@pytest.mark.parametrize("kind", ["graph", "logic"])
def test_no_survey_for_want_of_size_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chains that agree are trusted, with a note; few chains are not."""
    monkeypatch.setattr(f"definetti.modes.{kind}.walkers.MOST_SITES", 3)
    model: object = (
        MODEL if kind == "graph" else dft.markov_logic("P(thing)\n0.5 P(x) ^ P(y)\n-1 P(x)\n", domain={"thing": 4})
    )
    many = dft.marginals(model, sampler="gibbs", seed=1, chains=8)
    assert many.trusted and [n.kind for n in many.notices if "too many for a survey" in n.message] == ["note"]
    few = dft.marginals(model, sampler="gibbs", seed=1, chains=2)
    assert not few.trusted and [n.kind for n in few.notices if "too many for a survey" in n.message] == ["few-samples"]


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


# --- how much a survey may cost, by counts alone ---


def test_a_survey_costs_a_quarter_of_the_run_or_a_second() -> None:
    cheap = budget_of(1000, 16_000)
    assert cheap.survey == QUICK // 1000  # a second's work is more than a quarter of the run
    assert budget_of(30_000, 16_000).survey == 16_000 // 4
    assert budget_of(500_000, 16_000).survey == MOST // 500_000  # some seconds' work are less
    assert budget_of(500_000, 400).survey == 100 < FEWEST
    assert budget_of(5_000_000, 16_000).survey == FEWEST  # a long run has room for the smallest survey


def test_a_survey_that_would_outlast_the_run_is_left_out_and_that_is_said(monkeypatch) -> None:
    monkeypatch.setattr("definetti.inference.modes.QUICK", 0)
    found = dft.marginals(MODEL, sampler="gibbs", sweeps=3, chains=8, seed=1)
    assert [n.kind for n in found.notices if "made from 128 sweeps on" in n.message] == ["few-samples"]
    found = dft.marginals(MODEL, sampler="gibbs", sweeps=128, chains=8, seed=1)
    assert not [n for n in found.notices if "left out" in n.message]
    assert [n for n in found.notices if "chains × 32 sweeps" in n.message]


def test_the_work_of_a_sweep_is_counted_from_the_model() -> None:
    text = "R(a, a)\n0.1 R(x, y) ^ R(y, z) ^ R(z, u) ^ R(u, v) => R(x, v)\n-1 R(x, y)\n"
    small, large = (dft.markov_logic(text, domain={"a": n}) for n in (8, 60))
    for model in (small, large):
        walkers = logic_walkers(Asked(dft.symmetries(model), dict, (), ()))
        assert walkers is not None
        assert (walkers.work > 5 * walkers.sites) == (model is large)
    dense = dft.factor_graph([2] * 200, [([i, j], [[2, 1], [1, 2]]) for i in range(200) for j in range(i)])
    assert work_of_sweep(dense) > 5 * dense.n > 5 * work_of_sweep(MODEL)
