"""The survey of modes before a run of single-site chains, and what `marginals` makes of it.

One region: the run starts from where the survey's chains ended. Several: brackets drop those that cannot weigh
anything; with the sampler `auto` the others are weighed, and the answer is the mixture of chains that are confined to
them. Where the weights are not found the answer is `divided` and lists the regions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show
from definetti.diagnose import expected_at_most
from definetti.errors import Notice
from definetti.modes.looking import SHORTEST, Budget, Looked, look, look_further, parted, unmet
from definetti.modes.walkers import NOT_WEIGHED, States, Walkers
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.protocol import Plan, Sampler
from definetti.samplers.registry import is_independent

if TYPE_CHECKING:
    from definetti.modes.weighing import Weighed, Weighing
    from definetti.samplers.draws import Draws

SURVEY_SHARE, WEIGHING_SHARE = 0.25, 0.5  # of the run that is asked for
QUICK = 20_000_000  # updates of a simple model: about a second's work
MOST = 200_000_000  # the same: a few seconds' work
FEWEST = 256  # sweeps of single chains that a survey needs
FEW_CHAINS = 4
NEGLIGIBLE = 1e-5  # share that regions which were dropped may have
SHOWN = 4  # regions in a message
CROSSING_SWEEPS = 256  # of chains that show whether moves of another kind cross
FROM_EACH = 2  # of them that begin in each region that counts, beside those that begin where the survey ended
WATCHED = ("blocks",)  # samplers with moves of several variables that are surveyed
OTHERS = ("mcsat", "orbital", "orbital-metropolis", "swendsen-wang")  # for which chains of single moves look
CROSSING = ("swendsen-wang",)  # those that `auto` tries where chains of single moves are stuck
MOST_RARE = 0.002  # share that a region may have which they enter too rarely to tell
SMALLER = "more sweeps do not help: try a smaller --domain, where modes are weighed, or other weights"
FEW = "fewer than four chains: whether they agree says little, and one chain cannot see a second mode"


def too_short(chains: int) -> Notice:
    sweeps = math.ceil(FEWEST / (SURVEY_SHARE * chains))
    text = "the survey of modes was left out, as it would take more than a quarter of such a run: a second mode may go"
    return Notice(
        "few-samples", f"{text} unseen; it is made from {sweeps} sweeps on"
    )  # within reach, as with --seconds


@dataclass(frozen=True, eq=False)
class Exploration:
    """What is known of a model's modes before it is sampled."""

    walkers: Walkers
    looked: Looked
    weighing: Weighing | None  # None: one region
    trips: tuple[int, ...] | None = None  # arrivals of a sampler that crosses in each region that counts
    rare: float = 0.0  # share that regions may have together which such a sampler leaves, and hardly enters
    strays: int = 0  # chains of the run that ended in regions which were left out

    @property
    def several(self) -> bool:
        """More than one region counts."""
        return self.weighing is not None and len(self.weighing.kept) > 1

    @property
    def one_of_several(self) -> bool:
        """All regions but one were left out."""
        return self.weighing is not None and self.weighing.trusted and len(self.weighing.kept) == 1

    @property
    def weighed(self) -> bool:
        """The answer is a mixture: several regions count, or what others may weigh has to go into the error."""
        found = self.weighing
        return found is not None and found.trusted and (self.several or found.left_out > NEGLIGIBLE)

    def left_out(self, sweeps: int, count: int) -> np.ndarray:
        """float64[count]: how far regions that were dropped, and places that starts left soon, may move the means of a
        run of so many sweeps of all chains."""
        from definetti.samplers.draws import with_more

        if self.rare:
            return np.full(count, self.rare)
        dropped = 0.0
        ended: list[int] | None = None
        if self.weighing is not None:
            from definetti.modes.mixture import unmet_share  # a run without weights does not load it

            dropped = self.weighing.left_out + unmet_share(self.weighing.life, [(0, sweeps)])
            region = self.weighing.regions[self.weighing.kept[0]].region if len(self.weighing.kept) == 1 else None
            ended = region.chains if region is not None and region.settled else None
        return with_more(unmet(self.walkers, self.looked, sweeps, ended), count) + dropped

    def left_out_of(self, m: int, sweeps: int, count: int) -> np.ndarray | None:
        """float64[count]: the same of one region of a mixture, whose chains make so many sweeps: places that starts
        left for it, other than the regions that were weighed or left out; None if there are none."""
        from definetti.samplers.draws import with_more

        assert self.weighing is not None
        region = self.weighing.regions[m].region
        if not region.settled:
            return None
        others = [w.region for k, w in enumerate(self.weighing.regions) if k != m]
        moved = unmet(self.walkers, self.looked, sweeps, region.chains, others)
        return with_more(moved, count) if moved.any() else None

    @property
    def alike(self) -> bool:
        """All regions that count are images of one, and everything that is asked is an average over the group."""
        found = self.weighing
        if found is None or not (found.images and found.doubt == NOT_WEIGHED):
            return False
        means = [found.regions[m].means for m in found.kept]
        return all(values is not None and len(values) == self.walkers.singles for values in means)

    @property
    def crossed(self) -> bool:
        """A ladder has brought states from its lower end to every region that counts, or other moves have from other
        regions, often enough."""
        from definetti.samplers.ladder import FEWEST_TRIPS

        return self.trips is not None and min(self.trips, default=0) >= FEWEST_TRIPS

    def after(self, kernel: Sampler, sampling: Any, draws: Draws) -> Exploration:
        """With what a run has shown: how often its ladders, or moves of another kind, came to each region that counts,
        and whether its chains ended where nothing counts."""
        found = self.weighing
        if found is None or found.partition is None:
            return self
        from definetti.modes import whereabouts

        trips, astray = self.trips, 0
        if kernel.name == "tempering" and found.doubt == NOT_WEIGHED:
            features, columns = self.walkers.arrived(sampling)
            where = found.partition.seen_by(columns).of(features)
            trips = tuple(int((where == m).sum()) for m in found.kept)
        if not self.walkers.mirrored:
            means = whereabouts.batch_features(self.walkers, draws.f)
            seen = found.partition.seen_by(np.arange(means.shape[2]))
            astray = whereabouts.strays(seen, means, draws.lengths, found.kept)
            if trips is None and self.several and not kernel.single_site:
                trips = whereabouts.entries(seen, means, found.kept)
        return replace(self, trips=trips, strays=astray)

    def explained(self, notices: Sequence[Notice], kernel: Sampler) -> list[Notice]:
        """What a run says of itself. A ladder that no replica climbs shows nothing; but where bounds on the weights of
        all regions leave one, and all chains are in it, nothing else was to be met."""
        if kernel.name != "tempering" or not self.one_of_several or self.strays or self.walkers.mirrored:
            return list(notices)
        text = "; but one region counts, by the survey's bounds on the weights of all, and every chain is in it"
        return [Notice("note", n.message + text) if n.kind == "not-mixed" else n for n in notices]

    def crossed_by(self, question: Any, kernel: Sampler, seed: int) -> Exploration:
        """With what chains of other moves show: how often they enter each region that counts from another."""
        found = self.weighing
        if found is None:
            return self
        found = replace(found, trusted=False, doubt=found.doubt or NOT_WEIGHED)
        if found.partition is None or len(found.kept) < 2:
            return replace(self, weighing=found)
        walkers = question.walkers(kernel)
        if walkers is None:
            return replace(self, weighing=found)
        pools = [found.regions[m] for m in found.kept if found.regions[m].pool_size]
        some = [self.walkers.take(w.pool, range(min(w.pool_size, FROM_EACH))) for w in pools]
        walk = walkers.walk(self.walkers.join([self.looked.ends, *some]), CROSSING_SWEEPS, (seed, 73))
        where = found.partition.of(walk.features[:, :, : self.looked.features])
        arrived, rare = entries(where, found.kept)
        return replace(self, weighing=found, trips=arrived, rare=rare)

    def starts(self, chains: int) -> Any:
        """Where chains of one run begin: at the ends of the survey's, in the regions that count."""
        states: States = self.looked.ends
        if self.weighing is not None and self.weighing.kept:
            counts = [self.weighing.regions[m] for m in self.weighing.kept]
            settled = sorted(c for w in counts if w.region.settled for c in w.region.chains)
            pools = [w.pool for w in counts if w.pool_size]
            if settled or pools:
                states = self.walkers.take(states, settled) if settled else self.walkers.join(pools)
        return self.walkers.as_starts(states, chains)

    def notices(self, question: Any) -> list[Notice]:
        found, out = self.weighing, []
        if self.looked.sweeps < SHORTEST:
            size = f"{self.looked.starts} chains × {self.looked.sweeps} sweeps"
            out.append(Notice("note", f"the survey of modes was a short one, {size}, as its sweeps are expensive"))
        if found is None:
            return out
        dropped = [w for w in found.regions if w.dropped]
        if dropped:
            regions, were = ("1 region", "was") if len(dropped) == 1 else (f"{len(dropped)} regions", "were")
            text = f"{regions} of states that chains do not leave {were} found and left out"
            most = f"weighing less than {max(found.left_out, 1e-300):.1g} of the others"
            if found.life:
                text = f"{regions} of states beside those that count {were} found and left out"
                most = "chains leave there soon, and how rarely they come back is part of the errors"
            out.append(Notice("note", f"{text}, {most}" if not found.life else f"{text}: {most}"))
        if self.weighed and self.several:
            said = _listed(found, question, self.walkers.log_constant)
            out.append(Notice("note", f"{len(found.kept)} modes were weighed: {said}"))
        elif self.crossed:
            out.append(Notice("note", f"{len(found.kept)} modes were found; arrivals where it counts: {self.trips}"))
        elif self.alike:
            text = "modes were found that are images of each other under the model's symmetries"
            out.append(Notice("note", f"{len(found.kept)} {text}: averages over these are the same in all of them"))
        elif self.several or found.doubt:
            said = _listed(found, question, self.walkers.log_constant)
            text = f"chains from different starts stay in different regions of the states: {said}"
            why = f"; {found.doubt}" if found.doubt else ""
            if self.trips is not None:
                why = f"; arrivals in them: {', '.join(map(str, self.trips))}"
            cure = "" if self.walkers.weighs else SMALLER
            out.append(Notice("divided", f"{text}{why}. The numbers stand for where the chains are", cure))
        if self.strays:
            ended = f"{self.strays} of the chains ended" if self.strays > 1 else "1 of the chains ended"
            most = f"less than {max(found.left_out, 1e-300):.1g} of the others"
            out.append(Notice("divided", f"{ended} in regions of the states that weigh {most}"))
        return out

    def report(self, question: Any) -> list[dict[str, Any]]:
        """`run["regions"]`"""
        if self.weighing is None:
            return []
        return [_region_report(w, question) for w in self.weighing.regions]


