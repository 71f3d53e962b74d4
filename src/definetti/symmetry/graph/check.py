"""Is a permutation of literals a symmetry? Every generator is checked here before it is used, found or given.

It must take the literals of a variable onto those of one variable, leave observed variables alone, and take every
factor that it moves onto a factor with, entry for entry, exactly the same table. Many sparse generators are checked at
once: a row is a (generator, factor) pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.errors import ModelError
from definetti.groups import Generator, PermutationGroup, ranges
from definetti.integer_rows import distinct, first_and_number, mix, packed
from definetti.model.graph.factors import FREE, FactorGraph, SameShape

MOVES = 1_000_000  # moved points looked at together
DENSE = 1000  # points from which a generator is looked up in a table of its own
ENTRIES = 4_000_000  # table entries compared at once

Image = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (generators, literals) → images, broadcast


@dataclass(frozen=True)
class Violation:
    """Why a generator is no symmetry. `factor` is the one that breaks; -1 if it does not even rename variables."""

    generator: int
    factor: int
    reason: str


@dataclass(frozen=True, eq=False)
class ScopeIndex:
    """The factors of a simplified model by their sets of variables. Make one with `scope_index`."""

    model: FactorGraph
    keys: np.ndarray  # uint64[F], ascending: hashes of the sets
    factors: np.ndarray  # int64[F]: their factors

    def factors_over(self, scopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row of variables the factor over them, in any order, with its scope; a wrong one if there is none"""
        model = self.model
        at = np.minimum(np.searchsorted(self.keys, _scope_key(scopes, model.n)), len(self.keys) - 1)
        factor = self.factors[at]
        place = model.scope_start[factor][:, None] + np.arange(scopes.shape[1])
        return factor, model.scope[np.minimum(place, len(model.scope) - 1)].astype(np.int64)


def scope_index(model: FactorGraph) -> ScopeIndex:
    """`ModelError` if the model is not in the form that `simplify` makes: each set of variables has one factor."""
    keys = np.zeros(model.factor_count, dtype=np.uint64)
    for alike in model.by_shape:
        keys[alike.factors] = _scope_key(alike.scopes, model.n)
    observed = model.evidence[model.scope] != FREE
    if observed.any():
        name = factor_name(model, int(model.owner_of[observed.argmax()]))
        raise ModelError(f"{name} is over an observed variable; simplify the model first")
    order = np.flatnonzero(model.arity)  # without constants
    if (keys[order][1:] < keys[order][:-1]).any():
        order = order[np.argsort(keys[order], kind="stable")]
    same = keys[order][1:] == keys[order][:-1]
    if same.any():
        name = factor_name(model, int(order[same.argmax()]))
        raise ModelError(f"there are two factors where there is {name}; simplify the model first")
    return ScopeIndex(model, keys[order], order)


def _scope_key(scopes: np.ndarray, n: int) -> np.ndarray:
    """uint64[m]: each row as a set of variables: packed into one number where that fits, which keeps neighbours
    together, else a hash."""
    if (n + 1) ** scopes.shape[1] < 1 << 62:
        key = np.zeros(len(scopes), dtype=np.uint64)
        for column in _sorted_columns(scopes):
            key = key * np.uint64(n + 1) + (column + 1).astype(np.uint64)
        return key
    return mix(scopes).sum(axis=1, dtype=np.uint64) | np.uint64(1 << 63)


def _sorted_columns(rows: np.ndarray) -> list[np.ndarray]:
    """The columns of the rows, each sorted; two need no sorting."""
    if rows.shape[1] == 2:
        return [np.minimum(rows[:, 0], rows[:, 1]), np.maximum(rows[:, 0], rows[:, 1])]
    return list(np.sort(rows, axis=1).T)


def factor_name(model: FactorGraph, factor: int) -> str:
    """How messages call a factor: by its variables."""
    names = [model.names[i] for i in model.variables(factor)]
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"the factor over ({shown})"


def violation(index: ScopeIndex, generators: Sequence[Generator]) -> Violation | None:
    """None if all generators are symmetries of the model; else one that is not, and why."""
    for first, some in _batches(generators):
        group = PermutationGroup(len(index.model.variable_of), tuple(some))
        image = _lookup(group)
        wrong = _renaming(index.model, group, image) or _factors(index, group, image)
        if wrong is not None:
            return Violation(first + wrong.generator, wrong.factor, wrong.reason)
    return None


def _batches(generators: Sequence[Generator]) -> Iterator[tuple[int, Sequence[Generator]]]:
    """(number of the first, generators) with few moved points in all, or a single generator."""
    sizes = np.array([len(points) for points, _ in generators], dtype=np.int64)
    total, dense = np.cumsum(sizes), np.append(np.flatnonzero(sizes > DENSE), len(sizes))
    first = 0
    while first < len(generators):
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + MOVES, side="right")))
        next_dense = int(dense[np.searchsorted(dense, first)])
        last = first + 1 if next_dense == first else min(last, next_dense)  # a dense one has a look-up of its own
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


def _renaming(model: FactorGraph, group: PermutationGroup, image: Image) -> Violation | None:
    variable_of = model.variable_of
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


