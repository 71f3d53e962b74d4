"""One statistic of two: where a variable has two values, the second's F, G and estimates are one minus the first's.

Fitting and choosing see the first alone, which halves their work and makes the two add up to 1 exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from definetti.estimators.values import Estimates
from definetti.samplers.draws import Draws

ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Halved:
    """Draws of the statistics that stand for all: statistic k is column `of[k]`, or one minus it if `mirrored[k]`."""

    draws: Draws
    of: np.ndarray  # int64[K]
    mirrored: np.ndarray  # bool[K]

    def restored(self, made: Estimates) -> Estimates:
        if not self.mirrored.any():
            return made
        batches = made.batches[:, :, self.of]
        np.subtract(1.0, batches, out=batches, where=self.mirrored)
        value = made.value[self.of]
        value = np.where(self.mirrored, 1.0 - value, value)
        return Estimates(value, batches, made.fallback[self.of], made.method[self.of])


def halved(draws: Draws) -> Halved:
    count = draws.f.shape[2]
    first, second = _pairs(draws)
    of, mirrored = np.arange(count), np.zeros(count, dtype=bool)
    mirrored[second] = True
    if not len(second):
        return Halved(draws, of, mirrored)
    of[second] = first
    kept = np.flatnonzero(~mirrored)
    of = np.searchsorted(kept, of)
    assert draws.groups is not None

    def some(x: np.ndarray | None) -> np.ndarray | None:
        return None if x is None else x[..., kept]

    made = replace(
        draws,
        f=draws.f[..., kept],
        g=some(draws.g),
        drawn=some(draws.drawn),
        last=some(draws.last),
        square=some(draws.square),
        sizes=draws.sizes[kept],
        groups=draws.groups[kept],
        tracked=None,
    )
    return Halved(made, of, mirrored)


def _pairs(draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Groups of two statistics whose F, and G, add up to 1 in every batch."""
    none = np.zeros(0, dtype=np.int64)
    if draws.groups is None:
        return none, none
    order = np.argsort(draws.groups, kind="stable")
    _, at, size = np.unique(draws.groups[order], return_index=True, return_counts=True)
    first, second = order[at[size == 2]], order[at[size == 2] + 1]
    same = np.ones(len(first), dtype=bool)
    for x in (draws.f, draws.g, draws.drawn):
        if x is not None and len(first):
            total = x[..., first] + x[..., second] - 1.0
            same &= (np.isnan(total) | (np.abs(total) < ROUNDING)).all(axis=(0, 1))
    return first[same], second[same]
