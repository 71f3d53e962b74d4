"""A factor graph as a tree of arrays, numbers and texts, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.model.graph.checked_arrays import fault
from definetti.model.graph.factors import MOST_LITERALS, FactorGraph, frozen

ARRAYS = {
    "cards": np.int32,
    "scope_start": np.int64,
    "scope": np.int32,
    "table_of": np.int32,
    "table_start": np.int64,
    "tables": np.float64,
    "evidence": np.int32,
}


def encoded(model: FactorGraph) -> dict[str, Any]:
    values = [[variable, list(names)] for variable, names in model.value_names.items()]
    arrays = {name: getattr(model, name) for name in ARRAYS}
    return {"names": list(model.names), "log_constant": model.log_constant, "values": values, **arrays}


def decoded(tree: Any) -> FactorGraph:
    arrays = {name: _flat(tree[name], kind) for name, kind in ARRAYS.items()}
    values = {int(variable): tuple(map(_text, names)) for variable, names in tree["values"]}
    names = tuple(map(_text, tree["names"]))
    made = FactorGraph(names, **arrays, log_constant=float(tree["log_constant"]), value_names=values)
    if int(made.cards.sum(dtype=np.int64)) > MOST_LITERALS or fault(made):
        raise ValueError
    return made


def _flat(array: Any, kind: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != kind:
        raise ValueError
    return frozen(array)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError
    return name
