"""One schedule for both engines: the orders in which they visit the sites, and what follows where a choice between them
depends on the state."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product

import numpy as np
import pytest
from plain_kernels import plain_model
from relational_worlds import atoms_of, conditional, log_density, put_world
from small_theories import smokers, with_evidence
from sparse_worlds import chain_at, images, plain, random_world, sites

import definetti as dft
from definetti.modes.logic.sweeps import backwards
from definetti.samplers.logic.engine import Relational, advance, blank
from definetti.samplers.logic.levels import backwards as dense_backwards
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.sparse import schedule
from definetti.samplers.sparse.crowded import pairs_of
from definetti.samplers.sparse.engine import Sparse
from definetti.samplers.sparse.schedule import following, one_kernel
from definetti.samplers.sparse.stuck import held, seen_free

ENTRY, POSITION, OPEN, TURN, GROUP = 1, 2, 6, -3, -2  # places of the clock; columns of a schedule
STARS = "P(n)\nE(n,n)\n2 E(x,y)\n-2 E(x,y) ^ E(x,z)\n3 E(x,y) ^ E(y,x)\n0.5 E(x,y) ^ P(y)"
APART = "x != y ^ y != z ^ x != z"
UNDIRECTED = f"P(n)\nE(n,n)\n-1.5 E(x,y)\n-0.4 E(x,y) ^ P(x)\n0.9 E(x,y) ^ E(y,z) ^ E(x,z) ^ {APART}\nE(x,y) => E(y,x)."
VALUES = "R(n,n,k)\nQ(n,k)\n-0.5 R(x,y,v)\n0.8 R(x,y,v) ^ R(y,z,v) => R(x,z,v)\n0.6 R(x,y,v) ^ Q(x,v)\n-1 R(x,x,v)"
LOOPS = "P(n)\nE(n,n)\n-5 E(x,y)\n6 E(x,y) ^ E(y,x)\n0.2 E(x,y) ^ P(x)"
PATHS = "E(n,n)\n-0.5 E(x,y)\n1.5 E(x,y) ^ E(y,z) => E(x,z)\n1 E(x,y) ^ E(y,x)"
FEW = {(0, 1), (0, 2), (1, 0)}  # visited by a list
#: form → theory, sizes, evidence
FORMS = {
    "rows": ("P(n)\nE(n,n)\n-0.5 E(x,y)\n0.3 E(x,y) ^ P(x) => P(y)\n0.4 E(x,y) ^ E(y,z) => E(x,z)", {}, {}),
    "columns": (STARS, {}, {}),
    "columns of two sorts": ("P(n)\nL(u,n)\n-1 L(x,y)\n0.7 L(x,y) ^ L(x,z)\n0.3 L(x,y) ^ P(y)", {"u": 2}, {}),
    "columns with known atoms": (STARS, {}, {"E": {(0, 1): True, (1, 1): False}}),
    "unordered pairs": (UNDIRECTED, {}, {}),
    "unordered pairs without loops": (f"{UNDIRECTED}\n!E(x,x).", {}, {}),
    "known unordered pairs": (UNDIRECTED, {}, {"E": {(0, 1): True, (1, 0): True}}),
    "hard": ("P(n)\nE(n,n)\n0.4 E(x,y)\nE(x,y) ^ E(y,z) => E(x,z).\nE(x,y) => P(x).", {}, {}),
    "small sort": (VALUES, {"k": 2}, {}),
    "small sort of columns": ("R(n,n,k)\n2 R(x,y,v)\n-2 R(x,y,v) ^ R(x,z,v)\n1 R(x,y,v) ^ R(y,x,w)", {"k": 2}, {}),
    "small sort with known atoms": (VALUES, {"k": 2}, {"R": {(0, 1, 0): True, (2, 2, 1): False}, "Q": {(1, 1): True}}),
    "unordered pairs by value": ("R(n,n,k)\n0.4 R(x,y,v) ^ R(x,y,w) ^ v != w\nR(x,y,v) => R(y,x,v).", {"k": 2}, {}),
    "named value": ("P(n)\nR(n,n,k)\n-0.5 R(x,y,v)\n0.7 R(x,y,K1) ^ P(x) => P(y)\n0.4 R(x,y,K2) ^ R(y,z,K1)",
                    {"k": 2}, {}),
    "few free atoms": (PATHS, {"n": 5}, {"E": {a: a == (1, 2) for a in product(range(5), repeat=2) if a not in FEW}}),
    "late loops": (LOOPS, {}, {}),
    "late bits": ("P(n)\nQ(n)\nE(n,n)\n0.3 P(x) => Q(x)\n0.3 E(x,y) ^ P(x) => P(y)\n0.4 E(x,y) ^ E(y,z) => E(x,z)",
                  {}, {"P": {(0,): True}}),
    "late pairs": ("P(n)\nE(n,n)\n-5 E(x,y)\n0.2 E(x,y) ^ P(x)\n0.3 P(x)", {}, {}),
}  # fmt: skip
#: where the two engines would visit the sites in different orders
DIFFERENT = [
    "columns", "columns of two sorts", "columns with known atoms", "small sort", "small sort of columns",
    "small sort with known atoms", "unordered pairs by value", "named value", "few free atoms",
]  # fmt: skip


def theory(name: str, n: int = 3) -> dft.MarkovLogic:
    text, sizes, known = FORMS[name]
    return with_evidence(dft.markov_logic(text, domain={"n": n} | sizes), known)


def both(name: str, n: int = 3) -> tuple[Sparse, Relational, object]:
    """The two engines, as plain Python; the dense one with its own schedule."""
    r, group = plain(theory(name, n))
    return r, plain_model(group.model, group.atom_orbits, late=group.late()), group


def constants(r: Sparse) -> list[tuple[np.ndarray, ...]]:
    """Every order of the constants of each sort of the sparse engine."""
    return [tuple(map(np.array, found)) for found in product(*(permutations(range(n)) for n in r.data.sizes))]


def sparse_order(r: Sparse, order: Sequence[np.ndarray], turns: Sequence[int] | None = None) -> list[tuple]:
    whole = np.concatenate(order)
    found = []
    for at in range(len(r.data.entries)) if turns is None else turns:
        first = int(r.data.type_start[r.data.entry_sorts[at]])
        for a in whole[first : first + int(r.data.sizes[r.data.entry_sorts[at]])]:
            found += sites(r, int(r.data.entries[at]), int(a), whole)
    return found


def dense_order(
    r: Sparse, engine: Relational, order: Sequence[np.ndarray], beside: Sequence[tuple[int, Sequence[int]]] = ()
) -> list[tuple]:
    """The sites that the dense kernel visits where the constants have this order; `beside`: what else its order holds,
    from which place on."""
    chain, names, seen, original = blank(engine), list(engine.model.predicates), [], engine.kernel.update
    put_world(engine, chain, dict.fromkeys(atoms_of(engine.model), False))
    at = [int(engine.data.sorts[list(engine.model.sorts).index(sort), 0]) for sort in r.model.sorts]
    for first, own in (*zip(at, order, strict=True), *beside):
        chain.order[first : first + len(own)] = own
    chain.clock[[ENTRY, POSITION, OPEN]] = 0, 0, 1

    def record(*arguments: object) -> int:
        coords, p, m = arguments[5], arguments[-3], arguments[-2]
        seen.extend((names[p], *map(int, coords[: len(engine.model.shape(names[p])), i])) for i in range(m))
        return -1

    engine.kernel.update = record
    advance(engine, chain, 1 << 40, 1)
    engine.kernel.update = original
    return seen


def early(r: Sparse, order: list[tuple]) -> list[tuple]:
    """The order with what is drawn after all others in a fixed order: it is independent given those."""
    after = {site for kind in r.data.entries if kind >= len(r.plan.sorts) for a in range(int(r.data.sizes.max()))
             if a < r.data.sizes[r.plan.sorts[kind % len(r.plan.sorts)][0]]
             for site in sites(r, int(kind), a, np.arange(int(r.data.sizes.sum())))}  # fmt: skip
    return [site for site in order if site not in after] + sorted(site for site in order if site in after)


def differ(r: Sparse, engine: Relational) -> bool:
    """Whether there is an order of the constants in which the engines visit the sites in different orders."""
    return any(early(r, sparse_order(r, o)) != early(r, dense_order(r, engine, o)) for o in constants(r))


@pytest.mark.parametrize("name", FORMS)
def test_one_kernel_has_one_schedule(name: str) -> None:
    """The orders in which the dense kernel visits the sites, read off it, are those of the sparse rows."""
    r, engine, _ = both(name)
    assert one_kernel(r)
    followed = following(r, engine)
    assert followed.free_sites == r.free_sites
    assert not differ(r, followed)
    assert differ(r, engine) == (name in DIFFERENT)


@pytest.mark.parametrize("name", FORMS)
def test_parts_take_their_turns_alike(name: str) -> None:
    """Shuffled in the same sets, which the dense kernel finds in two columns of its schedule."""
    r, engine, _ = both(name)
    entries = following(r, engine).data.entries
    assert entries[:, TURN].tolist() == list(range(len(r.data.entries)))
    found = defaultdict(list)
    for turn, group in enumerate(entries[:, GROUP].tolist()):
        found[group].append(turn)
    found.pop(-1, None)
    assert list(found.values()) == [list(range(first, first + count)) for first, count in r.data.families.tolist()]
    assert bool(found) == ("small sort" in name or "value" in name)


def test_a_shuffled_turn_is_a_uniform_one() -> None:
    """The choices of the dense kernel lead to each order of a family's parts equally often, as shuffling does."""
    text = "R(n,n,k)\n-0.5 R(x,y,v)\n0.8 R(x,y,v) ^ R(y,z,v) => R(x,z,v)"
    r, group = plain(dft.markov_logic(text, domain={"n": 3, "k": 3}))
    followed = following(r, plain_model(group.model, group.atom_orbits))
    found = defaultdict[tuple[int, ...], float](float)
    for turns, chance in turned(followed):
        found[turns] += chance
    assert found == pytest.approx(dict.fromkeys(permutations(range(3)), 1 / 6))


