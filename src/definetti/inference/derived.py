"""Answers that are made of several statistics: a probability given a condition, and how many.

P(A | B) is the ratio of the means of A ∧ B and B over the same orbit. Its error is that of the mean of
(A ∧ B − r B) / E[B], batch by batch (the delta method): the two move together, and most of their noise cancels.
A count's mean has the error of its statistic; its distribution is made from its value after every sweep, with the
error of batch means for each value. Both kinds of model and all samplers come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.diagnose import half_width, one_event, standard_error, unmet, weighted_mean
from definetti.errors import Notice
from definetti.inference.assemble import Estimated, answer, number
from definetti.inference.stopping import Look
from definetti.model.marginals import Count, Estimate
from definetti.modes.mixture import combined, still
from definetti.samplers.draws import Draws

MOST_VALUES = 100  # of a distribution; more are gathered


@dataclass(frozen=True)
class Derived:
    """A query and the statistics that its answer is made of: one of a formula, or of how many; two of `A | B`, those
    of A ∧ B and of B."""

    text: str
    columns: tuple[int, ...]
    size: int  # tuples that are averaged over
    tallied: int = -1  # of a count: which one of those whose values are kept
    proved: Callable[[float], bool] | None = None  # whether a ratio of 0 or 1 is certain

    def after(self, columns: int) -> Derived:
        """The same where so many statistics stand before these."""
        return replace(self, columns=tuple(columns + k for k in self.columns))


def answers(made: Estimated, queries: Iterable[Derived]) -> tuple[dict[str, Estimate], list[Notice]]:
    """The answers by text, and what there is to say of them."""
    found: dict[str, Estimate] = {}
    said: list[Notice] = []
    for query in queries:
        if len(query.columns) == 2:
            found[query.text], more = _ratio(made, query)
            said += more
            continue
        fields = answer(made.estimates, made.found, made.found.half_width, np.array(query.columns))
        if query.tallied < 0:
            found[query.text] = Estimate(**fields, orbit_size=query.size)
        else:
            found[query.text] = _count(made, query, fields)
    return found, said


def with_ratios(look: Look, made: Estimated, queries: Iterable[Derived]) -> Look:
    """A look at the errors of statistics, where some answers are ratios of them: those have larger errors."""
    worst = look.half_width
    for query in queries:
        if len(query.columns) == 2 and worst is not None:
            half = _ratio(made, query)[0].half_width
            worst = None if half is None else max(worst, float(half))  # type: ignore[arg-type]
    return Look(worst, look.rhat, look.apart)


def _mean(
    made: Estimated, batches: Callable[[Any, Any], np.ndarray], values: Callable[[Any], np.ndarray] | None = None,
    scale: float = 1.0, least: Callable[[Any, Any], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Numbers made of batch means (from estimates and draws, float64[B, C, K]): their values, errors and degrees of
    freedom; of a mixture, over its regions. `values`: what estimates make of the same numbers; `scale`: the most that
    one of them can be; `least`: what events that were not met may add to the errors."""
    parts = [(made.estimates, made.draws)] if made.regions is None else made.regions.parts
    means, errors, degrees = [], [], []
    for estimates, draws in parts:
        line = batches(estimates, draws)
        error, dof = standard_error(line, draws.lengths)
        error = error if least is None else np.hypot(error, least(estimates, draws))
        means.append(weighted_mean(line, draws.lengths) if values is None else values(estimates))
        errors.append(np.where(np.isnan(error), 1.0, error) if made.regions is not None else error)
        degrees.append(dof)
    if made.regions is None:
        return means[0], errors[0], degrees[0]
    shares, weights, left_out = made.regions.shares, made.regions.errors, made.regions.left_out
    return combined(np.stack(means), np.stack(errors), np.stack(degrees), shares, weights, scale * left_out)


