"""When to stop: at the wanted half-width, or when the time is up; and what to say about the way there.

The half-width is itself an estimate, and a run that stops the first time it is small enough stops too early too
often. So it is looked at only now and then, must be a tenth below what was asked, and counts only with enough batches
and chains that agree. The next look is when the goal could be reached at the earliest: the error of a control variate
falls nearly with the number of sweeps, that of a mean with its root; but after a fifth more of sweeps at least, and
before there are more than twice as many, since fits get better. Where sweeps are expensive, chains whose means are as
near to each other as was asked for agree, though R-hat is not yet below its limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from definetti import show
from definetti.diagnose import Diagnosis, half_width
from definetti.errors import INTERRUPTED, Notice
from definetti.inference.assemble import MOST_RHAT as TRUSTED_RHAT
from definetti.journal import Part
from definetti.samplers.draws import Draws
from definetti.samplers.protocol import Progress, Sampling
from definetti.samplers.warmup import DEAR, FEWEST_CHAINS

FEWEST_BATCHES = 20  # or as many as are kept where statistics are very many,
FEWEST_OF_DEAR = 5  # or so many where sweeps are expensive (`warmup.DEAR`)
FEWEST_MEANS = 40  # and the chains together have this many batch means
MOST_RHAT = 1.01
MARGIN = 0.9  # the half-width must be below this share of the one asked for
LEAST_GROWTH, MOST_GROWTH = 1.2, 2.0  # of the sweeps between two looks
LOOK_SHARE = 0.1  # of the time goes into looking at most,
LOOK_SHARE_UNTIL = 0.3  # or this where the run waits for what is seen
QUICK = 0.1  # seconds: a look that costs less is not worth sparing
PILOT_SWEEPS = 2000  # after so many, or half of the time, a run that may be stuck is judged
KEPT = ("reached", "left", "_next", "_cost", "_looks", "_warm", "_warm_sweeps", "_set_up", "_fewest")  # by checkpoints
MOST_SECONDS = 600.0  # a run that waits for its error ends here, unless `seconds` says otherwise


@dataclass(frozen=True)
class Look:
    """The worst of what was asked: half-width (None: not known yet), R-hat, and how far the chains' means are apart, as
    a half-width by their spread alone."""

    half_width: float | None
    rhat: float | None
    apart: float | None = None


class Measures(Protocol):
    def measure(self, draws: Draws, method: str) -> Look: ...


def worst(found: Diagnosis, columns: np.ndarray, batches: np.ndarray | None = None) -> Look:
    """Of these statistics; those without error are left out. An R-hat may be infinite: chains that stay apart.
    `batches`: the estimates' batch means."""
    mcse, half, rhat = (x[columns] for x in (found.mcse, found.half_width, found.rhat))
    moving = mcse != 0
    if not moving.any():
        return Look(0.0, None)
    if np.isnan(mcse).any():
        return Look(None, None)
    known = rhat[moving & ~np.isnan(rhat)]
    apart = None if batches is None else _apart(batches[:, :, columns[moving]])
    return Look(float(half[moving].max()), float(known.max()) if len(known) else None, apart)


def _apart(batches: np.ndarray) -> float | None:
    """The largest half-width of 95 % intervals that know nothing but the chains' means. None: not known."""
    means = np.nanmean(batches, axis=0) if len(batches) and not np.isnan(batches).all(axis=0).any() else None
    if means is None or len(means) < FEWEST_CHAINS:
        return None
    error = means.std(axis=0, ddof=1) / math.sqrt(len(means))
    return float(half_width(error, np.full(len(error), len(means) - 1.0)).max())


