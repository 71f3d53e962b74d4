"""Is a permutation of literals a symmetry? Every generator is checked here before it is used, found or given.

It must take the literals of a variable onto those of one variable, leave observed variables alone, and take every factor
that it moves onto a factor with, entry for entry, exactly the same table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from definetti.groups import Generator
from definetti.model.factors import FREE
from definetti.symmetry.layout import Block, Layout, factor_name, scope_key

CHUNK = 4_000_000  # table entries compared at once


@dataclass(frozen=True)
class Violation:
    """Why a generator is no symmetry; `factor` is the one that breaks, or -1 if it is not even a renaming of variables."""

    factor: int
    reason: str


def violation(layout: Layout, generator: Generator, image: np.ndarray | None = None) -> Violation | None:
    """None if the generator is a symmetry of the model.

    `image` is a work array 0 … L-1, lent by callers that check many sparse generators; it is given back unchanged.
    """
    if image is None:
        image = np.arange(len(layout.variable_of))
    points, images = generator
    image[points] = images
    try:
        return _renaming(layout, points, images, image) or _factors(layout, points, image)
    finally:
        image[points] = points


def first_violation(layout: Layout, generators: list[Generator]) -> tuple[int, Violation] | None:
    """The first generator that is no symmetry, by its number."""
    image = np.arange(len(layout.variable_of))
    for g, generator in enumerate(generators):
        wrong = violation(layout, generator, image)
        if wrong is not None:
            return g, wrong
    return None


def _renaming(layout: Layout, points: np.ndarray, images: np.ndarray, image: np.ndarray) -> Violation | None:
    model = layout.model
    if not np.array_equal(np.sort(images), points):
        return Violation(-1, "it is no permutation: its points and its images differ as sets")
    moved = np.unique(layout.variable_of[points])
    observed = model.evidence[moved] != FREE
    if observed.any():
        return Violation(-1, f"it moves {model.names[moved[observed.argmax()]]}, which is observed")
    to = layout.variable_of[image[model.literal_start[moved]]]
    unlike = model.cards[to] != model.cards[moved]
    if unlike.any():
        i, j = moved[unlike.argmax()], to[unlike.argmax()]
        counts = f"{model.cards[i]} and {model.cards[j]} values"
        return Violation(-1, f"it takes {model.names[i]} to {model.names[j]}, which have {counts}")
    target = np.full(model.n, -1, dtype=np.int64)
    target[moved] = to
    torn = layout.variable_of[images] != target[layout.variable_of[points]]
    if torn.any():
        name = model.names[layout.variable_of[points[torn.argmax()]]]
        return Violation(-1, f"it takes the values of {name} to different variables")
    return None


def _factors(layout: Layout, points: np.ndarray, image: np.ndarray) -> Violation | None:
    moved = np.unique(layout.variable_of[points])
    for block in layout.blocks:
        rows = block.rows_over(moved)
        size = int(np.prod(block.shape, dtype=np.int64))
        for some in np.array_split(rows, -(-len(rows) * size // CHUNK)) if len(rows) else []:
            wrong = _rows(layout, block, some, image)
            if wrong is not None:
                return wrong
    return None


def _rows(layout: Layout, block: Block, rows: np.ndarray, image: np.ndarray) -> Violation | None:
    """Check the factors block.factors[rows] against their images."""
    model = layout.model
    scopes = block.scopes[rows]
    start = model.literal_start
    to = layout.variable_of[image[start[scopes]]]
    key = scope_key(to)
    at = np.minimum(np.searchsorted(layout.scope_keys, key), len(layout.scope_keys) - 1)
    other = layout.by_key[at]
    place = model.scope_start[other][:, None] + np.arange(block.arity)
    found = model.scope[np.minimum(place, len(model.scope) - 1)].astype(np.int64)
    fits = (layout.scope_keys[at] == key) & (np.sort(found, axis=1) == np.sort(to, axis=1)).all(axis=1)
    if not fits.all():
        r = int(fits.argmin())
        names = ", ".join(model.names[i] for i in to[r, :8])
        name = factor_name(model, int(block.factors[rows[r]]))
        return Violation(int(block.factors[rows[r]]), f"it takes {name} to ({names}), where there is no factor")
    order, back = np.argsort(found, axis=1), np.argsort(np.argsort(to, axis=1), axis=1)
    axis = np.take_along_axis(order, back, axis=1)  # to[r, j] is found[r, axis[r, j]]
    cards = model.cards[found].astype(np.int64)
    strides = np.ones_like(cards)
    strides[:, :-1] = np.cumprod(cards[:, :0:-1], axis=1)[:, ::-1]
    step = np.take_along_axis(strides, axis, axis=1)
    entry = np.zeros((len(rows), 1), dtype=np.int64)
    for j, card in enumerate(block.shape):
        value = image[start[scopes[:, j]][:, None] + np.arange(card)] - start[to[:, j]][:, None]
        entry = (entry[:, :, None] + (value * step[:, j : j + 1])[:, None, :]).reshape(len(rows), -1)
    here = model.tables[model.table_start[block.tables[rows]][:, None] + np.arange(entry.shape[1])]
    there = model.tables[model.table_start[model.table_of[other]][:, None] + entry]
    equal = (here == there).all(axis=1)
    if equal.all():
        return None
    r = int(equal.argmin())
    mine, theirs = int(block.factors[rows[r]]), int(other[r])
    if mine == theirs:
        return Violation(mine, f"it changes the table of {factor_name(model, mine)}")
    return Violation(mine, f"it takes {factor_name(model, mine)} to {factor_name(model, theirs)}, whose table differs")
