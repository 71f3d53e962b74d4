"""Is a permutation of literals a symmetry? Every generator is checked here before it is used, found or given.

It must take the literals of a variable onto those of one variable, leave observed variables alone, and take every
factor that it moves onto a factor with, entry for entry, exactly the same table. Many sparse generators are checked at
once: a row is a (generator, factor) pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.groups import Generator, PermutationGroup
from definetti.model.graph.factors import FREE
from definetti.symmetry.graph.factors_by_shape import Block, Layout, factor_name, scope_key

MOVES = 1_000_000  # moved points looked at together
ENTRIES = 4_000_000  # table entries compared at once

Image = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (generators, literals) → images, broadcast


@dataclass(frozen=True)
class Violation:
    """Why a generator is no symmetry. `factor` is the one that breaks; -1 if it does not even rename variables."""

    generator: int
    factor: int
    reason: str


def violation(layout: Layout, generators: Sequence[Generator]) -> Violation | None:
    """None if all generators are symmetries of the model; else one that is not, and why."""
    for first, some in _batches(generators):
        group = PermutationGroup(len(layout.variable_of), tuple(some))
        image = _lookup(group)
        wrong = _renaming(layout, group, image) or _factors(layout, group, image)
        if wrong is not None:
            return Violation(first + wrong.generator, wrong.factor, wrong.reason)
    return None


def _batches(generators: Sequence[Generator]) -> Iterator[tuple[int, Sequence[Generator]]]:
    """(number of the first, generators) with few moved points in all, or a single generator."""
    total = np.cumsum([len(points) for points, _ in generators])
    first = 0
    while first < len(generators):
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + MOVES, side="right")))
        if len(generators[first][0]) * 10 > MOVES:
            last = first + 1  # a dense one has its look-up to itself
        yield first, generators[first:last]
        first = last


def _lookup(group: PermutationGroup) -> Image:
    which, points, images = group.moves
    if len(group.generators) == 1:
        table = np.arange(group.degree)
        table[points] = images
        return lambda _, literals: table[literals]
    keys = which * group.degree + points

    def image(generators: np.ndarray, literals: np.ndarray) -> np.ndarray:
        asked = generators * group.degree + literals
        at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[at] == asked, images[at], literals) if len(keys) else literals

    return image


def _renaming(layout: Layout, group: PermutationGroup, image: Image) -> Violation | None:
    model, variable_of = layout.model, layout.variable_of
    which, points, images = group.moves
    other = np.lexsort((images, which))
    if (astray := images[other] != points).any():
        return Violation(int(which[astray.argmax()]), -1, "it is no permutation of the literals")
    at = variable_of[points]
    observed = model.evidence[at] != FREE
    if observed.any():
        r = int(observed.argmax())
        return Violation(int(which[r]), -1, f"it moves {model.names[at[r]]}, which is observed")
    to = variable_of[image(which, model.literal_start[at])]  # where the variable's first value goes
    unlike = model.cards[to] != model.cards[at]
    if unlike.any():
        r = int(unlike.argmax())
        counts = f"{model.cards[at[r]]} and {model.cards[to[r]]} values"
        return Violation(int(which[r]), -1, f"it takes {model.names[at[r]]} to {model.names[to[r]]}, with {counts}")
    torn = variable_of[images] != to
    if torn.any():
        r = int(torn.argmax())
        return Violation(int(which[r]), -1, f"it takes the values of {model.names[at[r]]} to different variables")
    return None


def _factors(layout: Layout, group: PermutationGroup, image: Image) -> Violation | None:
    which, points, _ = group.moves
    n = layout.model.n
    moved = np.unique(which * n + layout.variable_of[points])
    generators, variables = np.divmod(moved, n)
    for block in layout.blocks:
        pairs = block.rows_over(generators, variables)
        size = int(np.prod(block.shape, dtype=np.int64))
        step = max(1, ENTRIES // size)
        for first in range(0, len(pairs[0]), step):
            wrong = _rows(layout, block, pairs[0][first : first + step], pairs[1][first : first + step], image)
            if wrong is not None:
                return wrong
    return None


def _rows(layout: Layout, block: Block, which: np.ndarray, rows: np.ndarray, image: Image) -> Violation | None:
    """Check the factors block.factors[rows] against their images under the generators `which`."""
    model = layout.model
    to = layout.variable_of[image(which[:, None], model.literal_start[block.scopes[rows]])]
    other, found = _factors_over(layout, to)
    lost = (np.sort(found, axis=1) != np.sort(to, axis=1)).any(axis=1)
    if lost.any():
        r = int(lost.argmax())
        name = factor_name(model, int(block.factors[rows[r]]))
        names = ", ".join(model.names[i] for i in to[r, :8])
        reason = f"it takes {name} to ({names}), where there is no factor"
        return Violation(int(which[r]), int(block.factors[rows[r]]), reason)
    entry = _entries(layout, block, which, rows, image, to, found)
    here = model.tables[model.table_start[block.tables[rows]][:, None] + np.arange(entry.shape[1])]
    there = model.tables[model.table_start[model.table_of[other]][:, None] + entry]
    unequal = (here != there).any(axis=1)
    if not unequal.any():
        return None
    r = int(unequal.argmax())
    mine, theirs = int(block.factors[rows[r]]), int(other[r])
    reason = f"it changes the table of {factor_name(model, mine)}"
    if mine != theirs:
        reason = f"it takes {factor_name(model, mine)} to {factor_name(model, theirs)}, whose table differs"
    return Violation(int(which[r]), mine, reason)


def _factors_over(layout: Layout, scopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row of variables the factor over them, in any order, with its scope; a wrong one where there is none."""
    model = layout.model
    at = np.minimum(np.searchsorted(layout.scope_keys, scope_key(scopes)), len(layout.scope_keys) - 1)
    factor = layout.by_key[at]
    place = model.scope_start[factor][:, None] + np.arange(scopes.shape[1])
    return factor, model.scope[np.minimum(place, len(model.scope) - 1)].astype(np.int64)


def _entries(
    layout: Layout,
    block: Block,
    which: np.ndarray,
    rows: np.ndarray,
    image: Image,
    to: np.ndarray,
    found: np.ndarray,
) -> np.ndarray:
    """int64[rows, entries]: where each entry of a factor's table goes in the table of its image."""
    model = layout.model
    rank = np.argsort(np.argsort(to, axis=1), axis=1)
    axis = np.take_along_axis(np.argsort(found, axis=1), rank, axis=1)  # to[r, j] is found[r, axis[r, j]]
    cards = model.cards[found].astype(np.int64)
    strides = np.ones_like(cards)
    strides[:, :-1] = np.cumprod(cards[:, :0:-1], axis=1)[:, ::-1]
    step = np.take_along_axis(strides, axis, axis=1)
    entry = np.zeros((len(rows), 1), dtype=np.int64)
    for j, card in enumerate(block.shape):
        first = model.literal_start[block.scopes[rows, j]][:, None]
        value = image(which[:, None], first + np.arange(card)) - model.literal_start[to[:, j]][:, None]
        entry = (entry[:, :, None] + (value * step[:, j : j + 1])[:, None, :]).reshape(len(rows), -1)
    return entry
