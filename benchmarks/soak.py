"""Long runs under attack: SIGKILL at random moments, full disks, Dask workers that die; every answer must be the one of
an undisturbed run.

    python benchmarks/soak.py --minutes 60        or --kills 100

A kill hits a run in a process of its own, anywhere from its set-up to its last checkpoint; the run is resumed, perhaps
killed again, and its answer is compared bit by bit. Processes are forked, so that kernels are compiled once. Without
Dask (the extra `dask`) its workers are left out, and `workers_killed` is null.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from dask_processes import Cluster
from every_sampler import GRAPHS, LOGIC, coexisting, theory

import definetti as dft
from definetti.errors import DefinettiError
from definetti.inference.remote import executor_at
from definetti.inference.saving import checkpoint
from definetti.samplers import run as loop

SWEEPS = 150
SMALL_DISK = 1 << 12  # bytes
PATIENT = {"time_limit": 600.0}  # a machine that stands still for a while must not decide about symmetries
EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def spread_run() -> tuple[Any, dict[str, Any]]:
    """What is spread over workers."""
    return dft.read(EXAMPLES / "grid.uai"), {
        "sampler": "gibbs",
        "sweeps": 3000,
        "chains": 256,
        "seed": 7,
        "workers": 2,
        **PATIENT,
    }


def cases(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every sampler on every kind of model: the model, and what is asked."""
    common = {"sweeps": SWEEPS, "seed": 5, "workers": 1, **PATIENT}
    logic, found = theory(folder), {}
    for name, (sampler, model, chains) in GRAPHS.items():
        found[f"graph {name}"] = (model, {**common, "sampler": sampler, "chains": chains})
    for name, (sampler, *_) in LOGIC.items():
        found[f"logic {name}"] = (logic, {**common, "sampler": sampler, "chains": 4})
    for kind in ("graph", "logic"):
        found[f"{kind} mixture of modes"] = (coexisting(kind), {**common, "chains": 8})
    return found


def numbers(answer: Any) -> str:
    found = answer.to_json(None)
    counts = {key: found["run"][key] for key in ("sampler", "sweeps", "burn_in", "updates")}
    return json.dumps([found["orbits"], found["warnings"], counts])


def forked(work: Any) -> int:
    """The process that does it; its exit code is 0 where nothing was raised, 2 for an error of ours."""
    process = os.fork()
    if process:
        return process
    code = 3
    try:
        work()
        code = 0
    except DefinettiError:
        code = 2
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def full_disk(work: Any) -> Any:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_DISK, SMALL_DISK))
        work()

    return limited


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


class Soak:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, np.random.default_rng(seed)
        self.cases, self.truth, self.took = cases(folder), {}, {}
        self.kills = self.identical = self.different = self.full = self.foreign = 0
        self.wrong_updates = 0
        self.cluster = Cluster(folder, 2) if importlib.util.find_spec("distributed") is not None else None
        self.workers_killed = 0

    def undisturbed(self, name: str) -> None:
        model, asked = self.cases[name]
        dft.marginals(model, **asked)  # compiles
        began = time.perf_counter()
        self.truth[name] = dft.marginals(model, **asked)
        self.took[name] = time.perf_counter() - began

    def attack(self, name: str) -> None:
        """One run: killed at random until it comes to its end, sometimes on a full disk; then compared."""
        if name not in self.truth:
            self.undisturbed(name)
        model, asked = self.cases[name]
        path = self.folder / "run.dft"
        for old in self.folder.glob("*run.dft*"):
            old.unlink()

        def begin() -> None:
            dft.marginals(model, checkpoint=path, **asked)

        def go_on() -> None:
            dft.resume(path)

        for _ in range(int(self.rng.integers(1, 4))):
            work = go_on if path.exists() else begin
            disk = self.rng.random() < 0.1
            process = forked(full_disk(work) if disk else work)
            time.sleep(self.rng.uniform(0.0, 1.5 * self.took[name]))
            done, status = os.waitpid(process, os.WNOHANG)
            if not done:
                os.kill(process, signal.SIGKILL)
                _, status = os.waitpid(process, 0)
            if os.WIFSIGNALED(status):
                self.kills += 1
            elif os.WEXITSTATUS(status) == 2 and disk:
                self.full += 1
            elif os.WEXITSTATUS(status) == 0:
                break
            else:
                self.foreign += 1
        if not path.exists():
            begin()
        made = dft.resume(path)
        self.compare(name, numbers(made))
        self.wrong_updates += abs(made.run["updates"] - self.truth[name].run["updates"])

    def compare(self, name: str, made: str) -> None:
        truth = numbers(self.truth[name])
        self.identical += made == truth
        self.different += made != truth
        if made != truth:
            at = next((i for i, (a, b) in enumerate(zip(made, truth, strict=False)) if a != b), 0)
            print(
                f"DIFFERENT: {name}: …{made[max(at - 80, 0) : at + 80]}… for …{truth[max(at - 80, 0) : at + 80]}…",
                flush=True,
            )

    def attack_workers(self) -> None:
        """One run on two Dask workers, of which one is killed on the way; another takes its place."""
        if self.cluster is None:
            return
        model, asked = spread_run()
        if "workers" not in self.truth:
            self.cases["workers"] = (model, asked)
            self.undisturbed("workers")
        answer, address = self.folder / "answer", self.cluster.address

        def work() -> None:
            with executor_at(address) as executor:
                answer.write_text(numbers(dft.marginals(model, executor=executor, **asked)), encoding="utf-8")

        answer.write_text("")
        process = forked(work)
        time.sleep(self.rng.uniform(0.2, 2.0 + 1.5 * self.took["workers"]))
        self.cluster.kill_one(random.Random(int(self.rng.integers(1 << 30))))
        self.workers_killed += 1
        _, status = os.waitpid(process, 0)
        self.foreign += status != 0
        self.compare("workers", answer.read_text(encoding="utf-8"))

    def figures(self) -> dict[str, Any]:
        return {
            "kills": self.kills,
            "workers_killed": None if self.cluster is None else self.workers_killed,
            "full_disks": self.full,
            "results_identical": self.identical,
            "results_different": self.different,
            "updates_missing_or_twice": self.wrong_updates,
            "foreign_exits": self.foreign,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--kills", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    checkpoint.LEAST_SECONDS, checkpoint.SHARE, loop.CHUNK_SECONDS = 0.0, 0.5, 1e-4
    sys.dont_write_bytecode = True  # Python leaves cut-off files of its own on a full disk
    minutes = 60.0 if options.minutes is None and options.kills is None else options.minutes
    began, before = time.monotonic(), None
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed)
        names = list(soak.cases)
        try:
            for k in range(1 << 30):
                soak.attack(names[k % len(names)])
                if k % 8 == 7 and options.kills is None:
                    soak.attack_workers()
                before = resident() if k == len(names) else before
                if options.kills is not None and soak.kills >= options.kills:
                    break
                if minutes is not None and time.monotonic() - began > 60 * minutes:
                    break
        finally:
            if soak.cluster is not None:
                soak.cluster.close()
        growth = None if before is None else resident() / before - 1
        print(json.dumps({**soak.figures(), "memory_growth": growth, "seed": options.seed}))
    return 1 if soak.different or soak.foreign or soak.wrong_updates else 0


if __name__ == "__main__":
    sys.exit(main())
