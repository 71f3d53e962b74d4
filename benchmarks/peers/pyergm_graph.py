"""pyERGM: Metropolis sampling of a directed graph with edges, mutual pairs and cycles of three."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import Problem

CANNOT = dict.fromkeys(("grid", "fields", "potts", "tables", "smokers", "transitive", "reading"), "random graphs only")
THETAS = {"num_edges_directed": -2.5, "total_reciprocity": 1.0, "num_triangles_directed": 0.06}
NETS = 200


def run(problem: Problem, limit: float) -> dict[str, Any]:
    from pyERGM.ergm import ERGM
    from pyERGM.metrics import NumberOfEdgesDirected, NumberOfTrianglesDirected, TotalReciprocity

    size = 30
    began = time.process_time()
    metrics = [NumberOfEdgesDirected(), TotalReciprocity(), NumberOfTrianglesDirected()]
    thetas = {str(metric): value for metric, value in zip(metrics, THETAS.values(), strict=True)}
    model = ERGM(size, metrics, True, initial_thetas=thetas, fix_collinearity=False, verbose=False)
    state = np.zeros((size, size))
    steps = problem.n
    sample = model.mh_sampler.sample
    model.mh_sampler.set_thetas(np.array(list(THETAS.values())))
    state = sample(state, 1, burn_in=20 * steps, steps_per_sample=steps)[:, :, -1]
    set_up, off = time.process_time() - began, ~np.eye(size, dtype=bool)

    def step() -> tuple[np.ndarray, int, int]:
        nonlocal state
        nets = sample(state, NETS, burn_in=steps, steps_per_sample=steps)
        state = nets[:, :, -1].copy()
        return nets.sum(axis=2)[off], NETS, NETS * steps

    return problem.until_goal(step, set_up, limit)
