"""The never-grounded Gibbs engine for Markov logic: a compiled model, its chains, and how they are advanced.

`compile_model` writes and loads the kernel and lays out its data; `start` makes a chain; `advance` draws sites, as
many as it is told, and goes on inside a sweep; `run_chains` runs several chains in threads, batch by batch.
Per orbit F sums the drawn values and G the conditionals at the moments of the draws (see the paper's estimator and its
conditional form); both are exact integers and floats of one chain, and chains share nothing but the scan's order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Literal

import numpy as np

from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.logic import MarkovLogic
from definetti.samplers.kernels.relational_cache import load_kernel, load_plain
from definetti.samplers.kernels.relational_data import (
    CHUNK,
    Chain,
    Data,
    Pools,
    orientation_offsets,
    put_instances,
    put_orbits,
    put_tables,
)
from definetti.samplers.kernels.relational_known import Known, home_words, known_of, pack, schedule_of, unpack, words_of
from definetti.samplers.kernels.relational_module import Written, module_text, write_kernel
from definetti.samplers.kernels.relational_seeds import seed_words
from definetti.samplers.kernels.relational_shapes import Signature, Theory, shapes_of
from definetti.samplers.kernels.relational_start import draw_atoms
from definetti.symmetry.logic_orbits import AtomOrbits

Scan = Literal["symmetric", "random", "fixed"]
SCANS: tuple[Scan, ...] = ("symmetric", "random", "fixed")

# places of the clock, as the kernel counts them
SWEEP, FAILED, UPDATES = 0, 4, 5
REPAIR_SWEEPS = 60


@dataclass(frozen=True, eq=False)
class Relational:
    """A Markov logic network ready to be sampled: the generated kernel, its data, what is known, and its size."""

    model: MarkovLogic
    theory: Theory
    written: Written
    kernel: ModuleType
    data: Data
    known: Mapping[str, Known]
    listed: np.ndarray  # free sites of predicates that have few
    orbit_count: int
    query_count: int
    bits: int  # words of one chain's state
    seconds: float  # writing, compiling or loading

    @property
    def chain_bytes(self) -> int:
        """Memory of one chain."""
        return 8 * self.bits + 8 * self.listed.size + 48 * (self.orbit_count + 1) + 64 * CHUNK

    @property
    def free_sites(self) -> int:
        """Sites drawn in one sweep."""
        return self.data.free_sites

    def start(self, seed: int, chain: int = 0) -> Chain:
        return start(self, seed, chain)

    def advance(self, chain: Chain, updates: int, sweeps: int = 1 << 60) -> int:
        return advance(self, chain, updates, sweeps)


def available_memory() -> int:
    """Bytes that can be taken without pushing others out, as far as the machine says."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def theory_of(model: MarkovLogic, known: Mapping[str, bool], scan: Scan, short: int) -> tuple[Theory, tuple]:
    """The structure of a model (and the instances of its shapes). `known` says of each predicate if all of it is."""
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    shapes, instances = shapes_of(model, model.formulas)
    sizes = [words_of(s.size) for s in model.sorts.values()]
    signatures = tuple(
        Signature(tuple(sort_number[s] for s in p.sorts), tuple(sorted(p.exclusive)), not known[name])
        for name, p in model.predicates.items()
    )
    return Theory(tuple(w if w <= short else 0 for w in sizes), signatures, shapes, (), scan == "random"), instances


def refuse_large(words: int, limit: int | None, what: str) -> None:
    allowed = int(0.8 * available_memory()) if limit is None else limit
    if 8 * words > allowed:
        cure = "use fewer constants or chains, or close predicates whose atoms are all known"
        raise TooLarge(f"{what}, in bytes,", 8 * words, allowed, cure)


