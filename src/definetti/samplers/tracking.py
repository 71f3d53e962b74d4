"""Tracked members: up to 64 members of each orbit are followed by themselves, in a few batches only.

What they are for: the error that the standard estimator would have had, and whether the chains move within orbits at
all. Following every sweep would cost a call per sweep; a few whole batches tell as much as is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti.samplers.graph.fields import FieldsBlock
from definetti.samplers.graph.lanes import Block

MEMBERS = 64  # of an orbit
MOST = 4096  # in all
MOST_PLANES = 40  # bits of a count of sweeps
EVERY, EVERY_OPEN = 8, 16  # batches between two tracked ones, in runs of known and of unknown length


@dataclass(frozen=True, eq=False)
class Tracked:
    """Means over batches of single members' indicators."""

    statistic: np.ndarray  # int64[M]: whose orbit a member belongs to
    means: np.ndarray  # float64[R, C, M]
    lengths: np.ndarray  # int64[R]


@dataclass(frozen=True, eq=False)
class Members:
    """The literals to track."""

    variable: np.ndarray  # int32[M]
    value: np.ndarray  # uint8[M]
    statistic: np.ndarray  # int64[M]: whose orbit a member belongs to


class Follower:
    """Counts the members that hold in the lanes of a block, sweep after sweep."""

    def __init__(self, block: Block, members: Members) -> None:
        self._block, self._members = block, members
        self._hits = np.zeros((len(members.variable), block.lanes), np.int64)

    def look(self) -> None:
        values = self._block.state.take(self._members.variable, axis=0)[:, : self._block.lanes] & self._block.mask
        self._hits += values == self._members.value[:, None]

    def take(self) -> np.ndarray:
        """int64[M, lanes]: hits since the last call."""
        taken, self._hits = self._hits, np.zeros_like(self._hits)
        return taken


class BitFollower:
    """The same where a word holds the values of 64 lanes: ones are counted in bit planes, at a fraction of the cost."""

    def __init__(self, block: FieldsBlock, members: Members) -> None:
        from definetti.samplers.kernels import bit_counters as kernels

        self._kernels, self._block, self._members, self._looks = kernels, block, members, 0
        count = len(members.variable)
        self._counter = np.arange(count, dtype=np.int32)
        self._planes = np.zeros((MOST_PLANES, count, block.words.shape[1]), np.uint64)

    def look(self) -> None:
        self._kernels.count_up(self._block.words, self._members.variable, self._counter, self._planes)
        self._looks += 1

    def take(self) -> np.ndarray:
        ones = np.zeros((len(self._counter), 64 * self._planes.shape[2]), np.int64)
        self._kernels.read_all(self._planes, self._looks, ones)
        zero = self._members.value[:, None] == 0
        np.subtract(self._looks, ones, out=ones, where=zero)
        self._looks = 0
        return ones[:, : self._block.lanes]


def follower(block: Block, members: Members) -> Follower | BitFollower:
    return BitFollower(block, members) if isinstance(block, FieldsBlock) and block.wide else Follower(block, members)


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