def explore(question: Any, kernel: Sampler, default: int, plan: Plan, weighs: bool) -> Exploration | Notice | None:
    """`default`: sweeps of all chains of a default run. A notice: why there was no survey; None: nothing to survey, or
    too much (`unsurveyed`)."""
    ladder, other = kernel.name == "tempering", not weighs and kernel.name.split(":")[0] in OTHERS
    if not (ladder or other or kernel.single_site or kernel.name in WATCHED):
        return None
    looking: Any = kernel.over if ladder else Gibbs() if other else kernel  # pyright: ignore[reportAttributeAccessIssue]
    walkers = question.walkers(looking)
    if walkers is None:
        return None
    if (ladder or other) and (walkers.hard or not looking.single_site or not walkers.weighs):
        return None  # what single moves do not connect is in pieces, each for itself
    asked = default if plan.sweeps is None else min(default, plan.chains * plan.sweeps)
    budget, seed = budget_of(walkers.work, asked), plan.seed
    if budget.survey < FEWEST:
        return too_short(plan.chains) if walkers.weighs and not other else None  # chains start far apart, or speak
    looked = look(walkers, budget, (seed, 71), None if plan.sweeps is None else plan.sweeps)
    single = len(looked.survey.regions) == 1 and not looked.survey.forgotten
    if single:
        return Exploration(walkers, looked, None)
    if not walkers.weighs:
        return Exploration(walkers, looked, walkers.bounded(looked))
    from definetti.modes.weighing import unweighed, weigh  # only where there are several

    if kernel.name in WATCHED:
        return Exploration(walkers, looked, unweighed(walkers, looked, f"the moves of {kernel.name} are not weighed"))
    looked = look_further(walkers, looked, budget, (seed, 74))
    return Exploration(walkers, looked, weigh(walkers, looked, budget, (seed, 72), weighs and not ladder))


