"""The arrays of a relational kernel: what all chains read (`Data`) and what one chain owns (`Chain`).

Both are named tuples, which Numba takes apart; their fields are the vocabulary of the generated text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen import layout
from definetti.samplers.codegen.layout import Bits, Number
from definetti.samplers.codegen.module import Counted, Written
from definetti.samplers.codegen.shapes import Instances, Shape, Theory
from definetti.samplers.logic.tensors.known_bits import words_of

CHUNK = 1024
LONGEST_TABLE = 1 << 16  # conditionals looked up by counts: beyond this an exponential is cheaper than the cache miss
LONGEST_KEYS = 1 << 20


class Data(NamedTuple):
    numbers: np.ndarray  # int64: sizes, widths and offsets, by the layout's count
    indices: np.ndarray  # int32: constants of instances, and where to find instances by an atom's constants
    reals: np.ndarray  # float64: weights, then tables of conditionals
    words: np.ndarray  # uint64: the mask of the last word of a row, by sort; then bit tensors of sites to skip
    sorts: np.ndarray  # int64[s, 2]: where a sort's order starts, and its size
    entries: np.ndarray  # int64[e, ...]: the schedule of a sweep (columns: see the runtime)
    folds: np.ndarray  # int64[p, ...]: how to find the orbit of an atom
    lookup: np.ndarray  # int32: classes of constants, and orbits by them
    level: np.ndarray  # float64[5]: scales, what a violation costs, … (see the runtime)
    orbit_field: np.ndarray  # float64[orbits + 1]: added to the local field of the orbit's atoms
    scan: int
    free_sites: int
    all_sites: int


class Chain(NamedTuple):
    bits: np.ndarray  # uint64: every predicate in every orientation
    clock: np.ndarray  # int64: where the chain stands
    streams: np.ndarray  # uint64[8]: the chain's own randomness; that of the order, equal in all chains
    order: np.ndarray  # int64: the constants of each sort, then listed free sites, in the order of this sweep
    coords: np.ndarray  # int64[arity, CHUNK]: the constants of a chunk's sites
    uniform: np.ndarray  # float64[CHUNK]
    value: np.ndarray  # int64[CHUNK]
    chance: np.ndarray  # float64[CHUNK or more]
    orbit: np.ndarray  # int64[CHUNK]
    fields: np.ndarray  # float64[4 + shapes, values of the largest block]: local fields, violations, what is tallied
    tilt: np.ndarray  # float64[CHUNK or more]: the fields of the orbits of a chunk's sites (by value of a block)
    tally: np.ndarray  # float64[6 + shapes]: soft, violated, … (see the runtime); true groundings by shape
    sum_f: np.ndarray  # int64[3, orbits + 1]: F of this sweep, of this batch, visits; place 0 belongs to no orbit
    sum_g: np.ndarray  # float64[3, orbits + 1]: G of this sweep, of this batch, sum of the squares of F by sweep
    seen: np.ndarray  # float64[3, queries]: counts of this sweep, of this batch, sum of squares


def orientation_words(theory: Theory, sizes: list[int], bits: Bits) -> int:
    """The number of words of one orientation."""
    sorts = theory.signatures[bits.predicate].sorts
    total = words_of(sizes[sorts[bits.axis[0]]]) if bits.axis else 1
    for j, sort in enumerate(sorts):
        if j not in bits.axis:
            total *= sizes[sort]
    return max(total, 1)


def orientation_offsets(written: Written, theory: Theory, sizes: list[int]) -> tuple[dict[Number, int], int]:
    """Where each orientation starts in `bits`, and how many words a chain keeps (exact integers: may be huge).

    Those that are made when a state is counted come behind what is kept.
    """
    offsets: dict[Number, int] = {}
    total = kept = 0
    for bits in (*written.layout.bits, *written.layout.beside):
        offsets[bits] = total
        total += orientation_words(theory, sizes, bits)
        kept = kept if bits in written.layout.beside else total
    return offsets, kept


@dataclass
class Pools:
    """Arrays that grow while the data are laid out."""

    indices: list[np.ndarray]
    reals: list[np.ndarray]
    numbers: dict[Number, int]
    weights: dict[int, float]  # of shapes that have only one

    def put_indices(self, values: np.ndarray) -> int:
        start = sum(a.size for a in self.indices)
        self.indices.append(np.ascontiguousarray(values, dtype=np.int32).ravel())
        return start

    def put_reals(self, values: np.ndarray) -> int:
        start = sum(a.size for a in self.reals)
        self.reals.append(np.ascontiguousarray(values, dtype=float).ravel())
        return start


def put_instances(
    pools: Pools, written: Written, theory: Theory, instances: tuple[Instances, ...], sizes: list[int]
) -> None:
    """Weights and constants of the instances of every shape, and how to find instances by an atom's constants."""
    for s, (shape, group) in enumerate(zip(theory.shapes, instances, strict=True)):
        pools.numbers[layout.weight(s)] = pools.put_reals(group.weights)
        if shape.single:
            pools.weights[s] = float(group.weights[0])
        if shape.slots:
            pools.numbers[layout.constants(s)] = pools.put_indices(group.constants)
            pools.numbers[layout.instances(s)] = len(group.constants)
    for predicate, places in written.places.items():
        for place in places:
            if place.slot_arguments:
                key = (place.shape, predicate, place.occurrence)
                constants = instances[place.shape].constants
                columns = {j: constants[:, slot] for j, slot in place.slot_of.items()}
                arguments = [sizes[sort] for sort in theory.signatures[predicate].sorts]
                put_index(pools, key, columns, place.slot_arguments, arguments)


