"""Figure 3: how long, and how many sample points, until the average KL divergence is below 10^-4, by number of people.

A chain of the paper's protocol is followed until both estimators have come there, or until its time is up: such a point
is *censored*, and drawn where it stopped. The defaults are run with 1, 2, 4, … sweeps, each run by itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from definetti.experiments import drawing, models, panels
from definetti.experiments.curves import (
    AUTO,
    CROWD,
    CROWD_CLOSE,
    EXACT_ALL,
    EXACT_ONE,
    ORBIT,
    STANDARD,
    sampling_seconds,
)
from definetti.experiments.figure import Effort, Measured, Row, Verdict
from definetti.experiments.targets import Target, target_of
from definetti.experiments.truths import CROWDS, truth

GOAL = 1e-4
PAPER = (10, 20, 30, 50, 70, 100)  # people
BEYOND = (200, 500, 1000)
MANY = 100_000  # people; one run
FEW = 2  # runs beyond 100 people
CLOSE = 0.01
GROWTH = 1.15  # of the number of samples from one look to the next
MOST_SWEEPS = 1 << 14
CROWD_LIMIT = 30.0  # seconds of a run after which no longer one is tried


Met = Callable[[Target, np.ndarray], bool]


def people(effort: Effort) -> tuple[int, ...]:
    return (10, 30, 100) if effort.quick else PAPER


def beyond(effort: Effort, transitive: bool) -> tuple[int, ...]:
    return BEYOND if not effort.quick else () if transitive else (300,)


def crowds(effort: Effort) -> tuple[int, ...]:
    """With the prior log(n/10)."""
    return CROWDS[:2] if effort.quick else CROWDS


def target(n: int, transitive: bool) -> tuple[Any, Any, Target]:
    """The model, its group and its truth: exact, or a long run that is kept."""
    model = models.smokers(n, transitive)
    group, _ = panels.partition(model)
    if transitive:
        kept = truth(f"smokers-{n}-transitive")
        return model, group, target_of(group, kept.values, kept.errors.__getitem__)
    return model, group, panels.exact_target(model, group)[0]


def until_goal(chain: Any, goal: Target, limit: float, curves: Sequence[str]) -> dict[str, Row]:
    """Follows a chain until the named estimates have come below GOAL; those that have not are censored."""
    found: dict[str, Row] = {}
    seconds, stop = 0.0, max(10, goal.variables // 10)
    while len(found) < len(curves) and seconds < limit:
        began = time.process_time()
        chain.advance(stop - chain.updates)
        seconds += time.process_time() - began
        means = chain.means()
        kl = {STANDARD: goal.standard(means)["kl"], ORBIT: goal.orbit(goal.over_orbits(means))["kl"]}
        for curve in curves:
            if curve not in found and kl[curve] < GOAL:
                found[curve] = {"seconds": seconds, "samples": chain.updates, "censored": False}
        stop = math.ceil(stop * GROWTH)
    for curve in curves:
        found.setdefault(curve, {"seconds": seconds, "samples": chain.updates, "censored": True})
    return found


def paper_rows(n: int, transitive: bool, runs: int, limit: float, curves: Sequence[str]) -> list[Row]:
    """The paper's protocol; without the standard estimate, which takes long, several runs cost little."""
    from definetti.samplers.every_update import every_update

    model, _, goal = target(n, transitive)
    rows = []
    for run in range(runs):
        for curve, row in until_goal(every_update(model, seed=run), goal, limit, curves).items():
            rows.append({"curve": curve, "people": n, "run": run, **row, "sweeps": row["samples"] / goal.variables})
    return rows


def auto_rows(
    n: int, runs: int, made: tuple[Any, Any, Target], met: Mapping[str, Met], limit: float = math.inf
) -> list[Row]:
    """For each curve of `met` the shortest default run that meets its goal, of 1, 2, 4, … sweeps; one that took longer
    than the limit is the last."""
    from definetti.inference.marginals import marginals

    model, group, goal = made
    settings = {"symmetries": group, "sampler": "gibbs", "workers": 1}
    marginals(model, sweeps=1, seed=0, **{**settings, "chains": 1, "burn_in": 0})  # compiles
    rows = []
    for run in range(runs):
        sweeps, missing = 1, dict(met)
        while missing:
            answer = marginals(model, sweeps=sweeps, seed=run, **settings)
            means = np.array([np.ravel(answer[name].probability)[-1] for name in goal.names])
            sweeps, seconds = 2 * sweeps, sampling_seconds(answer)
            last = sweeps > MOST_SWEEPS or seconds > limit
            for curve in [c for c, is_met in missing.items() if is_met(goal, means) or last]:
                row = {"seconds": seconds, "samples": answer.run["updates"]}
                row |= {"censored": not missing.pop(curve)(goal, means), "sweeps": row["samples"] / goal.variables}
                rows.append({"curve": curve, "people": n, "run": run, **row})
    return rows


