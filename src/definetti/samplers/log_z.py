"""log Z by thermodynamic integration along a tempering ladder.

The levels have densities exp(β U) for β from 0 to 1, so log Z(1) = log Z(0) + ∫ E_β[U] dβ, and log Z(0) is the
logarithm of the number of states. Between two levels the integral is that of the cubic that has the right values and
slopes at both ends: dE_β[U]/dβ is the variance of U. The error bar is that of the batch means of the whole sum, with a
fifteenth of what leaving out every other level changes: the error of the rule is of fourth order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.diagnose import half_width, standard_error, weighted_mean


@dataclass(frozen=True, eq=False)
class Energies:
    """Batch means of U and U² on each level."""

    levels: np.ndarray  # float64[K], from 0 to 1
    means: np.ndarray  # float64[B, C, K]
    squares: np.ndarray  # float64[B, C, K]
    lengths: np.ndarray  # int64[B]


def trapezoid(levels: np.ndarray) -> np.ndarray:
    """float64[K]: the weights of the trapezoidal rule."""
    steps = np.diff(levels)
    return (np.append(steps, 0.0) + np.append(0.0, steps)) / 2


def integral(levels: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """∫ E_β[U] dβ from values and slopes at the levels."""
    return float(trapezoid(levels) @ mean - (np.diff(levels) ** 2 * np.diff(variance)).sum() / 12)


def log_z(energies: Energies, log_states: float) -> dict[str, Any]:
    """{"value", "mcse", "half_width", "levels"}; errors are None where there are too few batches."""
    mean = weighted_mean(energies.means, energies.lengths)
    variance = np.maximum(weighted_mean(energies.squares, energies.lengths) - mean**2, 0.0)
    levels = energies.levels
    whole = integral(levels, mean, variance)
    some = np.union1d(np.arange(0, len(levels), 2), len(levels) - 1)
    rough = abs(whole - integral(levels[some], mean[some], variance[some])) / 15
    error, dof = standard_error((energies.means @ trapezoid(levels))[:, :, None], energies.lengths)
    error = np.hypot(error, rough)
    known = bool(np.isfinite(error[0]))
    return {
        "value": log_states + whole,
        "mcse": float(error[0]) if known else None,
        "half_width": float(half_width(error, dof)[0]) if known else None,
        "levels": len(levels),
    }
