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
        batches = made.batches.take(self.of, axis=2)
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
        return None if x is None else x.take(kept, axis=2)

    made = replace(
        draws,
        f=draws.f.take(kept, axis=2),
        g=some(draws.g),
        drawn=some(draws.drawn),
        last=None,  # the spread of single draws is not looked at here
        square=None,
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
        for row in () if x is None else x:
            total = row[:, first] + row[:, second]
            same &= ~(np.abs(total - 1.0) > ROUNDING).any(axis=0)  # unknown ones do not speak against it
    return first[same], second[same]
