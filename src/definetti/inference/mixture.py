"""Chains that are confined to the regions of a model, and what they say together: a run in rounds.

A run of known length is one round. One that waits for its error, or for the clock, makes rounds of twice the length;
it ends early where the weights of the regions alone leave a larger error, which more sweeps do not change.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from definetti import show
from definetti.errors import INTERRUPTED, Notice
from definetti.inference.assemble import Estimated, Regions
from definetti.inference.modes import Exploration
from definetti.inference.trace import mixed_trace
from definetti.model.marginals import Marginals
from definetti.modes.mixture import FEWEST_CHAINS, THIN, WARM_UP, Stay, arrive, mixed, stay, unmet_share
from definetti.modes.weighing import inside_of
from definetti.samplers.draws import BATCHES
from definetti.samplers.protocol import Plan, Progress

MARGIN = 0.9  # the half-width must be below this share of the one asked for (`stopping.py`)


@dataclass(eq=False)
class Mixture:
    """Chains in every region that counts, under way."""

    question: Any
    explored: Exploration
    plan: Plan
    method: str
    progress: Callable[[Progress], None] | None
    began: float = field(default_factory=time.perf_counter)
    done: int = 0  # sweeps of one chain, over all regions
    rounds: int = 0
    burn_in: int = 0
    stays: dict[int, Stay] = field(default_factory=dict)
    leaks: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = self.explored.weighing
        assert found is not None
        self.found, self.walkers = found, self.explored.walkers
        self.trace: Any = None  # of the last result
        self.chains = max(FEWEST_CHAINS, -(-self.plan.chains // len(found.kept)))

    def go_on(self, sweeps: int, deadline: float = math.inf) -> None:
        """A round of so many sweeps in every region; each region has its part of the time, one batch at least."""
        count = min(BATCHES, sweeps)
        lengths = np.diff(np.arange(count + 1) * sweeps // count).tolist()
        total = self.done + sweeps * len(self.found.kept)
        for place, m in enumerate(self.found.kept):
            now = time.perf_counter()
            self._stay(m, lengths, total, now + (deadline - now) / (len(self.found.kept) - place))
            if INTERRUPTED.is_set() and not self.stays[m].batches:
                raise KeyboardInterrupt
        self.rounds += 1

    def _stay(self, m: int, lengths: Sequence[int], total: int, until: float) -> None:
        region, inside, key = self.found.regions[m], inside_of(self.found, m), (self.plan.seed, 73, m, self.rounds)

        def follow(sweeps: int) -> bool:
            self.done += sweeps
            if self.progress is not None:
                seconds = time.perf_counter() - self.began
                rate = self.done * self.chains * self.walkers.sites / max(seconds, 1e-9)
                self.progress(Progress("sampling", min(self.done, total), total, rate, None, seconds))
            return not INTERRUPTED.is_set() and time.perf_counter() < until

        before = self.stays.get(m)
        leaks = self.leaks.setdefault(m, region.lasting < 1.0)
        while True:
            if before is None:
                warm = [max(lengths[0], 10)] * WARM_UP
                self.burn_in = sum(warm)
                start = arrive(self.walkers, region.pool, self.chains, key)
                before = stay(self.walkers, start, inside, warm, leaks, (*key, 1), follow, True)
            made = stay(self.walkers, before, inside, lengths, leaks, (*key, 2), follow)
            if leaks or not made.left:
                break
            leaks, before = (
                True,
                None,
            )  # whole batches and conditionals look outside
        self.stays[m], self.leaks[m] = made, leaks

    def result(self) -> tuple[Estimated, dict[str, Any]]:
        parts, runs = [], []
        for m in self.found.kept:
            how = "orbit" if self.leaks[m] and self.method != "standard" else self.method
            judged = self.question.estimated(self.walkers.draws(self.stays[m].batches, self.chains), how)
            parts.append((judged.estimates, judged.found, judged.draws))
            sweeps = judged.draws.sweeps * self.chains * (THIN if self.leaks[m] else 1)
            runs.append((self.stays[m].left, sweeps))
        weights = [self.found.regions[m] for m in self.found.kept]
        shares = np.array([w.share for w in weights])
        errors = np.array([0.0 if w.annealed is None else w.annealed.error for w in weights])
        left_out = min(1.0, self.found.left_out + unmet_share(self.found.life, runs))
        estimates, diagnosis = mixed(parts, shares, errors, left_out)
        heaviest = parts[int(shares.argmax())][2]
        traces = [self.question.traced(draws, own, diagnosis) for own, _, draws in parts]
        self.trace = mixed_trace(traces, shares, errors, left_out)
        run = {
            "chains": self.chains * len(parts),
            "sweeps": heaviest.sweeps,
            "burn_in": self.burn_in,
            "updates": self.done * self.chains * self.walkers.sites,
            "seconds": {"sample": time.perf_counter() - self.began},
            "workers": self.plan.workers,
            "seed": self.plan.seed,
        }
        regions = Regions(tuple((own, draws) for own, _, draws in parts), shares, errors, self.found.left_out)
        return Estimated(estimates, diagnosis, heaviest, regions), run


@dataclass(frozen=True)
class Goal:
    """How long to go on: a half-width, and the time when all has to end."""

    sweeps: int  # of the first round
    until: float | None
    deadline: float

    def pursue(self, mixture: Mixture, answer: Callable[[], Marginals]) -> tuple[Marginals, list[Notice]]:
        """The last answer, and what to say if it is not what was asked for."""
        mixture.go_on(self.sweeps, self.deadline)
        found, sweeps, before = answer(), self.sweeps, math.inf
        while not INTERRUPTED.is_set() and (self.until is not None or self.deadline < math.inf):
            half = widest(found)
            if self.until is not None and half <= MARGIN * self.until:
                return found, []
            if time.perf_counter() >= self.deadline:
                break
            if self.until is not None and half > 0.97 * before:
                text = f"the weights of the modes leave a half-width of {half:.3g}, {self.until:g} was asked for"
                return found, [Notice("time-limit", f"{text}: more sweeps do not change that")]
            before = half
            mixture.go_on(sweeps, self.deadline)
            sweeps, found = 2 * sweeps, answer()
        if self.until is None or widest(found) <= self.until:
            return found, []
        took = show.seconds(time.perf_counter() - mixture.began)
        text = f"stopped after {took}: the largest half-width is {widest(found):.3g}, {self.until:g} was asked for"
        return found, [Notice("time-limit", f"{text}; give --seconds to allow more time")]


def widest(found: Marginals) -> float:
    """The largest half-width of what was asked."""
    rows = list(found.queries.values()) or list(found.orbits)
    known = [np.max(np.asarray(row.half_width, dtype=float)) for row in rows if row.half_width is not None]
    return float(np.max(known)) if known else math.inf
