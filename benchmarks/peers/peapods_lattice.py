"""peapods: lattices with periodic boundary, without fields; energies, no marginals: speed alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.problem import Problem

CANNOT = {
    "fields": "no fields",
    "potts": "Ising spins only",
    "tables": "lattices only",
    "smokers": "lattices only",
    "transitive": "lattices only",
    "graph": "lattices only",
    "reading": "does not read .uai",
}
SWEEPS = 2000


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import peapods

    began = time.process_time()
    couplings = np.full((100, 100, 2), -1.0)
    model = peapods.Ising((100, 100), couplings=couplings, temperatures=np.array([10.0]))  # J / T = -0.1
    model.sample(10, sweep_mode="gibbs", sequential=True)
    set_up = time.process_time() - began
    began = time.process_time()
    model.sample(SWEEPS, sweep_mode="gibbs", sequential=True)
    seconds = time.process_time() - began
    return {"set_up": set_up, "seconds": None, "rate": SWEEPS * problem.n / seconds, "spent": seconds,
            "note": "periodic lattice; energies, no marginals"}  # fmt: skip