def turned(engine: Relational) -> Iterator[tuple[tuple[int, ...], float]]:
    """(entries in the order of a sweep, probability), every choice of the dense kernel followed."""
    waiting: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while waiting:
        choices, chance = waiting.pop()
        taken, more = list(choices), []

        def pick(streams: object, scratch: object, n: int, taken=taken, more=more) -> int:
            if taken:
                return taken.pop(0)
            more.append(n)
            return 0

        engine.kernel.pick, c, d = pick, blank(engine), engine.data
        engine.kernel.begin_sweep(d.scan, c.clock, c.streams, c.uniform, c.order, d.sorts, d.entries)
        if more:
            waiting += [((*choices, k), chance / more[0]) for k in range(more[0])]
        else:
            yield tuple(c.order[-len(d.entries) :].tolist()), chance


def test_different_sites_are_not_mixed() -> None:
    """Of one value the atoms are tied, and the dense engine ties those of all values or none."""
    assert one_kernel(plain(smokers(6))[0])
    text = "R(n,n,k)\n-0.5 R(x,y,v)\n0.3 R(x,y,v) ^ R(x,y,w) ^ v != w\nR(x,y,K1) => R(y,x,K1)."
    r, group = plain(dft.markov_logic(text, domain={"n": 3, "k": 2}))
    assert len(r.plan.ties) == 1
    assert not one_kernel(r)
    engine = plain_model(group.model, group.atom_orbits)
    assert engine.free_sites > r.free_sites
    assert differ(r, engine)


