"""Renamings of constants: sound (they preserve the density of every world) and complete (none is missed)."""

from __future__ import annotations

import math
from itertools import permutations, product

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import assume, given, settings
from logic_worlds import at
from small_theories import renaming_theories

from definetti import show
from definetti.errors import TooLarge, UnknownName
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import And, Evidence, Implies, MarkovLogic, Predicate
from definetti.readers.logic.mln import read_mln_text
from definetti.symmetry.logic.constants import node_generators
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.relations import formula_shape
from definetti.symmetry.logic.renaming import renaming

# --- independent definitions ---------------------------------------------------------------------------------


def all_renamings(model: MarkovLogic):
    """Every choice of one permutation per sort."""
    names = list(model.sorts)
    for choice in product(*(permutations(range(model.sorts[s].size)) for s in names)):
        yield dict(zip(names, choice, strict=True))


def preserved(model: MarkovLogic, renaming_of: dict) -> bool:
    known = lw.decided(model)

    def image(atom):
        name, constants = atom
        return name, tuple(renaming_of[s][c] for s, c in zip(model.predicates[name].sorts, constants, strict=True))

    if {image(a): v for a, v in known.items()} != known:
        return False

    def all_weights(move):
        rows = []
        for f in model.formulas:
            constants, shape = formula_shape(f)
            fixed = [(c.sort, move[c.sort][c.index]) for c in constants]
            array = np.asarray(np.inf if f.weight is None else f.weight)
            for index in np.ndindex(array.shape):
                plus = [(f.sorts[v], move[f.sorts[v]][i]) for v, i in zip(f.plus, index, strict=True)]
                rows.append((repr(shape), fixed, plus, float(array[index])))
        return sorted(rows)

    same = {s: range(model.sorts[s].size) for s in model.sorts}
    return all_weights(renaming_of) == all_weights(same)


def lift(model: MarkovLogic, group, nodes: np.ndarray):
    """A permutation of nodes as a map of ground atoms."""
    start = group.nodes.start

    def image(atom):
        name, constants = atom
        sorts = model.predicates[name].sorts
        return name, tuple(int(nodes[start[s] + c]) - start[s] for s, c in zip(sorts, constants, strict=True))

    return image


# --- the tests -----------------------------------------------------------------------------------------------


@given(renaming_theories())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_renamings_are_sound_and_complete(model):
    group = renaming(model, simplify=False)
    legal = [r for r in all_renamings(model) if preserved(model, r)]
    assert group.order == len(legal)
    known = lw.decided(model)
    orbits = {}
    for name, constants in lw.atoms(model):
        number = group.orbit_number(name, constants)
        assert (number == -1) == ((name, constants) in known)
        sorts = model.predicates[name].sorts
        images = {tuple(r[s][c] for s, c in zip(sorts, constants, strict=True)) for r in legal}
        if number >= 0:
            orbits[number] = orbits.get(number, set()) | {(name, constants)}
            assert group.sizes[number] == len(images)
            assert all(group.orbit_number(name, image) == number for image in images)
    assert sorted(orbits) == list(range(group.orbit_count))
    assert all(len(members) == group.sizes[number] for number, members in orbits.items())


@given(renaming_theories(most_free=9))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_generators_preserve_every_world_and_orbits_share_marginals(model):
    group = renaming(model, simplify=False)
    free, state, log = lw.worlds(model)
    assume(np.isfinite(log).any())
    place = {a: k for k, a in enumerate(free)}
    for nodes in node_generators(group.constants):
        image = lift(model, group.constants, nodes)
        moved = np.zeros(len(log), dtype=np.int64)
        for a in free:
            moved += state[a].astype(np.int64) << place[image(a)]
        np.testing.assert_allclose(log[moved], log, atol=1e-12)
    answers = lw.marginals(model)
    for number in range(group.orbit_count):
        shared = [answers[a] for a in free if group.orbit_number(*a) == number]
        assert max(shared) - min(shared) < 1e-12


def test_the_papers_evidence_and_the_tests_can_fail():
    known = lw.paper_evidence(4, 1, seed=1, known=0.5, friends=1)
    model = lw.smokers(4, known)
    group = renaming(model, simplify=False)
    answers = lw.marginals(lw.smokers(3, {"Smokes": [((0,), 1)], "Friends": [((0, 1), 1)]}))
    assert abs(answers["Smokes", (1,)] - answers["Smokes", (2,)]) > 1e-3  # evidence does split an orbit
    assert group.order < math.factorial(4)


