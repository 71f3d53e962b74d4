"""Hanging and loose atoms: their orbits share marginals, the permutations preserve every world, and the figures
hold.
"""

from __future__ import annotations

from itertools import product

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logic_worlds import at

from definetti.model.logic import And, Equal, Exist, Iff, Implies, Not, Or, Predicate, Variable
from definetti.symmetry.atom_generators import atom_generators
from definetti.symmetry.logic import renaming

PREDICATES = (
    Predicate("P", ("a",)),
    Predicate("Q", ("a",)),
    Predicate("U", ("b",)),
    Predicate("R", ("a", "a")),
    Predicate("S", ("a", "b")),
    Predicate("V", ("b", "a")),
    Predicate("T", ("a", "a")),
    Predicate("Z", ()),
)
VARIABLES = {"a": ("x", "y"), "b": ("u",)}


@st.composite
def formulas(draw, predicates):
    """Mostly of one or two variables; now and then a quantifier, a third variable, a constant or a hard formula."""
    odd = draw(st.integers(0, 9))
    used: set[str] = set()

    def body(depth):
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            p = draw(st.sampled_from(predicates))
            names = [
                draw(st.sampled_from((*VARIABLES[s], "z") if odd == 0 and s == "a" else VARIABLES[s])) for s in p.sorts
            ]
            used.update(names)
            return at(p.name, *(("a", 0) if odd == 1 and n == "x" and draw(st.booleans()) else n for n in names))
        kind = draw(st.sampled_from((Not, And, Or, Implies, Iff)))
        if kind is Not:
            return Not(body(depth - 1))
        parts = body(depth - 1), body(depth - 1)
        return kind(parts) if kind in (And, Or) else kind(*parts)

    whole = body(3)
    free = {t.name for a in lw.atoms_in(whole) for t in a.args if isinstance(t, Variable)}
    if odd == 2 and "y" in free:
        whole = Exist(("y",), whole)
    elif {"x", "y"} <= free and draw(st.integers(0, 4)) == 0:
        whole = Or((Equal(Variable("x"), Variable("y")), whole))
    return draw(st.sampled_from((None, -1.0, 0.5, 0.5, 2.0) if odd > 6 else (-1.0, 0.5, 0.5, 2.0))), whole


@st.composite
def theories(draw, most_free=10):
    sizes = {"a": draw(st.integers(1, 4)), "b": draw(st.integers(1, 3))}
    predicates = [p for p in PREDICATES if draw(st.booleans())] or [PREDICATES[0], PREDICATES[3]]
    known, free = {}, 0
    for p in predicates:
        tuples = list(product(*(range(sizes[s]) for s in p.sorts)))
        unknown_part = draw(st.sampled_from((0, 1, 3)))
        truth = {t: draw(st.sampled_from((0, 1) + (2,) * unknown_part)) for t in tuples}
        for t in tuples:
            if truth[t] == 2:
                free += 1
                if free > most_free:
                    truth[t] = draw(st.integers(0, 1))
        known[p.name] = [(t, v) for t, v in truth.items() if v < 2]
    made = [draw(formulas(predicates)) for _ in range(draw(st.integers(1, 4)))]
    return lw.network(sizes, predicates, made, known)


def check(model):
    group = renaming(model)
    free, state, log = lw.worlds(model)
    assert {(n, c) for n, c in lw.atoms(model) if group.orbit_number(n, c) >= 0} == set(free)
    counted = np.bincount([group.orbit_number(*a) for a in free], minlength=group.orbit_count)
    assert np.array_equal(counted, group.sizes) and (counted > 0).all()
    strict = renaming(model, simplify=False)
    assert group.orbit_count <= strict.orbit_count
    coarse = {strict.orbit_number(*a): group.orbit_number(*a) for a in free}
    assert all(coarse[strict.orbit_number(*a)] == group.orbit_number(*a) for a in free)  # evidence's orbits refine ours
    if not np.isfinite(log).any():
        return group
    place = {a: k for k, a in enumerate(free)}
    edges = []
    for image in atom_generators(group):
        whole = {a: image.get(a, a) for a in free}
        assert sorted(whole.values()) == sorted(free)  # a permutation
        moved = sum((state[a].astype(np.int64) << place[whole[a]] for a in free), np.zeros(len(log), dtype=np.int64))
        same = np.isclose(log[moved], log, atol=1e-11) | (np.isneginf(log[moved]) & np.isneginf(log))
        assert same.all()
        edges += [(place[a], place[b]) for a, b in whole.items()]
    assert connected(len(free), edges) == group.orbit_count  # the orbits are those of these generators
    p = np.exp(log - log.max())
    answers = {a: float(p[state[a]].sum() / p.sum()) for a in free}
    for number in range(group.orbit_count):
        shared = [answers[a] for a in free if group.orbit_number(*a) == number]
        assert max(shared) - min(shared) < 1e-10
    return group


def connected(count, edges):
    root = list(range(count))

    def find(i):
        while root[i] != i:
            i = root[i]
        return i

    for a, b in edges:
        root[find(a)] = find(b)
    return sum(find(i) == i for i in range(count))


@given(theories())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_random_theories(model):
    check(model)


@pytest.mark.parametrize("known_smokers", [0, 1, 2])
def test_smokers_by_enumeration(known_smokers):
    known = {
        "Smokes": [((0,), int(known_smokers > 0)), ((1,), int(known_smokers > 1))],
        "Friends": [((0, 2), 1), ((1, 3), 1)],
    }
    known["Friends"] += [((q, q), 0) for q in range(4)] + [((2, 3), 0)]
    group = check(lw.smokers(4, known))
    assert group.deferred["Friends"].any()


def test_the_figures_of_the_papers_evidence():
    """Six orbits without a known smoker, 35 with three: as many as the simplified ground model. Renaming: hundreds."""
    none = renaming(lw.smokers(50, lw.paper_evidence(50, 0)))
    assert {o.representative: o.size for o in none.orbits} == {
        "Smokes(P0)": 45,
        "Cancer(P0)": 45,
        "Cancer(P13)": 5,
        "Friends(P0,P2)": 45 * 44,
        "Friends(P0,P13)": 45 * 5,  # hanging
        "Friends(P0,P0)": 245,  # loose
    }
    assert renaming(lw.smokers(50, lw.paper_evidence(50, 3))).orbit_count == 35
    assert renaming(lw.smokers(50, lw.paper_evidence(50, 3)), simplify=False).orbit_count == 455


def test_large_models_with_evidence_are_fast():
    n = 1000
    group = renaming(lw.smokers(n, lw.paper_evidence(n, 20)))
    assert group.seconds < 1.0 and group.orbit_count < 60
    assert int(group.sizes.sum()) == n * (n + 2) - sum(len(e.values) for e in group.model.evidence.values())


def test_joint_queries_move_with_their_constants_only_where_core():
    group = renaming(lw.smokers(50, lw.paper_evidence(50, 0)))
    names = group.model.sorts["person"].constants
    a, b = names.index("P0"), names.index("P2")
    core = [("Smokes", (a,)), ("Friends", (a, b))]
    assert group.tuple_orbit([("person", a), ("person", b)], atoms=core).size == 45 * 44
    hanging = [("Friends", (a, 13))]
    assert not group.is_core(*hanging[0])
    assert group.tuple_orbit([("person", a), ("person", 13)], atoms=hanging).size < 45