def entries(where: np.ndarray, regions: Sequence[int]) -> tuple[tuple[int, ...], float]:
    """How often chains come into each of some regions from another of them, for those that may count, and what the
    others may weigh together; `where`: int64[sweeps, chains].

    What is left after L sweeps at most and was entered k times in N sweeps has a share of at most L (k + 2√k + 3) / N.
    """
    from definetti.samplers.ladder import FEWEST_TRIPS

    counts, longest = dict.fromkeys(regions, 0), dict.fromkeys(regions, 0)
    for chain in where.T.tolist():
        visited = [m for m in chain if m in counts]
        for number, (m, stay) in enumerate((m, sum(1 for _ in same)) for m, same in groupby(visited)):
            counts[m] += number > 0
            longest[m] = max(longest[m], stay)
    bounds = {m: longest[m] * expected_at_most(k) / where.size for m, k in counts.items()}
    rare = [m for m, k in counts.items() if k < FEWEST_TRIPS and longest[m] and bounds[m] <= MOST_RARE]
    return tuple(k for m, k in counts.items() if m not in rare), sum(bounds[m] for m in rare)


def budget_of(work: int, asked: int) -> Budget:
    """In sweeps of single chains, of which the run that is asked for makes so many; `work` of one of them.

    A quarter of the run, or about a second's work if that is more; not more than some seconds' work, except where these
    are too few for a survey and a quarter of the run has as many as it takes.
    """
    quick, most = QUICK // max(work, 1), MOST // max(work, 1)

    def part(share: float, most: int) -> int:
        least = min(FEWEST, int(share * asked))
        return max(least, min(max(int(share * asked), quick), most))

    return Budget(part(SURVEY_SHARE, most), part(WEIGHING_SHARE, 2 * most))