def test_orbits_are_counted_named_and_tested_without_listing():
    group = renaming(lw.smokers(100))
    assert group.order == math.factorial(100)
    assert [(o.representative, o.size) for o in group.orbits] == [
        ("Smokes(P0)", 100),
        ("Cancer(P0)", 100),
        ("Friends(P0,P1)", 9900),
        ("Friends(P0,P0)", 100),
    ]
    orbit = group.orbit_of("Friends(P3,P7)")
    assert (orbit.size, orbit.representative) == (9900, "Friends(P0,P1)")
    assert (
        orbit.contains("Friends( P9 , P4 )")
        and not orbit.contains("Friends(P9,P9)")
        and not orbit.contains("Smokes(P1)")
    )
    assert len(set(orbit)) == 9900
    with pytest.raises(UnknownName, match="no constant 'Bob'"):
        group.orbit_of("Smokes(Bob)")
    with pytest.raises(UnknownName, match="no predicate"):
        group.orbit_of("Smoke(P1)")
    with pytest.raises(UnknownName, match="2 arguments"):
        group.orbit_of("Friends(P1)")


def test_listing_agrees_with_orbits():
    group = renaming(lw.smokers(6, {"Smokes": [((0,), 1)], "Friends": [((0, 1), 1), ((2, 0), 0)]}))
    listed = dict(group.atoms())
    assert len(listed) == 48
    for text, number in listed.items():
        orbit = group.orbit_of(text)
        assert orbit.number == number and text in set(orbit)
        assert orbit.size == (1 if number < 0 else sum(k == number for k in listed.values()))


def test_whole_classes_are_swapped():
    """Two people, each with two friends of their own: the couples of friends change places with their owners."""
    known = {"Friends": [((0, 2), 1), ((0, 3), 1), ((1, 4), 1), ((1, 5), 1)]}
    group = renaming(lw.smokers(7, known, transitivity=True))
    assert group.order == 2 * 2 * 2
    assert group.orbit_of("Smokes(P0)").size == 2 and group.orbit_of("Smokes(P2)").size == 4
    assert group.orbit_of("Friends(P2,P3)").size == 4 and group.orbit_of("Friends(P2,P4)").size == 8
    assert group.orbit_of("Friends(P0,P4)").size == 4
    assert group.orbit_of("Friends(P6,P0)").size == 2 and group.orbit_of("Friends(P4,P6)").size == 4
    orbit = group.tuple_orbit([("person", 0), ("person", 2), ("person", 3)])
    assert orbit.size == 4 and set(orbit) == {(0, 2, 3), (0, 3, 2), (1, 4, 5), (1, 5, 4)}
    assert (0, 2, 3) in orbit and (0, 2, 4) not in orbit
    capped = group.tuple_orbit([("person", 0), ("person", 2), ("person", 3)], cap=1)
    assert capped.size == 2 and capped.notices[0].kind == "fallback"


def test_mutual_friends_are_one_class():
    known = {"Friends": [((a, b), 1) for a in range(8) for b in range(8) if a != b]}
    group = renaming(lw.smokers(20, known, transitivity=True))
    assert group.order == math.factorial(8) * math.factorial(12)
    assert len(group.constants.quotient.generators) == 0


@given(renaming_theories())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_tuple_orbits_are_those_of_the_group(model):
    group = renaming(model, simplify=False)
    legal = [r for r in all_renamings(model) if preserved(model, r)]
    constants = [("a", 0), ("b", 0), ("a", model.sorts["a"].size - 1), ("a", 0)]
    expected = {tuple(r[s][c] for s, c in constants) for r in legal}
    orbit = group.tuple_orbit(constants)
    assert set(orbit) == expected and orbit.size == len(expected)


def test_formulas_of_one_shape_are_rows_of_a_relation():
    """Constants that formulas name alike stay interchangeable."""
    formulas = [(0.5, Implies(at("Smokes", ("person", k)), at("Cancer", "x"))) for k in range(5)]
    group = renaming(lw.network({"person": 12}, lw.SMOKERS, formulas))
    assert group.order == math.factorial(5) * math.factorial(7)
    assert group.orbit_of("Smokes(P0)").size == 5


