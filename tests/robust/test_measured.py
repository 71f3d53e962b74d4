"""Figures in docs/measured can be shown, name where they come from, and are what the README shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "docs" / "measured").glob("*.json"))
RENDER = """
import pathlib, sys
sys.path[:0] = ["docs/_ext"]
import measured
name = sys.argv[1]
print(measured.measured(name))
for page in pathlib.Path("docs").rglob("*.md"):
    text = page.read_text(encoding="utf-8")
    assert page.name == "README.md" or "{measured}" not in (shown := measured.replaced(text)), page
    assert page.name == "README.md" or "{constant}" not in shown, page
    if pathlib.Path(f"docs/measured/{name}.json").resolve() in measured.files_of(text):
        print(page, "shows it")
"""
README = """
import sys
sys.path[:0] = ["benchmarks"]
import peers.table, recorded
text = open("README.md", encoding="utf-8").read()
print(recorded.PEERS_TABLE.search(text).group() == peers.table.readme(recorded.read("peers")))
"""
MERGE = """
import pathlib, sys
sys.path[:0] = ["benchmarks"]
import recorded
recorded.FOLDER = pathlib.Path(sys.argv[1])
rows = [{"name": "speed", "value": 2.0, "unit": "M/s"}]
recorded.record("some", "first", rows, "make first", note="In a hurry.")
recorded.record("some", "second", rows, "make second")
recorded.record("some", "first", [{**rows[0], "value": 3.0}], "make first")
"""

#: Times, rates, memory, errors: a page may show them from a run or from docs/measured alone. 1e-12 is a tolerance.
TYPED = re.compile(
    r"\d[\d.,]*\s*(?:CPU s\b|CPU seconds|s of CPU|M/s|M updates|M values|[kMG]B\b|ms\b|minutes|seconds|-?fold\b"
    r"|times (?:faster|cheaper|smaller|as fast))|±\s*(?!95 %)\d|\de-(?!12\b)\d|(?<![\d^.])\.\d{3}"
)
TEXTS = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]


def python(code: str, *words: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_are_shown(path: Path) -> None:
    """Every part becomes a table that says where it comes from, and some page shows it."""
    shown = python(RENDER, path.stem)
    for part in json.loads(path.read_text(encoding="utf-8")).values():
        assert part["rows"]
        assert f"`{part['command']}`, {part['date']}" in shown
        assert part["machine"]["processor"] in shown
    assert "shows it" in shown


def test_readme_shows_what_was_measured() -> None:
    """`python benchmarks/recorded.py` writes the table."""
    assert python(README).strip() == "True"


def test_a_part_replaces_itself_alone(tmp_path: Path) -> None:
    python(MERGE, str(tmp_path))
    kept = json.loads((tmp_path / "some.json").read_text(encoding="utf-8"))
    assert {name: part["rows"][0]["value"] for name, part in kept.items()} == {"first": 3.0, "second": 2.0}
    assert "note" not in kept["first"]  # the remark went with the figures that it was about
    assert {"command", "date", "commit", "machine", "rows"} == set(kept["second"])


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_measured_figure_is_typed(path: Path) -> None:
    """Outside of blocks, which the build runs, and of the table that recording writes."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!-- peers -->.*?<!-- /peers -->", "", text, flags=re.DOTALL)
    assert not [text[max(0, found.start() - 40) : found.end() + 20] for found in TYPED.finditer(text)]


@pytest.mark.parametrize(
    "text", ["5.2 CPU s", "113 M values", "a state of 400 MB", "+0.00015 ± 0.00012", "8.3e-3", ".0012"]
)
def test_a_typed_figure_is_seen(text: str) -> None:
    assert TYPED.search(text)
