"""Figure 2(d): the smokes-cancer MLN with 50 people, 10 % evidence, and transitivity."""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, models, panels
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.truths import EVIDENCE_SEED

CAPTION = "The smokes-cancer MLN with 50 people, 10% evidence, and transitivity."
SECONDS = (85.0, 23.0)


def measure(effort: Effort) -> Measured:
    return panels.fifty_smokers(
        effort, transitive=True, evidence=models.known_people(50, EVIDENCE_SEED), kept="smokers-50-transitive-evidence"
    )


def draw(measured: Measured) -> Any:
    return panels.standard_figure(measured, "2(d) Smokes-cancer, 50 people, transitivity, 10 % evidence")


def judge(measured: Measured) -> list[Verdict]:
    return [*claims.of_panel("fig2d", measured, 100), claims.truth_is_sharp("fig2d", measured)]
