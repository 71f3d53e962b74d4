"""pgmpy: reading a .uai file. Its Gibbs sampler sets up tables over all other variables of each variable."""

from __future__ import annotations

import time
from typing import Any

from peers.problem import Problem

EXPONENTIAL = "its Gibbs sampler makes a table over all variables first: about 20 of them at most"
CANNOT = dict.fromkeys(("grid", "fields", "potts", "tables", "smokers", "transitive", "graph"), EXPONENTIAL)


def run(problem: Problem, limit: float) -> dict[str, Any]:
    from pgmpy.readwrite import UAIReader

    began = time.process_time()
    model = UAIReader(string=problem.text).get_model()
    seconds = time.process_time() - began
    return {"set_up": 0.0, "seconds": seconds, "note": f"{len(model.factors):,} factors"}
