"""From estimates of statistics to answers: errors, and the notices that say which numbers cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.diagnose import FEWEST_CARRIERS, Diagnosis, carriers, diagnose, weighted_mean
from definetti.errors import Notice
from definetti.estimators.values import METHODS, ORBIT, Estimates
from definetti.model.marginals import Estimate, OrbitRow
from definetti.samplers.draws import Draws

MOST_RHAT = 1.05
FEWEST_ESS = 100.0
ROUNDING = 1e-14
PROVEN = 1e-12  # a probability that is at most this far from 0 or 1 in every state is known


@dataclass(frozen=True, eq=False)
class Estimated:
    """Estimates of the statistics and their errors, with the draws that they were made from (of a mixture those of the
    heaviest region, and all `regions`)."""

    estimates: Estimates
    found: Diagnosis
    draws: Draws
    regions: Regions | None = None


@dataclass(frozen=True, eq=False)
class Regions:
    """What the regions of a mixture say, their shares, and the errors of the logarithms of these."""

    parts: tuple[tuple[Estimates, Draws], ...]
    shares: np.ndarray
    errors: np.ndarray
    left_out: float  # the share that regions which were dropped may have


def judge(
    estimates: Estimates,
    draws: Draws,
    certain: np.ndarray,
    bounds: np.ndarray | float = 0.0,
    least_variance: np.ndarray | float = 0.0,
) -> Diagnosis:
    """Errors of the estimates. `certain`: what the model alone makes known (see `certain_statistics`), NaN elsewhere,
    and `bounds`: how far off that may be; `least_variance`: what the model says of errors beside the draws (see
    `rare_neighbours`).

    A statistic that never moved is exact only where it is certain. Otherwise it is rare, and its conditionals say how
    rare; or no update could have moved it, and it is frozen; or nothing is known.
    """
    found = diagnose(estimates.batches, draws.lengths, draws.f, draws.squares, draws.sizes, events(draws))
    if not draws.f.shape[0]:
        return found
    if draws.unfinished:
        unknown = np.full_like(found.mcse, np.nan)
        return replace(found, mcse=unknown, rhat=unknown, ess=unknown)
    still = draws.f[0, 0]
    g = np.full_like(still, np.nan) if draws.g is None else weighted_mean(draws.g, draws.lengths)
    exact = found.constant & (np.abs(still - certain) < 1e-12)
    frozen = found.constant & ~exact & (np.abs(g - still) < 1e-12)
    rare = np.where(np.isnan(found.mcse), np.nan, np.sqrt(np.maximum(g * (1 - g), 0.0) / (draws.sweeps * draws.chains)))
    rare = np.where(estimates.method <= ORBIT, rare, found.mcse)  # the conditionals have an error of their own
    mcse = np.where(found.constant, np.where(frozen, np.nan, rare), found.mcse)
    mcse = np.maximum(mcse, np.sqrt(least_variance))
    known = exact | (np.abs(estimates.value - certain) < 1e-12)  # a conditional that depends on nothing is the answer
    # conditionals that were the same in all states met: those not met have a probability of about one in the draws
    unmet = ~known & (mcse < ROUNDING)
    mcse = np.where(known, bounds, np.where(unmet, 1.0 / (draws.sweeps * draws.chains), mcse))
    if draws.left_out is not None:
        mcse = np.where(known | np.isnan(mcse), mcse, np.hypot(mcse, draws.left_out))
    rhat = np.where(known & (np.asarray(bounds) > 0), 1.0, found.rhat)  # in no state is it otherwise
    ess = np.where(known | unmet | found.constant, np.nan, found.ess)  # no spread to compare the error with
    return replace(found, mcse=np.minimum(mcse, 1.0), rhat=rhat, ess=ess, frozen=frozen)  # of a probability


def events(draws: Draws) -> np.ndarray:
    """float64[B, C, K]: batch means in which single events show: of the conditionals, of F where there are none."""
    return draws.f if draws.g is None else np.where(np.isnan(draws.g), draws.f, draws.g)


def concentrated_notices(draws: Draws, name: Callable[[int], str]) -> list[Notice]:
    """Numbers that a few batches make (`diagnose.carriers`)."""
    if draws.g is None or draws.unfinished or not draws.f.size:
        return []
    fewest, batches = carriers(draws.g), draws.g[:, :, 0].size
    if not len(fewest) or fewest.min() >= min(FEWEST_CARRIERS, batches / 2):
        return []
    k = int(fewest.argmin())
    text = f"about {fewest[k]:.0f} of {batches} batches carry {name(k)}: what it stands for is visited too rarely"
    return [Notice("few-samples", text)]


def answer(estimates: Estimates, found: Diagnosis, half_width: np.ndarray, columns: np.ndarray) -> dict[str, Any]:
    """The fields of an `Estimate` from the statistics of a variable's values: lists, or numbers where one column, or
    that of value 1 of two, says all. `half_width` is that of all statistics."""
    if len(columns) == 2:
        columns = columns[1:]
    fields = {
        "probability": np.clip(estimates.value[columns], 0.0, 1.0),
        "mcse": found.mcse[columns],
        "rhat": found.rhat[columns],
        "ess": found.ess[columns],
        "half_width": half_width[columns],
    }
    made: dict[str, Any] = {"estimator": METHODS[estimates.method[columns[0]]]} if len(columns) else {}
    if len(columns) == 1:
        made["constant"] = bool(found.constant[columns[0]])
        return made | {key: number(value[0]) for key, value in fields.items()}
    made["constant"] = found.constant[columns].tolist()
    return made | {key: [number(v) for v in value] for key, value in fields.items()}


def number(value: float) -> float | None:
    """None for what is not known; an infinite R-hat stays, since it says much."""
    return None if np.isnan(value) else float(value)


def cut_notices(values: np.ndarray) -> list[Notice]:
    """Fitted estimates can leave [0, 1]; they are cut to it."""
    outside = int(((values < -ROUNDING) | (values > 1 + ROUNDING)).sum())
    if not outside:
        return []
    return [Notice("note", f"{outside} estimates outside [0, 1] were cut to it; their errors are as they were")]


def fallback_notices(fallback: np.ndarray, method: str) -> list[Notice]:
    if not fallback.any():
        return []
    if method == "control":
        why = "too few batches to fit control variates, or none that vary,"
        text = f"{why} for {int(fallback.sum())} numbers; 'orbit' was used for them"
        return [Notice("fallback", text)]
    return [Notice("fallback", f"the estimator {method!r} does not apply to joint queries; 'orbit' was used for them")]


def doubts(rows: Sequence[OrbitRow], asked: Mapping[str, Estimate]) -> list[Notice]:
    """What fails: R-hat above 1.05, effective size below 100, or no standard error or no R-hat at all (for want of
    sweeps, or of any draw that differs)."""
    printed = [(row.representative, row) for row in rows] + list(asked.items())
    loose, few, unknown, unsure, still = [], [], [], [], []
    total = sum(len(_list(row.mcse)) for _, row in printed)
    for name, row in printed:
        constant = np.broadcast_to(row.constant, len(_list(row.mcse))).tolist()
        for mcse, rhat, ess, same in zip(_list(row.mcse), _list(row.rhat), _list(row.ess), constant, strict=True):
            if mcse == 0.0:
                continue
            if mcse is None:
                unknown.append(name)
            elif rhat is None:
                (still if same else unsure).append(name)
            elif rhat > MOST_RHAT:
                loose.append((rhat, name))
            elif ess is not None and ess < FEWEST_ESS:
                few.append((ess, name))

    def many(doubtful: Sequence[object]) -> str:
        return f"{len(doubtful)} of {total} numbers"

    out = []
    if loose:
        worst, name = max(loose)
        text = f"R-hat is above {MOST_RHAT} for {many(loose)}, the worst {worst:.3g} for {name}"
        out.append(Notice("not-mixed", text))
    if few:
        worst, name = min(few)
        text = f"the effective size is below {FEWEST_ESS:.0f} for {many(few)}, the smallest {worst:.3g} for {name}"
        out.append(Notice("few-samples", text))
    if unknown:
        text = f"too few draws for an error of {many(unknown)}, {unknown[0]} among them"
        out.append(Notice("few-samples", text))
    if unsure:
        text = f"too few sweeps to decide whether the chains have mixed for {many(unsure)}, {unsure[0]} among them"
        out.append(Notice("few-samples", text))
    if still:
        text = f"constant in all draws: {many(still)}, {still[0]} among them. What was not met is rare, or out of reach"
        out.append(Notice("few-samples", text + "; R-hat cannot decide which"))
    return out


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
