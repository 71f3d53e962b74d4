"""The benchmarks take long and are not run here; that they fit the package is seen by loading them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOAD = "import importlib, run, against; [importlib.import_module(family).rows for family in run.FAMILIES]"
PEAK = "from measuring import peak_megabytes; print(peak_megabytes())"
VERDICT = "import against; print(against.report('f', 'c', {'old': {'a': 1.0, 'b': 1.0}, 'new': {'a': 1.0, 'b': %s}}))"


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS, check=True, timeout=120, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_every_family_loads() -> None:
    run(LOAD)


def test_sources_of_older_commits_can_be_measured(tmp_path: Path) -> None:
    """What is compared with them loads nothing of the package but its public names, and these when it runs."""
    (tmp_path / "definetti.py").write_text("")
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    found = run(f"{before}; import against, models, hard, definetti; print(definetti.__file__)")
    assert found.startswith(str(tmp_path))


def test_memory_is_that_of_the_process_alone() -> None:
    """A parent with much memory does not show in its children."""
    held = bytearray(400 << 20)
    held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])
    assert float(run(PEAK)) < 200


@pytest.mark.parametrize(("seconds", "late"), [(1.0, []), (1.09, []), (1.12, ["f", "f, b"]), (1.25, ["f", "f, b"])])
def test_what_is_too_slow(seconds: float, late: list[str]) -> None:
    assert run(VERDICT % seconds).splitlines()[-1] == str(late)
