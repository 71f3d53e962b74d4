"""The order of a permutation group, exactly: giants by a theorem of Jordan, the others by Schreier-Sims.

A leaf that `groups.order` calls for each direct factor. Permutations are dense, "first a, then b" is b[a].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

FILL_DEGREE = 5_000  # beyond it groups are hoped to be small, and random elements cost more than they save
FILL_TRIVIAL = 12  # random elements in a row that the chain contains, before the proof begins
GIANT_DEGREE = 8
GIANT_TRIES = 60


def chain_order(generators: np.ndarray, elements: Iterator[np.ndarray], work: int) -> int | None:
    """The order of the group of generators[r, degree], or None past `work`. `elements` yields random members."""
    degree = generators.shape[1]
    if degree <= FILL_DEGREE and (giant := _giant_order(generators, elements)) is not None:
        return giant
    chain = _Chain(degree, work)
    try:
        for g in generators:
            while (lost := chain.sift(g[None], 0)) is not None:
                chain.insert(*lost)
        if degree <= FILL_DEGREE:
            _fill(chain, elements)
        while (lost := chain.missing()) is not None:
            chain.insert(*lost)
    except _Exhausted:
        return None
    return math.prod(len(level.orbit) for level in chain.levels)


def _fill(chain: _Chain, elements: Iterator[np.ndarray]) -> None:
    """Random elements make the chain complete nearly surely and keep it short; `missing` proves it afterwards."""
    trivial = 0
    while trivial < FILL_TRIVIAL:
        element = next(elements)
        chain.spend(4 * chain.degree)
        if (lost := chain.sift(element[None], 0)) is None:
            trivial += 1
        else:
            trivial = 0
            chain.insert(*lost)


# --- giants ------------------------------------------------------------------------------------------------------


def _giant_order(generators: np.ndarray, elements: Iterator[np.ndarray]) -> int | None:
    """d! or d!/2 if the group is proved to contain all even permutations of its d points, else None.

    Jordan: a transitive group with an element that has a cycle of prime length p, d/2 < p < d - 2, is such a group (a
    power of the element is a p-cycle, and a group with blocks could not have it).
    """
    degree = generators.shape[1]
    if degree < GIANT_DEGREE or len(_reached(generators)) < degree:
        return None
    for element in islice(elements, GIANT_TRIES):
        if any(degree < 2 * p and p < degree - 2 and _is_prime(p) for p in _cycle_lengths(element)):
            odd = any((degree - len(_cycle_lengths(g))) % 2 for g in generators)
            return math.factorial(degree) // (1 if odd else 2)
    return None


def _reached(generators: np.ndarray) -> set[int]:
    reached, frontier = {0}, {0}
    while frontier:
        frontier = set(generators[:, list(frontier)].ravel().tolist()) - reached
        reached |= frontier
    return reached


def _cycle_lengths(element: np.ndarray) -> list[int]:
    image, seen, out = element.tolist(), bytearray(len(element)), []
    for x in range(len(image)):
        length = 0
        while not seen[x]:
            seen[x] = 1
            x, length = image[x], length + 1
        if length:
            out.append(length)
    return out


def _is_prime(p: int) -> bool:
    return p > 1 and all(p % q for q in range(2, math.isqrt(p) + 1))


# --- the stabiliser chain ----------------------------------------------------------------------------------------


class _Exhausted(Exception):
    pass


@dataclass
class _Level:
    """One level of a stabiliser chain: what fixes the base points before, and a transversal of its base's orbit."""

    base: int
    generators: list[np.ndarray]
    place: np.ndarray  # point → row of `transversal`, -1 outside the orbit
    orbit: list[int]
    transversal: np.ndarray  # row → element that takes `base` to orbit[row]
    back: np.ndarray  # their inverses


class _Chain:
    """Base and strong generators: filled by random elements, then proved complete by sifting Schreier generators."""

    def __init__(self, degree: int, work: int) -> None:
        self.degree, self.work = degree, work
        self.levels: list[_Level] = []

    def spend(self, elements: int) -> None:
        self.work -= elements
        if self.work < 0:
            raise _Exhausted

    def sift(self, many: np.ndarray, depth: int) -> tuple[np.ndarray, int] | None:
        """The first of many[m, degree] (all in level `depth`) that the chain does not contain: (residue, its level)."""
        for at in range(depth, len(self.levels)):
            level = self.levels[at]
            self.spend(many.size)
            rows = level.place[many[:, level.base]]
            if (rows < 0).any():
                return many[int(np.argmin(rows))], at
            many = np.take_along_axis(level.back[rows], many, axis=1)  # first many, then back to the base point
        moved = (many != np.arange(self.degree)).any(axis=1)
        return (many[int(np.argmax(moved))], len(self.levels)) if moved.any() else None

    def insert(self, element: np.ndarray, at: int) -> None:
        """A strong generator for level `at`: it fixes the base points before, and belongs to the levels above too."""
        if at == len(self.levels):
            base = int(np.argmax(element != np.arange(self.degree)))
            place = np.full(self.degree, -1, dtype=np.int64)
            one = np.arange(self.degree, dtype=np.int64)[None]
            self.levels.append(_Level(base, [], place, [base], one, one))
            place[base] = 0
        self.levels[at].generators.append(element)
        for above in range(at + 1):
            self._grow(above)

    def generators(self, at: int) -> list[np.ndarray]:
        return [g for level in self.levels[at:] for g in level.generators]

    def _grow(self, at: int) -> None:
        level, generators = self.levels[at], self.generators(at)
        found = [level.transversal]
        frontier = level.transversal
        while len(frontier):
            reached = np.concatenate([g[frontier] for g in generators])  # first the transversal, then g
            self.spend(reached.size)
            points, first = np.unique(reached[:, level.base], return_index=True)
            new = level.place[points] < 0
            frontier = reached[first[new]]
            level.place[points[new]] = len(level.orbit) + np.arange(int(new.sum()))
            level.orbit.extend(points[new].tolist())
            found.append(frontier)
        level.transversal = np.concatenate(found)
        level.back = np.empty_like(level.transversal)
        np.put_along_axis(level.back, level.transversal, np.arange(self.degree)[None], axis=1)

    def missing(self) -> tuple[np.ndarray, int] | None:
        """A Schreier generator that the chain does not contain, with its level; None proves the chain complete."""
        for at in range(len(self.levels) - 1, -1, -1):
            level = self.levels[at]
            for g in self.generators(at):
                moved = g[level.transversal]
                self.spend(2 * moved.size)
                back = level.back[level.place[moved[:, level.base]]]
                lost = self.sift(np.take_along_axis(back, moved, axis=1), at + 1)
                if lost is not None:
                    return lost
        return None
