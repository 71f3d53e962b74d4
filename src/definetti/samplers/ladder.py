"""Ladders of parallel tempering: levels from 0 (uniform) to 1 (the model), placed so that neighbours reject equally
many exchanges, and what the exchanges of a run say (Syed, Bouchard-Côté, Deligiannidis and Doucet, 2021).

The rejection rates of neighbours add up to the barrier Λ, nearly whatever the levels are; with exchanges of even and
odd pairs in turn and equal rates a replica makes a round trip about every 2 + 2Λ sweeps at best, and about 2Λ levels
are worth having.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.errors import Notice

MOST_LEVELS = 64
FEWEST_TRIPS = 10  # round trips without which an answer is not trusted
STEEPNESS = 5.0  # of the penalty: 5, 12 and 23 at the levels 0.63, 0.9 and 0.99
LOW_RATE = 0.1  # of exchanges between neighbours: worth a word


def penalty(level: float) -> float:
    """What an impossible entry or a violated grounding costs on a level."""
    return np.inf if level >= 1.0 else -STEEPNESS * float(np.log1p(-level))


def level_count(rejection: np.ndarray) -> int:
    """How many levels a barrier asks for."""
    return int(np.clip(np.ceil(2.0 * rejection.sum()) + 2, 3, MOST_LEVELS))


def placed(levels: np.ndarray, rejection: np.ndarray, count: int) -> np.ndarray:
    """So many levels from the first to the last between which the rejection, as measured, adds up equally.

    Every step counts a little even where nothing was rejected, so that no two levels fall together.
    """
    steps = rejection + 1e-3 * max(float(rejection.sum()), 1e-6) + 1e-3 * np.diff(levels)
    total = np.append(0.0, np.cumsum(steps))
    found = np.interp(np.linspace(0.0, total[-1], count), total, levels)
    found[0], found[-1] = levels[0], levels[-1]
    return found


@dataclass(frozen=True, eq=False)
class Ladder:
    """The levels of a run and their exchanges: mean rejection of every pair of neighbours, round trips."""

    levels: np.ndarray
    rejection: np.ndarray
    tried: np.ndarray
    trips: int

    @property
    def barrier(self) -> float:
        return float(self.rejection.sum())

    def report(self) -> dict[str, Any]:
        return {
            "levels": self.levels.tolist(),
            "swap_rates": (1.0 - self.rejection).tolist(),
            "barrier": self.barrier,
            "round_trips": self.trips,
        }

    def notices(self) -> list[Notice]:
        """Too few round trips: what the hot levels find does not arrive, and nobody has seen how the model mixes."""
        if self.tried.sum() == 0:
            return []
        out = []
        rate = np.where(self.tried > 0, 1.0 - self.rejection, 1.0)
        k = int(rate.argmin())
        if rate[k] < LOW_RATE:
            pair = f"the levels {self.levels[k]:.3g} and {self.levels[k + 1]:.3g} of the ladder"
            text = f"{pair} exchange states at only {rate[k]:.2g} of the attempts; put more levels between them"
            out.append(Notice("note", text))
        if self.trips < FEWEST_TRIPS:
            text = f"{self.trips} round trips between the ends of the ladder, fewer than {FEWEST_TRIPS}"
            out.append(Notice("not-mixed", f"{text}: nothing shows that all regions were met"))
        return out