def below_goal(goal: Target, means: np.ndarray) -> bool:
    return goal.orbit(means)["kl"] < GOAL


def is_close(goal: Target, means: np.ndarray) -> bool:
    """The share of true atoms of every predicate is right within CLOSE."""
    return bool((np.abs(shares(goal, means) / shares(goal, goal.truth) - 1.0) < CLOSE).all())


def shares(goal: Target, means: np.ndarray) -> np.ndarray:
    """float64[predicates]: means over all atoms of a predicate."""
    predicate = np.unique([name.split("(")[0] for name in goal.names], return_inverse=True)[1].ravel()
    return np.bincount(predicate, weights=goal.sizes * means) / np.bincount(predicate, weights=goal.sizes)


def share_error(goal: Target) -> float:
    """The largest relative standard error of a share by the truth that is kept."""
    return float((shares(goal, goal.error) / shares(goal, goal.truth)).max())


def exact_rows(n: int) -> list[Row]:
    """The exact lifted engine's time for one and for all marginals."""
    from definetti.solvers.exact import exact

    model, rows = models.smokers(n), []
    for curve, queries in ((EXACT_ONE, ["smokes(P0)"]), (EXACT_ALL, [])):
        began = time.process_time()
        exact(model, queries)
        row = {"seconds": time.process_time() - began, "samples": 0, "censored": False, "sweeps": 0}
        rows.append({"curve": curve, "people": n, "run": 0, **row})
    return rows


def crowd_rows(n: int, transitive: bool, runs: int) -> list[Row]:
    """Beyond the paper: the prior log(n/10), by which a person has about as many friends in any crowd. Whoever says
    "nobody has friends" is below GOAL from 23,000 people on, so that a second curve asks for more."""
    model = models.crowd(n, transitive)
    group, _ = panels.partition(model)
    if transitive:
        kept = truth(f"crowd-{n}-transitive")
        goal = target_of(group, kept.values, kept.errors.__getitem__)
    else:
        goal = panels.exact_target(model, group)[0]
    rows = auto_rows(n, runs, (model, group, goal), {CROWD: below_goal, CROWD_CLOSE: is_close}, CROWD_LIMIT)
    return [{**row, "truth_error": share_error(goal)} for row in rows]


