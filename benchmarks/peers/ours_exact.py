"""definetti's exact engines, where one takes the model."""

from __future__ import annotations

import time
from typing import Any

from peers.ours import means_of, model_of
from peers.problem import Problem

CANNOT = {
    "grid": "width 100",
    "fields": "width 100",
    "tables": "no exact engine takes it",
    "transitive": "transitivity is not liftable; too wide ground",
    "graph": "triangles are not liftable; too wide ground",
    "reading": "see above",
}


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import definetti as dft

    began = time.process_time()
    model = model_of(problem)
    dft.symmetries(model)
    set_up = time.process_time() - began
    began = time.process_time()
    answer = dft.exact(model)
    seconds = time.process_time() - began
    return {"set_up": set_up, "seconds": seconds, "kl": problem.divergence(means_of(model, answer, problem))}
