"""When to stop: at the wanted half-width, or when the time is up; and what to say about the way there.

The half-width is itself an estimate, and a run that stops the first time it is small enough stops too early too
often. So it is looked at only now and then (after every fifth more of sweeps), must be a tenth below what was asked,
and counts only with enough batches and chains that agree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from definetti.diagnose import Diagnosis
from definetti.errors import Notice
from definetti.samplers.chains import Progress
from definetti.samplers.draws import Draws

FEWEST_BATCHES = 20
MOST_RHAT = 1.01
MARGIN = 0.9  # the half-width must be below this share of the one asked for
GROWTH = 1.2  # sweeps between two looks
LOOK_SHARE = 0.1  # of the time goes into looking at most,
LOOK_SHARE_UNTIL = 0.3  # or this where the run waits for what is seen
QUICK = 0.1  # seconds: a look that costs less is not worth sparing
MOST_SECONDS = 600.0  # a run that waits for its error ends here, unless `seconds` says otherwise


@dataclass(frozen=True)
class Look:
    """The worst of what was asked: half-width (None: not known yet) and R-hat."""

    half_width: float | None
    rhat: float | None


class Measures(Protocol):
    def measure(self, draws: Draws, method: str) -> Look: ...


def worst(found: Diagnosis, columns: np.ndarray) -> Look:
    """Of these statistics; those without error are left out."""
    mcse, half, rhat = (x[columns] for x in (found.mcse, found.half_width, found.rhat))
    moving = mcse != 0
    if not moving.any():
        return Look(0.0, None)
    if np.isnan(mcse).any():
        return Look(None, None)
    known = rhat[moving & np.isfinite(rhat)]
    return Look(float(half[moving].max()), float(known.max()) if len(known) else None)


@dataclass
class Stopping:
    """Follows a run: `step(report)` is true when it should end."""

    question: Measures
    method: str
    seconds: float | None
    until: float | None
    watched: bool  # somebody sees the progress line
    look: Look = Look(None, None)
    reached: bool = False
    left: float | None = None
    _sweeps: int = 0
    _cost: float = 0.0
    _looks: int = 0
    _looked: float = field(default_factory=time.perf_counter)
    _warm: float = 0.0
    _began: float = field(default_factory=time.perf_counter)

    @property
    def limit(self) -> float | None:
        """Seconds of sampling at most."""
        return MOST_SECONDS if self.until is not None and self.seconds is None else self.seconds

    def step(self, sampling: Any, report: Progress) -> bool:
        if report.phase == "warm-up":
            self._warm = report.seconds
        elif (self.until is not None or self.watched) and self._due(report.done):
            self._measure(sampling, report)
        self.left = self._left(report)
        return self.reached or (self._time_left() == 0.0 and sampling.can_stop)

    def _time_left(self) -> float | None:
        """By the clock: finding starts and looking at the errors count as well."""
        return None if self.limit is None else max(self.limit - (time.perf_counter() - self._began), 0.0)

    def _due(self, sweeps: int) -> bool:
        """By sweeps, so that the same seed gives the same run; by the clock only where looking takes long."""
        share = LOOK_SHARE if self.until is None else LOOK_SHARE_UNTIL
        waited = time.perf_counter() - self._looked
        quick = self.until is not None and self._cost < QUICK
        return sweeps >= GROWTH * self._sweeps + 1 and (quick or waited * share >= self._cost)

    def _measure(self, sampling: Any, report: Progress) -> None:
        if sampling.batch_count < (2 if self.until is None else FEWEST_BATCHES):
            return
        began = time.perf_counter()
        draws = sampling.draws()
        self.look, self._sweeps = self.question.measure(draws, self.method), report.done
        self._looked = time.perf_counter()
        took = self._looked - began
        self._cost = (
            0.0 if self._looks == 0 else took if self._looks == 1 else min(took, self._cost)
        )  # 0: it loads modules
        self._looks += 1
        half, rhat = self.look.half_width, self.look.rhat
        if self.until is None or half is None:
            return
        self.reached = half <= MARGIN * self.until and (rhat is None or rhat < MOST_RHAT)

    def _left(self, report: Progress) -> float | None:
        """Errors shrink with the root of the time; otherwise what the clock or the plan says."""
        taken, half = report.seconds - self._warm, self.look.half_width
        if self.until is not None:
            if not half:
                return None
            need = max(taken * ((half / (MARGIN * self.until)) ** 2 - 1.0), 0.0)
            left = self._time_left()
            return need if left is None else min(need, left)
        if self.seconds is not None:
            return self._time_left()
        if report.total and report.done and report.phase != "warm-up":
            return taken * (report.total / report.done - 1.0)
        return None

    def notices(self) -> list[Notice]:
        """What to say if the goal was not reached."""
        if self.until is None or self.reached:
            return []
        half = "unknown" if self.look.half_width is None else f"{self.look.half_width:.3g}"
        if self.look.half_width is not None and self.look.half_width <= MARGIN * self.until:
            why = f"R-hat is {self.look.rhat:.4g}, not below {MOST_RHAT}" if self.look.rhat else "the batches are few"
        else:
            why = f"the largest half-width is {half}, {self.until:g} was asked for"
        cure = "give --seconds to allow more time"
        return [Notice("time-limit", f"stopped after {self.limit:g} s of sampling: {why}; {cure}")]
