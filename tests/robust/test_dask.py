"""Real clusters: Dask's LocalCluster, and a scheduler and workers from the command line, some of them killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_sampler import GRAPHS, LOGIC, theory
from saved_runs import numbers

import definetti as dft
from definetti.inference.remote import executor_at

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ASKED = {"sampler": "gibbs", "sweeps": 3000, "chains": 256, "seed": 7, "workers": 2}


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


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, 2)
    yield made
    made.close()


def test_a_local_cluster(tmp_path: Path) -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        executor_at(cluster.scheduler_address) as executor,
    ):
        for model, sampler, chains in [(GRAPHS["gibbs"][1], "gibbs", 5), (theory(tmp_path), LOGIC["gibbs"][0], 4)]:
            asked = {"sampler": sampler, "chains": chains, "sweeps": 70, "seed": 5, "workers": 2}
            assert numbers(dft.marginals(model, executor=executor, **asked)) == numbers(dft.marginals(model, **asked))


def test_workers_are_killed(cluster: Cluster, fresh_seed: int) -> None:
    """One in every run, twenty runs; another worker takes its place."""
    model, rng = dft.read(EXAMPLES / "grid.uai"), random.Random(fresh_seed)
    expected = numbers(dft.marginals(model, **ASKED))
    with executor_at(cluster.address) as executor:
        for _ in range(20):
            killer = threading.Timer(rng.uniform(0.2, 2.0), cluster.kill_one, (rng,))
            killer.start()
            assert numbers(dft.marginals(model, executor=executor, **ASKED)) == expected
            killer.join()


def test_the_command_line(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    from definetti.cli.main import run

    words = ["marginals", str(EXAMPLES / "grid.uai"), "--sampler", "gibbs", "--sweeps", "200", "--seed", "7", "--json"]
    found = []
    for more in ([], ["--dask", cluster.address]):
        run([*words, *more])
        found.append(json.loads(capsys.readouterr().out)["orbits"])
    assert found[0] == found[1]
