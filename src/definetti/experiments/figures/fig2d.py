"""Figure 2(d): the smokes-cancer MLN with 50 people, 10 % evidence, and transitivity."""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, curves, models, panels
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.truths import EVIDENCE_SEED, truth

CAPTION = "The smokes-cancer MLN with 50 people, 10% evidence, and transitivity."
SECONDS = (85.0, 23.0)


def measure(effort: Effort) -> Measured:
    evidence = models.known_people(50, EVIDENCE_SEED)
    model = models.smokers(50, transitive=True, evidence=evidence)
    group, seconds = panels.partition(model)
    target, made = panels.kept_target(group, truth("smokers-50-transitive-evidence"))
    rows = panels.three_curves(model, group, target, effort, updates=2e7, samples=1000, sweeps=(4, 16, 64, 250, 1000))
    known = {"known_smokers": models.known_smokers(evidence), "evidence_seed": EVIDENCE_SEED}
    return Measured(rows, panels.facts_of(target, seconds, made | known))


def draw(measured: Measured) -> Any:
    facts = measured.facts
    said = f"evidence: seed {facts['evidence_seed']}, {facts['known_smokers']} of 5 known people smoke"
    return panels.standard_figure(measured, "2(d) Smokes-cancer, 50 people, transitivity, 10 % evidence", said)


def judge(measured: Measured) -> list[Verdict]:
    pairs = [(curves.STANDARD, curves.ORBIT), (curves.MCSAT_STANDARD, curves.MCSAT_ORBIT)]
    return [
        claims.never_worse("fig2d", measured, pairs),
        claims.gain_by_symmetry("fig2d", measured),
        claims.gain_by_default("fig2d", measured, 100),
        claims.partition_time("fig2d", measured),
        claims.truth_is_sharp("fig2d", measured),
    ]
