"""Tracked atoms of relational chains: which bits of the state they are, read after a sweep."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from definetti.samplers.logic.data import Chain
from definetti.samplers.logic.engine import Relational
from definetti.samplers.logic.known_bits import words_of
from definetti.samplers.logic.state import home_offset
from definetti.samplers.tracking import pick
from definetti.symmetry.logic.renaming import RenamingSymmetries

CANDIDATES = 1 << 16  # atoms of a predicate looked at to find members: all, or so many at random


@dataclass(frozen=True, eq=False)
class Atoms:
    """Tracked atoms: atom m is bit `shift[m]` of word `word[m]`, a member of orbit `orbit[m]`."""

    orbit: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    word: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    shift: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def values(self, chain: Chain) -> np.ndarray:
        """uint64[M]: 1 where the atom is true."""
        return (chain.bits[self.word] >> self.shift) & np.uint64(1)


def tracked_atoms(relational: Relational, group: RenamingSymmetries, seed: int) -> Atoms:
    """Up to 64 atoms of each orbit that has several (of a large predicate, of those that a random look finds)."""
    rng = np.random.default_rng([seed, 2])
    orbits, words, shifts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    places = list(relational.model.predicates)
    for name in group.atom_orbits if len(group.sizes) else ():
        shape = group.model.shape(name)
        if not shape:
            continue
        total = int(np.prod(shape, dtype=np.int64))
        flat = np.arange(total) if total <= CANDIDATES else np.unique(rng.integers(0, total, CANDIDATES))
        tuples = np.stack(np.unravel_index(flat, shape), axis=1)
        orbit = group.orbit_numbers(name, tuples).astype(np.int64)
        p = places.index(name)
        start = home_offset(relational.written, relational.data, p, shape)
        row, last = flat // shape[-1], tuples[:, -1]
        orbits.append(np.where((orbit >= 0) & (group.sizes[orbit] > 1), orbit, -1))
        words.append(start + row * words_of(shape[-1]) + (last >> 6))
        shifts.append(last & 63)
    orbit = np.concatenate(orbits)
    chosen = pick(orbit, rng)
    return Atoms(orbit[chosen], np.concatenate(words)[chosen], np.concatenate(shifts)[chosen].astype(np.uint64))
