"""Where `marginals` meets the modes of a model: a survey before every run of single-site chains.

One region: the run starts from where the survey's chains ended. Several: brackets drop those that cannot weigh
anything; with the sampler `auto` the others are weighed, and the answer is the mixture of chains that are confined to
them. Where the weights are not found the answer is `divided` and lists the regions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import INTERRUPTED, Notice
from definetti.inference.assemble import Estimated
from definetti.inference.question import STUCK
from definetti.inference.trace import mixed_trace
from definetti.modes.looking import Budget, Looked, look
from definetti.modes.walkers import States, Walkers
from definetti.samplers.draws import BATCHES, Batch
from definetti.samplers.protocol import Plan, Progress, Sampler

if TYPE_CHECKING:
    from definetti.modes.weighing import Weighed, Weighing

SURVEY_SHARE, WEIGHING_SHARE = 0.25, 0.5  # of a default run
QUICK = 20_000_000  # updates: about a second's work
MOST = 200_000_000  # updates: a few seconds' work
FEWEST = 256  # sweeps of single chains that a survey needs
FEW_CHAINS = 4
NEGLIGIBLE = 1e-5  # share that regions which were dropped may have
SHOWN = 4  # regions in a message
FEW = Notice(
    "note",
    "fewer than four chains: whether they agree says little, and one chain cannot see a second mode; the survey of "
    "modes had chains of its own",
)


@dataclass(frozen=True, eq=False)
class Exploration:
    """What is known of a model's modes before it is sampled."""

    walkers: Walkers
    looked: Looked
    weighing: Weighing | None  # None: one region

    @property
    def several(self) -> bool:
        """More than one region counts."""
        return self.weighing is not None and len(self.weighing.kept) > 1

    @property
    def weighed(self) -> bool:
        """The answer is a mixture: several regions count, or what others may weigh has to go into the error."""
        found = self.weighing
        return found is not None and found.trusted and (self.several or found.left_out > NEGLIGIBLE)

    def starts(self, chains: int) -> Any:
        """Where chains of one run begin: at the ends of the survey's, or in the one region that counts."""
        states: States = self.looked.ends
        if self.weighing is not None and len(self.weighing.kept) == 1:
            counts = self.weighing.regions[self.weighing.kept[0]]
            settled = counts.region.settled
            states = self.walkers.take(states, counts.region.chains) if settled else counts.pool
        return self.walkers.as_starts(states, chains)

    def notices(self, question: Any) -> list[Notice]:
        found = self.weighing
        if found is None:
            return []
        dropped = [w for w in found.regions if w.dropped]
        out = []
        if dropped:
            text = f"{len(dropped)} regions of states that chains do not leave were found and left out"
            out.append(Notice("note", f"{text}: they weigh less than {max(found.left_out, 1e-300):.1g} of the others"))
        if self.weighed and self.several:
            out.append(Notice("note", f"{len(found.kept)} modes were weighed: {_listed(found, question)}"))
        elif self.several or found.doubt:
            text = f"chains from different starts stay in different regions of the states: {_listed(found, question)}"
            why = f"; {found.doubt}" if found.doubt else ""
            out.append(Notice("divided", f"{text}{why}. The numbers stand for where the chains are"))
        return out

    def report(self, question: Any) -> list[dict[str, Any]]:
        """`run["regions"]`"""
        if self.weighing is None:
            return []
        return [_region_report(w, question) for w in self.weighing.regions]


def explore(question: Any, kernel: Sampler, default: int, plan: Plan, weighs: bool) -> Exploration | None:
    """`default`: sweeps of all chains of a default run. None where the model is too large to be surveyed."""
    walkers = question.walkers(kernel)
    if walkers is None or walkers.sites * FEWEST > 2 * MOST:
        return None
    budget, seed = budget_of(walkers.sites, default), plan.seed
    looked = look(walkers, budget, (seed, 71), None if plan.sweeps is None else plan.sweeps)
    single = len(looked.survey.regions) == 1 and not looked.survey.forgotten
    if single:
        return Exploration(walkers, looked, None)
    from definetti.modes.weighing import unweighed, weigh  # only where there are several

    if not kernel.single_site:
        return Exploration(walkers, looked, unweighed(walkers, looked, f"the moves of {kernel.name} are not weighed"))
    return Exploration(walkers, looked, weigh(walkers, looked, budget, (seed, 72), weighs))


def budget_of(sites: int, default: int) -> Budget:
    """In sweeps of single chains, of which a default run makes so many."""
    quick, most = QUICK // max(sites, 1), MOST // max(sites, 1)
    survey = max(FEWEST, min(max(int(SURVEY_SHARE * default), quick), most))
    return Budget(survey, max(FEWEST, min(max(int(WEIGHING_SHARE * default), quick), 2 * most)))


def lengths_of(plan: Plan, sweeps: int, warm_up: int) -> list[int]:
    """Sweeps of the batches of a confined run, the first ones for warming up."""
    total = sweeps if plan.sweeps is None else plan.sweeps
    count = min(BATCHES, total)
    cuts = np.arange(count + 1) * total // count
    lengths = np.diff(cuts).tolist()
    return [max(lengths[0], 10)] * warm_up + lengths


