"""What a model is and how large: for `info` and for pages. Large models are summarised, never listed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic

CHAINS = 64  # the default on factor graphs
MOST_FORMULAS = 60  # that are listed
LONGEST = 300  # characters of one
LABELS = {"log10_states": "states", "log10_states_at_most": "states at most", "memory_mb": "memory"}


def facts(model: FactorGraph | MarkovLogic) -> dict[str, Any]:
    return factor_graph_facts(model) if model.kind == "graph" else markov_logic_facts(model)  # type: ignore[arg-type]


def factor_graph_facts(model: FactorGraph) -> dict[str, Any]:
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
        "arity": _counts(model.arity),
        "evidence": model.n - len(model.free),
        "log10_states": float(np.log10(model.cards[model.free].astype(float)).sum()),
        "memory_mb": {
            "model": sum(array.nbytes for array in arrays) / 1e6,
            f"states_of_{CHAINS}_chains": model.n * CHAINS / 1e6,  # one byte per variable and chain
        },
    }


def _counts(values: np.ndarray) -> dict[str, int]:
    """How often each number occurs: {"2": 400}."""
    return {str(v): int(k) for v, k in zip(*np.unique(values, return_counts=True), strict=True)}


def markov_logic_facts(model: MarkovLogic) -> dict[str, Any]:
    observed = sum(len(e.values) for e in model.evidence.values())
    free = model.knowledge.free_total
    return {
        "kind": "MarkovLogic",
        "dialect": model.dialect,
        "sorts": {sort.name: sort.size for sort in model.sorts.values()},
        "predicates": {name: len(p.sorts) for name, p in model.predicates.items()},
        "formulas": len(model.formulas),
        "hard_formulas": sum(f.hard for f in model.formulas),
        "formulas_without_weight": len(model.unweighted),
        "variables": model.atom_count,
        "groundings": model.ground_count,
        "evidence": observed,
        "closed_world": sorted(model.closed - model.computed),
        "log10_states_at_most": free * math.log10(2),  # `!` arguments and hard formulas leave fewer
        "memory_mb": {"state_of_one_chain": model.atom_count / 8e6},
    }


def fact_rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as readers see them: names and texts."""
    return [(LABELS.get(key, key.replace("_", " ")), _text(key, value)) for key, value in found.items()]


def _text(key: str, value: Any) -> str:
    if key == "memory_mb":
        return ", ".join(f"{name.replace('_', ' ')} {show.size(mb * 1e6)}" for name, mb in value.items())
    if key == "seconds":
        return ", ".join(f"{name} {show.seconds(s)}" for name, s in value.items())
    if key.startswith("log10_"):
        return show.count(round(10**value)) if value < 6 else f"10^{math.floor(value + 1e-9):,}"
    if key == "engines":
        return by_value(value)
    if key in ("values", "arity"):
        return ", ".join(f"{show.count(times)} × {name}" for name, times in value.items()) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {show.count(size)}" for name, size in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return show.large(value) if isinstance(value, int) else str(value)


def by_value(found: dict[str, str]) -> str:
    """Names with equal texts together: "A, B: text"."""
    together: dict[str, list[str]] = {}
    for name, text in found.items():
        together.setdefault(text, []).append(name)
    return "; ".join(f"{', '.join(names)}: {text}" for text, names in together.items()) or "none"


# --- outlines -----------------------------------------------------------------------------------------------------


def formulas(model: FactorGraph | MarkovLogic) -> list[dict[str, Any]]:
    """{"weight", "text"} of the formulas of a Markov logic network, the first of them; null is hard."""
    if model.kind != "logic":
        return []
    from definetti.model.logic.text import format_formula

    out = []
    for formula in model.formulas[:MOST_FORMULAS]:  # type: ignore[union-attr]
        text = format_formula(formula.body, model.sorts, 0, formula.plus)  # type: ignore[union-attr]
        weights = np.ravel([] if formula.weight is None else formula.weight)
        if len(weights) > 1 and weights.min() < weights.max():
            weight: Any = f"{weights.min():.6g} to {weights.max():.6g}"
        else:
            weight = float(weights[0]) if len(weights) else None
        out.append({"weight": weight, "text": show.shortened(text, LONGEST)})
    return out


def evidence(model: FactorGraph | MarkovLogic) -> list[dict[str, Any]]:
    """{"of", "true", "false"}: how many atoms of each predicate are known; of a factor graph the first observed
    variables with their values."""
    if model.kind == "logic":
        counts = {
            name: (int((known.values == 1).sum()), int((known.values == 0).sum()))
            for name, known in model.evidence.items()  # type: ignore[union-attr]
        }
        return [{"of": name, "true": true, "false": false} for name, (true, false) in counts.items() if true + false]
    observed = np.flatnonzero(model.evidence >= 0)[:MOST_FORMULAS]  # type: ignore[union-attr,operator]
    return [{"of": model.names[i], "value": int(model.evidence[i])} for i in observed.tolist()]  # type: ignore[union-attr,index]
