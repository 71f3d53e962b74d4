"""Figure 2(c): the smokes-cancer MLN with 50 people, no evidence, and transitivity."""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, panels
from definetti.experiments.figure import Effort, Measured, Verdict

CAPTION = "The smokes-cancer MLN with 50 people, no evidence, and transitivity."
SECONDS = (60.0, 12.0)


def measure(effort: Effort) -> Measured:
    return panels.fifty_smokers(effort, transitive=True, kept="smokers-50-transitive")


def draw(measured: Measured) -> Any:
    return panels.standard_figure(measured, "2(c) Smokes-cancer, 50 people, transitivity, no evidence")


def judge(measured: Measured) -> list[Verdict]:
    return [*claims.of_panel("fig2c", measured, 1e4), claims.truth_is_sharp("fig2c", measured)]