def _ratio(made: Estimated, query: Derived) -> tuple[Estimate, list[Notice]]:
    """The answer to `A | B` from the statistics of A ∧ B and of B."""
    top, bottom = query.columns
    above, below = (float(made.estimates.value[k]) for k in query.columns)
    if not below > 0:
        said = Notice("few-samples", f"the condition of {query.text!r} was true in no draw: nothing is known of it")
        return Estimate(np.nan, None, None, None, query.size, half_width=None), [said]
    r = min(max(above / below, 0.0), 1.0)
    known = made.found.mcse[top] == 0 and made.found.mcse[bottom] == 0
    if known or (r in (0.0, 1.0) and query.proved is not None and query.proved(r)):
        return Estimate(r, 0.0, None, None, query.size), []

    def left(batches: np.ndarray) -> np.ndarray:
        return (batches[:, :, top] - r * batches[:, :, bottom])[:, :, None] / below

    def line(estimates: Any, _: Any) -> np.ndarray:
        return left(estimates.batches)

    def value(estimates: Any) -> np.ndarray:
        return np.array([estimates.value[top] - r * estimates.value[bottom]]) / below

    def least(estimates: Any, draws: Any) -> np.ndarray:
        moved = one_event(draws.f[:, :, [top]], draws.lengths) / below
        return unmet(line(estimates, draws), draws.lengths, left(draws.f), moved) + unseen(draws) + elsewhere(draws)

    def unseen(draws: Any) -> float:
        """Of a mixture: where the ratio was 0 or 1 in a region, one draw may have been missed, as in plain numbers."""
        f = draws.f[:, :, top]
        steady = made.regions is not None and (not f.any() or np.array_equal(f, draws.f[:, :, bottom]))
        return 1.0 / (below * draws.sweeps * draws.chains) if steady else 0.0

    def elsewhere(draws: Any) -> float:
        """How far states that the draws cannot show may move the ratio."""
        return 0.0 if draws.left_out is None else (draws.left_out[top] + r * draws.left_out[bottom]) / below

    _, error, dof = _mean(made, line, value, 1.0 / below, least)
    met = below * made.draws.sweeps * made.draws.chains  # draws in which the condition was true, at most so many
    error = np.maximum(error, 1.0 / max(met, 1.0) if r in (0.0, 1.0) else 0.0)
    wide = np.minimum(half_width(error, dof), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ess = r * (1 - r) / error**2
    rhat = np.fmax(made.found.rhat[top], made.found.rhat[bottom])
    return Estimate(
        r, number(error[0]), number(rhat), number(ess[0]) if np.isfinite(ess[0]) else None, query.size,
        estimator="ratio", half_width=number(wide[0]), constant=bool(made.found.constant[bottom]),
    ), []  # fmt: skip


def _count(made: Estimated, query: Derived, fields: dict[str, Any]) -> Count:
    """The answer to `#…` from its statistic, the mean of indicators, and its values after every sweep."""
    for key in ("probability", "mcse", "half_width"):
        fields[key] = None if fields[key] is None else fields[key] * query.size
    parts = [made.draws] if made.regions is None else [draws for _, draws in made.regions.parts]
    if any(draws.tallies is None for draws in parts):
        return Count(**fields, orbit_size=1)
    met = np.unique(np.concatenate([_values(rows, query.tallied) for d in parts for rows in d.tallies or ()]))
    if not len(met):
        return Count(**fields, orbit_size=1)
    step = -(-int(met[-1] - met[0] + 1) // MOST_VALUES)
    bins = np.unique((met - met[0]) // step)

    def shares(_: Any, draws: Any) -> np.ndarray:
        return _shares(draws, query.tallied, bins, lambda value: (value - met[0]) // step)

    def moments(_: Any, draws: Any) -> np.ndarray:
        held = _shares(draws, query.tallied, met, lambda value: value)
        return np.stack([held @ (met - met[0]), held @ (met - met[0]) ** 2], axis=-1)

    def least(_: Any, draws: Any) -> np.ndarray:
        """In a region of a mixture a value that was met always, or never, may have missed one draw."""
        one = 1.0 / (draws.sweeps * draws.chains) if made.regions is not None else 0.0
        return np.where(still(shares(_, draws)), one, 0.0)

    share, error, dof = _mean(made, shares, least=least)
    (first, second), _, _ = _mean(made, moments)
    wide = np.minimum(half_width(error, dof), 1.0)
    rows = []
    for k, p, half in zip(bins.tolist(), share.tolist(), wide.tolist(), strict=True):
        value = int(met[0]) + k * step
        row: dict[str, Any] = {"value": value} | ({"to": value + step - 1} if step > 1 else {})
        rows.append(row | {"probability": p, "half_width": None if np.isnan(half) else half})
    std = float(np.sqrt(max(second - first**2, 0.0)))
    return Count(**fields, orbit_size=1, std=std, distribution=tuple(rows))


def _values(rows: np.ndarray, which: int) -> np.ndarray:
    return rows[rows[:, 0] == which, 1]


def _shares(draws: Draws, which: int, keys: np.ndarray, key: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """float64[B, C, keys]: in which share of a batch's sweeps a count had a value of each key."""
    out = np.zeros((len(draws.lengths), draws.chains, len(keys)))
    for held, rows, length in zip(out, draws.tallies or (), draws.lengths.tolist(), strict=True):
        mine = rows[rows[:, 0] == which]
        np.add.at(held.T, np.searchsorted(keys, key(mine[:, 1])), mine[:, 2:] / length)
    return out
