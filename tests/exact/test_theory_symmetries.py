"""Symmetries of the theory: exchanged and negated predicates against enumeration, and a sweep that commutes with them.

Random theories are made symmetric by adding the image of every formula and of all evidence under a relabelling with a
renaming, written in another way; what is found must contain it, and all that is found must preserve the density.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import permutations, product

import logic_worlds as lw
import numpy as np
import pytest
from plain_kernels import plain_model
from planted import planted
from relational_worlds import atoms_of, literal_image, put_world, world_of

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.constraints.logic.ties import Image
from definetti.errors import Unsatisfiable
from definetti.inference.logic.question import logic_question
from definetti.inference.marginals import marginals
from definetti.model.logic.formulas import map_terms, terms
from definetti.model.logic.ground import ground
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import (
    And,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Variable,
)
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.logic.engine import advance, blank
from definetti.samplers.logic.mirrored import Means, with_mirror_images
from definetti.samplers.logic.queries import satisfied
from definetti.solvers.exact import exact
from definetti.symmetry.find import symmetries
from definetti.symmetry.logic import evidence_renamings
from definetti.symmetry.logic import joined_orbits as joining
from definetti.symmetry.logic import polynomial as polynomials
from definetti.symmetry.logic.polynomial import polynomial
from definetti.symmetry.logic.renaming import RenamingSymmetries, renaming, with_theory
from definetti.symmetry.logic.theory_group import composed, relabelled

# --- theories with a symmetry put in ---------------------------------------------------------------------------------

PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("Q", ("a",)),
    Predicate("R", ("a", "a")),
    Predicate("S", ("a", "b")),
    Predicate("V", ("b", "a")),
    Predicate("B", ("a", "b"), (1,)),
    Predicate("C", ("a", "b"), (1,)),
    Predicate("Z", ()),
)
#: P(a) ↦ Q(a[places]) or its negation, each of finite order
CHOICES: tuple[dict[str, Image], ...] = (
    {"P": Image("Q", (0,)), "Q": Image("P", (0,))},
    {"P": Image("Q", (0,), False), "Q": Image("P", (0,), False)},
    {"P": Image("Q", (0,)), "Q": Image("P", (0,), False)},  # of order four
    {"P": Image("P", (0,), False)},
    {"R": Image("R", (1, 0))},
    {"R": Image("R", (1, 0), False), "P": Image("Q", (0,)), "Q": Image("P", (0,))},
    {"S": Image("V", (1, 0)), "V": Image("S", (1, 0))},
    {"S": Image("V", (1, 0), False), "V": Image("S", (1, 0), False), "P": Image("P", (0,), False)},
    {"B": Image("C", (0, 1)), "C": Image("B", (0, 1))},
    {"Z": Image("Z", (), False), "P": Image("P", (0,), False)},
)
NAMES = {"a": ("x", "y", "z"), "b": ("u", "w")}


def symmetric_theory(seed: int, most_free: int = 11) -> tuple[MarkovLogic, dict[str, Image], dict[str, np.ndarray]]:
    """(a model, a relabelling and a renaming that preserve it together)."""
    rng = np.random.default_rng(seed)
    moves = CHOICES[rng.integers(len(CHOICES))]
    sizes = {"a": int(rng.integers(2, 4)), "b": 2}
    chance = 0.25
    predicates = [p for p in PREDICATES if p.name in moves or rng.random() < chance]
    rename = {s: np.arange(n) for s, n in sizes.items()}
    if rng.random() < 0.5:
        rename = {s: np.r_[1, 0, np.arange(2, n)] for s, n in sizes.items()}
    elements = cyclic(moves, rename)
    formulas = []
    for _ in range(rng.integers(1, 3)):
        weight, body, *plus = random_formula(rng, predicates, sizes)
        for some, where in elements:
            image = rewritten(rng, moved_constants(relabelled(body, some), where))
            own = weight
            if plus:
                out = np.empty_like(weight)
                out[np.ix_(*(where["a" if v in NAMES["a"] else "b"] for v in plus[0]))] = weight
                own = out
            if own is not None and rng.random() < 0.3:
                image, own = Not(image), -own
            formulas.append((own, image, *plus))
    known = random_evidence(rng, predicates, sizes, elements, most_free)
    order = rng.permutation(len(formulas)).tolist()
    return lw.network(sizes, predicates, [formulas[k] for k in order], known), dict(moves), rename


def cyclic(
    moves: dict[str, Image], rename: dict[str, np.ndarray]
) -> list[tuple[dict[str, Image], dict[str, np.ndarray]]]:
    """The powers of a relabelling with a renaming."""
    found = [({}, {s: np.arange(len(r)) for s, r in rename.items()})]
    while True:
        some, where = found[-1]
        some, where = composed(some, moves), {s: rename[s][r] for s, r in where.items()}
        if not some and all((r == np.arange(len(r))).all() for r in where.values()):
            return found
        found.append((some, where))


def moved_constants(formula: Formula, where: dict[str, np.ndarray]) -> Formula:
    return map_terms(formula, lambda t: Constant(t.sort, int(where[t.sort][t.index])) if isinstance(t, Constant) else t)


def rewritten(rng: np.random.Generator, formula: Formula) -> Formula:
    """The same in other words."""
    match formula:
        case And(parts) if rng.random() < 0.4:
            return Not(Or(tuple(Not(rewritten(rng, p)) for p in parts[::-1])))
        case Implies(left, right) if rng.random() < 0.4:
            return Or((rewritten(rng, right), Not(left)))
        case Iff(left, right) if rng.random() < 0.4:
            return Iff(Not(right), Not(rewritten(rng, left)))
        case Exist(names, body) if rng.random() < 0.4:
            return Not(Forall(names, Not(rewritten(rng, body))))
    return Not(Not(formula)) if rng.random() < 0.1 else formula


def random_formula(rng: np.random.Generator, predicates: list[Predicate], sizes: dict[str, int]) -> tuple:
    named, used = rng.random() < 0.25, {}

    def term(sort: str):
        if named and rng.random() < 0.4:
            return sort, int(rng.integers(sizes[sort]))
        name = NAMES[sort][rng.integers(len(NAMES[sort]) - (rng.random() < 0.7))]
        used[name] = sort
        return name

    def body(depth: int) -> Formula:
        if depth == 0 or rng.random() < 0.3:
            p = predicates[rng.integers(len(predicates))]
            found = lw.at(p.name, *(term(s) for s in p.sorts))
            return Not(found) if rng.random() < 0.3 else found
        parts = body(depth - 1), body(depth - 1)
        kind = (And, Or, Implies, Iff)[rng.integers(4)]
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(2)
    if used and rng.random() < 0.25:
        name = sorted(used)[rng.integers(len(used))]
        del used[name]
        whole = (Exist, Forall)[rng.integers(2)]((name,), whole)
    if {"x", "y"} <= set(used) and rng.random() < 0.2:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    if used and rng.random() < 0.2:
        plus = (sorted(used)[0],)
        return rng.choice([-0.3, 0.3, 0.7], size=[sizes[used[plus[0]]]]), whole, plus
    return (None if rng.random() < 0.1 else float(rng.choice([-1.0, 0.5, 1.25]))), whole


def random_evidence(rng, predicates, sizes, elements, most_free) -> dict:
    """Evidence on whole orbits of literals, and on as many as are needed to enumerate."""
    codes: dict[tuple, int] = {}
    every = [(p.name, t) for p in predicates for t in product(*(range(sizes[s]) for s in p.sorts))]
    sorts = {p.name: p.sorts for p in predicates}
    exclusive = {p.name for p in predicates if p.exclusive}

    def orbit(atom: tuple, value: int) -> dict[tuple, int]:
        out = {}
        for some, where in elements:
            name, row = atom
            image = some.get(name, Image(name, tuple(range(len(row)))))
            moved = [int(where[s][c]) for s, c in zip(sorts[name], row, strict=True)]
            literal = (image.predicate, tuple(moved[k] for k in image.places))
            if out.setdefault(literal, value == image.sign) != (value == image.sign):
                return {}  # an atom and its negation
        return {a: int(v) for a, v in out.items()}

    for k in rng.permutation(len(every)).tolist():
        free = len(every) - len(codes)
        if every[k] in codes or (free <= most_free and rng.random() < 0.85):
            continue
        value = 0 if every[k][0] in exclusive else int(rng.random() < 0.5)
        codes |= {a: v for a, v in orbit(every[k], value).items() if a not in codes}
    known: dict[str, list] = {}
    for (name, row), value in codes.items():
        known.setdefault(name, []).append((row, value))
    return known


@cache
def usable(seed: int) -> tuple[MarkovLogic, dict[str, Image], dict[str, np.ndarray]]:
    """The first theory from a seed on that has a possible state and few enough to list them."""
    for one in range(seed, seed + 100):
        model, moves, rename = symmetric_theory(one)
        try:
            free = sum(model.knowledge.free_count(p) for p in model.predicates)
            symmetries(model, "none")
        except Unsatisfiable:
            continue
        if free <= 12 and not np.isneginf(lw.worlds(model)[2]).all():
            return model, moves, rename
    raise AssertionError(seed)


def orbit_marginals(group: RenamingSymmetries) -> tuple[np.ndarray, np.ndarray]:
    """For every orbit the least and the largest probability of its atoms, by enumeration."""
    low, high = np.full(group.orbit_count, 2.0), np.full(group.orbit_count, -1.0)
    for (name, row), p in lw.marginals(group.model).items():
        k = group.orbit_number(name, row)
        if k >= 0:
            low[k], high[k] = min(low[k], p), max(high[k], p)
    return low, high


# --- what is found ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 1000, 20))
def test_what_was_put_in_is_found_and_all_that_is_found_preserves_the_density(seed: int) -> None:
    model, moves, rename = usable(seed)
    for simplify in (True, False):
        group = with_theory(renaming(model, simplify=simplify))
        low, high = orbit_marginals(group)
        assert np.abs(high - low).max(initial=0) < 1e-9
        for k, other in enumerate(group.mirror.tolist()):
            assert other < 0 or abs(low[k] + high[other] - 1) < 1e-9
        if group.theory is not None:
            for g in group.theory.generators:
                assert preserves_density(group, group.theory.dense(g))
    named = any(f.plus or any(isinstance(t, Constant) for t in terms(f.body)) for f in model.formulas)
    still = all((r == np.arange(len(r))).all() for r in rename.values())
    # a predicate that says nothing is left alone; a renaming of constants that formulas name is not always found
    if polynomial(model).predicates >= set(moves) and (still or not named):
        for name, image in moves.items():
            for row in np.ndindex(model.shape(name)):
                where = [int(rename[s][c]) for s, c in zip(model.predicates[name].sorts, row, strict=True)]
                there = tuple(where[k] for k in image.places)
                here = group.orbit_number(name, row)
                if here >= 0:
                    to = group.orbit_number(image.predicate, there)
                    assert to == (here if image.sign else group.mirror[here])


def preserves_density(group: RenamingSymmetries, element: np.ndarray) -> bool:
    free, state, log = lw.worlds(group.model)
    place = {a: k for k, a in enumerate(free)}
    moved = np.zeros(len(log), dtype=np.int64)
    for a in free:
        (name, row), sign = literal_image(group, element, a)
        moved |= (state[a] == sign).astype(np.int64) << place[name, row]
    same = np.isclose(log[moved], log, atol=1e-9) | (np.isneginf(log[moved]) & np.isneginf(log))
    return bool(same.all())


@pytest.mark.parametrize("seed", range(0, 300, 20))
def test_random_elements_preserve_the_density(seed: int) -> None:
    group = with_theory(renaming(usable(seed)[0], simplify=False))
    rng = np.random.default_rng(seed)
    assert all(preserves_density(group, group.random_element(rng)) for _ in range(3))


@pytest.mark.parametrize("seed", range(300, 700, 20))
def test_the_ground_model_has_these_symmetries_too(seed: int) -> None:
    group = symmetries(usable(seed)[0])
    assert isinstance(group, RenamingSymmetries)
    whole = symmetries(ground(group.model), "literals")
    names = {name: i for i, name in enumerate(whole.model.names)}
    row_of: dict[int, set[int]] = {}
    for name in group.model.predicates:
        if group.model.predicates[name].exclusive:
            continue
        for row in np.ndindex(group.model.shape(name)):
            k = group.orbit_number(name, row)
            i = names[atom_text(group.model, name, row)]
            if k >= 0 and whole.model.evidence[i] < 0:
                row_of.setdefault(k, set()).add(int(whole.literal_orbit[whole.model.literal_start[i] + 1]))
                if group.mirror[k] >= 0:
                    other = int(whole.literal_orbit[whole.model.literal_start[i]])
                    row_of.setdefault(int(group.mirror[k]), set()).add(other)
    assert all(len(orbits) == 1 for orbits in row_of.values())


EXAMPLES = {
    "exchange": ("R(a)\nS(a)\n0.5 R(x) v S(y)", {}, 2, [6], [-1]),
    "negation": ("P(a)\n0.5 P(x) <=> P(y)", {}, 2, [3], [0]),
    "a field that cancels": ("P(a)\n1 P(x) ^ P(y)\n-3 P(x)", {}, 2, [3], [0]),
    "a field": ("P(a)\n1 P(x) ^ P(y)\n-2.9 P(x)", {}, 1, [3], [-1]),
    "negation and renaming": ("P(a)\n0.5 P(x) <=> P(y)", {"P(A1)": True, "P(A2)": False}, 2, [1], [0]),
    "evidence of one sign": ("P(a)\n0.5 P(x) <=> P(y)", {"P(A1)": True}, 1, [2], [-1]),
    "exchange and renaming": ("R(a)\nS(a)\n0.5 R(x) v S(y)", {"R(A1)": True, "S(A2)": True}, 2, [2, 2], [-1, -1]),
    "evidence on one side": ("R(a)\nS(a)\n0.5 R(x) v S(y)", {"R(A1)": True}, 1, [2, 1, 2], [-1] * 3),
    "mirror images": ("P(a)\nQ(a)\n1 P(x) <=> !Q(x)\n0.3 P(x)\n-0.3 Q(x)", {}, 2, [3, 3], [1, 0]),
    "constants": ("P(a)\nQ(a)\n1 P(A1)\n1 Q(A2)\n0.3 P(x) ^ Q(y)", {}, 2, [2, 2, 2], [-1] * 3),
    "four": ("R(a)\nS(a)\nT(a)\nU(a)\n0.5 R(x) ^ S(y) ^ T(x) ^ U(y)", {}, 8, [12], [-1]),
    "quantifiers": ("E(a,a)\n1 EXIST y E(x,y)\n1 EXIST y E(y,x)", {"E(A1,A2)": True, "E(A1,A3)": True}, 1, None, None),
    "hard": ("P(a)\nQ(a)\nP(x) v Q(x).\n0.4 P(x) ^ Q(y)", {}, 2, [6], [-1]),
    "pinned": ("P(a)\n1 P(x) ^ P(y) ^ P(z) ^ P(u) ^ P(b) ^ P(w) ^ P(s) ^ P(t) ^ P(q) ^ P(r)", {}, 1, [3], [-1]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    text, known, order, sizes, mirror = EXAMPLES[name]
    group = symmetries(read_mln_text(f"a = {{A1, A2, A3}}\n{text}\n", known))
    assert group.kind == ("theory" if order > 1 else "renaming")
    assert (1 if group.theory is None else group.theory.order) == order
    if sizes is not None:
        assert [orbit.size for orbit in group.orbits] == sizes and group.mirror.tolist() == mirror


def test_evidence_that_a_transposition_maps_to_itself_joins_both_directions() -> None:
    text = "a = {A1, A2, A3}\nE(a,a)\nP(a)\n0.5 E(x,y) ^ E(y,z)\n0.3 E(x,y) ^ P(x)\n0.3 E(y,x) ^ P(x)\n"
    group, alone = (symmetries(read_mln_text(text, {"P(A1)": True}), kind) for kind in ("theory", "renaming"))
    assert group.row_number("E(A1,A2)") == group.row_number("E(A2,A1)")
    assert alone.row_number("E(A1,A2)") != alone.row_number("E(A2,A1)")


def test_coefficients_are_those_of_the_weights_as_written() -> None:
    """0.1 + 0.2 is 0.3, though not of floating point numbers."""
    form = polynomial(read_mln_text("a = {A, B}\nP(a)\nQ(a)\n0.1 P(x)\n0.2 P(x)\n0.3 Q(x)\n"))
    assert set(form.terms.values()) == {Fraction(-3, 20)}


# --- sweeps ----------------------------------------------------------------------------------------------------------


def sweep_matrix(model: MarkovLogic, turns: tuple) -> np.ndarray:
    """The exact transition matrix of a sweep: all orders of constants, all choices among turns, all draws."""
    r = plain_model(model, {}, turns=turns)
    atoms = atoms_of(model)
    free = [k for k, (name, *row) in enumerate(atoms) if model.knowledge.value(name, row) is None]
    worlds = []
    for i in np.flatnonzero(np.isfinite(lw.worlds(model)[2])).tolist():
        world = {a: bool(model.knowledge.value(a[0], a[1:])) for a in atoms}
        worlds.append(world | {atoms[k]: bool(i >> j & 1) for j, k in enumerate(free)})
    number = {tuple(w.values()): i for i, w in enumerate(worlds)}
    total, weight = np.zeros((len(worlds), len(worlds))), 0.0
    orders = list(product(*(permutations(range(int(n))) for n in r.data.sorts[:, 1])))
    for order in orders:
        waiting: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        while waiting:  # every branch of the choices among turns
            choices, chance = waiting.pop()
            taken, more = list(choices), []

            def pick(streams, scratch, n, taken=taken, more=more):
                if taken:
                    return taken.pop(0)
                more.append(n)
                return 0

            def shuffle(streams, scratch, items, start, n, order=order):
                here = [k for k, (at, _) in enumerate(r.data.sorts) if at == start]
                if here:
                    items[start : start + n] = order[here[0]]

            r.kernel.pick, r.kernel.shuffle = pick, shuffle
            chain = blank(r)
            r.kernel.begin_sweep(
                r.data.scan, chain.clock, chain.streams, chain.uniform, chain.order, r.data.sorts, r.data.entries
            )
            if more:
                waiting += [((*choices, k), chance / more[0]) for k in range(more[0])]
                continue
            total += chance * one_sweep(r, chain, worlds, number)
            weight += chance
    assert abs(weight - len(orders)) < 1e-12
    return total / weight


def one_sweep(r, chain, worlds: list[dict], number: dict) -> np.ndarray:
    """The matrix of the sweep that has begun: the product of its updates."""
    begun, order = chain.clock.copy(), chain.order.copy()
    whole = np.eye(len(worlds))
    for _ in range(r.free_sites):
        matrix = np.zeros((len(worlds), len(worlds)))
        for i, world in enumerate(worlds):
            for branch in (False, True):
                put_world(r, chain, world)
                chain.clock[:], chain.order[:] = begun, order
                r.kernel.draw = lambda uniform, chance, branch=branch: branch
                assert advance(r, chain, 1) == 1
                chance = chain.chance[0] if branch else 1 - chain.chance[0]
                if chance > 0.0:
                    matrix[i, number[tuple(world_of(r, chain).values())]] += chance
        whole = whole @ matrix
        begun = chain.clock.copy()
    return whole


SWEEPS = {
    "exchange": ("R(a)\nS(a)\n0.5 R(x) v S(y)\n0.3 R(x) <=> S(x)", {}),
    "exchange with evidence": (
        "R(a)\nS(a)\n0.5 R(x) v S(y)\n0.9 R(x) <=> R(y)\n0.9 S(x) <=> S(y)",
        {"R(A1)": True, "S(A2)": True},
    ),
    "transposition": (
        "E(a,a)\nP(a)\n0.5 E(x,y) ^ E(y,z)\n0.3 E(x,y) ^ P(x)\n0.3 E(y,x) ^ P(x)",
        {"P(A1)": True, "P(A2)": False},
    ),
    "tied": (
        "P(a,a)\nQ(a,a)\nS(a,a)\nR(a,a)\nP(x,y) <=> Q(y,x).\nS(x,y) <=> R(y,x).\n"
        "0.5 P(x,y) ^ P(y,z)\n0.5 R(x,y) ^ R(y,z)\n-1 P(x,y) v R(x,y)\n0.7 P(x,y) ^ R(y,x)",
        {f"{p}(A{k},A{k})": k == 1 for p in "PR" for k in (1, 2)},  # P leads, and S, the image of Q
    ),
    "negation": ("P(a)\nQ(a)\n0.7 P(x) <=> P(y)\n1.1 P(x) <=> Q(x)", {}),
}


def state_map(model: MarkovLogic, group: RenamingSymmetries, element: np.ndarray) -> np.ndarray:
    atoms = [(name, tuple(row)) for name, *row in atoms_of(model)]
    free = [a for a in atoms if model.knowledge.value(*a) is None]
    place = {a: k for k, a in enumerate(free)}
    images = [literal_image(group, element, a) for a in free]
    index = np.arange(2 ** len(free))
    return sum(
        (
            ((index >> place[a] & 1) == sign).astype(np.int64) << place[b]
            for a, (b, sign) in zip(free, images, strict=True)
        ),
        0 * index,
    )


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_commutes_with_the_symmetries_of_the_theory(name: str) -> None:
    text, known = SWEEPS[name]
    model = with_forced_atoms(read_mln_text(f"a = {{A1, A2}}\n{text}\n", known))
    group = with_theory(renaming(model, simplify=False))
    assert group.theory is not None
    sweep = sweep_matrix(model, group.turns)
    _, _, log = lw.worlds(model)
    legal = np.flatnonzero(np.isfinite(log))
    pi = np.exp(log - log.max())[legal]
    assert np.abs(pi @ sweep - pi).max() < 1e-12 * pi.sum()
    dense = [state_map(model, group, group.theory.dense(g)) for g in group.theory.generators]
    maps = [np.searchsorted(legal, g[legal]) for g in dense]
    assert all(np.abs(sweep[np.ix_(g, g)] - sweep).max() < 1e-12 for g in maps)
    if group.turns:  # without turns it does not commute
        fixed = sweep_matrix(model, ())
        assert max(np.abs(fixed[np.ix_(g, g)] - fixed).max() for g in maps) > 1e-4


# --- estimates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["exchange", "negation", "mirror images", "negation and renaming", "exchange and renaming"]
)
def test_the_statistics_have_the_right_means_and_no_more_spread(name: str) -> None:
    """F of a state, with mirror images, has the marginal for its mean, and at most the variance of an atom."""
    text, known, *_ = EXAMPLES[name]
    group = symmetries(read_mln_text(f"a = {{A1, A2, A3}}\n{text}\n", known))
    free, state, log = lw.worlds(group.model)
    p = np.exp(log - log.max())
    p /= p.sum()
    f = np.zeros((len(log), group.orbit_count))
    for atom in free:
        f[:, group.orbit_number(*atom)] += state[atom] / group.sizes[group.orbit_number(*atom)]
    joint = with_mirror_images(Means(f, f, f**2), group.mirror, group.sizes)
    for atom in free:
        k, mean = group.orbit_number(*atom), p @ state[atom]
        assert abs(p @ joint.f[:, k] - mean) < 1e-12
        assert p @ (joint.f[:, k] - mean) ** 2 <= mean * (1 - mean) + 1e-12
        if group.mirror[k] == k:
            assert (joint.f[:, k] == 0.5).all()
    assert joint.square is not None and (joint.square >= joint.f**2 - 1e-12).all()


@pytest.mark.parametrize("sampler", [Gibbs(), Gibbs("random"), "mcsat", "lifted"], ids=str)
def test_a_model_without_a_field_is_at_a_half_from_any_sample(sampler) -> None:
    model = read_mln_text("a = {A1, A2, A3, A4}\nP(a)\n1.5 P(x) <=> P(y)\n")
    found = marginals(model, sampler=sampler, chains=2, sweeps=20, seed=3)
    assert found["P(A2)"].probability == 0.5 and found["P(A2)"].mcse == 0.0
    assert found.run["symmetries"] == "theory"


def test_modes_that_are_mirror_images_are_averaged_exactly() -> None:
    model = read_mln_text("P(a)\n0.05 P(x) <=> P(y)\n", domain={"a": 30})  # nearly all true, or nearly all false
    found = marginals(model, chains=8, sweeps=200, seed=3)
    assert len(found.run["regions"]) == 2 and found.trusted
    assert abs(found["P(A1)"].probability - 0.5) < 1e-12 and found["P(A1)"].half_width < 1e-12


def test_exchanged_predicates_share_their_probability_from_any_sample() -> None:
    model = read_mln_text("R1(a)\nS1(a)\n0.5 R1(x) v S1(y)\n", domain={"a": 20})
    found = marginals(model, sampler=Gibbs(), chains=4, sweeps=200, seed=3)
    truth = exact(model)["R1(A1)"].probability
    assert found["R1(A1)"] == found["S1(A1)"] and abs(found["R1(A1)"].probability - truth) < 0.01
    alone = marginals(model, sampler=Gibbs(), chains=4, sweeps=200, seed=3, symmetries="renaming")
    assert alone.run["symmetries"] == "renaming" and len(alone.orbits) == 2


def test_a_mirror_image_has_the_other_probability() -> None:
    model = read_mln_text(
        "P(a)\nQ(a)\n1 P(x) <=> !Q(x)\n0.3 P(x)\n-0.3 Q(x)\n0.1 P(x) ^ P(y)\n0.1 !Q(x) ^ !Q(y)\n", domain={"a": 5}
    )
    found = marginals(model, sampler=Gibbs(), chains=4, sweeps=200, seed=3)
    assert abs(found["P(A1)"].probability + found["Q(A2)"].probability - 1) < 1e-12
    assert found["P(A1)"].mcse == pytest.approx(found["Q(A2)"].mcse)


@pytest.mark.parametrize("name", ["exchange", "negation and renaming", "mirror images", "constants"])
def test_queries_are_averaged_over_their_images(name: str) -> None:
    """All members of a query's orbit have its probability; `satisfied` counts those that hold."""
    text, known, *_ = EXAMPLES[name]
    group = symmetries(read_mln_text(f"a = {{A1, A2, A3}}\n{text}\n", known))
    last = list(group.model.predicates)[-1]
    queries = [f"{last}(A3) ^ !{last}(A1)", f"{last}(A3) => {next(iter(group.model.predicates))}(A2)"]
    asked = logic_question(group, queries, "orbit")
    _, state, log = lw.worlds(group.model)
    p = np.exp(log - log.max())
    p /= p.sum()
    for query, cells in asked.cells.items():
        true = np.zeros(len(log))
        for i in range(len(log)):
            holds = {
                place: np.array([bool(state[place, (c,)][i]) for c in range(3)]) for place in group.model.predicates
            }
            some = [asked.counted[k] for k in cells.places]
            true[i] = sum(satisfied(q, lambda atom, at, holds=holds: holds[atom.predicate][at[0]]) for q in some)
        want = p @ lw.holds(asked.queries[query].formula, {}, state, group.model, {})
        assert abs(p @ true / cells.size - want) < 1e-12
    assert len(asked.counted) > len(asked.cells)


