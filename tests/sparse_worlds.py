"""Sparse kernels as plain Python, every branch of a row followed, against one site after the other by brute force."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from unittest.mock import patch

import numpy as np
from relational_worlds import World, atoms_of, conditional, log_density

import definetti as dft
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.kernels import rng
from definetti.samplers.sparse import engine
from definetti.samplers.sparse.engine import Chain, Sparse
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.sampling import SparseSampling
from definetti.samplers.sparse.stuck import held

ROUNDING = 1e-12
MARK = "# --- text ---\n"
HEADER = "import math\nfrom collections import namedtuple\n\nimport numpy as np\n\n\n"
HEADER += "def helper(function):\n    return function\n\n\nentry = helper\n"
HEADER += "\n\ndef prefetch(array, index):\n    assert 0 <= index < array.size\n"


def plain_kernel(text: str, *changes: tuple[str, str]) -> ModuleType:
    """The text of a kernel, uncompiled, with changes that plant mistakes."""
    text = text.split(MARK)[1]
    for old, new in changes:
        assert old in text, f"the text no longer holds {old!r}: give the mutant its new place"
        text = text.replace(old, new)
    module = ModuleType("definetti_sparse_plain")
    module.__dict__.update(next_word=rng.next_word.py_func, unit=rng.unit.py_func)
    exec(compile(HEADER + text, "<sparse kernel>", "exec"), module.__dict__)
    return module


def plain(model: MarkovLogic, *changes: tuple[str, str], group: object = None) -> tuple[Sparse, object]:
    """`compile_sparse` without compiling, and the model's group."""
    group = dft.symmetries(model, "renaming") if group is None else group
    with patch.object(engine, "load_kernel", lambda text: plain_kernel(text, *changes)):
        return engine.compile_sparse(group.model, group.atom_orbits, group.deferred, shuffled=False), group


def full(r: Sparse, new: str, at: Sequence[int]) -> tuple:
    """The atom of the theory as given that an atom of the split one is."""
    part = r.split.parts[new]
    return (part.name, *part.rows(np.array([at]))[0].tolist())


def split_atom(r: Sparse, atom: tuple) -> tuple[str, tuple[int, ...]]:
    name, *at = atom
    new, part = next(found for found in r.split.of(name) if found[1].inside(np.array([at]))[0])
    return new, tuple(at[j] for j in part.kept)


def chain_at(r: Sparse, group, world: World) -> Chain:
    bits, pairs = {}, {}
    for name, predicate in r.model.predicates.items():
        shape = r.model.shape(name)
        if name not in r.split.parts:  # the mark of a constant
            bits[name] = (r.model.knowledge.codes(name) == 1).astype(int)
            continue
        if len(shape) == 1 or predicate.sorts[0] == predicate.sorts[1]:
            bits[name] = np.array([world[full(r, name, [x] * len(shape))] for x in range(shape[0])], int)
        if len(shape) == 2:
            same = predicate.sorts[0] == predicate.sorts[1]
            rows = [(x, y) for x in range(shape[0]) for y in range(shape[1]) if world[full(r, name, (x, y))]]
            pairs[name] = np.array([row for row in rows if not (same and row[0] == row[1])], int).reshape(-1, 2)
    return engine.make_chain(r, 3, 0, bits, pairs)


def world_of(r: Sparse, chain: Chain) -> World:
    world = dict.fromkeys(atoms_of(r.split.source), False)
    for name, predicate in r.model.predicates.items():
        shape = r.model.shape(name)
        if name not in r.split.parts:
            continue
        if len(shape) == 2:
            for x, y in engine.true_pairs(r, chain, name):
                assert not world[full(r, name, (x, y))], "an atom stands in a list twice"
                world[full(r, name, (x, y))] = True
        if len(set(predicate.sorts)) == 1:
            for x, value in enumerate(engine.bits_of(r, chain, name)):
                world[full(r, name, [x] * len(shape))] = bool(value)
    for name in r.split.source.predicates:  # those of small sorts alone
        if not list(r.split.of(name)):
            world |= {(name, *at): bool(r.split.source.knowledge.value(name, at)) for n, *at in world if n == name}
    return world


def images(r: Sparse, site: tuple) -> list[tuple]:
    """The atoms of a site: one, or R(a,b) and R(b,a) where a hard formula makes them equal."""
    new, at = split_atom(r, site)
    tied = list(r.model.predicates).index(new) in r.plan.ties and at[0] != at[1]
    return [site, full(r, new, at[::-1])] if tied else [site]


def put(r: Sparse, world: World, site: tuple, value: bool) -> World:
    return {**world, **dict.fromkeys(images(r, site), value)}


def chance(r: Sparse, world: World, site: tuple) -> float:
    """P(site | rest); of a pair of tied atoms from the log densities of the whole states."""
    if len(images(r, site)) == 1:
        p = conditional(r.split.source, world, site)
        assert p is not None
        return p
    high, low = (log_density(r.split.source, put(r, world, site, value)) for value in (True, False))
    return 1 / (1 + math.exp(low - high))


