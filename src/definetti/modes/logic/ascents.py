"""States that ascents on the ground model of a theory end in: where chains begin to look for modes.

What formulas describe as a whole (`patterns.py`) is not all: modes may lie where many ground formulas agree that name
their constants, or whose constants are told apart by evidence. Small ground models are climbed as factor graphs are.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.formulas import atoms, quantified
from definetti.model.logic.ground import ground, ground_size
from definetti.model.logic.joins import remaining
from definetti.model.logic.theory import MarkovLogic
from definetti.modes.graph.summits import MOST_ENTRIES, summits
from definetti.modes.logic.patterns import Atoms
from definetti.modes.walkers import Key
from definetti.samplers.logic.mcsat import atom_literals

MOST_GROUNDINGS = 100_000  # before what evidence decides is left out
WIDEST = 16  # atoms in the table of a ground formula


def ascents(group: Any, key: Key, wanted: int, climbs: int) -> list[Atoms]:
    """Atoms at ends of ascents that differ under the group, at most so many; none of large models."""
    model = group.model
    size = ground_size(model)
    widest = min(size.largest_scope, size.variables)
    if wanted <= 0 or max(size.factors, size.variables) > MOST_GROUNDINGS or widest > WIDEST:
        return []
    if block_entries(model) > MOST_ENTRIES:
        return []
    try:
        made = ground(model)
    except TooLarge:
        return []
    places = {name: atom_literals(model, name) for name in model.predicates}
    cell = np.full(int(made.literal_start[-1]), -1, dtype=np.int64)
    for name, (variable, value) in places.items():
        cell[made.literal_start[variable] + value] = group.orbit_grid(name)
    try:
        states = summits(made, cell, key, wanted, climbs)
    except (ModelError, TooLarge):  # doubles that cancel, more values than a byte has: other starts remain
        return []
    return [{name: x[variable] == value for name, (variable, value) in places.items()} for x in states.T]


def block_entries(model: MarkovLogic) -> int:
    """How many entries the tables of all groundings have over blocks of values, at most; nothing is built."""
    free = {name: box.card for name, box in layout(model).items() if box.card > 2 and model.knowledge.free_count(name)}
    total = 0
    for formula in model.formulas:
        cards = [free[atom.predicate] for atom in dict.fromkeys(atoms(formula.body)) if atom.predicate in free]
        copies = prod(model.sorts[formula.sorts[name]].size for name in quantified(formula.body))
        if cards:
            total += remaining(model, formula.body, formula.free, formula.sorts) * prod(cards) ** copies
    return total
