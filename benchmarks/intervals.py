"""Coverage of nominal 95 % intervals, and how wide they are: `make coverage`.

Runs of 4 chains × 1,000 sweeps by every estimator; and runs as users make them, 1 to 64 chains × 200 and 1,000 sweeps
on models with rare events (`--rare` for these alone, some minutes). Truths are exact. How repetitions are made,
`repetitions.py` says.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from error_models import STRONG, grid, grid_truth, hidden, people, potts, rare, segments, town
from measuring import HERE, Row
from repetitions import CHAINS, Case, Statistics, check, folded, fours, orbits_of, run, statistics

import definetti as dft
from definetti.inference.graph.question import ask
from definetti.inference.marginals import resolve
from definetti.model.marginals import width
from definetti.samplers.draws import Draws

SWEEPS, REPETITIONS, QUICK = 1000, 2000, 100
STATISTICS_AT_ONCE = 1 << 18  # chains × statistics of a run: some hundred megabytes of batch means
FEWEST_HITS = 50  # expected of an atom, for `standard`
METHODS = ("standard", "orbit", "conditional", "control", "auto")
ROUNDING = 1e-12
LEAST, MOST, WIDEST = 0.93, 0.97, 1.5
LEAST_CHANCE = 0.0005  # of a number whose interval is judged
OFTEN, LEAST_TRUSTED = 30, 0.9  # independent hits of the rarest number with which a run must be trusted
RUNS = 200
SLOW = ("segments 8×8",)  # hits are not independent, and few chains miss modes: only runs of 64, as is the default
PLANS = [(chains, sweeps) for sweeps in (200, 1000) for chains in (1, 2, 4, 8, 64)]


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


def rare_cases() -> list[Case]:
    friends = ("smokes(P0) ^ smokes(P1)", "smokes(P0) ^ cancer(P0)", "friends(P0,P1) ^ smokes(P0)")
    bits = ("X6=1 ^ X7=1", "X7=1 ^ X9=1", "X8=1 ^ X10=1", "X6=1 ^ X10=1")
    values = ("X0=2 ^ X6=2", "X0=2 ^ X1=2 ^ X2=2 ^ X3=2", "X0=2 ^ X1=0 ^ X2=2 ^ X3=1")
    return [
        Case("rare bits", rare(), queries=bits),
        Case("hidden pairs", hidden(), queries=("X0=1 ^ X1=1",)),
        Case("segments 8×8", segments()),
        Case("joint, smokers n=6", people(6), "literals", queries=friends),
        Case("joint, Potts ring", potts(), queries=values),
    ]


# --- runs as users make them ----------------------------------------------------------------------------


def runs(case: Case, chains: int, sweeps: int, repetitions: int) -> dict[str, Any]:
    """Coverage by `auto` over the numbers of trusted runs, from P = 0.0005 up; whether runs are trusted whose rarest
    number has enough independent hits; and the median half-width beside the true one, median over numbers that have."""
    began = time.perf_counter()
    question = ask(resolve(case.model, case.symmetries, 20.0), case.queries, "auto", 1)
    truth = dft.exact(case.model, case.queries)
    made: dict[tuple[str, int], list[tuple[float, float]]] = {}
    exact: dict[tuple[str, int], float] = {}
    draws, verdicts = run(question, "auto", chains * repetitions, sweeps, 1), []
    for part in fours(draws, chains):
        found = question.conclude(part, "auto", {}, False)
        verdicts.append(found.verdict.trusted)
        rows = [(row.representative, row) for row in found.orbits]
        for name, row in [*rows, *found.queries.items()]:
            values = [np.atleast_1d(np.array(x, float)) for x in (row.probability, width(row), truth[name].probability)]
            for k, (p, half, true) in enumerate(np.broadcast(*values)):
                made.setdefault((name, k), []).append((abs(p - true), half if np.isfinite(half) else 1.0))
                exact[name, k] = min(true, 1 - true)
    trusted = np.array(verdicts)
    key = [k for k in made if exact[k] >= LEAST_CHANCE]
    x = np.array([made[k] for k in key], dtype=float)  # numbers × runs × (error, half-width)
    error, half = x[:, :, 0], x[:, :, 1]
    hits = independent_hits(draws) * chains
    spread = 1.96 * np.sqrt((error**2).mean(axis=1))
    moving = (spread > ROUNDING) & (hits.min() >= OFTEN)
    wide = np.median(half, axis=1)[moving] / spread[moving]
    covered, beyond = error <= half + ROUNDING, error > 3 * half + ROUNDING
    return {
        "model": case.name, "chains": chains, "sweeps": sweeps, "repetitions": repetitions, "numbers": len(key),
        "hits": float(hits.min()), "trusted": float(trusted.mean()),
        "coverage": float(covered[:, trusted].mean()) if trusted.any() else None, "all": float(covered.mean()),
        "beyond": float(beyond[:, trusted].mean()) if trusted.any() else None,
        "often_trusted": float(trusted.mean()) if hits.min() >= OFTEN else None,
        "width": float(np.median(wide)) if len(wide) else None, "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip


def independent_hits(draws: Draws) -> np.ndarray:
    """float64[statistics] of one chain: (mean / standard deviation of its mean)², which is what so many independent
    events would have; of the rarer value."""
    means = np.average(draws.f, axis=0, weights=draws.lengths)
    mean, variance = means.mean(axis=0), means.var(axis=0, ddof=1)
    rarer = np.minimum(mean, 1.0 - mean)
    return np.where(variance > 0, rarer**2 / np.maximum(variance, 1e-300), np.inf)


def rare_table(found: list[dict[str, Any]]) -> list[str]:
    heads = ("hits", "coverage", "beyond", "all", "trusted", "width")
    names = ("independent hits", "coverage", "error > 3 half", "of all runs", "trusted runs", "half-width ÷ true")
    lines = [f"{'model':20} {'chains':>6} {'sweeps':>6} " + " ".join(f"{name:>17}" for name in names)]
    for row in found:
        numbers = " ".join(f"{'–':>17}" if row[h] is None else f"{row[h]:17.3f}" for h in heads)
        lines.append(f"{row['model']:20} {row['chains']:6} {row['sweeps']:6} {numbers}")
    return lines


def rare_judged(found: list[dict[str, Any]], targets: bool = True) -> list[Row]:
    """Over all lengths and numbers of chains of each model: numbers weigh alike."""
    out = []
    for model in dict.fromkeys(row["model"] for row in found):
        own = [row for row in found if row["model"] == model]
        weight = [row["numbers"] * row["trusted"] for row in own if row["coverage"] is not None]
        covered = [row["coverage"] for row in own if row["coverage"] is not None]
        often = [row["often_trusted"] for row in own if row["often_trusted"] is not None]
        wide = [row["width"] for row in own if row["width"] is not None]
        note = f"1 to 64 chains × 200 and 1,000 sweeps, {own[0]['repetitions']} repetitions"
        if covered:
            mean = float(np.average(covered, weights=weight))
            out.append(Row(f"coverage, {model}", mean, "", LEAST if targets else None, note=note))
        if often:
            out.append(Row(f"trusted, {model}", min(often), "of runs", LEAST_TRUSTED if targets else None))
        if wide:
            most = WIDEST if targets else None
            out.append(Row(f"half-width, {model}", float(np.median(wide)), "× true", most, at_least=False))
    return out


# --- coverage -------------------------------------------------------------------------------------------


def intervals(case: Case, repetitions: int) -> dict[str, tuple[Statistics, np.ndarray]]:
    """Per estimator float64[repetitions, 2, answers]: value and half-width."""
    single, orbit = statistics(case, "standard"), statistics(case, "orbit")
    expected = SWEEPS * CHAINS * np.minimum(single.truth, 1.0 - single.truth)
    often = np.flatnonzero(expected >= FEWEST_HITS)
    single_kept = replace(single, columns=single.columns[often], kinds=single.kinds[often], truth=single.truth[often])
    of = orbits_of(single, orbit)
    check(single, orbit, of)
    at_once = CHAINS * max(1, min(100, STATISTICS_AT_ONCE // (CHAINS * len(of))))
    found: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    seed, missing = 1, repetitions * CHAINS
    while missing:
        chains = min(at_once, missing)
        draws = run(single.question, "standard", chains, SWEEPS, seed)
        seed, missing = seed + 1, missing - chains
        for part in fours(draws):
            found["standard"].append(_interval(single_kept, part, "standard"))
        for part in fours(folded(draws, of, orbit)):
            for method in METHODS[1:]:
                found[method].append(_interval(orbit, part, method))
    return {m: (single_kept if m == "standard" else orbit, np.stack(v)) for m, v in found.items()}


def _interval(of: Statistics, draws: Draws, method: str) -> np.ndarray:
    made = of.question.estimated(draws, method)
    return np.stack([made.estimates.value, made.found.half_width])[:, of.columns]


def coverage(case: Case, repetitions: int) -> list[dict[str, Any]]:
    """One row per estimator and type: the share of intervals that hold the truth, with its own standard error, and the
    mean half-width beside that of the true spread. What is exact (no error at all) is left out."""
    began = time.perf_counter()
    found = intervals(case, repetitions)
    seconds = time.perf_counter() - began
    out = []
    for method, (of, made) in found.items():
        error, half = np.abs(made[:, 0] - of.truth), made[:, 1]
        exact = (half == 0).all(axis=0) & (error < ROUNDING).all(axis=0)
        for name in dict.fromkeys(of.kinds[~exact].tolist()):
            columns = (of.kinds == name) & ~exact
            held = (error[:, columns] <= half[:, columns] + ROUNDING).mean(axis=1)
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
    few = [runs(case, 4, 200, 20) for case in rare_cases()] if quick else _rare(rare_cases(), RUNS)
    return judged(found, targets=not quick) + rare_judged(few, targets=not quick)


def _rare(cases: list[Case], repetitions: int) -> list[dict[str, Any]]:
    """Prints as it goes. Of 64 chains a fifth as many."""
    found = []
    for case in cases:
        for chains, sweeps in [plan for plan in PLANS if plan[0] == 64 or case.name not in SLOW]:
            found.append(runs(case, chains, sweeps, repetitions if chains < 64 else max(repetitions // 5, 10)))
            print(rare_table(found[-1:])[1], flush=True)
    return found


def main() -> int:
    every, rare = cases(), rare_cases()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--only", action="append", choices=[case.name for case in every + rare])
    parser.add_argument("--output", type=Path, default=HERE / "results" / "coverage.json")
    parser.add_argument("--rare", action="store_true", help="runs on models with rare events alone")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    few: list[dict[str, Any]] = []
    asked = [case for case in rare if options.only is None or case.name in options.only]
    if asked:
        print(rare_table([])[0])
        few = _rare(asked, min(RUNS, options.repetitions))
        for row in rare_judged(few):
            print(f"{row.name} {row.value:.3f} ({row.wanted})")
    for case in () if options.rare else every:
        if options.only is None or case.name in options.only:
            found += coverage(case, options.repetitions)
            print("\n".join(table([row for row in found if row["model"] == case.name])), flush=True)
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(found, indent=1) + "\n")
    missed = [row for row in judged(found) + rare_judged(few) if row.passed is False]
    for row in missed:
        print(f"missed: {row.name} {row.value:.4f} ({row.wanted})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
