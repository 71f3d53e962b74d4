"""Expected numbers of true groundings of a model's own formulas, one per weight: the statistics that learning needs.

They are asked for as patterns under keys that no query has, and taken out of the answer again. Warnings name the keys.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.logic.formulas import substitute
from definetti.model.logic.text import format_formula
from definetti.model.logic.theory import Constant, MarkovLogic, WeightedFormula
from definetti.model.marginals import Marginals, width
from definetti.readers.logic.queries import LogicQuery

KEY = re.compile(r"formula \d+: ")  # no query can be read that begins like this
MOST_WEIGHTS = 5_000


def formula_queries(model: Any) -> list[LogicQuery]:
    """A pattern for each weight of each soft formula."""
    if model.kind != "logic":
        raise ModelError("formulas are counted in Markov logic; a factor graph has none")
    count = sum(int(np.size(f.weight)) for f in model.formulas if f.weight is not None)
    if count > MOST_WEIGHTS:
        raise TooLarge("counting formulas", count, MOST_WEIGHTS, "ask for single formulas by queries", unit="weights")
    out = []
    for number, formula in enumerate(model.formulas):
        if formula.weight is None:
            continue
        free = [name for name in formula.free if name not in formula.plus]
        inner = {name: sort for name, sort in formula.sorts.items() if name not in formula.free}
        for _, binding in _weights(model, formula):
            body = substitute(formula.body, binding)
            pairs = tuple((name, formula.sorts[name]) for name in free)
            out.append(LogicQuery(_key(model, number, body), body, pairs, sorts=inner))
    return out


def _key(model: MarkovLogic, number: int, body: Any) -> str:
    return f"formula {number + 1}: {format_formula(body, model.sorts)}"


def _weights(model: MarkovLogic, formula: WeightedFormula) -> list[tuple[int, dict[str, Constant]]]:
    sorts = [formula.sorts[name] for name in formula.plus]
    values = product(*([Constant(sort, i) for i in range(model.sorts[sort].size)] for sort in sorts))
    return [(k, dict(zip(formula.plus, chosen, strict=True))) for k, chosen in enumerate(values)]


def with_formulas(model: MarkovLogic, result: Marginals) -> Marginals:
    """The answer with its formulas' rows apart from its queries."""
    rows: list[dict[str, Any]] = []
    for number, formula in enumerate(model.formulas):
        sizes = {name: model.sorts[formula.sorts[name]].size for name in formula.free}
        if formula.weight is None:
            total = prod(sizes.values())
            text = format_formula(formula.body, model.sorts)
            rows.append(_row(formula, text, None, total, float(total), 0.0, 0.0))
            continue
        total = prod(size for name, size in sizes.items() if name not in formula.plus)
        for place, binding in _weights(model, formula):
            body = substitute(formula.body, binding)
            found = result.queries[_key(model, number, body)]
            mcse, half = (None if x is None else float(x) * total for x in (found.mcse, width(found)))  # type: ignore[arg-type]
            text = format_formula(body, model.sorts)
            weight = float(np.ravel(formula.weight)[place])
            rows.append(_row(formula, text, weight, total, float(found.probability) * total, mcse, half))  # type: ignore[arg-type]
    left = {key: value for key, value in result.queries.items() if not KEY.match(key)}
    return replace(result, queries=left, formulas=tuple(rows))


def _row(
    formula: WeightedFormula, text: str, weight: float | None, total: int, expected: float, mcse: Any, half: Any
) -> dict[str, Any]:
    return {"formula": text, "line": formula.line, "weight": weight, "groundings": total, "expected": expected,
            "mcse": mcse, "half_width": half}  # fmt: skip
