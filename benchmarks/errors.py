"""Estimators past the paper: MSE beside `standard` at equal samples, KL at equal time, and what `until` promises.

Coverage of the error bars is a family of its own, `intervals.py`.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from error_models import STRONG, people, town, truth
from measuring import Row
from repetitions import CHAINS, Case, folded, fours, kind, orbits_of, run, statistics

import definetti as dft
from definetti.estimators import ESTIMATORS
from definetti.model.logic.text import find_atom

LOGIC_CHAINS = 8  # the default


TASKS = ("gains", "time", "until", "until-time")


def rows(quick: bool, only: tuple[str, ...] = TASKS) -> list[Row]:
    repetitions = 60 if quick else 400
    work = {
        "gains": lambda: (
            squared_errors("smokers n=6", people(6), repetitions, {"smokes": 3000, "friends": 1e5})
            + squared_errors("strong n=6", people(6, STRONG), repetitions, {"smokes": 2, "friends": 60})
        ),
        "time": lambda: equal_time(quick),
        "until": lambda: [row for goal in (2e-4, 3e-5) for row in until(goal, 20 if quick else 100)],
        "until-time": lambda: until_time(3e-5, 4 if quick else 20),
    }
    return [row for task in only for row in work[task]()]


# --- gains ----------------------------------------------------------------------------------------------


def squared_errors(name: str, model: Any, repetitions: int, wanted: dict[str, float]) -> list[Row]:
    """MSE of `standard` ÷ MSE of the others, 4 chains × 500 sweeps, geometric mean over the atoms of a type."""
    case = Case(name, model, "literals")
    single, orbit = statistics(case, "standard"), statistics(case, "orbit")
    draws = run(single.question, "standard", repetitions * CHAINS, 500, 7)
    groups = list(fours(folded(draws, orbits_of(single, orbit), orbit)))
    plain = np.stack([ESTIMATORS["standard"](g).value[single.columns] for g in fours(draws)])
    standard = ((plain - single.truth) ** 2).mean(axis=0)
    out = []
    for method in ("orbit", "conditional", "control", "auto"):
        made = np.stack([ESTIMATORS[method](g).value[orbit.columns] for g in groups])
        own = ((made - orbit.truth) ** 2).mean(axis=0)
        for k in ("smokes", "cancer", "friends"):
            ratio = float(np.exp(np.log(standard[single.kinds == k]).mean() - np.log(own[orbit.kinds == k]).mean()))
            target = wanted.get(k) if method in ("control", "auto") else None
            out.append(Row(f"MSE gain, {name}, {method}, {k}", ratio, "×", target, note=f"{repetitions} repetitions"))
    return out


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Mean KL(p‖q) of binary variables, 1e-9 where a denominator is 0."""
    p, q = np.clip(p, 0, 1), np.clip(q, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(p > 0, p * np.log(p / np.maximum(q, 1e-9)), 0.0)
        two = np.where(p < 1, (1 - p) * np.log((1 - p) / np.maximum(1 - q, 1e-9)), 0.0)
    return float((one + two).mean())


def equal_time(quick: bool) -> list[Row]:
    """Average KL(estimate‖truth) of `standard` ÷ that of `auto` after the same time of sampling."""
    out = []
    seconds = 3.0 if quick else 20.0
    for n, evidence in ((50, False), (100, False), (50, True), (100, True)):
        model = people(n, evidence=town(n) if evidence else "")
        names = [name for name, e in dft.marginals(model, sweeps=20, seed=1).variables() if e.mcse != 0.0]
        answers = {
            m: np.array([p[v].probability for v in names])
            for m in ("standard", "auto")
            for p in [dft.marginals(model, estimator=m, seconds=seconds, seed=5)]
        }
        solved = dft.exact(model) if evidence else None
        exact = np.array([solved[v].probability if solved else truth(n)[kind(v)] for v in names])
        ratio = divergence(answers["standard"], exact) / max(divergence(answers["auto"], exact), 1e-300)
        text = f"{seconds:g} s each"
        what = f"n={n}{', evidence' if evidence else ''}"
        out.append(Row(f"KL gain at equal time, {what}", ratio, "×", 100.0 if evidence else 1e4, note=text))
    return out


# --- stopping -------------------------------------------------------------------------------------------


def until(goal: float, repetitions: int) -> list[Row]:
    """`until` on friends and smokers n=6: how often the half-width holds, and how many more sweeps it took, warm-up
    included, than an oracle that knows when 95 % of runs are within the goal."""
    model, query, exact = people(6), "smokes(P0)", truth(6)["smokes"]
    held, sweeps = [], []
    for seed in range(repetitions):
        found = dft.marginals(model, [query], sampler="gibbs", until=goal, seed=seed)
        held.append(abs(found[query].probability - exact) <= goal)
        sweeps.append(found.run["sweeps"] + found.run["burn_in"])
    burn_in = found.run["burn_in"]
    middle = int(np.median(sweeps))
    needed = oracle(model, query, exact, goal, [middle // 4, middle], max(repetitions, 40)) + burn_in
    note = f"{repetitions} runs; median {middle} sweeps, an oracle {needed:.0f}"
    return [
        Row(f"until {goal:g}, half-width holds", float(np.mean(held)), "of runs", 0.93, note=note),
        Row(f"until {goal:g}, sweeps ÷ an oracle's", middle / needed, "×", 2.0, at_least=False),
    ]


def until_time(goal: float, repetitions: int) -> list[Row]:
    """The same by the clock, n=50: looking at the errors takes time as well. Runs and an oracle's take turns."""
    model, query, exact = people(50), "smokes(P0)", truth(50)["smokes"]
    first = [dft.marginals(model, [query], sampler="gibbs", until=goal, seed=seed).run for seed in range(3)]
    middle, burn_in = int(np.median([run["sweeps"] for run in first])), first[0]["burn_in"]
    needed = round(oracle(model, query, exact, goal, [middle // 4, middle], 40))
    took = {"until": [], "oracle": []}
    for seed in range(repetitions):
        for name, told in (("until", {"until": goal}), ("oracle", {"sweeps": needed, "burn_in": burn_in})):
            began = time.perf_counter()
            run = dft.marginals(model, [query], sampler="gibbs", seed=seed, **told).run
            took[name].append(time.perf_counter() - began - run["seconds"]["symmetries"] - run["seconds"]["compile"])
    ratio = float(np.median(took["until"]) / np.median(took["oracle"]))
    note = f"{repetitions} runs; median {np.median(took['until']):.2f} s, an oracle {np.median(took['oracle']):.2f} s"
    return [Row(f"until {goal:g} at n=50, time ÷ an oracle's", ratio, "×", 2.0, at_least=False, note=note)]


def oracle(model: Any, query: str, exact: float, goal: float, lengths: list[int], repetitions: int) -> float:
    """Sweeps after which 1.96 true spreads are the goal. The spread is measured at two lengths, since errors of
    control variates fall faster than with the root of the sweeps; the runs are groups of chains of one, without a
    survey of modes each."""
    case = Case("oracle", model)
    of = statistics(case, "auto")
    column = of.columns[of.question.group.orbit_number(*find_atom(model, query))]
    spread = []
    for sweeps in lengths:
        draws = run(of.question, "auto", repetitions * LOGIC_CHAINS, sweeps, 11)
        made = [ESTIMATORS["auto"](part).value[column] for part in fours(draws, LOGIC_CHAINS)]
        spread.append(1.96 * np.sqrt(np.mean((np.array(made) - exact) ** 2)))
    power = np.log(spread[0] / spread[1]) / np.log(lengths[1] / lengths[0])
    return float(lengths[1] * (spread[1] / goal) ** (1.0 / power))


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(row.name, row.value, row.unit, row.wanted, row.passed, row.note, flush=True)
