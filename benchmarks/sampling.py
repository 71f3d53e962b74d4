"""Runs as a user makes them: the default scan, one core, orbits folded after every sweep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measuring import cpu_seconds

import definetti as dft
from definetti.inference.graph.question import ask
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.protocol import Plan
from definetti.symmetry.graph.group import GraphSymmetries


def prepared(
    group: GraphSymmetries, chains: int, sweeps: int, seed: int = 1, conditionals: bool = True
) -> GraphSampling:
    """What `marginals` sets up before it samples: F and G (or F alone) of every orbit row, on one worker."""
    question = ask(group, (), "conditional", seed)
    kernel = Gibbs()
    engine = kernel.engine(group.model, question.slots)
    plan = Plan(chains=chains, burn_in=1, sweeps=sweeps, seed=seed, workers=1, conditionals=conditionals)
    sampling = GraphSampling(group.model, kernel, engine, question.statistics, plan)
    sampling.warm()
    return sampling


def full_run(group: GraphSymmetries, chains: int, sweeps: int) -> Callable[[], float]:
    """CPU seconds per update of a whole run: scan orders, sweeps, folding and batches, all of it."""

    def run() -> float:
        sampling = prepared(group, chains, sweeps)
        return cpu_seconds(lambda: list(sampling.steps())) / sampling.updates

    return run


Timed = Callable[[], float]


def bare_and_folded(group: GraphSymmetries, chains: int, sweeps: int) -> dict[str, tuple[Timed, Timed]]:
    """CPU seconds of the same sweeps with nothing folded, and with F alone or with F and G; the two of a pair run on
    the same chains and arrays."""
    both, alone = prepared(group, chains, sweeps), prepared(group, chains, sweeps, conditionals=False)
    free = np.ascontiguousarray(group.model.free)
    orders = Gibbs().orders(free, np.random.SeedSequence(3), both.statistics.orbit_of).next(sweeps)

    def sweeps_with(sampling: GraphSampling, folded: int) -> Timed:
        return lambda: cpu_seconds(lambda: [block.run(orders, folded) for block in sampling.blocks])

    kinds = {"F": (alone, 1), "F and G": (both, 2)}
    return {what: (sweeps_with(one, 0), sweeps_with(one, folded)) for what, (one, folded) in kinds.items()}


def no_symmetries(model: dft.FactorGraph) -> GraphSymmetries:
    return dft.symmetries(model, "none")
