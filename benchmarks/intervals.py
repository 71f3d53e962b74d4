"""Coverage of nominal 95 % intervals of runs of 4 chains × 1,000 sweeps, and how wide they are: `make coverage`.

A repetition is a group of four chains. Many are run at once: chains have random streams of their own, and lanes that
share scan orders are independent given those. Warm-up is fixed at 100 sweeps, the least that such a run takes by
itself. The chains are folded atom by atom, which is what `standard` needs; the statistics of the other estimators are
means of these over orbits, which `check` compares with a run that folds orbits in its kernel. So all estimators see
the same draws. Truths are exact.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from error_models import STRONG, grid, grid_truth, people, potts, town
from measuring import HERE, Row

import definetti as dft
from definetti.estimators import ESTIMATORS
from definetti.estimators.ask import GraphQuestion, ask
from definetti.estimators.assemble import judge
from definetti.estimators.logic_ask import LogicQuestion, held, logic_question, tied_orbits
from definetti.estimators.run import available_cores, resolve
from definetti.model.factors import FREE
from definetti.samplers.chains import Plan
from definetti.samplers.draws import Draws
from definetti.samplers.gibbs import Gibbs
from definetti.symmetry.atom_names import find_atom
from definetti.symmetry.logic import RenamingSymmetries

CHAINS, SWEEPS, WARM = 4, 1000, 100
REPETITIONS, QUICK = 2000, 100
STATISTICS_AT_ONCE = 1 << 18  # chains × statistics of a run: some hundred megabytes of batch means
FEWEST_HITS = 50  # expected of an atom, for `standard`
METHODS = ("standard", "orbit", "conditional", "control", "auto")
LEAST, MOST, WIDEST = 0.93, 0.97, 1.5
Question = LogicQuestion | GraphQuestion


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    model: Any
    symmetries: str = "auto"
    truth: Callable[[Any], Mapping[str, Any]] = dft.exact


def cases() -> list[Case]:
    return [
        Case("smokers n=6", people(6)),
        Case("smokers n=6, ground", people(6), "literals"),
        Case("strong n=6", people(6, STRONG)),
        Case("Potts ring", potts()),
        Case("grid 20×20", grid(), "none", grid_truth),
        Case("smokers n=50", people(50)),
        Case("n=50, evidence", people(50, evidence=town(50))),
    ]


# --- what is estimated ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Statistics:
    """Those of a question that are answers: their columns, types and true values."""

    question: Question
    columns: np.ndarray
    names: list[str]
    kinds: np.ndarray
    truth: np.ndarray

    def certain(self, draws: Draws) -> np.ndarray:
        if isinstance(self.question, LogicQuestion):
            return held(draws, self.question.group)
        return self.question.names["certain"]


def statistics(case: Case, method: str, known: Mapping[str, Any]) -> Statistics:
    """Of two values only the second is an answer."""
    group = resolve(case.model, case.symmetries, 20.0)
    question: Question
    if isinstance(group, RenamingSymmetries):
        question = logic_question(group, (), method)
        columns = list(range(len(question.group.sizes)))
        names = [question.group.orbits[k].representative for k in columns]
        values = [0] * len(names)
    else:
        question = ask(group, (), method, 1)
        columns, names, values = _literals(question)
    truth = np.array([_probability(known[name], value) for name, value in zip(names, values, strict=True)])
    return Statistics(question, np.array(columns), names, np.array([kind(name) for name in names]), truth)


def _literals(question: GraphQuestion) -> tuple[list[int], list[str], list[int]]:
    """Statistics of the variables that stand for the rows, their names, and the places of their values."""
    model, of = question.group.model, question.names["statistic_of"]
    columns, names, values = [], [], []
    for i in question.names["row_representative"].tolist():
        found = of[model.literal_start[i] : model.literal_start[i + 1]].tolist()
        found = found[1:] if len(found) == 2 else found
        columns += found
        names += [model.names[i]] * len(found)
        values += range(len(found))
    return columns, names, values


def _probability(known: Any, value: int) -> float:
    found = known if isinstance(known, float) else known.probability
    return found[value] if isinstance(found, list) else found


def kind(name: str) -> str:
    """Atoms by predicate, friends(x,x) by itself; the variables of other models are one type."""
    predicate, _, rest = name.partition("(")
    if not rest:
        return "all"
    a, _, b = rest.rstrip(")").partition(",")
    return "self" if a == b else predicate


def orbits_of(single: Statistics, orbit: Statistics) -> np.ndarray:
    """The orbit statistic that each statistic of single variables belongs to."""
    one, many = single.question, orbit.question
    if isinstance(one, LogicQuestion):
        assert isinstance(many, LogicQuestion)
        atoms = [find_atom(one.group.model, name) for name in single.names]
        return np.array([many.group.orbit_number(predicate, constants) for predicate, constants in atoms])
    assert isinstance(many, GraphQuestion)
    model = one.group.model
    free = np.repeat(model.evidence == FREE, model.cards)
    of = np.zeros(one.names["singles"], dtype=np.int64)
    of[one.names["statistic_of"][free]] = many.names["statistic_of"][free]
    return of


# --- draws ----------------------------------------------------------------------------------------------


def run(question: Question, method: str, chains: int, seed: int) -> Draws:
    plan = Plan(chains, WARM, SWEEPS, seed, available_cores())
    sampling = question.sampling(Gibbs(), plan, method)
    for _ in sampling.steps():
        pass
    draws = sampling.draws()
    if isinstance(question, LogicQuestion):
        draws = replace(draws, groups=tied_orbits(question.group, draws.f.shape[2]))
    return replace(draws, tracked=None)


def folded(draws: Draws, of: np.ndarray, groups: np.ndarray | None) -> Draws:
    """Statistics of single variables as those of their orbits. `last` is for R-hat, which nobody looks at here."""
    order = np.argsort(of, kind="stable")
    sizes = np.bincount(of)
    first = np.cumsum(sizes) - sizes

    def mean(x: np.ndarray) -> np.ndarray:
        return np.add.reduceat(x[:, :, order], first, axis=2) / sizes

    assert draws.g is not None
    f = mean(draws.f)
    return replace(draws, f=f, g=mean(draws.g), last=f, square=None, sizes=sizes, groups=groups)


def fours(draws: Draws) -> Iterator[Draws]:
    """Repetitions of four chains each."""
    parts = [name for name in ("f", "g", "last", "square") if getattr(draws, name) is not None]
    for at in range(0, draws.chains, CHAINS):
        yield replace(draws, **{name: getattr(draws, name)[:, at : at + CHAINS] for name in parts})


def check(single: Draws, whole: Draws, of: np.ndarray) -> None:
    """A run with single variables and one with orbits have the same draws: their means over orbits agree."""
    made = folded(single, of, None)
    assert whole.g is not None and made.g is not None
    np.testing.assert_allclose(made.f, whole.f, atol=1e-12)
    np.testing.assert_allclose(made.g, whole.g, atol=1e-12)


# --- coverage -------------------------------------------------------------------------------------------


def intervals(case: Case, repetitions: int) -> dict[str, tuple[Statistics, np.ndarray]]:
    """Per estimator float64[repetitions, 2, answers]: value and half-width."""
    known = case.truth(case.model)
    single, orbit = statistics(case, "standard", known), statistics(case, "orbit", known)
    expected = SWEEPS * CHAINS * np.minimum(single.truth, 1.0 - single.truth)
    often = np.flatnonzero(expected >= FEWEST_HITS)
    single_kept = replace(single, columns=single.columns[often], kinds=single.kinds[often], truth=single.truth[often])
    of = orbits_of(single, orbit)
    whole = run(orbit.question, "orbit", CHAINS, 1)
    check(run(single.question, "standard", CHAINS, 1), whole, of)
    at_once = CHAINS * max(1, min(100, STATISTICS_AT_ONCE // (CHAINS * len(of))))
    found: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    seed, missing = 1, repetitions * CHAINS
    while missing:
        chains = min(at_once, missing)
        draws = run(single.question, "standard", chains, seed)
        seed, missing = seed + 1, missing - chains
        for part in fours(draws):
            found["standard"].append(_interval(single_kept, part, "standard"))
        for part in fours(folded(draws, of, whole.groups)):
            for method in METHODS[1:]:
                found[method].append(_interval(orbit, part, method))
    return {m: (single_kept if m == "standard" else orbit, np.stack(v)) for m, v in found.items()}


def _interval(of: Statistics, draws: Draws, method: str) -> np.ndarray:
    estimates = ESTIMATORS[method](draws)
    half = judge(estimates, draws, of.certain(draws)).half_width
    return np.stack([estimates.value, half])[:, of.columns]


def coverage(case: Case, repetitions: int) -> list[dict[str, Any]]:
    """One row per estimator and type: the share of intervals that hold the truth, with its own standard error, and the
    mean half-width beside that of the true spread. What is exact (no error at all) is left out."""
    began = time.perf_counter()
    found = intervals(case, repetitions)
    seconds = time.perf_counter() - began
    out = []
    for method, (of, made) in found.items():
        error, half = np.abs(made[:, 0] - of.truth), made[:, 1]
        exact = (half == 0).all(axis=0) & (error < 1e-12).all(axis=0)
        for name in dict.fromkeys(of.kinds[~exact].tolist()):
            columns = (of.kinds == name) & ~exact
            held = (error[:, columns] <= half[:, columns]).mean(axis=1)
            spread = 1.96 * np.sqrt((error[:, columns] ** 2).mean(axis=0))
            out.append(
                {
                    "model": case.name, "estimator": method, "type": name, "numbers": int(columns.sum()),
                    "repetitions": repetitions, "coverage": float(held.mean()),
                    "coverage_error": float(held.std(ddof=1) / np.sqrt(repetitions)),
                    "width": float((half[:, columns].mean(axis=0) / spread).mean()), "seconds": round(seconds, 1),
                }
            )  # fmt: skip
    return out


def table(found: list[dict[str, Any]]) -> list[str]:
    lines = [f"{'model':20} {'estimator':12} {'type':8} {'numbers':>7} {'coverage':>16} {'half-width ÷ true':>18}"]
    for row in found:
        covered = f"{row['coverage']:.4f} ± {row['coverage_error']:.4f}"
        head = f"{row['model']:20} {row['estimator']:12} {row['type']:8} {row['numbers']:7}"
        lines.append(f"{head} {covered:>16} {row['width']:18.3f}")
    return lines


def judged(found: list[dict[str, Any]], targets: bool = True) -> list[Row]:
    """The least, and where it is limited the most, of the types of each model and estimator. Few repetitions tell
    nothing about targets."""
    out = []
    for model, method in dict.fromkeys((row["model"], row["estimator"]) for row in found):
        own = [row for row in found if (row["model"], row["estimator"]) == (model, method)]
        note = f"{', '.join(row['type'] for row in own)}; {own[0]['repetitions']} repetitions"
        covered, what = [row["coverage"] for row in own], f"{model}, {method}"
        out.append(Row(f"coverage, {what}", min(covered), "", LEAST if targets else None, note=note))
        if method in ("orbit", "conditional"):
            out.append(Row(f"coverage at most, {what}", max(covered), "", MOST if targets else None, at_least=False))
        elif method in ("control", "auto"):
            width = max(row["width"] for row in own)
            out.append(Row(f"half-width, {what}", width, "× true", WIDEST if targets else None, at_least=False))
    return out


def rows(quick: bool) -> list[Row]:
    found = [row for case in cases() for row in coverage(case, QUICK if quick else REPETITIONS)]
    return judged(found, targets=not quick)


def main() -> int:
    every = cases()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--only", action="append", choices=[case.name for case in every])
    parser.add_argument("--output", type=Path, default=HERE / "results" / "coverage.json")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    for case in every:
        if options.only is None or case.name in options.only:
            found += coverage(case, options.repetitions)
            print("\n".join(table([row for row in found if row["model"] == case.name])), flush=True)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(found, indent=1) + "\n")
    missed = [row for row in judged(found) if row.passed is False]
    for row in missed:
        print(f"missed: {row.name} {row.value:.4f} ({row.wanted})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
