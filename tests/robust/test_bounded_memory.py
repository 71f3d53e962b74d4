"""What would take more memory than there is ends with a sentence that has the figure and a cure, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from definetti.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LARGE = ["marginals", str(EXAMPLES / "grid.uai"), "--sampler", "gibbs", "--chains", "3000000", "--sweeps", "9"]


def test_max_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([*LARGE, "--max-memory", "800MB", "--quiet", "-o", "run.dft"]) == 2
    said = capsys.readouterr().err
    assert "too large" in said and "GB" in said, said
    assert [path.name for path in tmp_path.iterdir()] == [".run.dft.lock"]  # nothing half-written


@pytest.mark.parametrize("size", ["0", "-1", "lots", "4Q", "1e9"])
def test_no_size(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["exact", str(EXAMPLES / "grid.uai"), "--max-memory", size]) == 2
    assert "is no size" in capsys.readouterr().err


def test_under_a_limit_of_the_address_space() -> None:
    line = [sys.executable, "-m", "definetti", *LARGE, "--quiet"]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 3000000; exec "$@"', "bash", *line], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and ("too large" in done.stderr or "out of memory" in done.stderr), done.stderr
    assert "Traceback" not in done.stderr
