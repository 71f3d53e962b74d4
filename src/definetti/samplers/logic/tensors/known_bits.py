"""Which atoms are known, as bit tensors, and the schedule of a sweep over the others.

A bit tensor at home has rows of words along the last argument. What is known comes from `model/logic/evidence.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic, Predicate

Turns = Sequence[tuple[frozenset[str], bool]]
Row = tuple[list[int], tuple[int, int, bool]]  #: of a schedule: its columns, and the last three
#: A predicate with fewer free sites than this part of all is visited by a shuffled list instead of a raster.
FEW = 8


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of one predicate. `sites` and `skip` speak of what a sweep visits: atoms, or blocks of a `!`."""

    mask: np.ndarray | None  # uint64, at home: known atoms; None if there are none
    truth: np.ndarray | None  # uint64, at home: known true atoms
    skip: np.ndarray | None  # uint64 over the sites: known ones
    free: int  # sites that are drawn


def words_of(size: int) -> int:
    return max(1, (size + 63) >> 6)


def home_words(shape: tuple[int, ...]) -> int:
    """Words of a bit tensor at home: an exact integer, whatever its size."""
    total = words_of(shape[-1]) if shape else 1
    for n in shape[:-1]:
        total *= n
    return total


def pack(tensor: np.ndarray) -> np.ndarray:
    """A boolean tensor as words along its last axis, flat."""
    if tensor.ndim == 0:
        return np.array([int(tensor)], dtype=np.uint64)
    rows = tensor.reshape(-1, tensor.shape[-1])
    packed = np.packbits(rows, axis=1, bitorder="little")
    full = np.zeros((len(rows), 8 * words_of(tensor.shape[-1])), dtype=np.uint8)
    full[:, : packed.shape[1]] = packed
    return full.view("<u8").astype(np.uint64, copy=False).ravel()


