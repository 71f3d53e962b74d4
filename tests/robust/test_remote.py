"""Chains on other processes: the numbers of a local run, bit by bit, whoever computes them and whoever dies."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from every_sampler import GRAPHS, LOGIC, theory
from saved_runs import Killed, killer, numbers

import definetti as dft
from definetti.inference import remote
from definetti.inference.remote import Done, Piece


class Elsewhere:
    """An executor whose workers are runs of their own in this process; some die with their piece."""

    def __init__(self, deaths: int = 0) -> None:
        self.left, self.done = deaths, 0

    def submit(self, work: Callable[[Piece], Done], piece: Piece) -> Future[Done]:
        future: Future[Done] = Future()
        if self.left and self.done % 3 == 2:
            self.left -= 1
            remote._LOCAL.__dict__.clear()  # its memory is gone, too
            future.set_exception(ConnectionError("the worker died"))
        else:
            try:
                future.set_result(work(piece))
            except Exception as error:
                future.set_exception(error)
        self.done += 1
        return future


def some(table: dict[str, Any], quick: tuple[str, ...]) -> list[Any]:
    """All samplers that are spread, those with engines that others have outside of the gate."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow) for n in table if n != "lifted"]


def check(model: Any, deaths: int, **asked: Any) -> None:
    executor: Any = Elsewhere(deaths)
    made = dft.marginals(model, executor=executor, **asked)
    assert numbers(made) == numbers(dft.marginals(model, **asked))
    assert executor.left == 0


@pytest.mark.parametrize("name", some(GRAPHS, ("gibbs", "gibbs-words", "blocks", "tempering", "mcsat")))
def test_factor_graphs(name: str) -> None:
    sampler, model, chains = GRAPHS[name]
    check(model, 2, sampler=sampler, chains=chains, sweeps=70, seed=5, workers=2, queries=["X0=1 ^ X1=0"])


@pytest.mark.parametrize("name", some(LOGIC, ("gibbs", "mcsat", "tempering", "orbital-metropolis")))
def test_markov_logic(name: str, tmp_path: Path) -> None:
    query = ["P(Thing1) ^ R(Thing1,Thing2)"]
    check(theory(tmp_path), 2, sampler=LOGIC[name][0], chains=4, sweeps=70, seed=5, workers=1, queries=query)


def test_a_local_loop_stays_local(tmp_path: Path) -> None:
    check(theory(tmp_path), 0, sampler="lifted", chains=2, sweeps=20, seed=5)


def test_until_and_checkpoints(tmp_path: Path) -> None:
    model, executor = GRAPHS["gibbs-words"][1], Elsewhere()
    asked: dict[str, Any] = {"sampler": "gibbs", "until": 0.01, "seed": 5}
    assert numbers(dft.marginals(model, executor=executor, **asked)) == numbers(dft.marginals(model, **asked))
    path = tmp_path / "run.dft"
    with pytest.raises(Killed):
        dft.marginals(model, executor=executor, sampler="gibbs", sweeps=70, seed=5, checkpoint=path, progress=killer(4))
    local = dft.marginals(model, sampler="gibbs", sweeps=70, seed=5)
    assert numbers(dft.resume(path, executor=executor)) == numbers(local)


def test_workers_that_always_die_are_an_error() -> None:
    class Dying:
        def submit(self, work: Any, piece: Any) -> Future[Done]:
            future: Future[Done] = Future()
            future.set_exception(ConnectionError("the worker died"))
            return future

    executor: Any = Dying()
    with pytest.raises(dft.ModelError, match="failed 20 times"):
        dft.marginals(GRAPHS["gibbs"][1], sampler="gibbs", sweeps=20, seed=5, executor=executor)


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "CONNECTING", 0.5)
    with pytest.raises(dft.ModelError, match="no Dask scheduler"), remote.executor_at("tcp://127.0.0.1:1"):
        pass
