"""pyagrum: exact inference on a junction tree, and reading .uai. It samples Bayesian networks only."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import Problem

WIDE, SAMPLES = "exact inference only, too wide", "samples Bayesian networks only"
CANNOT = {
    "grid": f"{SAMPLES}; {WIDE}",
    "fields": f"{SAMPLES}; {WIDE}",
    "tables": f"{SAMPLES}; {WIDE}",
    "smokers": f"{SAMPLES}; {WIDE}",
    "transitive": f"{SAMPLES}; {WIDE}",
    "graph": f"{SAMPLES}; {WIDE}",
}


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import pyagrum as gum

    if problem.task == "reading":
        return read(problem)
    began = time.process_time()
    model = gum.MarkovRandomField()
    for k, card in enumerate(problem.cards.tolist()):
        model.add(gum.RangeVariable(f"X{k}", "", 0, card - 1))
    for scope, table in problem.factors():
        factor = model.addFactor([f"X{k}" for k in scope.tolist()])
        weights = np.exp(table)
        if tuple(factor.names) != tuple(f"X{k}" for k in reversed(scope.tolist())) and weights.ndim == 2:
            weights = weights.T  # pairs here are symmetric anyway
        factor.fillWith(weights.ravel().tolist())
    set_up = time.process_time() - began
    began = time.process_time()
    engine = gum.ShaferShenoyMRFInference(model)
    engine.makeInference()
    means = np.stack([engine.posterior(f"X{k}").toarray() for k in range(problem.n)])
    seconds = time.process_time() - began
    return {"set_up": set_up, "seconds": seconds, "kl": problem.divergence(means), "note": "exact"}


def read(problem: Problem) -> dict[str, Any]:
    import tempfile
    from pathlib import Path

    import pyagrum as gum

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        path.write_text(problem.text)
        began = time.process_time()
        model = gum.loadMRF(str(path))
        seconds = time.process_time() - began
    return {"set_up": 0.0, "seconds": seconds, "note": f"{len(model.factors()):,} factors"}