def put_observed(pools: Pools, shapes: tuple[Shape, ...], instances: tuple[Instances, ...]) -> int:
    """Queries have the numbers -1, -2, ... where formulas have 0, 1, ...; returns how many there are."""
    total = 0
    for q, (shape, group) in enumerate(zip(shapes, instances, strict=True)):
        pools.numbers[layout.seen(-1 - q)] = total
        pools.numbers[layout.instances(-1 - q)] = len(group.constants)
        if shape.slots:
            pools.numbers[layout.constants(-1 - q)] = pools.put_indices(group.constants)
        total += len(group.constants)
    return total


def put_index(
    pools: Pools,
    key: tuple[int, int, int],
    columns: Mapping[int, np.ndarray],
    arguments: tuple[int, ...],
    sizes: list[int],
) -> None:
    """Instances sorted by the constants that an atom must share with them; an argument too many has the factor 0."""
    steps, radix = dict.fromkeys(arguments, 0), 1
    code = np.zeros(len(next(iter(columns.values()))), dtype=np.int64)
    for j, column in columns.items():
        if radix * sizes[j] <= LONGEST_KEYS:
            steps[j] = radix
            code += radix * column.astype(np.int64)
            radix *= sizes[j]
    order = np.argsort(code, kind="stable")
    pools.numbers[layout.pointer(key)] = pools.put_indices(np.searchsorted(code[order], np.arange(radix + 1)))
    pools.numbers[layout.listed(key)] = pools.put_indices(order)
    for j, step in steps.items():
        pools.numbers[layout.key_step(key, j)] = step


def put_tables(pools: Pools, written: Written, sizes: list[int]) -> None:
    """The conditionals of a predicate by its counts, where there are few enough of them."""
    for p, (field, bounds) in table_fields(written, sizes, pools.weights).items():
        step = 1
        for s, (low, high) in bounds.items():
            pools.numbers[layout.lowest_count(p, s)] = low
            pools.numbers[layout.table_step(p, s)] = step
            step = min(step * (high - low + 1), LONGEST_TABLE + 1)
        pools.numbers[layout.table(p)] = -1 if field is None else pools.put_reals(logistic(field))


