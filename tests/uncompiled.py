"""Exact transition matrices of kernels by `lumping/branches.py`, against distributions by brute force on the model as
given; and the draw itself, bit by bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from random_models import brute_force

from definetti.lumping.branches import (
    KERNELS,
    REAL,
    WHOLE,
    Sources,
    Target,
    runner,
    site_matrices,
    sweep_matrix,
    uncompiled,
)
from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph import block_gibbs, fields, swendsen_wang
from definetti.samplers.graph.lanes import slots_of
from definetti.symmetry.graph.group import none

__all__ = [
    "KERNELS", "REAL", "WHOLE", "Sources", "Target", "flow_error", "kernel_error", "runner", "scan_matrix",
    "site_matrices", "sweep_matrix", "target", "uncompiled", "weighed", "wide_probability",
]  # fmt: skip


def target(model: FactorGraph) -> Target | None:
    """None if no state is possible."""
    states, weights = brute_force(model)
    return weighed(model, states, weights) if weights.sum() > 0 else None


def weighed(model: FactorGraph, states: np.ndarray, weights: np.ndarray) -> Target:
    return Target(simplify(model), states[weights > 0], (weights / weights.sum())[weights > 0])


def kernel_error(model: FactorGraph | Target, kernel: str, sources: Sources = REAL) -> float:
    """The largest error of any single-site update of a kernel: what both the real tests and the mutants look at."""
    aim = target(model) if isinstance(model, FactorGraph) else model
    if aim is None or not len(aim.simple.free):
        return 0.0
    run = runner(aim, kernel, sources)
    return 0.0 if run is None else max(flow_error(aim, matrix) for matrix in site_matrices(aim, run))


def scan_matrix(sites: list[np.ndarray], scan: str, orbits: Sequence[int] | None = None) -> np.ndarray:
    """One sweep of a scan (one update for `random`): orbit by orbit, all orders of an orbit with equal probability, or
    the fixed order. Without `orbits` all sites are one."""
    if scan == "random":
        return np.mean(sites, axis=0)
    matrix = one = np.eye(len(sites[0]))
    if scan == "fixed":
        return np.linalg.multi_dot([one, one, *sites])
    labels = [0] * len(sites) if orbits is None else list(orbits)
    for label in dict.fromkeys(labels):
        members = [site for site, orbit in zip(sites, labels, strict=True) if orbit == label]
        steps = [np.linalg.multi_dot([one, one, *order]) for order in itertools.permutations(members)]
        matrix = matrix @ np.mean(steps, axis=0)
    return matrix


def flow_error(aim: Target, matrix: np.ndarray) -> float:
    """How far a kernel is from leaving the distribution alone, and from being a kernel at all."""
    stray = np.abs(matrix.sum(axis=1) - 1.0).max()
    return float(max(stray, np.abs(aim.probability @ matrix - aim.probability).max()))


def cluster_branches(
    source: ModuleType, model: FactorGraph, state: np.ndarray, folded: int = 2
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """(probability, state reached, sums) for every way that the draws of one Swendsen–Wang update can fall."""
    engine = swendsen_wang.build(model, slots_of(model, none(model).row_of))
    waiting: list[list[bool]] = [[]]
    while waiting:
        script = waiting.pop()
        made: list[bool] = []
        chance = 1.0

        def happens(probability: float, streams: object, lane: int, script=script, made=made) -> bool:
            nonlocal chance
            outcome = script[len(made)] if len(made) < len(script) else True
            if len(made) >= len(script):
                waiting.append([*made, False])
            made.append(outcome)
            chance *= probability if outcome else 1.0 - probability
            return outcome

        source.happens = happens  # type: ignore[attr-defined]
        block = swendsen_wang.ClusterBlock(engine, state[None], np.random.SeedSequence(0))
        block._kernels = source
        block.run(np.zeros((1, 1)), folded)
        if chance > 0:
            yield chance, block.state[:, 0].astype(np.int64), block.harvest()


def block_branches(
    source: ModuleType, engine: block_gibbs.JointEngine, state: np.ndarray, order: np.ndarray
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """(probability, state reached, sums) for every way that the draws of one sweep over blocks can fall."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        script = waiting.pop()
        made: list[int] = []
        chance = 1.0

        def pick(weight, begin, end, total, streams, lane, script=script, made=made) -> int:
            nonlocal chance
            possible = [r for r in range(begin, end) if weight[r, lane] > 0]
            if len(made) < len(script):
                chosen = script[len(made)]
            else:
                chosen = possible[0]
                waiting.extend((*made, r) for r in possible[1:])
            made.append(chosen)
            chance *= weight[chosen, lane] / total
            return chosen

        source.pick = pick  # type: ignore[attr-defined]
        block = block_gibbs.JointBlock(engine, state[None], np.random.SeedSequence(0))
        block._kernels = source
        block.run(order[None], 2)
        yield chance, block.state[:, 0].astype(np.int64), block.harvest()


# --- the draw itself -----------------------------------------------------------------------------------------------


def split(kernels: ModuleType, threshold: int) -> tuple[int, int]:
    """Top bits and the rest, as engines store them."""
    top = min(threshold >> kernels.FURTHER, 2**kernels.BITS - 1)
    return top, threshold - (top << kernels.FURTHER)


def wide_probability(kernels: ModuleType, threshold: int) -> int:
    """P(1) of the wide draw in units of 2^-48: all first draws in as many lanes, and both sides of the tie's border."""
    top, rest = split(kernels, threshold)
    most = 2**kernels.FURTHER - 1
    ones_at_tie = set()
    for further in {0, max(rest - 1, 0), min(rest, most), most}:
        kernels.stream_word = lambda stream, further=further: np.uint64(further << (64 - kernels.FURTHER))
        firsts = np.arange(2**kernels.BITS).reshape(-1, 64 * fields.WORDS)
        drawn = np.concatenate([_drawn(kernels, top, rest, first) for first in firsts])
        assert drawn[top] == (further < rest)
        ones_at_tie.add((int(drawn.sum()) - int(drawn[top]), further < rest))
    sure = {count for count, _ in ones_at_tie}
    assert len(sure) == 1, "the further bits changed a lane that does not tie"
    return sure.pop() * 2**kernels.FURTHER + rest


def _drawn(kernels: ModuleType, top: int, rest: int, first: np.ndarray) -> np.ndarray:
    """uint8[lanes]: what is drawn where the lanes' first random bits are these; a tie is told exactly."""
    scratch = fields._scratch(kernels, 1, fields.WORDS)
    highest_first = np.arange(kernels.BITS - 1, -1, -1)[:, None]
    scratch.top[:] = _rows(np.full(len(first), top) >> highest_first)
    scratch.draw[:] = _rows(first >> highest_first)
    scratch.code[: fields.WORDS] = kernels.ALL
    state = np.zeros((1, fields.WORDS), dtype=np.uint64)
    ties = kernels.draw_wide(state, 0, scratch.top, scratch.draw, scratch.tie)
    assert ties == (top in first)
    if ties:
        rests = np.full((1, 16), rest, dtype=np.uint64)
        with np.errstate(over="ignore"):
            kernels.settle_ties(state, 0, scratch.code, 1, scratch.tie, rests, 0, None)
    return fields._unpacked(state)[0]


def _rows(bits: np.ndarray) -> np.ndarray:
    """Rows of scratch from the lowest bits of int[rows, lanes]."""
    lanes = np.zeros((len(bits), 64 * fields.WORDS), np.uint8)
    lanes[:, : bits.shape[1]] = bits & 1
    return np.packbits(lanes, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel()
