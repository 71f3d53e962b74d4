"""Whether single-site moves connect all legal states of a Markov logic network.

The sites of the relational engine are atoms, classes of tied atoms and `!` blocks. The formulas alone may decide, for
any number of constants: a predicate that all hard clauses want at one value can be set to it, atom by atom, without
breaking any; the clauses it is in are then satisfied, and others may follow. Otherwise the hard formulas are grounded,
where they are few, and `constraints/graph/connectivity.py` decides.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from definetti.constraints.logic.ties import Literal, Tied, tied_classes, untied_clauses
from definetti.errors import TooLarge
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.theory import MarkovLogic

if TYPE_CHECKING:
    from definetti.constraints.graph.contract import Class
    from definetti.model.graph.factors import FactorGraph

MOST_GROUND = 20_000  # atoms, and groundings of hard formulas


def relational_moves_connect(model: MarkovLogic) -> bool | None:
    """True or false where decided, else None. Atoms that `model` forces are evidence."""
    hard = replace(model, formulas=tuple(formula for formula in model.formulas if formula.hard))
    if not hard.formulas:
        return True
    tied = tied_classes(model)
    try:
        return True if _peeled(hard, tied) else _connected_ground(hard, tied)
    except TooLarge:
        return None


def _connected_ground(hard: MarkovLogic, tied: Tied) -> bool | None:
    """The same, decided on the ground hard formulas where they are few."""
    from definetti.constraints.graph.connectivity import single_moves_connect
    from definetti.constraints.graph.contract import merge_classes
    from definetti.model.graph.simplify import simplify
    from definetti.model.logic.ground import ground, ground_size

    size = ground_size(hard)
    if max(size.variables, size.factors) > MOST_GROUND:
        return None
    simple = simplify(ground(hard))
    return single_moves_connect(merge_classes(simple, _classes(hard, simple, tied)))


def _peeled(hard: MarkovLogic, tied: Tied) -> bool:
    """Whether predicates can be put at values, one after the other, until no clause is left.

    A clause is kept as its literals' predicates and signs. Where known atoms have the other value than the one their
    predicate is put at, its clauses stay, without it; literals of known atoms alone say nothing either.
    """
    lead = {i.predicate: (name, i.sign) for name, images in tied.items() for i in images}
    left: set[frozenset[Literal]] = set()
    known = hard.knowledge
    for clause in untied_clauses(hard):
        literals = [(*lead.get(name, (name, True)), sign) for name, sign in clause]
        left.add(frozenset((name, same == sign) for name, same, sign in literals if known.free_count(name)))
    while left := left - {frozenset()}:
        wanted = frozenset[Literal]().union(*left)
        put = {(p, v) for p, v in wanted if (p, not v) not in wanted and not hard.predicates[p].exclusive}
        if not put:
            return False
        everywhere = {(p, v) for p, v in put if not known.occurs(p, int(not v))}
        left = {clause - put for clause in left if not clause & everywhere}
    return True


def _classes(hard: MarkovLogic, simple: FactorGraph, tied: Tied) -> list[Class]:
    """The variables of the ground model that are one site of the relational engine."""
    from definetti.model.graph.factors import FREE

    boxes, found = layout(hard), {}
    for name, images in tied.items():
        shape = hard.shape(name)
        grid = np.indices(shape).reshape(len(shape), prod(shape))
        members = [
            boxes[i.predicate].offset
            + np.array(boxes[i.predicate].variable_strides, dtype=np.int64) @ grid[list(i.places)]
            for i in images
        ]
        signs = np.array([int(i.sign) for i in images])
        for variables in np.stack(members, axis=1):
            distinct, first = np.unique(variables, return_index=True)
            if len(distinct) > 1 and (simple.evidence[distinct] == FREE).all():
                found[tuple(distinct.tolist())] = np.stack([1 - signs[first], signs[first]])
    return [(list(variables), values) for variables, values in found.items()]
