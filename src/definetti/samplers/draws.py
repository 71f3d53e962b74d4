"""Draws: what sampling leaves behind, chains folded into batch means of orbit statistics.

A statistic is the mean, over the orbit of a literal or of a tuple of literals, of its indicator: F of the
mathematics. Beside it stands G, the mean of the full conditionals at the updates. Every estimator is arithmetic on
these streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from definetti.samplers.conditionals import Balance


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
    warm: tuple[np.ndarray, np.ndarray] | None = None  # windows of the warm-up: int64[W] sweeps, float64[W, K] means
    frozen: np.ndarray | None = None  # int64: variables that could not move at any update of any chain
    forced: np.ndarray | None = None  # int64[2, m]: variables that no chain could move because they have one value
    balance: Balance | None = None  # draws against full conditionals at the states that were emitted
    tallies: tuple[np.ndarray, ...] | None = None  # of each batch: how often counts had which values (`tally`)
    left_out: np.ndarray | None = None  # float64[K]: how far states that the draws cannot show may move each mean
    unfinished: bool = False  # states inside the first sweep, before anything was folded: no error is known

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
        """float64[B, C, K]: F², averaged over a batch; from single draws by their distance from the batch's mean, which
        is never less than no spread at all."""
        if self.square is not None:
            return self.square
        assert self.last is not None
        return self.f**2 + (self.last - self.f) ** 2


def with_more(values: np.ndarray, count: int) -> np.ndarray:
    """As many of them, the largest for those that are not known."""
    return np.append(values[:count], np.full(max(count - len(values), 0), values.max(initial=0.0)))


class Batch(NamedTuple):
    """One batch under way to `Draws`; arrays are float64[C, K]. One of `last` and `square` is there."""

    length: int
    f: np.ndarray
    g: np.ndarray | None
    last: np.ndarray | None = None
    square: np.ndarray | None = None
    drawn: np.ndarray | None = None
    tally: np.ndarray | None = None  # int64[rows, 2 + C]: which count, its value, in how many sweeps of each chain
    energy: np.ndarray | None = None  # float64[2, C, levels]: means of log densities on a ladder, and of their squares


def tally(values: np.ndarray) -> np.ndarray:
    """int64[rows, 2 + C] from the counts after every sweep, float64[sweeps, C, S]: memory for the values that counts
    had, not for sweeps."""
    sweeps, chains, count = values.shape
    rows = [np.zeros((0, 2 + chains), np.int64)]
    for s in range(count):
        met, which = np.unique(values[:, :, s], return_inverse=True)
        table = np.zeros((len(met), chains), np.int64)
        np.add.at(table, (which.reshape(sweeps, chains), np.arange(chains)), 1)
        rows.append(np.column_stack([np.full(len(met), s), met.astype(np.int64), table]))
    return np.concatenate(rows)


def merge_pairs(batches: Sequence[Batch]) -> list[Batch]:
    """Neighbouring batches as one, weighted by their lengths (an odd one at the end stays)."""
    pairs = zip(batches[::2], batches[1::2], strict=False)
    return [_merged(a, b) for a, b in pairs] + list(batches[len(batches) - len(batches) % 2 :])


BATCHES = 32  # of a run of known length; those that grow are merged in pairs when there are twice as many


def _merged(a: Batch, b: Batch) -> Batch:
    length = a.length + b.length

    def weighted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = a.length * x
        out += b.length * y
        out /= length
        return out

    def mean(x: np.ndarray | None, y: np.ndarray | None) -> np.ndarray | None:
        return None if x is None or y is None else weighted(x, y)

    return Batch(
        length, weighted(a.f, b.f), mean(a.g, b.g), b.last, mean(a.square, b.square), mean(a.drawn, b.drawn),
        _added(a.tally, b.tally), mean(a.energy, b.energy),
    )  # fmt: skip


def _added(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    if a is None or b is None:
        return None
    rows = np.concatenate([a, b])
    met, which = np.unique(rows[:, :2], axis=0, return_inverse=True)
    table = np.zeros((len(met), rows.shape[1] - 2), np.int64)
    np.add.at(table, which.ravel(), rows[:, 2:])
    return np.column_stack([met, table])


def draws_of(batches: Sequence[Batch], sizes: np.ndarray, chains: int, burn_in: int) -> Draws:
    """The batches stacked; `sizes` are those of the statistics."""
    empty = np.zeros((0, chains, len(sizes)))

    def stack(parts: list[np.ndarray | None]) -> np.ndarray | None:
        known = [part for part in parts if part is not None]
        return np.stack(known) if known else None

    kept = [b.tally for b in batches if b.tally is not None]
    return Draws(
        f=np.stack([b.f for b in batches]) if batches else empty,
        g=stack([b.g for b in batches]),
        lengths=np.array([b.length for b in batches], dtype=np.int64),
        sizes=sizes,
        last=stack([b.last for b in batches]),
        square=stack([b.square for b in batches]),
        drawn=stack([b.drawn for b in batches]),
        burn_in=burn_in,
        tallies=tuple(kept) if batches and len(kept) == len(batches) else None,
    )


# --- tracked members --------------------------------------------------------------------------------------------------
# Up to 64 members of each orbit are followed by themselves, for the error that the standard estimator would have had,
# and to see whether the chains move within orbits at all. Following every sweep would cost a call per sweep; a few
# whole batches say as much as is needed.

MEMBERS = 64  # of an orbit
MOST_MEMBERS = 4096  # in all
EVERY, EVERY_OPEN = 8, 16  # batches between two tracked ones, and where they grow


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
    long = longest(list(zip(lengths, means, strict=True)))
    return Tracked(statistic, np.stack([m for _, m in long]), np.array([n for n, _ in long], dtype=np.int64))


def longest(batches: Sequence[tuple[int, np.ndarray]]) -> list[tuple[int, np.ndarray]]:
    """Of tracked batches, given with their lengths: those at least half as long as the longest. The others are never
    looked at again, so that a run of days keeps no more of them than one of minutes."""
    most = max(length for length, _ in batches)
    return [(length, means) for length, means in batches if 2 * length >= most]


def is_tracked(batch: int, grows: bool) -> bool:
    return batch % (EVERY_OPEN if grows else EVERY) == 0


def pick_members(orbit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places of the members to track, given the orbit of each candidate (-1: none); orbits of one are known without."""
    shuffled = rng.permutation(np.flatnonzero(orbit >= 0))
    _, orbits = np.unique(orbit[shuffled], return_inverse=True)
    if not len(shuffled):
        return shuffled
    order = np.argsort(orbits.ravel(), kind="stable")
    first = np.searchsorted(orbits.ravel()[order], np.arange(orbits.max() + 1))
    rank = np.arange(len(order)) - first[orbits.ravel()[order]]
    most = min(MEMBERS, max(2, MOST_MEMBERS // (int(orbits.max()) + 1)))
    return shuffled[order[rank < most]][: 2 * MOST_MEMBERS]