def test_names_that_need_quotes():
    model = lw.smokers(2)
    sort = type(model.sorts["person"])("person", ("Anna Maria", 'Bo"b'))
    model = MarkovLogic({"person": sort}, model.predicates, model.formulas)
    text = atom_text(model, "Friends", (0, 1))
    assert text == 'Friends("Anna Maria","Bo\\"b")'
    assert renaming(model, simplify=False).orbit_of(text).contains(text)


def test_large_models_are_fast_and_small(cpu_limit):
    n = 1000
    with cpu_limit(1.0):
        group = renaming(lw.smokers(n, lw.paper_evidence(n, 20), transitivity=True))
    assert int(group.sizes.sum()) == n * (n + 2) - sum(len(e.values) for e in group.model.evidence.values())


def test_evidence_objects_are_read_as_rows():
    model = lw.smokers(3)
    empty = MarkovLogic(
        model.sorts,
        model.predicates,
        model.formulas,
        {"Smokes": Evidence(np.zeros((0, 1), np.int32), np.zeros(0, np.int8))},
    )
    assert renaming(empty).order == 6


@given(renaming_theories())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_members_say_rows_or_known_values(model):
    members = AtomMembers(renaming(model))
    known = lw.decided(model)
    texts = list(members)
    assert len(texts) == len(members) == len(set(texts))
    for text, atom in zip(texts, lw.atoms(model), strict=True):
        found = members.find(text)
        assert found.probability == known[atom] if atom in known else found == members.symmetries.orbit_number(*atom)


def test_too_many_kinds_of_atoms_are_said():
    model = lw.smokers(30, lw.paper_evidence(30, 1))
    group = renaming(model, most_cells=100)
    assert set(group.atom_orbits) == {"Smokes", "Cancer"} and [n.kind for n in group.notices] == ["fallback"]
    assert group.orbit_of("Friends(P3,P4)").size == 1 and group.orbit_of("Smokes(P3)").size >= 1
    with pytest.raises(TooLarge, match="as a query"):
        AtomMembers(group).find("Friends(P3,P3)")


def test_too_many_kinds_of_pairs_leave_the_renamings():
    names = [f"P{k}" for k in range(8)]
    predicates = [*(Predicate(p, ("a",)) for p in names), Predicate("R", ("a", "a"))]
    rng = np.random.default_rng(0)
    known = {p: [((c,), int(v)) for c, v in enumerate(rng.integers(0, 3, 200)) if v < 2] for p in names}
    formulas = [(0.5, Implies(And(tuple(at(p, "x") for p in names)), at("R", "x", "y")))]
    model = lw.network({"a": 200}, predicates, formulas, known)
    group = renaming(model)
    assert [n.kind for n in group.notices] == ["fallback"]
    assert group.orbit_count == renaming(model, simplify=False).orbit_count


def test_the_order_has_all_its_digits():
    group = renaming(lw.smokers(3000))
    text = show.digits(group.order)
    assert len(text) == 9131 and text.endswith("000") and group.generator_count == 2999
    assert show.digits(10**9999 + 7) == "1" + "0" * 9998 + "7"


def test_late_atoms_are_those_that_hang_or_are_loose():
    group = renaming(lw.smokers(12, lw.paper_evidence(12, 1, known=0.2, friends=3)))
    late = group.late()
    for name, constants in lw.atoms(group.model):
        marked = name in late and bool(late[name][constants])
        assert marked == (group.orbit_number(name, constants) >= 0 and not group.is_core(name, constants))


def test_a_model_that_was_read():
    model = read_mln_text(
        """
        person = {Anna, Bob, "Carl the 2nd"}
        Smokes(person)
        Friends(person, person)
        1.1 Friends(x,y) ^ Smokes(x) => Smokes(y)
        0.3 Smokes(Anna)
        """
    )
    group = renaming(model)
    assert group.order == 2 and group.orbit_of("Smokes(Bob)").contains('Smokes("Carl the 2nd")')
    assert {o.representative for o in group.orbits} >= {"Smokes(Anna)", "Smokes(Bob)", "Friends(Anna,Bob)"}
