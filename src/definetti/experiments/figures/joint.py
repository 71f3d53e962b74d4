"""Beside the paper: a joint marginal, two friendships in a row, with and without averaging over the tuple's orbit."""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.experiments import claims, curves, drawing, models, panels
from definetti.experiments.figure import Effort, Measured, Row, Verdict
from definetti.experiments.targets import divergence

CAPTION = (
    "Beside the paper: P(friends(A,B) and friends(B,C)) for 30 people, estimated from one tuple and from its orbit."
)
SECONDS = (125.0, 28.0)
PEOPLE = 30
QUERY = "friends(P0,P1) ^ friends(P1,P2)"
SWEEPS = (16, 64, 256, 1024, 4096)


def measure(effort: Effort) -> Measured:
    from definetti.inference.marginals import marginals
    from definetti.solvers.exact import exact

    model = models.smokers(PEOPLE)
    group, _ = panels.partition(model)
    truth = np.array([exact(model, [QUERY])[QUERY].probability])
    settings = {
        curves.STANDARD: {"symmetries": "none", "estimator": "standard"},
        curves.ORBIT: {"symmetries": group, "estimator": "orbit"},
    }
    rows: list[Row] = []
    for curve, options in settings.items():
        marginals(model, [QUERY], sampler="gibbs", sweeps=1, chains=1, seed=0, **options)  # compiles
        for length in (k for k in SWEEPS if k <= max(SWEEPS[1], SWEEPS[-1] * effort.length)):
            for run in range(2 * effort.runs):
                answer = marginals(model, [QUERY], sampler="gibbs", sweeps=length, seed=run, workers=1, **options)
                found = divergence(np.array([answer[QUERY].probability]), truth, np.ones(1))
                at = (run, answer.run["updates"], 8 * length, curves.sampling_seconds(answer))
                rows.append(curves.point(curve, *at, found))
    facts = {"truth": float(truth[0]), "tuples": PEOPLE * (PEOPLE - 1) * (PEOPLE - 2)}
    return Measured(sorted(rows, key=lambda row: (row["curve"], row["run"], row["samples"])), facts)


def mean_squares(rows: list[Row]) -> list[Row]:
    """Means over runs of the squared error (that of one event is often 0, which a geometric mean does not bear)."""
    grouped: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["curve"], row["samples"]), []).append(row)
    return [
        {"curve": curve, "samples": samples, "value": float(np.mean([row["mse"] for row in some]))}
        for (curve, samples), some in sorted(grouped.items(), key=lambda item: (item[0][0] != curves.STANDARD, item[0]))
    ]


def draw(measured: Measured) -> Any:
    facts = measured.facts
    said = [f"{QUERY}, {PEOPLE} people", f"exact: {facts['truth']:.4g}; {facts['tuples']:,} tuples in its orbit"]
    return drawing.in_rows(
        [
            drawing.lines(
                mean_squares(measured.rows), ("samples", "sample points (sweeps of all chains)"),
                ("value", "mean squared error"), "A joint marginal: two friendships in a row",
                subtitle=said, band=False,
            )
        ]
    )  # fmt: skip


def judge(measured: Measured) -> list[Verdict]:
    found = mean_squares(measured.rows)
    last = {row["curve"]: row["value"] for row in found}
    gain, tuples = last[curves.STANDARD] / last[curves.ORBIT], measured.facts["tuples"]
    return [
        Verdict(
            "joint",
            "the Rao-Blackwell theory “generalizes the single-variable case to marginals spanning multiple variables”",
            f"squared error at least 100 times smaller, at most 3 × {tuples:,} times (the tuple's orbit)",
            f"{claims.number(gain)} times smaller at {max(row['samples'] for row in found):,} sample points",
            100 <= gain <= 3 * tuples,
            paper=True,
            note="Tuples of one orbit share variables, so that they are correlated: the gain stays below the size of "
            "the orbit.",
        )
    ]
