"""What a run keeps for those who look at its convergence: the batch means of at most 200 orbits.

Running estimates, their half-widths and R-hat over time are worked out when somebody asks (`Trace.to_json`), from the
batch means that the answer itself was made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from definetti.diagnose import MANY_CHAINS, Diagnosis, half_width, split_rhat, standard_error
from definetti.estimators.gain import gains
from definetti.estimators.values import METHODS, Estimates
from definetti.samplers.draws import Draws

MOST = 200  # orbits
MOST_TIMES = 100  # points of a curve
DIGITS = 6  # of a number in a file
RELEVANT, WEIGHT_DEGREES = 1e-3, 15.0  # as `modes/mixture.py` has them


@dataclass(frozen=True, eq=False)
class Curves:
    """Per time and orbit: the estimate from all batches so far, its half-width and R-hat; NaN: not known yet."""

    sweeps: np.ndarray  # int64[T]: kept sweeps of each chain
    value: np.ndarray  # float64[T, k]
    half_width: np.ndarray
    rhat: np.ndarray


@dataclass(frozen=True, eq=False)
class Trace:
    """Batch means [B, C, k] of k orbits, or values of orbits, with what the estimators made of them."""

    names: tuple[str, ...]
    sizes: np.ndarray  # int64[k]
    lengths: np.ndarray  # int64[B]: sweeps of the batches
    batches: np.ndarray  # of the estimator that was used
    f: np.ndarray  # of the draws
    squares: np.ndarray
    method: tuple[str, ...]  # the estimator of each
    half_width: np.ndarray  # float64[k], of the estimator that was used
    standard: np.ndarray  # float64[k], of the standard estimator; NaN: unknown
    burn_in: int
    warm_lengths: np.ndarray  # int64[W]: sweeps of the windows of the warm-up
    warm: np.ndarray  # float64[W, k]: means over chains

    @cached_property
    def curves(self) -> Curves:
        count = len(self.lengths)
        ends = np.unique(np.linspace(1, count, min(count, MOST_TIMES)).round().astype(np.int64)) if count else []
        sweeps = np.cumsum(self.lengths)
        shape = (len(ends), len(self.names))
        value, half, rhat = (np.full(shape, np.nan) for _ in range(3))
        total = np.cumsum(self.lengths[:, None, None] * np.nan_to_num(self.batches), axis=0)
        known = np.cumsum(self.lengths[:, None, None] * ~np.isnan(self.batches), axis=0)
        for at, end in enumerate(ends):
            with np.errstate(invalid="ignore", divide="ignore"):
                means = total[end - 1] / known[end - 1]
                value[at] = total[end - 1].sum(axis=0) / known[end - 1].sum(axis=0)
            half[at] = self._half_width(means, int(end))
            rhat[at] = split_rhat(self.f[:end], self.lengths[:end], self.squares[:end], self.sizes)[0]
        return Curves(sweeps[np.asarray(ends, dtype=np.int64) - 1], value, half, rhat)

    def _half_width(self, means: np.ndarray, end: int) -> np.ndarray:
        """Of the first batches: by the spread of chains where there are many, else as `diagnose` does it."""
        if len(means) >= MANY_CHAINS:
            error, dof = standard_error(means[None], np.ones(1, np.int64))
        else:
            error, dof = standard_error(self.batches[:end], self.lengths[:end])
        return np.minimum(half_width(error, dof), 1.0)

    @cached_property
    def orbit(self) -> np.ndarray:
        """float64[k]: the half-width of the plain mean over orbits, from the same draws."""
        return np.minimum(half_width(*standard_error(self.f, self.lengths)), 1.0)

    def to_json(self) -> dict[str, Any]:
        """Numbers with six digits; null for what is not known."""
        curves, orbit = self.curves, self.orbit
        return {
            "burn_in": self.burn_in,
            "sweeps": curves.sweeps.tolist(),
            "warm_up": np.cumsum(self.warm_lengths).tolist(),
            "series": [
                {
                    "name": name,
                    "size": int(self.sizes[k]),
                    "estimator": self.method[k],
                    "value": _numbers(curves.value[:, k]),
                    "half_width": _numbers(curves.half_width[:, k]),
                    "rhat": _numbers(curves.rhat[:, k]),
                    "warm_up": _numbers(self.warm[:, k]),
                    "final": _numbers(np.array([self.half_width[k], orbit[k], self.standard[k]])),
                }
                for k, name in enumerate(self.names)
            ],
        }


@dataclass(frozen=True, eq=False)
class MixedTrace(Trace):
    """Of runs that are confined to regions: at every time the mixture of what they say so far. The inherited fields
    are those of the heaviest region."""

    parts: tuple[Trace, ...]
    shares: np.ndarray  # of the regions
    errors: np.ndarray  # of the logarithms of their weights
    left_out: float  # the share that regions which were dropped may have

    @cached_property
    def curves(self) -> Curves:
        found = [part.curves for part in self.parts]
        values = np.stack([one.value for one in found])
        half = self._mixed(values, np.stack([one.half_width for one in found]))
        counts = self.shares >= RELEVANT
        rhat = np.fmax.reduce([one.rhat for one, relevant in zip(found, counts, strict=True) if relevant])
        return Curves(found[0].sweeps, np.tensordot(self.shares, values, 1), half, rhat)

    @cached_property
    def orbit(self) -> np.ndarray:
        return self._mixed(np.stack([part.curves.value[-1] for part in self.parts]),
                           np.stack([part.orbit for part in self.parts]))  # fmt: skip

    def _mixed(self, values: np.ndarray, widths: np.ndarray) -> np.ndarray:
        """Half-widths of the mixture: those of the regions, of their weights, and of what was left out. What never
        moved in a region has no error there."""
        shares = self.shares.reshape(-1, *[1] * (values.ndim - 1))
        apart = shares * (values - np.tensordot(self.shares, values, 1)) * self.errors.reshape(shares.shape)
        wide = float(half_width(np.ones(1), np.full(1, WEIGHT_DEGREES))[0])
        total = (shares * np.nan_to_num(widths)) ** 2 + (wide * apart) ** 2
        made = np.minimum(np.sqrt(total.sum(axis=0) + (wide * self.left_out) ** 2), 1.0)
        return np.where(np.isnan(widths).all(axis=0), np.nan, made)


def mixed_trace(
    parts: Sequence[Trace | None], shares: np.ndarray, errors: np.ndarray, left_out: float
) -> MixedTrace | None:
    """Of the same statistics in every region; a run that was interrupted is as long as its shortest part."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    length = min(len(part.lengths) for part in known)
    cut = tuple(
        replace(part, lengths=part.lengths[:length], batches=part.batches[:length], f=part.f[:length],
                squares=part.squares[:length]) for part in known
    )  # fmt: skip
    first = cut[int(shares.argmax())]
    own: dict[str, Any] = {one.name: getattr(first, one.name) for one in fields(first)}
    own["standard"] = np.full(len(first.names), np.nan)
    return MixedTrace(**own, parts=cut, shares=shares, errors=errors, left_out=left_out)


