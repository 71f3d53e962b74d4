"""The README is true: its Python is run, its commands are run, and the output it shows is the output there is.

A line `...` in the shown output stands for anything (times, versions, rows left out).
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import definetti

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = Path(str(definetti.__file__)).parents[1]  # the package under test, from any folder
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(HOME)}
LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def session() -> list[tuple[str, str]]:
    """Each command of the console blocks with the output that follows it."""
    steps: list[tuple[str, str]] = []
    for line in "".join(blocks("console")).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, output = steps[-1]
            steps[-1] = (command, output + line + "\n")
    return steps


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_python(folder: Path) -> None:
    assert blocks("python")
    done = call(folder, "-W", "error", "-c", "\n".join(blocks("python")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("8 21\n")


def test_console(folder: Path) -> None:
    assert len(session()) >= 3
    for command, output in session():
        name, *words = shlex.split(command)
        assert name == "definetti"
        done = call(folder, "-m", name, *words)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert doctest.OutputChecker().check_output(output, done.stdout, LOOSE), f"{command}\n{done.stdout}"


def test_files_that_it_names_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_every_example_is_listed() -> None:
    """`examples/README.md` has a row for every file beside it, and no other."""
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    there = {file.name + "/" * file.is_dir() for file in (ROOT / "examples").iterdir()}
    assert listed == there - {"README.md", "__pycache__/"}
