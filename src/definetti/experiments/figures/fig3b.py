"""Figure 3(b): number of sample points for the smokes-cancer MLN; the same runs as Figure 3(a)."""

from __future__ import annotations

from typing import Any

from definetti.experiments import domain_sizes as sizes
from definetti.experiments.figure import Effort, Measured, Verdict

CAPTION = "Number of sample points for the smokes-cancer MLN to achieve an average KL divergence of < 0.0001."
SECONDS = (0.0, 0.0)
SHARES = "fig3a"


def measure(effort: Effort) -> Measured:
    return sizes.measure(False, effort)


def draw(measured: Measured) -> Any:
    return sizes.draw_points(measured, "3(b) Smokes-cancer: sample points")


def judge(measured: Measured) -> list[Verdict]:
    return [sizes.slower_growth("fig3b", measured, "samples"), sizes.fewer_sweeps("fig3b", measured)]