# --- planted bugs ----------------------------------------------------------------------------------------------------

MUTANTS = {
    "a sign is forgotten": (polynomials, "sign = sign if same else -sign", "sign = sign"),
    "arguments stay in place": (polynomials, "term(args[k]) for k in places", "term(args[k]) for k in sorted(places)"),
    "sizes do not count": (polynomials, "total *= model.sorts[sorts[k]].size - taken[sorts[k]]", "total *= 1"),
    "equal variables are not told apart": (
        polynomials,
        "yield [*blocks[:k], [*block, last], *blocks[k + 1 :]]",
        "pass",
    ),
    "quantified parts keep their signs": (polynomials, "np.flip(table, tuple(turned)) if turned else table", "table"),
    "evidence is not looked at": (evidence_renamings, "same_relations(known, evidence) and self", "self"),
    "orbits of other cells": (joining, "a, b = sorted((image.places[i], image.places[j]))", "a, b = i, j"),
    "arguments of cells stay in place": (joining, "np.argsort(image.places).tolist()", "range(len(sorts))"),
    "signs of orbits are forgotten": (joining, "np.full(len(pairs), int(image.sign))", "np.ones(len(pairs))"),
}
#: a theory over three constants, evidence, the number of orbits, and how many of them have a mirror image
TRAPS = (
    ("P(a)\n1 P(x)\n0.5 P(x) <=> P(y)", {}, 1, 0),
    ("E(a,a)\nP(a)\n0.8 E(x,y) ^ P(x)", {"P(A1)": True}, 6, 0),
    ("E(a,a)\nP(a)\n0.8 E(x,y) ^ P(x)\n0.8 E(y,x) ^ P(x)", {"P(A1)": True}, 5, 0),
    ("P(a)\n0.5 P(x) <=> P(y)", {"P(A1)": True}, 1, 0),
    ("P(a)\n1 P(x) ^ P(y)\n-2 P(x)", {}, 1, 0),
    ("P(a)\n0.5 P(x) <=> P(y)\n0.3 P(A1)\n0.3 !P(A2)", {}, 3, 3),
    ("P(a)\nQ(a)\n0.5 P(x) <=> P(y)\n1 P(x) ^ Q(y)\n1 EXIST x Q(x)", {}, 2, 0),
    ("P(a)\n1 P(x) <=> P(y)\n-1 P(x) <=> P(y)\n1 EXIST x P(x)", {}, 1, 0),
    ("P(a)\nQ(a)\n1 P(x) <=> !Q(x)\n0.3 P(x)\n-0.3 Q(x)", {}, 2, 2),
    (
        "P(a)\nQ(a)\nR(a)\n0.7 R(x) ^ P(x) ^ P(y)\n0.7 R(x) ^ Q(x) ^ Q(y)\n0.4 P(x) ^ Q(y)",
        {"P(A1)": True, "P(A2)": False, "Q(A1)": False, "Q(A2)": True, "R(A1)": True, "R(A2)": False, "R(A3)": False},
        2,
        0,
    ),
    (
        "E(a,a)\nF(a,a)\n0.5 E(x,y) ^ F(y,x)\n0.3 E(x,y) ^ E(y,z)\n0.3 F(x,y) ^ F(y,z)",
        {"E(A1,A2)": True, "F(A2,A1)": True} | {f"{p}(A3,A{k})": False for p in "EF" for k in (1, 2, 3)},
        5,
        0,
    ),
)
TERNARY = "T(a,a,a)\nP(a)\n0.5 T(x,y,z) ^ P(x)\n0.5 T(x,y,z) ^ P(y)\n0.3 T(x,y,z) ^ T(z,z,y)\n0.3 T(x,y,z) ^ T(z,z,x)"


def wrong(text: str, known: dict[str, bool], orbits: int, mirrored: int, constants: str = "A1, A2, A3") -> bool:
    """Whether what is found contradicts enumeration, or is not what should be found."""
    group = with_theory(renaming(read_mln_text(f"a = {{{constants}}}\n{text}\n", known), simplify=False))
    low, high = orbit_marginals(group)
    gap = [abs(low[k] + high[m] - 1) for k, m in enumerate(group.mirror.tolist()) if m >= 0]
    bad = max([*np.abs(high - low), *gap], default=0.0) > 1e-9
    return bad or group.orbit_count != orbits or sum(group.mirror >= 0) != mirrored


def any_wrong() -> bool:
    return any(wrong(*trap) for trap in TRAPS) or wrong(TERNARY, {"P(A1)": True}, 7, 0, "A1, A2")


def test_the_traps_are_answered_rightly() -> None:
    assert not any_wrong()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    module, old, new = MUTANTS[name]
    with planted(module, old, new):
        assert any_wrong()
