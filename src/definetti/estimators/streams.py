"""What fitting and choosing look at: the streams of draws with nothing unknown in them, at full length or condensed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from definetti.samplers.draws import Draws


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