def unpack(words: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The inverse of `pack`."""
    if not shape:
        return (words[0] & np.uint64(1)).astype(bool)
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    octets = words.astype("<u8", copy=False).view(np.uint8)[: 8 * rows * words_of(shape[-1])]
    octets = octets.reshape(rows, 8 * words_of(shape[-1]))
    return np.unpackbits(octets, axis=1, count=shape[-1], bitorder="little").view(bool).reshape(shape)


def tails(shape: tuple[int, ...]) -> np.ndarray:
    """One row of words with a bit set for each value of the last argument."""
    return pack(np.ones(shape[-1:], dtype=bool))


def marked(shape: tuple[int, ...], tuples: np.ndarray) -> np.ndarray:
    """The bit tensor at home with these tuples set."""
    words = np.zeros(home_words(shape), dtype=np.uint64)
    if len(tuples):
        row = np.zeros(len(tuples), dtype=np.int64)
        for j, n in enumerate(shape[:-1]):
            row = row * n + tuples[:, j]
        last = tuples[:, -1].astype(np.int64) if shape else np.zeros(len(tuples), dtype=np.int64)
        at = row * words_of(shape[-1] if shape else 1) + (last >> 6)
        np.bitwise_or.at(words, at, np.uint64(1) << (last & 63).astype(np.uint64))
    return words


def known_of(model: MarkovLogic, predicate: Predicate) -> Known:
    """What `model.knowledge` says of a predicate, as bits."""
    name, shape = predicate.name, model.shape(predicate.name)
    relation = model.knowledge.relation(name)
    sites = tuple(shape[j] for j in range(len(shape)) if j not in predicate.exclusive)
    if relation.default == UNKNOWN and not len(relation.codes):
        return Known(None, None, None, prod(sites))
    if predicate.exclusive:
        return _known_blocks(predicate, sites, model.knowledge.codes(name))
    truth = marked(shape, relation.tuples[relation.codes == 1])
    mask = marked(shape, relation.tuples[relation.codes != UNKNOWN])
    if relation.default != UNKNOWN:
        everything = np.tile(tails(shape), home_words(shape) // words_of(shape[-1])) if shape else np.ones(1, np.uint64)
        mask = everything & ~marked(shape, relation.tuples[relation.codes == UNKNOWN])
    return Known(mask, truth, mask, model.knowledge.free_count(name))


def _known_blocks(predicate: Predicate, sites: tuple[int, ...], codes: np.ndarray) -> Known:
    """The same of a predicate with `!`: a site is a block, known if it has one possible value left."""
    forced = (codes == 1).any(axis=predicate.exclusive).reshape(sites)
    skip = pack(forced) if forced.any() else None
    return Known(pack(codes != UNKNOWN), pack(codes == 1), skip, int((~forced).sum()))


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows for the kernel's `entries`, with the skip masks and the lists of free sites they point to."""

    entries: np.ndarray
    skips: np.ndarray
    listed: np.ndarray
    barred: dict[int, int]  # by predicate with blocks: where its known atoms start in `skips`
    free: int  # sites drawn in one sweep


@dataclass
class Masks:
    """Skip masks and lists of sites, one behind the other."""

    skips: list[np.ndarray]
    lists: list[np.ndarray]

    def put(self, parts: list[np.ndarray], values: np.ndarray) -> int:
        start = sum(part.size for part in parts)
        parts.append(values)
        return start


def entry_of(
    model: MarkovLogic,
    p: int,
    predicate: Predicate,
    skip: np.ndarray | None,
    free: int,
    masks: Masks,
    repeats: np.ndarray | None = None,
    axes: Sequence[int] | None = None,
) -> list[int]:
    """A row of the schedule: a raster with a mask of sites to skip, or a list of sites where few are free.

    `repeats` marks atoms that are tied to an earlier one of the same predicate: the raster of a symmetric relation goes
    over half its square in the order of the sweep; other such predicates go by a list. `axes`: the order of the axes of
    a raster, the last one innermost, if it is not that of the arguments.
    """
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    shape = model.shape(predicate.name)
    sites = [j for j in range(len(shape)) if j not in predicate.exclusive]
    box = tuple(shape[j] for j in sites)
    if axes is not None:
        skip = None if skip is None else pack(np.ascontiguousarray(unpack(skip, box).transpose(axes)))
        sites, box = [sites[k] for k in axes], tuple(box[k] for k in axes)
    total = int(np.prod(box, dtype=np.int64))
    row = [p, total, -1, -1, int(np.prod([shape[j] for j in predicate.exclusive])), len(box)]
    if repeats is not None and (len(box) != 2 or free * FEW <= total):
        skip = pack(repeats) if skip is None else skip | pack(repeats)
        free = total - int(np.bitwise_count(skip).sum())
        row[1] = free
        row[3] = masks.put(masks.lists, np.flatnonzero(~unpack(skip, box).ravel()).astype(np.int64))
    elif skip is not None and free * FEW <= total:
        row[1] = free
        row[3] = masks.put(masks.lists, np.flatnonzero(~unpack(skip, box).ravel()).astype(np.int64))
    elif skip is not None:
        row[2] = masks.put(masks.skips, skip)
    for j, n in zip(sites, box, strict=True):
        row += [j, sort_number[predicate.sorts[j]], n]
    return row


def schedule_of(
    model: MarkovLogic,
    known: Mapping[str, Known],
    order: Sequence[str],
    late: Mapping[str, np.ndarray],
    width: int,
    repeats: Mapping[str, np.ndarray] | None = None,
    turns: Turns = (),
) -> Schedule:
    """Predicates in the given order; sites marked in `late` come in a second round, after all others.

    `turns`: sets of predicates that change places at random in the first round, and whether with the axes of their
    rasters in random order (a list is shuffled, and half a square has no first axis).
    """
    repeats = repeats or {}
    shuffled = {name: k for k, (names, _) in enumerate(turns) for name in names}
    numbers = {name: p for p, name in enumerate(model.predicates)}
    if sorted(order) != sorted(numbers):
        raise ModelError(f"an order of predicates must name each of {', '.join(numbers)} once; got {', '.join(order)}")
    rows: list[Row] = []
    masks, barred = Masks([], []), {}
    for name, here in known.items():
        if model.predicates[name].exclusive and here.mask is not None:
            barred[numbers[name]] = masks.put(masks.skips, here.mask)
    turn = 0
    for second in (False, True):
        for name in order:
            free, skip = known[name].free, known[name].skip
            if name in late:
                apart = pack(np.asarray(late[name], bool) != second)
                skip = apart if skip is None else skip | apart
                free = np.asarray(late[name]).size - int(np.bitwise_count(skip).sum())
            if free and (name in late or not second):
                p, again, predicate = numbers[name], repeats.get(name), model.predicates[name]
                row = entry_of(model, p, predicate, skip, free, masks, again)
                place = -1 if second else shuffled.get(name, -1)
                half = again is not None and row[3] < 0
                rows.append((row, (turn, place, half)))
                if place >= 0 and turns[place][1] and row[3] < 0 and not half:
                    for axes in list(permutations(range(row[5])))[1:]:
                        other = entry_of(model, p, predicate, skip, free, masks, axes=axes)
                        rows.append((other, (turn, place, half)))
                turn += 1
    return scheduled(rows, masks, barred, sum(k.free for k in known.values()), width)


def scheduled(rows: Sequence[Row], masks: Masks, barred: dict[int, int], free: int, width: int) -> Schedule:
    """`width`: arguments of the predicate that has most."""
    entries = np.zeros((len(rows), 9 + 3 * width), dtype=np.int64)
    for entry, (row, last) in zip(entries, rows, strict=True):
        entry[: len(row)] = row
        entry[-3:] = last
    skips = np.concatenate([np.zeros(0, np.uint64), *masks.skips])
    listed = np.concatenate([np.zeros(0, np.int64), *masks.lists])
    return Schedule(entries, skips, listed, barred, free)
