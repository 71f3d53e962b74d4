"""Draws of orbital chains pinned bit by bit, as `test_draws.py` does for plain ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import mean_field, triples

import definetti as dft

MODELS: dict[str, tuple[Any, int]] = {
    "narrow": (mean_field(6, -0.2, 0.1), 5),
    "wide": (mean_field(6, -0.2, 0.1), 70),
    "tables": (triples(), 40),
}
GOLDEN = {
    "narrow": "b3d6d2d109489364",
    "wide": "47af7ff19e00985d",
    "tables": "135b49696d13c700",
    "metropolis": "e193eb6e461aa1bf",
    "logic": "ad45899031215d1b",
}


def digest(draws: dft.Samples) -> str:
    return hashlib.sha256(np.ascontiguousarray(draws.array()).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", MODELS)
def test_golden_orbital_draws(name: str) -> None:
    model, chains = MODELS[name]
    sampler = dft.Orbital(dft.Gibbs(), "variables")
    draws = dft.sample(model, sampler=sampler, chains=chains, draws=4, burn_in=2, seed=2014)
    assert digest(draws) == GOLDEN[name]


def test_golden_proposals() -> None:
    sampler = dft.OrbitalMetropolis(symmetries="variables")
    draws = dft.sample(MODELS["narrow"][0], sampler=sampler, chains=5, draws=4, burn_in=2, seed=2014)
    assert digest(draws) == GOLDEN["metropolis"]


def test_golden_renamings(examples: Path) -> None:
    model = dft.read(examples / "smokers.mln", domain={"person": 4})
    draws = dft.sample(model, sampler="orbital", chains=3, draws=4, burn_in=2, seed=2014)
    assert digest(draws) == GOLDEN["logic"]
