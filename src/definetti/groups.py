"""Permutation groups on 0 … degree - 1, by sparse generators: orbits, tuple orbits, order, random elements, cycles.

A leaf: it knows no model. A generator is a pair of int64 arrays (points, images), its moved points ascending; a dense
permutation is an array g with g[x] the image of x, and "first a, then b" is b[a].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Generator = tuple[np.ndarray, np.ndarray]

ORDER_WORK = 300_000_000  # array elements that `order` may touch before it gives up (a few seconds)
RATTLE_SLOTS = 10  # product replacement keeps at least this many elements
RATTLE_MEMORY = 40_000_000  # and at most this many array entries
RATTLE_WARM_UP = 60


@dataclass(frozen=True, eq=False)
class PermutationGroup:
    """The group that `generators` generate. Make the generators with `sparse` or `from_cycles`."""

    degree: int
    generators: tuple[Generator, ...] = ()

    @cached_property
    def moves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All generators as one list of moves: (which generator, point, image), sorted by generator and point."""
        if not self.generators:
            none = np.empty(0, dtype=np.int64)
            return none, none, none
        sizes = [len(points) for points, _ in self.generators]
        which = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        points = np.concatenate([points for points, _ in self.generators])
        return which, points, np.concatenate([images for _, images in self.generators])

    def __repr__(self) -> str:
        return f"PermutationGroup(degree {self.degree}, {len(self.generators)} generators)"


# --- generators --------------------------------------------------------------------------------------------------


def sparse(dense: np.ndarray) -> Generator:
    """The moved points of a dense permutation and their images."""
    dense = np.asarray(dense, dtype=np.int64)
    points = np.flatnonzero(dense != np.arange(len(dense)))
    return points, dense[points]


def dense(generator: Generator, degree: int) -> np.ndarray:
    out = np.arange(degree, dtype=np.int64)
    out[generator[0]] = generator[1]
    return out


def inverse(generator: Generator) -> Generator:
    points, images = generator
    back = np.argsort(images, kind="stable")
    return images[back], points[back]


def from_cycles(cycles: Sequence[Sequence[int]]) -> Generator:
    """The permutation with these disjoint cycles."""
    points = np.array([x for cycle in cycles for x in cycle], dtype=np.int64)
    images = np.array([x for cycle in cycles for x in (*cycle[1:], cycle[0])], dtype=np.int64)
    order = np.argsort(points, kind="stable")
    points, images = points[order], images[order]
    moved = points != images
    return points[moved], images[moved]


def to_cycles(generator: Generator) -> list[list[int]]:
    """The cycles, each starting at its smallest point, in the order of these."""
    image = dict(zip(generator[0].tolist(), generator[1].tolist(), strict=True))
    cycles = []
    while image:
        start = next(iter(image))
        cycle, x = [start], image.pop(start)
        while x != start:
            cycle.append(x)
            x = image.pop(x)
        cycles.append(cycle)
    return cycles


# --- orbits ------------------------------------------------------------------------------------------------------


