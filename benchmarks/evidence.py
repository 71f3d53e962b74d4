"""Evidence-heavy models: joins over the facts against loops over bits, and how long a first answer takes.

Each measurement is a process of its own (`python benchmarks/evidence.py NAME SIZE PATH SECONDS` prints one). The loops
over bits are what a named sampler uses; where they give no answer within their time, there is no ratio.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measuring import HERE, Row, peak_megabytes

EXAMPLES = HERE.parent / "examples"
MODELS = {"university": ("#AdvisedBy", 300, 60), "citations": ("#SameRecord", 500, 100)}  # query, size, small size
SECONDS = {"joins": 20, "bits": 40}  # of an answer, compiling included
LONGEST = 600  # until loops over bits are given up


def rows(quick: bool) -> list[Row]:
    out = []
    for name, (_, large, small) in MODELS.items():
        size = small if quick else large
        joins, bits = (_measured(name, size, path) for path in ("joins", "bits"))
        assert joins is not None, "joins give an answer"
        what = f"{name} {size}"
        out.append(Row(f"{what}: first answer", joins["cpu"], "CPU s", 30, False, joins["answer"]))
        out.append(Row(f"{what}: most memory", joins["megabytes"], "MB", 2000, False))
        out.append(Row(f"{what}: joins", joins["rate"] / 1e6, "M updates/s", note=f"{joins['updates']:,} updates"))
        if bits is None:
            out.append(Row(f"{what}: bit loops", None, "M updates/s", note=f"no answer in {LONGEST} s"))
        else:
            out.append(Row(f"{what}: bit loops", bits["rate"] / 1e6, "M updates/s", note=f"{bits['cpu']:.0f} CPU s"))
            ratio = joins["rate"] / max(bits["rate"], 1e-9)
            out.append(Row(f"{what}: joins ÷ bit loops", ratio, "times", 10 if size == large else None))
    return out


def _measured(name: str, size: int, path: str) -> dict[str, Any] | None:
    command = [sys.executable, str(Path(__file__)), name, str(size), path, str(SECONDS[path])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[-1])


def measure(name: str, size: int, path: str, seconds: float) -> dict[str, Any]:
    sys.path.insert(0, str(EXAMPLES))
    import importlib

    import definetti as dft

    made = importlib.import_module(f"make_{name}")
    model, evidence = made.department(size) if name == "university" else made.citations(size)
    query, began = MODELS[name][0], time.process_time()
    options: dict[str, Any] = {}
    if path == "bits":
        options = {"sampler": "gibbs", "symmetries": "none", "chains": 2, "burn_in": 0}
    found = dft.marginals(dft.markov_logic(model, evidence), query, seed=1, seconds=seconds, **options)
    taken = found.run["seconds"]["sample_cpu"]
    return {
        "cpu": time.process_time() - began, "updates": found.run["updates"], "rate": found.run["updates"] / taken,
        "megabytes": peak_megabytes(), "answer": str(found[query]),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))))
