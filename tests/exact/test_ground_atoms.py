"""The answers of a ground model by atoms: every atom reads its own row, whatever shares an orbit with what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from definetti.errors import Unsatisfiable
from definetti.model.graph.simplify import simplify
from definetti.model.logic.ground import ground
from definetti.model.logic.theory import MarkovLogic
from definetti.readers.logic.mln import read_mln_text
from definetti.solvers.exact import exact
from definetti.symmetry.graph.group import find, none
from definetti.symmetry.logic.members import by_atoms

SHARED = """
node = {A, B}
kind = {K, L}
S(node)
Q(node, kind!)
R(node)
M(node, node!)
1.5 S(x)
1.5 Q(x,L)
3 R(x) ^ R(y)
M(x,y) ^ M(z,y) => x = z.
"""
PARTS = (
    "S(x)",
    "R(x)",
    "Q(x,L)",
    "Q(x,K)",
    "S(x) ^ Q(x,L)",
    "R(x) v Q(x,K)",
    "Q(x,k) ^ Q(y,k)",
    "M(x,x)",
    "M(x,y) ^ S(x)",
)


def agree(model: MarkovLogic) -> None:
    """Rows of the ground model, told by atoms, against the atoms' own probabilities."""
    graph, truth = simplify(ground(model)), exact(model)
    for group in (find(graph, "literals"), find(graph, "variables"), none(graph)):
        found = by_atoms(model, exact(graph, symmetries=group))
        assert sum(row.size for row in found.orbits) >= len(group.model.free)
        sizes = np.zeros(len(found.orbits), int)
        for name, answer in found.variables():
            assert answer.probability == pytest.approx(truth[name].probability, abs=1e-9), name
            if isinstance(number := found.members.find(name), int):
                sizes[number] += 1
        assert sizes.tolist() == [row.size for row in found.orbits]
        for row in found.orbits:
            assert found[row.representative].probability == row.probability


def test_plain_atoms_and_two_valued_blocks_in_one_orbit() -> None:
    model = read_mln_text(SHARED)
    orbit = find(simplify(ground(model)), "literals").orbit_of("S(A)")
    assert {"S(A)", "Q(A,!)"} <= set(orbit)  # the case that went wrong
    agree(model)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_random_models_with_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = rng.integers(2, 4)
    weights = (0.7, 1.5)
    lines = [f"{weights[rng.integers(2)]} {part}" for part in PARTS if rng.random() < 0.5]
    head = "node = {A, B}\nkind = {" + ",".join("KLO"[:kinds]) + "}\nS(node)\nQ(node, kind!)\nR(node)\nM(node, node!)\n"
    hard = "M(x,y) ^ M(z,y) => x = z.\n" if rng.random() < 0.3 else ""
    evidence = {a: bool(rng.random() < 0.5) for a in ("S(A)", "Q(A,K)", "Q(B,L)", "M(A,B)") if rng.random() < 0.2}
    try:
        model = read_mln_text(head + "\n".join(lines) + "\n" + hard, evidence)
        exact(model)
    except Unsatisfiable:
        assume(False)
    agree(model)
