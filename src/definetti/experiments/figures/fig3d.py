"""Figure 3(d): sample points for the smokes-cancer MLN with transitivity; the same runs as Figure 3(c)."""

from __future__ import annotations

from typing import Any

from definetti.experiments import domain_sizes as sizes
from definetti.experiments.curves import ORBIT
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.figures.fig3c import WITHOUT

CAPTION = "Sample points for the smokes-cancer MLN with transitivity to achieve an average KL divergence of < 0.0001."
SECONDS = (0.0, 0.0)
SHARES = "fig3c"


def measure(effort: Effort) -> Measured:
    return sizes.measure(True, effort)


def draw(measured: Measured) -> Any:
    return sizes.draw_points(measured, "3(d) With transitivity: sample points")


def judge(measured: Measured) -> list[Verdict]:
    rows = measured.rows
    sizes_met = sorted({row["people"] for row in rows if row["curve"] == WITHOUT})
    points = {c: [sizes.value(rows, c, n, "samples")["value"] for n in sizes_met] for c in (ORBIT, WITHOUT)}
    ratios = [a / b for a, b in zip(points[ORBIT], points[WITHOUT], strict=True)]
    return [
        sizes.slower_growth("fig3d", measured, "samples"),
        sizes.fewer_sweeps("fig3d", measured),
        Verdict(
            "fig3d",
            "“Interestingly, the number of sample points is almost identical for the model with and without "
            "transitivity, indicating that the advantage of the Rao-Blackwell estimator is independent of the model's "
            "formulas.”",
            "the two numbers differ by less than a factor 2 at every number of people",
            f"with ÷ without: {min(ratios):.2f} to {max(ratios):.2f}",
            max(*ratios, *(1 / r for r in ratios)) < 2.0,
            paper=True,
        ),
    ]
