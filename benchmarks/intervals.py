"""Coverage of nominal 95 % intervals of runs of 4 chains × 1,000 sweeps, and how wide they are: `make coverage`.

Truths are exact. How repetitions are made, `repetitions.py` says.
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
from error_models import STRONG, grid, grid_truth, people, potts, town
from measuring import HERE, Row
from repetitions import CHAINS, Case, Statistics, check, folded, fours, orbits_of, run, statistics

from definetti.estimators import ESTIMATORS
from definetti.inference.assemble import judge
from definetti.samplers.draws import Draws

SWEEPS, REPETITIONS, QUICK = 1000, 2000, 100
STATISTICS_AT_ONCE = 1 << 18  # chains × statistics of a run: some hundred megabytes of batch means
FEWEST_HITS = 50  # expected of an atom, for `standard`
METHODS = ("standard", "orbit", "conditional", "control", "auto")
ROUNDING = 1e-12
LEAST, MOST, WIDEST = 0.93, 0.97, 1.5


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
