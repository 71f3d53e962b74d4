"""Starts: each free site from the formulas that speak of it alone."""

from __future__ import annotations

import numpy as np

from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen.expressions import TRUE, Argument
from definetti.samplers.codegen.occurrences import Place, occurrences
from definetti.samplers.codegen.shapes import Instances, Shape
from definetti.samplers.logic.data import logistic
from definetti.samplers.logic.known_bits import Known, home_words, pack, unpack, words_of

Field = tuple[float, list[tuple[dict[int, int], np.ndarray]]]

#: A field that differs from atom to atom is worked out only for predicates up to this many atoms.
LARGEST_FIELD = 20_000_000
ROWS_AT_ONCE = 1 << 22


def own_field(
    shapes: tuple[Shape, ...], instances: tuple[Instances, ...], places: list[Place], sizes: list[int]
) -> Field:
    """The local field of a predicate's atoms from formulas in which nothing else occurs.

    (what all atoms share, [(constants by argument, field)] for the others)
    """
    shared, special = 0.0, []
    for place in places:
        s = shapes[place.shape]
        alone = len(list(occurrences(s.body))) == 1 and len(place.goals) == 1 and place.goals[0].expression == TRUE
        if (
            not alone
            or s.hard
            or any(isinstance(left, Argument) for left, _ in place.guards)
            or set(s.plus) & set(place.rest)
        ):
            continue
        ground = place.times * place.goals[0].sign * np.prod([sizes[s.sorts[v]] for v in place.rest], dtype=float)
        if s.single:
            shared += ground * float(instances[place.shape].weights[0])
        else:
            special += varying(s, place, instances[place.shape], ground)
    return shared, special


def varying(s: Shape, place: Place, group: Instances, ground: float) -> list[tuple[dict[int, int], np.ndarray]]:
    """The fields from formulas with constants or `+` variables: axes of a field are arguments in rising order."""
    argument = dict(place.bound)
    order = np.argsort([argument[v] for v in s.plus])
    found = []
    for constants, weights in zip(group.constants, group.weights, strict=True):
        at = {j: int(constants[slot]) for j, slot in place.slot_of.items()}
        at |= {argument[v]: -1 for v in s.plus}
        found.append((at, ground * np.asarray(weights).transpose(order)))
    return found


def whole_field(field: Field, shape: tuple[int, ...]) -> np.ndarray:
    """The field as a tensor; 0-d if all atoms share it, or if a tensor would be too large for a mere start."""
    shared, special = field
    if not special or np.prod(shape, dtype=float) > LARGEST_FIELD:
        return np.asarray(shared)
    tensor = np.full(shape, shared)
    for at, values in special:
        index = tuple(at[j] if at.get(j, -1) >= 0 else slice(None) for j in range(len(shape)))
        wide = tuple(slice(None) if j in at else None for j in range(len(shape)) if at.get(j, -1) < 0)
        tensor[index] += values[wide]
    return tensor


def draw_atoms(
    model: MarkovLogic,
    name: str,
    known: Known,
    field: Field,
    rng: np.random.Generator,
    preferred: bool | None,
) -> np.ndarray:
    """A predicate's atoms as words at home: known ones as known, the others drawn (or all `preferred`)."""
    shape = model.shape(name)
    if not known.free:
        return np.zeros(home_words(shape), np.uint64) if known.truth is None else known.truth.copy()
    tensor = whole_field(field, shape)
    if model.predicates[name].exclusive:
        drawn = draw_blocks(np.broadcast_to(tensor, shape), model.predicates[name].exclusive, known, rng)
    elif preferred is not None:
        drawn = pack(np.broadcast_to(np.array(preferred), shape))
    else:
        drawn = bernoulli(logistic(tensor), shape, rng)
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