def compile_model(
    model: MarkovLogic,
    orbits: Mapping[str, AtomOrbits],
    *,
    scan: Scan = "symmetric",
    order: Sequence[str] | None = None,
    late: Mapping[str, np.ndarray] | None = None,
    memory: int | None = None,
    folder: Path | None = None,
    plain: bool = False,
    short: int = 4,
) -> Relational:
    """Writes and loads the kernel of a model and lays out its data; sizes are estimated before anything is taken.

    `order` lists the predicates in the order of a sweep; sites marked in `late` (boolean tensors over a predicate's
    sites) are drawn after all others. `memory` is a limit in bytes, `folder` where kernels are kept. `plain` runs the
    kernel's text uncompiled; rows of at most `short` words have their number of words written into the text.
    """
    began = perf_counter()
    if scan not in SCANS:
        raise ModelError(f"scan {scan!r} is not one of {', '.join(SCANS)}")
    sizes = [s.size for s in model.sorts.values()]
    refuse_large(3 * sum(home_words(model.shape(name)) for name in model.predicates), memory, "the state")
    known = {name: known_of(model, p) for name, p in model.predicates.items()}
    theory, instances = theory_of(model, {name: k.free == 0 for name, k in known.items()}, scan, short)
    written = write_kernel(theory)
    offsets, bits = orientation_offsets(written, theory, sizes)
    refuse_large(bits, memory, "the state")
    width = max((len(s.sorts) for s in theory.signatures), default=0)
    schedule = schedule_of(model, known, order or tuple(model.predicates), late or {}, width)
    pools = Pools([], [], dict(offsets), {})
    for s, n in enumerate(sizes):
        pools.numbers["n", s], pools.numbers["w", s] = n, words_of(n)
    for p, signature in enumerate(theory.signatures):
        pools.numbers["barred", p] = schedule.barred.get(p, -1)
        for j, sort in enumerate(signature.sorts):
            pools.numbers["argument", p, j] = sort
    put_instances(pools, written, theory.shapes, instances)
    put_tables(pools, written, sizes)
    folds, classes, lookup = put_orbits(model, orbits, max(width, 1))
    data = Data(
        numbers=frozen([pools.numbers[key] for key in written.layout.numbers], np.int64),
        indices=frozen(np.concatenate([np.zeros(1, np.int32), *pools.indices])[1:], np.int32),
        reals=frozen(np.concatenate([np.zeros(0), *pools.reals]), np.float64),
        words=frozen([tail(n) for n in sizes], np.uint64),
        skips=frozen(schedule.skips, np.uint64),
        sorts=frozen(np.stack([np.cumsum([0, *sizes[:-1]]), sizes], axis=1), np.int64),
        entries=frozen(schedule.entries, np.int64),
        folds=frozen(folds, np.int64),
        classes=frozen(classes, np.int32),
        lookup=frozen(lookup, np.int32),
        scan=SCANS.index(scan),
        free_sites=sum(k.free for k in known.values()),
        all_sites=int(schedule.entries[:, 1].sum()),
    )
    kernel = load_plain(module_text(written, True)) if plain else load_kernel(module_text(written), repr(theory), folder)
    orbit_count = int(lookup.max(initial=-1)) + 1
    made = Relational(model, theory, written, kernel, data, known, schedule.listed, orbit_count, 0, bits, 0.0)
    kernel.advance(data, blank_chain(made), 0, 0, 0)  # compiles, or loads what an earlier process compiled
    object.__setattr__(made, "seconds", perf_counter() - began)
    return made


def frozen(values: object, dtype: type) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array


def tail(size: int) -> int:
    """The mask of a row's last word."""
    rest = size - 64 * (words_of(size) - 1)
    return (1 << rest) - 1


def blank_chain(r: Relational) -> Chain:
    """A chain whose atoms are all false and whose streams are not seeded."""
    o, q, sizes = r.orbit_count + 1, r.query_count, [s.size for s in r.model.sorts.values()]
    values = int(r.data.entries[:, 4].max(initial=1))
    width = max((len(s.sorts) for s in r.theory.signatures), default=1)
    clock = np.zeros(8, dtype=np.int64)
    clock[3] = clock[4] = -1
    return Chain(
        bits=np.zeros(r.bits, np.uint64),
        clock=clock,
        stream=np.zeros(4, np.uint64),
        scan=np.zeros(4, np.uint64),
        order=np.concatenate([np.zeros(0, np.int64), *(np.arange(n, dtype=np.int64) for n in sizes)]),
        listed=r.listed.astype(np.int64),
        coords=np.zeros((max(width, 1), CHUNK), np.int64),
        uniform=np.zeros(CHUNK),
        value=np.zeros(CHUNK, np.int64),
        chance=np.zeros(max(CHUNK, values)),
        orbit=np.zeros(CHUNK, np.int64),
        fields=np.zeros(values),
        violations=np.zeros(values, np.int64),
        now_f=np.zeros(o, np.int64),
        now_g=np.zeros(o),
        visits=np.zeros(o, np.int64),
        sum_f=np.zeros(o, np.int64),
        sum_g=np.zeros(o),
        square_f=np.zeros(o),
        seen=np.zeros(q, np.int64),
        sum_seen=np.zeros(q, np.int64),
        square_seen=np.zeros(q),
    )