def measure(transitive: bool, effort: Effort) -> Measured:
    """All curves of one of the two models."""
    limit, rows = 1.5 if effort.quick else 10.0, list[Row]()
    runs = max(2, effort.runs // 2)
    for n in people(effort):
        rows += paper_rows(n, transitive, runs if effort.quick else effort.runs, limit, (STANDARD, ORBIT))
        rows += auto_rows(n, runs, target(n, transitive), {AUTO: below_goal})
        rows += [] if transitive else exact_rows(n)
    for n in beyond(effort, transitive):
        rows += paper_rows(n, transitive, FEW, 4 * limit, (ORBIT,))
        rows += auto_rows(n, FEW, target(n, transitive), {AUTO: below_goal})
        rows += [] if transitive else exact_rows(n)
    for n in crowds(effort):
        rows += crowd_rows(n, transitive, 1 if n >= MANY else FEW)
    return Measured(rows, {"goal": GOAL, "limit": limit})


# --- reading ----------------------------------------------------------------------------------------------------------


def summary(rows: Sequence[Row], what: str) -> list[Row]:
    """Geometric means over runs, by curve and number of people."""
    grouped: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        if row[what] > 0:
            grouped.setdefault((row["curve"], row["people"]), []).append(row)
    out = []
    for (curve, n), some in grouped.items():
        values = np.array([row[what] for row in some])
        middle, censored = float(np.exp(np.log(values).mean())), any(row["censored"] for row in some)
        ends = {"low": float(values.min()), "high": float(values.max())}
        out.append({"curve": curve, "people": n, "value": middle, "censored": censored, **ends})
    return out


def exponent(rows: Sequence[Row], curve: str, what: str, most: int = 1 << 30) -> float:
    """The slope on logarithmic axes; censored points are left out."""
    points = [(r["people"], r["value"]) for r in summary(rows, what) if r["curve"] == curve and not r["censored"]]
    x, y = np.log([p for p in points if p[0] <= most]).T
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else math.nan


def value(rows: Sequence[Row], curve: str, n: int, what: str) -> Row:
    return next(r for r in summary(rows, what) if r["curve"] == curve and r["people"] == n)


def draw(measured: Measured, what: str, title: str, axis: str) -> Any:
    rows = sorted((row for row in measured.rows if row["curve"] in CURVES), key=lambda row: CURVES.index(row["curve"]))
    shown = summary(rows, what)
    said = [f"until the average KL divergence is below {GOAL:g}", "open triangles: stopped by the time limit before"]
    return drawing.lines(shown, ("people", "number of people"), ("value", axis), title, subtitle=said)


CURVES = (STANDARD, ORBIT, AUTO, EXACT_ONE, EXACT_ALL, CROWD, CROWD_CLOSE)


def draw_points(measured: Measured, title: str) -> Any:
    """Figure 3(b), (d): sample points, and the same in sweeps."""
    updates = draw(measured, "samples", title, "sample points (updates)")
    return drawing.in_rows([updates, draw(measured, "sweeps", "The same in sweeps", "sweeps over all variables")])


def of_times(figure: str, measured: Measured) -> list[Verdict]:
    """What Figure 3(a) and (c) are both asked."""
    growths = [growth(figure, measured, curve) for curve in (ORBIT, AUTO)]
    return [*growths, soon(figure, measured), growth_of_crowds(figure, measured)]


def slower_growth(figure: str, measured: Measured, what: str) -> Verdict:
    rows, name = measured.rows, {"seconds": "time", "samples": "sample points"}[what]
    standard, orbit = exponent(rows, STANDARD, what), exponent(rows, ORBIT, what, 100)
    return Verdict(
        figure,
        "“The increase in runtime is far less pronounced with the Rao-Blackwell estimator.”",
        f"{name} up to 100 people: a smaller exponent of the number of people than the standard estimator's",
        f"n^{orbit:.2f} against n^{standard:.2f} (points that met the time limit left out)",
        orbit < standard,
        paper=True,
    )


def growth(figure: str, measured: Measured, curve: str, what: str = "seconds") -> Verdict:
    found, cubic = exponent(measured.rows, curve, what), figure in ("fig3c", "fig3d")
    most = max(row["people"] for row in measured.rows if row["curve"] == curve)
    return Verdict(
        figure,
        "the estimator's “runtime is polynomial in the domain size of the MLNs”",
        f"{curve}: time grows more slowly than the number of {'ground clauses, n^3' if cubic else 'variables, n^2'}",
        f"n^{found:.2f} from 10 to {most:,} people",
        found < (3.0 if cubic else 2.0),
        paper=True,
    )


def growth_of_crowds(figure: str, measured: Measured) -> Verdict:
    rows = [row for row in measured.rows if row["curve"] == CROWD_CLOSE]
    error, found = max(row["truth_error"] for row in rows), exponent(rows, CROWD_CLOSE, "seconds")
    reached = [row for row in summary(rows, "seconds") if not row["censored"]]
    most = max((row["people"] for row in reached), default=0)
    took = max((row["value"] for row in reached), default=math.nan)
    beyond = sorted({row["people"] for row in rows if row["people"] > most})
    stopped = f"; {', '.join(f'{n:,}' for n in beyond)}: not within {CROWD_LIMIT:g} s" if beyond else ""
    return Verdict(
        figure,
        "beyond the paper: larger crowds, with the prior log(n/10), by which friends of a person stay about as many",
        "time until the share of true atoms of every predicate is right within 1 % grows more slowly than the "
        "variables, n^2; standard errors of the truth are below a third of that",
        f"n^{found:.2f}; {most:,} people ({most**2 + 2 * most:.2g} variables) in {took:.3g} CPU seconds of "
        f"sampling{stopped}; truth within {100 * error:.2g} %",
        found < 2.0 and most > max(BEYOND) and error < CLOSE / 3,
        note="The average KL divergence is below 0.0001 for whoever says that nobody has a friend, from 23,000 people "
        "on: a goal in shares tests something there too.",
    )


def soon(figure: str, measured: Measured, curve: str = AUTO, most: float = 0.1) -> Verdict:
    row = value(measured.rows, curve, 100, "seconds")
    return Verdict(
        figure,
        f"{curve}: time to an average KL divergence below {GOAL:g} at 100 people",
        f"under {most:g} CPU seconds of sampling",
        f"{row['value']:.3g} CPU seconds",
        row["value"] < most and not row["censored"],
    )


def fewer_sweeps(figure: str, measured: Measured) -> Verdict:
    """Sample points as the paper's figure has them fall only if a sweep is a point."""
    points = sorted((r["people"], r["value"]) for r in summary(measured.rows, "sweeps") if r["curve"] == ORBIT)
    updates = exponent(measured.rows, ORBIT, "samples")
    return Verdict(
        figure,
        "the number of sample points of the Rao-Blackwell estimator falls with the number of people (Figure 3(b), (d))",
        "it does if a sweep over all variables is a point; updates of single variables grow more slowly than n^2",
        f"{points[0][1]:.1f} sweeps at {points[0][0]} people, {points[-1][1]:.1f} at {points[-1][0]}; updates "
        f"n^{updates:.2f}",
        points[-1][1] < points[0][1] and updates < 2.0,
        paper=True,
        note="With a sample after every update and a start at all false, every variable must be visited a few times "
        "before the start is forgotten: at least n^2 updates, whatever the estimator.",
    )
