"""thrml: variables of one colour updated together, spins on the grids, else categories padded to one size."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from peers.dwave_ising import ising
from peers.problem import Problem, colours

CANNOT = {"reading": "does not read .uai"}
IMPOSSIBLE = -1e9
CHAINS, SWEEPS = 16, 100


def run(problem: Problem, limit: float) -> dict[str, Any]:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    from jax import numpy as jnp
    from thrml import SamplingSchedule, sample_states

    began = time.process_time()
    made, blocks, members = spins(problem) if problem.task in ("grid", "fields") else categories(problem)
    schedule = SamplingSchedule(n_warmup=0, n_samples=SWEEPS, steps_per_sample=1)
    kind = jnp.bool_ if problem.task in ("grid", "fields") else jnp.uint8
    values = problem.truth.shape[1]

    def chain(key: Any, start: Any) -> Any:
        found = sample_states(key, made, schedule, start, [], blocks)
        counts = [jnp.stack([(x == v).sum(axis=0) for v in range(values)], axis=1) for x in found]
        return counts, [x[-1] for x in found]

    many = jax.jit(jax.vmap(chain))
    state: Any = [jnp.zeros((CHAINS, len(block.nodes)), dtype=kind) for block in blocks]
    keys = iter(jax.random.split(jax.random.key(1), 10_000))
    state = jax.block_until_ready(many(jax.random.split(next(keys), CHAINS), state))[1]
    set_up, order = time.process_time() - began, np.argsort(np.concatenate(members))

    def step() -> tuple[np.ndarray, int, int]:
        nonlocal state
        counts, state = jax.block_until_ready(many(jax.random.split(next(keys), CHAINS), state))
        whole = np.concatenate([np.asarray(x).sum(axis=0) for x in counts])[order]
        return whole.astype(float), CHAINS * SWEEPS, CHAINS * SWEEPS * problem.n

    return {**problem.until_goal(step, set_up, limit), "note": f"{CHAINS} chains at once"}


def spins(problem: Problem) -> tuple[Any, list[Any], list[np.ndarray]]:
    from jax import numpy as jnp
    from thrml import Block, SpinNode
    from thrml.models.ising import IsingEBM, IsingSamplingProgram

    field, pairs = ising(problem)
    nodes = [SpinNode() for _ in range(problem.n)]
    edges = [(nodes[a], nodes[b]) for a, b in pairs]
    ebm = IsingEBM(nodes, edges, jnp.asarray(field), jnp.asarray(list(pairs.values())), jnp.asarray(1.0))
    side = round(problem.n**0.5)
    parity = np.indices((side, side)).sum(axis=0).ravel() % 2
    members = [np.flatnonzero(parity == c) for c in (0, 1)]
    blocks = [Block([nodes[i] for i in some]) for some in members]
    return IsingSamplingProgram(ebm, blocks, []), blocks, members


def categories(problem: Problem) -> tuple[Any, list[Any], list[np.ndarray]]:
    """Every variable has as many values as the largest, added ones at weight zero: one group of factors an arity."""
    from jax import numpy as jnp
    from thrml import Block, CategoricalNode
    from thrml.block_sampling import BlockGibbsSpec
    from thrml.factor import FactorSamplingProgram
    from thrml.models.discrete_ebm import CategoricalGibbsConditional, SquareCategoricalEBMFactor

    q = int(problem.cards.max())
    nodes = [CategoricalNode() for _ in range(problem.n)]
    by_arity: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for scopes, tables in problem.by_shape:
        padded = np.full((len(scopes), *[q] * scopes.shape[1]), IMPOSSIBLE, dtype=np.float32)
        padded[(slice(None), *map(slice, tables.shape[1:]))] = tables
        by_arity.setdefault(scopes.shape[1], []).append((scopes, padded))
    factors = []
    for arity, parts in by_arity.items():
        scopes, weights = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        at = [Block([nodes[i] for i in scopes[:, a]]) for a in range(arity)]
        factors.append(SquareCategoricalEBMFactor(at, jnp.asarray(weights)))
    colour = colours(problem.n, [scopes for scopes, _ in problem.by_shape])
    members = [np.flatnonzero(colour == c) for c in range(colour.max() + 1)]
    blocks = [Block([nodes[i] for i in some]) for some in members]
    samplers = [CategoricalGibbsConditional(q) for _ in blocks]
    return FactorSamplingProgram(BlockGibbsSpec(blocks, []), samplers, factors, []), blocks, members
