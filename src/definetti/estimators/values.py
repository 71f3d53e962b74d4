"""What an estimator is given and what it returns: streams of F and G at full length or condensed, and estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from definetti.estimators import ESTIMATORS
from definetti.samplers.draws import Draws

METHODS = tuple(name for name in ESTIMATORS if name != "auto")
STANDARD, ORBIT, CONDITIONAL, CONTROL = (METHODS.index(n) for n in ("standard", "orbit", "conditional", "control"))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Per statistic: its estimate, and the batch means [batches, chains, statistics] whose spread is its error."""

    value: np.ndarray
    batches: np.ndarray
    fallback: np.ndarray  # bool: the estimator does not apply to this statistic, the orbit mean stands in
    method: np.ndarray  # int8: which of METHODS made it


# --- streams with nothing unknown in them -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Streams:
    """Batch means [B, C, K] of K statistics over C chains and B batches of `lengths` sweeps."""

    f: np.ndarray  # at sweeps' ends
    g: np.ndarray  # conditionals; F where there are none
    paired: np.ndarray  # F at the updates that G is taken at
    d: np.ndarray  # D = F − G at the same updates, of mean 0; 0 where it is unknown
    lengths: np.ndarray  # int64[B]
    groups: np.ndarray  # int64[K]: statistics of the values of one variable have one number
    known: np.ndarray  # bool[K]: there are conditionals

    def condensed(self, count: int) -> Streams:
        """Neighbouring batches as one, so that at most `count` are left."""
        if count >= len(self.lengths):
            return self
        starts = np.arange(count) * len(self.lengths) // count
        lengths = np.add.reduceat(self.lengths, starts)
        share = self.lengths / np.repeat(lengths, np.diff(starts, append=len(self.lengths)))

        def mean(x: np.ndarray) -> np.ndarray:
            parts = np.split(np.arange(len(share)), starts[1:])
            return np.stack([np.einsum("b,bck->ck", share[part], x[part[0] : part[-1] + 1]) for part in parts])

        f = mean(self.f)
        paired = f if self.paired is self.f else mean(self.paired)
        return replace(self, f=f, g=mean(self.g), paired=paired, d=mean(self.d), lengths=lengths)


def streams(draws: Draws) -> Streams:
    assert draws.g is not None
    missing = np.isnan(draws.g)
    known = np.asarray(~missing.all(axis=(0, 1)))
    groups = np.arange(draws.f.shape[2]) if draws.groups is None else draws.groups
    g = np.where(missing, draws.f, draws.g) if missing.any() else draws.g
    if draws.drawn is None:
        return Streams(draws.f, g, draws.f, draws.f - g, draws.lengths, groups, known)
    return Streams(draws.f, g, draws.paired, draws.differences, draws.lengths, groups, known)


# --- one statistic of two ---------------------------------------------------------------------------------------------
# Where a variable has two values, the second's F, G and estimates are one minus the first's. Fitting and choosing see
# the first alone, which halves their work and makes the two add up to 1 exactly.

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
