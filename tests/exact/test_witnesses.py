"""Symmetry breaking: satisfiability never changes, and what has no short proof is refuted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pysat.solvers import Solver

from definetti.constraints.logic import tseitin as definitions
from definetti.constraints.logic.clauses import evidence_literals, hard_clauses
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.constraints.logic.legal_states import add_shorter, legal
from definetti.constraints.logic.symmetry_breaking import interchangeable, shorter_clauses
from definetti.constraints.logic.unsat_core import explain
from definetti.errors import Unsatisfiable
from definetti.model.logic.formulas import holds
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.logic.mln import read_mln_text

DECLARED = "n={{{n}}}\nm={{{m}}}\nP(n)\nQ(m)\nR(n,n)\nZ(n,n)\nS(n,m)\nT(n,m!)\nU(n,n!)\n"
RULES = [
    "EXIST y R(x,y).",
    "EXIST y R(y,x).",
    "EXIST u S(x,u).",
    "EXIST x S(x,u).",
    "EXIST x P(x).",
    "P(x) => EXIST y R(x,y).",
    "P(x) v EXIST u S(x,u).",
    "P(x) <=> EXIST y R(x,y).",
    "EXIST y (R(x,y) ^ P(y)).",
    "EXIST y (R(x,y) ^ x != y).",
    "EXIST u,w (S(x,u) ^ S(x,w) ^ u != w).",
    "EXIST x,y (R(x,y) ^ !R(y,x)).",
    "R(x,y) => EXIST u (S(x,u) ^ !S(y,u)).",
    "EXIST y FORALL u (S(y,u) v R(x,y)).",
    "x = y v EXIST u S(x,u) v EXIST w S(y,w).",
    "EXIST y (R(x,y) v R(A0,y)).",
    "R(x,y) ^ R(y,z) => R(x,z).",
    "!R(x,x).",
    "EXIST y Z(x,y).",
    "!Z(x,x).",
    "R(x,y) => !Z(x,y).",
    "R(x,y) => !R(y,x) v x = y.",
    "R(x,y) => R(y,x).",
    "R(x,y) ^ R(x,z) => y = z.",
    "R(x,z) ^ R(y,z) => x = y.",
    "S(x,u) ^ S(y,u) => x = y.",
    "S(x,u) ^ S(x,w) => u = w.",
    "T(x,u) ^ T(y,u) => x = y.",
    "T(x,u) => S(x,u).",
    "U(x,z) ^ U(y,z) => x = y.",
    "U(x,y) => R(x,y).",
    "!R(x,A0).",
    "P(x) => !Q(u) v !S(x,u).",
    "R(x,y) => (P(x) <=> !P(y)).",
    "P(A1) v Q(B0).",
]


def small(n: int, m: int, rules: list[str], evidence: Mapping[str, bool], closed: bool = False) -> MarkovLogic:
    sorts = {"n": ",".join(f"A{i}" for i in range(n)), "m": ",".join(f"B{i}" for i in range(m))}
    known = {atom: value for atom, value in evidence.items() if not any(f"A{i}" in atom for i in range(n, 9))}
    known = {atom: value for atom, value in known.items() if not any(f"B{i}" in atom for i in range(m, 9))}
    text = DECLARED.format(**sorts) + "\n".join(rules) + "\n"
    return read_mln_text(text, known, closed_world=["P"] if closed else [])


ATOMS = ["P(A1)", "P(A2)", "P(A3)", "Q(B0)", "Q(B2)", "R(A0,A0)", "R(A1,A1)", "R(A0,A1)", "S(A0,B0)", "S(A2,B1)"]
theories = st.builds(
    small,
    st.integers(2, 4),
    st.integers(2, 4),
    st.lists(st.sampled_from(RULES), min_size=3, max_size=8, unique=True),
    st.dictionaries(st.sampled_from(ATOMS), st.booleans(), max_size=4),
    st.booleans(),
)


def plain(model: MarkovLogic) -> tuple[Solver, list[int]]:
    ground = hard_clauses(model)
    solver = Solver("minisat22")
    for _, rows in ground.groups:
        solver.append_formula(rows.tolist())
    known = evidence_literals(model, ground.numbering)
    solver.append_formula(known[:, None].tolist())
    return solver, add_shorter(solver, interchangeable(model), ground.choices, known, ground.numbering.count)


@given(theories)
@settings(max_examples=300, deadline=None)
def test_satisfiability_never_changes(model: MarkovLogic) -> None:
    solver, guards = plain(model)
    with solver:
        possible = solver.solve()
        assert [solver.solve(assumptions=[guard]) for guard in guards] == [possible] * len(guards)


@pytest.mark.parametrize("n", [3, 4])
def test_two_formulas_are_not_cut_short_as_if_alone(n: int) -> None:
    """Both would take the second constant for the first one's witness, where one formula forbids it to the other."""
    rules = ["EXIST y R(x,y).", "EXIST y Z(x,y).", "!R(x,x).", "!Z(x,x).", "R(x,y) => !Z(x,y)."]
    solver, guards = plain(small(n, 2, rules, {}))
    with solver:
        assert len(guards) == 4 and all(solver.solve(assumptions=[guard]) for guard in guards)


