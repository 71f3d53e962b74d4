"""Every kind of warning and every class of error in the sources has its explanation, which messages name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import definetti
from definetti.cli.commands.explain import explanations
from definetti.cli.main import run
from definetti.errors import FAILURES

TREES = [
    ast.parse(file.read_text(encoding="utf-8")) for file in sorted(Path(str(definetti.__file__)).parent.rglob("*.py"))
]


def kinds() -> set[str]:
    """First arguments of `Notice(…)`, where they are written out."""
    calls = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    made = [call.args[0] for call in calls if getattr(call.func, "id", "") == "Notice"]
    return {str(first.value) for first in made if isinstance(first, ast.Constant)}


def error_classes() -> set[str]:
    """`DefinettiError` and whatever is derived from it, at any depth."""
    bases = {
        node.name: [getattr(base, "id", "") for base in node.bases]
        for tree in TREES
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"DefinettiError"}
    while more := {name for name, above in bases.items() if found & set(above)} - found:
        found |= more
    return found


def test_everything_is_explained_and_nothing_else() -> None:
    assert set(explanations()) == kinds() | error_classes()
    assert len(kinds()) >= 10 and len(error_classes()) >= 10 and kinds() >= FAILURES


def test_explanations_say_what_to_do() -> None:
    for name, text in explanations().items():
        assert "What to do:\n- " in text or name == "DefinettiError", name


def test_the_page_on_runs_that_are_not_trusted_has_every_kind() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "untrusted.md").read_text(encoding="utf-8")
    for kind in kinds():
        assert f"\n%% generate explain {kind}\n" in page and f"[{kind}](#{kind})" in page, kind


def test_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "not-mixed", "TooLarge"]) == 0
    out = capfd.readouterr().out
    assert "R-hat" in out and "the limit and what to do" in out
    assert run(["explain", "not-mxed"]) == 2 and "did you mean not-mixed" in capfd.readouterr().err


def test_messages_name_it(capfd: pytest.CaptureFixture[str], examples: Path) -> None:
    assert run(["marginals", str(examples / "grid.uai"), "--sweeps", "1", "--seed", "1", "--quiet"]) == 1
    assert "\nmore: definetti explain " in (said := capfd.readouterr().err) and "few-samples" in said.splitlines()[-1]
    assert run(["exact", str(examples / "grid.uai"), "--query", "Y"]) == 2
    assert capfd.readouterr().err.endswith("\nmore: definetti explain UnknownName\n")
