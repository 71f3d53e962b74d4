"""The sparse Gibbs engine: a compiled theory, and chains whose state is lists of true atoms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from types import ModuleType

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen.cache import load_kernel
from definetti.samplers.kernels.logic.lists import put_behind
from definetti.samplers.kernels.rng import seed_words
from definetti.samplers.logic.engine import refuse_large
from definetti.samplers.sparse.data import (
    LIST,
    MASKS,
    ROW_KEYS,
    Chain,
    Data,
    SystemData,
    classes_of_b,
    entries_of,
    families_of,
    known_arrays,
    lay_out,
    orbit_arrays,
)
from definetti.samplers.sparse.emit import Plan, kernel_text, plan_of
from definetti.samplers.sparse.keys import packing
from definetti.samplers.sparse.split import Split, split_sorts
from definetti.samplers.sparse.watch import watched_sites

SWEEP, UPDATES, ROOM, CROWDED, LOOKS = 0, 4, 5, 6, 7  # places of the clock
SMALLEST = 4  # room of a list
FOREVER = 1 << 60
LARGEST = 40  # sizes of blocks
ATOM_BYTES = 16  # two places in lists, with their room to grow
KEPT = 1 << 12  # keys whose chances are kept


@dataclass(frozen=True, eq=False)
class Sparse:
    """A Markov logic network ready to be sampled at the cost of its true atoms."""

    model: MarkovLogic  # without small sorts
    plan: Plan
    kernel: ModuleType
    data: Data
    shared: tuple[tuple[np.ndarray, ...], ...]  # of each system
    masks: tuple[np.ndarray, ...]  # of each system: how its keys are packed
    watched: tuple[np.ndarray, ...]  # of each system: `watched` of a new chain
    orbit_count: int
    free_sites: int
    split: Split  # what the predicates are of the theory that was given
    orbits: Mapping[str, AtomOrbits]
    shapes: tuple[int, ...]  # of each system the one whose functions it uses
    seconds: float = 0.0

    @property
    def atoms(self) -> float:
        """About how many atoms are true at most, where supports do not add to them: by the largest base chance."""
        sizes, total = self.data.sizes.astype(float), 0.0
        for s, (base, *_) in zip(self.plan.systems, self.shared, strict=True):
            total += float(sizes[s.sorts[0]] * sizes[s.sorts[1]] / (1.0 + np.exp(-base.max())))
        return total

    @property
    def chain_bytes(self) -> int:
        """Memory of one chain: what each constant needs, and two places in lists for each true atom."""
        sizes = self.data.sizes
        nodes = sum(int(sizes[s.sorts[1]]) for s in self.plan.systems)
        ends = sum(int(sizes[x]) for p in self.plan.systems for x in self.plan.sorts[p.predicate])
        constants = 8 * int(sizes.sum()) * 2 + 64 * ends + (64 + 64 + 24 + 16 + 32) * nodes + 64 * self.orbit_count
        constants += sum(4 * len(sites) + 8 * len(s[-1]) for sites, s in zip(self.watched, self.shared, strict=True))
        return constants + ATOM_BYTES * int(self.atoms)


def compile_sparse(
    model: MarkovLogic,
    orbits: Mapping[str, AtomOrbits],
    deferred: Mapping[str, np.ndarray] | None = None,
    *,
    shuffled: bool = True,
    plan: Plan | None = None,
) -> Sparse:
    """Writes and loads the kernel of a theory and lays out its data; raises `Unfit` where it has none.

    `deferred`: by the classes of `orbits`, which atoms are drawn after all others; of R(x,y) all or none.
    """
    began = perf_counter()
    split = split_sorts(model)
    model, late, orbits = split.model, split.by_cells(orbits, deferred or {}), split.orbits(orbits)
    plan = plan_of(model) if plan is None else plan
    packed = [packing(model, plan, s) for s in plan.systems]
    orbit_count = 1 + max((int(o.lookup.max(initial=-1)) for o in orbits.values()), default=-1)
    entries = entries_of(model, plan, orbits, late)
    data, free = lay_out(model, orbits, late, plan, entries, packed, shuffled)
    data = data._replace(families=families_of(plan, split, data))
    watched = [watched_sites(model, plan, s, orbits) for s in plan.systems]
    text, shapes = kernel_text(plan)
    shared = tuple(
        (*x.arrays, *orbit_arrays(model, plan, s, orbits), *known_arrays(model, plan, s, data, orbits), own, start)
        for x, s, own, (start, _) in zip(packed, plan.systems, shapes.own, watched, strict=True)
    )
    kernel = load_kernel(text)
    masks, sites = tuple(x.masks for x in packed), tuple(sites for _, sites in watched)
    made = Sparse(model, plan, kernel, data, shared, masks, sites, orbit_count, free, split, orbits, shapes.first)
    kernel.advance(data, blank(made), 0, 0)  # compiles, or loads what an earlier process compiled
    return replace(made, seconds=perf_counter() - began)


# --- chains ----------------------------------------------------------------------------------------------------------


def blank(r: Sparse) -> Chain:
    """A chain without true atoms and without classes."""
    d, total = r.data, int(r.data.sizes.sum())
    systems = []
    for s, shared, masks, watched in zip(r.plan.systems, r.shared, r.masks, r.watched, strict=True):
        n = int(d.sizes[s.sorts[1]])
        table = 1 << max(4, (2 * n).bit_length())
        small = np.zeros(ROW_KEYS + (1 << len(s.bits_b)), np.int64)
        small[MASKS : MASKS + len(masks)] = masks
        own = (
            aligned(LIST * n).reshape(n, LIST), np.zeros(2 * n + 2, np.int64), np.zeros(n + 2, np.int64), small,
            aligned(LIST * (n + 1)), np.arange(n + 1), np.full(table, -1, np.int64),
            np.full(KEPT, -1, np.int64), np.zeros((KEPT, 2)),
            watched.copy(), np.diff(shared[-1]), np.zeros(int(np.diff(shared[-1]).max(initial=0)), np.int64),
        )  # fmt: skip
        systems.append(SystemData(*own, *shared))
    ends = sum(int(d.sizes[x]) for sorts in r.plan.sorts if len(sorts) == 2 for x in set(sorts))
    blocks = np.full(1 + LARGEST, -1, np.int64)
    blocks[0] = 0
    return Chain(
        clock=np.zeros(8, np.int64),
        streams=np.zeros(8, np.uint64),
        remainder=np.zeros(1),
        order=np.concatenate([np.zeros(0, np.int64), *(np.arange(n) for n in d.sizes)]),
        types=np.zeros(total, np.int64),
        turns=np.zeros(len(d.entries), np.int64),
        live=np.zeros(total if r.plan.held_bits else 1, np.int64),
        head=aligned(LIST * ends),
        pool=np.zeros(int(d.reserve[0]), np.int32),
        blocks=blocks,
        true_atoms=np.zeros(r.orbit_count + 1, np.int64),
        sum_f=np.zeros((2, r.orbit_count + 1), np.int64),
        sum_g=np.zeros((3, r.orbit_count + 1)),
        systems=tuple(systems),
    )


def aligned(size: int) -> np.ndarray:
    """int64[size] zeros, of which every eight are one line of a processor's cache: half as many lines are read."""
    found = np.zeros(size + LIST, np.int64)
    start = -(found.ctypes.data // 8) % LIST
    return found[start : start + size]


def room(used: int, reserve: int) -> np.ndarray:
    """A pool for so many entries that holds at least another row."""
    size = 5 * used + 2 * reserve
    refuse_large(4 * size, None)
    return np.zeros(size, np.int32)


def with_room(chain: Chain, reserve: int) -> Chain:
    """The chain with a pool that holds at least another row."""
    pool = room(int(chain.blocks[0]), reserve)
    pool[: chain.blocks[0]] = chain.pool[: chain.blocks[0]]
    chain.clock[ROOM] = 0
    return chain._replace(pool=pool)


def make_chain(
    r: Sparse, seed: int, number: int, bits: Mapping[str, np.ndarray], pairs: Mapping[str, np.ndarray]
) -> Chain:
    """A chain at a state: by predicate the values of P(x) or R(x,x), and the rows of true R(x,y), x ≠ y."""
    chain, d = blank(r), r.data
    chain.streams[:4], chain.streams[4:] = seed_words(seed, number), seed_words(seed, -1)
    chain.remainder[0] = np.random.default_rng([seed, number, 5]).exponential()
    parts: list[np.ndarray] = []
    for p, name in enumerate(r.model.predicates):
        if p in r.plan.position:
            sort = r.plan.sorts[p][0]
            at, n = int(d.type_start[sort]), int(d.sizes[sort])
            values = np.asarray(bits[name], np.int64)
            chain.types[at : at + n] |= values << r.plan.position[p]
            free = 1 - ((d.fixed[0, at : at + n] & d.fixed[1, at : at + n]) >> r.plan.position[p] & 1)
            numbers = d.bit_orbits[d.bit_start[p] : d.bit_start[p] + n]
            chain.true_atoms[:] += np.bincount(numbers[(values & free) == 1], minlength=r.orbit_count + 1)
        if len(r.plan.sorts[p]) == 2:
            rows = np.ascontiguousarray(pairs[name], dtype=np.int64).reshape(-1, 2)
            for side in (0,) if p in r.plan.ties else (0, 1):
                size = int(d.sizes[r.plan.sorts[p][side]])
                parts.append(put_lists(chain, int(d.lists[2 * p + side]), rows[:, side], rows[:, 1 - side], size))
            chain.true_atoms[:] += pair_counts(r, name, rows)
    more = int(d.reserve[0]) + 8 * int(d.sizes.sum()) * max(1, len(r.plan.systems))
    chain = chain._replace(pool=np.concatenate([*parts, np.zeros(more, np.int32)]))
    for system, s in zip(chain.systems, r.plan.systems, strict=True):
        system.node[:, 6] = classes_of_b(r.model, s, r.orbits, len(system.node))
    with np.errstate(over="ignore"):
        r.kernel.make_classes(d, chain)
    return chain


def put_lists(chain: Chain, head: int, x: np.ndarray, y: np.ndarray, size: int) -> np.ndarray:
    """The pool's next part: for each of the x, in lists with room to grow, its y."""
    length = np.bincount(x, minlength=size)
    room = np.where(length, SMALLEST << np.ceil(np.log2(np.maximum(length, SMALLEST) / SMALLEST)).astype(np.int64), 0)
    start, at = np.cumsum(room) - room, head + LIST * np.arange(size)
    chain.head[at], chain.head[at + 1], chain.head[at + 2] = chain.blocks[0] + start, length, room
    pool = np.zeros(int(room.sum()), np.int32)
    put_behind(start, x, y, pool)
    chain.blocks[0] += len(pool)
    return pool


def pair_counts(r: Sparse, name: str, rows: np.ndarray) -> np.ndarray:
    """How many of these true atoms, the known ones left out, each orbit has."""
    found = r.orbits.get(name)
    if found is None or not len(rows):
        return np.zeros(r.orbit_count + 1, np.int64)
    relation = r.model.knowledge.relation(name)
    if relation.default != UNKNOWN:
        return np.zeros(r.orbit_count + 1, np.int64)
    if len(relation.tuples):
        shape = r.model.shape(name)
        keys, known = (x[:, 0].astype(np.int64) * shape[1] + x[:, 1] for x in (rows, relation.tuples))
        rows = rows[~np.isin(keys, known)]
    numbers = found.lookup[found.classes[0][rows[:, 0]], found.classes[1][rows[:, 1]], 0] + 1
    return np.bincount(numbers, minlength=r.orbit_count + 1)


def advance(r: Sparse, chain: Chain, updates: int, sweeps: int = FOREVER) -> tuple[Chain, int]:
    """Draws about so many sites, in whole rows; ends earlier when `sweeps` more sweeps are complete."""
    done, target = 0, int(chain.clock[SWEEP]) + sweeps
    while True:
        with np.errstate(over="ignore"):
            done += int(r.kernel.advance(r.data, chain, updates - done, target - int(chain.clock[SWEEP])))
        if not chain.clock[ROOM]:
            return chain, done
        chain = with_room(chain, int(r.data.reserve[0]))


def true_pairs(r: Sparse, chain: Chain, name: str) -> np.ndarray:
    """int64[m, 2]: the true atoms R(x,y), x ≠ y, of a binary predicate, by x."""
    p = list(r.model.predicates).index(name)
    n = int(r.data.sizes[r.plan.sorts[p][0]])
    at = int(r.data.lists[2 * p]) + LIST * np.arange(n)
    start, length = chain.head[at], chain.head[at + 1]
    x = np.repeat(np.arange(n), length)
    place = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length) + np.repeat(start, length)
    return np.stack([x, chain.pool[place].astype(np.int64)], axis=1)


