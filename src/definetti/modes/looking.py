"""Looks for the modes of a model: chains from dispersed starts, run until they settle or the budget ends.

Some places are left after a few sweeps, and a run may not meet them again (`unmet`).
A place of share w that chains leave after L sweeps is entered w / L times a sweep: a run of N sweeps that never meets
it shows that w is hardly more than 3 L / N (95 %), and the error of its numbers should say so. The share is at most
what the free energy allows: log f and the entropies of the mean conditionals, beside those of where chains ended.
All-true friends beside friends and smokers are a place with a life of many sweeps, and weigh nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from definetti.diagnose import expected_at_most
from definetti.errors import INTERRUPTED
from definetti.modes.survey import GAP, RELATIVE, WINDOW, Region, Survey, take_stock
from definetti.modes.walkers import COHERENT, SPAN, Key, States, Walk, Walkers, unfollowed

SHORTEST, LONGEST, UNDECIDED = 64, 256, 1024  # sweeps; the last where segments are neither alike nor apart
STARTS, FEWEST_STARTS = 32, 8
SETTLED = 4  # sweeps: what is left sooner was never settled
LONGER = 2.0  # times stays among what chains meet where they end: rare events that follow each other are no place
SLACK = 3.0  # nats, for free energies from a few sweeps
NEGLIGIBLE = 1e-9
ENOUGH = 128  # sweeps, where one region was found and nothing is undecided
MOST_REGIONS = 16  # that are weighed
BOTH, FEWEST_WINDOWS = 2, 4  # chains on both sides of a gap, and windows in which nothing crosses it
CORNERS = 2  # one in so many of the mixed states is a corner of three regions
ROUNDS, ROUND_SHARE, FEWEST_MIXED = 3, 6, 4  # of chains from mixed states; a round takes one sixth of what weighing may


@dataclass(frozen=True, eq=False)
class Looked:
    """What chains from dispersed starts have found."""

    survey: Survey
    trace: np.ndarray  # [sweeps, chains, statistics]
    features: int  # of the statistics: those that are functions of the state
    ends: States
    kept: dict[int, States]  # states after so many sweeps
    starts: int
    sweeps: int  # of each chain
    windows: np.ndarray = field(default_factory=unfollowed)  # of single statistics, beside projections (`Walk`)


@dataclass(frozen=True)
class Budget:
    """How much may be done, counted in sweeps of single chains."""

    survey: int
    weighing: int

    @property
    def shape(self) -> tuple[int, int]:
        """Starts, and sweeps of each at most."""
        starts = int(np.clip(self.survey // LONGEST, FEWEST_STARTS, STARTS))
        return starts, int(np.clip(self.survey // starts // WINDOW * WINDOW, 2 * WINDOW, UNDECIDED))


def look(walkers: Walkers, budget: Budget, key: Key, longest: int | None = None) -> Looked:
    """`longest`: no more sweeps than the run itself makes, if that is not too few."""
    starts, most = budget.shape
    if longest is not None:
        most = min(most, max(SHORTEST, longest))
    states = walkers.starts((*key, 1), starts, budget.survey // 4)
    sweeps = min(SHORTEST, most)
    walks: list[Walk] = []
    kept: dict[int, States] = {}
    done = 0
    while True:
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt
        marks = [s for s in range(WINDOW, sweeps - done + 1) if (done + s) % WINDOW == 0]
        walk = walkers.walk(states, sweeps - done, (*key, 2, done), keep=marks)
        walks.append(walk)
        kept |= {done + s: states for s, states in walk.kept.items()}
        states, done = walk.ends, sweeps
        trace = np.concatenate([w.statistics for w in walks])
        survey = take_stock(trace)
        unclear = survey.undecided or survey.transitions
        enough = done >= LONGEST and not unclear
        if done >= most or enough or (done >= min(ENOUGH, most) and survey.settled):
            windows = np.concatenate([w.windows for w in walks])
            return Looked(survey, trace, walk.features.shape[2], states, kept, walkers.count(states), done, windows)
        sweeps = min(2 * done, most)


def look_further(walkers: Walkers, looked: Looked, budget: Budget, key: Key) -> Looked:
    """Chains that begin in states mixed from two or three regions, in rounds, for as long as they find new ones: groups
    that are each in one of two modes have more combinations than starts meet."""
    for number in range(ROUNDS):
        chains = min(STARTS, budget.weighing // (ROUND_SHARE * looked.sweeps))
        places = [found for region in looked.survey.regions if (found := _places(looked, region))]
        if chains < FEWEST_MIXED or len(places) < 2:
            return looked
        wider = _with_mixed(walkers, looked, places, chains, (*key, number))
        grown = len(wider.survey.regions) > len(looked.survey.regions)
        if not grown or len(wider.survey.regions) > MOST_REGIONS or wider.survey.forgotten:  # no end to combinations
            return looked
        looked = wider
    return looked


def _places(looked: Looked, region: Region) -> list[tuple[int, int]]:
    """(Sweep, chain) of states of a region that were kept: the last of each segment."""
    last = [(max((s for s in looked.kept if r.first < s <= r.end), default=0), r.chain) for r in region.segments]
    return [place for place in last if place[0]]


def _with_mixed(
    walkers: Walkers, looked: Looked, places: Sequence[list[tuple[int, int]]], chains: int, key: Key
) -> Looked:
    """With chains from mixed states, those that were where no other was; `places`: of states of each region."""
    rng, parts = np.random.default_rng([*key, 1]), []
    corners = chains // CORNERS if len(places) > 2 else 0
    if corners:  # a part with modes of its own is where two regions differ, whatever its neighbourhoods are
        threes = [rng.permutation(len(places))[:3] for _ in range(corners)]
        some = [[places[m][int(rng.integers(len(places[m])))] for m in three] for three in threes]
        taken = [
            walkers.join([walkers.take(looked.kept[s], [chain]) for s, chain in row]) for row in zip(*some, strict=True)
        ]
        parts.append(walkers.corners(taken[0], taken[1], taken[2], (*key, 4)))
    for k in range(0, chains - corners, len(COHERENT)):
        pair = [places[m][int(rng.integers(len(places[m])))] for m in rng.permutation(len(places))[:2]]
        first, second = (walkers.take(looked.kept[s], [chain] * len(COHERENT)) for s, chain in pair)
        parts.append(walkers.hybrids(first, second, (*key, 2, k), COHERENT))
    walk = walkers.walk(walkers.join(parts), looked.sweeps, (*key, 3), keep=sorted(looked.kept))
    count = looked.trace.shape[1]
    survey = take_stock(np.concatenate([looked.trace, walk.statistics], axis=1))
    fresh = [r.chains for r in survey.regions if min(r.chains) >= count]
    new = np.array(sorted({chain - count for group in fresh for chain in group}), dtype=int)
    if not len(new):
        return looked
    trace = np.concatenate([looked.trace, walk.statistics[:, new]], axis=1)
    kept = {s: walkers.join([states, walkers.take(walk.kept[s], new)]) for s, states in looked.kept.items()}
    ends = walkers.join([looked.ends, walkers.take(walk.ends, new)])
    windows = np.concatenate([looked.windows, walk.windows[:, new]], axis=1) if looked.windows.size else unfollowed()
    return replace(
        looked, survey=take_stock(trace), trace=trace, ends=ends, kept=kept, starts=count + len(new), windows=windows
    )


def parted(looked: Looked) -> int:
    """How many statistics of a survey that sees projections have chains on both sides of a gap, two at least, which
    few of them cross in the late half: parts of a large model that are in one of two modes each."""
    late = looked.windows[len(looked.windows) // 2 :]
    if len(late) < FEWEST_WINDOWS:
        return 0
    means, wide = np.sort(late.mean(axis=0), axis=0), np.quantile(np.ptp(late, axis=0), 0.75, axis=0)
    gaps = np.diff(means, axis=0)[BOTH - 1 : len(means) - BOTH]  # with so many chains below and above
    return int((gaps > RELATIVE + 4 * GAP * wide).any(axis=0).sum())  # ranges have half of their widths between them


def _settled(late: np.ndarray) -> np.ndarray:
    """bool[chains]: those that were throughout the late half where most were at its end. A place that some chains left
    in that half is none where chains are to be found; without a majority all count."""
    end = late[-max(len(late) // 4, 1) :]
    low, high = _reached(end)
    slack = 1e-9 + 0.25 * (high - low)
    mean = late.mean(axis=0)
    inside = ((mean >= low - slack) & (mean <= high + slack)).all(axis=1)
    return inside if inside.mean() >= 0.5 else np.ones(len(inside), dtype=bool)


def _reached(trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each statistic the least and the largest value, but for what less than a quarter of the chains reach: a place
    to which a few of them came back is one that a run may not meet."""
    return np.quantile(trace.min(axis=0), 0.25, axis=0), np.quantile(trace.max(axis=0), 0.75, axis=0)


