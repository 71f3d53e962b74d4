"""Divergence over time, by three kinds of runs of the shipped engines.

`paper_curves` follow the paper: one chain of Gibbs sampling by uniform random scan from all false plus evidence, no
warm-up, every update a sample. `mcsat_curves` are MC-SAT, every sample kept. `auto_curves` are what `dft.marginals`
does by default: several chains, a warm-up that is found, control variates. Standard and orbit estimates come from the
same samples. Times are CPU seconds of sampling, so that a busy machine does not bend the curves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from definetti.experiments.figure import Row
from definetti.experiments.targets import Target

STANDARD, ORBIT = "Gibbs, standard", "Gibbs, orbit"
MCSAT_STANDARD, MCSAT_ORBIT = "MC-SAT, standard", "MC-SAT, orbit"
AUTO = "definetti, auto"
EXACT_ONE, EXACT_ALL = "exact, one marginal", "exact, all marginals"
CROWD, CROWD_CLOSE = "auto, prior log(n/10)", "auto, prior log(n/10), shares within 1 %"
PER_DECADE = 4  # points of a curve


def ladder(first: int, last: int, per_decade: int = PER_DECADE) -> list[int]:
    """Whole numbers from `first` to `last`, evenly spread on a logarithmic axis."""
    count = max(2, 1 + round(per_decade * np.log10(last / first)))
    return np.unique(np.geomspace(first, last, count).round().astype(np.int64)).tolist()


def point(curve: str, run: int, updates: int, samples: int, seconds: float, found: dict[str, float]) -> Row:
    return {"curve": curve, "run": run, "updates": updates, "samples": samples, "seconds": seconds, **found}


def both(target: Target, means: np.ndarray, names: tuple[str, str], at: tuple[int, int, int, float]) -> list[Row]:
    """The points of the standard and of the orbit estimates that the same samples make."""
    standard, orbit = target.standard(means), target.orbit(target.over_orbits(means))
    return [point(names[0], *at, standard), point(names[1], *at, orbit)]


def paper_curves(
    model: Any, target: Target, runs: int, updates: int, start: Any = 0, seed: int = 100,
    names: tuple[str, str] = (STANDARD, ORBIT),
) -> list[Row]:  # fmt: skip
    """`runs` chains of the paper's protocol, looked at from one sweep on. `start`: a value, a state, or a function of
    the seed that makes one."""
    from definetti.samplers.every_update import every_update

    rows = []
    for run in range(runs):
        first: Any = start(seed + run) if callable(start) else start
        chain, seconds, done = every_update(model, start=first, seed=seed + run), 0.0, 0
        for stop in ladder(target.variables, updates):
            began = time.process_time()
            chain.advance(stop - done)
            seconds, done = seconds + time.process_time() - began, stop
            rows += both(target, chain.means(), names, (run, stop, stop, seconds))
    return rows


def mcsat_curves(
    model: Any, target: Target, runs: int, samples: int, seed: int = 100, sampler: Any = "mcsat",
    names: tuple[str, str] = (MCSAT_STANDARD, MCSAT_ORBIT),
) -> list[Row]:  # fmt: skip
    """`runs` chains of MC-SAT (or another sampler of whole states) without warm-up."""
    rows = []
    for run in range(runs):
        stops = set(ladder(1, samples))
        total, seconds = np.zeros(len(target.orbit_of)), 0.0
        for count, state, took in _states(model, sampler, samples, seed + run):
            total += state
            seconds += took
            if count in stops:
                rows += both(target, total / count, names, (run, count * target.variables, count, seconds))
    return rows


def _states(model: Any, sampler: Any, samples: int, seed: int) -> Iterator[tuple[int, np.ndarray, float]]:
    """The states of one chain, and the CPU seconds that each took."""
    from definetti.inference.draws.sample import sample

    draws = sample(model, sampler=sampler, chains=1, draws=samples, burn_in=0, seed=seed, workers=1)
    with np.errstate(over="ignore"):
        run, count = draws.start(), 0
        states = run.snapshots(1)
        while count < samples:
            began = time.process_time()
            state = next(states)[0, 0]
            took = time.process_time() - began
            count += 1
            yield count, state, took
        states.close()


def exact_draw(model: Any, seed: int) -> np.ndarray:
    """One state of a Markov logic network from its very distribution, by lifted counting."""
    return next(_states(model, "lifted", 1, seed))[1]


def auto_curves(
    model: Any, group: Any, target: Target, runs: int, sweeps: Sequence[int], seed: int = 100, name: str = AUTO,
    **options: Any,
) -> list[Row]:  # fmt: skip
    """Default runs of Gibbs sampling of several lengths, each one by itself; updates and time include the warm-up."""
    from definetti.inference.marginals import marginals

    settings = {"sampler": "gibbs", "workers": 1, "symmetries": group} | options
    marginals(model, sweeps=1, chains=1, seed=0, **{k: v for k, v in settings.items() if k != "chains"})  # compiles
    rows = []
    for run in range(runs):
        for k, length in enumerate(sweeps):
            answer = marginals(model, sweeps=length, seed=seed + 1000 * k + run, **settings)
            means = np.array([np.ravel(answer[row].probability)[-1] for row in target.names])
            chains = answer.run["chains"]
            at = (run, answer.run["updates"], chains * length, sampling_seconds(answer))
            rows.append(point(name, *at, target.orbit(means)))
    return rows


def sampling_seconds(answer: Any) -> float:
    """CPU seconds of sampling; of a mixture of several runs, which does not keep them, its wall time."""
    seconds = answer.run["seconds"]
    return seconds.get("sample_cpu", seconds["sample"])


# --- reading curves --------------------------------------------------------------------------------------------------


def summary(rows: Sequence[Row], what: str = "kl") -> list[Row]:
    """One row for each curve and each of its points: means over runs (of divergences the geometric one, beside the
    smallest and the largest)."""
    grouped: dict[tuple[str, int], list[Row]] = {}
    order: dict[tuple[str, int], int] = {}
    for row in rows:
        place = order.setdefault((row["curve"], row["run"]), 0)
        order[row["curve"], row["run"]] += 1
        grouped.setdefault((row["curve"], place), []).append(row)
    out = []
    for (curve, _), some in grouped.items():
        values = np.maximum([row[what] for row in some], TINY)
        means = {key: float(np.mean([row[key] for row in some])) for key in ("updates", "samples", "seconds")}
        middle = float(np.exp(np.log(values).mean()))
        out.append({"curve": curve, **means, "value": middle, "low": values.min(), "high": values.max()})
    return out


TINY = 1e-17  # an error of zero, on a logarithmic axis


def last(rows: Sequence[Row], curve: str, what: str = "kl") -> Row:
    """The end of a curve."""
    return [row for row in summary(rows, what) if row["curve"] == curve][-1]


def at_time(rows: Sequence[Row], curve: str, seconds: float, what: str = "kl") -> float:
    """A curve's value at a time, by interpolation of logarithms; beyond its end by the law 1/t of a mean's error."""
    points = sorted((row["seconds"], row["value"]) for row in summary(rows, what) if row["curve"] == curve)
    x, y = np.log([max(p[0], 1e-9) for p in points]), np.log([p[1] for p in points])
    t = np.log(seconds)
    if t >= x[-1]:
        return float(np.exp(y[-1] - (t - x[-1])))
    return float(np.exp(np.interp(t, x, y)))
