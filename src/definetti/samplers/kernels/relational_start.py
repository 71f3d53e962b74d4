"""Starts: each free site from the formulas that speak of it alone."""

from __future__ import annotations

import numpy as np

from definetti.model.logic import MarkovLogic
from definetti.samplers.kernels.relational_boolean import TRUE
from definetti.samplers.kernels.relational_data import Data, logistic
from definetti.samplers.kernels.relational_known import Known, home_words, pack, words_of
from definetti.samplers.kernels.relational_module import Written
from definetti.samplers.kernels.relational_places import Place, occurrences
from definetti.samplers.kernels.relational_shapes import Shape, Theory

#: A field that differs from atom to atom is worked out only for predicates up to this many atoms.
LARGEST_FIELD = 20_000_000
ROWS_AT_ONCE = 1 << 22


def own_field(theory: Theory, written: Written, data: Data, p: int, shape: tuple[int, ...]) -> np.ndarray:
    """The local field of every atom of a predicate from formulas in which nothing else occurs (0-d if it is equal)."""
    field = np.zeros(())
    for place in written.places.get(p, []):
        s = theory.shapes[place.shape]
        alone = len(list(occurrences(s.body))) == 1 and len(place.goals) == 1 and place.goals[0][1] == TRUE
        if not alone or s.hard or any(left[0] == "a" for left, _ in place.guards):
            continue
        if s.single:
            ground = np.prod([data.sorts[s.sorts[v], 1] for v in place.rest], dtype=float)
            field = field + signed(place) * ground * data.reals[number(written, data, "weight", place.shape)]
        elif np.prod(shape, dtype=float) <= LARGEST_FIELD:
            field = field + varying(s, place, written, data, shape)
    return field


def signed(place: Place) -> int:
    return 1 if place.goals[0][0] == "z+" else -1


def number(written: Written, data: Data, *key: object) -> int:
    return int(data.numbers[written.layout.numbers[key]])


def varying(s: Shape, place: Place, written: Written, data: Data, shape: tuple[int, ...]) -> np.ndarray:
    """The field from formulas with constants or `+` variables; those with a `+` variable to sum over are left out."""
    argument = dict(place.bound)
    field = np.zeros(shape)
    if any(v not in argument for v in s.plus):
        return field
    sizes = [int(data.sorts[s.sorts[v], 1]) for v in s.plus]
    count = number(written, data, "instances", place.shape) if s.slots else 1
    start = number(written, data, "weight", place.shape)
    weights = data.reals[start : start + count * int(np.prod(sizes))].reshape(count, *sizes)
    ground = signed(place) * np.prod([data.sorts[s.sorts[v], 1] for v in place.rest], dtype=float)
    order = np.argsort([argument[v] for v in s.plus])
    for i in range(count):
        index: list[object] = [slice(None)] * len(shape)
        for left, right in place.guards:
            start = number(written, data, "constants", place.shape)
            index[right[1]] = int(data.indices[start + i * len(s.slots) + left[1]])
        wide: list[object] = [None] * len(shape)
        for v in s.plus:
            wide[argument[v]] = slice(None)
        here = weights[i].transpose(order)[tuple(w for w, k in zip(wide, index, strict=True) if isinstance(k, slice))]
        field[tuple(index)] += ground * here
    return field


def draw_atoms(
    model: MarkovLogic,
    name: str,
    known: Known,
    theory: Theory,
    written: Written,
    data: Data,
    rng: np.random.Generator,
    preferred: bool | None,
) -> np.ndarray:
    """A predicate's atoms as words at home: known ones as known, the others drawn (or all `preferred`)."""
    p, shape = list(model.predicates).index(name), model.shape(name)
    if not known.free:
        return np.zeros(home_words(shape), np.uint64) if known.truth is None else known.truth.copy()
    field = own_field(theory, written, data, p, shape)
    if model.predicates[name].exclusive:
        drawn = draw_blocks(np.broadcast_to(field, shape), model.predicates[name].exclusive, known, rng)
    elif preferred is not None:
        drawn = pack(np.broadcast_to(np.array(preferred), shape))
    else:
        drawn = bernoulli(logistic(field), shape, rng)
    if known.mask is not None and known.truth is not None:
        drawn = (drawn & ~known.mask) | known.truth
    return drawn


def bernoulli(chance: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Independent bits, some rows at a time: a tensor of floats would be 64 times the size of the state."""
    if not shape:
        return pack(np.asarray(rng.random() < chance))
    rows, last = int(np.prod(shape[:-1], dtype=np.int64)), shape[-1]
    table = np.broadcast_to(chance, shape).reshape(rows, last) if chance.ndim else np.broadcast_to(chance, (rows, last))
    words = np.zeros((rows, words_of(last)), dtype=np.uint64)
    step = max(1, ROWS_AT_ONCE // max(last, 1))
    for r in range(0, rows, step):
        part = table[r : r + step]
        words[r : r + step] = pack(rng.random(part.shape) < part).reshape(len(part), -1)
    return words.ravel()


def draw_blocks(field: np.ndarray, exclusive: tuple[int, ...], known: Known, rng: np.random.Generator) -> np.ndarray:
    """One true value per block, by Gumbel's trick; values that are known false are left out."""
    from definetti.samplers.kernels.relational_known import unpack

    shape = field.shape
    score = field + rng.gumbel(size=shape)
    if known.mask is not None and known.truth is not None:
        barred = unpack(known.mask, shape) & ~unpack(known.truth, shape)
        score = np.where(barred, -np.inf, score)
    order = tuple(j for j in range(len(shape)) if j not in exclusive) + tuple(exclusive)
    values = int(np.prod([shape[j] for j in exclusive]))
    table = score.transpose(order).reshape(-1, values)
    chosen = np.zeros(table.shape, dtype=bool)
    chosen[np.arange(len(table)), table.argmax(axis=1)] = True
    back = tuple(int(i) for i in np.argsort(order))
    return pack(chosen.reshape(tuple(shape[j] for j in order)).transpose(back))
