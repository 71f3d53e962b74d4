"""When a run stops, on half-widths whose course is known: no chains, no clock but the one that is told."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from definetti.diagnose import Diagnosis, diagnose
from definetti.inference.stopping import LEAST_GROWTH, MOST_GROWTH, Look, Stopping, worst
from definetti.samplers.draws import Draws
from definetti.samplers.protocol import Progress
from definetti.samplers.warmup import WarmUp


@dataclass
class Course:
    """Half-widths that fall with a power of the sweeps; remembers when it was asked."""

    power: float
    rhat: float = 1.0
    looks: list[int] = field(default_factory=list)

    def measure(self, draws: Draws, method: str) -> Look:
        self.looks.append(draws.sweeps)
        return Look(draws.sweeps**-self.power, self.rhat)


@dataclass
class Run:
    """A sampling of one sweep per batch."""

    sweeps: int = 0
    can_stop: bool = True
    most_batches: int = 32

    @property
    def batch_count(self) -> int:
        return self.sweeps

    def draws(self) -> Draws:
        return Draws(np.zeros((self.sweeps, 1, 1)), None, np.ones(self.sweeps, np.int64), np.ones(1, np.int64))


def follow(stopping: Stopping, run: Run, most: int, seconds_per_sweep: float = 0.0) -> int:
    while run.sweeps < most:
        run.sweeps += 1
        report = Progress("sampling", run.sweeps, None, 1.0, None, run.sweeps * seconds_per_sweep)
        if stopping.step(run, report):
            break
    return run.sweeps


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_it_stops_soon_after_the_goal_and_looks_seldom(power: float) -> None:
    course, run = Course(power), Run()
    stopping = Stopping(course, "orbit", None, 0.01, watched=False)
    needed = (1 / 0.009) ** (1 / power)
    end = follow(stopping, run, 100_000)
    assert stopping.reached and needed <= end <= LEAST_GROWTH * needed + 2
    steps = np.array(course.looks[1:]) / np.array(course.looks[:-1])
    assert (steps <= MOST_GROWTH + 0.1).all() and len(course.looks) <= 16
    assert stopping.run() == {"until": 0.01, "half_width": end**-power} and not stopping.notices()


@pytest.mark.parametrize(("kept", "end"), [(32, 20), (4, 4)])
def test_as_many_batches_are_waited_for_as_are_kept(kept: int, end: int) -> None:
    """With very many statistics a run never has twenty."""
    stopping = Stopping(Course(0.5), "orbit", None, 10.0, watched=False)
    assert follow(stopping, Run(most_batches=kept), 100) == end and stopping.reached


@pytest.mark.parametrize(("chains", "updates", "end"), [(8, 1e7, 5), (2, 1e7, 20), (4, 1e7, 10), (8, 1e6, 20)])
def test_expensive_sweeps_are_looked_at_earlier(chains: int, updates: float, end: int) -> None:
    """By counts: updates of a sweep, and batch means of all chains. Here a sweep takes a second."""
    stopping = Stopping(Course(0.5), "orbit", None, 10.0, watched=False, chains=chains)
    run = Run()
    while not stopping.reached:
        run.sweeps += 1
        stopping.step(run, Progress("sampling", run.sweeps, None, updates, None, float(run.sweeps)))
    assert run.sweeps == end


@pytest.mark.parametrize(
    ("updates", "rhat", "apart", "stops"),
    [
        (1e7, 1.03, 0.05, True),
        (1e7, 1.03, 0.2, False),
        (1e7, 1.06, 0.05, False),
        (1e7, 1.03, None, False),
        (1e6, 1.03, 0.05, False),
    ],
)
def test_after_few_expensive_sweeps_chains_agree_that_are_as_near_as_asked(
    updates: float, rhat: float, apart: float | None, stops: bool
) -> None:
    """R-hat is above 1.01 by chance there; what makes an answer untrusted still counts."""

    class Near(Course):
        def measure(self, draws: Draws, method: str) -> Look:
            return Look(0.05, rhat, apart)

    stopping = Stopping(Near(0.5), "orbit", None, 0.1, watched=False, chains=8)
    run = Run()
    for _ in range(40):
        run.sweeps += 1
        stopping.step(run, Progress("sampling", run.sweeps, None, updates, None, float(run.sweeps)))
    assert stopping.reached == stops


@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_runs_that_end_early_are_as_near_as_they_say(memory: float) -> None:
    """Eight autoregressive chains of expensive sweeps with a known mean, 100 times: the looks and all that they need,
    at most one look a sweep. 95 and more end within what was asked for."""
    held, ended = 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        walk = np.zeros((200, 8, 1))
        walk[0] = rng.normal(size=(8, 1))
        for s in range(1, 200):
            walk[s] = memory * walk[s - 1] + np.sqrt(1 - memory**2) * rng.normal(size=(8, 1))
        stopping = Stopping(Measured(), "orbit", None, 0.4, watched=False, chains=8)
        run = Stream(walk)
        while not stopping.reached and run.sweeps < 200:
            run.sweeps += 1
            stopping.step(run, Progress("sampling", run.sweeps, None, 1e7, None, float(run.sweeps)))
        ended += run.sweeps
        held += abs(walk[: run.sweeps].mean()) <= 0.4
    assert held >= 95
    assert ended / 100 < (12 if memory == 0.0 else 90)  # 15 and 179 where R-hat below 1.01 was waited for


class Measured:
    def measure(self, draws: Draws, method: str) -> Look:
        return worst(diagnose(draws.f, draws.lengths, draws.f, draws.f**2, np.ones(1)), np.zeros(1, np.int64), draws.f)


@dataclass
class Stream(Run):
    walk: np.ndarray = field(default_factory=lambda: np.zeros((0, 1, 1)))

    def __init__(self, walk: np.ndarray) -> None:
        super().__init__()
        self.walk = walk

    def draws(self) -> Draws:
        kept = self.walk[: self.sweeps]
        return Draws(kept, None, np.ones(self.sweeps, np.int64), np.ones(1, np.int64))


def test_the_warm_up_of_expensive_sweeps_may_end_earlier() -> None:
    means = np.random.default_rng(1).normal(size=(8, 3))
    lengths = {}
    for dear in (False, True):
        warm = WarmUp(8, None, None, dear=dear)
        while warm.length():
            warm.look(warm.length(), means)
        lengths[dear] = warm.done
    assert lengths == {False: 64, True: 16}


def test_chains_that_disagree_do_not_stop() -> None:
    stopping = Stopping(Course(0.5, rhat=1.02), "orbit", None, 0.1, watched=False)
    assert follow(stopping, Run(), 2000) == 2000
    (notice,) = stopping.notices()
    assert "R-hat is 1.02" in notice.message


def test_setting_up_counts_and_leaves_one_batch() -> None:
    """`--seconds` bounds the whole command: compiling may take all of it."""
    in_time = Stopping(Course(0.5), "orbit", 3600.0, None, watched=False)
    assert follow(in_time, Run(), 5) == 5 and not in_time.notices()
    late = Stopping(Course(0.5), "orbit", 3600.0, None, False, began=time.perf_counter() - 7200.0)
    assert not late.step(Run(0), Progress("warm-up", 0, None, 1.0, None, 0.0))
    assert follow(late, Run(), 5) == 1
    (notice,) = late.notices()
    assert notice.kind == "time-limit" and "one batch" in notice.message and not notice.fails
    endless = Stopping(Course(0.5), "orbit", 1.0, None, False, began=time.perf_counter() - 7200.0)
    assert endless.step(Run(0), Progress("sampling", 0, None, 1.0, None, 2.0))  # a batch takes longer than allowed


def test_the_last_look_needs_no_margin() -> None:
    run = Run(110)  # half-width 0.0953, the goal is 0.1, nine tenths of it are not reached
    stopping = Stopping(Course(0.5), "orbit", 1.0, 0.1, watched=False)
    stopping.finish(run.draws())
    assert stopping.reached and not stopping.notices()
    early = Stopping(Course(0.5), "orbit", 1.0, 0.1, watched=False)
    early.finish(Run(90).draws())
    assert not early.reached and "half-width is 0.105, 0.1 was asked for" in early.notices()[0].message


def test_numbers_without_error_are_left_out_and_unknown_ones_are_not() -> None:
    def look(*mcse: float) -> Look:
        count = len(mcse)
        flat = np.zeros(count, dtype=bool)
        found = Diagnosis(np.array(mcse), np.full(count, 1.001), np.ones(count), flat, flat, np.full(count, 1e9))
        return worst(found, np.arange(count))

    assert look(0.0, 0.0) == Look(0.0, None)
    assert look(0.1, np.nan) == Look(None, None)
    assert look(0.0, 0.1).half_width == pytest.approx(0.196, abs=1e-3)


def test_chains_that_stay_apart_do_not_reach_the_goal() -> None:
    """Frozen at different values their R-hat is infinite, and with many of them the half-width may be small."""
    flat = np.zeros(2, dtype=bool)
    found = Diagnosis(np.array([0.01, 0.0]), np.array([np.inf, np.nan]), np.ones(2), flat, flat, np.full(2, 1e9))
    look = worst(found, np.arange(2))
    assert look.rhat == np.inf

    class Apart:
        def measure(self, draws: object, method: str) -> Look:
            return look

    stopping = Stopping(Apart(), "orbit", 1.0, 0.1, watched=False)
    stopping.finish(Run(110).draws())
    assert not stopping.reached and "R-hat is inf" in stopping.notices()[0].message


def test_a_run_that_is_extended_has_its_time_from_now_on() -> None:
    """Setting up took longer than is allowed now; that was before."""
    before = Stopping(Course(0.5), "orbit", 1.0, None, watched=False, began=time.perf_counter() - 7.0)
    follow(before, Run(), 1)
    assert before.used_up and "one batch was sampled" in before.notices()[0].message
    after = Stopping(Course(0.5), "orbit", 3.0, None, watched=False)
    after.restore(before.state(), goes_on=False)
    follow(after, Run(), 3, 1.0)
    assert not after.used_up and not after.notices()
