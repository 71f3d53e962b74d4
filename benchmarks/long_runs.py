"""Long runs: what checkpoints cost, how large they are, and two workers beside two processes.

`python benchmarks/long_runs.py checkpoints MODEL SECONDS` and `… memory MODEL SECONDS` measure one case and print JSON;
`make bench` has no row of the last, which takes ten minutes.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, in_process
from models import paper_grid, random_tables
from relational import smokers

import definetti as dft
from definetti.inference.question import Request, ready_for
from definetti.inference.saving import checkpoint
from definetti.journal import Part
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.protocol import Plan

MODELS: dict[str, Callable[[], Any]] = {
    "grid": lambda: paper_grid(100),
    "tables": random_tables,
    "smokers": lambda: smokers(1000, True),
}
NAMES = {"grid": "grid", "tables": "3-ary tables", "smokers": "smokers-transitive-1000"}
LANES = {"grid": 1024, "tables": 1024, "smokers": 8}
WARM, MEASURED = 20.0, 2.0  # seconds; at first batches are short, and folding them is much of the work
ROUNDS = 9
LOOKS = 100  # at the memory


TASKS = ("checkpoints", "workers")


def rows(quick: bool, only: tuple[str, ...] = TASKS) -> list[Row]:
    work = {"checkpoints": lambda: written(quick), "workers": two_workers}
    return [row for task in only for row in work[task]()]


def written(quick: bool) -> list[Row]:
    out = []
    for name, title in NAMES.items():
        for seconds in (20,) if quick else (20, 60, 300):
            found = in_process("long_runs.py", "checkpoints", name, str(seconds))
            note = f"{found['writes']} writes, the last {found['last']:.2f} s, {found['megabytes']:.1f} MB; wall time"
            note += f" ({found['cpu_share']:.2g} % of CPU time)"
            out.append(Row(f"checkpoints, {title}, {seconds} s", found["share"], "% of time", 2.0, False, note))
            if name == "smokers":
                out.append(Row(f"checkpoint, {title}, {seconds} s", found["megabytes"], "MB", 5.0, at_least=False))
    return out


def two_workers() -> list[Row]:
    if (os.cpu_count() or 1) < 2:
        return []
    found = {title: together(name) for name, title in NAMES.items()}
    return [
        Row(f"2 workers / 2 processes, {title}", ratio, "times", 0.9, note=note)
        for title, (ratio, note) in found.items()
    ]


# --- checkpoints ------------------------------------------------------------------------------------------------------


def checkpoints(name: str, seconds: float) -> dict[str, float]:
    """A run with a checkpoint, by the clock: all that is done for the file, from packing the model to the answer."""
    spent: list[float] = []
    cpu: list[float] = []

    def timed(owner: Any, method: str) -> None:
        plain = getattr(owner, method)

        def run(*arguments: Any, **more: Any) -> Any:
            began, used = time.perf_counter(), time.process_time()
            try:
                return plain(*arguments, **more)
            finally:
                spent.append(time.perf_counter() - began)
                cpu.append(time.process_time() - used)

        setattr(owner, method, run)

    for owner, method in ((Part, "keep"), (checkpoint.Checkpoint, "begin"), (checkpoint.Checkpoint, "finish"),
                          (checkpoint.encoding, "encoded")):  # fmt: skip
        timed(owner, method)
    writes: list[float] = []
    plain = checkpoint.Checkpoint.write

    def write(self: Any, began: float) -> None:
        plain(self, began)
        writes.append(time.perf_counter() - began)

    checkpoint.Checkpoint.write = write  # type: ignore[method-assign]
    model = MODELS[name]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.dft"
        began, used = time.perf_counter(), time.process_time()
        dft.marginals(model, sampler="gibbs", seconds=seconds, seed=1, workers=1, checkpoint=path)
        took, all_cpu = time.perf_counter() - began, time.process_time() - used
        size = path.stat().st_size / 1e6
    return {
        "share": 100 * sum(spent) / took,
        "cpu_share": 100 * sum(cpu) / all_cpu,
        "writes": len(writes),
        "last": writes[-1],
        "megabytes": size,
        "took": took,
    }


# --- memory -----------------------------------------------------------------------------------------------------------


def memory(name: str, seconds: float) -> dict[str, Any]:
    """The resident memory of a run that writes checkpoints and is watched. An open run has 32 to 64 batches, which it
    merges in pairs, so that memory rises and falls between merges: the highest points of the second half are compared
    with those between a tenth and the half."""
    seen: list[tuple[float, int]] = []
    began = time.perf_counter()

    def look(progress: Any) -> None:
        now = time.perf_counter() - began
        if progress.phase == "sampling" and (not seen or now >= seen[-1][0] + seconds / LOOKS):
            seen.append((now, resident()))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.dft"
        dft.marginals(
            MODELS[name](), sampler="gibbs", seconds=seconds, seed=1, workers=1, checkpoint=path, progress=look
        )
    first, second = (
        max(size for when, size in seen if low <= when / seconds < high) for low, high in ((0.1, 0.5), (0.5, 2.0))
    )
    return {
        "growth": second / first - 1,
        "megabytes": second / 1e6,
        "seen": [(round(t, 1), s // 1000) for t, s in seen],
    }


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- workers ----------------------------------------------------------------------------------------------------------


def together(name: str) -> tuple[float, str]:
    """Updates per second of one process with two workers, over those of two processes with one each: the median of
    rounds in which both are measured, one right after the other. A core of a shared machine may run at half its speed
    for a while. The note says how many cores each side had: where two processes had less than two, other work took the
    rest, and the side that waits for the slower of its two threads suffers more from it."""
    sides = [_started(name, [2]), _started(name, [1, 1])]
    for process in (process for side in sides for process in side):
        assert process.stdout is not None
        process.stdout.readline()
    found = [[_rate(side) for side in sides] for _ in range(ROUNDS)]
    for process in (process for side in sides for process in side):
        process.communicate()
    ratio = statistics.median(float(both[0] / apart[0]) for both, apart in found)
    (both, cores), (apart, more) = np.median(found, axis=0)
    note = f"{both / 1e6:.4g} and {apart / 1e6:.4g} M updates/s by the clock, on {cores:.2f} and {more:.2f} cores"
    return ratio, f"{note}, {ROUNDS} rounds of {MEASURED:g} s"


def _started(name: str, workers: list[int]) -> list[subprocess.Popen[str]]:
    command, pipe = [sys.executable, __file__, "workers", name], subprocess.PIPE
    return [subprocess.Popen([*command, str(count)], stdin=pipe, stdout=pipe, text=True) for count in workers]


def _rate(running: list[subprocess.Popen[str]]) -> np.ndarray:
    """Updates per second, and cores in use, of processes that run at the same time."""
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [process.stdout.readline().split() for process in running if process.stdout is not None]
    return np.array(lines, float).sum(axis=0)


def workers(name: str, count: int) -> None:
    """Sampling alone, folding included: for some seconds at every line that is read, updates a second and cores in use
    on a line."""
    model, kernel = MODELS[name](), Gibbs()
    question = ready_for(
        model, Request("none" if name == "tables" else "auto", kernel, "symmetric", (), "auto", 1, 10.0)
    ).question
    sampling = question.sampling(kernel, Plan(LANES[name], 1, None, 1, count), "auto")
    steps = sampling.steps()
    _advanced(sampling, steps, WARM)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(*_advanced(sampling, steps, MEASURED), flush=True)


def _advanced(sampling: Any, steps: Iterator[Any], seconds: float) -> tuple[float, float]:
    before, began, used = sampling.updates, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        next(steps)
    took = time.perf_counter() - began
    return (sampling.updates - before) / took, (time.process_time() - used) / took


if __name__ == "__main__":
    what, case, number = sys.argv[1:]
    if what == "workers":
        workers(case, int(number))
    else:
        print(json.dumps({"checkpoints": checkpoints, "memory": memory}[what](case, float(number))))
