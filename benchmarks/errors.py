"""Error bars and estimators: coverage of 95 % intervals, widths, MSE beside `standard`, equal time, and `until`.

Repetitions are groups of four chains of one run: lanes share scan orders, given which they are independent, so
groups are honest repetitions of a run with four chains. The truth is exact for friends and smokers; elsewhere the
pooled mean of all repetitions' control estimates stands for it, whose error is a fortieth of one repetition's.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from error_models import STRONG, grid, people, potts, town, truth
from measuring import Row

import definetti as dft
from definetti.estimators import ESTIMATORS
from definetti.estimators.ask import GraphQuestion, ask
from definetti.estimators.assemble import judge
from definetti.estimators.logic_ask import LogicQuestion, logic_question, tied_orbits
from definetti.estimators.run import available_cores, resolve
from definetti.samplers.chains import Plan
from definetti.samplers.draws import Draws
from definetti.samplers.gibbs import Gibbs
from definetti.symmetry.logic import RenamingSymmetries

CHAINS, SWEEPS, WARM = 4, 1000, 200
AT_ONCE = 400  # chains of a run
METHODS = ("orbit", "conditional", "control", "auto")


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    model: Any
    repetitions: int
    symmetries: str = "auto"
    exact: dict[str, float] | None = None


def cases(quick: bool) -> list[Case]:
    many, some = (200, 20) if quick else (2000, 2000)
    return [
        Case("smokers n=6", people(6), many, "literals", truth(6)),
        Case("strong n=6", people(6, STRONG), many, "literals", truth(6, STRONG)),
        Case("Potts ring", potts(), many),
        Case("grid 20×20", grid(), many, "none"),
        Case("smokers n=50", people(50), some, exact=truth(50)),
        Case("n=50, evidence", people(50, evidence=town(50)), some),
    ]


def rows(quick: bool) -> list[Row]:
    out = []
    for case in cases(quick):
        out += coverage(case)
    out += squared_errors(people(6), truth(6), "smokers n=6", 60 if quick else 400, {"smokes": 3000, "friends": 1e5})
    strong = truth(6, STRONG)
    out += squared_errors(people(6, STRONG), strong, "strong n=6", 60 if quick else 400, {"smokes": 2, "friends": 60})
    out += equal_time(quick)
    return out + until(20 if quick else 400)


# --- repetitions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Runs:
    """Draws of many chains; statistic `columns[j]` is of type `kinds[j]`."""

    draws: Draws
    columns: np.ndarray
    kinds: np.ndarray

    def groups(self) -> list[Draws]:
        """Repetitions of four chains each."""
        d = self.draws
        cut = [slice(at, at + CHAINS) for at in range(0, d.chains - CHAINS + 1, CHAINS)]
        parts = ("f", "g", "last", "square")
        return [
            replace(d, **{p: None if (x := getattr(d, p)) is None else x[:, c] for p in parts}, tracked=None)
            for c in cut
        ]


def run(case: Case, method: str, chains: int, sweeps: int, seed: int) -> Runs:
    group = resolve(case.model, case.symmetries, 20.0)
    plan = Plan(chains, WARM, sweeps, seed, available_cores())
    if isinstance(group, RenamingSymmetries):
        question: LogicQuestion | GraphQuestion = logic_question(group, (), method)
    else:
        question = ask(group, (), method, seed)
    sampling = question.sampling(Gibbs(), plan, method)
    for _ in sampling.steps():
        pass
    columns, names = statistics(question)
    draws = sampling.draws()
    if isinstance(question, LogicQuestion):
        draws = replace(draws, groups=tied_orbits(question.group, draws.f.shape[2]))
    return Runs(draws, np.array(columns), np.array([kind(name) for name in names]))


def statistics(question: LogicQuestion | GraphQuestion) -> tuple[list[int], list[str]]:
    """The statistics that are answers, and a variable of each (of two values only the second)."""
    if isinstance(question, LogicQuestion):
        count = len(question.group.sizes)
        return list(range(count)), [question.group.orbits[k].representative for k in range(count)]
    model, of = question.group.model, question.names["statistic_of"]
    columns, names = [], []
    for i in question.names["row_representative"].tolist():
        found = of[model.literal_start[i] : model.literal_start[i + 1]].tolist()
        found = found[1:] if len(found) == 2 else found
        columns += found
        names += [model.names[i]] * len(found)
    return columns, names


def kind(name: str) -> str:
    """Atoms by predicate, friends(x,x) by itself; the variables of other models are one type."""
    predicate, _, rest = name.partition("(")
    if not rest:
        return "all"
    a, _, b = rest.rstrip(")").partition(",")
    return "self" if a == b else predicate


def coverage(case: Case) -> list[Row]:
    """Share of 95 % intervals that hold the truth, and their mean half-width beside the true spread's."""
    began = time.perf_counter()
    found: dict[str, list[np.ndarray]] = {m: [] for m in METHODS}  # [value, half-width] per repetition
    kinds = np.zeros(0)
    for seed in range(-(-case.repetitions * CHAINS // AT_ONCE)):
        left = min(AT_ONCE, case.repetitions * CHAINS - seed * AT_ONCE)
        runs = run(case, "orbit", left, SWEEPS, seed + 1)
        kinds = runs.kinds
        for group in runs.groups():
            for method in METHODS:
                estimates = ESTIMATORS[method](group)
                half = judge(estimates, group, np.full(len(estimates.value), np.nan)).half_width
                found[method].append(np.stack([estimates.value, half])[:, runs.columns])
    values = {m: np.stack(v) for m, v in found.items()}
    target = values["control"][:, 0].mean(axis=0)
    if case.exact is not None:
        target = np.array([case.exact[k] for k in kinds])
    out = []
    note = f"{case.repetitions} repetitions, {time.perf_counter() - began:.0f} s"
    for method, result in values.items():
        error, half = np.abs(result[:, 0] - target), result[:, 1]
        exact = (half == 0).all(axis=0)
        covered, width = [], []
        for k in dict.fromkeys(kinds[~exact].tolist()):
            columns = (kinds == k) & ~exact
            covered.append((error[:, columns] <= half[:, columns]).mean())
            spread = 1.96 * np.sqrt((error[:, columns] ** 2).mean(axis=0))
            width.append((half[:, columns].mean(axis=0) / spread).mean())
        text = f"least of {', '.join(dict.fromkeys(kinds[~exact].tolist()))}; {note}"
        out.append(Row(f"coverage, {case.name}, {method}", min(covered), "", 0.93, note=text))
        if method in ("control", "auto"):
            out.append(Row(f"half-width, {case.name}, {method}", max(width), "× true", 1.5, at_least=False))
        else:
            out.append(Row(f"coverage at most, {case.name}, {method}", max(covered), "", 0.97, at_least=False))
    return out


# --- gains ----------------------------------------------------------------------------------------------


def squared_errors(
    model: Any, exact: dict[str, float], name: str, repetitions: int, wanted: dict[str, float]
) -> list[Row]:
    """MSE of `standard` ÷ MSE of the others, 4 chains × 500 sweeps, geometric mean over the atoms of a type."""
    chains = repetitions * CHAINS
    case = Case(name, model, repetitions, "literals")
    single = run(replace(case, symmetries="none"), "standard", chains, 500, 7)
    orbit = run(case, "orbit", chains, 500, 7)
    plain = np.stack([ESTIMATORS["orbit"](g).value[single.columns] for g in single.groups()])
    out = []
    for method in METHODS:
        made = np.stack([ESTIMATORS[method](g).value[orbit.columns] for g in orbit.groups()])
        for k in ("smokes", "cancer", "friends"):
            standard = ((plain[:, single.kinds == k] - exact[k]) ** 2).mean(axis=0)
            own = ((made[:, orbit.kinds == k] - exact[k]) ** 2).mean(axis=0)
            ratio = float(np.exp(np.log(standard).mean() - np.log(own).mean()))
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
        if evidence:
            long = dft.marginals(model, estimator="auto", seconds=6 * seconds, seed=6)
            exact = np.array([long[v].probability for v in names])
        else:
            exact = np.array([truth(n)[kind(v)] for v in names])
        ratio = divergence(answers["standard"], exact) / max(divergence(answers["auto"], exact), 1e-300)
        text = f"{seconds:g} s each" + ("; truth: auto with six times the time" if evidence else "")
        what = f"n={n}{', evidence' if evidence else ''}"
        out.append(Row(f"KL gain at equal time, {what}", ratio, "×", 100.0 if evidence else 1e4, note=text))
    return out


def until(repetitions: int) -> list[Row]:
    """`until` on friends and smokers n=6: how often the half-width holds, and how much longer it took than an oracle
    needs."""
    model, exact, goal = people(6), truth(6)["smokes"], 3e-5
    held, sweeps = [], []
    for seed in range(repetitions):
        found = dft.marginals(model, ["smokes(P0)"], until=goal, seed=seed)
        held.append(abs(found["smokes(P0)"].probability - exact) <= goal)
        sweeps.append(found.run["sweeps"])
    spread = [
        dft.marginals(model, ["smokes(P0)"], sweeps=int(np.median(sweeps)), seed=1000 + seed)["smokes(P0)"].probability
        for seed in range(max(repetitions // 2, 40))
    ]
    oracle = float(np.median(sweeps)) * (1.96 * np.sqrt(np.mean((np.array(spread) - exact) ** 2)) / goal) ** 2
    return [
        Row("until, half-width holds", float(np.mean(held)), "of runs", 0.93, note=f"{repetitions} runs"),
        Row("until, sweeps ÷ an oracle's", float(np.median(sweeps)) / oracle, "×", 2.0, at_least=False),
    ]


if __name__ == "__main__":
    for row in rows("--quick" in sys.argv):
        print(row.name, row.value, row.unit, row.wanted, row.passed, row.note, flush=True)