def bits_of(r: Sparse, chain: Chain, name: str) -> np.ndarray:
    """bool[n]: P(x), or R(x,x)."""
    p = list(r.model.predicates).index(name)
    sort = r.plan.sorts[p][0]
    at = int(r.data.type_start[sort])
    return (chain.types[at : at + int(r.data.sizes[sort])] >> r.plan.position[p] & 1).astype(bool)


def truth_of(r: Sparse, chain: Chain, name: str, tuples: np.ndarray) -> np.ndarray:
    """bool[m]: the values of atoms of a predicate of the theory that was given."""
    out = np.zeros(len(tuples), bool)
    for new, part in r.split.of(name):
        p, here = list(r.model.predicates).index(new), np.flatnonzero(part.inside(tuples))
        rows = tuples[here][:, part.kept]
        x, y, value = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, -1]), np.zeros(len(rows), bool)
        if rows.shape[1] == 2:
            r.kernel.look_up(chain, int(r.data.lists[2 * p]), x, y, value)
        if p in r.plan.position:
            value[x == y] = bits_of(r, chain, new)[x[x == y]]
        out[here] = value
    return out


def tensor_of(r: Sparse, chain: Chain, name: str) -> np.ndarray:
    """bool, of its shape: all atoms of a predicate of the theory that was given."""
    if not any(r.split.of(name)):  # about constants of a small sort alone: known, and written out
        return np.asarray(r.split.source.knowledge.codes(name) == 1)
    out = np.zeros(r.split.source.shape(name), bool)
    for new, part in r.split.of(name):
        here, own = out[part.index()], r.model.shape(new)
        if len(own) == 2:
            here[tuple(true_pairs(r, chain, new).T)] = True
        if list(r.model.predicates).index(new) in r.plan.position:
            here[(np.arange(own[0]),) * len(own)] = bits_of(r, chain, new)
    return out
