"""Beside the paper: what the orbit estimator costs, against the size of the tuple's orbit and the number of samples.

Theorem 2(a): constructing the orbit and counting in N samples takes O(R|X^G| + N|X^G|).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from definetti.experiments import drawing, models
from definetti.experiments.figure import Effort, Measured, Row, Verdict

CAPTION = (
    "Beside the paper: time of the orbit estimator against the tuple's orbit and the number of samples (Theorem 2a)."
)
SECONDS = (30.0, 6.0)
QUERY = "friends(P0,P1) ^ friends(P1,P2)"
PEOPLE = (8, 12, 18, 27, 40)
SAMPLES = (300, 1000, 3000, 10_000, 30_000, 100_000)
ROUNDS = 3  # the best of
BY_SAMPLES, BY_ORBIT = "12 people, more samples", "2,000 samples, larger orbits"


def measure(effort: Effort) -> Measured:
    lengths = SAMPLES[:4] if effort.quick else SAMPLES
    rows = [_row(BY_SAMPLES, 12, samples) for samples in lengths]
    rows += [_row(BY_ORBIT, n, 2000) for n in (PEOPLE[:4] if effort.quick else PEOPLE)]
    return Measured(rows)


def _row(curve: str, people: int, samples: int) -> Row:
    """CPU seconds to estimate one pair from samples that are given."""
    from definetti.inference.marginals import marginals
    from definetti.model.logic.ground import ground
    from definetti.symmetry.find import symmetries

    model = models.smokers(people)
    graph = ground(model)
    draws = np.random.default_rng(people).random((1, samples, graph.n)) < 0.05
    names = list(graph.names)
    query = f"{names[names.index('friends(P0,P1)')]}=1 ^ {names[names.index('friends(P1,P2)')]}=1"
    group = symmetries(graph, "variables")
    marginals(draws[:, :10], [query], model=graph, symmetries=group)  # loads
    seconds = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        marginals(draws, [query], model=graph, symmetries=group)
        seconds = min(seconds, time.process_time() - began)
    return {"curve": curve, "people": people, "orbit": people * (people - 1) * (people - 2), "samples": samples,
            "seconds": seconds}  # fmt: skip


def exponent(rows: list[Row], curve: str, by: str) -> float:
    points = np.log([(row[by], row["seconds"]) for row in rows if row["curve"] == curve])
    return float(np.polyfit(points[:, 0], points[:, 1], 1)[0])


def draw(measured: Measured) -> Any:
    shown = [[row for row in measured.rows if row["curve"] == curve] for curve in (BY_SAMPLES, BY_ORBIT)]
    y = ("seconds", "CPU seconds")
    return drawing.in_rows(
        [
            drawing.lines(shown[0], ("samples", "samples"), y, "Cost of an orbit estimate", band=False,
                          subtitle=f"{QUERY}, samples given"),
            drawing.lines(shown[1], ("orbit", "tuples in the orbit"), y, "Against the orbit", band=False,
                          subtitle="the same query, 2,000 samples"),
        ]
    )  # fmt: skip


def judge(measured: Measured) -> list[Verdict]:
    by_samples, by_orbit = exponent(measured.rows, BY_SAMPLES, "samples"), exponent(measured.rows, BY_ORBIT, "orbit")
    return [
        Verdict(
            "cost",
            "“Its worst-case time complexity is O(R|X^G| + N|X^G|)”",
            "time grows no faster than linearly in the number of samples and in the size of the tuple's orbit "
            "(exponents below 1.15)",
            f"samples^{by_samples:.2f}, orbit^{by_orbit:.2f}",
            by_samples < 1.15 and by_orbit < 1.15,
            paper=True,
        )
    ]
