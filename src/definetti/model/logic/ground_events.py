"""A formula over constants as an event of the ground model: which variables it is about, and which of their values."""

from __future__ import annotations

from math import prod

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.atom_literals import atom_literal, layout
from definetti.model.logic.formulas import atoms, equalities
from definetti.model.logic.ground import LARGEST_TABLE, evaluate
from definetti.model.logic.theory import Formula, MarkovLogic


def ground_event(model: MarkovLogic, formula: Formula) -> tuple[tuple[int, ...], np.ndarray]:
    """The variables of `ground(model)` that a quantifier-free formula over constants speaks of, ascending, and the
    tuples of their values that make it true: int32[s, k]. `Topic(P1,AI)` is one value of the variable `Topic(P1,!)`."""
    boxes = layout(model)
    literals = {atom: atom_literal(boxes, atom) for atom in atoms(formula)}
    cards = {literals[atom][0]: boxes[atom.predicate].card for atom in literals}
    variables = tuple(sorted(cards))
    shape = tuple(cards[variable] for variable in variables)
    if prod(shape) > LARGEST_TABLE:
        raise TooLarge("the number of states of a query's atoms", prod(shape), LARGEST_TABLE, "ask for fewer at once")
    truth: dict[Formula, np.ndarray | bool] = {e: e.left == e.right for e in equalities(formula)}
    for atom, (variable, value) in literals.items():
        axis = variables.index(variable)
        side = [1] * len(shape)
        side[axis] = shape[axis]
        truth[atom] = (np.arange(shape[axis]) == value).reshape(side)
    table = np.broadcast_to(np.asarray(evaluate(formula, truth)), shape)
    return variables, np.argwhere(table).astype(np.int32)
