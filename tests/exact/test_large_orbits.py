"""R-hat of orbits so large that F hardly varies."""

from __future__ import annotations

import numpy as np
import pytest

from definetti.diagnose import split_rhat


@pytest.mark.parametrize("size", [1e7, 1e12])
def test_rhat_of_a_large_orbit(size: float) -> None:
    """F has a variance of p / size, 1e-18 and less: R-hat sees chains that agree, chains that stand apart by a hundred
    standard deviations, and chains that are frozen at different values."""
    rng, p, lengths = np.random.default_rng(5), 2.3e-6, np.array([3, 3, 3, 4] * 8)
    sweeps = p + np.sqrt(p / size) * rng.normal(size=(104, 4, 1))

    def folded_sweeps(x: np.ndarray) -> list[np.ndarray]:
        first = np.cumsum(lengths) - lengths
        return [np.add.reduceat(y, first, axis=0) / lengths[:, None, None] for y in (x, x**2)]

    def rhat(x: np.ndarray) -> float:
        f, square = folded_sweeps(x)
        return float(split_rhat(f, lengths, square, np.array([size]))[0][0])

    shift = np.arange(4)[:, None]
    assert rhat(sweeps) < 1.03
    assert rhat(sweeps + 100 * np.sqrt(p / size) * shift) > 10
    assert rhat(np.full_like(sweeps, p) * (1 + 1e-3 * shift)) > 1.5
