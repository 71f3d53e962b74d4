"""Long runs: what checkpoints cost, how large they are, and two workers beside two processes.

`python benchmarks/long_runs.py checkpoints MODEL SECONDS`, `… workers MODEL COUNT` and `… memory MODEL SECONDS` measure
one case and print JSON; `make bench` has no row of the last, which takes ten minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
WARM, MEASURED = 10.0, 10.0  # seconds; at first batches are short, and folding them is much of the work
LOOKS = 100  # at the memory


def rows(quick: bool) -> list[Row]:
    out = []
    for name, title in NAMES.items():
        for seconds in (20,) if quick else (20, 60, 300):
            found = in_process("long_runs.py", "checkpoints", name, str(seconds))
            note = f"{found['writes']} writes, the last {found['last']:.2f} s, {found['megabytes']:.1f} MB; wall time"
            note += f" ({found['cpu_share']:.2g} % of CPU time)"
            out.append(Row(f"checkpoints, {title}, {seconds} s", found["share"], "% of time", 2.0, False, note))
            if name == "smokers":
                out.append(Row(f"checkpoint, {title}, {seconds} s", found["megabytes"], "MB", 5.0, at_least=False))
    if (os.cpu_count() or 1) >= 2:
        for name, title in NAMES.items():
            ratio, note = together(name)
            out.append(Row(f"2 workers / 2 processes, {title}", ratio, "times", 0.9, note=note))
    return out


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
    """Updates per second of one process with two workers, over those of two processes with one each."""
    both = sum(_started(name, [2]))
    apart = sum(_started(name, [1, 1]))
    return both / apart, f"{both / 1e6:.4g} and {apart / 1e6:.4g} M updates/s by the clock"


def _started(name: str, workers: list[int]) -> list[float]:
    """The rates of processes that run at the same time, each once all are warm."""
    command = [sys.executable, __file__, "workers", name]
    running = [
        subprocess.Popen([*command, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for count in workers
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [json.loads(process.communicate()[0])["rate"] for process in running]


def workers(name: str, count: int) -> dict[str, float]:
    """Sampling alone, folding included, for some seconds."""
    model, kernel = MODELS[name](), Gibbs()
    question = ready_for(
        model, Request("none" if name == "tables" else "auto", kernel, "symmetric", (), "auto", 1, 10.0)
    ).question
    sampling = question.sampling(kernel, Plan(LANES[name], 1, None, 1, count), "auto")
    steps, began = sampling.steps(), time.perf_counter()
    while time.perf_counter() - began < WARM:
        next(steps)
    print("ready", flush=True)
    sys.stdin.readline()
    before, began = sampling.updates, time.perf_counter()
    while time.perf_counter() - began < MEASURED:
        next(steps)
    return {"rate": (sampling.updates - before) / (time.perf_counter() - began)}


if __name__ == "__main__":
    what, case, *rest = sys.argv[1:]
    measure: Any = {"checkpoints": checkpoints, "memory": memory, "workers": workers}[what]
    print(json.dumps(measure(case, (int if what == "workers" else float)(rest[0]))))