def random_world(model: MarkovLogic, rng: np.random.Generator, r: Sparse | None = None) -> World | None:
    """A legal state that agrees with the evidence; None where none was met."""
    for _ in range(200):
        share = rng.random()
        world = {atom: bool(rng.random() < share) for atom in atoms_of(model)}
        if r is not None and r.plan.ties:
            world |= {atom: world[site] for site in world for atom in images(r, site)[1:] if atom < site}
        for name, *at in world:
            known = model.knowledge.value(name, at)
            world[(name, *at)] = world[(name, *at)] if known is None else bool(known)
        if log_density(model, world) > -math.inf:
            return world
    return None


def sites(r: Sparse, kind: int, a: int, order: np.ndarray) -> list[tuple]:
    """The free sites that one visit draws, in their order."""
    count = len(r.plan.sorts)
    name = list(r.model.predicates)[kind % count]
    if kind >= count or len(r.plan.sorts[kind]) == 1:
        late = int(kind >= count)
        sort, position = r.plan.sorts[kind % count][0], r.plan.position[kind % count]
        if int(r.data.fixed[late, int(r.data.type_start[sort]) + a]) >> position & 1:
            return []
        found = [(name, *[a] * len(r.plan.sorts[kind % count]))]
    else:
        s = next(s for s in r.plan.systems if s.predicate == kind)
        first = int(r.data.type_start[s.sorts[1]])
        far = order[first : first + int(r.data.sizes[s.sorts[1]])]
        found = [(name, a, int(b)) if s.side == 0 else (name, int(b), a) for b in far]
        bit = r.plan.position.get(kind, 0)
        loops = s.same and int(r.data.fixed[0, first + a]) >> bit & 1  # known, or drawn after all others
        found = [site for site in found if not (loops and site[1] == site[2])]
        if s.symmetric:
            place = {int(b): i for i, b in enumerate(far)}
            found = [site for site in found if place[site[2]] >= place[a]]
    return [full(r, site[0], site[1:]) for site in found if r.model.knowledge.value(site[0], site[1:]) is None]


def branches(r: Sparse, group, world: World, kind: int, a: int, order: np.ndarray) -> Iterator[tuple[float, Chain]]:
    """(probability, chain) for every way in which the ticks and draws of one visit can fall."""
    waiting: list[list[bool]] = [[]]
    while waiting:
        script, made, weight = waiting.pop(), [], 1.0

        def happens(p: float, script=script, made=made) -> bool:
            nonlocal weight
            if p <= 0.0 or p >= 1.0:
                return p >= 1.0
            outcome = script[len(made)] if len(made) < len(script) else True
            if len(made) >= len(script):
                waiting.append([*made, False])
            made.append(outcome)
            weight *= p if outcome else 1.0 - p
            return outcome

        def first_tick(streams, remainder, start, count, rate, happens=happens):
            return next((i for i in range(start, count) if happens(-math.expm1(-rate))), count)

        r.kernel.first_tick = first_tick
        r.kernel.draw = lambda streams, p, happens=happens: happens(p)
        chain = chain_at(r, group, world)
        chain.order[:] = order
        with np.errstate(over="ignore"):
            r.kernel.begin_sweep(r.data, chain)
            for k, s in enumerate(r.plan.systems):
                if s.symmetric and s.predicate == kind:  # those whose rows came before this one
                    for b in gone(chain, k, a):
                        r.kernel.leave_class(chain.pool, chain.systems[k], b)
            drawn = int(r.kernel.visit(r.data, chain, kind, a))
        assert drawn == len(sites(r, kind, a, order))
        yield weight, chain


def gone(chain: Chain, k: int, a: int) -> list[int]:
    """The nodes before a in the order, which have left their classes when its row of unordered pairs begins."""
    places = chain.systems[k].node[:, 7]
    return np.flatnonzero(places < places[a]).tolist()


def visit_error(r: Sparse, group, world: World, kind: int, a: int, order: np.ndarray) -> float:
    """The largest error of the law of a visit, and of G and F along every path."""
    visited = sites(r, kind, a, order)
    law: dict[tuple, float] = {}
    worst = 0.0
    for weight, chain in branches(r, group, world, kind, a, order):
        after = world_of(r, chain)
        law[tuple(after[s] for s in visited)] = law.get(tuple(after[s] for s in visited), 0.0) + weight
        mine = {atom for site in visited for atom in images(r, site)}
        worst = max(worst, float(any(after[s] != world[s] for s in world if s not in mine)))
        worst = max(worst, path_error(r, group, world, after, visited, chain), list_error(r, chain, kind, a))
    total = 0.0
    for values, weight in law.items():
        here, exact = dict(world), 1.0
        for site, value in zip(visited, values, strict=True):
            p = chance(r, here, site)
            exact *= p if value else 1.0 - p
            here = put(r, here, site, value)
        worst = max(worst, abs(exact - weight))
        total += exact
    return max(worst, abs(1.0 - total))