def test_what_is_cut() -> None:
    """The k-th row keeps k + 1 constants of its own sort, k of another; constants that are named serve everywhere."""
    text = "n={A,B,C,D}\nm={K,L,M}\nR(n,n)\nT(n,m!)\nEXIST y R(x,y).\n!R(D,D).\n"
    model = read_mln_text(text)
    ground = hard_clauses(model)
    ways = list(shorter_clauses(interchangeable(model), ground.choices, evidence_literals(model, ground.numbering)))

    def atoms(rows: list[list[int]]) -> list[str]:
        found = [[ground.numbering.atom(literal) for literal in row] for row in rows]
        return [" ".join("ABCD"[a] + ("ABCD" if name == "R" else "KLM")[b] for name, (a, b) in row) for row in found]

    assert atoms(ways[0][0][1]) == ["AA AB AD", "DA DD"]  # D comes first: it has no number
    assert atoms(ways[0][1][1]) == atoms(ways[1][0][1]) == ["AK AL", "DK"]
    assert len(ways) == 2 and ways[1][1][1] == []  # T's cells have taken all the numbers that R could leave out


# --- names for what is said of one witness ---------------------------------------------------------------------------

QUANTIFIED = ["EXIST y (P(y) <=> R(x,y)).", "!R(x,x).", "P(x) => !R(x,y)."]
QUANTIFIED += [rule for rule in RULES if "EXIST" in rule and not set("SZ") & set(rule)]


@given(st.lists(st.sampled_from(QUANTIFIED), min_size=1, max_size=4, unique=True), st.sampled_from([0, 100]))
@settings(max_examples=60, deadline=None)
def test_quantified_formulas_mean_what_they_say(rules: list[str], written: int) -> None:
    """Against enumeration, with and without names; every state that the solver finds is legal."""
    model = read_mln_text("n={A0,A1}\nP(n)\nR(n,n)\n" + "\n".join(rules) + "\n")
    atoms = [(p, at) for p in model.predicates for at in np.ndindex(model.shape(p))]
    worlds = [dict(zip(atoms, values, strict=True)) for values in product((False, True), repeat=len(atoms))]

    def is_legal(world: Mapping[tuple, bool]) -> bool:
        return all(
            holds(f.body, dict(zip(f.free, at, strict=True)), lambda p, c: world[p, c], dict.fromkeys(f.sorts, 2))
            for f in model.formulas
            for at in product(range(2), repeat=len(f.free))
        )

    before, definitions.MOST_WRITTEN = definitions.MOST_WRITTEN, written
    try:
        solver = legal(model)
    finally:
        definitions.MOST_WRITTEN = before
    legals = [world for world in worlds if is_legal(world)]
    state = solver.solve()
    assert (state is not None) == bool(legals)
    if state is not None:
        assert is_legal({(p, at): bool(state[p][at]) for p, at in atoms})
        for p, at in atoms:
            for value in (False, True):
                assert solver.possible(p, at, value) == any(world[p, at] == value for world in legals)


# --- at forty constants, and at a hundred outside the gate -----------------------------------------------------------

