"""Answers are mappings from names: what is no name has no answer, and `in` and `get` say so, as they do for a dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import definetti as dft

NO_NAMES: list[Any] = ["S(A", "S(A,)", "S(,A)", "S(A))", "S(Z)", "P(", "R", "", 0, None, ("S", "A")]


@pytest.fixture
def answers(tmp_path: Path) -> list[dft.Marginals]:
    (tmp_path / "m.mln").write_text("node = {A, B}\nS(node)\nP()\n1.5 S(x)\n0.5 P()\n")
    return [dft.exact(dft.read(tmp_path / "m.mln")), dft.exact(dft.factor_graph({"S": 2}, []))]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name(answers: list[dft.Marginals], name: Any) -> None:
    for answer in answers:
        assert name not in answer
        assert answer.get(name) is None
        with pytest.raises(dft.UnknownName):
            answer[name]


def test_names_are_in(answers: list[dft.Marginals]) -> None:
    assert all(name in answer for answer in answers for name in answer)
    assert " S( A )" in answers[0]


def test_the_message_is_not_quoted(answers: list[dft.Marginals]) -> None:
    with pytest.raises(dft.UnknownName, match="^'S\\(A' lacks its closing parenthesis$"):
        answers[0]["S(A"]
