"""Figure 2(c): the smokes-cancer MLN with 50 people, no evidence, and transitivity."""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, curves, models, panels
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.truths import truth

CAPTION = "The smokes-cancer MLN with 50 people, no evidence, and transitivity."
SECONDS = (60.0, 12.0)


def measure(effort: Effort) -> Measured:
    model = models.smokers(50, transitive=True)
    group, seconds = panels.partition(model)
    target, made = panels.kept_target(group, truth("smokers-50-transitive"))
    rows = panels.three_curves(model, group, target, effort, updates=2e7, samples=1000, sweeps=(4, 16, 64, 250, 1000))
    return Measured(rows, panels.facts_of(target, seconds, made))


def draw(measured: Measured) -> Any:
    return panels.standard_figure(measured, "2(c) Smokes-cancer, 50 people, transitivity, no evidence")


def judge(measured: Measured) -> list[Verdict]:
    pairs = [(curves.STANDARD, curves.ORBIT), (curves.MCSAT_STANDARD, curves.MCSAT_ORBIT)]
    return [
        claims.never_worse("fig2c", measured, pairs),
        claims.gain_by_symmetry("fig2c", measured),
        claims.gain_by_default("fig2c", measured, 1e4),
        claims.partition_time("fig2c", measured),
        claims.truth_is_sharp("fig2c", measured),
    ]
