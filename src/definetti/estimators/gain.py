"""What the symmetries and the estimator gained over the standard one, and whether the chains move within orbits.

The standard estimator's variance comes from tracked members (`samplers/draws.py`): the spread of their batch
means around the orbit's estimate, averaged over members and chains. Of an orbit of one the statistic is its own
member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.diagnose import Diagnosis, standard_error
from definetti.errors import Notice
from definetti.estimators.values import METHODS, Estimates
from definetti.samplers.draws import Draws, Tracked

DIVIDED = 0.1  # of a member's variance lies between chains: R-hat 1.05
FALSE_ALARM = 1e-4
FEWEST_SWEEPS = 20  # tracked: in fewer, members may well stay where they are by chance


@dataclass(frozen=True, eq=False)
class Gains:
    """Per statistic: variance of the standard estimator ÷ that of the one used, and its standard error; NaN:
    unknown."""

    gain: np.ndarray
    error: np.ndarray

    def summary(self) -> dict[str, float] | None:
        """The geometric mean over the statistics that are known, and its standard error as a factor."""
        known = np.isfinite(self.gain) & (self.gain > 0)
        if not known.any():
            return None
        relative = self.error[known] / self.gain[known]
        return {
            "mean": float(np.exp(np.log(self.gain[known]).mean())),
            "factor": float(np.exp(np.sqrt((relative**2).mean()))),
            "least": float(self.gain[known].min()),
            "most": float(self.gain[known].max()),
            "statistics": int(known.sum()),
        }


def gains(draws: Draws, estimates: Estimates, found: Diagnosis) -> Gains:
    count = len(estimates.value)
    variance, relative = np.full(count, np.nan), np.full(count, np.nan)
    alone = draws.sizes[:count] == 1
    if alone.any():
        error, dof = standard_error(draws.f[:, :, alone], draws.lengths)
        variance[alone], relative[alone] = error**2 * draws.sweeps * draws.chains, 2.0 / np.maximum(dof, 1.0)
    if draws.tracked is not None:
        _of_members(draws.tracked, estimates.value, alone, variance, relative)
    own = found.mcse**2 * draws.sweeps * draws.chains
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(own > 0, variance / own, np.nan)
        error = gain * np.sqrt(relative + 2.0 / np.maximum(found.dof, 1.0))
    return Gains(gain, error)


def _of_members(
    tracked: Tracked, value: np.ndarray, alone: np.ndarray, variance: np.ndarray, relative: np.ndarray
) -> None:
    """Asymptotic variance per sweep of one member's mean, and the squared relative error of that."""
    cells = tracked.means.shape[0] * tracked.means.shape[1]
    if cells < 2 or not len(tracked.statistic):
        return
    spread = tracked.lengths[:, None, None] * (tracked.means - value[tracked.statistic]) ** 2
    parts = _by_orbit(tracked)
    by_cell = parts.mean(spread[:, :, parts.order]).reshape(cells, -1)
    mean = by_cell.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(mean > 0, by_cell.var(axis=0, ddof=1) / cells / mean**2, np.nan)
    several = ~alone[parts.statistic]
    variance[parts.statistic[several]], relative[parts.statistic[several]] = mean[several], noise[several]


@dataclass(frozen=True, eq=False)
class _Parts:
    """Tracked members sorted by statistic: those of statistic[k] begin at first[k]."""

    order: np.ndarray  # int64[M]
    first: np.ndarray  # int64[S]
    count: np.ndarray  # int64[S]
    statistic: np.ndarray  # int64[S]

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Over the members of each statistic; x[..., M] is sorted."""
        return np.add.reduceat(x, self.first, axis=-1) / self.count


def _by_orbit(tracked: Tracked) -> _Parts:
    order = np.argsort(tracked.statistic, kind="stable")
    statistic, first, count = np.unique(tracked.statistic[order], return_index=True, return_counts=True)
    return _Parts(order, first, count, statistic)


def report(draws: Draws, estimates: Estimates, found: Diagnosis, method: str) -> dict[str, Any]:
    """For the run: how many statistics each estimator made, and the gain over `standard`."""
    if method == "standard" or not len(estimates.value) or not draws.f.shape[0]:
        return {}
    count = np.bincount(estimates.method, minlength=len(METHODS))
    choices = {name: int(n) for name, n in zip(METHODS, count, strict=True) if n}
    return {"choices": choices, "gain": gains(draws, estimates, found).summary()}


def within_orbits(draws: Draws, name: Callable[[int], str]) -> list[Notice]:
    """A notice where members of orbits never move, or the chains disagree about them though their orbits' means
    agree."""
    if draws.tracked is None or draws.chains < 2:
        return []
    if not len(draws.tracked.statistic) or draws.tracked.lengths.sum() < FEWEST_SWEEPS:
        return []
    parts = _by_orbit(draws.tracked)
    x = draws.tracked.means[:, :, parts.order]
    stuck = _frozen(x, parts)
    frozen, divided = (parts.statistic[which & (parts.count > 1)] for which in (stuck, ~stuck & _divided(x, parts)))
    out = []
    for places, what in ((frozen, "no member ever moved"), (divided, "members' values differ between chains for good")):
        if len(places):
            which = f"in {len(places)} orbits, that of {name(int(places[0]))} among them, {what}"
            text = (
                f"{which}: averages over orbits stand, asymmetric questions (that distinguish members) are not covered"
            )
            out.append(Notice("note", text))
    return out


def _frozen(x: np.ndarray, parts: _Parts) -> np.ndarray:
    """bool[S]: every member of every chain is 0 throughout or 1 throughout, and both occur in one chain."""
    zero, one = (x == 0).all(axis=0), (x == 1).all(axis=0)
    still = np.logical_and.reduceat((zero | one).all(axis=0), parts.first)
    both = np.logical_or.reduceat(zero, parts.first, axis=1) & np.logical_or.reduceat(one, parts.first, axis=1)
    return still & both.any(axis=0)


def _divided(x: np.ndarray, parts: _Parts) -> np.ndarray:
    """bool[S]: members' means differ between chains by more than their batches explain (F test as if all members were
    one)."""
    from scipy.special import fdtri

    batches, chains, _ = x.shape
    if batches < 2:
        return np.zeros(len(parts.first), dtype=bool)
    common = parts.mean(x)
    p = common.mean(axis=(0, 1))
    x = x - np.repeat(common, parts.count, axis=2)  # what the orbit's mean does is another matter
    within = parts.mean(x.var(axis=0, ddof=1).mean(axis=0)) / batches
    between = parts.mean(x.mean(axis=0).var(axis=0, ddof=1))
    much = between - within > DIVIDED * p * (1 - p)
    return much & (between > fdtri(chains - 1, chains * (batches - 1), 1 - FALSE_ALARM) * within)
