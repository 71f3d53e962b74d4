"""numpyro: DiscreteHMCGibbs over one vector of binary variables; it evaluates the whole log density for each update."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.dwave_ising import ising
from peers.problem import Problem

SLOW = "each update evaluates the whole log density: as slow as on the grid"
CANNOT = {
    "fields": SLOW,
    "potts": SLOW,
    "tables": SLOW,
    "smokers": SLOW,
    "transitive": SLOW,
    "graph": SLOW,
    "reading": "does not read .uai",
}


def run(problem: Problem, limit: float) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS, DiscreteHMCGibbs

    began = time.process_time()
    field, pairs = ising(problem)
    edges, strength = np.array(list(pairs)), np.array(list(pairs.values()))

    def model() -> None:
        numpyro.sample("z", dist.Normal(0, 1))  # the sampler wants a continuous variable
        with numpyro.plate("sites", problem.n):
            x = numpyro.sample("x", dist.Bernoulli(0.5))
        s = 2.0 * x - 1.0
        numpyro.factor("pairs", jnp.sum(strength * s[edges[:, 0]] * s[edges[:, 1]]) + jnp.dot(field, s))

    kernel = DiscreteHMCGibbs(NUTS(model, max_tree_depth=1), random_walk=False)
    mcmc = MCMC(kernel, num_warmup=1, num_samples=1, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    set_up = time.process_time() - began

    def step() -> tuple[np.ndarray, int, int]:
        mcmc.post_warmup_state = mcmc.last_state
        mcmc.run(mcmc.last_state.rng_key)
        return np.asarray(mcmc.get_samples()["x"]).sum(axis=0), 1, problem.n

    return problem.until_goal(step, set_up, limit)
