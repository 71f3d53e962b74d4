"""Verdicts that several figures share. Each is computed from the figure's numbers."""

from __future__ import annotations

from collections.abc import Sequence

from definetti.experiments.curves import (
    AUTO,
    MCSAT_ORBIT,
    MCSAT_STANDARD,
    ORBIT,
    STANDARD,
    TINY,
    at_time,
    last,
    summary,
)
from definetti.experiments.figure import Measured, Row, Verdict

PAIRS = ((STANDARD, ORBIT), (MCSAT_STANDARD, MCSAT_ORBIT))
SLACK = 3.0  # by which a gain may differ from variables ÷ orbits


def number(x: float) -> str:
    return f"{x:,.0f}" if 100 <= x < 1e6 else f"{x:.3g}"


def gain(rows: Sequence[Row], better: str, worse: str) -> float:
    """How many times smaller one curve's divergence is at the end of the other, at equal time."""
    end = last(rows, worse)
    return end["value"] / max(at_time(rows, better, end["seconds"]), TINY)


def never_worse(figure: str, measured: Measured, pairs: Sequence[tuple[str, str]]) -> Verdict:
    """Jensen's inequality, on every single run and at every point."""
    points, broken = 0, 0
    for worse, better in pairs:
        standard = [row for row in measured.rows if row["curve"] == worse]
        orbit = [row for row in measured.rows if row["curve"] == better]
        for a, b in zip(standard, orbit, strict=True):
            points += 1
            broken += b["kl"] > a["kl"] * (1 + 1e-9) + 1e-15 or b["mse"] > a["mse"] * (1 + 1e-9) + 1e-15
    return Verdict(
        figure,
        "“the Rao-Blackwell estimator always outperforms the standard estimator”",
        "at every point of every run its KL divergence and squared error are at most those of the standard estimator",
        f"{points - broken} of {points} points",
        broken == 0,
        paper=True,
        note="This holds for any samples at all, by Jensen's inequality. “By up to several orders of magnitude” is the "
        "next row.",
    )


def gain_by_symmetry(figure: str, measured: Measured, better: str = ORBIT, worse: str = STANDARD) -> Verdict:
    """Orbit against standard: within a factor of variables ÷ orbits."""
    facts = measured.facts
    expected, found = facts["variables"] / facts["orbits"], gain(measured.rows, better, worse)
    return Verdict(
        figure,
        "“The Rao-Blackwell estimator improves the density estimates by at least an order of magnitude and, in the "
        "absence of evidence, even up to four orders of magnitude relative to the standard estimator”",
        f"KL divergence {number(expected)} times smaller at equal time, within a factor {SLACK:g} "
        f"({facts['variables']:,} variables ÷ {facts['orbits']:,} orbits)",
        f"{number(found)} times smaller ({worse} ÷ {better})",
        expected / SLACK <= found <= expected * SLACK,
        paper=True,
        note="Averaging over an orbit of m variables divides a variance by m at most, if its members were "
        "uncorrelated: the mean over variables then gains variables ÷ orbits. Four orders of magnitude are out of "
        "reach of averaging over these orbits alone; `auto` reaches them by control variates.",
    )


def gain_by_default(figure: str, measured: Measured, least: float, curve: str = AUTO) -> Verdict:
    """With the fact `short` the runs are too short for what is asked, and a factor is allowed."""
    found, slack = gain(measured.rows, curve, STANDARD), SLACK if measured.facts.get("short") else 1.0
    one, other = (last(measured.rows, name) for name in (curve, STANDARD))
    per_update = other["value"] * other["updates"] / (one["value"] * one["updates"])
    return Verdict(
        figure,
        "definetti's defaults (`auto`) against the paper's protocol with the standard estimator, at equal CPU time",
        f"KL divergence at least {number(least)} times smaller"
        + (f" (short runs: within a factor {slack:g})" if slack > 1 else ""),
        f"{number(found)} times smaller ({number(per_update)} at equal numbers of updates)",
        found >= least / slack,
    )


def partition_time(figure: str, measured: Measured) -> Verdict:
    seconds = measured.facts["partition_seconds"]
    return Verdict(
        figure,
        "“the computation of the orbit partitions of the models' variables took less than one second for each of the "
        "probabilistic models we considered”",
        "less than 1 CPU second",
        f"{seconds:.3f} CPU seconds for {measured.facts['variables']:,} variables",
        seconds < 1.0,
        paper=True,
    )


def truth_is_sharp(figure: str, measured: Measured) -> Verdict:
    """The truth's own error must not be what the best curve shows."""
    best = min(row["value"] for row in summary(measured.rows) if row["curve"] in (AUTO, ORBIT))
    noise = measured.facts["truth_noise"]
    return Verdict(
        figure,
        "the truth is known better than the best curve reaches",
        "the divergence that the truth's standard error stands for is below the smallest one drawn",
        f"{noise:.2g} against {best:.2g}",
        noise <= best,
    )


def exactly_solved(figure: str, measured: Measured) -> Verdict:
    seconds = measured.facts["exact_seconds"]
    return Verdict(
        figure,
        "“For all other MLNs, existing exact lifted inference algorithm were unable to compute single-variable "
        "densities … several very long runs (burn-in 1 day; overall 5 days)”",
        "this model is solved exactly with its evidence, in less than a minute",
        f"all marginals in {seconds:.2g} CPU seconds",
        seconds < 60.0,
        paper=True,
        note="Friends are known only of people whose smoking is known, so that the evidence acts as a field on each "
        "person, and counting over classes of people remains exact.",
    )


def of_panel(figure: str, measured: Measured, least: float) -> list[Verdict]:
    """What every panel of Figure 2 on Markov logic is asked; the defaults are to gain a factor `least`."""
    return [
        never_worse(figure, measured, PAIRS),
        gain_by_symmetry(figure, measured),
        gain_by_default(figure, measured, least),
        partition_time(figure, measured),
    ]
