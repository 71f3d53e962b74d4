"""A Dask cluster from the command line, whose workers can be killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path


class Cluster:
    """A scheduler and workers, each a process of the command line."""

    def __init__(self, folder: Path, count: int) -> None:
        self.file, self.workers = folder / "scheduler.json", []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        while not self.file.exists():
            time.sleep(0.1)
        for _ in range(count):
            self.add()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([sys.executable, "-m", "dask", *words], **quiet)

    def add(self) -> None:
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--scheduler-file", str(self.file))
        self.workers.append(self._start("worker", *words))

    @property
    def address(self) -> str:
        return json.loads(self.file.read_text())["address"]

    def kill_one(self, rng: random.Random) -> None:
        worker = self.workers.pop(rng.randrange(len(self.workers)))
        worker.kill()
        worker.wait()
        self.add()

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
