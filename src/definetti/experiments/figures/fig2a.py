"""Figure 2(a): the asthma-smokes-cancer MLN with 50 people and 10 % evidence, in both published forms.

With hard rules the start of the paper's protocol, all false, lies in a region of almost no weight, where those who
know no smoker have asthma. The chain leaves it, and its memory is what the orbit estimator then shows. So two curves
start from a state drawn exactly instead, and one sampler, lifted counting, draws every state independently.
"""

from __future__ import annotations

from typing import Any

from definetti.experiments import claims, curves, drawing, models, panels
from definetti.experiments.figure import Effort, Measured, Verdict
from definetti.experiments.truths import EVIDENCE_SEED

CAPTION = "The asthma-smokes-cancer MLN with 50 people and 10% evidence."
SECONDS = (210.0, 50.0)
DRAWN = ("Gibbs from an exact draw, standard", "Gibbs from an exact draw, orbit")
LIFTED = ("independent exact draws, standard", "independent exact draws, orbit")


def measure(effort: Effort) -> Measured:
    evidence = models.known_people(50, EVIDENCE_SEED)
    facts = panels.evidence_facts(evidence)
    rows = []
    for form in ("hard", "soft"):
        model = models.asthma(50, form == "hard", evidence)
        group, seconds = panels.partition(model)
        target, truth = panels.exact_target(model, group)
        some = panels.three_curves(
            model, group, target, effort, updates=2e7, samples=500, sweeps=(4, 16, 64, 250, 1000)
        )
        if form == "hard":
            start = _drawn(group.model)
            length = int(2e7 * effort.length)
            some += curves.paper_curves(group.model, target, effort.runs, length, start=start, names=DRAWN)
            some += curves.mcsat_curves(model, target, effort.runs, max(20, int(500 * effort.length)),
                                        sampler="lifted", names=LIFTED)  # fmt: skip
        rows += [{"form": form, **row} for row in some]
        facts[form] = panels.facts_of(target, seconds, truth)
    return Measured(rows, facts)


def _drawn(model: Any) -> Any:
    return lambda seed: curves.exact_draw(model, seed)


def panel(measured: Measured, form: str) -> Measured:
    """The numbers of one of the two forms."""
    return Measured([row for row in measured.rows if row["form"] == form], measured.facts[form])


def draw(measured: Measured) -> Any:
    facts = measured.facts
    grid = []
    for what, axis in (("kl", "average KL divergence"), ("mse", "mean squared error")):
        row = []
        for form in ("hard", "soft"):
            one = panel(measured, form)
            said = [
                f"{one.facts['variables']:,} variables in {one.facts['orbits']:,} orbits; truth: {one.facts['truth']}",
                panels.evidence_text(facts),
            ]
            shown = curves.summary([row for row in one.rows if row["curve"] != LIFTED[0]], what)
            title = f"2(a) Asthma, 50 people, 10 % evidence, {form}"
            x = ("seconds", "CPU seconds of sampling")
            first = what == "kl"
            row.append(
                drawing.lines(shown, x, ("value", axis), title if first else "The same, squared error",
                              subtitle=said if first else "", legend=first)
            )  # fmt: skip
        grid.append(row)
    return drawing.in_rows(*grid)


def judge(measured: Measured) -> list[Verdict]:
    hard, soft = panel(measured, "hard"), panel(measured, "soft")
    return [
        claims.never_worse("fig2a", hard, [*claims.PAIRS, DRAWN, LIFTED]),
        claims.never_worse("fig2a", soft, claims.PAIRS),
        claims.gain_by_symmetry("fig2a", hard, DRAWN[1], DRAWN[0]),
        claims.gain_by_symmetry("fig2a", soft),
        claims.gain_by_default("fig2a", hard, 100),
        claims.gain_by_default("fig2a", soft, 100),
        claims.partition_time("fig2a", hard),
        claims.partition_time("fig2a", soft),
        claims.exactly_solved("fig2a", hard),
        _memory(hard),
    ]


def _memory(hard: Measured) -> Verdict:
    cold, warm = curves.last(hard.rows, curves.ORBIT)["value"], curves.last(hard.rows, DRAWN[1])["value"]
    return Verdict(
        "fig2a",
        "the bias “is governed by the mixing time of the quotient Markov chain whose convergence behavior is superior”",
        "no smaller bias: from all false the orbit estimator is worse than from an exact draw, by the same chain",
        f"KL divergence {cold:.2g} from all false, {warm:.2g} from an exact draw",
        cold > warm,
        paper=True,
        note="From a start that the group leaves alone, such as all false, the bias of both estimators is equal at "
        "every step. Averaging over orbits removes variance; the memory of the start stays.",
    )
