"""Draws of ground atoms in tables, and dimod's discrete models."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti.errors import DefinettiError

TEXT = "person = {A,B,C}\nS(person)\nF(person,person)\n0.5 S(x)\n1.1 F(x,y) ^ S(x) => S(y)\n-0.7 F(x,y)\n"


@pytest.fixture(scope="module")
def draws() -> tuple[dft.MarkovLogic, np.ndarray, list[str]]:
    model = dft.markov_logic(TEXT, "F(A,B)")
    made = dft.sample(model, sampler="gibbs", chains=4, draws=300, seed=3)
    return model, made.array(), list(made.names)


def test_tables_give_what_the_draws_give(draws, tmp_path: Path) -> None:
    import pandas

    model, array, names = draws
    queries = ["S(A)", "S(A) | F(A,C)", "#S", "EXIST x F(x,A)"]
    whole = dft.marginals(array, queries, model=model)
    rows = array.transpose(1, 0, 2).reshape(-1, len(names))
    chain = np.tile(np.arange(4), 300)
    table = pandas.DataFrame(rows, columns=names).assign(chain=chain)
    table[[*reversed(names), "chain"]].to_csv(tmp_path / "draws.csv", index=False)
    from definetti.readers.samples import read_samples

    file = dft.marginals(read_samples(tmp_path / "draws.csv", model), queries, model=model)
    frame = dft.marginals(pandas.DataFrame(array[0], columns=names), queries, model=model)
    alone = dft.marginals(array[:1], queries, model=model)
    for query in queries:
        assert file[query].probability == pytest.approx(whole[query].probability, abs=1e-12)
        assert frame[query].probability == pytest.approx(alone[query].probability, abs=1e-12)
    truth = dft.exact(model, queries)
    for query in queries:
        assert abs(whole[query].probability - truth[query].probability) < 5 * whole[query].mcse
    assert whole["#S"].std == pytest.approx(truth["#S"].std, rel=0.2)


def test_draws_against_the_evidence_are_refused(draws) -> None:
    model, array, names = draws
    wrong = array.copy()
    wrong[0, 5, names.index("F(A,B)")] = 0
    with pytest.raises(DefinettiError, match=r"F\(A,B\)"):
        dft.marginals(wrong, model=model)
    with pytest.raises(DefinettiError, match="variables"):
        dft.marginals(array[:, :, 1:], model=model)


def test_discrete_quadratic_models() -> None:
    dimod = pytest.importorskip("dimod")
    dqm = dimod.DiscreteQuadraticModel()
    dqm.add_variable(3, label="a")
    dqm.add_variable(2, label="b")
    dqm.add_variable(4, label="c")
    dqm.set_linear("a", [0.1, -0.4, 0.7])
    dqm.set_quadratic("a", "b", {(0, 1): 0.5, (2, 0): -1.2})
    dqm.set_quadratic("c", "a", {(3, 1): 0.9, (0, 0): -0.3})
    model = dft.read(dqm, beta=1.5)
    states = list(product(range(3), range(2), range(4)))
    energies = [dqm.energy(dict(zip("abc", state, strict=True))) for state in states]
    found = model.log_density(np.array(states))
    np.testing.assert_allclose(found - found[0], -1.5 * (np.array(energies) - energies[0]), atol=1e-12)
