"""Draws: what sampling leaves behind, chains folded into batch means of orbit statistics.

A statistic is the mean, over the orbit of a literal or of a tuple of literals, of its indicator: F of the
mathematics. Beside it stands G, the mean of the full conditionals at the updates. Every estimator is arithmetic on
these streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti.samplers.tracking import Tracked


@dataclass(frozen=True, eq=False)
class Draws:
    """Batch means of K statistics over C chains and B batches of `lengths` sweeps each.

    The spread of single draws comes from `square`, the mean of F², or from `last`, F at each batch's last sweep alone.
    """

    f: np.ndarray  # float64[B, C, K]: F at sweeps' ends
    g: np.ndarray | None  # float64[B, C, K]: conditionals; NaN for statistics that have none
    lengths: np.ndarray  # int64[B]
    sizes: np.ndarray  # int64[K]: how many indicators F is the mean of
    last: np.ndarray | None = None  # float64[B, C, K]
    square: np.ndarray | None = None  # float64[B, C, K]
    drawn: np.ndarray | None = None  # float64[B, C, K]: F at the updates that G is taken at, where that is not `f`
    groups: np.ndarray | None = None  # int64[K]: statistics of the values of one variable have one number
    tracked: Tracked | None = None  # single members, in a few batches
    burn_in: int = 0
    unfinished: bool = False  # states inside the first sweep, before anything was folded: no error can be told

    @property
    def sweeps(self) -> int:
        return int(self.lengths.sum())

    @property
    def chains(self) -> int:
        return self.f.shape[1]

    @property
    def paired(self) -> np.ndarray:
        """float64[B, C, K]: F at the updates that G is taken at; at sweeps' ends where there were none."""
        return self.f if self.drawn is None else np.where(np.isnan(self.drawn), self.f, self.drawn)

    @property
    def differences(self) -> np.ndarray:
        """float64[B, C, K]: D = F − G at the same updates, of mean 0; 0 where it is unknown."""
        assert self.g is not None
        return np.nan_to_num((self.f if self.drawn is None else self.drawn) - self.g, nan=0.0)

    @property
    def squares(self) -> np.ndarray:
        """float64[B, C, K]: F², averaged over a batch or taken at its end."""
        if self.square is not None:
            return self.square
        assert self.last is not None
        return self.last**2


def merge_pairs(batches: Sequence[np.ndarray], lengths: Sequence[int]) -> list[np.ndarray]:
    """Neighbouring batches as one, weighted by their lengths (an odd one at the end stays)."""
    out = []
    for k in range(0, len(batches) - 1, 2):
        a, b = lengths[k], lengths[k + 1]
        out.append((a * batches[k] + b * batches[k + 1]) / (a + b))
    if len(batches) % 2:
        out.append(batches[-1])
    return out
