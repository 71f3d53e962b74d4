"""What folding must give, recomputed the slow way: F and G sweep by sweep, states and conditionals by brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from definetti.inference.draws.samples import fold
from definetti.inference.graph.question import GraphQuestion
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.sampling import GraphSampling


def values_of(block) -> np.ndarray:
    """int64[lanes, n]: the values in a block, without padding lanes and the engine's own bits."""
    return (block.state[:, : block.lanes] & block.mask).T[:, : len(block._engine.slots.row_of)].astype(np.int64)


def conditional(model: FactorGraph, states: np.ndarray, site: int) -> np.ndarray:
    """float64[lanes, card]: P(site = v | the rest), from the density alone."""
    copies = np.repeat(states[:, None], int(model.cards[site]), axis=1)
    copies[:, :, site] = np.arange(int(model.cards[site]))
    logs = model.log_density(copies)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def indicators(question: GraphQuestion, states: np.ndarray) -> np.ndarray:
    """float64[lanes, K]: F of every statistic in every state, literal by literal and tuple by tuple."""
    model, columns = question.group.model, question.columns
    out = []
    for statistic in range(columns.singles):
        literals = [q for q in np.flatnonzero(columns.statistic_of == statistic) if _free(model, q)]
        out.append(np.mean([_holds(model, states, q) for q in literals], axis=0))
    for event in question.events:
        for members in event.tuples:
            out.append(np.mean([np.all([_holds(model, states, q) for q in m], axis=0) for m in members], axis=0))
    return np.array(out).T


def _free(model: FactorGraph, literal: int) -> bool:
    return bool(model.evidence[np.searchsorted(model.literal_start, literal, side="right") - 1] < 0)


def _holds(model: FactorGraph, states: np.ndarray, literal: int) -> np.ndarray:
    variable = int(np.searchsorted(model.literal_start, literal, side="right")) - 1
    return states[:, variable] == literal - model.literal_start[variable]


def folded(question: GraphQuestion, states: np.ndarray) -> np.ndarray:
    """float64[states, K]: the code under test, every state a chain of one draw."""
    return fold(states[:, None], question, 0).f[0]


def recomputed(question: GraphQuestion, sampling: GraphSampling, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """F[sweep, chain, K] and G[chain, K]: a run driven site by site, its kernels asked for the next state alone."""
    model, columns = question.group.model, question.columns
    f, sums, visits = [], np.zeros((sampling.plan.chains, columns.singles)), np.zeros(columns.singles)
    for _ in range(sweeps):
        (order,) = sampling._orders.next(1)
        for q, site in enumerate(order.tolist()):
            states = np.concatenate([values_of(block) for block in sampling.blocks])
            given = conditional(model, states, site)
            for v in range(given.shape[1]):
                statistic = columns.statistic_of[model.literal_start[site] + v]
                sums[:, statistic] += given[:, v]
                visits[statistic] += 1
            for block in sampling.blocks:
                block.run(order[None, q : q + 1], 0)
        f.append(indicators(question, np.concatenate([values_of(block) for block in sampling.blocks])))
    with np.errstate(invalid="ignore"):
        return np.array(f), sums / visits


def fold_error(question: GraphQuestion, fast: GraphSampling, slow: GraphSampling, sweeps: int) -> float:
    """The largest difference between what a run folded and the slow way (both runs begin alike)."""
    for _ in fast.steps():
        pass
    draws = fast.draws()
    assert draws.g is not None
    f, g = recomputed(question, slow, sweeps)
    starts = np.concatenate([[0], np.cumsum(draws.lengths)])
    errors = [np.abs(draws.last - f[starts[1:] - 1]).max()]
    errors += [np.abs(draws.f[b] - f[a:z].mean(axis=0)).max() for b, (a, z) in enumerate(pairwise(starts))]
    if len(draws.lengths) == 1:
        singles = question.columns.singles
        errors.append(np.nanmax(np.abs(draws.g[0, :, :singles] - g)))
        assert np.isnan(draws.g[0, :, singles:]).all()
    return float(max(errors))
