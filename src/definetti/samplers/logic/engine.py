"""The never-grounded Gibbs engine for Markov logic: a compiled model, its chains, and how they are advanced.

`compile_model` writes and loads the kernel and lays out its data; `advance` draws sites, as many as it is given, and
goes on inside a sweep. `starts.py` makes chains, `sampling.py` runs several in threads.
Per orbit F sums the drawn values and G the conditionals at the moments of the draws; chains share the order of the
scan and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from time import perf_counter
from types import ModuleType
from typing import Any, Literal

import numpy as np

from definetti.constraints.logic.ties import tied_classes
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.memory import available_memory
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.codegen import layout
from definetti.samplers.codegen.cache import load_kernel
from definetti.samplers.codegen.module import Written, module_text, write_kernel
from definetti.samplers.codegen.plan import update_words
from definetti.samplers.codegen.shapes import Image, Instances, Signature, Theory, shapes_of
from definetti.samplers.logic.queries import Query, confined, observed_of
from definetti.samplers.logic.tensors import state
from definetti.samplers.logic.tensors.data import (
    CHUNK,
    Chain,
    Data,
    Pools,
    orientation_offsets,
    put_instances,
    put_observed,
    put_orbits,
    put_tables,
)
from definetti.samplers.logic.tensors.known_bits import (
    Known,
    Schedule,
    Turns,
    home_words,
    known_of,
    schedule_of,
    words_of,
)
from definetti.samplers.logic.tensors.tied_sites import Tied, apart, with_tied_turns, with_ties

Scan = Literal["symmetric", "random", "fixed"]
SCANS: tuple[Scan, ...] = ("symmetric", "random", "fixed")

SWEEP, FAILED, UPDATES = 0, 4, 5  # places of the clock
FOREVER = 1 << 60
SHORT_ROW = 4  # words: rows up to this length have their number of words written into the kernel's text
REPAIR_SWEEPS = 60


@dataclass(frozen=True, eq=False)
class Relational:
    """A Markov logic network ready to be sampled: the generated kernel, its data, what is known, and its size."""

    model: MarkovLogic  # with hidden class predicates, if there are queries
    theory: Theory
    instances: tuple[Instances, ...]  # of the theory's shapes
    written: Written
    kernel: ModuleType
    data: Data
    known: Mapping[str, Known]
    listed: np.ndarray  # free sites of predicates that have few
    orbit_count: int
    query_places: np.ndarray  # of each query among the kernel's counts
    bits: int  # words of one chain's state
    source: MarkovLogic  # as the user gave it: what errors speak of
    tied: Tied  # classes of atoms that are one site, by leading predicate
    seconds: float = field(default=0.0)  # writing, compiling or loading

    @property
    def chain_bytes(self) -> int:
        """Memory of one chain."""
        return 8 * self.bits + 8 * self.listed.size + 48 * (self.orbit_count + 1) + 64 * CHUNK

    @property
    def free_sites(self) -> int:
        """Sites drawn in one sweep."""
        return self.data.free_sites

    def atoms(self, chain: Chain, name: str) -> np.ndarray:
        """A predicate's atoms in a chain's state, as a boolean tensor."""
        p = list(self.model.predicates).index(name)
        return state.get_atoms(self.written, self.data, chain, p, self.model.shape(name))


def refuse_large(size: int, limit: int | None = None) -> None:
    """Refuses a state that would not fit into `limit` bytes (None: most of what the machine has left)."""
    allowed = int(0.8 * available_memory()) if limit is None else limit
    if size > allowed:
        cure = "use fewer constants or chains, or close predicates whose atoms are all known"
        raise TooLarge("the state of the chains", size, allowed, cure, unit="bytes")


def refuse_model(model: MarkovLogic, chains: int = 0) -> None:
    """Refuses a model whose atoms alone would not fit, before anything is taken: two bits each, or one for every chain
    and a byte while the sweep and the starts are made."""
    words = sum(home_words(model.shape(name)) for name in model.predicates)
    refuse_large(words * (8 * chains + 64 if chains else 16))


def theory_of(model: MarkovLogic, known: Mapping[str, Known], tied: Tied) -> tuple[Theory, tuple[Instances, ...]]:
    """The structure of a model, and the instances of its formulas' shapes."""
    number = {name: p for p, name in enumerate(model.predicates)}
    images = {name: tuple(Image(number[i.predicate], i.places, i.sign) for i in some) for name, some in tied.items()}
    members = {i.predicate for some in tied.values() for i in some}
    sort_number = {name: s for s, name in enumerate(model.sorts)}
    shapes, instances = shapes_of(model, model.formulas)
    widths = [words_of(s.size) for s in model.sorts.values()]
    signatures = tuple(
        Signature(
            tuple(sort_number[s] for s in p.sorts),
            tuple(sorted(p.exclusive)),
            known[name].free > 0,
            images.get(name, ()),
            apart(model, known, name) if name in members else (),
        )
        for name, p in model.predicates.items()
    )
    return Theory(tuple(w if w <= SHORT_ROW else 0 for w in widths), signatures, shapes), instances


