"""Hanging and loose atoms: their orbits share marginals, the permutations preserve every world, and the figures
hold.
"""

from __future__ import annotations

from itertools import combinations

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import given, reject, settings
from logic_worlds import at
from small_theories import evidence_theories

from definetti.errors import Unsatisfiable
from definetti.lumping.atom_generators import atom_generators
from definetti.model.logic.ground import ground
from definetti.model.logic.theory import And, Iff, Implies, Or, Predicate
from definetti.symmetry.find import symmetries
from definetti.symmetry.logic.renaming import renaming


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
    late = [1 << place[a] for a in free if not group.is_core(*a)]
    for i, j in combinations(late, 2):  # independent of each other given the rest, so that the scan commutes
        rest = np.flatnonzero((np.arange(len(p)) & (i | j)) == 0)
        np.testing.assert_allclose(p[rest] * p[rest + i + j], p[rest + i] * p[rest + j], atol=1e-12)
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


@given(evidence_theories())
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


def test_constants_differ_by_what_hangs_on_them():
    """Of the two friends of a known smoker the one whose friendship is open has an atom hanging, the other has none."""
    known = {"Smokes": [((0,), 1)], "Friends": [((0, 1), 0), ((0, 0), 0)]}
    known["Friends"] += [((a, b), 0) for a in (1, 2, 3) for b in (0, a)]
    group = check(lw.smokers(4, known))
    assert not group.orbit_of("Smokes(P1)").contains("Smokes(P2)") and group.orbit_of("Smokes(P2)").size == 2


def test_residuals_differ_by_their_weights():
    """An atom of one weight hangs on one constant, an atom of another weight on the other, both tied to alike atoms."""
    predicates = [Predicate("P", ("a",)), Predicate("R", ("a", "a")), Predicate("T", ("a", "a"))]
    formulas = [
        (w, Implies(And((at(name, "x", "y"), at("P", "x"))), at("P", "y"))) for name, w in (("R", 0.5), ("T", 2.0))
    ]
    pairs = [(a, b) for a in range(3) for b in range(3)]
    known = {"P": [((0,), 1)], "R": [(p, 0) for p in pairs if p != (0, 1)], "T": [(p, 0) for p in pairs if p != (0, 2)]}
    group = check(lw.network({"a": 3}, predicates, formulas, known))
    assert group.orbit_count == 4 and not group.is_core("R", (0, 1))


def test_loose_atoms_of_equal_fields_are_one_orbit():
    """P(b) is in three groundings of weight 0.5, with b itself and with two others; Q(b) in one of weight 1.5."""
    predicates = [Predicate("P", ("a",)), Predicate("Q", ("a",)), Predicate("K", ("a", "a"))]
    formulas = [(0.5, Or((at("P", "y"), at("K", "x", "y")))), (1.5, at("Q", "x"))]
    group = check(lw.network({"a": 3}, predicates, formulas, closed=frozenset({"K"})))
    assert [(o.representative, o.size) for o in group.orbits] == [("P(A0)", 6)]


def test_atoms_tied_to_each_other_do_not_both_hang():
    predicates = [Predicate("P", ("a",)), Predicate("R", ("a", "a")), Predicate("T", ("a", "a"))]
    ties = [(0.7, Iff(at("R", "x", "x"), at("T", "x", "x"))), (0.5, Implies(at("R", "x", "x"), at("P", "x")))]
    known = {name: [((a, 1 - a), 0) for a in (0, 1)] for name in "RT"}
    group = check(lw.network({"a": 2}, predicates, [*ties, (0.5, Implies(at("T", "x", "x"), at("P", "x")))], known))
    assert all(group.is_core(name, (a, a)) for name in "RT" for a in (0, 1))
    alone = check(lw.network({"a": 2}, predicates, ties[1:], known))
    assert not alone.is_core("R", (0, 0)) and alone.is_core("P", (0,))


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


def test_late_atoms_are_marked_some_rows_at_a_time(monkeypatch):
    group = renaming(lw.smokers(50, lw.paper_evidence(50, 3)))
    whole = group.late()
    monkeypatch.setattr("definetti.symmetry.logic.renaming.CHUNK", 128)  # two rows of fifty
    pieces = group.late()
    assert set(whole) == set(pieces) and all(np.array_equal(whole[name], pieces[name]) for name in whole)
    for name, marked in whole.items():
        tuples = np.stack(np.unravel_index(np.arange(marked.size), marked.shape), 1)
        free = [int(k) for k in np.flatnonzero(group.orbit_numbers(name, tuples) >= 0)]
        assert [not group.is_core(name, tuples[k].tolist()) for k in free] == marked.ravel()[free].tolist()


def test_large_models_with_evidence_are_fast(cpu_limit):
    n = 1000
    with cpu_limit(1.0):
        group = renaming(lw.smokers(n, lw.paper_evidence(n, 20)))
    assert group.orbit_count < 60
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


@given(evidence_theories(most_free=14))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_orbits_refine_those_of_the_ground_model(model):
    group = renaming(model)
    try:
        whole = symmetries(ground(model))
    except Unsatisfiable:
        reject()
    rows: dict[int, set[int]] = {}
    for k, name in enumerate(whole.model.names):
        number = group.orbit_of(name).number
        if number >= 0:
            rows.setdefault(number, set()).add(int(whole.row_of[k]))
    assert all(len(found) == 1 for found in rows.values())


def test_as_many_orbits_as_the_ground_model():
    for seed, smokers in ((0, 0), (0, 1), (1, 2)):
        model = lw.smokers(8, lw.paper_evidence(8, smokers, seed, known=0.3, friends=2))
        assert renaming(model).orbit_count == len(symmetries(ground(model)).orbits)