MISTAKES: dict[str, tuple[str, str, Callable[..., object]]] = {
    "what is left out": ("columns with known atoms", "left_out", lambda *_: None),
    "the bits that are left out": ("late bits", "fixed_bits", lambda r, p, late: np.zeros(3, bool)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_planted_mistakes_are_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form, function, mutant = MISTAKES[name]
    r, engine, _ = both(form)
    monkeypatch.setattr(schedule, function, mutant)
    assert differ(r, following(r, engine))


# --- the distribution ------------------------------------------------------------------------------------------------


class Worlds:
    """All legal states of a theory, their probabilities, and single-site updates of the sparse engine's sites."""

    def __init__(self, r: Sparse) -> None:
        self.r, model = r, r.split.source
        atoms = atoms_of(model)
        free = [a for a in atoms if model.knowledge.value(a[0], a[1:]) is None]
        fixed = {a: bool(model.knowledge.value(a[0], a[1:])) for a in atoms if a not in set(free)}
        made = [{a: fixed.get(a, False) for a in atoms} | dict(zip(free, bits, strict=True))
                for bits in product((False, True), repeat=len(free))]  # fmt: skip
        weighed = [(world, log_density(model, world)) for world in made]
        self.all = [world for world, density in weighed if density > -np.inf]
        self.density = np.array([density for _, density in weighed if density > -np.inf])
        self.number = {tuple(world.values()): i for i, world in enumerate(self.all)}
        weight = np.exp(self.density - self.density.max())
        self.pi = weight / weight.sum()

    def update(self, site: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each state that with the site true and that with it false, and the probability of the first."""
        tied, on, off = images(self.r, site), [], []
        for i, world in enumerate(self.all):
            pair = [self.number.get(tuple((world | dict.fromkeys(tied, value)).values())) for value in (True, False)]
            on.append(i if pair[0] is None else pair[0])
            off.append(i if pair[1] is None else pair[1])
        at, other = np.array(on), np.array(off)
        return at, other, 1.0 / (1.0 + np.exp(self.density[other] - self.density[at]))

    def after(self, law: np.ndarray, orders: Sequence[list[tuple]]) -> np.ndarray:
        """The law after a sweep in one of these orders, from the law before."""
        updates = {site: self.update(site) for site in {site for order in orders for site in order}}
        total = np.zeros_like(law)
        for order in orders:
            now = law
            for site in order:
                on, off, p = updates[site]
                now = np.bincount(on, now * p, len(law)) + np.bincount(off, now * (1.0 - p), len(law))
            total += now
        return total / len(orders)


def crowd(r: Sparse, engine: Relational, worlds: Worlds) -> np.ndarray:
    """bool: which states are crowded, where these have about half of the probability."""
    bits, pairs = blank(engine), []
    for world in worlds.all:
        put_world(engine, bits, world)
        pairs.append(pairs_of(r, engine, bits))
    most = min(set(pairs), key=lambda most: abs(worlds.pi[np.array(pairs) > most].sum() - 0.5))
    return np.array(pairs) > most


@pytest.mark.parametrize("name", ["columns", "unordered pairs", "hard", "small sort of columns", "few free atoms"])
def test_a_choice_by_the_state_leaves_the_distribution_alone(name: str) -> None:
    """Exactly, by enumeration: crowded states are swept in the orders that are read off the dense kernel, the others in
    those of the sparse rows. Without one schedule the distribution is another."""
    r, engine, _ = both(name, 2 if "sort" in name else 3)
    worlds = Worlds(r)
    crowded = crowd(r, engine, worlds)
    assert 0.05 < worlds.pi[crowded].sum() < 0.95
    rest, error = worlds.after(worlds.pi * ~crowded, list(sparse_orders(r))), []
    for dense in (following(r, engine), engine):
        law = rest + worlds.after(worlds.pi * crowded, list(dense_orders(r, dense)))
        error.append(np.abs(law - worlds.pi).sum())
    assert error[0] < 1e-12
    assert (error[1] > 1e-4) == (name in DIFFERENT)


def sparse_orders(r: Sparse) -> Iterator[list[tuple]]:
    """For all orders of constants, and of the parts of a predicate."""
    turns = [list(range(len(r.data.entries)))]
    for first, count in r.data.families.tolist():
        end = first + count
        turns = [t[:first] + list(p) + t[end:] for t in turns for p in permutations(t[first:end])]
    return (sparse_order(r, order, t) for order in constants(r) for t in turns)


def dense_orders(r: Sparse, engine: Relational) -> Iterator[list[tuple]]:
    """For all orders of constants (also of small sorts), listed sites and turns, which are equally likely here."""
    entries, size = engine.data.entries, blank(engine).order.size
    own = [k for k, sort in enumerate(engine.model.sorts) if sort not in r.model.sorts]
    parts = [(int(engine.data.sorts[k, 0]), range(int(engine.data.sorts[k, 1]))) for k in own]
    listed = blank(engine).order
    parts += [(int(e[3]), listed[e[3] : e[3] + e[1]].tolist()) for e in entries if e[3] >= 0]
    found = [[(first, p) for p in permutations(values)] for first, values in parts]
    turns = [[(size - len(entries), t) for t, _ in turned(engine)]]
    return (dense_order(r, engine, order, put) for order in constants(r) for put in product(*found, *turns))


@pytest.mark.parametrize("name", ["rows", "columns", "columns of two sorts", "small sort", "small sort of columns"])
def test_both_go_backwards_alike(name: str) -> None:
    """The orders of reversed sweeps, with their probabilities, are those of sweeps read from their ends."""
    r, engine, _ = both(name, 2)
    engine = following(r, engine)
    forwards, mine, theirs = (sorted(found) for found in (
        (order[::-1] for order in dense_orders(r, engine)),
        dense_orders(r, dense_backwards(engine)),
        sparse_orders(backwards(r)),
    ))  # fmt: skip
    assert mine == theirs == forwards


# --- the watch -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hard", "unordered pairs", "hard and unordered", "hard columns", "hard by value"])
@pytest.mark.parametrize("seed", [1, 2])
def test_dense_sweeps_are_watched(name: str, seed: int) -> None:
    """What is still watched after a dense sweep is what no update found free, by brute force."""
    texts = {
        "hard and unordered": (f"E(n,n)\nE(x,y) => E(y,x).\n!E(x,y) v !E(y,z) v !E(x,z) v !({APART}).", {"n": 3}),
        "hard columns": ("P(n)\nE(n,n)\n0.3 E(x,y) ^ E(x,z)\nE(x,y) => P(y).\nE(x,y) => !E(y,x).", {"n": 3}),
        "hard by value": ("R(n,n,k)\n-0.5 R(x,y,v)\nR(x,y,v) ^ R(y,z,v) => R(x,z,v).", {"n": 3, "k": 2}),
    }
    model = dft.markov_logic(texts[name][0], domain=texts[name][1]) if name in texts else theory(name)
    r, group = plain(model)
    engine = following(r, plain_model(group.model, group.atom_orbits, late=group.late()))
    rng = np.random.default_rng(seed)
    world = random_world(r.split.source, rng, r)
    assert world is not None
    lists, bits, free = chain_at(r, group, world), blank(engine), set()
    put_world(engine, bits, world)
    for _ in range(engine.free_sites):
        before = {(name, *at): bool(engine.atoms(bits, name)[tuple(at)]) for name, *at in world}
        site = drawn_site(engine, bits)
        p = conditional(r.split.source, before, site) if len(images(r, site)) == 1 else tied_chance(r, before, site)
        free |= set(images(r, site)) if p is not None and 0.0 < p < 1.0 else set()
    seen_free(r, lists, engine, bits)
    watched = {(name, *map(int, row)) for name, rows, _ in held(r, [lists]) for row in rows}
    everything = {(name, *map(int, row)) for name, rows, _ in held(r, [chain_at(r, group, world)]) for row in rows}
    assert watched == everything - free
    assert everything & free or name == "unordered pairs"


def drawn_site(engine: Relational, bits: Chain) -> tuple:
    advance(engine, bits, 1)
    entries = engine.data.entries
    entry = entries[bits.order[bits.clock[ENTRY] - len(entries)]]
    name = list(engine.model.predicates)[entry[0]]
    return (name, *map(int, bits.coords[: len(engine.model.shape(name)), 0]))


def tied_chance(r: Sparse, world: dict, site: tuple) -> float:
    high, low = (log_density(r.split.source, world | dict.fromkeys(images(r, site), value)) for value in (True, False))
    return 0.0 if high == -np.inf else 1.0 if low == -np.inf else 0.5
