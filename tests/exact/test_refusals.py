"""What cannot be done is refused with its reason, at once and once."""

from __future__ import annotations

from typing import Any

import pytest

import definetti as dft
from definetti.constraints.logic import unsat_core

PAIR: Any = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])


def test_weights_beyond_lifted_counting() -> None:
    """Logarithms that are no 64-bit integers there were an OverflowError; another engine answers, or says why not."""
    text = "p = {A, B, C}\nP(p)\nQ(p)\n1e15 P(x)\n1e12 Q(x)\n-1e15 P(x) ^ Q(y)\n0.5 P(x) ^ Q(x)\n"
    with pytest.raises(dft.TooLarge, match="a weight in lifted counting"):
        dft.exact(dft.markov_logic(text), method="lifted")
    with pytest.raises(dft.ModelError, match="cancel"):
        dft.marginals(dft.markov_logic(text))
    kept = text.replace("-1e15", "1e15")
    assert dft.marginals(dft.markov_logic(kept))["Q(A)"].probability == pytest.approx(1.0)


def test_a_report_says_what_it_needs() -> None:
    with pytest.raises(dft.ModelError, match=r"dft.report\(dft.marginals\(model\), 'page.html'\); got a FactorGraph"):
        dft.report(PAIR)
    with pytest.raises(dft.ModelError, match=r"needs the path of its page, as in dft.report\(answer, 'page.html'\)"):
        dft.report(dft.exact(PAIR))


def test_a_clash_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small set of clashing formulas is the larger part of the work."""
    looked: list[Any] = []
    found = unsat_core._clash
    monkeypatch.setattr(unsat_core, "_clash", lambda model: looked.append(model) or found(model))
    order = "n = {1,...,5}\nLess(n,n)\nLess(x,y) ^ Less(y,z) => Less(x,z).\n!Less(x,x).\nEXIST y Less(x,y).\n"
    for ask in (dft.marginals, dft.exact, dft.symmetries):
        looked.clear()
        with pytest.raises(dft.Unsatisfiable, match=r"these hard formulas clash:\n  .*EXIST y Less|Less\(x,y\) \^"):
            ask(dft.markov_logic(order))
        assert len(looked) == 1