def compile_model(
    model: MarkovLogic,
    orbits: Mapping[str, AtomOrbits],
    *,
    queries: Sequence[Query] = (),
    scan: Scan = "symmetric",
    late: Mapping[str, np.ndarray] | None = None,
    turns: Turns = (),
    source: MarkovLogic | None = None,
    load: Callable[[str], ModuleType] = load_kernel,
) -> Relational:
    """Writes and loads the kernel of a model and lays out its data; sizes are estimated before anything is taken.

    Sites marked in `late` (boolean tensors over a predicate's sites) are drawn after all others. Predicates of one set
    of `turns` change places at random in the symmetric scan. Errors speak of the `source`, from which the model was
    made. `load` makes a module of the kernel's text.
    """
    began = perf_counter()
    if scan not in SCANS:
        raise ModelError(f"scan {scan!r} is not one of {', '.join(SCANS)}")
    refuse_model(model)
    rules, source = [], source or model
    if queries:
        model, rules = confined(model, queries)
    known = {name: known_of(model, p) for name, p in model.predicates.items()}
    tied = tied_classes(model)
    known, repeated = with_ties(model, known, tied)
    observed, observations, places = observed_of(model, rules)
    theory, instances = theory_of(model, known, tied)
    theory = replace(theory, observed=observed)
    written = write_kernel(theory)
    bits = orientation_offsets(written, theory, [s.size for s in model.sorts.values()])[1]
    refuse_large(8 * bits)
    members = {image.predicate for images in tied.values() for image in images}
    late = {name: mask for name, mask in (late or {}).items() if name not in members}
    width = max((len(s.sorts) for s in theory.signatures), default=0)
    turns = with_tied_turns(turns, tied) if scan == "symmetric" else ()
    schedule = schedule_of(model, known, tuple(model.predicates), late, width, repeated, turns)
    data, orbit_count = lay_out(model, orbits, theory, written, instances, observations, schedule, scan)
    kernel = load(module_text(written))
    made = Relational(
        model, theory, instances, written, kernel, data, known, schedule.listed, orbit_count, places, bits, source, tied
    )
    kernel.advance(data, blank(made), 0, 0, 0)  # compiles, or loads what an earlier process compiled
    return replace(made, seconds=perf_counter() - began)