def _numbers(values: np.ndarray) -> list[float | None]:
    return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values.tolist()]


def trace(
    draws: Draws,
    estimates: Estimates,
    found: Diagnosis,
    asked: np.ndarray,
    rows: np.ndarray,
    size_of: np.ndarray,
    name: Callable[[int], str],
) -> Trace | None:
    """Of the statistics `asked`, then those of `rows`: the widest and the least mixed first, then the largest orbits.

    `size_of` and `name` are of statistics.
    """
    if not draws.f.shape[0] or draws.unfinished:
        return None
    chosen = _chosen(found, asked, rows, size_of)
    method = tuple(METHODS[m] for m in estimates.method[chosen])
    gain = _of_pairs(gains(draws, estimates, found).gain, draws.groups)[chosen]
    with np.errstate(invalid="ignore"):
        standard = np.minimum(np.sqrt(gain) * found.half_width[chosen], 1.0)
    lengths, warm = (np.zeros(0, np.int64), np.zeros((0, 0))) if draws.warm is None else draws.warm
    padded = np.full((len(lengths), found.mcse.size), np.nan)
    padded[:, : warm.shape[1]] = warm
    return Trace(
        names=tuple(name(k) for k in chosen.tolist()),
        sizes=draws.sizes[chosen],
        lengths=draws.lengths,
        batches=estimates.batches.take(chosen, axis=2),
        f=draws.f.take(chosen, axis=2),
        squares=draws.squares.take(chosen, axis=2),
        method=method,
        half_width=found.half_width[chosen],
        standard=standard,
        burn_in=draws.burn_in,
        warm_lengths=np.asarray(lengths, dtype=np.int64),
        warm=padded[:, chosen],
    )


def _of_pairs(gain: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Of the two values of a binary variable one alone is tracked: the other has the same spread."""
    if groups is None or not len(gain):
        return gain
    group = groups[: len(gain)]
    of_group = np.full(int(group.max()) + 1, np.nan)
    known = np.isfinite(gain)
    of_group[group[known]] = gain[known]
    pair = np.bincount(group, minlength=len(of_group)) == 2
    return np.where(known | ~pair[group], gain, of_group[group])


def _chosen(found: Diagnosis, asked: np.ndarray, rows: np.ndarray, size_of: np.ndarray) -> np.ndarray:
    room = max(MOST - len(asked), 0)
    if len(rows) <= room:
        return np.unique(np.concatenate([asked, rows]).astype(np.int64))
    quarter = room // 4
    wide = rows[np.argsort(-np.nan_to_num(found.half_width[rows], nan=np.inf), kind="stable")[:quarter]]
    loose = rows[np.argsort(-np.nan_to_num(found.rhat[rows], nan=-np.inf), kind="stable")[:quarter]]
    large = rows[np.argsort(-size_of[rows], kind="stable")]
    order = np.concatenate([asked, wide, loose, large]).astype(np.int64)
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)[:MOST]])
