"""Answers that are made of several statistics: a probability given a condition, and how many.

P(A | B) is the ratio of the means of A ∧ B and B over the same orbit. Its error is that of the mean of
(A ∧ B − r B) / E[B], batch by batch (the delta method): the two move together, and most of their noise cancels.
A count's mean has the error of its statistic; its distribution is made from its value after every sweep, with the
error of batch means for each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from definetti.diagnose import half_width, standard_error, weighted_mean
from definetti.errors import Notice
from definetti.inference.assemble import Estimated, number
from definetti.model.marginals import Count, Estimate

MOST_VALUES = 100  # of a distribution; more are gathered


def ratio(made: Estimated, top: int, bottom: int, size: int, text: str) -> tuple[Estimate, list[Notice]]:
    """The answer to `A | B` from the statistics of A ∧ B and of B."""
    batches, lengths = made.estimates.batches, made.draws.lengths
    above, below = (float(made.estimates.value[k]) for k in (top, bottom))
    if not below > 0:
        said = Notice("few-samples", f"the condition of {text!r} was true in no draw: nothing is known of it")
        return Estimate(np.nan, None, None, None, size, half_width=None), [said]
    r = min(max(above / below, 0.0), 1.0)
    if made.found.mcse[top] == 0 and made.found.mcse[bottom] == 0:
        return Estimate(r, 0.0, None, None, size), []
    line = (batches[:, :, top] - r * batches[:, :, bottom])[:, :, None] / below
    error, dof = standard_error(line, lengths)
    met = below * made.draws.sweeps * made.draws.chains  # draws in which the condition was true, at most so many
    error = np.maximum(error, np.where(r in (0.0, 1.0), 1.0 / max(met, 1.0), 0.0))
    wide = np.minimum(half_width(error, dof), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ess = r * (1 - r) / error**2
    rhat = np.fmax(made.found.rhat[top], made.found.rhat[bottom])
    return Estimate(
        r, number(error[0]), number(rhat), number(ess[0]) if np.isfinite(ess[0]) else None, size,
        estimator="ratio", half_width=number(wide[0]), constant=bool(made.found.constant[bottom]),
    ), []  # fmt: skip


def count(made: Estimated, place: int, column: int, tuples: int, answer: Mapping[str, Any]) -> Count:
    """The answer to `#…` from its statistic, the mean of `tuples` indicators, and its values after every sweep."""
    scaled = dict(answer)
    for key in ("probability", "mcse", "half_width"):
        scaled[key] = None if answer[key] is None else answer[key] * tuples
    series, lengths = made.draws.series, made.draws.lengths
    if series is None or len(series) != lengths.sum():
        return Count(**scaled, orbit_size=1)
    values = series[:, :, column]
    return Count(**scaled, orbit_size=1, std=float(values.std()), distribution=tuple(_distribution(values, lengths)))


def _distribution(values: np.ndarray, lengths: np.ndarray) -> list[dict[str, Any]]:
    low, high = int(values.min()), int(values.max())
    step = -(-(high - low + 1) // MOST_VALUES)
    bins = ((values - low) // step).astype(np.int64)
    kept = np.unique(bins)
    ends = np.cumsum(lengths)[:-1]
    means = np.stack(
        [np.stack([(part == k).mean(axis=0) for k in kept], axis=-1) for part in np.split(bins, ends)]
    )  # float64[B, C, K]
    error, dof = standard_error(means, lengths)
    wide = np.minimum(half_width(error, dof), 1.0)
    share = weighted_mean(means, lengths)
    out = []
    for k, p, half in zip(kept.tolist(), share.tolist(), wide.tolist(), strict=True):
        first = low + k * step
        row: dict[str, Any] = {"value": first} | ({"to": first + step - 1} if step > 1 else {})
        out.append(row | {"probability": p, "half_width": None if np.isnan(half) else half})
    return out
