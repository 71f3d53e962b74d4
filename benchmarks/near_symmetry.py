"""Proposals by symmetries that a model only nearly has, against Gibbs sampling with the `auto` estimator, at equal
time: the mean squared error over all variables and repetitions, and how many runs are trusted.

    python benchmarks/near_symmetry.py [--seconds 0.5] [--repetitions 6] [--record]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from recorded import record

import definetti as dft

EXAMPLES = Path(__file__).parents[1] / "examples"


def mean_field(n: int, coupling: float, spread: float) -> dft.FactorGraph:
    """All pairs alike, fields that differ a little: two regions of nearly equal weight where the coupling is strong."""
    rng = np.random.default_rng(1)
    bond = [[coupling, -coupling], [-coupling, coupling]]
    pairs = [([i, j], bond) for i in range(n) for j in range(i)]
    return dft.factor_graph([2] * n, pairs + [([i], [0.0, spread * rng.normal()]) for i in range(n)], log=True)


def grid(n: int, coupling: float, spread: float) -> dft.FactorGraph:
    rng = np.random.default_rng(2)
    bond = [[coupling, -coupling], [-coupling, coupling]]
    pairs = [([i * n + j, i * n + j + 1], bond) for i in range(n) for j in range(n - 1)]
    pairs += [([i * n + j, i * n + n + j], bond) for i in range(n - 1) for j in range(n)]
    return dft.factor_graph([2] * n * n, pairs + [([i], [0.0, spread * rng.normal()]) for i in range(n * n)], log=True)


def smokers() -> dft.MarkovLogic:
    return dft.read(EXAMPLES / "smokers.mln", evidence=EXAMPLES / "town.db", domain={"person": 8})  # type: ignore[return-value]


def two_regions() -> dft.MarkovLogic:
    """People agree with each other; of some it is known whether they have a symptom."""
    text = "Ill(person)\nSymptom(person)\n0.1 Ill(x) <=> Ill(y)\n0.3 Ill(x) <=> Symptom(x)"
    model = dft.markov_logic(text, domain={"person": 30})
    return model.condition({f"Symptom(Person{k})": k % 3 == 0 for k in range(1, 13)})


MODELS = {
    "mean field of 16, two regions (coupling .15)": lambda: mean_field(16, 0.15, 0.05),
    "mean field of 16, one region (coupling .03)": lambda: mean_field(16, 0.03, 0.05),
    "grid 10×10, two regions (coupling .6)": lambda: grid(10, 0.6, 0.05),
    "grid 10×10, one region (coupling .2)": lambda: grid(10, 0.2, 0.05),
    "friends and smokers with evidence, ground": lambda: dft.ground(smokers()),
    "friends and smokers with evidence": smokers,
    "30 people who agree, evidence on 12": two_regions,
}


def error(
    model: dft.FactorGraph | dft.MarkovLogic, truth: dft.Marginals, seconds: float, seed: int, **options: object
) -> tuple[float, bool]:
    found = dft.marginals(model, seconds=seconds, seed=seed, workers=1, chains=32, **options)  # type: ignore[arg-type]
    rows = [(row.size, found[row.representative].probability - row.probability) for row in truth.orbits]  # type: ignore[operator]
    return float(np.average([off**2 for _, off in rows], weights=[size for size, _ in rows])), found.trusted


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--only", default="", help="part of a model's name")
    parser.add_argument("--record", action="store_true", help="keep the errors in docs/measured for the documentation")
    told = parser.parse_args()
    for name, make in ((name, make) for name, make in MODELS.items() if told.only in name):
        model = make()
        truth = dft.exact(model)
        row: dict[str, object] = {"model": name}
        for who in ("gibbs", "orbital-metropolis"):
            dft.marginals(model, sweeps=2, seed=0, chains=32, sampler=who)  # compiles
            runs = [error(model, truth, told.seconds, seed, sampler=who) for seed in range(told.repetitions)]
            errors, trusted = zip(*runs, strict=True)
            row |= {who: float(np.mean(errors)), f"{who}, trusted": f"{sum(trusted)} of {len(trusted)}"}
        print(json.dumps(row), flush=True)
        if told.record:
            words = f"--seconds {told.seconds:g} --repetitions {told.repetitions} --record"
            record("near_symmetry", name, [row], f"python benchmarks/near_symmetry.py {words}")


if __name__ == "__main__":
    main()
