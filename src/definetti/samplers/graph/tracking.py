"""Tracked literals of a factor graph, counted in the states of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.samplers.graph.lanes import Block

if TYPE_CHECKING:
    from definetti.samplers.graph.fields import FieldsBlock

MOST_PLANES = 40  # bits of a count of sweeps


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

    def arrays(self) -> dict[str, np.ndarray]:
        return {"hits": self._hits}

    def take(self) -> np.ndarray:
        """int64[M, lanes]: hits since the last call."""
        taken, self._hits = self._hits, np.zeros_like(self._hits)
        return taken


class BitFollower:
    """The same where a word holds the values of 64 lanes: ones are counted in bit planes, at a fraction of the cost."""

    def __init__(self, block: FieldsBlock, members: Members) -> None:
        from definetti.samplers.kernels import bit_counters as kernels

        self._kernels, self._block, self._members = kernels, block, members
        self._looks = np.array(0)
        count = len(members.variable)
        self._counter = np.arange(count, dtype=np.int32)
        self._planes = np.zeros((MOST_PLANES, count, block.words.shape[1]), np.uint64)

    def look(self) -> None:
        self._kernels.count_up(self._block.words, self._members.variable, self._counter, self._planes)
        self._looks += 1

    def arrays(self) -> dict[str, np.ndarray]:
        return {"planes": self._planes, "looks": self._looks}

    def take(self) -> np.ndarray:
        ones = np.zeros((len(self._counter), 64 * self._planes.shape[2]), np.int64)
        looks = int(self._looks)
        self._kernels.read_all(self._planes, looks, ones)
        zero = self._members.value[:, None] == 0
        np.subtract(looks, ones, out=ones, where=zero)
        self._looks[...] = 0
        return ones[:, : self._block.lanes]


def follower(block: Any, members: Members) -> Follower | BitFollower:
    return BitFollower(block, members) if getattr(block, "wide", False) else Follower(block, members)
