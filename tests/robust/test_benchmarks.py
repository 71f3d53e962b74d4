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


PEERS = """
import pathlib, tempfile
import numpy as np
import peers
from peers.belief_propagation import run
from peers.problem import Problem
from peers.table import full, short

for file, _ in peers.PEERS.values():
    assert set(peers.cannot(file)) <= set(peers.TASKS), file

rng = np.random.default_rng(1)
tables = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=3)  # a chain of 2, 3 and 2 values
joint = np.exp(tables[0][:, :, None] + tables[1][None] + tables[2][None, :, None])
joint /= joint.sum()
truth = np.zeros((3, 3))
for k in range(3):
    own = joint.sum(axis=tuple(a for a in range(3) if a != k))
    truth[k, : len(own)] = own
first, scope = np.array([0, 2, 4, 5]), np.array([0, 1, 1, 2, 1])
made = Problem("potts", np.array([2, 3, 2]), first, scope, np.arange(3), tables, truth)
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "potts.npz"
    made.save(path)
    again = Problem.load(path)
assert all((a == b).all() for a, b in zip(again.tables, made.tables)) and len(again.tables) == 3
assert abs(again.divergence(truth)) < 1e-15
assert abs(again.divergence(truth[:, ::-1])) > 1e-3
assert run(again, 5.0)["kl"] < 1e-12  # exact on a tree
found = run(Problem("potts", made.cards, first, scope, np.arange(3), tables, truth[::-1]), 5.0)
assert found["seconds"] is None and found["kl"] > 1e-3

ours = {"set_up": 1.0, "seconds": 0.5, "rate": 2e6, "megabytes": 10, "kl": 1e-5}
rows = [peers._row("grid", "definetti", ours, None),
        peers._row("grid", "thrml", {"set_up": 1.0, "seconds": 2.0, "rate": 1e6, "megabytes": 20, "kl": 9e-5}, 0.5),
        peers._row("grid", "pgmpy", {"why": "not installed"}, 0.5)]
kept = [dict(row.more) for row in rows]
assert "| thrml | 1 | 1 | 20 | 2 | 4 | 9.0e-05 |" in full(kept) and "pgmpy: not installed" in full(kept)
assert "| Grid 100×100 | 0.5 | – | – | 2 |" in short({"grid": {"rows": kept}})
print("done")
"""

LOOKING = """
import sys, types
def marginals(model, sweeps, progress, **options):
    for phase, done, seconds in (("warm-up", 7, 3.0), ("sampling", 20, 4.0), ("sampling", 100, 8.0)):
        progress(types.SimpleNamespace(phase=phase, done=done, seconds=seconds))
        sum(range(10**6))
"""


def test_every_family_loads() -> None:
    run(LOAD)


def test_coverage_is_measured_on_both_kinds_of_model() -> None:
    """With a few repetitions: loading it shows nothing of what it asks the package for."""
    code = """
import intervals
from error_models import people
from repetitions import Case
for symmetries in ("auto", "literals"):
    found = intervals.coverage(Case("smokers", people(3), symmetries), 4)
    assert {row["estimator"] for row in found} == set(intervals.METHODS)
    assert all(0.25 <= row["coverage"] <= 1.0 and row["width"] > 0.0 for row in found), found
"""
    run(code)


def test_peers_are_measured_by_what_is_true() -> None:
    """Problems survive being written, divergences are those of the truth, belief propagation is exact on a tree."""
    assert run(PEERS) == "done"


def test_sources_of_older_commits_can_be_measured(tmp_path: Path) -> None:
    """What is compared with them loads nothing of the package but its public names, and these when it runs."""
    (tmp_path / "definetti.py").write_text("")
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    found = run(f"{before}; import against, models, hard, definetti; print(definetti.__file__)")
    assert found.startswith(str(tmp_path))


def test_looks_at_the_error_are_not_measured(tmp_path: Path) -> None:
    """What a run does between two reports of its sampling, as for a progress bar, is no time of its kernel."""
    (tmp_path / "definetti.py").write_text(LOOKING)
    before = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    assert float(run(f"{before}; import against; print(against.sampled(None, 100, 1)())")) == pytest.approx(5.0)


def test_memory_is_that_of_the_process_alone() -> None:
    """A parent with much memory does not show in its children."""
    held = bytearray(400 << 20)
    held[:: 1 << 12] = b"x" * len(held[:: 1 << 12])
    assert float(run(PEAK)) < 200


@pytest.mark.parametrize(("seconds", "late"), [(1.0, []), (1.09, []), (1.12, ["f", "f, b"]), (1.25, ["f", "f, b"])])
def test_what_is_too_slow(seconds: float, late: list[str]) -> None:
    assert run(VERDICT % seconds).splitlines()[-1] == str(late)


def test_rows_shorter_than_a_tick_are_alike() -> None:
    """The clock showed 0 for one of them, and nothing was compared at all."""
    code = "import against; print(against.report('f', 'c', {'old': {'a': 0.0}, 'new': {'a': 0.002}}))"
    assert run(code).splitlines()[-1] == "[]"
