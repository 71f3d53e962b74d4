"""Draws as output: packed values per second of CPU time, on one thread, sampling included, a sweep between draws."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measuring import Row, best_of, cpu_seconds
from models import paper_grid

import definetti as dft

EXAMPLES = Path(__file__).parents[1] / "examples"


def rows(quick: bool) -> list[Row]:
    people = dft.read(EXAMPLES / "smokers.mln", domain={"person": 100})
    grid = paper_grid(100)
    cases = {
        "friends and smokers, 100 people, 8 chains": (people, 8, 4_000),
        "grid 100×100, 64 chains": (grid, 64, 1_000),
        "grid 100×100, 4 chains": (grid, 4, 4_000),
    }
    return [row(name, model, chains, draws, quick) for name, (model, chains, draws) in cases.items()]


def row(name: str, model: Any, chains: int, draws: int, quick: bool) -> Row:
    count = draws // 10 if quick else draws
    group: Any = dft.symmetries(model)

    def write(length: int) -> float:
        sampled = dft.sample(
            model, symmetries=group, draws=length, chains=chains, sampler="gibbs", workers=1, seed=1, burn_in=10
        )
        with tempfile.TemporaryDirectory() as folder:
            return cpu_seconds(lambda: sampled.save(Path(folder) / "draws.npz"))

    write(1)  # compiles, or loads
    best = best_of({"one": lambda: write(1), "all": lambda: write(count)}, 3)
    variables = dft.sample(model, symmetries=group, draws=1, chains=chains, sampler="gibbs", seed=1).variables
    rate = variables * chains * (count - 1) / (best["all"] - best["one"]) / 1e6
    return Row(name, rate, "M values/s", note=f"{count:,} draws of {variables:,} variables")
