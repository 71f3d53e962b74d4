"""Figure 2(b): the smokes-cancer MLN with 50 people and 10 % evidence."""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, models, panels
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.truths import EVIDENCE_SEED

CAPTION = "The smokes-cancer MLN with 50 people and 10% evidence."
SECONDS = (45.0, 8.0)


def measure(effort: Effort) -> Measured:
    return panels.fifty_smokers(effort, evidence=models.known_people(50, EVIDENCE_SEED))


def draw(measured: Measured) -> Any:
    return panels.standard_figure(measured, "2(b) Smokes-cancer, 50 people, 10 % evidence")


def judge(measured: Measured) -> list[Verdict]:
    return [*claims.of_panel("fig2b", measured, 100), claims.exactly_solved("fig2b", measured)]
