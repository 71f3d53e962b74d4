"""Permutation groups on 0 … degree - 1, by sparse generators: orbits, tuple orbits, order, random elements, cycles.

A leaf: it knows no model. A generator is a pair of int64 arrays (points, images), its moved points ascending; a dense
permutation is an array g with g[x] the image of x, and "first a, then b" is b[a].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Generator = tuple[np.ndarray, np.ndarray]

ORDER_WORK = 300_000_000  # array elements that `order` may touch before it gives up (a few seconds)
RATTLE_SLOTS = 10  # product replacement keeps at least this many elements
RATTLE_MEMORY = 40_000_000  # and at most this many array entries
RATTLE_WARM_UP = 60
LISTED_ELEMENTS = 2_000  # of a group whose elements are listed to draw from them
LISTED_ENTRIES = 40_000_000


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

    @cached_property
    def steps(self) -> Steps:
        return Steps(self)

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


# --- orbits ------------------------------------------------------------------------------------------------------


def components(count: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """int32[count]: the connected component of each point under the edges a to b, numbered 0.. by smallest member."""
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
    step = group.steps
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


class Steps:
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


@dataclass(frozen=True, eq=False)
class Factor:
    """A direct factor: generators on the positions in `support`, or all permutations of `blocks`."""

    support: np.ndarray  # int64: the points that it moves, ascending
    generators: list[Generator]
    blocks: np.ndarray | None  # int64[m, c], positions: the group permutes the rows in every possible way

    def dense(self) -> np.ndarray:
        return np.stack([dense(g, len(self.support)) for g in self.generators])


def direct_factors(group: PermutationGroup) -> list[Factor]:
    """The group as a direct product: generators that share no moved point commute and have nothing in common."""
    which, points, _ = group.moves
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
        local = [(np.searchsorted(support, points), np.searchsorted(support, images)) for points, images in generators]
        out.append(Factor(support, local, _blocks(len(support), local)))
    return out


def _blocks(degree: int, generators: list[Generator]) -> np.ndarray | None:
    """The blocks of a symmetric group generated by swaps of disjoint blocks along a tree (twins are of this kind).

    Swaps are edges between blocks, so a block is known by the swaps that move it. With c points to a block, the points
    form c orbits, one point of each block in each, and each swap exchanges two points of every orbit.
    """
    sizes = np.array([len(points) for points, _ in generators])
    m = len(generators) + 1
    if degree % m or (sizes != 2 * (degree // m)).any():
        return None
    c = degree // m
    which, points, images = PermutationGroup(degree, tuple(generators)).moves
    orbit = components(degree, points, images)
    back = np.lexsort((images, which))
    balanced = np.unique(which * degree + orbit[points], return_counts=True)[1]
    if not np.array_equal(images[back], points) or not np.array_equal(points[back], images):
        return None  # not all are involutions
    if (np.bincount(orbit) != m).any() or (balanced != 2).any():
        return None
    key = np.zeros(degree, dtype=np.uint64)
    np.add.at(key, points, np.random.default_rng(0).integers(2**63, size=m, dtype=np.uint64)[which])
    order = np.lexsort((key, orbit)).reshape(c, m)
    return order.T.copy() if (key[order] == key[order[0]]).all() else None


# --- order -------------------------------------------------------------------------------------------------------


def order(group: PermutationGroup, work: int = ORDER_WORK) -> int | None:
    """The exact number of elements, or None where finding it takes more than `work` array elements touched."""
    from definetti.stabiliser import chain_order

    total = 1
    for factor in direct_factors(group):
        if factor.blocks is not None:
            total *= math.factorial(len(factor.blocks))
            continue
        if len(factor.generators) * len(factor.support) > work:
            return None
        size = chain_order(factor.dense(), _rattle(factor, np.random.default_rng(0)), work)
        if size is None:
            return None
        total *= size
    return total


# --- random elements ---------------------------------------------------------------------------------------------


def _rattle(factor: Factor, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Product replacement with an accumulator ("rattle")."""
    degree, r = len(factor.support), len(factor.generators)
    if r * degree <= RATTLE_MEMORY:
        slots = factor.dense()[np.arange(max(r, RATTLE_SLOTS)) % r]
    else:  # random subproducts: they generate the group, or a subgroup, which is as good for averaging
        slots = np.stack([_subproduct(factor, rng) for _ in range(2 * RATTLE_SLOTS)])
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


def _subproduct(factor: Factor, rng: np.random.Generator) -> np.ndarray:
    """The product of a random half of the generators in random order."""
    back = np.arange(len(factor.support), dtype=np.int64)
    for g in rng.permutation(len(factor.generators))[: (len(factor.generators) + 1) // 2]:
        points, images = factor.generators[g]
        back[points] = back[images]
    return back


def _shuffles(factor: Factor, blocks: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    while True:
        out = np.arange(len(factor.support), dtype=np.int64)
        out[blocks] = blocks[rng.permutation(len(blocks))]
        yield out


def random_elements(group: PermutationGroup, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Nearly uniform elements of the group, for ever, each a dense int64[degree] array."""
    factors = [
        (factor.support, _rattle(factor, rng) if factor.blocks is None else _shuffles(factor, factor.blocks, rng))
        for factor in direct_factors(group)
    ]
    while True:
        out = np.arange(group.degree, dtype=np.int64)
        for support, elements in factors:
            out[support] = support[next(elements)]
        yield out


def elements(generators: Iterable[np.ndarray], degree: int) -> Iterator[np.ndarray]:
    """Every element of a small group by its dense generators, the identity first."""
    steps, one = list(generators), np.arange(degree)
    seen, waiting = {one.tobytes()}, [one]
    while waiting:
        now = waiting.pop()
        yield now
        for step in steps:
            other = step[now]
            if other.tobytes() not in seen:
                seen.add(other.tobytes())
                waiting.append(other)


class Sampler:
    """Random elements one at a time, each from a stream of its own: uniform for symmetric groups and for groups small
    enough to be listed, nearly uniform (product replacement) for others."""

    def __init__(self, group: PermutationGroup) -> None:
        self.degree = group.degree
        self._factors = [(factor, _listed(factor)) for factor in direct_factors(group)]
        self.uniform = all(known is not None or factor.blocks is not None for factor, known in self._factors)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        out = np.arange(self.degree, dtype=np.int64)
        for factor, known in self._factors:
            if known is not None:
                local = known[rng.integers(len(known))]
            elif factor.blocks is not None:
                local = next(_shuffles(factor, factor.blocks, rng))
            else:
                local = next(_rattle(factor, rng))
            out[factor.support] = factor.support[local]
        return out


def _listed(factor: Factor) -> np.ndarray | None:
    """All elements of a direct factor, if they are few."""
    degree = len(factor.support)
    if factor.blocks is not None or degree > LISTED_ENTRIES // LISTED_ELEMENTS:
        return None
    size = order(PermutationGroup(degree, tuple(factor.generators)))
    if size is None or size > LISTED_ELEMENTS:
        return None
    return np.stack(list(elements((dense(g, degree) for g in factor.generators), degree)))


def random_element(group: PermutationGroup, rng: np.random.Generator) -> np.ndarray:
    """One nearly uniform element (warm-up included: take several from `random_elements`)."""
    return next(random_elements(group, rng))
