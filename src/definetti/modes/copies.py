"""Whether regions that were left out have look-alikes that nobody met, and that may weigh something together.

A region e^−25 as heavy as another is nothing, 2^60 of its kind are not. Images under the group are counted by products
of orbits; look-alikes under no symmetry are sought by mixing the heaviest region that was left out with others: what
settles in a place of its own, with the same log density, is one. As many states as the product of the mean
conditionals over all of the kind has room for are then assumed: for copies that are combinations of parts, and for
single ones, that is an upper end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from definetti.modes.brackets import bracket
from definetti.modes.looking import Looked
from definetti.modes.survey import Segment, Summary, differ, drifts, summarise, summary_of
from definetti.modes.walkers import SHARES, Key, States, Walkers

if TYPE_CHECKING:
    from definetti.modes.weighing import Weighed

MIXED, THINNER, SWEEPS, FITTED = len(SHARES), 3, 64, 32
KIND = 10.0  # nats: regions that are this close to each other, as far as they were met, may be of one kind
MOST = 6  # regions of a kind that are followed
APART = 8.0  # errors between means
DOUBT = "regions that were left out have look-alikes, and may have so many that they count together"


def copies_doubt(
    walkers: Walkers, looked: Looked, found: Sequence[Weighed], far: float, most: int, key: Key
) -> tuple[str, int]:
    """A doubt, if there is one, and sweeps of single chains that were spent, at most so many; `far`: nats by which a
    kind has to be below the heaviest region."""
    light = [w for w in found if w.dropped and w.region.settled and w.bracket is not None and w.pool_size]
    heavy = [w for w in found if not w.dropped and w.bracket is not None and w.pool_size]
    if not light or not heavy or most < 2 * (MOST + MIXED) * SWEEPS:
        return "", 0
    uppers = [w.bracket.upper for w in light if w.bracket is not None]
    best = max(w.bracket.lower for w in heavy if w.bracket is not None)
    alike = [w for w, upper in zip(light, uppers, strict=True) if upper > max(uppers) - KIND][:MOST]
    alike.sort(key=lambda w: -w.bracket.upper if w.bracket is not None else 0.0)
    ends, spent = _of_one_kind(walkers, looked, alike, heavy[0], key)
    if walkers.count(ends) < 2:
        return "", spent
    walk = walkers.walk(ends, FITTED, (*key, 2))
    product = walkers.product([(walk, np.ones(walkers.count(ends), dtype=bool))])
    walk = walkers.walk(walk.ends, FITTED, (*key, 3), product)
    upper = bracket(walk.log_ratio, walk.divergence).upper
    return DOUBT if upper > best - far else "", spent + 2 * FITTED * walkers.count(ends)


def _of_one_kind(
    walkers: Walkers, looked: Looked, alike: list[Weighed], heavy: Weighed, key: Key
) -> tuple[States, int]:
    """States of regions of the first one's kind, those that were found and those that mixed states settle in."""
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
    kept = [c for c, mine in zip(chosen, summaries, strict=True) if c < len(alike) or _is_new(mine, met, scale)]
    return walkers.take(walk.ends, kept), SWEEPS * walkers.count(states)


def _is_new(mine: Summary, met: Sequence[Summary], scale: np.ndarray) -> bool:
    return all(differ(mine, parts, scale, APART)[0].all() for parts in met)
