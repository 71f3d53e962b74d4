"""The group as permutations of ground atoms, listed: for small models, whose states can be listed too.

A renaming moves core atoms with their constants and carries what is pendant on a constant over to its image; beside the
renamings stand swaps of two pendant atoms with the same residual on the same constant, and of two isolated atoms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from itertools import pairwise, product

import numpy as np

from definetti.model.logic.atom_literals import layout
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.logic.constants import node_generators
from definetti.symmetry.logic.independent_atoms import IndependentAtoms
from definetti.symmetry.logic.renaming import RenamingSymmetries

GroundAtom = tuple[str, tuple[int, ...]]


def atom_generators(symmetries: RenamingSymmetries) -> Iterator[dict[GroundAtom, GroundAtom]]:
    """Each generator as a map of the free ground atoms that it may move."""
    for generator in node_generators(symmetries.constants):
        yield atom_image(symmetries, generator)
    for members in _sorted_out(symmetries)[1].values():
        yield from ({a: b, b: a} for a, b in pairwise(members))


def atom_image(symmetries: RenamingSymmetries, renaming: np.ndarray) -> dict[GroundAtom, GroundAtom]:
    """What a permutation of constants in the group does to free ground atoms."""
    nodes = symmetries.constants.nodes
    core, heaps = _sorted_out(symmetries)
    image: dict[GroundAtom, GroundAtom] = {}
    for name, row in core:
        starts = [nodes.start[s] for s in symmetries.model.predicates[name].sorts]
        image[name, row] = name, tuple(int(renaming[a + c]) - a for a, c in zip(starts, row, strict=True))
    for (node, residual), members in heaps.items():
        if node is not None:
            image |= dict(zip(members, heaps[int(renaming[node]), residual], strict=True))
    return image


def _sorted_out(
    symmetries: RenamingSymmetries,
) -> tuple[list[GroundAtom], dict[tuple[int | None, Hashable], list[GroundAtom]]]:
    """(core atoms, atoms by the node they are pendant on and their residual; isolated ones by None and their field)."""
    model, start = symmetries.model, symmetries.constants.nodes.start
    core: list[GroundAtom] = []
    heaps: dict[tuple[int | None, Hashable], list[GroundAtom]] = defaultdict(list)
    for name in model.predicates:
        for row in product(*(range(k) for k in model.shape(name))):
            if symmetries.orbit_number(name, row) < 0:
                continue
            if symmetries.independent is None or symmetries.is_core(name, row):
                core.append((name, row))
                continue
            place, what = held_by(symmetries.independent, model, name, row)
            node = None if place is None else start[model.predicates[name].sorts[place]] + row[place]
            heaps[node, what].append((name, row))
    return core, heaps


def held_by(
    found: IndependentAtoms, model: MarkovLogic, predicate: str, row: tuple[int, ...]
) -> tuple[int | None, int]:
    """(the place of the constant that a pendant atom is on, its residual), or (None, its field) of an isolated one."""
    sorts = model.predicates[predicate].sorts
    if len(sorts) == 1 or (sorts[0] == sorts[1] and row[0] == row[1]):
        own = found.own[sorts[0]]
        pendant = int(own.pendant[predicate][row[0]])
        return (0, pendant) if pendant >= 0 else (None, int(own.isolated[predicate][row[0]]))
    status = found.pairs[sorts[0], sorts[1]]
    pairs = status.kinds
    kind = int(pairs.default[pairs.profiles[0][row[0]], pairs.profiles[1][row[1]]])
    for _, b, special in pairs.rows[pairs.rows[:, 0] == row[0]].tolist():
        kind = special if b == row[1] else kind
    for place, numbers in ((None, status.isolated), (0, status.on_a), (1, status.on_b)):
        if predicate in numbers and numbers[predicate][kind] >= 0:
            return place, int(numbers[predicate][kind])
    raise AssertionError("a core atom is pendant nowhere")


# --- on the ground model ---------------------------------------------------------------------------------------------


def literal_map(model: MarkovLogic, image: Mapping[GroundAtom, GroundAtom]) -> np.ndarray:
    """int64[literals of the ground model]: where each literal goes that a legal state can have; others stay.

    Of a plain atom both values move. A value of a `!` block moves by itself, so that a block that evidence has cut
    short is moved by its possible values alone.
    """
    boxes = layout(model)
    cards = np.concatenate([np.zeros(0, np.int64), *(np.full(box.count, box.card) for box in boxes.values())])
    start = np.concatenate([[0], np.cumsum(cards)])
    out = np.arange(int(start[-1]))
    for (name, row), (other, to) in image.items():
        (i, v), (j, w) = boxes[name].literal(row), boxes[other].literal(to)
        out[start[i] + v] = start[j] + w
        if not boxes[name].exclusive:
            out[start[i]] = start[j]
    return out
