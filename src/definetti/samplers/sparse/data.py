"""The arrays of a sparse kernel: what it reads of a theory, and what a chain is made of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.emit import Plan
from definetti.samplers.sparse.keys import Packing
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.split import Split
from definetti.samplers.sparse.terms import System
from definetti.samplers.sparse.work import most_pairs

LIST = 8  # integers of a list's head


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
    watched: np.ndarray  # sites of held predicates, by rows: those that have not been free yet come first
    watch_length: np.ndarray  # how many these are
    watch_keys: np.ndarray
    base: np.ndarray
    hard_base: np.ndarray
    units: np.ndarray
    orbits: np.ndarray
    orbit_rows: np.ndarray
    mirror: np.ndarray  # of unordered pairs: the orbit of R(b,a) by that of R(a,b); else empty
    known_start: np.ndarray
    known_atoms: np.ndarray
    loop_orbits: np.ndarray
    loop_free: np.ndarray
    own: np.ndarray  # numbers in which predicates of one shape differ (`text/shapes.py`)
    watch_start: np.ndarray


SHARED = SystemData._fields.index("base")
SCRATCH = frozenset({"touched", "queue", "known_keys", "known", "watch_keys"})
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
    fixed: (
        np.ndarray
    )  # int64[2, constants]: bits that are not drawn in their predicate's turn, and not after all others
    bit_start: np.ndarray
    bit_orbits: np.ndarray
    shuffled: np.ndarray  # whether every sweep has a new order
    reserve: np.ndarray
    most_pairs: np.ndarray  # pairs of true atoms from which on a dense sweep is cheaper (`work.py`)
    families: np.ndarray  # int64[f, 2]: first entry and number of entries that take their turns in random order


class Chain(NamedTuple):
    clock: np.ndarray
    streams: np.ndarray
    remainder: np.ndarray  # of the clock, to the next tick
    order: np.ndarray
    types: np.ndarray
    turns: np.ndarray  # the entries in the order of this sweep
    live: np.ndarray  # bits that hard formulas left free at some visit, where there are hard formulas
    head: np.ndarray
    pool: np.ndarray
    blocks: np.ndarray
    true_atoms: np.ndarray
    sum_f: np.ndarray
    sum_g: np.ndarray
    systems: tuple[SystemData, ...]


def entries_of(
    model: MarkovLogic, plan: Plan, orbits: Mapping[str, AtomOrbits], deferred: Mapping[str, np.ndarray]
) -> list[int]:
    """What a sweep visits: predicates as declared, then what is deferred. P(x) and R(x,x) that are deferred have the
    number of predicates added to that of theirs; R(x,y) are deferred all or none."""
    first, second, count = [], [], len(plan.sorts)
    for p, name in enumerate(model.predicates):
        if not model.knowledge.free_count(name):
            continue
        late = len(plan.sorts[p]) == 2 and pairs_late(name, orbits.get(name), deferred.get(name))
        (second if late else first).append(p)
        if p in plan.position and late_bits(orbits.get(name), deferred.get(name)).any():
            second.append(count + p)
    return first + second


def pairs_late(name: str, orbits: AtomOrbits | None, mask: np.ndarray | None) -> bool:
    """Whether the atoms of different constants are drawn after all others."""
    if mask is None or orbits is None:
        return False
    values = mask[..., 0][orbits.lookup[..., 0] >= 0]
    if values.any() and not values.all():
        raise Unfit(f"some atoms of {name} are drawn after the others, and some are not")
    return bool(values.any())


def late_bits(orbits: AtomOrbits | None, mask: np.ndarray | None) -> np.ndarray:
    """bool[constants]: whether P(x), or R(x,x), is drawn after all others."""
    if mask is None or orbits is None:
        return np.zeros(1, bool)
    return mask[(*orbits.classes, 0 if len(orbits.classes) == 1 else 1)]


def lay_out(
    model: MarkovLogic, orbits: Mapping[str, AtomOrbits], deferred: Mapping[str, np.ndarray], plan: Plan,
    entries: list[int], packed: list[Packing],
    shuffled: bool,
) -> tuple[Data, int]:  # fmt: skip
    sizes = np.array([sort.size for sort in model.sorts.values()], np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    lists, at = np.zeros(2 * len(plan.sorts), np.int64), 0
    for p, sorts in enumerate(plan.sorts):
        if len(sorts) == 2:
            second = 0 if p in plan.ties else 4 if sorts[0] == sorts[1] else LIST * int(sizes[sorts[0]])
            lists[2 * p], lists[2 * p + 1] = at, at + second
            at += LIST * int(sizes[sorts[0]] + (0 if sorts[0] == sorts[1] else sizes[sorts[1]]))
    side, count = {s.predicate: s.side for s in plan.systems}, len(plan.sorts)
    fixed = np.zeros((2, int(sizes.sum())), np.int64)
    bit_start, bit_orbits, free = np.zeros(len(plan.sorts), np.int64), [np.zeros(0, np.int64)], 0
    for p, name in enumerate(model.predicates):
        relation = model.knowledge.relation(name)
        free += site_count(model, p, name, plan)
        if p not in plan.position:
            continue
        sort, one = plan.sorts[p][0], np.int64(1) << plan.position[p]
        known = known_bits(relation.tuples, relation.codes, relation.default, int(sizes[sort]))
        late, here = late_bits(orbits.get(name), deferred.get(name)), slice(start[sort], start[sort] + sizes[sort])
        fixed[0, here] |= np.where((known != UNKNOWN) | late, one, 0)
        fixed[1, here] |= np.where((known != UNKNOWN) | ~late, one, 0)
        bit_start[p] = sum(part.size for part in bit_orbits)
        bit_orbits.append(diagonal_orbits(orbits.get(name), int(sizes[sort]), len(plan.sorts[p])))
    data = Data(
        sizes, start, lists, np.array(entries, np.int64),
        np.array([plan.sorts[p % count][side.get(p, 0)] for p in entries], np.int64),
        np.stack([x.steps for x in packed]) if plan.size else np.zeros((len(packed), 1), np.int64),
        np.concatenate([np.zeros(0), *(m.table.ravel() for m in plan.monomials)]),
        fixed, bit_start, np.concatenate(bit_orbits), np.array([int(shuffled)]),
        np.array([32 * int(sizes.max(initial=1)) + 1024]), np.array([most_pairs(plan.systems, sizes.tolist())]),
        np.zeros((0, 2), np.int64),
    )  # fmt: skip
    return data, free


def families_of(plan: Plan, split: Split, data: Data) -> np.ndarray:
    """Neighbouring entries that are parts of one predicate: symmetries may exchange the constants that are fixed."""
    count, names = len(plan.sorts), list(split.model.predicates)
    kinds = [
        (split.parts[names[kind % count]].name, kind >= count, sort)
        for kind, sort in zip(data.entries.tolist(), data.entry_sorts.tolist(), strict=True)
    ]
    first = [i for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
    blocks = [(i, j - i) for i, j in pairwise([*first, len(kinds)]) if j - i > 1]
    return np.array(blocks, np.int64).reshape(-1, 2)


def site_count(model: MarkovLogic, p: int, name: str, plan: Plan) -> int:
    """How many sites a predicate has: its free atoms, unordered pairs once."""
    free = model.knowledge.free_count(name)
    if p not in plan.ties:
        return free
    relation, size = model.knowledge.relation(name), model.shape(name)[0]
    loops = int((known_bits(relation.tuples, relation.codes, relation.default, size) == UNKNOWN).sum())
    return loops + (free - loops) // 2


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
    """orbits, orbit_rows and mirror of `SystemData`: 1 + the orbit by the classes of a and b."""
    found, sizes = orbits.get(list(model.predicates)[s.predicate]), [sort.size for sort in model.sorts.values()]
    if found is None:
        return np.zeros(1, np.int64), np.zeros(sizes[s.sorts[0]], np.int64), np.zeros(int(s.symmetric), np.int64)
    table = (found.lookup[..., 0] if s.side == 0 else found.lookup[..., 0].T).astype(np.int64) + 1
    mirror = np.zeros(int(table.max(initial=0)) + 1 if s.symmetric else 0, np.int64)
    if s.symmetric:
        mirror[table] = table.T
    return table.ravel(), found.classes[s.side].astype(np.int64) * table.shape[1], mirror


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
    return start, b, data.bit_orbits[first : first + rows], 1 - (data.fixed[0, at : at + rows] >> bit & 1)