def put_atoms(r: Relational, chain: Chain, name: str, atoms: np.ndarray) -> None:
    """Writes a predicate's atoms (words at home) into every orientation of a chain's state."""
    p, shape = list(r.model.predicates).index(name), r.model.shape(name)
    tensor = None
    for axis in r.written.layout.orientations(p):
        start = r.data.numbers[r.written.layout.numbers["o", p, axis]]
        if axis == ((len(shape) - 1,) if shape else ()):
            chain.bits[start : start + atoms.size] = atoms
            continue
        if tensor is None:
            tensor = unpack(atoms, shape)
        part = np.moveaxis(tensor, axis[0], -1) if len(axis) == 1 else diagonal(tensor, axis)
        words = pack(part)
        chain.bits[start : start + words.size] = words


def diagonal(tensor: np.ndarray, axis: tuple[int, ...]) -> np.ndarray:
    """The part with equal constants at the places `axis`, those moved to one last axis."""
    others = [j for j in range(tensor.ndim) if j not in axis]
    rows = np.arange(tensor.shape[axis[0]])
    moved = tensor.transpose([*others, *axis])
    return moved[(..., *([rows] * len(axis)))]


def get_atoms(r: Relational, chain: Chain, name: str) -> np.ndarray:
    """A predicate's atoms as a boolean tensor."""
    p, shape = list(r.model.predicates).index(name), r.model.shape(name)
    start = r.data.numbers[r.written.layout.numbers["o", p, (len(shape) - 1,) if shape else ()]]
    return unpack(chain.bits[start : start + home_words(shape)], shape)


def seeded(r: Relational, seed: int, chain: int) -> Chain:
    made = blank_chain(r)
    made.stream[:] = seed_words(seed, chain)
    made.scan[:] = seed_words(seed, -1)
    return made


def start(r: Relational, seed: int, chain: int = 0, atoms: Mapping[str, np.ndarray] | None = None) -> Chain:
    """A chain at its start: `atoms` (boolean tensors) where given; else drawn, and repaired to a legal state.

    Each free site is drawn from the formulas that speak of it alone. Where hard formulas are violated, sites move to
    the value that violates less, from that draw, from all false and from all true.
    """
    rng = np.random.default_rng([seed, chain + 1])
    for preferred in (None, False, True):
        made = seeded(r, seed, chain)
        for name in r.model.predicates:
            if atoms is not None:
                words = pack(np.asarray(atoms[name], dtype=bool))
            else:
                words = draw_atoms(r.model, name, r.known[name], r.theory, r.written, r.data, rng, preferred)
            put_atoms(r, made, name, words)
        if legal(r, made) or (atoms is None and repair(r, made)):
            return reset(r, made, seed, chain)
        if atoms is not None:
            raise Unsatisfiable("the given start violates a hard formula; start from a state that satisfies them all")
    raise ModelError(
        "no state that satisfies the hard formulas was found by repairing random, all-false and all-true states; "
        "give a start, or soften a formula"
    )


def legal(r: Relational, chain: Chain) -> bool:
    return not hasattr(r.kernel, "violated") or violations(r, chain) == 0


def violations(r: Relational, chain: Chain) -> int:
    """The number of violated groundings of hard formulas."""
    d, c = r.data, chain
    with np.errstate(over="ignore"):
        return int(r.kernel.violated(d.numbers, d.indices, d.reals, d.words, c.bits, c.seen, c.sum_seen, c.square_seen))


def repair(r: Relational, chain: Chain) -> bool:
    for _ in range(REPAIR_SWEEPS):
        with np.errstate(over="ignore"):
            r.kernel.advance(r.data, chain, 1 << 60, 1, 1)
        if legal(r, chain):
            return True
    return False


def reset(r: Relational, chain: Chain, seed: int, number: int) -> Chain:
    """The same state with clean sums and streams at their beginning."""
    fresh = seeded(r, seed, number)
    fresh.bits[:] = chain.bits
    return fresh


def clear_sums(chain: Chain) -> None:
    """Begins a new batch."""
    for part in (chain.sum_f, chain.sum_g, chain.square_f, chain.visits, chain.sum_seen, chain.square_seen):
        part[:] = 0


def advance(r: Relational, chain: Chain, updates: int, sweeps: int = 1 << 60) -> int:
    """Draws at most `updates` sites, ending earlier when `sweeps` more sweeps are complete; returns how many."""
    with np.errstate(over="ignore"):  # the plain kernel's 64-bit arithmetic wraps on purpose
        done = int(r.kernel.advance(r.data, chain, updates, sweeps, 0))
    if chain.clock[FAILED] >= 0:
        where = ", ".join(str(k) for k in chain.coords[:, chain.clock[FAILED]])
        raise Unsatisfiable(
            f"all values of a site have probability zero (constants number {where}): the state violates a hard "
            "formula whatever its value; start from a legal state"
        )
    return done
