"""Figure 2(e): the 2-colouring 100×100 grid model with weight 0.2.

Exchanging the two colours is a symmetry too, so that every single marginal is 1/2 and nothing needs to be sampled. What
is left of the paper's panel is how fast permutations alone come there. Two more panels test something: whether
neighbours differ, against the exact values, and the grid in a random field that the square's symmetries leave alone.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from definetti.experiments import claims, curves, drawing, models, panels
from definetti.experiments.figure import Effort, Measured, Row, Verdict
from definetti.experiments.targets import Target, target_of
from definetti.experiments.truths import edge_orbits, truth

CAPTION = "The 2-coloring 100×100 grid model with weight 0.2."
SECONDS = (410.0, 40.0)
PANELS = {"single": "single variables", "edges": "pairs of neighbours", "fields": "single variables in a random field"}


def measure(effort: Effort) -> Measured:
    model, length = models.grid(), int(1e7 * effort.length)
    group, seconds = panels.partition(model, "variables")
    single = target_of(group, lambda name: 0.5)
    edges = edge_target()
    rows = _grid_curves(model, single, edges, effort.runs, length)
    field_model = models.grid(fields=models.symmetric_fields())
    field_group, _ = panels.partition(field_model, "variables")
    field, made = panels.kept_target(field_group, truth("grid-fields"))
    some = curves.paper_curves(field_model, field, effort.runs, length)
    sweeps = [k for k in (8, 32, 128, 512, 2048) if k <= max(32, 2048 * effort.length)]
    some += curves.auto_curves(field_model, field_group, field, effort.runs, sweeps)
    rows += [{"panel": "fields", **row} for row in some]
    facts = {
        "single": panels.facts_of(single, seconds, {"truth": "1/2, by the exchange of colours"}),
        "edges": panels.facts_of(edges, seconds, {"truth": "exact, by the Kac–Ward formula"}),
        "fields": panels.facts_of(field, seconds, made | {"short": effort.quick}),
        "largest_error_with_flips": _with_flips(model),
    }
    return Measured(rows, facts)


def edge_target() -> Target:
    """Whether neighbours differ, one orbit for the edges that the square's symmetries carry into each other."""
    orbit, edges = edge_orbits(models.SIDE), models.grid_edges()
    first = np.unique(orbit, return_index=True)[1]
    names = tuple(f"X{a}!=X{b}" for a, b in edges[first].tolist())
    exact = truth("grid-edges").values
    values = np.array([exact[name] for name in names])
    return Target(np.bincount(orbit), lambda: orbit, values, np.zeros(len(names)), names)


def _grid_curves(model: Any, single: Target, edges: Target, runs: int, updates: int) -> list[Row]:
    """The paper's protocol, singles and pairs from the same chains."""
    from definetti.samplers.graph.every_update import FollowedVariables

    rows, names = [], (curves.STANDARD, curves.ORBIT)
    for run in range(runs):
        chain, seconds, done = FollowedVariables(model, 0, 100 + run, models.grid_edges()), 0.0, 0
        for stop in curves.ladder(model.n, updates):
            began = time.process_time()
            chain.advance(stop - done)
            seconds, done = seconds + time.process_time() - began, stop
            at = (run, stop, stop, seconds)
            rows += [{"panel": "single", **row} for row in curves.both(single, chain.means(), names, at)]
            rows += [{"panel": "edges", **row} for row in curves.both(edges, chain.edge_means(), names, at)]
    return rows


def _with_flips(model: Any) -> float:
    """The largest error of default runs, which know the exchange of colours."""
    from definetti.inference.marginals import marginals

    answer = marginals(model, sweeps=1, seed=1)
    return float(max(abs(np.ravel(row.probability)[-1] - 0.5) for row in answer.orbits))


def panel(measured: Measured, name: str) -> Measured:
    return Measured([row for row in measured.rows if row["panel"] == name], measured.facts[name])


def draw(measured: Measured) -> Any:
    drawn = []
    for name, title in PANELS.items():
        one = panel(measured, name)
        what = "edges" if name == "edges" else "variables"
        said = [f"{one.facts['variables']:,} {what} in {one.facts['orbits']:,} orbits", f"truth: {one.facts['truth']}"]
        x, y = ("seconds", "CPU seconds of sampling"), ("value", "average KL divergence")
        head = f"2(e) 100×100 grid: {title}" if name == "single" else title[0].upper() + title[1:]
        drawn.append(drawing.lines(curves.summary(one.rows), x, y, head, subtitle=said))
    errors = [
        drawing.lines(curves.summary(panel(measured, name).rows, "mse"), ("seconds", "CPU seconds of sampling"),
                      ("value", "mean squared error"), "The same, squared error", legend=False)
        for name in PANELS
    ]  # fmt: skip
    return drawing.in_rows(drawn, errors)


def judge(measured: Measured) -> list[Verdict]:
    pairs = [(curves.STANDARD, curves.ORBIT)]
    single, edges, fields = (panel(measured, name) for name in PANELS)
    worst = measured.facts["largest_error_with_flips"]
    return [
        claims.never_worse("fig2e", single, pairs),
        claims.gain_by_symmetry("fig2e", single),
        claims.gain_by_symmetry("fig2e", edges),
        claims.gain_by_symmetry("fig2e", fields),
        claims.gain_by_default("fig2e", fields, 1e4),
        claims.truth_is_sharp("fig2e", fields),
        claims.partition_time("fig2e", single),
        Verdict(
            "fig2e",
            "“The results clearly demonstrate the superior performance of the Rao-Backwell estimator even for "
            "probabilistic models with a smaller number of symmetries.”",
            "with the exchange of colours among the symmetries every marginal is exactly 1/2 after one sweep",
            f"largest error {worst:.1g}",
            worst < 1e-12,
            paper=True,
            note="All single marginals of this model are 1/2, by exchanging the two values everywhere: the panel does "
            "not test an estimator that knows this. Pairs of neighbours and the random field do.",
        ),
    ]