def _longest_stay(there: np.ndarray) -> np.ndarray:
    """int64[chains]: most sweeps in a row, of bool[sweeps, chains]."""
    stay = longest = np.zeros(there.shape[1], dtype=np.int64)
    for now in there:
        stay = (stay + 1) * now
        longest = np.maximum(longest, stay)
    return longest


def _ranges(trace: np.ndarray, region: Region) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each statistic in a region."""
    values = np.concatenate([trace[s.first : s.end, s.chain] for s in region.segments])
    return values.min(axis=0), values.max(axis=0)


def _beyond(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """bool[…]: whether some statistic of […, statistics] is clearly outside of its range."""
    slack = 1e-9 + 0.25 * (high - low)
    return np.asarray(((values < low - slack) | (values > high + slack)).any(axis=-1))


def unmet(
    walkers: Walkers, looked: Looked, sweeps: int, chains: Sequence[int] | None = None, others: Sequence[Region] = ()
) -> np.ndarray:
    """float64[K]: how far what a run of `sweeps` sweeps may never meet can move the mean of each single statistic;
    nothing is known, and 0 said, of large models, whose log densities or single statistics are not followed.
    `chains`: those that ended in one region, of several that were weighed (what the others are in was); None: all.
    `others`: regions that are accounted for; a place in them is not one of these, nor, where the survey sees
    projections, one of a chain that was in them."""
    whole, features, count = looked.trace, looked.features, walkers.singles
    some = list(range(whole.shape[1]) if chains is None else chains)
    if walkers.weighs and looked.windows.size:
        away = {segment.chain for region in others for segment in region.segments}
        some = [chain for chain in some if chain not in away]
        if not some:
            return np.zeros(count)
        return _unmet_by_statistic(walkers, looked.trace[:, some, features - 1], looked.windows[:, some], sweeps)
    if whole.shape[2] - features != count or not walkers.weighs:
        return np.zeros(count)
    known = [_ranges(whole[:, :, :features], region) for region in others]
    whole = whole[:, some]
    late = whole[len(whole) // 2 :]
    settled = _settled(late[:, :, :features])
    late = late[:, settled]
    outside = _beyond(whole[:, :, :features], *_reached(late[:, :, :features]))
    usual = float(np.quantile(_longest_stay(outside[len(whole) // 2 :, settled]), 0.75))
    life = np.where(outside.all(axis=0), len(whole), outside.argmin(axis=0))  # sweeps before the first one inside

    def weight(means: np.ndarray) -> float:
        """By the mean log density, which is the last feature, and the entropy of the mean conditionals."""
        return float(means[features - 1]) + walkers.entropy(means[features:])

    ended, bound = late.mean(axis=(0, 1)), np.zeros(count)
    for chain in np.flatnonzero(life >= SETTLED + LONGER * usual).tolist():
        place = whole[1 : life[chain], chain]
        if any((~_beyond(place[:, :features], *ends)).mean() >= 0.5 for ends in known):
            continue
        there = place.mean(axis=0)
        lighter = weight(there) - weight(ended)
        share = min(expected_at_most(0) * life[chain] / sweeps, float(np.exp(min(lighter + SLACK, 0.0))))
        if share > NEGLIGIBLE:
            bound = np.maximum(bound, share * np.abs(there[:count] - ended[:count]))
    return bound


def _unmet_by_statistic(walkers: Walkers, density: np.ndarray, windows: np.ndarray, sweeps: int) -> np.ndarray:
    """float64[K], the same from mean conditionals in windows [W, chains, K] and log densities [sweeps, chains]. Of many
    statistics some are always elsewhere: each says by itself when a chain came to where most are in the late half, and
    has to be as far from there as regions are. The free energy is compared by those that were elsewhere, and allows for
    what the log density of single states varies by."""
    late, dense = windows[len(windows) // 2 :], density[len(density) // 2 :]
    low, high = _reached(late)
    slack = RELATIVE + GAP * (high - low)
    ended, spread, bound = late.mean(axis=(0, 1), dtype=np.float64), float(dense.std()), np.zeros(windows.shape[2])
    for chain in range(windows.shape[1]):
        mine = windows[:, chain]
        outside = (mine < low - slack) | (mine > high + slack)
        life = np.where(outside.all(axis=0), len(mine), outside.argmin(axis=0))  # windows before the first one inside
        away = np.flatnonzero(life > 1)  # the first has the way down from the start
        if not len(away):
            continue
        inside = np.arange(len(mine))[1:, None] < life[away]
        there, last = ended.copy(), int(life[away].max())
        there[away] = (mine[1:, away] * inside).sum(axis=0) / (life[away] - 1)
        lighter = float(density[SPAN : last * SPAN, chain].mean() - dense.mean())
        lighter += walkers.entropy(there) - walkers.entropy(ended)
        most = float(np.exp(min(lighter + SLACK * (1 + spread), 0.0)))
        share = np.minimum(expected_at_most(0) * life[away] * SPAN / sweeps, most)
        bound[away] = np.maximum(bound[away], share * np.abs(there[away] - ended[away]))
    return np.where(bound > NEGLIGIBLE, bound, 0.0)
