"""Whether the relational engine's moves connect all legal states: against enumeration, and what `auto` makes of it."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from definetti.constraints.logic.connectivity import relational_moves_connect
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.constraints.logic.ties import tied_classes
from definetti.errors import Unsatisfiable
from definetti.inference.logic.prepare import prepare_logic
from definetti.inference.marginals import marginals
from definetti.model.logic.formulas import holds
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.logic.mln import read_mln_text
from definetti.readers.reading import read
from definetti.samplers.gibbs import Gibbs
from definetti.solvers.exact import exact

State = tuple[bool, ...]


def legal_states(model: MarkovLogic, atoms: list[tuple]) -> list[State]:
    """By trying all values of all atoms against every grounding of the hard formulas and the evidence."""
    known = {
        (name, tuple(row)): bool(value)
        for name, e in model.evidence.items()
        for row, value in zip(e.tuples.tolist(), e.values.tolist(), strict=True)
    }
    found = []
    for values in product(*((known[a],) if a in known else (False, True) for a in atoms)):
        world = dict(zip(atoms, values, strict=True))
        if all(
            holds(f.body, dict(zip(f.free, at, strict=True)), lambda p, c, w=world: w[p, c], {})
            for f in model.formulas
            if f.hard
            for at in product(*(range(model.sorts[f.sorts[v]].size) for v in f.free))
        ):
            found.append(values)
    return found


def sites(model: MarkovLogic, atoms: list[tuple]) -> list[set[int]]:
    """The places of the atoms that move together."""
    number = {a: k for k, a in enumerate(atoms)}
    classes = tied_classes(model)
    found, seen = [], set()
    for name, images in classes.items():
        for at in np.ndindex(model.shape(name)):
            found.append({number[i.predicate, tuple(at[j] for j in i.places)] for i in images})
            seen |= found[-1]
    return [*found, *({k} for k in range(len(atoms)) if k not in seen)]


def region_count(states: list[State], moves: list[set[int]]) -> int:
    left, count = set(states), 0
    while left:
        waiting, count = [left.pop()], count + 1
        while waiting:
            state = waiting.pop()
            for move in moves:
                other = tuple(v != (k in move) for k, v in enumerate(state))
                if other in left:
                    left.remove(other)
                    waiting.append(other)
    return count


PIECES = [
    "P(x)",
    "Q(x)",
    "!P(x)",
    "!Q(x)",
    "!Q(y)",
    "R(x,y)",
    "!R(x,y)",
    "R(y,x)",
    "!R(y,x)",
    "R(x,x)",
    "Q(A)",
    "!R(A,y)",
]
FACTS = ["P(A)", "Q(B)", "R(A,B)"]
TIES = ["", "R(x,y) => R(y,x).\n", "P(x) <=> !Q(x).\n", "R(x,y) => R(y,x).\nP(x) <=> Q(x).\n"]


@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3, unique=True), min_size=1, max_size=4),
    st.sampled_from(TIES),
    st.dictionaries(st.sampled_from(FACTS), st.booleans(), max_size=2),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_connectivity_agrees_with_enumeration(clauses, ties, facts):
    text = "n={A,B}\nP(n)\nQ(n)\nR(n,n)\n" + ties + "".join(" v ".join(c) + ".\n" for c in clauses)
    try:
        model = with_forced_atoms(read_mln_text(text, facts))
    except Unsatisfiable:
        reject()
    atoms = [(p, at) for p in model.predicates for at in np.ndindex(model.shape(p))]
    states = legal_states(model, atoms)
    if states:
        assert relational_moves_connect(model) is (region_count(states, sites(model, atoms)) == 1)


PEOPLE = "person={1,...,1000}\nA(person)\nS(person)\nF(person,person)\n"


@pytest.mark.parametrize(
    ("theory", "facts", "connected"),
    [
        ("!A(x) v !S(x).\n!A(x) v !F(x,y) v !S(y).\n", {}, True),
        ("!A(x) v !S(x).\n!A(x) v !F(x,y) v !S(y).\n", {"A(1)": True, "F(1,2)": True}, True),
        ("F(x,y) => F(y,x).\n!F(x,x).\n", {}, True),
        ("F(x,y) => F(y,x).\nF(x,y) => A(x).\nEXIST y F(x,y).\n", {}, True),
        ("F(x,y) ^ F(y,z) => F(x,z).\n", {}, None),
    ],
)
def test_a_thousand_constants_are_decided_by_the_formulas_alone(theory, facts, connected):
    assert relational_moves_connect(with_forced_atoms(read_mln_text(PEOPLE + theory, facts))) is connected


def test_blocks_move_as_one():
    """Two of three values are always near, but with two values each the pair cannot turn."""
    text = "n={A,B}\nk={%s}\nC(n,k!)\nC(A,c) => !C(B,c).\n"
    assert relational_moves_connect(with_forced_atoms(read_mln_text(text % "1,2,3"))) is True
    assert relational_moves_connect(with_forced_atoms(read_mln_text(text % "1,2"))) is False


# --- the choice ------------------------------------------------------------------------------------------------------

SORTS = {
    "smokers": "person",
    "smokers-transitive": "person",
    "asthma-hard": "person",
    "asthma-soft": "person",
    "graph": "node",
    "two-smokers": "person",
}


@pytest.mark.parametrize("size", [3, 100])
def test_the_default_choice_reaches_every_state_of_every_example(examples: Path, size: int) -> None:
    paths = sorted(examples.glob("*.mln"))
    assert len(paths) >= 6
    for path in paths:
        domain = {"author": size, "paper": size} if path.stem == "citations" else {SORTS[path.stem]: size}
        model = read(path, domain=domain)
        assert isinstance(model, MarkovLogic)
        ready = prepare_logic(model, "auto", None, "symmetric", 10.0)
        assert isinstance(ready.sampler, Gibbs) and relational_moves_connect(ready.group.model) is True  # type: ignore[arg-type]
        assert not ready.notices


DIVIDED = {
    "one of two": ("n={A,B}\nP(n)\nP(x) v P(y) v x = y.\n!P(x) v !P(y) v x = y.\n0.5 P(A)\n", "mcsat"),
    "transitive": ("n={A,B,C}\nR(n,n)\nR(x,y) ^ R(y,z) => R(x,z).\n0.3 R(x,y)\n", "mcsat"),
    "two colours": ("n={A,B}\nk={1,2}\nC(n,k!)\nC(A,c) => !C(B,c).\n0.5 C(A,1)\n", "gibbs"),  # on the core
    "functions": (
        "n={1,...,8}\nR(n,n)\nEXIST y R(x,y).\nR(x,y) ^ R(x,z) => y = z.\n0.4 R(x,x)\n-0.3 R(x,y) ^ R(y,x)\n",
        "blocks",  # on the ground model: too wide for MC-SAT
    ),
}


@pytest.mark.parametrize("name", DIVIDED)
@pytest.mark.parametrize("length", [{"sweeps": 600}, {"seconds": 1.0}, {"until": 0.05}])
def test_auto_never_takes_moves_that_cannot_reach_every_state(name: str, length: dict) -> None:
    model = read_mln_text(DIVIDED[name][0])
    found = marginals(model, scan="symmetric", seed=1, **length)
    assert found.run["sampler"] == DIVIDED[name][1]
    assert not {n.kind for n in found.notices} & {"frozen", "divided", "not-mixed"}, found.notices
    truth = exact(model)
    for row in found.orbits:
        p, q, error = (
            np.array(x, dtype=float) for x in (row.probability, truth[row.representative].probability, row.mcse)
        )
        assert (np.abs(p - q) <= 4.5 * error + 1e-12).all(), (row, q)


@pytest.mark.parametrize("name", DIVIDED)
def test_gibbs_by_name_is_told(name: str) -> None:
    found = marginals(read_mln_text(DIVIDED[name][0]), sampler="gibbs", seed=1, sweeps=300)
    assert "divided" in {n.kind for n in found.notices} and not found.trusted
