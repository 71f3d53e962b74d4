"""Formulas that are counted in states of a ground model, where evidence decides most of their groundings."""

from __future__ import annotations

import numpy as np
import pytest

import definetti as dft
from definetti.inference.logic.cells import lay_out
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.theory import Atom
from definetti.readers.logic.queries import parse_all
from definetti.samplers.logic import queries as counting
from definetti.symmetry.logic.renaming import RenamingSymmetries, trivial

HEAD = "p = {A,B,C,D,E}\nP(p)\nR(p,p)\nZ\n0.3 P(x)\n0.8 R(x,y) ^ P(x) => P(y)\n"
FACTS = "R(A,B)\nR(B,B)\n?R(C,A)\n?R(D,D)\nP(E)"
TEXTS = ["#R", "#{x,y: R(x,y) ^ P(x)}", "R(x,y) ^ P(y) ^ x != y", "#{x,y: R(x,y) <=> R(y,x)}", "R(x,A) => !R(x,x)",
         "R(A,B) ^ P(A)", "#{x,y: R(x,y) ^ (P(x) v Z)}", "P(x) | R(x,A)", "#{x: R(C,x) ^ !Z}",
         "R(B,x) ^ !R(x,x)"]  # fmt: skip


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_listed_tuples_give_the_same_counts(text: str, grouped: bool) -> None:
    """As all tuples do, in random states; and fewer are looked at."""
    model = dft.markov_logic(HEAD, FACTS, closed_world=["R"])
    group = dft.symmetries(model) if grouped else trivial(model)
    assert isinstance(group, RenamingSymmetries)
    boxes = layout(model)
    codes = np.concatenate([model.knowledge.codes(name).ravel() for name in boxes])
    rng = np.random.default_rng(5)
    states = np.where(codes[:, None] < 2, np.clip(codes, 0, 1)[:, None], rng.integers(0, 2, (len(codes), 40)))
    known = np.isin(codes, (0, 1))

    def places(atom: Atom, at) -> np.ndarray:
        return np.asarray(boxes[atom.predicate].literals(at)[0])

    def truth(atom: Atom, at):
        place = places(atom, at)
        return lambda s: s[place] == 1

    def code(atom: Atom, at) -> np.ndarray:
        place = places(atom, at)
        return np.where(known[place], codes[place], -1)

    looked = 0
    for query in lay_out(group, parse_all(model, [text]), (), atoms_too=True).counted:
        found = counting.listed_counter(query, truth, code)
        if found is not None:
            looked += 1
            assert 2 * found[1] <= counting.grid_size(query)
            assert found[0](states).tolist() == counting.counter(query, truth)(states).tolist()
    assert looked or grouped or text in ("R(A,B) ^ P(A)", "P(x) | R(x,A)")


def test_quantifiers_and_open_formulas_are_left_to_the_other_counter() -> None:
    model = dft.markov_logic(HEAD, FACTS)
    for text in ("EXIST x R(x,A)", "#P", "R(x,y)  v P(x)"):
        for query in lay_out(trivial(model), parse_all(model, [text]), (), atoms_too=True).counted:
            assert counting.listed_counter(query, lambda *_: lambda s: s, lambda *_: np.array(-1)) is None
