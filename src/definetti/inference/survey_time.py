"""The survey of modes within a time limit, and what is reported while it runs.

With `--seconds` a survey that would take more than half of what is left is given up: an update may cost a thousand
times as much in one theory as in another, so that counts of updates do not bound the time. The answer then fails: what
was not looked for cannot be ruled out, and a run that long is within reach. Without a time limit no clock is looked at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from definetti.errors import Notice
from definetti.journal import Verdicts
from definetti.memory import available_cores
from definetti.modes.survey import WINDOW
from definetti.samplers.protocol import Progress, Sampler

SHARE = 0.5  # of the time that is left
TRIED = 2  # sweeps, to see how long they take
LEAST_SWEEPS = 2 * WINDOW  # of each chain of a survey
LEFT_OUT = Notice(
    "few-samples",
    "the survey of modes would have taken more than half of the time and was left out: a second mode may go unseen",
)
Report = Callable[[Progress], None] | None


class OutOfTime(Exception):
    """The survey would end too late."""


class Timed:
    """Walkers that refuse what would last beyond the deadline; `deadline` None: they refuse nothing."""

    def __init__(self, walkers: Any, deadline: float | None, clock: Callable[[], float] = time.perf_counter) -> None:
        self._walkers, self.deadline, self._clock = walkers, deadline, clock
        self._sweeps, self._seconds = 0, 0.0  # of single chains, so far
        self._verdicts = Verdicts("survey of modes")  # a run that is resumed gives up where it did before
        self.remembered: Any = None  # what was computed before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._walkers, name)

    def starts(self, key: Any, most: int, climbs: int) -> Any:
        if self.deadline is not None and not self._walkers.weighs:
            self._try_one(key, most)
        return self._timed(0, self._walkers.starts, key, most, climbs)

    def _try_one(self, key: Any, most: int) -> None:
        """Chains of a large model are slow to make and to sweep: the emptiest of them, which comes first, tells whether
        the shortest survey could be done in time."""
        one = self._timed(0, self._walkers.starts, key, 1, 0)
        self._timed(0, self._walkers.walk, one, 1, key)  # compiled code is loaded
        began = self._clock()
        self._timed(0, self._walkers.walk, one, TRIED, key)
        now = self._clock()
        work = (now - began) / TRIED * most * LEAST_SWEEPS / min(most, available_cores())
        if self._verdicts.given(now + work > (self.deadline or 0.0)):
            raise OutOfTime

    def walk(self, states: Any, sweeps: int, *rest: Any, **more: Any) -> Any:
        if self.deadline is not None and not self._sweeps:  # to see how long sweeps take; it changes nothing
            self._timed(0, self._walkers.walk, states, 1, *rest[:1])  # compiled code is loaded at the first
            self._timed(TRIED * self._walkers.count(states), self._walkers.walk, states, TRIED, *rest[:1])
        return self._timed(self._walkers.count(states) * sweeps, self._walkers.walk, states, sweeps, *rest, **more)

    def advance(self, states: Any, sweeps: int, *rest: Any) -> Any:
        return self._timed(self._walkers.count(states) * sweeps, self._walkers.advance, states, sweeps, *rest)

    def paths(self, states: Any, product: Any, levels: Any, *rest: Any) -> Any:
        work = self._walkers.count(states) * len(levels)
        return self._timed(work, self._walkers.paths, states, product, levels, *rest)

    def _timed(self, sweeps: int, work: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if self.remembered is not None:
            work, arguments = self.remembered.call, (work, *arguments)
        if self.deadline is None:
            return work(*arguments, **more)
        began = self._clock()
        if self._verdicts.given(began + sweeps * self._seconds / max(self._sweeps, 1) > self.deadline):
            raise OutOfTime
        made = work(*arguments, **more)
        if sweeps:
            self._sweeps += sweeps
            self._seconds += self._clock() - began
        return made


class Surveyed:
    """A question whose walkers are timed, and that says what is under way."""

    def __init__(self, question: Any, report: Report, began: float, seconds: float | None, remembered: Any) -> None:
        self._question, self._report, self._began, self._limit = question, report, began, seconds
        self._remembered = remembered
        self.walking: Timed | None = None

    def walkers(self, kernel: Sampler) -> Any:
        self._say(f"compiling {kernel.name}")
        made = self._question.walkers(kernel)
        if made is None:
            return None
        self._say("looking for modes")
        now = time.perf_counter()
        deadline = None if self._limit is None else now + SHARE * (self._limit - (now - self._began))
        self.walking = Timed(made, deadline)
        self.walking.remembered = self._remembered
        return self.walking

    def _say(self, phase: str) -> None:
        if self._report is not None:
            self._report(Progress(phase, 0, None, 0.0, None, time.perf_counter() - self._began))


def in_time(
    explore: Callable[[Any], Any], question: Any, report: Report, began: float, seconds: float | None,
    remembered: Any = None,
) -> tuple[Any, list[Notice]]:  # fmt: skip
    """What the survey found, and what there is to say if there was none; `remembered`: what a run that is resumed has
    computed before."""
    surveyed = Surveyed(question, report, began, seconds, remembered)
    try:
        found = explore(surveyed)
    except OutOfTime:
        return None, [LEFT_OUT] if surveyed.walking is None or surveyed.walking.weighs else []
    if surveyed.walking is not None:
        surveyed.walking.deadline = surveyed.walking.remembered = None  # what comes after has its own limits
    return (None, [found]) if isinstance(found, Notice) else (found, [])
