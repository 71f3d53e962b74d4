"""Forced atoms: every one that is found has its value in all possible worlds, and adding them changes no density."""

from __future__ import annotations

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import given, settings
from logic_worlds import at
from small_theories import evidence_theories

from definetti.constraints.logic.forced_atoms import propagate_lifted
from definetti.errors import Unsatisfiable
from definetti.model.logic.theory import Not, Or, Predicate
from definetti.symmetry.logic.renaming import renaming

ASTHMA = (Predicate("Asthma", ("person",)), *lw.SMOKERS)
ASTHMA_FORMULAS = (
    (None, Or((Not(at("Asthma", "x")), Not(at("Smokes", "x"))))),
    (None, Or((Not(at("Asthma", "x")), Not(at("Friends", "x", "y")), Not(at("Smokes", "y"))))),
    (None, Or((Not(at("Smokes", "x")), at("Cancer", "x")))),
)


def asthma(n, known):
    return lw.network({"person": n}, ASTHMA, ASTHMA_FORMULAS, known)


def test_known_smokers_have_no_asthma_and_their_friends_neither():
    known = {"Smokes": [((0,), 1)], "Friends": [((1, 0), 1), ((0, 2), 1)]}
    more = lw.observed(propagate_lifted(asthma(3, known)))
    assert more["Asthma", (0,)] == 0 and more["Cancer", (0,)] == 1 and more["Asthma", (1,)] == 0
    assert ("Asthma", (2,)) not in more and ("Smokes", (2,)) not in more


def test_a_chain_of_facts_is_followed():
    known = {"Asthma": [((0,), 1)], "Friends": [((0, 1), 1)], "Cancer": [((2,), 0)]}
    more = lw.observed(propagate_lifted(asthma(3, known)))
    assert more["Smokes", (0,)] == 0 and more["Smokes", (1,)] == 0 and more["Smokes", (2,)] == 0
    known["Smokes"] = [((1,), 1)]
    with pytest.raises(Unsatisfiable):
        propagate_lifted(asthma(3, known))


def test_atoms_over_pairs():
    more = lw.observed(propagate_lifted(asthma(3, {"Asthma": [((0,), 1)], "Smokes": [((1,), 1), ((2,), 1)]})))
    assert more["Friends", (0, 1)] == 0 == more["Friends", (0, 2)] and ("Friends", (1, 0)) not in more


@given(evidence_theories(hard=True))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_is_forced_is_forced(model):
    free, state, log = lw.worlds(model)
    possible = np.isfinite(log)
    try:
        more = propagate_lifted(model)
    except Unsatisfiable:
        assert not possible.any()
        return
    added = lw.observed(more).items() - lw.observed(model).items()
    assert all((state[atom][possible] == bool(value)).all() for atom, value in added)
    if possible.any():
        group = renaming(more)
        answers = lw.marginals(model)
        for number in range(group.orbit_count):
            shared = [answers[a] for a in free if group.orbit_number(*a) == number]
            assert max(shared) - min(shared) < 1e-10


def test_large_models():
    n = 1000
    known = lw.paper_evidence(n, 20)
    more = propagate_lifted(asthma(n, known))
    assert len(more.evidence["Cancer"].values) == 20
    assert len(more.evidence["Asthma"].values) >= 20


def test_hard_asthma_by_enumeration():
    """With what is forced put in, orbits are those of a far smaller model; their marginals are equal all the same."""
    known = {"Smokes": [((0,), 1), ((1,), 0)], "Friends": [((1, 0), 1), ((0, 2), 1), ((2, 2), 0), ((3, 3), 0)]}
    known["Cancer"] = [((c,), 1) for c in range(4)]
    model = asthma(4, known)
    answers = lw.marginals(model)
    group, before = renaming(propagate_lifted(model)), renaming(model)
    assert group.orbit_count < before.orbit_count
    for found in (group, before):
        for number in range(found.orbit_count):
            shared = [p for a, p in answers.items() if found.orbit_number(*a) == number]
            assert max(shared) - min(shared) < 1e-10
