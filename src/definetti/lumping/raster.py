"""The orders of a sweep over a Markov logic network, read off the compiled kernel: a raster over shuffled constants.

The kernel of the fixed scan takes the constants in whatever order its chain holds. Put into each of the possible orders
and advanced one update at a time, it reports which site it has visited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import TooLarge
from definetti.lumping.transitions import CURE, MOST_SITES
from definetti.model.logic.atom_literals import layout

if TYPE_CHECKING:
    from definetti.samplers.logic.engine import Relational
    from definetti.symmetry.logic.renaming import RenamingSymmetries

MOST_ORDERS = math.factorial(MOST_SITES)


def raster_orders(group: RenamingSymmetries, scan: str) -> Iterator[tuple[float, Sequence[int]]]:
    """(probability, variables of the ground model in the order of their updates) of the fixed or symmetric scan."""
    from definetti.samplers.logic.engine import compile_model
    from definetti.samplers.logic.starts import first_state

    made = compile_model(group.model, {}, scan="fixed", late=group.late(), source=group.source)
    chain = first_state(made, 0, 0, None)
    orders = [(chain.order.copy(),)] if scan == "fixed" else list(_shuffled(made, chain.order))
    parts = list(itertools.product(*orders)) if scan == "symmetric" else orders
    for part in parts:
        made_order = np.concatenate(part)
        chain.order[: len(made_order)] = made_order  # what follows are the turns of the entries
        yield 1.0 / len(parts), _visited(made, chain)


def _shuffled(made: Relational, order: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Every order of each segment that a symmetric sweep shuffles: the constants of a sort, a list of few sites."""
    from definetti.samplers.kernels.logic.relational import LISTED, SITES

    entries = made.data.entries
    segments = [(int(first), int(size)) for first, size in made.data.sorts]
    segments += [(int(e[LISTED]), int(e[SITES])) for e in entries if e[LISTED] >= 0]
    if made.free_sites > MOST_SITES:
        raise TooLarge("the number of sites of a symmetric sweep", made.free_sites, MOST_SITES, CURE)
    count = math.prod(math.factorial(size) for _, size in segments)
    if count > MOST_ORDERS:
        raise TooLarge("the number of orders of the constants", count, MOST_ORDERS, CURE)
    for first, size in sorted(segments):
        yield [np.array(p, dtype=order.dtype) for p in itertools.permutations(order[first : first + size].tolist())]


def _visited(made: Relational, chain: Any) -> list[int]:
    """The variables of the ground model that one sweep updates, one after the other."""
    from definetti.samplers.kernels.logic.relational import ENTRY, OPEN, PREDICATE
    from definetti.samplers.logic.engine import advance

    boxes, names = layout(made.model), list(made.model.predicates)
    chain.clock[OPEN] = 0
    seen = []
    for _ in range(made.free_sites):
        advance(made, chain, 1)
        name = names[int(made.data.entries[chain.clock[ENTRY], PREDICATE])]
        row = chain.coords[: len(made.model.shape(name)), 0].tolist()
        seen.append(boxes[name].literal(row)[0])
    return seen
