"""A process of its own: thrml on the model of tables.py; prints updates per CPU second once everything is compiled.

Two ways to write the model. `direct`: a group of factors for each combination of numbers of values, as the model has
them. `padded`: every variable gets four values, the added ones at weight zero; one group of factors is left, and a
much smaller program.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict

if hasattr(os, "sched_setaffinity"):  # one core, decided before JAX makes its threads
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import numpy as np
from jax import numpy as jnp
from models import random_tables
from thrml import Block, CategoricalNode, SamplingSchedule, sample_states
from thrml.block_sampling import BlockGibbsSpec
from thrml.factor import FactorSamplingProgram
from thrml.models.discrete_ebm import CategoricalEBMFactor, CategoricalGibbsConditional, SquareCategoricalEBMFactor

from definetti import FactorGraph

IMPOSSIBLE = -1e9
SWEEPS = 20


def colours(n: int, scopes: np.ndarray) -> np.ndarray:
    """Greedy colouring: variables of one colour share no factor."""
    near: list[set[int]] = [set() for _ in range(n)]
    for scope in scopes.tolist():
        for i in scope:
            near[i].update(scope)
    colour = np.full(n, -1)
    for i in sorted(range(n), key=lambda i: -len(near[i])):
        taken = {colour[j] for j in near[i]}
        colour[i] = next(c for c in range(n) if c not in taken)
    return colour


def program(model: FactorGraph, cards: np.ndarray) -> tuple[FactorSamplingProgram, list[Block]]:
    """The model with `cards` values each (at least its own), variables of one colour updated together."""
    scopes = model.scope.reshape(-1, 3)
    nodes = [CategoricalNode() for _ in range(model.n)]
    groups = defaultdict(list)
    for k, scope in enumerate(scopes):
        groups[tuple(cards[scope].tolist())].append(k)
    factors = []
    for shape, members in groups.items():
        weights = np.full((len(members), *shape), IMPOSSIBLE, dtype=np.float32)
        for row, k in enumerate(members):
            table = model.table(k)
            weights[(row, *map(slice, table.shape))] = table
        blocks = [Block([nodes[i] for i in scopes[members, a]]) for a in range(3)]
        kind = SquareCategoricalEBMFactor if len(set(shape)) == 1 else CategoricalEBMFactor
        factors.append(kind(blocks, jnp.asarray(weights)))
    colour = colours(model.n, scopes)
    free, samplers = [], []
    for c in range(colour.max() + 1):
        kinds = [(card, np.flatnonzero((colour == c) & (cards == card))) for card in np.unique(cards).tolist()]
        kinds = [(card, members) for card, members in kinds if len(members)]
        free.append(tuple(Block([nodes[i] for i in members]) for _, members in kinds))
        samplers += [CategoricalGibbsConditional(card) for card, _ in kinds]
    made = FactorSamplingProgram(BlockGibbsSpec(free, []), samplers, factors, [])
    return made, [block for blocks in free for block in blocks]


def main(way: str, rounds: int) -> None:
    began = time.perf_counter()
    model = random_tables()
    cards = model.cards.copy() if way == "direct" else np.full(model.n, 4)
    made, blocks = program(model, cards)
    schedule = SamplingSchedule(n_warmup=SWEEPS, n_samples=1, steps_per_sample=1)
    many = jax.jit(jax.vmap(lambda key, start: sample_states(key, made, schedule, start, [], blocks[:1])))
    set_up, rates = 0.0, {}
    for chains in (1, 64) if way == "padded" else (1,):  # 64 at once are slower in the large program
        start = [jnp.zeros((chains, len(block.nodes)), dtype=jnp.uint8) for block in blocks]
        keys = jax.random.split(jax.random.key(1), chains)
        jax.block_until_ready(many(keys, start))
        set_up = set_up or time.perf_counter() - began
        for _ in range(rounds):
            from_then = time.process_time()
            jax.block_until_ready(many(keys, start))
            rate = chains * model.n * SWEEPS / (time.process_time() - from_then)
            rates[chains] = max(rates.get(chains, 0.0), rate)
    best = max(rates, key=lambda chains: rates[chains])
    print(json.dumps({"rate": rates[best], "chains": best, "set_up": set_up, "rates": rates}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
