"""Beside the peers: set-up, updates per second, memory, and time until the average KL divergence is below 10^-4.

Each peer runs by itself in a fresh process (`python benchmarks/peers.py TASK PEER` prints one line of JSON), so that
its memory is its own. Times are CPU seconds of all threads. A peer that is not installed, or cannot run a task, has a
row that says so. Tasks: the paper's 100×100 grid, and the same in a random field that the square's symmetries leave
alone.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import Row, in_process, peak_megabytes

GOAL = 1e-4
TASKS = ("grid", "fields")
OURS = "definetti"
PACKAGES = {"dwave-samplers": "dwave.samplers", "thrml": "thrml", "peapods": "peapods", "pgmpy": "pgmpy",
            "pyagrum": "pyagrum", "numpyro": "numpyro", "pyERGM": "pyERGM"}  # fmt: skip
CANNOT = {
    "thrml": "compared on its own tasks in the families grid and tables",
    "peapods": "lattices without fields, energies but no marginals",
    "pgmpy": "sets up a table over all variables before it samples: at most about 20 of them",
    "pyagrum": "samples Bayesian networks only; exact inference has width 100 here",
    "numpyro": "unrolls a log density over 10,000 discrete sites for each update",
    "pyERGM": "random graphs only",
}


def rows(quick: bool) -> list[Row]:
    out = []
    for task in TASKS:
        ours: float | None = None
        for peer in (OURS, *PEERS, *CANNOT):
            found = measured(task, peer)
            seconds = found.get("seconds")
            ours = seconds if peer == OURS else ours
            ratio = f"{seconds / ours:.3g} times ours" if seconds and ours and peer != OURS else ""
            out += _rows(task, peer, found, ratio)
    return out


def measured(task: str, peer: str) -> dict[str, Any]:
    """What a fresh process measures, or why there is nothing to measure."""
    package = PACKAGES.get(peer)
    installed = package is None or _installed(package)
    if peer in CANNOT:
        return {"why": f"not measured{'' if installed else ', nor installed'}: {CANNOT[peer]}"}
    if not installed:
        return {"why": "not installed"}
    try:
        return in_process("peers.py", task, peer, limit=300.0)
    except Exception as error:
        return {"why": f"failed: {error}"}


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _rows(task: str, peer: str, found: dict[str, Any], ratio: str) -> list[Row]:
    name = f"peers, {task}, {peer}"
    if "why" in found:
        return [Row(name, None, "", note=found["why"])]
    rate = found.get("rate")
    note = f"set-up {found['set_up']:.2g} s, {found['megabytes']:.0f} MB, KL {found['kl']:.2g}; {ratio}".rstrip("; ")
    return [
        Row(f"{name}: to KL < 1e-4", found["seconds"], "CPU s", note=note),
        *([Row(f"{name}: updates", rate / 1e6, "M updates/s")] if rate else []),
    ]


# --- one peer on one task, in a process of its own ------------------------------------------------------------------


def problem(task: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """The model, its fields (log odds), and P(1) of each variable."""
    from definetti.experiments import models, truths

    fields = models.symmetric_fields() if task == "fields" else np.zeros(models.SIDE**2)
    model = models.grid(fields=fields if task == "fields" else None)
    if task == "grid":
        return model, fields, np.full(model.n, 0.5)
    kept = truths.truth("grid-fields").values
    _, first, orbit = np.unique(fields, return_index=True, return_inverse=True)  # an orbit has one field
    return model, fields, np.array([kept[f"X{k}"] for k in first.tolist()])[orbit.ravel()]


def divergence(means: np.ndarray, truth: np.ndarray) -> float:
    from definetti.experiments.targets import divergence as found

    return found(means, truth, np.ones(len(truth)))["kl"]


def definetti(task: str) -> dict[str, Any]:
    """Default runs of 1, 2, 4, … sweeps until one is good enough."""
    import definetti as dft

    model, _, truth = problem(task)
    began = time.process_time()
    group = dft.symmetries(model)
    dft.marginals(model, symmetries=group, sampler="gibbs", sweeps=1, seed=0)
    set_up = time.process_time() - began
    sweeps, kl = 1, 1.0
    answer: Any = None
    while kl >= GOAL:
        answer = dft.marginals(model, symmetries=group, sampler="gibbs", sweeps=sweeps, seed=1)
        kl = divergence(np.array([np.ravel(answer[name].probability)[-1] for name in model.names]), truth)
        sweeps *= 2
    seconds = answer.run["seconds"]["sample_cpu"]
    return {"set_up": set_up, "seconds": seconds, "rate": answer.run["updates"] / seconds, "kl": kl}


def numba_loop(task: str) -> dict[str, Any]:
    """One chain in thirty lines of Numba, every sweep a sample."""
    import numba

    _, fields, truth = problem(task)
    side = round(len(fields) ** 0.5)
    began = time.process_time()

    @numba.njit
    def run(state: np.ndarray, fields: np.ndarray, ones: np.ndarray, sweeps: int, seed: int) -> None:
        np.random.seed(seed)  # noqa: NPY002
        side = state.shape[0]
        for _ in range(sweeps):
            for i in range(side):
                for j in range(side):
                    field = fields[i, j]
                    for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                        if 0 <= a < side and 0 <= b < side:
                            field += 0.2 - 0.4 * state[a, b]
                    state[i, j] = np.random.random() < 1.0 / (1.0 + np.exp(-field))  # noqa: NPY002
            ones += state

    state, ones = np.zeros((side, side), np.int64), np.zeros((side, side), np.int64)
    run(state, fields.reshape(side, side), ones, 0, 1)
    set_up = time.process_time() - began
    square, seeds = fields.reshape(side, side), itertools.count(1)

    def step(sweeps: int) -> np.ndarray:
        run(state, square, ones, sweeps, next(seeds))
        return ones.ravel()

    return _until(step, truth, set_up, 500)


def _until(step: Callable[[int], np.ndarray], truth: np.ndarray, set_up: float, sweeps: int) -> dict[str, Any]:
    """Sweeps of one chain, whose counts of ones `step` returns, until the goal."""
    done, seconds, kl = 0, 0.0, 1.0
    while kl >= GOAL and seconds < 120:
        began = time.process_time()
        ones = step(sweeps)
        seconds += time.process_time() - began
        done += sweeps
        kl = divergence(ones / done, truth)
    return {"set_up": set_up, "seconds": seconds, "rate": done * len(truth) / seconds, "kl": kl}


def dwave_samplers(task: str) -> dict[str, Any]:
    """Gibbs sampling at β = 1; only the last state of a read is kept, so that reads of 10 sweeps are the samples."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    from definetti.experiments import models

    _, fields, truth = problem(task)
    began = time.process_time()
    pairs = {(int(a), int(b)): 0.1 for a, b in models.grid_edges()}
    bqm = dimod.BinaryQuadraticModel.from_ising(dict(enumerate((-fields / 2).tolist())), pairs)
    sampler, set_up = SimulatedAnnealingSampler(), time.process_time() - began
    reads, ones, count, seconds, kl = 250, np.zeros(len(truth)), 0, 0.0, 1.0
    while kl >= GOAL and seconds < 120:
        began = time.process_time()
        found = sampler.sample(
            bqm, num_reads=reads, beta_schedule_type="custom", beta_schedule=[1.0], num_sweeps_per_beta=10,
            proposal_acceptance_criteria="Gibbs", seed=count + 1,
        )  # fmt: skip
        seconds += time.process_time() - began
        order = np.argsort(list(found.variables))
        ones += (found.record.sample[:, order] > 0).sum(axis=0)
        count += reads
        kl = divergence(ones / count, truth)
    return {"set_up": set_up, "seconds": seconds, "rate": 10 * count * len(truth) / seconds, "kl": kl}


