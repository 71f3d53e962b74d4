"""Chains that are looked at after every update: the observer's shares against the states themselves, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import definetti as dft
from definetti.errors import DefinettiError, ModelError
from definetti.samplers.every_update import every_update

SMOKERS = """
person = {A, B, C}
smokes(person)
friends(person, person)
0.4 !smokes(x)
0.6 !friends(x,y)
1.1 friends(x,y) ^ smokes(x) => smokes(y)
0.5 friends(x,y) ^ friends(y,z) => friends(x,z)
"""
HARD = "person = {A, B}\np(person)\nq(person, person)\n!p(x) v !q(x,y).\n0.3 q(x,y)\n"


def theory() -> dft.MarkovLogic:
    return dft.markov_logic(SMOKERS, evidence="smokes(A)\n!friends(A,B)")


def graph() -> dft.FactorGraph:
    ring = [([i, (i + 1) % 6], [[3.0, 1.0], [1.0, 2.0]]) for i in range(6)]
    return dft.factor_graph([2] * 6, [*ring, ([0, 2, 4], np.arange(1.0, 9.0).reshape(2, 2, 2))])


def pairs() -> dft.FactorGraph:
    return dft.factor_graph([2] * 5, [([i, i + 1], [[2.0, 1.0], [1.0, 3.0]]) for i in range(4)])


def states(followed, steps: int) -> np.ndarray:
    """What the engine's own state is after each of so many single updates."""
    found = []
    for _ in range(steps):
        followed.advance(1)
        if hasattr(followed, "_chain"):
            r = followed._relational
            found.append(np.concatenate([r.atoms(followed._chain, name).ravel() for name in r.model.predicates]))
        else:
            found.append(followed._block.state[: followed._n, 0] & followed._block.mask)
    return np.array(found)


@pytest.mark.parametrize("model", [theory(), graph(), pairs()], ids=["logic", "tables", "fields"])
@pytest.mark.parametrize("start", [0, 1])
def test_the_shares_are_the_means_of_the_states_after_every_update(model, start) -> None:
    one, many = every_update(model, start=start, seed=5), every_update(model, start=start, seed=5)
    seen = states(one, 400)
    for steps in (1, 7, 150, 242):
        many.advance(steps)
        assert np.array_equal(many.means(), seen[: many.updates].mean(axis=0))
    assert np.array_equal(one.means(), many.means())
    assert (np.abs(np.diff(seen.astype(int), axis=0)).sum(axis=1) <= 1).all(), "an update changes one variable"


def test_edges_are_followed_too() -> None:
    edges = np.array([[0, 1], [1, 2], [4, 0]])
    followed = every_update(pairs(), start=np.array([0, 1, 1, 0, 1]), seed=5, edges=edges)
    seen = states(followed, 300)
    assert np.array_equal(followed.edge_means(), (seen[:, edges[:, 0]] != seen[:, edges[:, 1]]).mean(axis=0))


@pytest.mark.parametrize("model", [theory(), graph()], ids=["logic", "tables"])
def test_long_runs_come_to_the_exact_marginals(model) -> None:
    followed = every_update(model, seed=1)
    followed.advance(400_000)
    truth = [np.ravel(dft.exact(model)[name].probability)[-1] for name in dft.sample(model, draws=1).names]
    assert np.abs(followed.means() - truth).max() < 0.03


def test_evidence_overrides_the_start_and_the_start_must_be_possible() -> None:
    followed = every_update(theory(), start=0, seed=1)
    followed.advance(1000)
    means = followed.means()
    assert means[0] == 1.0 and means[3 + 1] == 0.0
    model = dft.markov_logic(HARD)
    every_update(model, start=0, seed=1).advance(100)
    with pytest.raises(DefinettiError, match="hard formula"):
        every_update(model, start=1, seed=1)
    with pytest.raises(ModelError, match="impossible"):
        every_update(dft.factor_graph([2, 2], [([0, 1], [[0.0, 1.0], [1.0, 0.0]])]), start=0)


def test_what_is_not_binary_is_refused() -> None:
    with pytest.raises(ModelError, match="binary"):
        every_update(dft.factor_graph([3], [([0], [1.0, 2.0, 3.0])]))
    with pytest.raises(ModelError, match="`!`"):
        every_update(dft.markov_logic("t = {A, B}\nu = {C, D}\nat(t, u!)\n0.3 at(A,C)"))
