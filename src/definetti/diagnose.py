"""Standard errors, R-hat and effective sizes from batch means of several chains. A leaf: it knows arrays, no models.

All functions take arrays [batches, chains, statistics]. A statistic that never moved has no R-hat and no effective
size: it is *constant*, which is said by `None` downstream and never by NaN.

Standard errors are replicated batch means. With 32 chains or more the chains' means are the replicates. With fewer,
batches are merged in pairs until neighbours are nearly uncorrelated, whichever the sign: a slow chain's batch means
correlate positively and short batches understate its error; the residual of a control variate nearly telescopes, its
batch means correlate negatively and short batches overstate it. Merging leaves FEWEST_MEANS at least: an error from
four means is often much too small, which Student's t makes good at 95 %, but not at six standard errors, and its
intervals are wider on average than those of eight means.

Rare events. Where a mean comes from k events and is constant otherwise, the sum of squares S2 of its centred batch
means comes from k of them, and with S4 the sum of their fourth powers S4 / S2² ≈ 1/k; of m normal batch means it is
3/m. The excess r = S4 / S2² − 3/m, at least 0, is the `rarity`: about 1/k, and 0 where batch means look normal. It
enters in three ways:

- k events and their variance k are too small together: half an event more is counted in the variance (`HALF`), which
  gets r/2 larger.
- The variance of S2, relative to S2², is 2/(m−1) for normal batch means and r more for others (it is S4 / S2² − 1/m).
  An error has 2 over that relative variance degrees of freedom: about 2k where k events made it. A count of k events
  then has the half-width t(2k)·√(k + ½): 5.3 for one event, 4.4 for two, 6.2 for eight, while the exact upper limits
  of a Poisson mean lie 4.6, 5.2 and 7.8 above. Counts of 30 and more are hardly changed.
- What a control variate leaves can be so quiet because the events that would disturb it were not met. An event that
  was not met in N draws has a probability of the order of 1/N. Where it happens the residual is off by the order of
  the estimate's own size p(1−p) (conditionals change by factors), or of the steps a that events make of the
  conditionals, and of the draws where there are none (1 for a joint event), if these are larger. The chance that
  such kinds exist beside the k met is that of the next event being of a new kind, about 1/k (Good and Turing). So the
  variance gets r·(c·max(p(1−p), a)/N)² more, where c (`UNMET`) counts the events that such a kind might well have had.
  The ratio of two means gets the same.

A residual that vanishes in all batches, beside the spread of F (`EXACT`), has shown no event at all: the fit of few
events by as many coefficients. Then only the events of F are known. With V of them each moved the mean by p/V = e²/p,
with e the error of the mean of F, and half an event could have been of another kind: the error is at least half that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

MANY_CHAINS = 32  # with so many chains, the spread between them gives the standard error by itself
FEWEST_MEANS = 8  # means (chains, or batches of all chains) below which no standard error is given, or left by merging
CORRELATION = 0.15  # of neighbouring batch means, either sign, that is corrected for and not merged away
CONFIDENCE = 0.95
HALF = 0.5  # of an event
UNMET = 1.5  # events of a kind that was not met, by which the mean may be off
EXACT = 1e-9  # of the spread of F: a residual with less has not been disturbed by any event
BLOCK = 1 << 22  # numbers worked on at once


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Per statistic: standard error, split R-hat (infinite: chains that never move stand apart), effective size.

    NaN = not known. `constant`: it never moved; `frozen`: no update could have moved it; `dof`: the degrees of
    freedom of the standard error.
    """

    mcse: np.ndarray
    rhat: np.ndarray
    ess: np.ndarray
    constant: np.ndarray
    frozen: np.ndarray
    dof: np.ndarray

    @cached_property
    def half_width(self) -> np.ndarray:
        """Half the width of a 95 % interval, by Student's t; a probability is known to 1 without any draw."""
        return np.minimum(half_width(self.mcse, self.dof), 1.0)


