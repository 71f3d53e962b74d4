"""A factor graph as a tree of arrays, numbers and texts, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.model.checked_input import LARGEST_LOG
from definetti.model.graph.factors import FREE, MOST_LITERALS, FactorGraph, frozen

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
    _require(made)
    return made


def _flat(array: Any, kind: Any) -> np.ndarray:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != kind:
        raise ValueError
    return frozen(array)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError
    return name


def _require(model: FactorGraph) -> None:
    """Everything that code downstream relies on."""
    n, cards, tables = len(model.names), model.cards, model.tables
    ok = len(cards) == len(model.evidence) == n == len(set(model.names)) and (cards >= 1).all()
    ok = ok and int(cards.sum(dtype=np.int64)) <= MOST_LITERALS
    ok = ok and ((model.evidence >= FREE) & (model.evidence < cards)).all() and np.isfinite(model.log_constant)
    ok = ok and _covers(model.scope_start, len(model.scope)) and _covers(model.table_start, len(tables))
    ok = ok and len(model.scope_start) == len(model.table_of) + 1
    ok = ok and _within(model.scope, n) and _within(model.table_of, len(model.table_start) - 1)
    if not ok or np.isnan(tables).any() or (tables > LARGEST_LOG).any() or _lowest(tables) < -LARGEST_LOG:
        raise ValueError
    owner = np.repeat(np.arange(len(model.table_of)), np.diff(model.scope_start))
    pairs = owner * max(n, 1) + model.scope
    if len(np.unique(pairs)) != len(pairs):  # a variable twice in a factor
        raise ValueError
    logs = np.bincount(owner, weights=np.log2(cards[model.scope]), minlength=len(model.table_of))
    if (logs > 62).any():
        raise ValueError
    entries = np.ones(len(model.table_of), dtype=np.int64)
    np.multiply.at(entries, owner, cards[model.scope].astype(np.int64))
    if (entries != np.diff(model.table_start)[model.table_of]).any():
        raise ValueError
    if any(not 0 <= i < n or len(v) != cards[i] or len(set(v)) != len(v) for i, v in model.value_names.items()):
        raise ValueError


def _covers(starts: np.ndarray, count: int) -> bool:
    return len(starts) > 0 and bool(starts[0] == 0 and starts[-1] == count and (np.diff(starts) >= 0).all())


def _within(numbers: np.ndarray, count: int) -> bool:
    return bool(((numbers >= 0) & (numbers < count)).all())


def _lowest(tables: np.ndarray) -> float:
    return float(tables[np.isfinite(tables)].min(initial=0.0))