@dataclass
class Stopping:
    """Follows a run: `step(report)` is true when it should end."""

    question: Measures
    method: str
    seconds: float | None
    until: float | None
    watched: bool  # somebody sees the progress line
    is_stuck: Callable[[], bool] | None = None  # asked once, on the way: whether it is in vain to go on
    began: float = field(default_factory=time.perf_counter)  # of the whole call: setting up and compiling count
    chains: int = 1
    look: Look = Look(None, None)
    reached: bool = False
    left: float | None = None
    _next: float = 0.0  # sweeps at the next look
    _cost: float = 0.0
    _looks: int = 0
    _looked: float = field(default_factory=time.perf_counter)
    _warm: float = 0.0
    _warm_sweeps: int = 0
    _set_up: float | None = None  # seconds before the first sweep
    _fewest: int = FEWEST_BATCHES
    _dear: bool = False  # sweeps are expensive

    @property
    def limit(self) -> float | None:
        """Seconds at most, setting up and compiling included."""
        return MOST_SECONDS if self.until is not None and self.seconds is None else self.seconds

    @property
    def remaining(self) -> float:
        """Seconds until the limit, by the clock: looking at the errors counts as well."""
        if self.limit is None:
            return math.inf
        return max(self.limit - (time.perf_counter() - self.began), 0.0)

    @property
    def used_up(self) -> bool:
        """Whether setting up took all of the time, so that one batch is all there is."""
        return self._set_up is not None and self.limit is not None and self._set_up >= self.limit

    def state(self) -> dict[str, Any]:
        """What the next steps depend on, for a checkpoint."""
        kept = {name: getattr(self, name) for name in KEPT}
        look = {"half_width": self.look.half_width, "rhat": self.look.rhat}
        return kept | {"look": look, "used": time.perf_counter() - self.began, "asked": self.is_stuck is None}

    def restore(self, state: Mapping[str, Any], goes_on: bool) -> None:
        """Continues where `state` was taken; the clock too, if the run `goes_on` with what it was asked at first."""
        for name in KEPT:
            setattr(self, name, state[name])
        self.look = Look(**state["look"])
        if state["asked"]:
            self.is_stuck = None
        if goes_on:
            self.began = time.perf_counter() - float(state["used"])
        else:
            self.reached, self._next, self._set_up = False, 0.0, 0.0  # the time allowed is counted from now on

    def step(self, sampling: Sampling, report: Progress) -> bool:
        if self._set_up is None:
            self._set_up = time.perf_counter() - report.seconds - self.began
            self._fewest = min(FEWEST_BATCHES, sampling.most_batches)
        if report.phase == "warm-up":
            self._warm, self._warm_sweeps = report.seconds, report.done
        elif (self.until is not None or self.watched) and self._due(report.done):
            self._measure(sampling, report)
        self.left = self._left(report)
        return self.reached or self._over(sampling, report) or self._in_vain(sampling, report)

    def _over(self, sampling: Sampling, report: Progress) -> bool:
        """The time is up; where setting up took it all, one batch is waited for, if it does not take as long again."""
        if self.limit is None or self.remaining > 0.0 or not sampling.can_stop:
            return False
        return not self.used_up or sampling.batch_count > 0 or report.seconds >= self.limit

    def _in_vain(self, sampling: Sampling, report: Progress) -> bool:
        if self.is_stuck is None or self.limit is None or report.phase == "warm-up" or not sampling.batch_count:
            return False
        if report.done < PILOT_SWEEPS and self.remaining > self.limit / 2:
            return False
        is_stuck, self.is_stuck = self.is_stuck, None
        return is_stuck()

    def run(self) -> dict[str, float | None]:
        """What was asked for and what was reached, where a half-width was."""
        return {} if self.until is None else {"until": self.until, "half_width": self.look.half_width}

    def _due(self, sweeps: int) -> bool:
        """By sweeps, so that the same seed gives the same run; by the clock only where looking takes long."""
        share = LOOK_SHARE if self.until is None else LOOK_SHARE_UNTIL
        waited = time.perf_counter() - self._looked
        quick = self.until is not None and self._cost < QUICK
        return sweeps >= self._next and (quick or waited * share >= self._cost)

    def _measure(self, sampling: Sampling, report: Progress) -> None:
        self._fewest = self._enough(sampling, report)
        if sampling.batch_count < (2 if self.until is None else self._fewest):
            return
        began = time.perf_counter()
        self._judge(sampling.draws(), MARGIN)
        self._next = self._growth() * report.done + 1
        self._looked = time.perf_counter()
        took = self._looked - began
        self._cost = (
            0.0 if self._looks == 0 else took if self._looks == 1 else min(took, self._cost)
        )  # 0: it loads modules
        self._looks += 1

    def _enough(self, sampling: Sampling, report: Progress) -> int:
        """Batches that a look needs, by counts alone, so that the same seed gives the same run."""
        fewest, updates = min(FEWEST_BATCHES, sampling.most_batches), report.rate * report.seconds
        self._dear = updates > DEAR * (self._warm_sweeps + report.done)
        if self._dear:
            return min(fewest, max(FEWEST_OF_DEAR, -(-FEWEST_MEANS // self.chains)))
        return fewest

    def _judge(self, draws: Draws, share: float) -> None:
        """Whether the half-width is below this share of the one asked for."""
        self.look = self.question.measure(draws, self.method)
        half = self.look.half_width
        self.reached = self.until is not None and half is not None and half <= share * self.until and self._agree(share)

    def _agree(self, share: float) -> bool:
        """Chains agree. After few sweeps R-hat is above its limit by chance: where sweeps are expensive, means that are
        no further apart than was asked for are enough, if R-hat does not make the answer one that is not trusted."""
        rhat, apart = self.look.rhat, self.look.apart
        if rhat is None or rhat < MOST_RHAT:
            return True
        near = self.until is not None and apart is not None and apart <= share * self.until
        return self._dear and near and rhat < TRUSTED_RHAT

    def finish(self, draws: Draws) -> None:
        """A last look where the time ran out: the end was not chosen by what was seen, so it needs no margin."""
        if self.until is not None and not self.reached and len(draws.lengths) >= self._fewest:
            self._judge(draws, 1.0)

    def _growth(self) -> float:
        """How many times the sweeps so far the goal needs at least, if errors fall with the number of sweeps."""
        if self.until is None or not self.look.half_width:
            return LEAST_GROWTH
        return min(max(self.look.half_width / (MARGIN * self.until), LEAST_GROWTH), MOST_GROWTH)

    def _left(self, report: Progress) -> float | None:
        """Errors shrink with the root of the time; otherwise what the clock or the plan says."""
        taken, half = report.seconds - self._warm, self.look.half_width
        if self.until is not None:
            if not half:
                return None
            need = max(taken * ((half / (MARGIN * self.until)) ** 2 - 1.0), 0.0)
            return min(need, self.remaining)
        if self.seconds is not None:
            return self.remaining
        if report.total and report.done and report.phase != "warm-up":
            return taken * (report.total / report.done - 1.0)
        return None

    def notices(self) -> list[Notice]:
        """What to say if the goal was not reached, or if nearly no time was left for sampling."""
        said = []
        if self.used_up:
            took, allowed = show.seconds(self._set_up or 0.0), show.seconds(self.limit or 0.0)
            took = f"setting up and compiling took {took} of the {allowed} allowed"
            said = [Notice("time-limit", f"{took}: one batch was sampled; compiled code is kept for the next run")]
        if self.until is None or self.reached:
            return said
        half = "unknown" if self.look.half_width is None else f"{self.look.half_width:.3g}"
        if self.look.half_width is not None and self.look.half_width <= self.until:
            why = f"R-hat is {self.look.rhat:.4g}, not below {MOST_RHAT}" if self.look.rhat else "the batches are few"
        else:
            why = f"the largest half-width is {half}, {self.until:g} was asked for"
        cure = "give --seconds to allow more time"
        return [*said, Notice("time-limit", f"stopped after {show.seconds(self.limit or 0.0)}: {why}; {cure}")]


def follow(sampling: Sampling, stopping: Stopping, progress: Callable[[Progress], None] | None, part: Part) -> bool:
    """Run to the end, to the time limit, or to the wanted error; true if interrupted."""

    def state() -> dict[str, Any]:
        return {"sampling": sampling.state(), "stopping": stopping.state(), "left": stopping.remaining}

    with part.fitting():
        if part.state is not None:
            sampling.restore(part.state["sampling"])
            stopping.restore(part.state["stopping"], not part.extended)
    if part.finished or part.shown:
        return part.shown
    part.look(state, sampling.state_size)  # before the first sweep
    try:
        with part.journal.patiently():
            for step in sampling.steps():
                end = stopping.step(sampling, step)
                if progress is not None:
                    progress(replace(step, worst=stopping.look.half_width, left=stopping.left))
                if INTERRUPTED.is_set():
                    part.keep(state)
                    return True
                if end:
                    break
                part.look(state, sampling.state_size)
            part.keep(state, finished=True)
    except KeyboardInterrupt:
        return True
    return False