def half_width(mcse: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """Half the width of a 95 % interval: mcse times the quantile of Student's t."""
    from scipy.special import ndtri, stdtrit

    at = (1 + CONFIDENCE) / 2
    finite = np.isfinite(dof) & (dof > 0)
    quantile = np.where(finite, stdtrit(np.where(finite, dof, 1.0), at), ndtri(at))
    return np.where(mcse == 0, 0.0, mcse * quantile)


def weighted_mean(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The mean over batches and chains; batches that are unknown (NaN) are left out."""
    if not np.isnan(batches).any():
        return (
            np.average(batches.mean(axis=1), axis=0, weights=lengths)
            if len(lengths)
            else np.full(batches.shape[2], np.nan)
        )
    weights = np.broadcast_to(lengths[:, None, None], batches.shape)
    known = ~np.isnan(batches)
    total = np.where(known, weights, 0).sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, batches * weights, 0.0).sum(axis=(0, 1)) / total


def chain_means(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """float64[chains, statistics]; NaN where a chain has no known batch."""
    weights = np.broadcast_to(lengths[:, None, None], batches.shape)
    known = ~np.isnan(batches)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known, batches * weights, 0.0).sum(axis=0) / np.where(known, weights, 0).sum(axis=0)


# --- standard errors -----------------------------------------------------------------------------------------------


def standard_error(batches: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per statistic the standard error of the mean over all batches and chains, and its degrees of freedom."""
    count, chains, statistics = batches.shape
    error, dof = np.full(statistics, np.nan), np.zeros(statistics)
    step = max(1, BLOCK // max(count * chains, 1))
    for at in range(0, statistics, step):
        part = slice(at, at + step)
        if chains >= MANY_CHAINS:
            means = chain_means(batches[:, :, part], lengths)
            error[part], dof[part] = _spread(means)
            rare = rarity(means)
            error[part] *= np.sqrt(1.0 + HALF * rare)
            dof[part] = np.where(dof[part] > 0, 2.0 / (2.0 / np.maximum(dof[part], 1.0) + rare), 0.0)
        else:
            error[part], dof[part] = _merged_error(batches[:, :, part], lengths)
    return error, dof


def _spread(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The error of the mean of independent means [m, statistics]; NaN where fewer than FEWEST_MEANS are known."""
    known = (~np.isnan(means)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.nansum(means, axis=0) / known
        error = np.sqrt(np.nansum((means - centre) ** 2, axis=0) / (known * (known - 1.0)))
    return np.where(known >= FEWEST_MEANS, error, np.nan), np.maximum(known - 1.0, 0.0)


def _merged_error(batches: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At the finest level of merging where neighbouring batch means are nearly uncorrelated.

    What correlation is left is corrected for: with it, a mean of many has variance (1 + 2ρ) times that of
    independent ones (to first order in 1 / batch length this removes the bias of both signs). The correction adds
    its own noise to that of the variance, about twice as much, which leaves a third of the degrees of freedom where
    batches are many.
    """
    error, dof = _spread(batches.reshape(-1, batches.shape[2]))
    undecided = ~np.isnan(error)
    while undecided.any():
        count, chains, _ = batches.shape
        variance, known = _variance(batches)
        last = (count // 2) * chains < FEWEST_MEANS or count < 2
        rho = np.zeros(len(known)) if last else lag_correlation(batches)
        take = undecided & (last | (np.abs(rho) <= CORRELATION))
        both = 2.0 * (1.0 - 1.0 / count)  # neighbours of a batch
        noise = 2.0 / np.maximum(known - 1.0, 1.0) + (0.0 if last else both**2 / ((count - 1) * chains))
        rare = rarity(batches)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(take, np.sqrt(variance * (1.0 + both * rho + HALF * rare) / known), error)
        dof = np.where(take, 2.0 / (noise + rare), dof)
        undecided &= ~take
        batches, lengths = merged(batches, lengths)
    return error, dof


def merged(batches: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbouring batches as one, weighted by lengths; unknown ones count nothing. An odd one at the end joins the
    last."""
    count = len(lengths)
    starts = np.arange(0, count - count % 2, 2) if count > 1 else np.zeros(1, np.int64)
    known = ~np.isnan(batches)
    weights = np.where(known, lengths[:, None, None], 0).astype(float)
    total = np.add.reduceat(np.where(known, batches, 0.0) * weights, starts, axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / np.add.reduceat(weights, starts, axis=0), np.add.reduceat(lengths, starts)


def _variance(batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per statistic the variance of batch means over all batches and chains, and how many are known."""
    known = (~np.isnan(batches)).sum(axis=(0, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.nansum(batches, axis=(0, 1)) / known
        return np.nansum((batches - centre) ** 2, axis=(0, 1)) / (known - 1.0), known


def rarity(batches: np.ndarray) -> np.ndarray:
    """Per statistic of [..., statistics] about 1 / (number of events that make the spread); 0 if it looks normal."""
    batches = batches.reshape(-1, batches.shape[-1])
    known = ~np.isnan(batches)
    count = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(known, batches - np.nansum(batches, axis=0) / count, 0.0)
        squared = (centred / np.abs(centred).max(axis=0, initial=0.0)) ** 2
        excess = (squared**2).sum(axis=0) / squared.sum(axis=0) ** 2 - 3.0 / count
    return np.where(excess > 0, excess, 0.0)


def least_error(
    batches: np.ndarray, lengths: np.ndarray, f: np.ndarray, seen: np.ndarray, error: np.ndarray
) -> np.ndarray:
    """What events that were not met may add to the error of an estimate (see the top of this file). `seen`: the
    conditionals, F where there are none."""
    value = np.clip(weighted_mean(batches, lengths), 0.0, 1.0)
    scale = value * (1.0 - value)
    least = unmet(batches, lengths, f, np.where(scale > 0, np.maximum(scale, one_event(seen, lengths)), 0.0))
    spread, _ = _spread(f.reshape(-1, f.shape[2]))
    exact = np.flatnonzero((error < EXACT * spread) & (scale > 0))
    if len(exact):
        of_f, _ = standard_error(f[:, :, exact], lengths)
        least[exact] = np.fmax(HALF * of_f**2 / scale[exact], least[exact])
    return np.nan_to_num(least)


def unmet(batches: np.ndarray, lengths: np.ndarray, f: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """What kinds of events that were not met may add to the error of a mean of batches, if one event moves it by so
    much; nothing if these are the draws as they are, `f`."""
    least = UNMET * np.sqrt(rarity(batches)) * moved / max(int(lengths.sum()) * batches.shape[1], 1)
    return np.where((batches == f).all(axis=(0, 1)), 0.0, least)


def one_event(batches: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """By how much one event moves a sum over sweeps: the third cumulant of batch sums over the second, which is the
    size of the steps where events come independently, and little where batch means look normal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = (batches - weighted_mean(batches, lengths)) * lengths[:, None, None]
        squares = sums * sums
        third, second = (squares * sums).sum(axis=(0, 1)), squares.sum(axis=(0, 1))
        return np.nan_to_num(np.minimum(np.abs(third) / second, 1.0))


def expected_at_most(events: int) -> float:
    """How many events may have been expected where so many were met (95 %): 3 where none was, the rule of three."""
    return events + 2.0 * events**0.5 + 3.0


FEWEST_CARRIERS = 30.0  # batches that a number rests on, or half of those there are


def carriers(batches: np.ndarray) -> np.ndarray:
    """float64[statistics]: how many batch means y carry a probability: (Σ y)² / Σ y² of y, or of 1 − y if that is
    less. A place that chains visit now and then shows here, where R-hat and the effective size look good."""
    y = batches.reshape(-1, batches.shape[2])
    with np.errstate(invalid="ignore", divide="ignore"):
        counts = [x.sum(axis=0) ** 2 / (x**2).sum(axis=0) for x in (y, 1.0 - y)]
    return np.asarray(np.fmin(*(np.where(np.isfinite(c), c, np.inf) for c in counts)))


def lag_correlation(batches: np.ndarray) -> np.ndarray:
    """Correlation of neighbouring batch means, pooled over chains, around the common mean; 0 for constants.

    Centring makes the average of products smaller by the mean's own variance: that is put back.
    """
    variance, known = _variance(batches)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = batches - np.nansum(batches, axis=(0, 1)) / known
        products = centred[1:] * centred[:-1]
        pairs = (~np.isnan(products)).sum(axis=(0, 1))
        rho = (np.nansum(products, axis=(0, 1)) / pairs + variance / known) / variance
    return np.where(np.isfinite(rho), np.clip(rho, -1.0, 1.0), 0.0)


# --- mixing --------------------------------------------------------------------------------------------------------

ROUNDING = 1e-13  # of squares: what their difference cannot show


def split_rhat(
    batches: np.ndarray, lengths: np.ndarray, squares: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split R-hat, and the variance of single draws.

    Each chain is cut into halves; the halves' means are compared with the spread of single draws within them.
    `squares` are means of F², perhaps of few draws: a rare event may be missing from them altogether. But F is a
    mean of `sizes` indicators, so F² is at least F / size, which is known from all draws.
    """
    count = len(lengths)
    if count < 4:
        nothing = np.full(batches.shape[2], np.nan)
        return nothing, nothing
    half = count // 2
    parts = [slice(0, half), slice(half, count)]
    means, square = (
        np.concatenate([np.average(x[p], axis=0, weights=lengths[p]) for p in parts]) for x in (batches, squares)
    )
    nothing = ROUNDING * (means**2).mean(axis=0)  # F of a large orbit may have a variance of 1e-18, and that is known
    within = np.maximum(square.mean(axis=0), means.mean(axis=0) / sizes) - (means**2).mean(axis=0)
    within[within <= nothing] = 0.0
    size = lengths[:half].sum()
    total = (size - 1) / size * within + means.var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = np.sqrt(total / within)
    rhat[(within == 0) & (total <= nothing)] = np.nan
    return rhat, total


def diagnose(
    batches: np.ndarray, lengths: np.ndarray, f: np.ndarray, squares: np.ndarray, sizes: np.ndarray,
    seen: np.ndarray | None = None,
) -> Diagnosis:  # fmt: skip
    """Of an estimate made from `batches`; R-hat always looks at the draws themselves, F. `seen`: the conditionals, F
    where there are none."""
    spread, dof = standard_error(batches, lengths)
    mcse = np.hypot(spread, least_error(batches, lengths, f, f if seen is None else seen, spread)) if f.size else spread
    rhat, variance = split_rhat(f, lengths, squares, sizes)
    constant = (f == f[:1, :1]).all(axis=(0, 1)) if f.size else np.ones(f.shape[2], dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        ess = variance / mcse**2
    ess[~np.isfinite(ess) | (mcse > 2.0 * spread)] = np.nan  # no spread to compare the error with
    return Diagnosis(mcse, rhat, ess, constant, np.zeros_like(constant), dof)


# --- draws against full conditionals -------------------------------------------------------------------------------


def balance_scores(
    differences: np.ndarray, lengths: np.ndarray, variance: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of differences F − G at emitted states, of mean 0 for draws of the model: per statistic the mean, and the
    logarithm of the probability that draws of the model would be as far from 0 (NaN where nothing could be tested).

    The error is that of batch means, or that of independent sites and looks (`variance` of the mean), whichever is
    larger: where an event that the conditionals expect was not met at all, batch means would see no noise. Counts of
    few events have longer tails than a normal variable. So the variance gets a third of the distance from 0 times the
    `step` by which one event moves the mean (Bernstein's inequality); events come in clumps where batch means vary more
    than independent sites would, and so much larger are the steps.
    """
    from scipy.special import log_ndtr, stdtr

    mean = weighted_mean(differences, lengths)
    error, dof = standard_error(differences, lengths)
    with np.errstate(invalid="ignore", divide="ignore"):
        noise = np.fmax(error**2, variance)
        distance = np.abs(mean) / np.sqrt(noise + np.abs(mean) * step * noise / variance / 3.0)
        tail = np.log(2.0 * stdtr(np.maximum(dof, 1.0), -distance))
        far = np.log(2.0) + log_ndtr(-distance)
    tail = np.where(np.isneginf(tail), far, tail)
    tested = (variance > 0) & ~np.isnan(error)
    return mean, np.where(tested, np.minimum(tail, 0.0), np.nan)


def family_score(tails: np.ndarray) -> float:
    """The |z| that one normal variable exceeds with the probability that any of the tests goes so far (Bonferroni); NaN
    where nothing was tested."""
    from scipy.special import ndtri_exp

    known = tails[~np.isnan(tails)]
    if not len(known):
        return float("nan")
    return 0.0 - float(ndtri_exp(min(known.min() + np.log(len(known)), 0.0) - np.log(2.0)))
