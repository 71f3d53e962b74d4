"""definetti: default runs of Gibbs sampling of 1, 2, 4, … sweeps, each by itself, until one is good enough."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import GOAL, Problem

CANNOT: dict[str, str] = {}
RATE = 500  # sweeps


def model_of(problem: Problem) -> Any:
    """The model as its users have it: Markov logic where it is, else a factor graph."""
    import definetti as dft

    if not problem.text:
        return dft.FactorGraph.from_arrays(
            problem.cards, problem.first, problem.scope, problem.table_of, list(problem.tables)
        )
    loops = "\n".join(f"!e(Node{k},Node{k})" for k in range(1, 31)) if problem.task == "graph" else None
    domain = {"node" if problem.task == "graph" else "person": 30}
    return dft.markov_logic(problem.text, evidence=loops, domain=domain)


def means_of(model: Any, answer: Any, problem: Problem) -> np.ndarray:
    """float64[n, values], in the order of the problem's variables."""
    out = np.zeros_like(problem.truth)
    if model.kind == "graph":
        for k, name in enumerate(model.names):
            found = np.ravel(answer[name].probability)  # one number where there are two values
            out[k, : problem.cards[k]] = [1 - found[0], found[0]] if len(found) == 1 else found
        return out
    # members of an orbit have one number, and one truth: match the two by the truth
    for row in answer.orbits:
        out[_members(model, row.representative, problem)] = [1 - row.probability, row.probability]
    return out


def _members(model: Any, name: str, problem: Problem) -> np.ndarray:
    """The variables of the orbit of an atom: predicates stand one after the other, loops on the diagonal."""
    size = 30
    predicate, _, rest = name.partition("(")
    first = {"smokes": 0, "cancer": size, "friends": 2 * size, "e": 0}[predicate]
    if predicate in ("smokes", "cancer"):
        return np.arange(first, first + size)
    if predicate == "e":
        return np.arange(problem.n)  # loops are known
    loop = len(set(rest[:-1].split(","))) == 1
    row, column = np.indices((size, size))
    return first + np.flatnonzero(((row == column) == loop).ravel())


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import definetti as dft

    if problem.task == "reading":
        return read(problem)
    began = time.process_time()
    model = model_of(problem)
    group = dft.symmetries(model)
    options = {"symmetries": group, "sampler": "gibbs", "workers": 1}
    dft.marginals(model, sweeps=1, seed=0, **options)
    set_up = time.process_time() - began
    sweeps, kl, spent = 1, np.inf, 0.0
    answer: Any = None
    while kl >= GOAL and spent < limit:
        answer = dft.marginals(model, sweeps=sweeps, seed=1, **options)
        spent += answer.run["seconds"]["sample_cpu"]
        kl = problem.divergence(means_of(model, answer, problem))
        sweeps *= 2
    seconds = answer.run["seconds"]["sample_cpu"]
    longer = dft.marginals(model, sweeps=RATE, seed=1, **options).run  # a few sweeps say little of speed
    rate = longer["updates"] / longer["seconds"]["sample_cpu"]
    return {"set_up": set_up, "seconds": seconds if kl < GOAL else None, "rate": rate, "kl": kl, "spent": spent}


def read(problem: Problem) -> dict[str, Any]:
    import tempfile
    from pathlib import Path

    import definetti as dft

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        path.write_text(problem.text)
        began = time.process_time()
        model = dft.read(path)
        seconds = time.process_time() - began
    return {"set_up": 0.0, "seconds": seconds, "note": f"{model.factor_count:,} factors"}
