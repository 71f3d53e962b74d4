"""dwave-samplers: Gibbs sampling at β = 1; only the last state of a read is kept, so reads of 10 sweeps are samples."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import Problem

CANNOT = {
    "potts": "binary variables only",
    "tables": "pairs of binary variables only",
    "smokers": "pairs of variables only",
    "transitive": "pairs of variables only",
    "graph": "pairs of variables only",
    "reading": "does not read .uai",
}
SWEEPS, READS = 10, 250


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    began = time.process_time()
    field, pairs = ising(problem)
    bqm = dimod.BinaryQuadraticModel.from_ising(dict(enumerate((-field).tolist())), {e: -j for e, j in pairs.items()})
    sampler = SimulatedAnnealingSampler()
    set_up, seeds = time.process_time() - began, iter(range(1, 1 << 30))

    def step() -> tuple[np.ndarray, int, int]:
        found = sampler.sample(
            bqm, num_reads=READS, beta_schedule_type="custom", beta_schedule=[1.0], num_sweeps_per_beta=SWEEPS,
            proposal_acceptance_criteria="Gibbs", seed=next(seeds),
        )  # fmt: skip
        order = np.argsort(list(found.variables))
        return (found.record.sample[:, order] > 0).sum(axis=0), READS, READS * SWEEPS * problem.n

    return problem.until_goal(step, set_up, limit)


def ising(problem: Problem) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
    """log density = Σ h_i s_i + Σ J_ij s_i s_j + constant, s = ±1, of symmetric pairs and unary factors."""
    field, pairs = np.zeros(problem.n), {}
    for scope, table in problem.factors():
        if len(scope) == 1:
            field[scope[0]] += (table[1] - table[0]) / 2
        else:
            a, b = scope.tolist()
            pairs[a, b] = float(table[1, 1] + table[0, 0] - table[0, 1] - table[1, 0]) / 4
    return field, pairs
