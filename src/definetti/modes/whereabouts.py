"""Where the chains of a run were, among the regions that a survey has found: from the means of their batches.

A batch mean near a region's centre was made there; one that lies between two centres was made in both, the chain having
crossed inside the batch. Chains that have stayed to the end in regions that cannot weigh anything are astray.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from definetti.modes.partition import Partition
from definetti.modes.walkers import Walkers

BETWEEN = 0.2  # of the way from one centre to another: a batch beyond it, up to the same from the other, was in both
LATE = 4  # one over the share of a run that says where a chain ended


def batch_features(walkers: Walkers, f: np.ndarray) -> np.ndarray:
    """[batches, chains, …]: what the means of a run's batches say of the features, the first of which they are."""
    means = f[:, :, : walkers.singles].reshape(-1, walkers.singles)
    return np.asarray(walkers.seen(means.T)).T.reshape(*f.shape[:2], -1)


def strays(where: Partition, means: np.ndarray, lengths: np.ndarray, kept: Sequence[int]) -> int:
    """How many chains were at the end in none of the regions that count; `means`: [batches, chains, …]. Regions that
    these do not tell apart, by the spread of single states, are taken for the same."""
    after = np.cumsum(lengths) > lengths.sum() * (LATE - 1) / LATE
    late = np.average(means[after], axis=0, weights=lengths[after]) / where.scale
    centres = where.centres / where.scale
    astray = np.zeros(len(late), dtype=bool)
    for m in set(range(len(centres))) - set(kept):
        way = centres[m] - centres[list(kept)]
        length = (way**2).sum(axis=1)
        along = ((late[:, None] - centres[list(kept)]) * way).sum(axis=2) / np.maximum(length, 1.0)
        astray |= ((along > 1.0 - BETWEEN) & (length > 1.0)).all(axis=1) & (where.of(late * where.scale) == m)
    return int(astray.sum())


def entries(where: Partition, means: np.ndarray, regions: Sequence[int]) -> tuple[int, ...]:
    """How often chains came into each of some regions from another of them."""
    seen = Partition(where.centres[list(regions)], where.scale)
    counts = np.zeros(len(regions), dtype=np.int64)
    for chain in range(means.shape[1]):
        last = -1
        for here, other in _places(seen, means[:, chain]):
            if other >= 0:  # in both
                counts[[here, other]] += 1
            elif 0 <= last != here:
                counts[here] += 1
            last = here
    return tuple(counts.tolist())


def _places(where: Partition, means: np.ndarray) -> list[tuple[int, int]]:
    """The nearest region of each mean, and another where it lies between the two, else −1."""
    out = []
    centres, rows = where.centres / where.scale, means / where.scale
    nearest = where.of(means)
    for here, row in zip(nearest.tolist(), rows, strict=True):
        way = centres - centres[here]
        length = (way**2).sum(axis=1)
        along = (way @ (row - centres[here])) / np.where(length > 0, length, np.inf)
        other = int(along.argmax())
        out.append((here, other if along[other] > BETWEEN else -1))
    return out
