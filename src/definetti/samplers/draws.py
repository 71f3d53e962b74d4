"""Draws: what sampling leaves behind, chains folded into batch means of orbit statistics.

A statistic is the mean, over the orbit of a literal or of a tuple of literals, of its indicator: F of the mathematics. Beside it stands G,
the mean of the full conditionals at the updates. Every estimator is arithmetic on these streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Draws:
    """Batch means of K statistics over C chains and B batches of `lengths` sweeps each."""

    f: np.ndarray  # float64[B, C, K]: F at sweeps' ends
    last: np.ndarray  # float64[B, C, K]: F at the last sweep of the batch alone (its spread is that of single draws)
    g: np.ndarray | None  # float64[B, C, K]: conditionals; NaN for statistics that have none
    lengths: np.ndarray  # int64[B]
    burn_in: int = 0

    @property
    def sweeps(self) -> int:
        return int(self.lengths.sum())

    @property
    def chains(self) -> int:
        return self.f.shape[1]


class Batch(NamedTuple):
    """One batch under way to `Draws`; arrays are float64[C, K]."""

    length: int
    f: np.ndarray
    last: np.ndarray
    g: np.ndarray | None


def merge_pairs(batches: Sequence[Batch]) -> list[Batch]:
    """Neighbouring batches as one, weighted by their lengths (an odd one at the end stays)."""
    pairs = zip(batches[::2], batches[1::2], strict=False)
    return [_merged(a, b) for a, b in pairs] + list(batches[len(batches) - len(batches) % 2 :])


def _merged(a: Batch, b: Batch) -> Batch:
    length = a.length + b.length
    f = (a.length * a.f + b.length * b.f) / length
    g = None if a.g is None or b.g is None else (a.length * a.g + b.length * b.g) / length
    return Batch(length, f, b.last, g)


def draws_of(batches: Sequence[Batch], shape: tuple[int, int], burn_in: int, conditionals: bool) -> Draws:
    """The batches stacked; `shape` (chains, statistics) is needed where there are none yet."""
    empty = np.zeros((0, *shape))
    return Draws(
        f=np.stack([b.f for b in batches]) if batches else empty,
        last=np.stack([b.last for b in batches]) if batches else empty,
        g=(np.stack([b.g for b in batches if b.g is not None]) if batches else empty) if conditionals else None,
        lengths=np.array([b.length for b in batches], dtype=np.int64),
        burn_in=burn_in,
    )
