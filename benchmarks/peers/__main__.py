"""One peer on one task, in a process of its own: `python -m peers FILE.npz PEER LIMIT` prints one line of JSON."""

from __future__ import annotations

import importlib
import json
import resource
import sys
from pathlib import Path

from peers.problem import Problem, set_up_limit


def peak_megabytes() -> float:
    """The most memory that this process has had (VmHWM; it leaves out what its parent had before `exec`)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    path, peer, limit = sys.argv[1:]
    problem = Problem.load(Path(path))
    seconds = int(float(limit) + set_up_limit(problem.task))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))  # the first by a signal of its own
    made = importlib.import_module(f"peers.{peer}").run(problem, float(limit))
    print(json.dumps({**made, "megabytes": peak_megabytes()}))