def _listed(found: Weighing, question: Any) -> str:
    parts = [_line(found.regions[m], question, found.trusted) for m in found.kept[:SHOWN]]
    more = len(found.kept) - len(parts)
    return "; ".join(parts) + (f"; {more} more" if more > 0 else "")


def _line(w: Weighed, question: Any, trusted: bool) -> str:
    weight = "weight not known"
    if w.annealed is not None and np.isfinite(w.annealed.log_z) and trusted:
        weight = f"share {w.share:.4g}"
    elif w.bracket is not None:
        weight = f"log Z in [{w.bracket.lower:.5g}, {w.bracket.upper:.5g}]"
    marginals = {} if w.means is None else question.rows(w.means)
    shown = ", ".join(f"{name} {_text(p)}" for name, p in list(marginals.items())[:3])
    return f"[{shown}] {weight}" if shown else weight


def _text(p: float | Sequence[float]) -> str:
    return f"{p:.3g}" if isinstance(p, (int, float)) else "/".join(f"{v:.2g}" for v in p)


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None


def _region_report(w: Weighed, question: Any) -> dict[str, Any]:
    annealed = w.annealed if w.annealed is not None and np.isfinite(w.annealed.log_z) else None
    return {
        "chains": len(w.region.chains),
        "settled": w.region.settled,
        "dropped": w.dropped,
        "bracket": None if w.bracket is None else [_finite(w.bracket.lower), _finite(w.bracket.upper)],
        "log_weight": None if annealed is None else annealed.log_z,
        "log_weight_error": None if annealed is None else annealed.error,
        "share": w.share,
        "marginals": {} if w.means is None else question.rows(w.means),
    }


def advised(notices: Sequence[Notice], kernel: Sampler, by_choice: bool) -> tuple[Notice, ...]:
    """The first alarm of chains that do not get everywhere says what else there is to try."""
    out, said = [], False
    for notice in notices:
        if notice.kind in STUCK and not said:
            said = True
            cure = "more sweeps" if kernel.name == "tempering" else "--sampler tempering, or more sweeps,"
            text = f"{cure} may help" if by_choice else "use --sampler auto"
            notice = Notice(notice.kind, f"{notice.message}; {text}")
        out.append(notice)
    return tuple(out)


def with_doubts(plan: Plan, notices: list[Notice]) -> list[Notice]:
    return [*notices, FEW] if plan.chains < FEW_CHAINS else notices


def started(plan: Plan, explored: Exploration | None) -> Plan:
    return plan if explored is None else replace(plan, starts=explored.starts(plan.chains))


# --- the mixture -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture:
    """What chains that are confined to the regions say together."""

    made: Estimated
    run: dict[str, Any]
    interrupted: bool
    trace: Any


def mixture(
    question: Any,
    explored: Exploration,
    plan: Plan,
    sweeps: int,
    method: str,
    progress: Callable[[Progress], None] | None,
) -> Mixture:
    from definetti.modes.mixture import FEWEST_CHAINS, WARM_UP, batches_of, mixed
    from definetti.modes.weighing import inside_of

    found, walkers = explored.weighing, explored.walkers
    assert found is not None
    began, lengths = time.perf_counter(), lengths_of(plan, sweeps, WARM_UP)
    chains = max(FEWEST_CHAINS, -(-plan.chains // len(found.kept)))
    parts, done, total, interrupted = [], 0, sum(lengths) * len(found.kept), False
    for m in found.kept:
        kept: list[Batch] = []
        run = batches_of(walkers, found.regions[m].pool, inside_of(found, m), chains, lengths, (plan.seed, 73, m))
        for batch, length in zip(run, lengths, strict=True):
            kept += [] if batch is None else [batch]
            done += length
            if progress is not None:
                seconds = time.perf_counter() - began
                rate = done * chains * walkers.sites / max(seconds, 1e-9)
                progress(Progress("sampling", done, total, rate, None, seconds))
            if INTERRUPTED.is_set():
                interrupted = True
                break
        if not kept:
            raise KeyboardInterrupt
        made = question.estimated(walkers.draws(kept, chains), method)
        parts.append((made.estimates, made.found, made.draws))
    weights = [found.regions[m] for m in found.kept]
    shares = np.array([w.share for w in weights])
    errors = np.array([0.0 if w.annealed is None else w.annealed.error for w in weights])
    estimates, diagnosis = mixed(parts, shares, errors, found.left_out)
    heaviest = parts[int(shares.argmax())][2]
    run = {
        "chains": chains * len(parts),
        "sweeps": heaviest.sweeps,
        "burn_in": sum(lengths[:WARM_UP]),
        "updates": done * chains * walkers.sites,
        "seconds": {"sample": time.perf_counter() - began},
        "workers": plan.workers,
        "seed": plan.seed,
    }
    traces = [question.traced(draws, own, diagnosis) for own, _, draws in parts]
    kept = mixed_trace(traces, shares, errors, found.left_out)
    return Mixture(Estimated(estimates, diagnosis, heaviest), run, interrupted, kept)