def components(count: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """int32[count]: the connected component of each point under the edges a–b, numbered 0.. by smallest member."""
    root = np.arange(count, dtype=np.int64)
    while True:
        at, to = root[a], root[b]
        apart = at != to
        if not apart.any():
            break
        a, b, at, to = a[apart], b[apart], at[apart], to[apart]
        np.minimum.at(root, np.maximum(at, to), np.minimum(at, to))  # larger roots hook onto smaller ones
        while not np.array_equal(up := root[root], root):
            root = up
    number = np.cumsum(root == np.arange(count)) - 1
    return number[root].astype(np.int32)


def orbits(group: PermutationGroup) -> np.ndarray:
    """int32[degree]: the orbit of each point, numbered 0.. by smallest member."""
    _, points, images = group.moves
    return components(group.degree, points, images)


def tuple_orbit(group: PermutationGroup, points: Sequence[int] | np.ndarray, cap: int) -> np.ndarray | None:
    """int64[m, k]: the orbit of an ordered tuple, or None if it has more than `cap` members.

    Breadth-first, all generators at once. With inverses the search graph is undirected, so that a new level need only
    be compared with the two before it.
    """
    start = np.asarray(points, dtype=np.int64).reshape(1, -1)
    step = _Steps(group)
    levels, total = [start], 1
    before = np.empty((0, start.shape[1]), dtype=np.int64)
    while len(levels[-1]):
        fresh = _unseen(step.images(levels[-1]), [before, levels[-1]], group.degree)
        total += len(fresh)
        if total > cap:
            return None
        before = levels[-1]
        levels.append(fresh)
    return np.concatenate(levels)


class _Steps:
    """Images of tuples under every generator and inverse that moves them, by joins on the list of moves."""

    def __init__(self, group: PermutationGroup) -> None:
        which, points, images = group.moves
        back = np.lexsort((images, which))
        mirrored = np.array_equal(points[back], images) if len(which) else True  # only involutions
        if not mirrored:
            count = len(group.generators)
            points, images = np.concatenate([points, images[back]]), np.concatenate([images, points[back]])
            which = np.concatenate([which, which[back] + count])
        self.degree = group.degree
        self.keys, self.images_of = which * self.degree + points, images
        by_point = np.argsort(points, kind="stable")
        self.movers = which[by_point]
        self.start = np.searchsorted(points[by_point], np.arange(self.degree + 1))

    def images(self, tuples: np.ndarray) -> np.ndarray:
        rows, movers = [], []
        for column in tuples.T:
            first, last = self.start[column], self.start[column + 1]
            rows.append(np.repeat(np.arange(len(tuples)), last - first))
            movers.append(self.movers[ranges(first, last)])
        if not any(len(r) for r in rows):
            return tuples[:0]
        row, mover = np.concatenate(rows), np.concatenate(movers)
        if tuples.shape[1] > 1:  # a generator that moves two entries of a tuple is used once
            pair = np.unique(mover * len(tuples) + row)
            mover, row = np.divmod(pair, len(tuples))
        asked = mover[:, None] * self.degree + tuples[row]
        at = np.minimum(np.searchsorted(self.keys, asked), len(self.keys) - 1)
        return np.where(self.keys[at] == asked, self.images_of[at], tuples[row])


def ranges(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """first[0] … last[0]-1, first[1] … last[1]-1, … in one array."""
    sizes = last - first
    shift = np.repeat(first - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.arange(int(sizes.sum()), dtype=np.int64) + shift


def _unseen(rows: np.ndarray, seen: list[np.ndarray], degree: int) -> np.ndarray:
    """The different rows that are in none of `seen`."""
    if rows.shape[1] * math.log2(max(degree, 2)) < 62:
        place = degree ** np.arange(rows.shape[1], dtype=np.int64)
        keys, first = np.unique(rows @ place, return_index=True)
        new = ~np.isin(keys, np.concatenate([s @ place for s in seen]))
        return rows[first[new]]
    rows = np.unique(rows, axis=0)
    known = np.concatenate(seen)
    stacked, first = np.unique(np.concatenate([known, rows]), axis=0, return_index=True)
    return stacked[first >= len(known)]


# --- direct factors ----------------------------------------------------------------------------------------------


def direct_factors(group: PermutationGroup) -> list[tuple[np.ndarray, np.ndarray]]:
    """The group as a direct product: generators that share no moved point commute and have nothing in common.

    Each factor is (its points ascending, int64[r, points] generators on their positions).
    """
    which, points, images = group.moves
    if not len(which):
        return []
    label = components(len(group.generators) + group.degree, which, len(group.generators) + points)
    by_factor: dict[int, list[Generator]] = {}
    for g, generator in enumerate(group.generators):
        if len(generator[0]):
            by_factor.setdefault(int(label[g]), []).append(generator)
    out = []
    for generators in by_factor.values():
        support = np.unique(np.concatenate([points for points, _ in generators]))
        local = np.tile(np.arange(len(support), dtype=np.int64), (len(generators), 1))
        for row, (points, images) in zip(local, generators, strict=True):
            row[np.searchsorted(support, points)] = np.searchsorted(support, images)
        out.append((support, local))
    return out


# --- order (Schreier–Sims) ---------------------------------------------------------------------------------------


class _Exhausted(Exception):
    pass


@dataclass
class _Level:
    """One level of a stabiliser chain: what fixes the base points before, and a transversal of this base point's orbit."""

    base: int
    generators: list[np.ndarray]
    place: np.ndarray  # point → row of `transversal`, -1 outside the orbit
    orbit: list[int]
    transversal: np.ndarray  # row → element that takes `base` to orbit[row]
    back: np.ndarray  # their inverses


class _Chain:
    """Base and strong generating set: filled by random elements, then proved complete by sifting all Schreier generators."""

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
        """A strong generator for level `at`: it fixes the base points before and belongs to the levels above as well."""
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
        level.back = np.argsort(level.transversal, axis=1)

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


def order(group: PermutationGroup, work: int = ORDER_WORK) -> int | None:
    """The exact number of elements, or None where finding it takes more than `work` array elements touched."""
    total = 1
    for _, local in direct_factors(group):
        size = _factor_order(local, work)
        if size is None:
            return None
        total *= size
    return total


def _factor_order(generators: np.ndarray, work: int) -> int | None:
    degree = generators.shape[1]
    if ((generators != np.arange(degree)).sum(axis=1) == 2).all():
        return math.factorial(degree)  # transpositions that connect their points generate all permutations
    chain = _Chain(degree, work)
    try:
        for g in generators:
            while (lost := chain.sift(g[None], 0)) is not None:
                chain.insert(*lost)
        _fill(chain, generators)
        while (lost := chain.missing()) is not None:
            chain.insert(*lost)
    except _Exhausted:
        return None
    return math.prod(len(level.orbit) for level in chain.levels)


def _fill(chain: _Chain, generators: np.ndarray) -> None:
    """Random elements make the chain complete nearly surely and keep it short; `missing` proves it afterwards."""
    trivial = 0
    for element in _rattle(generators, np.random.default_rng(0)):
        chain.spend(4 * chain.degree)
        if (lost := chain.sift(element[None], 0)) is None:
            trivial += 1
        else:
            trivial = 0
            chain.insert(*lost)
        if trivial == 12:
            return


# --- random elements ---------------------------------------------------------------------------------------------


def _rattle(generators: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Product replacement with an accumulator ("rattle") on dense generators[r, d]."""
    r, degree = generators.shape
    most = max(RATTLE_SLOTS, RATTLE_MEMORY // degree)
    if r > most:  # random subproducts: they generate the group, or a subgroup, which is as good for averaging
        generators = np.stack([_subproduct(generators, rng) for _ in range(most)])
        r = most
    slots = generators[np.arange(max(r, RATTLE_SLOTS)) % r].copy()
    total = np.arange(degree, dtype=np.int64)
    warm_up = max(RATTLE_WARM_UP, 4 * len(slots))
    while True:
        i, j = rng.choice(len(slots), size=2, replace=False)
        other = slots[j] if rng.random() < 0.5 else np.argsort(slots[j])
        slots[i] = other[slots[i]] if rng.random() < 0.5 else slots[i][other]
        total = slots[i][total]
        if warm_up:
            warm_up -= 1
        else:
            yield total


def _subproduct(generators: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    out = np.arange(generators.shape[1], dtype=np.int64)
    for g in rng.permutation(len(generators))[rng.random(len(generators)) < 0.5]:
        out = generators[g][out]
    return out


def random_elements(group: PermutationGroup, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Nearly uniform elements of the group, for ever, each a dense int64[degree] array."""
    factors = [(support, _rattle(local, rng)) for support, local in direct_factors(group)]
    while True:
        out = np.arange(group.degree, dtype=np.int64)
        for support, elements in factors:
            out[support] = support[next(elements)]
        yield out


def random_element(group: PermutationGroup, rng: np.random.Generator) -> np.ndarray:
    """One nearly uniform element (warm-up included: take several from `random_elements`)."""
    return next(random_elements(group, rng))
