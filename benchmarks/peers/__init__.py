"""Beside the peers: set-up, updates per second, memory, and time until the average KL divergence is below 10^-4.

`tasks.py` makes the models and their truths as plain arrays; every other file is one peer, with `run(problem, limit)`
and with CANNOT, the tasks that it cannot do and why. Each pair runs by itself in a fresh process (`python -m peers FILE
PEER LIMIT` in this folder's parent prints one line of JSON) that loads the arrays and the peer, nothing else: its
memory is its own. Times are CPU seconds of all threads. A peer that is not installed, or cannot do a task, has a row
that says so.

    python benchmarks/run.py --only peers [--tasks grid,potts] [--quick] [--record]
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import HERE, Row

from peers.problem import set_up_limit
from peers.tasks import TASKS

OURS = "definetti"
#: name → file of this folder, package that it needs
PEERS: dict[str, tuple[str, str | None]] = {
    OURS: ("ours", None),
    "definetti, exact": ("ours_exact", None),
    "plain Numba loop": ("numba_loop", None),
    "dwave-samplers": ("dwave_ising", "dwave.samplers"),
    "thrml": ("thrml_blocks", "thrml"),
    "peapods": ("peapods_lattice", "peapods"),
    "numpyro": ("numpyro_gibbs", "numpyro"),
    "pgmpy": ("pgmpy_graph", "pgmpy"),
    "pyagrum": ("pyagrum_graph", "pyagrum"),
    "pyERGM": ("pyergm_graph", "pyERGM"),
    "loopy belief propagation": ("belief_propagation", None),
}
LIMIT, QUICK_LIMIT = 6.0, 2.0  # CPU seconds of sampling


def rows(quick: bool, only: tuple[str, ...] = tuple(TASKS)) -> list[Row]:
    """One row for each task and peer: CPU seconds to the goal (None: not reached), the rest in `more`."""
    limit, out = QUICK_LIMIT if quick else LIMIT, []
    with tempfile.TemporaryDirectory() as folder:
        for task in only:
            path = Path(folder) / f"{task}.npz"
            TASKS[task]().save(path)
            ours: float | None = None
            for peer in PEERS:
                found = measured(task, path, peer, limit)
                ours = found.get("seconds") if peer == OURS else ours
                out.append(_row(task, peer, found, ours))
                print(f"{out[-1].name}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return out


def measured(task: str, path: Path, peer: str, limit: float) -> dict[str, Any]:
    """What a fresh process measures, or why there is nothing to measure."""
    file, package = PEERS[peer]
    why = cannot(file).get(task)
    if why is not None:
        return {"why": why}
    if package is not None and not _installed(package):
        return {"why": "not installed"}
    command = [sys.executable, "-m", "peers", str(path), file, str(limit)]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return {"why": f"not done after {limit + set_up_limit(task):.0f} CPU seconds"}
    if done.returncode:
        text = done.stderr.strip().splitlines()
        return {"why": f"failed: {text[-1][:120] if text else done.returncode}"}
    return json.loads(done.stdout.strip().splitlines()[-1])


def cannot(file: str) -> dict[str, str]:
    """The tasks that a peer cannot do; files load their package when they run."""
    return importlib.import_module(f"peers.{file}").CANNOT


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _row(task: str, peer: str, found: dict[str, Any], ours: float | None) -> Row:
    name = f"peers, {task}, {peer}"
    if "why" in found:
        return Row(name, None, "", note=found["why"], more={"task": task, "peer": peer, **found})
    seconds = found.get("seconds")
    ratio = seconds / ours if seconds and ours and peer != OURS else None
    rate = f"{found['rate'] / 1e6:.3g} M updates/s, " if found.get("rate") else ""
    said = [f"set-up {found['set_up']:.2g} s, {rate}{found['megabytes']:.0f} MB"]
    said += [f"KL {found['kl']:.2g}"] if found.get("kl") is not None else []
    said += [f"{ratio:.3g} times ours"] if ratio else []
    said += [found["note"]] if found.get("note") else []
    more = {"task": task, "peer": peer, **found, "ratio": ratio}
    return Row(name, seconds, "CPU s", note="; ".join(said), more=more)
