"""Real clusters: Dask's LocalCluster, and a scheduler and workers from the command line, some of them killed."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_processes import Cluster
from every_sampler import GRAPHS, LOGIC, theory
from saved_runs import numbers

import definetti as dft
from definetti.inference.remote import executor_at

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ASKED = {"sampler": "gibbs", "sweeps": 3000, "chains": 256, "seed": 7, "workers": 2}


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
