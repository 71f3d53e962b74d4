"""The orbits of atoms under renamings and symmetries of the theory: unions of the orbits of renamings.

A symmetry of the theory maps cells (atoms of one predicate by the classes of their constants) onto cells. Where it
negates, orbits of literals are joined: an orbit of atoms is then the mirror image of another one, or of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from definetti import groups
from definetti.constraints.logic.ties import Image
from definetti.model.logic.atom_orbits import pattern_pairs
from definetti.model.logic.theory import MarkovLogic
from definetti.symmetry.logic.atom_numbers import AtomNumbers
from definetti.symmetry.logic.constants import ConstantGroup
from definetti.symmetry.logic.theory_group import TheorySymmetry


def class_images(fine: ConstantGroup, renaming: np.ndarray) -> dict[str, np.ndarray] | None:
    """The image of each class of constants, by sort; None where a renaming tears classes apart."""
    images = {}
    for sort, start in fine.nodes.start.items():
        of = fine.of_sort(sort)
        to = of[renaming[start : start + len(of)] - start]
        image = np.zeros(len(fine.sizes[sort]), dtype=np.int64)
        image[of] = to
        if not np.array_equal(image[of], to) or len(np.unique(image)) != len(image):
            return None
        images[sort] = image
    return images


def cells_at_images(
    model: MarkovLogic, name: str, image: Image, classes: dict[str, np.ndarray], of_image: np.ndarray
) -> np.ndarray:
    """What an array over the image's cells holds at the images of a predicate's cells."""
    sorts, target = model.predicates[name].sorts, model.predicates[image.predicate].sorts
    place = {pair: k for k, pair in enumerate(pattern_pairs(sorts))}
    patterns = np.zeros(1 << len(place), dtype=np.int64)
    for k, (i, j) in enumerate(pattern_pairs(target)):
        a, b = sorted((image.places[i], image.places[j]))
        patterns |= (np.arange(len(patterns)) >> place[a, b] & 1) << k
    moved = of_image[np.ix_(*(classes[s] for s in target), patterns)]
    return moved.transpose([*np.argsort(image.places).tolist(), len(sorts)])


def joins(model: MarkovLogic, fine: ConstantGroup, numbers: AtomNumbers, symmetry: TheorySymmetry) -> np.ndarray | None:
    """int64[m, 3]: orbits, their images and signs; None where cells are not mapped onto cells of the same kind."""
    classes = class_images(fine, symmetry.renaming)
    if classes is None:
        return None
    kind = np.searchsorted([numbers.isolated.start, numbers.isolated.stop], np.arange(len(numbers.sizes)), side="right")
    found = [np.zeros((0, 3), np.int64)]
    for name, predicate in model.predicates.items():
        image = symmetry.moves.get(name, Image(name, tuple(range(len(predicate.sorts)))))
        if (name in numbers.orbits) != (image.predicate in numbers.orbits):
            return None
        if name not in numbers.orbits:
            continue
        here, late = numbers.orbits[name].lookup, numbers.deferred[name]
        there = cells_at_images(model, name, image, classes, numbers.orbits[image.predicate].lookup)
        also = cells_at_images(model, name, image, classes, numbers.deferred[image.predicate])
        if not np.array_equal(here >= 0, there >= 0) or not np.array_equal(late, also):
            return None
        moved = (here != there) | (not image.sign)
        pairs = np.unique(np.stack([here[moved & (here >= 0)], there[moved & (here >= 0)]], 1), axis=0)
        if not np.array_equal(kind[pairs[:, 0]], kind[pairs[:, 1]]):
            return None
        found.append(np.column_stack([pairs, np.full(len(pairs), int(image.sign))]).astype(np.int64))
    return np.concatenate(found)


def joined(numbers: AtomNumbers, pairs: Sequence[np.ndarray]) -> AtomNumbers:
    """Numbers of the joined orbits, in the order of their first members."""
    count = len(numbers.sizes)
    a, b, sign = np.concatenate([np.zeros((0, 3), np.int64), *pairs]).T
    literal = groups.components(
        2 * count,
        np.concatenate([2 * a, 2 * a + 1]),
        np.concatenate([2 * b + (sign == 0), 2 * b + (sign != 0)]),
    )
    _, first, row = np.unique(literal[::2], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    row = rank[row.ravel()]
    of_literal = np.full(2 * count, -1, dtype=np.int64)
    of_literal[literal[::2]] = row
    mirror = np.full(len(first), -1, dtype=np.int64)
    mirror[row] = of_literal[literal[1::2]]
    sizes = np.zeros(len(first), dtype=np.int64)
    np.add.at(sizes, row, numbers.sizes)
    new = np.append(row, -1).astype(np.int32)  # -1 stays -1
    orbits = {name: replace(orbits, lookup=new[orbits.lookup]) for name, orbits in numbers.orbits.items()}
    isolated = np.unique(row[list(numbers.isolated)])
    first_isolated = int(isolated[0]) if len(isolated) else 0
    return AtomNumbers(
        orbits,
        numbers.deferred,
        sizes,
        range(first_isolated, first_isolated + len(isolated)),
        mirror if (mirror >= 0).any() else None,
    )
