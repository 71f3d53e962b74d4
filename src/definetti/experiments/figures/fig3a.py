"""Figure 3(a): average time for the smokes-cancer MLN, and the exact lifted engine beside it."""

from __future__ import annotations

from typing import Any

from definetti.experiments import domain_sizes as sizes
from definetti.experiments import drawing
from definetti.experiments.curves import ORBIT
from definetti.experiments.figure import Effort, Measured, Verdict

CAPTION = "Average time for the smokes-cancer MLN needed to achieve an average KL divergence of < 0.0001."
SECONDS = (1000.0, 40.0)


def measure(effort: Effort) -> Measured:
    return sizes.measure(False, effort)


def draw(measured: Measured) -> Any:
    return drawing.in_rows([sizes.draw(measured, "seconds", "3(a) Smokes-cancer: time", "CPU seconds")])


def judge(measured: Measured) -> list[Verdict]:
    rows = measured.rows
    one, every = (sizes.exponent(rows, curve, "seconds") for curve in (sizes.EXACT_ONE, sizes.EXACT_ALL))
    largest = max(row["people"] for row in rows if row["curve"] == sizes.EXACT_ALL)
    ratio = sizes.value(rows, sizes.EXACT_ALL, largest, "seconds")["value"]
    orbit = sizes.exponent(rows, ORBIT, "seconds", 100)
    return [
        sizes.slower_growth("fig3a", measured, "seconds"),
        Verdict(
            "fig3a",
            "“The Rao-Blackwell estimation for all of the model's variables scales sub-linearly”",
            "time of the orbit estimator up to 100 people: an exponent below 1 in the number of variables, n^2 + 2n",
            f"n^{orbit:.2f}, that is (variables)^{orbit / 2:.2f}",
            orbit / 2 < 1.0,
            paper=True,
            note="In the number of people it cannot be sub-linear for long with a sample after every update: each of "
            "the n^2 variables has to be visited.",
        ),
        *sizes.of_times("fig3a", measured),
        Verdict(
            "fig3a",
            "“WFOMC has constant runtime for exactly computing one single-variable marginal density. The Rao-Blackwell "
            "estimation … is more efficient than repeated calls to WFOMC.”",
            "one call answers for all variables at once: all marginals cost no more than ten times one of them",
            f"one n^{one:.2f}, all n^{every:.2f}; all marginals of {largest:,} people in {ratio:.2g} CPU seconds",
            ratio <= 10 * max(sizes.value(rows, sizes.EXACT_ONE, largest, "seconds")["value"], 0.02),
            paper=True,
            note="No call needs to be repeated: counting gives every class of variables in one pass.",
        ),
    ]