def belief_propagation(task: str) -> dict[str, Any]:
    """Loopy belief propagation to a fixed point: fast, with an error that no time removes."""
    from definetti.experiments import models

    _, fields, truth = problem(task)
    edges = models.grid_edges()
    source, sink = np.concatenate([edges, edges[:, ::-1]]).T
    back = np.concatenate([np.arange(len(edges)) + len(edges), np.arange(len(edges))])
    message, began, change = np.zeros(len(source)), time.process_time(), 1.0  # log odds
    while change > 1e-10:
        total = fields + np.bincount(sink, weights=message, minlength=len(fields))
        inside = total[source] - message[back]
        fresh = np.logaddexp(0.2, inside) - np.logaddexp(0.0, inside + 0.2)  # P(differ) has weight e^0.2
        change, message = float(np.abs(fresh - message).max()), fresh
    means = 1 / (1 + np.exp(-(fields + np.bincount(sink, weights=message, minlength=len(fields)))))
    return {"set_up": 0.0, "seconds": time.process_time() - began, "kl": divergence(means, truth)}


PEERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "plain Numba loop": numba_loop,
    "dwave-samplers": dwave_samplers,
    "loopy belief propagation": belief_propagation,
}

if __name__ == "__main__":
    made = ({OURS: definetti} | PEERS)[sys.argv[2]](sys.argv[1])
    print(json.dumps({**made, "megabytes": peak_megabytes()}))
