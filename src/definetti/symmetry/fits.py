"""Whether a group that a user gives belongs to the model that is asked about, for both kinds of model."""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.errors import ModelError


def is_group(wanted: Any) -> bool:
    """Whether symmetries are given as a group, not by the name of their kind."""
    return hasattr(wanted, "model") and hasattr(wanted, "order")


def require_fit(model: Any, group: Any) -> None:
    """`ModelError` unless the group is one of this model with this evidence, or may be one of its ground model."""
    if not (_fits_graph(model, group) if model.kind == "graph" else _fits_logic(model, group)):
        raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")


def _fits_graph(model: Any, group: Any) -> bool:
    """Of the same simplified variables, evidence and factors."""
    if group.model.kind != "graph":
        return False
    from definetti.model.graph.simplify import simplify

    simple, parts = simplify(model), ("cards", "evidence", "scope_start", "scope", "table_of", "table_start", "tables")
    same = (np.array_equal(getattr(simple, part), getattr(group.model, part)) for part in parts)
    return simple.names == group.model.names and all(same)


def _fits_logic(model: Any, group: Any) -> bool:
    """Of the same theory and evidence."""
    if group.model.kind != "logic":
        return True  # of a ground model, which is compared once it is made
    other = group.source or group.model
    if any(getattr(model, part) != getattr(other, part) for part in ("formulas", "sorts", "closed")):
        return False
    pairs = [(model.evidence.get(name), other.evidence.get(name)) for name in model.predicates]
    return all(
        (x is y is None) or (x and y and np.array_equal(x.tuples, y.tuples) and np.array_equal(x.values, y.values))
        for x, y in pairs
    )
