"""The sparse Gibbs engine: a compiled theory, its data, and chains whose state is lists of true atoms.

A key packs all that the field of a site depends on into one integer: the bits of a and b that its base depends on, then
for each *unit* of weight how often it counts. Weights that are whole multiples of each other share a unit. Changes of
keys are integers (`steps`), so that a join adds them up exactly, and chances are looked up by key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from types import ModuleType
from typing import NamedTuple

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen.cache import load_kernel
from definetti.samplers.kernels.rng import seed_words
from definetti.samplers.sparse.emit import Plan, kernel_text, plan_of
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.terms import System

SWEEP, ROOM, UPDATES = 0, 5, 4  # places of the clock
FOREVER = 1 << 60
LIST, LARGEST = 8, 40  # integers of a list's head; sizes of blocks
MOST_MULTIPLE = 64  # of a unit
KEY_BITS = 62
KEPT = 1 << 12  # keys whose chances are kept


class SystemData(NamedTuple):
    """The sites of one binary predicate in one chain. Arrays from `base` on are the same in all chains."""

    node: np.ndarray
    touched: np.ndarray
    queue: np.ndarray
    small: np.ndarray
    classes: np.ndarray
    in_use: np.ndarray
    table: np.ndarray
    known_keys: np.ndarray
    known: np.ndarray
    base: np.ndarray
    hard_base: np.ndarray
    units: np.ndarray
    orbits: np.ndarray
    orbit_rows: np.ndarray
    known_start: np.ndarray
    known_atoms: np.ndarray
    loop_orbits: np.ndarray
    loop_free: np.ndarray


SHARED = SystemData._fields.index("base")
SCRATCH = frozenset({"touched", "queue", "known_keys", "known"})
MASKS, ROW_KEYS = 8, 16  # places of `small`


class Data(NamedTuple):
    """What a kernel reads of a theory."""

    sizes: np.ndarray  # of the sorts
    type_start: np.ndarray  # where a sort's constants start among all
    lists: np.ndarray  # where the lists of a predicate start: by its first argument, by its second
    entries: np.ndarray  # predicates in the order of a sweep
    entry_sorts: np.ndarray
    steps: np.ndarray
    coefs: np.ndarray
    fixed: np.ndarray  # known bits of each constant
    bit_start: np.ndarray
    bit_orbits: np.ndarray
    shuffled: np.ndarray  # whether every sweep has a new order
    reserve: np.ndarray


class Chain(NamedTuple):
    clock: np.ndarray
    streams: np.ndarray
    remainder: np.ndarray  # of the clock, to the next tick
    order: np.ndarray
    types: np.ndarray
    head: np.ndarray
    pool: np.ndarray
    blocks: np.ndarray
    true_atoms: np.ndarray
    sum_f: np.ndarray
    sum_g: np.ndarray
    systems: tuple[SystemData, ...]


@dataclass(frozen=True, eq=False)
class Sparse:
    """A Markov logic network ready to be sampled at the cost of its true atoms."""

    model: MarkovLogic
    plan: Plan
    kernel: ModuleType
    data: Data
    shared: tuple[tuple[np.ndarray, ...], ...]  # of each system
    masks: tuple[np.ndarray, ...]  # of each system: how its keys are packed
    orbit_count: int
    free_sites: int
    seconds: float = 0.0

    @property
    def chain_bytes(self) -> int:
        """Memory of one chain without its true atoms, at most."""
        sizes = self.data.sizes
        nodes = sum(int(sizes[s.sorts[1]]) for s in self.plan.systems)
        ends = sum(int(sizes[x]) for p in self.plan.systems for x in self.plan.sorts[p.predicate])
        return 8 * int(sizes.sum()) * 2 + 64 * ends + (64 + 64 + 24 + 16 + 32) * nodes + 64 * self.orbit_count


def compile_sparse(
    model: MarkovLogic,
    orbits: Mapping[str, AtomOrbits],
    deferred: Mapping[str, np.ndarray] | None = None,
    *,
    shuffled: bool = True,
    plan: Plan | None = None,
) -> Sparse:
    """Writes and loads the kernel of a theory and lays out its data; raises `Unfit` where it has none.

    `deferred`: by the classes of `orbits`, which atoms are drawn after all others; of a predicate all or none.
    """
    began = perf_counter()
    plan = plan_of(model) if plan is None else plan
    packed = [packing(model, plan, s) for s in plan.systems]
    orbit_count = 1 + max((int(o.lookup.max(initial=-1)) for o in orbits.values()), default=-1)
    data, free = lay_out(model, orbits, plan, entries_of(model, plan, orbits, deferred or {}), packed, shuffled)
    shared = tuple(
        (*packed[r].arrays, *orbit_arrays(model, plan, s, orbits), *known_arrays(model, plan, s, data, orbits))
        for r, s in enumerate(plan.systems)
    )
    kernel = load_kernel(kernel_text(plan))
    made = Sparse(model, plan, kernel, data, shared, tuple(x.masks for x in packed), orbit_count, free)
    kernel.advance(data, blank(made), 0, 0)  # compiles, or loads what an earlier process compiled
    return replace(made, seconds=perf_counter() - began)


# --- keys ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Packing:
    """How the keys of a system are made: `arrays` are base, hard_base and units of `SystemData`."""

    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    masks: np.ndarray
    steps: np.ndarray  # int64[coefficients of all monomials]


def packing(model: MarkovLogic, plan: Plan, s: System) -> Packing:
    """Units, and where each stands in a key; raises `Unfit` where a key would not fit into an integer."""
    counted = [*s.row, *s.degree, *s.support]
    soft = {k for t in counted for k in [t.monomial] if not plan.monomials[k].hard}
    values = np.concatenate([np.zeros(0), *(np.abs(plan.monomials[k].table).ravel() for k in sorted(soft))])
    units: list[float] = []
    for value in np.unique(values[values > 0]).tolist():
        if not any(_multiple(value, unit) for unit in units):
            units.append(value)
    hard = any(plan.monomials[t.monomial].hard for t in (*counted, *s.constant))
    low = len(s.bits_a) + len(s.bits_b)
    fields = len(units) + hard
    width = (KEY_BITS - low) // max(fields, 1)
    reach = 2 * MOST_MULTIPLE * max(len(counted), 1) * (max(sort.size for sort in model.sorts.values()) + 1)
    if fields and (width < 8 or reach >= 1 << (width - 1)):
        raise Unfit(f"keys of {fields} different weights do not fit into an integer")
    shifts = [low + width * u for u in range(fields)]
    steps = np.zeros(plan.size, np.int64)
    for k in sorted({t.monomial for t in counted}):
        m = plan.monomials[k]
        for i, value in enumerate(m.table.ravel().tolist()):
            steps[plan.offsets[k] + i] = _step(value, units, shifts, m.hard)
    base, hard_base = base_fields(plan, s, shifts[-1] if hard else 0)
    bias = 1 << (width - 1)
    whole = sum(bias << shift for shift in shifts)
    masks = np.array([(1 << low) - 1, low, (1 << width) - 1, bias, width, int(hard), whole], np.int64)
    return Packing((base, hard_base, np.array(units, float)), masks, steps)


def _multiple(value: float, unit: float) -> int:
    times = round(value / unit)
    return times if 1 <= times <= MOST_MULTIPLE and abs(times * unit - value) <= 1e-12 * value else 0


def _step(value: float, units: list[float], shifts: list[int], hard: bool) -> int:
    if value == 0.0:
        return 0
    if hard:
        return int(value) << shifts[-1] if value > 0 else -(int(-value) << shifts[-1])
    for unit, shift in zip(units, shifts, strict=False):
        if times := _multiple(abs(value), unit):
            return (times << shift) if value > 0 else -(times << shift)
    raise AssertionError("every value has a unit")


def base_fields(plan: Plan, s: System, hard_shift: int) -> tuple[np.ndarray, np.ndarray]:
    """The constant terms, by the bits of a and b: fields, and steps of hard formulas."""
    low = len(s.bits_a) + len(s.bits_b)
    base, hard = np.zeros(1 << low), np.zeros(1 << low, np.int64)
    for values in product((0, 1), repeat=low):
        b = dict(zip(s.bits_b, values, strict=False))
        a = dict(zip(s.bits_a, values[len(s.bits_b) :], strict=False))
        at = sum(v << k for k, v in enumerate(values))
        for t in s.constant:
            m = plan.monomials[t.monomial]
            value = m.table[tuple((a if t.roles[v] == "a" else b)[p] for p, v in m.bits)]
            if m.hard:
                hard[at] += int(value) << hard_shift if value > 0 else -(int(-value) << hard_shift)
            else:
                base[at] += value
    return base, hard


# --- data ------------------------------------------------------------------------------------------------------------


def entries_of(
    model: MarkovLogic, plan: Plan, orbits: Mapping[str, AtomOrbits], deferred: Mapping[str, np.ndarray]
) -> list[int]:
    """What a sweep visits: predicates as declared, then what is deferred. A diagonal that is deferred while the rest is
    not has the number of predicates added to its own."""
    first, second, count = [], [], len(plan.sorts)
    for p, name in enumerate(model.predicates):
        if not model.knowledge.free_count(name):
            continue
        rest, diagonal = deferred_parts(name, len(plan.sorts[p]), orbits.get(name), deferred.get(name))
        (second if rest else first).append(p)
        if diagonal and not rest:
            second.append(count + p)
        elif rest and not diagonal and p in plan.position and len(plan.sorts[p]) == 2:
            raise Unfit(f"the atoms of {name} are drawn after others, and {name}(x,x) are not")
    return first + second


def deferred_parts(name: str, arity: int, orbits: AtomOrbits | None, mask: np.ndarray | None) -> tuple[bool, bool]:
    """Whether the atoms of different constants, and whether P(x) or R(x,x), are drawn after all others."""
    if mask is None or orbits is None or not mask.any():
        return False, False
    free = orbits.lookup >= 0
    parts = []
    for pattern in range(mask.shape[-1]):
        values = mask[..., pattern][free[..., pattern]]
        if values.any() and not values.all():
            raise Unfit(f"some atoms of {name} are drawn after the others, and some are not")
        parts.append(bool(values.any()))
    return parts[0], parts[-1]


def lay_out(
    model: MarkovLogic, orbits: Mapping[str, AtomOrbits], plan: Plan, entries: list[int], packed: list[Packing],
    shuffled: bool,
) -> tuple[Data, int]:  # fmt: skip
    sizes = np.array([sort.size for sort in model.sorts.values()], np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    lists, at = np.zeros(2 * len(plan.sorts), np.int64), 0
    for p, sorts in enumerate(plan.sorts):
        if len(sorts) == 2:
            lists[2 * p], lists[2 * p + 1] = at, at + 4 if sorts[0] == sorts[1] else at + LIST * sizes[sorts[0]]
            at += LIST * int(sizes[sorts[0]] + (0 if sorts[0] == sorts[1] else sizes[sorts[1]]))
    side, count = {s.predicate: s.side for s in plan.systems}, len(plan.sorts)
    fixed = np.zeros(int(sizes.sum()), np.int64)
    bit_start, bit_orbits, free = np.zeros(len(plan.sorts), np.int64), [np.zeros(0, np.int64)], 0
    for p, name in enumerate(model.predicates):
        relation = model.knowledge.relation(name)
        free += model.knowledge.free_count(name)
        if p not in plan.position:
            continue
        sort, one = plan.sorts[p][0], np.int64(1) << plan.position[p]
        known = known_bits(relation.tuples, relation.codes, relation.default, int(sizes[sort]))
        fixed[start[sort] : start[sort] + sizes[sort]] |= np.where(known != UNKNOWN, one, 0)
        bit_start[p] = sum(part.size for part in bit_orbits)
        bit_orbits.append(diagonal_orbits(orbits.get(name), int(sizes[sort]), len(plan.sorts[p])))
    data = Data(
        sizes, start, lists, np.array(entries, np.int64),
        np.array([plan.sorts[p % count][side.get(p, 0)] for p in entries], np.int64),
        np.stack([x.steps for x in packed]) if plan.size else np.zeros((len(packed), 1), np.int64),
        np.concatenate([np.zeros(0), *(m.table.ravel() for m in plan.monomials)]),
        fixed, bit_start, np.concatenate(bit_orbits), np.array([int(shuffled)]),
        np.array([32 * int(sizes.max(initial=1)) + 1024]),
    )  # fmt: skip
    return data, free


def known_bits(tuples: np.ndarray, codes: np.ndarray, default: int, size: int) -> np.ndarray:
    """int8[size]: what is known of P(x), or of R(x,x)."""
    out = np.full(size, default, np.int8)
    rows = tuples[:, 0] == tuples[:, -1]
    out[tuples[rows, 0]] = codes[rows]
    return out


def diagonal_orbits(orbits: AtomOrbits | None, size: int, arity: int) -> np.ndarray:
    """int64[size]: 1 + the orbit of P(x), or of R(x,x); 0 without one."""
    if orbits is None:
        return np.zeros(size, np.int64)
    classes = [c[:size] for c in orbits.classes]
    return orbits.lookup[(*classes, 0 if arity == 1 else 1)].astype(np.int64) + 1


def orbit_arrays(model: MarkovLogic, plan: Plan, s: System, orbits: Mapping[str, AtomOrbits]) -> tuple[np.ndarray, ...]:
    """orbits and orbit_rows of `SystemData`: 1 + the orbit by the classes of a and b."""
    found, sizes = orbits.get(list(model.predicates)[s.predicate]), [sort.size for sort in model.sorts.values()]
    if found is None:
        return np.zeros(1, np.int64), np.zeros(sizes[s.sorts[0]], np.int64)
    table = found.lookup[..., 0] if s.side == 0 else found.lookup[..., 0].T
    return table.astype(np.int64).ravel() + 1, found.classes[s.side].astype(np.int64) * table.shape[1]


def classes_of_b(model: MarkovLogic, s: System, orbits: Mapping[str, AtomOrbits], size: int) -> np.ndarray:
    found = orbits.get(list(model.predicates)[s.predicate])
    return np.zeros(size, np.int64) if found is None else found.classes[1 - s.side].astype(np.int64)


def known_arrays(
    model: MarkovLogic, plan: Plan, s: System, data: Data, orbits: Mapping[str, AtomOrbits]
) -> tuple[np.ndarray, ...]:
    """known_start, known_atoms, loop_orbits and loop_free of `SystemData`."""
    name, rows = list(model.predicates)[s.predicate], int(data.sizes[s.sorts[0]])
    relation = model.knowledge.relation(name)
    if relation.default != UNKNOWN:
        known, a = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    else:
        known = relation.tuples.astype(np.int64)
        known = known[known[:, 0] != known[:, 1]] if s.same else known
        a = known[:, s.side]
    order = np.argsort(a, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(a, minlength=rows))]).astype(np.int64)
    b = known[order, 1 - s.side]
    if not s.same:
        return start, b, np.zeros(1, np.int64), np.zeros(1, np.int64)
    first = int(data.bit_start[s.predicate])
    bit = plan.position[s.predicate]
    at = int(data.type_start[s.sorts[0]])
    free = 1 - (data.fixed[at : at + rows] >> bit & 1)
    apart = len(plan.sorts) + s.predicate in data.entries  # drawn by themselves, after the others
    return start, b, data.bit_orbits[first : first + rows], np.zeros_like(free) if apart else free


# --- chains ----------------------------------------------------------------------------------------------------------


def blank(r: Sparse) -> Chain:
    """A chain without true atoms and without classes."""
    d, total = r.data, int(r.data.sizes.sum())
    systems = []
    for s, shared, masks in zip(r.plan.systems, r.shared, r.masks, strict=True):
        n = int(d.sizes[s.sorts[1]])
        table = 1 << max(4, (2 * n).bit_length())
        small = np.zeros(ROW_KEYS + (1 << len(s.bits_b)), np.int64)
        small[MASKS : MASKS + len(masks)] = masks
        own = (
            np.zeros((n, LIST), np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 2, np.int64), small,
            np.zeros(LIST * (n + 1), np.int64), np.arange(n + 1), np.full(table, -1, np.int64),
            np.full(KEPT, -1, np.int64), np.zeros((KEPT, 2)),
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
        head=np.zeros(LIST * ends, np.int64),
        pool=np.zeros(int(d.reserve[0]), np.int32),
        blocks=blocks,
        true_atoms=np.zeros(r.orbit_count + 1, np.int64),
        sum_f=np.zeros((2, r.orbit_count + 1), np.int64),
        sum_g=np.zeros((3, r.orbit_count + 1)),
        systems=tuple(systems),
    )


def with_room(chain: Chain, reserve: int) -> Chain:
    """The chain with a pool that holds at least another row."""
    pool = np.zeros(5 * int(chain.blocks[0]) + 2 * reserve, np.int32)
    pool[: chain.blocks[0]] = chain.pool[: chain.blocks[0]]
    chain.clock[ROOM] = 0
    return chain._replace(pool=pool)


def make_chain(
    r: Sparse, seed: int, number: int, bits: Mapping[str, np.ndarray], pairs: Mapping[str, np.ndarray],
    orbits: Mapping[str, AtomOrbits],
) -> Chain:  # fmt: skip
    """A chain at a state: by predicate the values of P(x) or R(x,x), and the rows of true R(x,y), x ≠ y."""
    chain, d = blank(r), r.data
    chain.streams[:4], chain.streams[4:] = seed_words(seed, number), seed_words(seed, -1)
    chain.remainder[0] = np.random.default_rng([seed, number, 5]).exponential()
    atoms = sum(len(rows) for rows in pairs.values())
    total = int(d.reserve[0]) + 24 * atoms + 8 * int(d.sizes.sum()) * max(1, len(r.plan.systems))
    chain = chain._replace(pool=np.zeros(total, np.int32))
    for p, name in enumerate(r.model.predicates):
        if p in r.plan.position:
            sort = r.plan.sorts[p][0]
            at, n = int(d.type_start[sort]), int(d.sizes[sort])
            values = np.asarray(bits[name], np.int64)
            chain.types[at : at + n] |= values << r.plan.position[p]
            free = 1 - (d.fixed[at : at + n] >> r.plan.position[p] & 1)
            numbers = d.bit_orbits[d.bit_start[p] : d.bit_start[p] + n]
            chain.true_atoms[:] += np.bincount(numbers[(values & free) == 1], minlength=r.orbit_count + 1)
        if len(r.plan.sorts[p]) == 2:
            rows = np.ascontiguousarray(pairs[name], dtype=np.int64).reshape(-1, 2)
            x, y = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
            r.kernel.put_atoms(chain, int(d.lists[2 * p]), int(d.lists[2 * p + 1]), x, y)
            chain.true_atoms[:] += pair_counts(r, name, rows, orbits)
    for system, s in zip(chain.systems, r.plan.systems, strict=True):
        system.node[:, 6] = classes_of_b(r.model, s, orbits, len(system.node))
    with np.errstate(over="ignore"):
        r.kernel.make_classes(d, chain)
    return chain


def pair_counts(r: Sparse, name: str, rows: np.ndarray, orbits: Mapping[str, AtomOrbits]) -> np.ndarray:
    """How many of these true atoms, the known ones left out, each orbit has."""
    found = orbits.get(name)
    if found is None or not len(rows):
        return np.zeros(r.orbit_count + 1, np.int64)
    relation = r.model.knowledge.relation(name)
    if relation.default != UNKNOWN:
        return np.zeros(r.orbit_count + 1, np.int64)
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
