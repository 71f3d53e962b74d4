"""The state of one chain: bit tensors in every orientation, made from boolean tensors and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen import layout
from definetti.samplers.codegen.module import Written
from definetti.samplers.kernels.rng import seed_words
from definetti.samplers.logic.tensors.data import CHUNK, Chain, Data
from definetti.samplers.logic.tensors.known_bits import home_words, pack, unpack

PENDING, FAILED = 3, 4  # places of the clock


def blank_chain(data: Data, listed: np.ndarray, words: int, orbits: int, queries: int, shapes: int) -> Chain:
    """A chain whose atoms are all false and whose streams are not seeded."""
    values = int(data.entries[:, 4].max(initial=1))
    width = max((data.entries.shape[1] - 9) // 3, 1)
    turns = np.full(len(data.entries), -1)
    turns[data.entries[::-1, -3]] = np.arange(len(turns))[::-1]  # the first entry of each turn
    clock = np.zeros(8, dtype=np.int64)
    clock[PENDING] = clock[FAILED] = -1
    return Chain(
        bits=np.zeros(words, np.uint64),
        clock=clock,
        streams=np.zeros(8, np.uint64),
        order=np.concatenate([np.zeros(0, np.int64), *(np.arange(n) for n in data.sorts[:, 1]), listed, turns]),
        coords=np.zeros((width, CHUNK), np.int64),
        uniform=np.zeros(CHUNK),
        value=np.zeros(CHUNK, np.int64),
        chance=np.zeros(max(CHUNK, values)),
        orbit=np.zeros(CHUNK, np.int64),
        fields=np.zeros((4 + shapes, values)),
        tilt=np.zeros(max(CHUNK, values)),
        tally=np.zeros(6 + shapes),
        sum_f=np.zeros((3, orbits + 1), np.int64),
        sum_g=np.zeros((3, orbits + 1)),
        seen=np.zeros((3, queries)),
    )


@dataclass(frozen=True, eq=False)
class Start:
    """A state that a run begins at, whichever engine it has."""

    written: Written
    data: Data
    model: MarkovLogic
    bits: np.ndarray

    def atoms(self, name: str) -> np.ndarray:
        """A predicate's atoms as a boolean tensor."""
        shape = self.model.shape(name)
        start = home_offset(self.written, self.data, list(self.model.predicates).index(name), shape)
        return unpack(self.bits[start : start + home_words(shape)], shape)


def seed_chain(chain: Chain, seed: int, number: int) -> None:
    """The chain's own stream by its number, the scan's by the seed alone."""
    chain.streams[:4] = seed_words(seed, number)
    chain.streams[4:] = seed_words(seed, -1)


def home(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The orientation in which every predicate is kept: words along the last argument."""
    return (len(shape) - 1,) if shape else ()


def put_atoms(written: Written, data: Data, chain: Chain, p: int, shape: tuple[int, ...], atoms: np.ndarray) -> None:
    """Writes a predicate's atoms (words at home) into every orientation of a chain's state."""
    tensor = None
    for bits in written.layout.orientations(p):
        start = data.numbers[written.layout.place[bits]]
        words = atoms
        if bits.axis != home(shape):
            tensor = unpack(atoms, shape) if tensor is None else tensor
            words = pack(diagonal(tensor, bits.axis))
        chain.bits[start : start + words.size] = words


def counted_bits(written: Written, data: Data, chain: Chain, shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """The state with the orientations beside it, which only counting from nothing reads; `shapes` by predicate."""
    parts = [chain.bits]
    for bits in written.layout.beside:
        shape = shapes[bits.predicate]
        parts.append(pack(diagonal(get_atoms(written, data, chain, bits.predicate, shape), bits.axis)))
    return np.concatenate(parts)


def diagonal(tensor: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The part with equal constants at the places `axis`, those moved to one last axis."""
    moved = tensor.transpose([*(j for j in range(tensor.ndim) if j not in axis), *axis])
    if len(axis) == 1:
        return moved
    rows = np.arange(tensor.shape[axis[0]])
    return moved[(..., *([rows] * len(axis)))]


def home_offset(written: Written, data: Data, p: int, shape: tuple[int, ...]) -> int:
    """Where a predicate's atoms start in `bits`, in the orientation in which every predicate is kept."""
    return int(data.numbers[written.layout.place[layout.orientation(p, home(shape))]])


def get_atoms(written: Written, data: Data, chain: Chain, p: int, shape: tuple[int, ...]) -> np.ndarray:
    """A predicate's atoms as a boolean tensor."""
    start = home_offset(written, data, p, shape)
    return unpack(chain.bits[start : start + home_words(shape)], shape)


def live_region(written: Written, data: Data, chain: Chain, p: int, shape: tuple[int, ...]) -> np.ndarray | None:
    """The bits of a predicate's atoms that could have moved, as words at home; None where no hard formula holds it."""
    place = written.layout.place.get(layout.live(p, home(shape)))
    if place is None:
        return None
    start = data.numbers[place]
    return chain.bits[start : start + home_words(shape)]


def clear_sums(chain: Chain) -> None:
    """Begins a new batch (what the sweep under way has added so far belongs to it)."""
    chain.sum_f[1:] = 0
    chain.sum_g[1:] = 0
    chain.seen[1:] = 0
