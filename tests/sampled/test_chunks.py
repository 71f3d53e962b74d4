"""A run is cut into chunks by the clock, and shared out among threads: neither may show in the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import ising_ring, triples

import definetti as dft
from definetti.samplers import run as chains

SAMPLERS = {"gibbs": triples(), "blocks": triples(), "mcsat": triples(), "tempering": triples()}
SAMPLERS |= {"swendsen-wang": ising_ring(6, field=0.3), "auto": ising_ring(6, field=0.3)}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_neither_the_clock_nor_the_threads_show(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """MC-SAT's chains drew slices by a count of samples that they shared, so that it mattered who was where when."""
    runs = []
    for seconds, workers in ((1e-9, 1), (10.0, 1), (10.0, 3)):
        monkeypatch.setattr(chains, "CHUNK_SECONDS", seconds)
        options = {"sampler": sampler, "chains": 40, "sweeps": 48, "burn_in": 16, "seed": 5, "workers": workers}
        runs.append(dft.marginals(SAMPLERS[sampler], **options))
    for run in runs[1:]:
        assert [np.all(a == b) for a, b in zip(runs[0].orbits, run.orbits, strict=True)] == [True] * len(run.orbits)
