"""The benchmarks take long and are not run here; that they fit the package is seen by loading them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LOAD = "import importlib, run; [importlib.import_module(family).rows for family in run.FAMILIES]"


def test_every_family_loads() -> None:
    subprocess.run([sys.executable, "-c", LOAD], cwd=BENCHMARKS, check=True, timeout=120)
