"""Evidence-heavy models: the free part made by joins is the ground model, and `auto` samples it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import definetti as dft
from definetti.inference.logic import joined
from definetti.model.logic.ground import ground_free

EXAMPLE = Path(__file__).parents[2] / "examples" / "make_citations.py"
TEXT = (
    "p = {A,B,C}\nP(p)\nR(p,p)\nQ(p,p)\n0.3 P(x)\n0.8 R(x,y) ^ P(x) => P(y)\n0.5 R(x,y) ^ R(y,z) ^ P(x) ^ P(z)\n"
    "-0.4 Q(x,y) ^ P(x)\n0.2 Q(x,x) v P(x)\nR(x,y) => P(x) v P(y).\n"
)


def test_the_free_part_has_the_same_distribution() -> None:
    model = dft.markov_logic(TEXT, "R(A,B)\nR(B,B)\n?R(C,A)\nQ(A,C)", closed_world=["R", "Q"])
    whole, part = dft.exact(dft.ground(model)), dft.exact(ground_free(model))
    assert part.log_z == pytest.approx(whole.log_z, abs=1e-12)
    assert ground_free(model).names == ("P(A)", "P(B)", "P(C)", "R(C,A)")
    for name in ground_free(model).names:
        assert part[name].probability == pytest.approx(whole[name].probability, abs=1e-12)


def citations(records: int) -> dft.MarkovLogic:
    spec = importlib.util.spec_from_file_location("make_citations", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dft.markov_logic(*module.citations(records))


def test_auto_takes_the_free_part(monkeypatch: pytest.MonkeyPatch) -> None:
    model = citations(25)
    free = [row for row in ground_free(model).names if row.startswith("SameRecord")]
    found = dft.marginals(model, free[:3], seed=1, seconds=2, chains=8)
    assert any("joins over the facts" in notice.message for notice in found.notices)
    other = dft.marginals(model, free[:3], seed=1, sampler="gibbs", symmetries="none", sweeps=400)
    assert not any("joins over the facts" in notice.message for notice in other.notices)
    for name in free[:3]:
        error = np.hypot(found[name].mcse, other[name].mcse)
        assert abs(found[name].probability - other[name].probability) < 5 * error + 1e-3
    assert found["Title(R1,Title1)"].probability in (0.0, 1.0) and len(found.members) == model.atom_count


def test_patterns_counts_and_known_atoms_are_asked_of_the_free_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "SAVED", 0)
    monkeypatch.setattr(joined, "WORD", 0)
    model = dft.markov_logic(TEXT, "R(A,B)\nR(B,B)\n?R(C,A)\nQ(A,C)", closed_world=["R", "Q"])
    texts = ["P(x) | R(x,y)", "#P", "EXIST x (R(x,A) ^ P(x))", "R(A,B) ^ P(A)", "R(B,A)", "#{x,y: Q(x,y)}", "P(A)"]
    asked = dft.exact(model, texts)
    found = dft.marginals(model, texts, seed=1, sweeps=400)
    assert any("joins over the facts" in notice.message for notice in found.notices)
    assert list(found.queries) == texts and found.trusted
    for text in texts:
        assert abs(found[text].probability - asked[text].probability) <= 4 * found[text].mcse + 1e-12, text
    assert found["R(B,A)"].probability == 0.0 and found["#{x,y: Q(x,y)}"].distribution[0]["value"] == 1
