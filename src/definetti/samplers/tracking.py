"""Tracked members: up to 64 members of each orbit are followed by themselves, in a few batches only.

What they are for: the error that the standard estimator would have had, and whether the chains move within orbits at
all. Following every sweep would cost a call per sweep; a few whole batches tell as much as is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MEMBERS = 64  # of an orbit
MOST = 4096  # in all
EVERY, EVERY_OPEN = 8, 16  # batches between two tracked ones, in runs of known and of unknown length


@dataclass(frozen=True, eq=False)
class Tracked:
    """Means over batches of single members' indicators."""

    statistic: np.ndarray  # int64[M]: whose orbit a member belongs to
    means: np.ndarray  # float64[R, C, M]
    lengths: np.ndarray  # int64[R]


def tracked(statistic: np.ndarray, means: Sequence[np.ndarray], lengths: Sequence[int]) -> Tracked | None:
    """The longest of the batches that were tracked (an open run begins with short ones)."""
    if not len(statistic) or not lengths:
        return None
    long = [k for k, length in enumerate(lengths) if 2 * length >= max(lengths)]
    return Tracked(statistic, np.stack([means[k] for k in long]), np.array([lengths[k] for k in long], dtype=np.int64))


def is_tracked(batch: int, open_ended: bool) -> bool:
    return batch % (EVERY_OPEN if open_ended else EVERY) == 0


def pick(orbit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places of the members to track, given the orbit of each candidate (-1: none); orbits of one are known without."""
    shuffled = rng.permutation(np.flatnonzero(orbit >= 0))
    _, orbits = np.unique(orbit[shuffled], return_inverse=True)
    if not len(shuffled):
        return shuffled
    order = np.argsort(orbits.ravel(), kind="stable")
    first = np.searchsorted(orbits.ravel()[order], np.arange(orbits.max() + 1))
    rank = np.arange(len(order)) - first[orbits.ravel()[order]]
    most = min(MEMBERS, max(2, MOST // (int(orbits.max()) + 1)))
    return shuffled[order[rank < most]][: 2 * MOST]
