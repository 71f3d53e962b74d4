"""How long a run is that nobody gave a length."""

from __future__ import annotations

import pytest

import definetti as dft
from definetti.inference.logic import joined, prepare
from definetti.inference.question import Request

TEXT = (
    "p = {A,B,C}\nP(p)\nR(p,p)\nQ(p,p)\n0.3 P(x)\n0.8 R(x,y) ^ P(x) => P(y)\n0.5 R(x,y) ^ R(y,z) ^ P(x) ^ P(z)\n"
    "-0.4 Q(x,y) ^ P(x)\n0.2 Q(x,x) v P(x)\nR(x,y) => P(x) v P(y).\n"
)


def test_default_runs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 chains of 2,000 sweeps over tens of thousands of atoms took minutes."""
    monkeypatch.setattr(joined, "SAVED", 0)
    monkeypatch.setattr(joined, "WORD", 0)
    model = dft.markov_logic(TEXT, "R(A,B)\nR(B,B)\n?R(C,A)\nQ(A,C)", closed_world=["R", "Q"])
    ready = prepare.ready(model, Request("auto", None, "symmetric", ["P(A)"], "auto", 1, 10.0))
    assert [ready.sweeps(chains) for chains in (ready.chains, 8, 1, 3)] == [2000] * 4  # few atoms: as long as any
    monkeypatch.setattr(prepare, "UPDATES", 4 * 64 * 700)
    dear = prepare.ready(model, Request("auto", None, "symmetric", ["P(A)"], "auto", 1, 10.0))
    assert [dear.sweeps(chains) for chains in (dear.chains, 8, 640)] == [700, 2000, 70]
    monkeypatch.setattr(prepare, "UPDATES", 1)
    dearest = prepare.ready(model, Request("auto", None, "symmetric", ["P(A)"], "auto", 1, 10.0))
    assert [dearest.sweeps(chains) for chains in (dearest.chains, 8, 1)] == [250, 2000, 2000]
    named = prepare.ready(model, Request("auto", dft.Gibbs(), "symmetric", ["P(A)"], "auto", 1, 10.0))
    assert (named.chains, named.sweeps(named.chains), named.sweeps(64)) == (8, 2000, 2000)
