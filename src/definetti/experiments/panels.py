"""What the panels of Figure 2 on Markov logic share: a model with its group, its truth, and three kinds of curves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from definetti.experiments import curves, drawing, models
from definetti.experiments.figure import Effort, Measured, Row
from definetti.experiments.targets import Target, target_of
from definetti.experiments.truths import EVIDENCE_SEED, Truth, truth

PATIENCE = 300.0  # seconds by the clock for a search that takes less than one: the machine may be busy


def partition(model: Any, kind: str = "auto") -> tuple[Any, float]:
    """The group, and the CPU seconds that finding it took (after the code for it was loaded)."""
    from definetti.symmetry.find import symmetries

    symmetries(model, kind, None, PATIENCE)
    began = time.process_time()
    group = symmetries(model, kind, None, PATIENCE)
    return group, time.process_time() - began


def exact_target(model: Any, group: Any) -> tuple[Target, dict[str, Any]]:
    """The truth by an exact engine."""
    from definetti.solvers.exact import exact

    began = time.process_time()
    answer = exact(model)
    seconds = time.process_time() - began
    made = target_of(group, lambda name: answer[name].probability)
    return made, {"truth": f"exact ({str(answer.method).split(' (')[0]})", "exact_seconds": seconds}


def kept_target(group: Any, kept: Truth) -> tuple[Target, dict[str, Any]]:
    """The truth by a long run that is kept."""
    made = target_of(group, kept.values, kept.errors.__getitem__)
    text = f"a long run of {kept.made['updates']:.2g} updates, standard errors up to {made.error.max():.1g}"
    return made, {"truth": text}


def facts_of(target: Target, seconds: float, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "variables": target.variables,
        "orbits": target.orbits,
        "partition_seconds": seconds,
        "truth_noise": target.noise(),
        **more,
    }


def fifty_smokers(effort: Effort, *, transitive: bool = False, evidence: str = "", kept: str = "") -> Measured:
    """The smokes-cancer MLN with 50 people; its truth is the kept one of this name, or exact."""
    model = models.smokers(50, transitive, evidence)
    group, seconds = partition(model)
    target, made = kept_target(group, truth(kept)) if kept else exact_target(model, group)
    rows = three_curves(model, group, target, effort, updates=2e7, samples=1000, sweeps=(4, 16, 64, 250, 1000))
    return Measured(rows, facts_of(target, seconds, made | (evidence_facts(evidence) if evidence else {})))


def evidence_facts(evidence: str) -> dict[str, Any]:
    return {"known_smokers": models.known_smokers(evidence), "evidence_seed": EVIDENCE_SEED}


def evidence_text(facts: dict[str, Any]) -> str:
    return f"evidence: seed {facts['evidence_seed']}, {facts['known_smokers']} of 5 known people smoke"


def three_curves(
    model: Any, group: Any, target: Target, effort: Effort, *, updates: float, samples: int, sweeps: Sequence[int]
) -> list[Row]:
    """Gibbs sampling by the paper's protocol, MC-SAT, and the defaults. Lengths are those of a full run."""
    rows = curves.paper_curves(group.model, target, effort.runs, int(updates * effort.length))
    rows += curves.mcsat_curves(model, target, effort.runs, max(20, int(samples * effort.length)))
    kept = [length for length in sweeps if length <= max(sweeps[0], sweeps[-1] * effort.length)]
    return rows + curves.auto_curves(model, group, target, effort.runs, kept)


def standard_figure(measured: Measured, title: str) -> Any:
    facts = measured.facts
    size = f"{facts['variables']:,} variables in {facts['orbits']:,} orbits", f"truth: {facts['truth']}"
    said = [evidence_text(facts)] if "evidence_seed" in facts else []
    marks = []
    if facts.get("exact_seconds"):
        marks.append({"x": facts["exact_seconds"], "label": "exact"})
    return drawing.divergence_figure(measured.rows, title, [*size, *said], marks)
