"""A run of chains that are confined to the modes of a model, combined by the modes' weights, in rounds.

A run of known length is one round. One that waits for its error, or for the clock, makes rounds of twice the length;
it ends early where the weights of the regions alone leave a larger error, which more sweeps do not change.
Between two batches its state can be kept, and a run that is put back there goes on bit by bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from definetti import show
from definetti.errors import INTERRUPTED, Notice
from definetti.inference.assemble import Estimated, Regions
from definetti.inference.modes import Exploration
from definetti.inference.stopping import MARGIN, MOST_SECONDS
from definetti.inference.trace import mixed_trace
from definetti.journal import Part
from definetti.model.marginals import Marginals
from definetti.modes.mixture import FEWEST_CHAINS, THIN, WARM_UP, Stay, arrive, mixed, stay, unmet_share
from definetti.modes.weighing import inside_of
from definetti.samplers.draws import BATCHES, Batch
from definetti.samplers.protocol import Plan, Progress

COUNTERS = ("done", "rounds", "burn_in", "place", "length")  # of a run, kept by checkpoints
MOST_UNMET = 0.05  # share of regions that chains leave soon: as an error more would say nothing


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
    place: int = 0  # regions that the round under way is done with
    length: int = 0  # sweeps of the round under way; 0 between two
    before: float = math.inf  # the half-width one round ago
    under_way: tuple[bool, int, Stay] | None = None  # in the next region: warming up, batches done, what there is
    look: Callable[[], None] = lambda: None  # asked between two batches: whether to keep the state

    def __post_init__(self) -> None:
        found = self.explored.weighing
        assert found is not None
        self.found, self.walkers = found, self.explored.walkers
        self.trace: Any = None  # of the last result
        self.doubts: list[Notice] = []  # about it
        self.chains = max(FEWEST_CHAINS, -(-self.plan.chains // len(found.kept)))

    def go_on(self, sweeps: int, deadline: float = math.inf) -> None:
        """A round of so many sweeps in every region; each region has its part of the time, one batch at least."""
        self.length = self.length or sweeps
        count = min(BATCHES, self.length)
        lengths = np.diff(np.arange(count + 1) * self.length // count).tolist()
        total = self.done + self.length * (len(self.found.kept) - self.place)
        for place, m in list(enumerate(self.found.kept))[self.place :]:
            now = time.perf_counter()
            self._stay(m, lengths, total, now + (deadline - now) / (len(self.found.kept) - place))
            if INTERRUPTED.is_set() and not self.stays[m].batches:
                raise KeyboardInterrupt
            self.place = place + 1
        self.rounds, self.place, self.length = self.rounds + 1, 0, 0

    def _stay(self, m: int, lengths: Sequence[int], total: int, until: float) -> None:
        region, inside, key = self.found.regions[m], inside_of(self.found, m), (self.plan.seed, 73, m, self.rounds)

        def follow(sweeps: int) -> bool:
            self.done += sweeps
            if self.progress is not None:
                seconds = time.perf_counter() - self.began
                rate = self.done * self.chains * self.walkers.sites / max(seconds, 1e-9)
                self.progress(Progress("sampling", min(self.done, total), total, rate, None, seconds))
            return not INTERRUPTED.is_set() and time.perf_counter() < until

        def note(batches: int, there: Stay, warming: bool = False) -> None:
            self.under_way = (warming, batches, there)
            self.look()

        there, first = self.stays.get(m), 0
        self.leaks.setdefault(m, region.lasting < 1.0)
        warming, saved = there is None, self.under_way
        if saved is not None:
            warming, first, there = saved
        while True:
            leaks = self.leaks[m]
            if warming:
                warm = [max(lengths[0], 10)] * WARM_UP
                self.burn_in = sum(warm)
                there = arrive(self.walkers, region.pool, self.chains, key) if there is None else there
                noted = partial(note, warming=True)
                there, first = stay(self.walkers, there, inside, warm, leaks, (*key, 1), follow, True, first, noted), 0
            assert there is not None
            made = stay(self.walkers, there, inside, lengths, leaks, (*key, 2), follow, False, first, note)
            if leaks or not made.left:
                break
            self.leaks[m], warming, there, first = True, True, None, 0  # whole batches and conditionals look outside
        self.stays[m], self.under_way = made, None

    @property
    def kept(self) -> int:
        """Kept sweeps of each chain, in the rounds that are complete."""
        return min((sum(batch.length for batch in own.batches) for own in self.stays.values()), default=0)

    # --- saving ------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that the rest of the run depends on."""
        saved = None
        if self.under_way is not None:
            warming, batches, there = self.under_way
            saved = {"warming": warming, "batches": batches, "stay": _tree(there)}
        return {
            **{name: getattr(self, name) for name in COUNTERS},
            "before": None if math.isinf(self.before) else self.before,
            "used": time.perf_counter() - self.began,
            "stays": {str(m): _tree(there) for m, there in self.stays.items()},
            "leaks": {str(m): leaks for m, leaks in self.leaks.items()},
            "under_way": saved,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continues where `state` was taken, with the same question and regions."""
        for name in COUNTERS:
            setattr(self, name, int(state[name]))
        self.before = math.inf if state["before"] is None else float(state["before"])
        self.began = time.perf_counter() - float(state["used"])
        self.stays = {int(m): _stay_of(tree) for m, tree in state["stays"].items()}
        self.leaks = {int(m): bool(leaks) for m, leaks in state["leaks"].items()}
        known = set(self.found.kept)
        if not (self.stays.keys() | self.leaks.keys()) <= known or not 0 <= self.place <= len(known):
            raise ValueError
        if (saved := state["under_way"]) is not None:
            self.under_way = (bool(saved["warming"]), int(saved["batches"]), _stay_of(saved["stay"]))

    def state_size(self) -> int:
        """About how many bytes the state has."""
        stays = [*self.stays.values(), *([] if self.under_way is None else [self.under_way[2]])]
        batches = [part for there in stays for batch in there.batches for part in batch if part is not None]
        return sum(np.asarray(part).nbytes for part in batches) + sum(_bytes(there.states) for there in stays)

    def result(self) -> tuple[Estimated, dict[str, Any]]:
        parts, runs = [], []
        for m in self.found.kept:
            how = "orbit" if self.leaks[m] and self.method != "standard" else self.method
            draws = self.walkers.draws(self.stays[m].batches, self.chains)
            sweeps = draws.sweeps * self.chains * (THIN if self.leaks[m] else 1)
            unseen = self.explored.left_out_of(m, sweeps, draws.f.shape[2])
            judged = self.question.estimated(draws if unseen is None else replace(draws, left_out=unseen), how)
            parts.append((judged.estimates, judged.found, judged.draws))
            runs.append((self.stays[m].left, sweeps))
        weights = [self.found.regions[m] for m in self.found.kept]
        shares = np.array([w.share for w in weights])
        errors = np.array([0.0 if w.annealed is None else w.annealed.error for w in weights])
        unmet = unmet_share(self.found.life, runs)
        left_out = min(1.0, self.found.left_out + unmet)
        text = "chains leave some regions soon, and go there too often to be left out of the mixture"
        self.doubts = [Notice("divided", f"{text}: up to {unmet:.2g} of the weight")] if unmet > MOST_UNMET else []
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
    total: int = 0  # kept sweeps at least, of a run that is extended

    @staticmethod
    def of(mixture: Mixture, part: Part, sweeps: int, seconds: float | None, until: float | None, start: float) -> Goal:
        """What was asked for, or what a run that is resumed goes on for; it is put where its part says."""
        total, now = 0, time.perf_counter()
        with part.fitting():
            if part.state is not None:
                mixture.restore(part.state)
                start = mixture.began
        if part.goal:
            total, seconds, until, start = part.goal.sweeps or 0, part.goal.seconds, part.goal.until, now
        limit = MOST_SECONDS if until is not None and seconds is None else seconds
        return Goal(sweeps, until, math.inf if limit is None else start + limit, total)

    def follow(self, mixture: Mixture, part: Part, answer: Callable[[], Marginals]) -> tuple[Marginals, list[Notice]]:
        """The answer, kept on the way; that of a run which is finished, or only shown, from what there is."""
        if part.finished or part.shown:
            if len(mixture.stays) < len(mixture.found.kept):
                raise KeyboardInterrupt  # not every region was reached
            return answer(), [Notice(**said) for said in (part.state or {}).get("said", ())]

        def look() -> None:
            if INTERRUPTED.is_set():
                mixture.look = lambda: None  # what follows is for the answer alone
                part.keep(mixture.state)
            else:
                part.look(mixture.state, mixture.state_size)

        mixture.look = look
        with part.journal.patiently():
            found, said = self.pursue(mixture, answer)
            interrupted = INTERRUPTED.is_set()  # it is cleared behind
        if not interrupted:
            part.keep(lambda: mixture.state() | {"said": [asdict(notice) for notice in said]}, finished=True)
        return found, said

    def pursue(self, mixture: Mixture, answer: Callable[[], Marginals]) -> tuple[Marginals, list[Notice]]:
        """The last answer, and what to say if it is not what was asked for."""
        if mixture.rounds == 0 or mixture.length:
            mixture.go_on(self.sweeps, self.deadline)
        if mixture.kept < self.total and not INTERRUPTED.is_set():
            mixture.go_on(self.total - mixture.kept, self.deadline)
        found = answer()
        while not INTERRUPTED.is_set() and (self.until is not None or self.deadline < math.inf):
            half = widest(found)
            if self.until is not None and half <= MARGIN * self.until:
                return found, []
            if time.perf_counter() >= self.deadline:
                break
            if self.until is not None and half > 0.97 * mixture.before:
                text = f"the weights of the modes leave a half-width of {half:.3g}, {self.until:g} was asked for"
                return found, [Notice("time-limit", f"{text}: more sweeps do not change that")]
            mixture.before = half
            mixture.go_on(self.sweeps << max(mixture.rounds - 1, 0), self.deadline)
            found = answer()
        if self.until is None or widest(found) <= self.until:
            return found, []
        took = show.seconds(time.perf_counter() - mixture.began)
        text = f"stopped after {took}: the largest half-width is {widest(found):.3g}, {self.until:g} was asked for"
        return found, [Notice("time-limit", f"{text}; give --seconds to allow more time")]


def _tree(there: Stay) -> dict[str, Any]:
    return {**vars(there), "batches": [batch._asdict() for batch in there.batches]}


def _stay_of(tree: Mapping[str, Any]) -> Stay:
    return Stay(tree["states"], tree["present"], tuple(Batch(**b) for b in tree["batches"]), int(tree["left"]))


def _bytes(states: Any) -> int:
    return states.nbytes if isinstance(states, np.ndarray) else sum(map(_bytes, states))


def widest(found: Marginals) -> float:
    """The largest half-width of what was asked."""
    rows = list(found.queries.values()) or list(found.orbits)
    known = [np.max(np.asarray(row.half_width, dtype=float)) for row in rows if row.half_width is not None]
    return float(np.max(known)) if known else math.inf