ORDER = "n={{1,...,{}}}\nLess(n,n)\nLess(x,y) ^ Less(y,z) => Less(x,z).\n!Less(x,x).\n"
HOLES = "pigeon={{1,...,{}}}\nhole={{1,...,{}}}\n{}\nIn(p,h) ^ In(q,h) => p = q.\n"
PAIRS = "n={{1,...,{}}}\nR(n,n)\nEXIST y R(x,y).\nR(x,y) ^ R(x,z) => y = z.\nR(x,y) => R(y,x).\n!R(x,x).\n"
BOTH = "n={{1,...,{}}}\nP(n)\nR(n,n)\nEXIST y (R(x,y) ^ P(y)).\nR(x,y) => !P(y).\n"
SOME_HOLE, ONE_HOLE = "In(pigeon,hole)\nEXIST h In(p,h).", "In(pigeon,hole!)"


NOT_LAST = "EXIST y Less(x,y)"
SIZES = pytest.mark.parametrize("n", [40, pytest.param(100, marks=pytest.mark.slow)])


def clashes(n: int) -> dict[str, tuple[str, dict[str, bool], list[str]]]:
    """Theories, their evidence, and what the refusal names."""
    return {
        "order": (ORDER.format(n) + NOT_LAST + ".\n", {}, ["=> Less(x,z)", "!Less(x,x)", NOT_LAST]),
        "evidence": (
            ORDER.format(40) + NOT_LAST + ".\n",
            {"Less(1,2)": True, "Less(4,3)": False},
            ["=> Less(x,z)", NOT_LAST],
        ),
        "ten": (HOLES.format(10, 9, SOME_HOLE), {}, ["EXIST h In(p,h)", "=> p = q"]),
        "pigeons": (HOLES.format(n + 1, n, SOME_HOLE), {}, ["EXIST h In(p,h)", "=> p = q"]),
        "blocks": (HOLES.format(n + 1, n, ONE_HOLE), {}, ["the `!` of In", "=> p = q"]),
        "pairs": (PAIRS.format(n + 1), {}, ["EXIST y R(x,y)", "=> y = z", "=> R(y,x)", "!R(x,x)"]),
        "both": (BOTH.format(n), {}, ["EXIST y", "=> !P(y)"]),
    }


@SIZES
@pytest.mark.parametrize("name", clashes(1))
def test_what_has_no_short_proof_is_refuted(name: str, n: int, cpu_limit) -> None:
    text, evidence, named = clashes(n)[name]
    with cpu_limit(30), pytest.raises(Unsatisfiable) as error:
        with_forced_atoms(read_mln_text(text, evidence))
    assert all(part in str(error.value) for part in named) and "evidence" not in str(error.value).split("soften")[0]


def test_evidence_that_is_alike_is_named_together() -> None:
    """Each hole that is left is shut by its own evidence: one of them alone clashes with nothing."""
    shut = {f"Open({h})": False for h in range(10, 13)}
    rules = SOME_HOLE + "\nOpen(hole)\nIn(p,h) => Open(h)."
    message = str(explain(read_mln_text(HOLES.format(10, 12, rules), shut)))
    assert all(f"evidence !Open({h})" in message for h in range(10, 13)) and "EXIST h In(p,h)" in message


NEAR_MISSES = {
    "order": ORDER + "Last(n)\nLast(x) v EXIST y Less(x,y).\nLast(x) ^ Last(y) => x = y.\n",
    "pigeons": HOLES.replace("{}", "{0}", 2).replace("{}", SOME_HOLE),
    "blocks": HOLES.replace("{}", "{0}", 2).replace("{}", ONE_HOLE),
    "pairs": PAIRS,
}


@SIZES
@pytest.mark.parametrize("name", NEAR_MISSES)
def test_near_misses_have_states(name: str, n: int) -> None:
    model = read_mln_text(NEAR_MISSES[name].format(n))
    state = legal(model).solve()
    assert state is not None
    ground = hard_clauses(model)
    truth = np.concatenate([[False], *(state[name].ravel() for name in ground.numbering.start)])
    assert all((truth[np.abs(rows)] == (rows > 0)).any(axis=1).all() for _, rows in ground.groups)
