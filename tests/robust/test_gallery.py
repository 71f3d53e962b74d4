"""The gallery: every script states its problem, stays short, checks its own answer and ends in a picture."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "examples" / "gallery").glob("*.py"))
LINES = 60


def test_there_are_seven() -> None:
    assert len(SCRIPTS) == 7


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_is_short_and_checks_itself(script: Path) -> None:
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, problem = (ast.get_docstring(tree) or "").partition("\n")
    assert title and problem.strip()
    assert len(source.splitlines()) < LINES
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tree))


@pytest.mark.site
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs_and_draws(script: Path, tmp_path: Path) -> None:
    """In the small size; its own assertions are the test of its numbers."""
    done = subprocess.run([sys.executable, script, "--small"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    drawing = ElementTree.parse(tmp_path / f"{script.stem}.svg")
    marks = [e for e in drawing.iter() if e.tag.endswith("path") and (e.get("aria-roledescription") or "") != ""]
    assert len(marks) > 3, "the picture shows no data"