def _listed(found: Weighing, question: Any, constant: float) -> str:
    parts = [_line(found.regions[m], question, constant, found.trusted) for m in found.kept[:SHOWN]]
    more = len(found.kept) - len(parts)
    return "; ".join(parts) + (f"; {more} more" if more > 0 else "")


def _line(w: Weighed, question: Any, constant: float, trusted: bool) -> str:
    weight = "weight not known"
    if w.annealed is not None and np.isfinite(w.annealed.log_z) and trusted:
        weight = f"share {w.share:.4g}"
    elif w.bracket is not None:
        beside = f"{show.number(constant)} + " if constant else ""
        weight = f"log Z in {beside}[{w.bracket.lower:.5g}, {w.bracket.upper:.5g}]"
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


def with_doubts(plan: Plan, notices: list[Notice], explored: Exploration | None = None) -> list[Notice]:
    """What few chains cannot say of themselves; `explored`: the survey that was made."""
    if plan.chains >= FEW_CHAINS:
        return notices
    if explored is not None and not explored.several and (count := parted(explored.looked)):
        text = f"chains of the survey stay apart from each other in {show.count(count)} of the single numbers"
        return [*notices, Notice("divided", f"{text}, of which fewer than four chains may see one side only: use more")]
    return [*notices, Notice("note", f"{FEW}; the survey of modes had chains of its own" if explored else FEW)]


def unsurveyed(question: Any, kernel: Sampler, plan: Plan) -> list[Notice]:
    """For single moves on a model that is too large to be surveyed. What is left is whether the chains agree: that says
    little of modes, and nothing if there are hardly any chains. Other samplers say if they have few chains."""
    if not kernel.single_site or not question.sites:
        return [] if is_independent(kernel) else with_doubts(plan, [])
    text = f"{show.count(question.sites)} variables or atoms are too many for a survey of modes in such a run"
    if plan.chains < FEW_CHAINS:
        return [Notice("few-samples", f"{text}, and fewer than four chains have no say on them: use at least four")]
    return [Notice("note", f"{text}: that {plan.chains} chains agree is all that speaks against a second mode")]


def started(plan: Plan, explored: Exploration | None) -> Plan:
    return plan if explored is None else replace(plan, starts=explored.starts(plan.chains))