def path_error(r: Sparse, group, world: World, after: World, visited: list[tuple], chain: Chain) -> float:
    """G of the visit against the conditionals that single-site updates meet on this path; F against the state."""
    g, here, free = np.zeros(r.orbit_count), dict(world), set()
    for site in visited:
        free |= set(images(r, site)) if 0.0 < chance(r, here, site) < 1.0 else set()
        for name, *at in images(r, site):
            g[group.orbit_number(name, at)] += chance(r, here, site)
        here = put(r, here, site, after[site])
    if watch_error(r, chain, world, free):
        return 1.0
    f = np.zeros(r.orbit_count)
    for name, *at in after:
        if r.split.source.knowledge.value(name, at) is None:
            f[group.orbit_number(name, at)] += after[(name, *at)]
    return float(max(np.abs(chain.sum_g[0, 1:] - g).max(initial=0), np.abs(chain.true_atoms[1:] - f).max(initial=0)))


def watch_error(r: Sparse, chain: Chain, world: World, free: set[tuple]) -> bool:
    """Whether what is still watched is not what hard formulas speak of and no visit found free."""
    names, known = list(r.model.predicates), r.split.source.knowledge
    rows = [(name, *map(int, row)) for name, found, _ in held(r, [chain]) for row in found]
    left = []
    for atom in world:
        if atom in free or known.value(atom[0], atom[1:]) is not None:
            continue
        new, at = split_atom(r, atom)
        bit = len(set(r.model.predicates[new].sorts)) == 1 and len(set(at)) == 1
        if names.index(new) in (r.plan.held_bits if bit else r.plan.held_pairs):
            left.append(atom)
    return sorted(rows) != sorted(left)


def list_error(r: Sparse, chain: Chain, kind: int = -1, a: int = -1) -> float:
    """1 where lists, their reverses or the classes contradict each other, after the visit of a row."""
    for p, name in enumerate(r.model.predicates):
        if len(r.plan.sorts[p]) == 2:
            ahead = {(int(x), int(y)) for x, y in engine.true_pairs(r, chain, name)}
            back = set()
            for y in range(r.model.shape(name)[1]):
                h = int(r.data.lists[2 * p + 1]) + engine.LIST * y
                back |= {(int(x), y) for x in chain.pool[chain.head[h] : chain.head[h] + chain.head[h + 1]]}
            if ahead != back:
                return 1.0
    for k, s in enumerate(chain.systems):
        key = getattr(r.kernel, f"class_key_{r.shapes[k]}")
        inside = r.plan.systems[k].symmetric and kind == r.plan.systems[k].predicate and s.node[a, 7] < len(s.node) - 1
        for b, record in enumerate(s.node):
            if inside and record[7] <= s.node[a, 7]:
                continue
            at = engine.LIST * record[3]
            if record[5] != key(r.data, chain, s, b) or chain.pool[s.classes[at] + record[4]] != b:
                return 1.0
    return 0.0


def worst_error(r: Sparse, group, worlds: int, seed: int) -> float:
    """Over some states, every kind of site and some constants and orders."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(worlds):
        world = random_world(r.split.source, rng, r)
        if world is None:
            continue
        for kind, sort in zip(r.data.entries.tolist(), r.data.entry_sorts.tolist(), strict=True):
            order = np.concatenate([rng.permutation(int(n)) for n in r.data.sizes])
            a = int(rng.integers(int(r.data.sizes[sort])))
            worst = max(worst, visit_error(r, group, world, kind, a, order))
    return worst


def literal(rng: np.random.Generator, names: str) -> str:
    """A literal of a random theory: two unary and two binary predicates."""
    one, two = rng.choice(list(names), 2, replace=True)
    atom = rng.choice([f"P({one})", f"Q({one})", f"E({one},{two})", f"E({two},{one})", f"D({one},{two})"])
    return f"{'!' if rng.random() < 0.4 else ''}{atom}"


def exact_theories(text: Callable[[int], str], sizes: Mapping[str, int], seeds: Sequence[int]) -> list[Sparse]:
    """The kernels of those random theories that the generator covers, each of which is exact."""
    out = []
    for seed in seeds:
        try:
            r, group = plain(dft.markov_logic(text(seed), domain=sizes))
        except Unfit:
            continue
        assert worst_error(r, group, 1, seed) < ROUNDING, text(seed)
        out.append(r)
    return out


def stopped_and_not(make: Callable[[], SparseSampling], steps: int) -> tuple[SparseSampling, SparseSampling]:
    """Two finished runs: one was never stopped, the other was saved after so many steps and put into a new one."""
    whole, first, second = (make() for _ in range(3))
    going = first.steps()
    for _ in range(steps):
        next(going)
    second.restore(first.state())
    for run in (whole, second):
        for _ in run.steps():
            pass
    return whole, second
