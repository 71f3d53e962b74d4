"""Whether a group that a user gives belongs to the model that is asked about."""

from __future__ import annotations

import numpy as np

from definetti.errors import ModelError
from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.graph.group import Symmetries
from definetti.symmetry.logic.renaming import RenamingSymmetries


def kind_of(group: object) -> str | None:
    """`graph` for a group of a factor graph, `logic` for one of a Markov logic network, None for anything else."""
    kinds = {Symmetries: "graph", RenamingSymmetries: "logic"}
    return kinds.get(type(group))


def require_fit(model: FactorGraph | MarkovLogic, group: Symmetries | RenamingSymmetries) -> None:
    """`ModelError` unless the group is one of this model, with this evidence."""
    if isinstance(group, RenamingSymmetries):
        fits = isinstance(model, MarkovLogic) and _same_logic(model, group.source or group.model)
    else:
        fits = isinstance(model, FactorGraph) and _same_graph(simplify(model), group.model)
    if not fits:
        raise ModelError("these symmetries belong to another model, or to other evidence; find them for this one")


def _same_logic(a: MarkovLogic, b: MarkovLogic) -> bool:
    """The same theory with the same evidence."""
    if a.formulas != b.formulas or a.sorts != b.sorts or a.closed != b.closed or a.evidence.keys() != b.evidence.keys():
        return False
    pairs = [(a.evidence[name], b.evidence[name]) for name in a.evidence]
    return all(np.array_equal(x.tuples, y.tuples) and np.array_equal(x.values, y.values) for x, y in pairs)


def _same_graph(a: FactorGraph, b: FactorGraph) -> bool:
    """Two simplified models with the same variables, evidence and factors."""
    parts = ("cards", "evidence", "scope_start", "scope", "table_of", "table_start", "tables")
    return a.names == b.names and all(np.array_equal(getattr(a, part), getattr(b, part)) for part in parts)