def table_fields(
    written: Written, sizes: list[int], weights: Mapping[int, float]
) -> dict[int, tuple[np.ndarray | None, dict[int, tuple[int, int]]]]:
    """By predicate: the local fields by counts (None where there are too many), and the bounds of the counts."""
    found = {}
    for p, counters in written.counters.items():
        bounds: dict[int, tuple[int, int]] = {}
        for counter in counters:
            low, high = bounds.get(counter.shape, (0, 0))
            down, up = span(counter, sizes)
            bounds[counter.shape] = (low + down, high + up)
        total, field = 1, np.zeros(1)
        for s, (low, high) in bounds.items():
            total = min(total * (high - low + 1), LONGEST_TABLE + 1)
            if total <= LONGEST_TABLE:
                field = (weights[s] * np.arange(low, high + 1)[:, None] + field[None, :]).ravel()
        found[p] = (field if total <= LONGEST_TABLE else None), bounds
    return found


def span(counter: Counted, sizes: list[int]) -> tuple[int, int]:
    """How far down and up the groundings at one place can move a counter."""
    ground = counter.times
    for sort in counter.sorts:
        ground *= sizes[sort]
    if counter.certain:
        return (ground, ground) if counter.gains else (-ground, -ground)
    return (-ground if counter.loses else 0, ground if counter.gains else 0)


def logistic(h: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(h))
    return np.where(h >= 0, 1.0, e) / (1.0 + e)


def put_orbits(
    model: MarkovLogic, orbits: Mapping[str, AtomOrbits], width: int, theory: Theory
) -> tuple[np.ndarray, np.ndarray, int]:
    """(folds, lookup, number of orbits): how the kernel finds an atom's orbit; without orbits it is not folded."""
    most = max((len(s.images) for s in theory.signatures), default=0)
    folds = np.zeros((len(model.predicates), 5 + 3 * width + width * width + most * (2 + width)), dtype=np.int64)
    classes, lookups = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    used = found = 0
    for p, predicate in enumerate(model.predicates.values()):
        shape, arity = model.shape(predicate.name), len(predicate.sorts)
        here, lookup, pairs = orbit_arrays(predicate.sorts, shape, orbits.get(predicate.name))
        row = [found, arity, len(pairs)]
        for j, array in enumerate(here):
            row += [used, lookup.shape[j]]
            used += array.size
        row += [j for pair in pairs for j in pair]
        row += [len(predicate.exclusive)]
        for j in sorted(predicate.exclusive):
            row += [j, shape[j]]
        row += [len(theory.signatures[p].images)]
        for image in theory.signatures[p].images:
            row += [image.predicate, int(image.sign), *image.places]
        folds[p, : len(row)] = row
        classes += here
        lookups.append(lookup.ravel())
        found += lookup.size
    folds[:, 0] += used  # orbits stand behind the classes
    lookup = np.concatenate(lookups)
    return folds, np.concatenate([*classes, lookup]), int(lookup.max(initial=-1)) + 1


def orbit_arrays(
    sorts: tuple[str, ...], shape: tuple[int, ...], orbits: AtomOrbits | None
) -> tuple[list[np.ndarray], np.ndarray, list[tuple[int, int]]]:
    """Classes by argument, the lookup, and the pairs of arguments whose equality it asks for."""
    if orbits is None:
        return [np.zeros(n, np.int32) for n in shape], np.full((1,) * len(shape), -1, np.int32), []
    if len(orbits.classes) != len(shape) or any(len(c) != n for c, n in zip(orbits.classes, shape, strict=True)):
        raise ModelError(f"classes of constants must have the lengths {shape}, one array per argument")
    pairs = [(i, j) for i in range(len(sorts)) for j in range(i + 1, len(sorts)) if sorts[i] == sorts[j]]
    lookup = np.asarray(orbits.lookup, np.int32)
    if lookup.ndim != len(shape) + 1 or lookup.shape[-1] != 1 << len(pairs):
        raise ModelError(f"a lookup of orbits has the shape {lookup.shape}; its last axis must be {1 << len(pairs)}")
    return [np.asarray(c, np.int32) for c in orbits.classes], lookup, pairs