def lay_out(
    model: MarkovLogic,
    orbits: Mapping[str, AtomOrbits],
    theory: Theory,
    written: Written,
    instances: tuple[Instances, ...],
    observations: tuple[Instances, ...],
    schedule: Schedule,
    scan: Scan,
) -> tuple[Data, int]:
    """The kernel's arrays, and the number of orbits."""
    sizes = [s.size for s in model.sorts.values()]
    pools = Pools([], [], dict(orientation_offsets(written, theory, sizes)[0]), {})
    for s, n in enumerate(sizes):
        pools.numbers |= {layout.size(s): n, layout.width(s): words_of(n)}
    for p in range(len(theory.signatures)):
        pools.numbers[layout.barred(p)] = schedule.barred[p] + len(sizes) if p in schedule.barred else -1
    put_instances(pools, written, theory, instances, sizes)
    put_observed(pools, theory.observed, observations)
    put_tables(pools, written, sizes)
    width = max((len(s.sorts) for s in theory.signatures), default=0)
    folds, lookup, orbit_count = put_orbits(model, orbits, max(width, 1), theory)
    data = Data(
        numbers=frozen([pools.numbers[x] for x in written.layout.numbers], np.int64),
        indices=frozen(np.concatenate([np.zeros(0, np.int32), *pools.indices]), np.int32),
        reals=frozen(np.concatenate([np.zeros(0), *pools.reals]), np.float64),
        **visits(schedule, sizes),
        sorts=frozen(np.array([(sum(sizes[:s]), n) for s, n in enumerate(sizes)]).reshape(-1, 2), np.int64),
        folds=frozen(folds, np.int64),
        lookup=frozen(lookup, np.int32),
        level=frozen((1.0, np.inf, 0.0, 0.0, 0.0), np.float64),
        orbit_field=frozen(np.zeros(orbit_count + 1), np.float64),
        scan=SCANS.index(scan),
    )
    return data, orbit_count


def visits(schedule: Schedule, sizes: Sequence[int]) -> dict[str, Any]:
    """The arrays that say what a sweep visits: masks stand behind the sorts' tails, lists behind the sorts' orders."""
    entries = schedule.entries.copy()
    entries[:, 2] += np.where(entries[:, 2] >= 0, len(sizes), 0)
    entries[:, 3] += np.where(entries[:, 3] >= 0, sum(sizes), 0)
    tails = np.array([(1 << (n - 64 * (words_of(n) - 1))) - 1 for n in sizes], dtype=np.uint64)
    return {
        "words": frozen(np.concatenate([tails, schedule.skips]), np.uint64),
        "entries": frozen(entries, np.int64),
        "free_sites": schedule.free,
        "all_sites": int(entries[np.unique(entries[:, -3], return_index=True)[1], 1].sum()),
    }


def with_schedule(r: Relational, schedule: Schedule) -> Relational:
    """The same kernel with another order of the same sites; there may be no `!` predicates."""
    data = r.data._replace(**visits(schedule, [s.size for s in r.model.sorts.values()]))
    return replace(r, data=data, listed=schedule.listed)


def frozen(values: object, dtype: type) -> np.ndarray:
    array = np.array(values, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


# --- chains ---


def blank(r: Relational) -> Chain:
    queries = len(set(r.query_places.tolist()))
    return state.blank_chain(r.data, r.listed, r.bits, r.orbit_count, queries, len(r.theory.shapes))


def violations(r: Relational, chain: Chain) -> int:
    """The number of violated groundings of hard formulas."""
    if not any(s.hard for s in r.theory.shapes):
        return 0
    with np.errstate(over="ignore"):
        return int(r.kernel.violated(r.data, chain))


def repair(r: Relational, chain: Chain, data: Data | None = None) -> bool:
    """Moves sites to the value that violates less, until nothing is violated or patience ends. With a schedule of its
    own, sites without a reason to move stay as they are at first."""
    for sweep in range(REPAIR_SWEEPS):
        greedy = 1 if data is None or sweep >= REPAIR_SWEEPS // 3 else 2
        with np.errstate(over="ignore"):
            r.kernel.advance(r.data if data is None else data, chain, FOREVER, 1, greedy)
        if violations(r, chain) == 0:
            return True
    return False


def advance(r: Relational, chain: Chain, updates: int, sweeps: int = FOREVER) -> int:
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


def words_of_sweep(r: Relational) -> float:
    """A guess, by counts, of the words that a sweep evaluates."""
    sizes, instances = [s.size for s in r.model.sorts.values()], [len(some.constants) for some in r.instances]
    total = 0.0
    for p, (name, predicate) in enumerate(r.model.predicates.items()):
        if p in r.written.places:
            values = prod(sizes[r.theory.signatures[p].sorts[j]] for j in predicate.exclusive)
            words = update_words(r.theory, p, r.written.places[p], instances, sizes)
            total += float(r.known[name].free) * values * words
    return total
