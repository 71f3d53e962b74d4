"""A statistic that never moved is said to be constant, in words, as a value, and by the lack of figures it has not."""

from __future__ import annotations

from pathlib import Path

import definetti as dft

RARE = dft.factor_graph([2, 3], [([0], [1e-9, 1.0]), ([0, 1], [[1, 2, 3], [4, 5, 1e-9]])])


def test_a_constant_is_called_constant() -> None:
    p = dft.marginals(RARE, sweeps=100, chains=8, seed=1, estimator="orbit")
    assert p["X0"].constant is True and p["X1"].constant == [False, False, True]
    assert p["X0"].rhat is None and p["X0"].ess is None and p["X0"].mcse is not None
    messages = [notice.message for notice in p.notices if notice.kind == "few-samples"]
    assert len(messages) == 1 and messages[0].startswith("constant in all draws: 2 of 4 numbers, X0 among them")
    assert not p.trusted


def test_an_effective_size_comes_with_a_spread() -> None:
    """The conditional of X1 given X0 = 1 was always the same: 1e32 effective draws were claimed of 800."""
    p = dft.marginals(RARE, sweeps=100, chains=8, seed=1, estimator="conditional")
    assert p["X0"].ess is None and p["X1"].ess == [None, None, None]


def test_what_moves_is_not_constant() -> None:
    p = dft.marginals(dft.factor_graph([2, 2], [([0, 1], [[1, 2], [3, 4]])]), sweeps=50, seed=1)
    assert p["X0"].constant is False and p["X0"].ess is not None
    assert p["X0"] == p.orbits[0].estimate()


def test_a_constant_atom_is_called_constant(tmp_path: Path) -> None:
    path = tmp_path / "rare.mln"
    path.write_text("s = {A, B}\nP(s)\nQ(s)\n20 P(x)\n1 P(x) => Q(y)\n")
    p = dft.marginals(dft.read(path), sweeps=100, seed=1)
    assert p["P(A)"].constant is True and p["Q(A)"].constant is False
    assert any("constant in all draws" in notice.message for notice in p.notices)
