"""States that ascents on the ground model of a theory end in: where chains begin to look for modes.

What formulas describe as a whole (`patterns.py`) is not all: modes may lie where many ground formulas agree that name
their constants, or whose constants are told apart by evidence. Small ground models are climbed as factor graphs are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.ground import ground, ground_size
from definetti.modes.graph.summits import summits
from definetti.modes.logic.patterns import Atoms
from definetti.modes.walkers import Key
from definetti.samplers.logic.mcsat import atom_literals

MOST_GROUNDINGS = 100_000  # before what evidence decides is left out
WIDEST = 16  # atoms in the table of a ground formula
MOST_ENTRIES = 1 << 24  # of tables over blocks of more values than two: those over one scope are added up


def ascents(group: Any, key: Key, wanted: int, climbs: int) -> list[Atoms]:
    """Atoms at ends of ascents that differ under the group, at most so many; none of large models."""
    model = group.model
    size = ground_size(model)
    widest = min(size.largest_scope, size.variables)
    if wanted <= 0 or max(size.factors, size.variables) > MOST_GROUNDINGS or widest > WIDEST:
        return []
    values = max((box.card for box in layout(model).values()), default=2)
    if values > 2 and size.factors * values**widest > MOST_ENTRIES:
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
