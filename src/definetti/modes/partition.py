"""The partition of the states into regions, one for everything: a region's weight, means and starts.

A state belongs to the region whose centre is nearest, statistics of the state itself being scaled by their spread
inside the regions and a tenth of that between them: one that separates the regions without noise decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BETWEEN = 0.1


@dataclass(frozen=True, eq=False)
class Partition:
    centres: np.ndarray  # float64[regions, statistics]
    scale: np.ndarray  # float64[statistics]

    def of(self, statistics: np.ndarray) -> np.ndarray:
        """int64[...]: the region of states with these statistics[..., P]."""
        apart = (statistics[..., None, :] - self.centres) / self.scale
        return (apart**2).sum(axis=-1).argmin(axis=-1)

    def seen_by(self, columns: np.ndarray) -> Partition:
        """The same where only some of the statistics are known."""
        return Partition(self.centres[:, columns], self.scale[columns])


def partition(centres: np.ndarray, within: np.ndarray) -> Partition:
    """From the centres and standard deviations [regions, statistics] of the regions."""
    inside = np.sqrt((within**2).mean(axis=0))
    scale = np.sqrt(inside**2 + (BETWEEN * centres.std(axis=0)) ** 2)
    return Partition(centres, np.where(scale > 0, scale, 1.0))
