"""Whether light regions have look-alikes that nobody met, and that may weigh something together.

A region e^−25 as heavy as another is nothing, 2^60 of its kind are not. Images under the group are counted by products
of orbits; look-alikes under no symmetry are sought by mixing the heaviest region that is light with others: what
settles in a place of its own, with the same log density, is one. As many states as the product of the mean
conditionals over all of the kind has room for are then assumed: for copies that are combinations of parts, and for
single ones, that is an upper end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from definetti.modes.brackets import bracket
from definetti.modes.looking import Looked
from definetti.modes.survey import Segment, Summary, differ, drifts, summarise, summary_of
from definetti.modes.walkers import SHARES, Key, States, Walkers

if TYPE_CHECKING:
    from definetti.modes.weighing import Weighed, Weighing

MIXED, THINNER, SWEEPS, FITTED = len(SHARES), 3, 64, 32
KIND = 10.0  # nats: regions that are this close to each other, as far as they were met, may be of one kind
MOST = 6  # regions of a kind that are followed
COST = 2 * (MOST + MIXED) * SWEEPS  # sweeps, at most
APART = 8.0  # errors between means
DOUBT = "regions that were left out have look-alikes, and may have so many that they count together"


def most_of_a_kind(
    walkers: Walkers, looked: Looked, light: Sequence[Weighed], heavy: Weighed, most: int, key: Key
) -> tuple[float, int]:
    """The logarithm of what the look-alikes of the heaviest of some light regions may weigh together, minus infinity if
    it has none, and sweeps of single chains that were spent, at most so many; `heavy`: a region that is not light."""
    light = [w for w in light if w.region.settled and w.bracket is not None and w.pool_size]
    if not light or not heavy.pool_size or most < COST:
        return -np.inf, 0
    top = max(map(_weight, light))
    alike = sorted((w for w in light if _weight(w) >= top - KIND), key=_weight, reverse=True)[:MOST]
    ends, spent = _of_one_kind(walkers, looked, alike, heavy, key)
    if walkers.count(ends) < 2:
        return -np.inf, spent
    walk = walkers.walk(ends, FITTED, (*key, 2))
    product = walkers.product([(walk, np.ones(walkers.count(ends), dtype=bool))])
    walk = walkers.walk(walk.ends, FITTED, (*key, 3), product)
    return bracket(walk.log_ratio, walk.divergence).upper, spent + 2 * FITTED * walkers.count(ends)


def with_copies(walkers: Walkers, looked: Looked, said: Weighing, nats: float, left: int, key: Key) -> Weighing:
    """Weights that annealing found, with what look-alikes of the regions that are so many nats lighter than the
    heaviest may weigh together: a part of the error, or a doubt. `left`: sweeps of single chains."""
    kept = [said.regions[m] for m in said.kept]
    heavy = max(kept, key=lambda w: w.share)
    light = [w for w in kept if w.share < heavy.share * np.exp(-nats)]
    together, spent = most_of_a_kind(walkers, looked, light, heavy, left, key)
    below, said = together - _weight(heavy), replace(said, sweeps=said.sweeps + spent)
    if below > -nats:
        return replace(said, trusted=False, doubt=DOUBT)
    return replace(said, left_out=said.left_out + float(np.exp(below)))


def _weight(w: Weighed) -> float:
    """As annealing found it, or at most."""
    if w.annealed is not None and np.isfinite(w.annealed.log_z):
        return w.annealed.log_z
    return np.inf if w.bracket is None else w.bracket.upper


def _of_one_kind(
    walkers: Walkers, looked: Looked, alike: list[Weighed], heavy: Weighed, key: Key
) -> tuple[States, int]:
    """States of regions of the first one's kind, those that were found and those that mixed states settle in; none if
    the latter were all found before."""
    first, part, second = (walkers.take(w.pool, np.arange(MIXED) % w.pool_size) for w in (alike[0], heavy, alike[-1]))
    parts = [walkers.hybrids(first, second, (*key, 4))] if len(alike) > 1 else []
    for k in range(THINNER):  # each time a smaller part is the other's: what holds together may not bear more
        part = walkers.hybrids(first, part, (*key, 5, k))
        parts.append(part)
    states = walkers.join([*(walkers.take(w.pool, [0]) for w in alike), *parts])
    walk = walkers.walk(states, SWEEPS, (*key, 1))
    trace, scale = walk.statistics, looked.trace.std(axis=(0, 1))
    level = walk.log_density[SWEEPS // 2 :].mean(axis=0)
    chosen, summaries = [], []
    for chain in range(trace.shape[1]):
        end = Segment(chain, SWEEPS // 2, SWEEPS, True)
        if abs(level[chain] - level[0]) > KIND or drifts(trace, end):
            continue
        mine = Summary(*(part[None] for part in summary_of(trace[end.first :, chain])))
        if all(differ(mine, other, scale, APART)[0][0, 0] for other in summaries):
            chosen.append(chain)
            summaries.append(mine)
    met = [summarise(looked.trace, list(r.segments)) for r in looked.survey.regions]
    fresh = [c for c, mine in zip(chosen, summaries, strict=True) if c >= len(alike) and _is_new(mine, met, scale)]
    kept = [*(c for c in chosen if c < len(alike)), *fresh] if fresh else []  # where all were met, all were weighed
    return walkers.take(walk.ends, kept), SWEEPS * walkers.count(states)


def _is_new(mine: Summary, met: Sequence[Summary], scale: np.ndarray) -> bool:
    return all(differ(mine, parts, scale, APART)[0].all() for parts in met)
