"""Hard formulas of Markov logic: legal starts that are spread out, clashes that are named, and chains that know
when they are stuck.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_kernels import plain_model, start

from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.constraints.logic.legal_states import legal
from definetti.constraints.logic.unsat_core import explain
from definetti.errors import Unsatisfiable
from definetti.inference.marginals import marginals
from definetti.model.logic.formulas import holds
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.logic.engine import violations
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.sampling import RelationalSampling
from definetti.samplers.logic.starts import first_states, put, tried_start, wishes
from definetti.samplers.logic.tensors.known_bits import pack
from definetti.samplers.protocol import Plan
from definetti.samplers.run import Illegal
from definetti.symmetry.find import symmetries

ASTHMA = """person={{{people}}}
Smokes(person)
Cancer(person)
Asthma(person)
Friends(person,person)
!Asthma(x) v !Smokes(x).
!Asthma(x) v !Friends(x,y) v !Smokes(y).
!Smokes(x) v Cancer(x).
"""


def asthma(n: int):
    people = ",".join(["A", *(f"P{i}" for i in range(1, n))])
    return read_mln_text(ASTHMA.format(people=people), {"Smokes(A)": True})


# --- starts and clashes ----------------------------------------------------------------------------------------------


def test_a_hard_conjunction_gives_one():
    found = marginals(read_mln_text("n={A,B}\nH(n)\nS(n)\nH(x) ^ S(x).\n"), ["H(A)", "S(B)"], seed=1, sweeps=10)
    assert [(e.probability, e.mcse, e.orbit_size) for e in found.queries.values()] == [(1, 0, 1)] * 2


def test_propagation_sees_formulas_of_three_variables_and_constants():
    text = "n={A,B,C,D}\nF(n,n)\nP(n)\nF(x,y) ^ F(y,z) => F(x,z).\nF(A,x) => P(x).\nP(D) v P(B).\n!P(D).\n"
    model = with_forced_atoms(read_mln_text(text, {"F(A,B)": True, "F(B,C)": True}))
    known = {
        name: {tuple(row): int(v) for row, v in zip(e.tuples.tolist(), e.values, strict=True)}
        for name, e in model.evidence.items()
    }
    assert known["F"][0, 2] == 1 and known["F"][0, 3] == 0 and known["P"] == {(1,): 1, (2,): 1, (3,): 0}


def test_chains_start_in_different_regions():
    group = symmetries(asthma(12))
    r = plain_model(group.model, group.atom_orbits)
    assert [w for w in wishes(r) if w[1]] == [(p, True) for p in ("Smokes", "Cancer", "Asthma", "Friends")]
    states = [start(r, 3, k) for k in range(8)]
    assert all(violations(r, chain) == 0 for chain in states)
    assert r.atoms(states[0], "Smokes").all() and not r.atoms(states[0], "Asthma").any()
    assert r.atoms(states[2], "Asthma").sum() == 11 and r.atoms(states[2], "Smokes").sum() == 1


def cycles() -> MarkovLogic:
    """Permutations without short cycles, stated by formulas over pairs: repair ends where no single flip mends."""
    rules = "EXIST y R(x,y).\nR(x,y) ^ R(x,z) => y = z.\nR(x,y) ^ R(z,y) => x = z.\n!R(x,x).\nR(x,y) => !R(y,x).\n"
    return read_mln_text("n={A,B,C,D,E,F,G}\nR(n,n)\n" + rules)


def test_a_solver_finds_what_repair_cannot():
    r = plain_model(cycles(), {})
    for k in range(3):
        assert tried_start(r, 1, k)[1] is not None
        chain = start(r, 1, k)
        assert violations(r, chain) == 0 and (r.atoms(chain, "R").sum(axis=0) == 1).all()


def test_the_solver_is_asked_in_the_order_of_the_chains():
    """It learns on the way: tried in whatever order, by however many threads, chains start at the same states."""
    found = []
    for run in (map, lambda f, numbers: [f(k) for k in reversed(numbers)][::-1]):
        r = plain_model(cycles(), {})
        found.append([r.atoms(chain, "R") for chain in first_states(r, 1, 6, run)])
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0], axis=0)) > 1


def test_clashes_are_named():
    text = "n={A,B,C}\nP(n)\nQ(n)\nF(n,n)\nP(x) ^ F(x,y) => Q(y).\n!Q(x) v !P(x).\nQ(x) v F(x,x) v P(x).\n1.0 F(x,y)\n"
    with pytest.raises(Unsatisfiable) as error:
        marginals(read_mln_text(text, {"P(A)": True, "P(B)": True, "F(A,B)": True, "F(C,C)": True}), seed=1)
    message = str(error.value)
    assert all(part in message for part in ("F(x,y) => Q(y)", "!Q(x) v !P(x)", "P(A)", "P(B)", "F(A,B)"))
    assert "F(C,C)" not in message and "Q(x) v F(x,x) v P(x)" not in message


def test_a_clash_at_a_hundred_constants_is_told_at_once(cpu_limit):
    text = "n={1,...,100}\nP(n)\nQ(n)\nF(n,n)\nP(x) v Q(x).\n!P(x) v Q(x).\nP(x) v !Q(x).\n!P(x) v !Q(x).\n"
    with cpu_limit(10), pytest.raises(Unsatisfiable, match="clash"):
        marginals(read_mln_text(text + "F(x,y) ^ F(y,z) => F(x,z).\n"), seed=1)


def test_existential_clashes():
    text = "pigeon={1,...,5}\nhole={1,...,4}\nIn(pigeon,hole)\nEXIST h In(p,h).\n!In(p,h) v !In(q,h) v p = q.\n"
    with pytest.raises(Unsatisfiable, match="clash"):
        marginals(read_mln_text(text), seed=1)


PIECES = ["P(x)", "Q(x)", "!P(x)", "!Q(y)", "R(x,y)", "!R(y,x)", "R(x,x)", "Q(A)", "!R(A,y)"]


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3, unique=True), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_solver_agrees_with_enumeration(clauses):
    text = "n={A,B}\nP(n)\nQ(n)\nR(n,n)\n" + "".join(" v ".join(c) + ".\n" for c in clauses)
    model = read_mln_text(text)
    atoms = [(p, at) for p in model.predicates for at in np.ndindex(model.shape(p))]
    possible = False
    for values in product((False, True), repeat=len(atoms)):
        world = dict(zip(atoms, values, strict=True))
        possible = possible or all(
            holds(f.body, dict(zip(f.free, at, strict=True)), lambda p, c, w=world: w[p, c], {})
            for f in model.formulas
            for at in product(range(2), repeat=len(f.free))
        )
    state = legal(model).solve()
    assert (state is not None) == possible
    if not possible:
        assert "clash" in str(explain(model))
        return
    more = with_forced_atoms(model)
    assert legal(more).solve() is not None
    for f in model.formulas:
        for at in product(range(2), repeat=len(f.free)):
            assert holds(f.body, dict(zip(f.free, at, strict=True)), lambda p, c: bool(state[p][c]), {})


# --- stuck -----------------------------------------------------------------------------------------------------------


def kinds(found) -> set[str]:
    return {notice.kind for notice in found.notices if notice.fails}


def test_frozen_atoms_are_reported_however_good_the_number_looks():
    """Exactly one of two: no single flip is legal, and symmetry makes the number one half."""
    text = "n={A,B}\nP(n)\nR(n)\nP(x) v P(y) v x = y.\n!P(x) v !P(y) v x = y.\n0.1 R(x)\n"
    found = marginals(read_mln_text(text), ["P(A)"], sampler="gibbs", seed=1, sweeps=200)
    assert found.queries["P(A)"].probability == 0.5
    assert kinds(found) & {"frozen", "divided"}


def test_forced_atoms_are_exact_and_no_alarm():
    """Neither propagation nor ties see that P is true everywhere; a solver does."""
    text = "n={A,B,C}\nP(n)\nQ(n)\nR(n)\nP(x) v Q(x) v R(x).\nP(x) v Q(x) v !R(x).\nP(x) v !Q(x).\n0.3 Q(x) v R(x)\n"
    found = marginals(read_mln_text(text), ["P(A)"], sampler="gibbs", seed=1, sweeps=400)
    assert (found.queries["P(A)"].probability, found.queries["P(A)"].mcse) == (1, 0)
    assert not kinds(found) & {"frozen", "divided"}


@pytest.mark.parametrize("seed", range(3))
def test_gibbs_on_asthma_is_flagged(seed):
    assert kinds(marginals(asthma(30), sampler="gibbs", sweeps=600, seed=seed)) >= {"not-mixed"}


def test_auto_crosses():
    found = marginals(asthma(30), ["Smokes(P1)", "Asthma(P1)"], seed=2, sweeps=400)
    assert found.trusted, found.notices
    for estimate in found.queries.values():
        assert abs(estimate.probability - 0.16288648557) < 4 * estimate.mcse < 0.06


def test_auto_stays_with_gibbs_where_it_serves():
    found = marginals(asthma(4), seed=2, sweeps=1000)
    assert found.run["sampler"] == "gibbs" and not found.notices


@pytest.mark.parametrize("length", [{"seconds": 2}, {"until": 0.05}])
def test_auto_crosses_however_the_run_is_limited(length):
    found = marginals(asthma(30), ["Smokes(P1)"], scan="symmetric", seed=2, **length)
    estimate = found.queries["Smokes(P1)"]
    assert not found.trusted or abs(estimate.probability - 0.16288648557) < 4 * estimate.mcse
    if "until" in length:  # how far the other gets depends on the machine
        stays = marginals(asthma(4), ["Smokes(P1)"], scan="symmetric", seed=2, **length)
        assert stays.run["sampler"] == "gibbs" and not stays.notices


# --- debug mode ------------------------------------------------------------------------------------------------------


def test_in_debug_mode_an_illegal_state_is_seen_at_the_next_sweep(monkeypatch):
    """Planted where no move mends it: A smokes, so that asthma is forced to be false, and is put to true."""
    group = symmetries(asthma(4))
    r = plain_model(group.model, group.atom_orbits, source=group.source)
    planted = {p: np.zeros(r.model.shape(p), bool) for p in r.model.predicates}
    for name in ("Smokes", "Cancer", "Asthma"):
        planted[name][0] = True

    def swept(plant: bool) -> int:
        sampling = RelationalSampling(r, Asked(group, dict, (), ()), Plan(2, 2, 6, seed=1, workers=1))
        for k, _ in enumerate(sampling.steps()):
            if plant and k == 2:
                put(r, sampling._chains[1], {p: pack(tensor) for p, tensor in planted.items()})
        return sampling.draws().sweeps

    assert swept(plant=True) == 6
    monkeypatch.setenv("DEFINETTI_DEBUG", "1")
    assert swept(plant=False) == 6
    with pytest.raises(Illegal, match="1 groundings of hard formulas are violated"):
        swept(plant=True)
