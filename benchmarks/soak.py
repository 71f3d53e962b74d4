"""Long runs under attack: SIGKILL at random moments, full disks; every answer must be the one of an undisturbed run.

    python benchmarks/soak.py --minutes 60        or --kills 100

A kill hits a run in a process of its own, anywhere from its set-up to its last checkpoint; the run is resumed, perhaps
killed again, and its answer is compared bit by bit. Processes are forked, so that kernels are compiled once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from every_sampler import GRAPHS, LOGIC, theory

import definetti as dft
from definetti.errors import DefinettiError
from definetti.inference.saving import checkpoint
from definetti.samplers import run as loop

SWEEPS = 150
SMALL_DISK = 1 << 12  # bytes


def cases(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every sampler on every kind of model: the model, and what is asked."""
    common = {"sweeps": SWEEPS, "seed": 5, "workers": 1}
    logic, found = theory(folder), {}
    for name, (sampler, model, chains) in GRAPHS.items():
        found[f"graph {name}"] = (model, {**common, "sampler": sampler, "chains": chains})
    for name, (sampler, *_) in LOGIC.items():
        found[f"logic {name}"] = (logic, {**common, "sampler": sampler, "chains": 4})
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
        same = numbers(made) == numbers(self.truth[name])
        self.identical += same
        self.different += not same
        self.wrong_updates += abs(made.run["updates"] - self.truth[name].run["updates"])
        if not same:
            print(f"DIFFERENT: {name}", flush=True)

    def figures(self) -> dict[str, Any]:
        return {
            "kills": self.kills,
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
    minutes = 60.0 if options.minutes is None and options.kills is None else options.minutes
    began, before = time.monotonic(), None
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed)
        names = list(soak.cases)
        for k in range(1 << 30):
            soak.attack(names[k % len(names)])
            before = resident() if k == len(names) else before
            if options.kills is not None and soak.kills >= options.kills:
                break
            if minutes is not None and time.monotonic() - began > 60 * minutes:
                break
        growth = None if before is None else resident() / before - 1
        print(json.dumps({**soak.figures(), "memory_growth": growth, "seed": options.seed}))
    return 1 if soak.different or soak.foreign or soak.wrong_updates else 0


if __name__ == "__main__":
    sys.exit(main())
