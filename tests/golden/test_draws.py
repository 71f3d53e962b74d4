"""Draws pinned bit by bit: one seed per kernel and scan.

A change here changes every published result that names a seed. If that is meant (another stream, another layout of
lanes, another way to start), run `python -m pytest tests/golden/test_draws.py`, copy the digests that the failures
print, and say in the commit and in CHANGELOG.md that draws have changed.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from small_models import hard_pairs, mean_field, triples

from definetti.inference.graph.question import ask
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

MODELS = {"narrow": (mean_field(6, -0.2, 0.1), 5), "wide": (mean_field(6, -0.2, 0.1), 300), "tables": (triples(), 40)}

GOLDEN = {
    ("narrow", "symmetric"): "ca62b6024fe6817a",
    ("narrow", "random"): "7c28a9c0d580295f",
    ("narrow", "fixed"): "79b871a91849249c",
    ("wide", "symmetric"): "c032e7bec56344f1",
    ("wide", "random"): "b28564303cb0e686",
    ("wide", "fixed"): "c1607d300c334e67",
    ("tables", "symmetric"): "bb3bc018be19c3bd",
    ("tables", "random"): "17516e854ba3c6ab",
    ("tables", "fixed"): "229f6141cd7e47eb",
}


GOLDEN_PATH = ["1001", "0101", "0010", "0010"]


def states(model: FactorGraph, scan: str, chains: int, sweeps: int = 6) -> np.ndarray:
    """uint8[chains, n] at the end of a run with seed 2014."""
    question = ask(symmetries(model), (), "orbit", 2014)
    gibbs, simple = Gibbs(scan), question.group.model
    engine = gibbs.engine(simple, question.slots)
    run = GraphSampling(simple, gibbs, engine, question.statistics, Plan(chains, 2, sweeps, 2014, 1))
    for _ in run.steps():
        pass
    return np.concatenate([(b.state[: simple.n, : b.lanes] & b.mask).T for b in run.blocks])  # type: ignore[attr-defined]


@pytest.mark.parametrize("kernel, scan", GOLDEN)
def test_golden_draws(kernel: str, scan: str) -> None:
    model, chains = MODELS[kernel]
    digest = hashlib.sha256(np.ascontiguousarray(states(model, scan, chains)).tobytes()).hexdigest()[:16]
    assert digest == GOLDEN[kernel, scan]


def test_golden_state_of_a_hard_model() -> None:
    """Readable: four chains on the path on which no two neighbours are both 1, repaired at the start."""
    assert ["".join(map(str, state)) for state in states(hard_pairs(), "symmetric", 4)] == GOLDEN_PATH