def _factors(index: ScopeIndex, group: PermutationGroup, image: Image) -> Violation | None:
    which, points, _ = group.moves
    n = index.model.n
    moved = _ascending(which * n + index.model.variable_of[points])
    generators, variables = np.divmod(moved, n)
    single = np.zeros(n, dtype=bool)
    single[variables] = len(group.generators) == 1
    changes = _value_changes(index.model, group)
    for alike in index.model.by_shape:
        if len(group.generators) == 1:  # a dense one moves most factors: no need to sort them
            rows = np.flatnonzero(single[alike.scopes].any(axis=1))
            pairs = (np.zeros_like(rows), rows)
        else:
            pairs = _moved_rows(alike, generators, variables)
        step = max(1, ENTRIES // alike.size)
        for first in range(0, len(pairs[0]), step):
            wrong = _rows(index, alike, pairs[0][first : first + step], pairs[1][first : first + step], image, changes)
            if wrong is not None:
                return wrong
    return None


def _value_changes(model: FactorGraph, group: PermutationGroup) -> np.ndarray | None:
    """int64[n]: a number for what happens to the values of each variable, 0 where no generator changes any.

    None if there are several generators, and one of them does.
    """
    _, points, images = group.moves
    value = np.arange(group.degree) - model.literal_start[model.variable_of]
    changes = np.zeros(model.n, dtype=np.int64)
    if (value[points] == value[images]).all():
        return changes
    if len(group.generators) > 1:
        return None
    becomes = value.copy()
    becomes[points] = value[images]
    for card in np.unique(model.cards).tolist():
        variables = np.flatnonzero(model.cards == card)
        changes[variables] = distinct(becomes[model.literal_start[variables][:, None] + np.arange(card)])[1]
    return changes


def _moved_rows(alike: SameShape, generators: np.ndarray, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different (generator, row) pairs, from pairs (generator, variable): the factors that each generator moves."""
    sorted_variables, row = alike.incidence
    first = np.searchsorted(sorted_variables, variables)
    last = np.searchsorted(sorted_variables, variables, side="right")
    pairs = _ascending(np.repeat(generators, last - first) * len(row) + row[ranges(first, last)])
    return np.divmod(pairs, max(len(row), 1))


def _ascending(numbers: np.ndarray) -> np.ndarray:
    """The distinct numbers in order, by sorting: they are nearly in order, where a hash table is slow."""
    numbers = np.sort(numbers, kind="stable")
    return numbers[np.append(True, numbers[1:] != numbers[:-1])] if len(numbers) else numbers


def _rows(
    index: ScopeIndex, alike: SameShape, which: np.ndarray, rows: np.ndarray, image: Image, changes: np.ndarray | None
) -> Violation | None:
    """Check the factors alike.factors[rows] against their images under the generators `which`.

    `changes`: numbers for what happens to the values of each variable; None if they are not known.
    """
    model = index.model
    to = model.variable_of[image(which[:, None], model.literal_start[alike.scopes[rows]])]
    other, found = index.factors_over(to)
    same = zip(_sorted_columns(found), _sorted_columns(to), strict=True)
    lost = np.logical_or.reduce([a != b for a, b in same])
    if lost.any():
        r = int(lost.argmax())
        name = factor_name(model, int(alike.factors[rows[r]]))
        names = ", ".join(model.names[i] for i in to[r, :8])
        reason = f"it takes {name} to ({names}), where there is no factor"
        return Violation(int(which[r]), int(alike.factors[rows[r]]), reason)
    axis = _axes(to, found)
    some = np.arange(len(rows))
    if changes is not None:  # then rows with the same tables, order of axes and changes of values are alike
        columns = [alike.tables[rows], model.table_of[other], axis]
        columns += [changes[alike.scopes[rows]]] if changes.any() else []
        first = _first_of_each(np.column_stack(columns))
        some = np.sort(first)
    entry = _entries(model, alike, which[some], rows[some], image, to[some], found[some], axis[some])
    here = model.tables[model.table_start[alike.tables[rows[some]]][:, None] + np.arange(entry.shape[1])]
    there = model.tables[model.table_start[model.table_of[other[some]]][:, None] + entry]
    unequal = (here != there).any(axis=1)
    if not unequal.any():
        return None
    r = int(some[unequal.argmax()])
    mine, theirs = int(alike.factors[rows[r]]), int(other[r])
    reason = f"it changes the table of {factor_name(model, mine)}"
    if mine != theirs:
        reason = f"it takes {factor_name(model, mine)} to {factor_name(model, theirs)}, whose table differs"
    return Violation(int(which[r]), mine, reason)


def _first_of_each(rows: np.ndarray) -> np.ndarray:
    """Where each different row occurs first; all of them if they do not fit into integers."""
    key = packed(rows)
    return np.arange(len(rows)) if key is None else first_and_number(key)[0]


def _axes(to: np.ndarray, found: np.ndarray) -> np.ndarray:
    """int64[rows, arity]: to[r, j] is found[r, axis[r, j]]."""
    if to.shape[1] == 2:
        return np.where((to == found).all(axis=1)[:, None], [0, 1], [1, 0])
    rank = np.argsort(np.argsort(to, axis=1), axis=1)
    return np.take_along_axis(np.argsort(found, axis=1), rank, axis=1)


def _entries(
    model: FactorGraph,
    alike: SameShape,
    which: np.ndarray,
    rows: np.ndarray,
    image: Image,
    to: np.ndarray,
    found: np.ndarray,
    axis: np.ndarray,
) -> np.ndarray:
    """int64[rows, entries]: where each entry of a factor's table goes in the table of its image."""
    cards = model.cards[found].astype(np.int64)
    strides = np.ones_like(cards)
    strides[:, :-1] = np.cumprod(cards[:, :0:-1], axis=1)[:, ::-1]
    step = np.take_along_axis(strides, axis, axis=1)
    entry = np.zeros((len(rows), 1), dtype=np.int64)
    for j, card in enumerate(alike.shape):
        first = model.literal_start[alike.scopes[rows, j]][:, None]
        value = image(which[:, None], first + np.arange(card)) - model.literal_start[to[:, j]][:, None]
        entry = (entry[:, :, None] + (value * step[:, j : j + 1])[:, None, :]).reshape(len(rows), -1)
    return entry
