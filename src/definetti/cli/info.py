"""`definetti info MODEL`: what the model is and how large, before any work is done on it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from definetti import show
from definetti.cli.options import Source, prints, reads_model
from definetti.cli.output import say, say_json

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic

CHAINS = 64  # the default on factor graphs
LABELS = {"log10_states": "states", "log10_states_at_most": "states at most", "memory_mb": "memory"}


@click.command("info")
@reads_model
@prints
def command(source: Source, as_json: bool, quiet: bool) -> int:
    """What a model is: variables, factors, states, memory."""
    from definetti.model.graph.factors import FactorGraph

    model, seconds = source.read()
    facts = factor_graph_facts(model) if isinstance(model, FactorGraph) else markov_logic_facts(model)
    facts = {"model": str(source.path), **facts, "seconds": {"read": seconds}}
    if as_json:
        say_json(facts)
    else:
        say(show.pairs([(LABELS.get(key, key.replace("_", " ")), _text(key, value)) for key, value in facts.items()]))
    return 0


def factor_graph_facts(model: FactorGraph) -> dict[str, Any]:
    import numpy as np

    arities = model.arity
    arrays = (
        model.cards,
        model.scope_start,
        model.scope,
        model.table_of,
        model.table_start,
        model.tables,
        model.evidence,
    )
    return {
        "kind": "FactorGraph",
        "variables": model.n,
        "values": _counts(model.cards),
        "factors": model.factor_count,
        "tables": len(model.table_start) - 1,
        "arity": _counts(arities),
        "evidence": model.n - len(model.free),
        "log10_states": float(np.log10(model.cards[model.free].astype(float)).sum()),
        "memory_mb": {
            "model": sum(array.nbytes for array in arrays) / 1e6,
            f"states_of_{CHAINS}_chains": model.n * CHAINS / 1e6,  # one byte per variable and chain
        },
    }


def _counts(values: Any) -> dict[str, int]:
    """How often each number occurs: {"2": 400}."""
    import numpy as np

    return {str(v): int(k) for v, k in zip(*np.unique(values, return_counts=True), strict=True)}


def markov_logic_facts(model: MarkovLogic) -> dict[str, Any]:
    observed = sum(len(e.values) for e in model.evidence.values())
    free = sum(model.knowledge.free_count(name) for name in model.predicates)
    return {
        "kind": "MarkovLogic",
        "sorts": {sort.name: sort.size for sort in model.sorts.values()},
        "predicates": {name: len(p.sorts) for name, p in model.predicates.items()},
        "formulas": len(model.formulas),
        "hard_formulas": sum(f.hard for f in model.formulas),
        "variables": model.atom_count,
        "groundings": model.ground_count,
        "evidence": observed,
        "closed_world": sorted(model.closed),
        "log10_states_at_most": free * math.log10(2),  # `!` arguments and hard formulas leave fewer
        "memory_mb": {"state_of_one_chain": model.atom_count / 8e6},
    }


def _text(key: str, value: Any) -> str:
    if key == "memory_mb":
        return ", ".join(f"{name.replace('_', ' ')} {show.size(mb * 1e6)}" for name, mb in value.items())
    if key == "seconds":
        return ", ".join(f"{name} {show.seconds(s)}" for name, s in value.items())
    if key.startswith("log10_"):
        return f"10^{value:.4g}"
    if key in ("values", "arity"):
        return ", ".join(f"{show.count(times)} × {name}" for name, times in value.items()) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {show.count(size)}" for name, size in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return show.large(value) if isinstance(value, int) else str(value)
