"""Warm-up: how many sweeps to drop, decided by the run itself.

Windows of sweeps, each as long as all before it together. The warm-up ends after a window in which the orbit
statistics are, on average over the chains, where they were in the window before: a drift that the chains' own spread
hides is smaller than the error bars to come. It is blind to a mode that all chains share, as every look at the
chains alone is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FEWEST_CHAINS = 4  # to compare windows by the spread of chains
SHARE = 0.25  # of the kept sweeps, where chains are too few
LEAST_SHARE, MOST_SHARE = 0.1, 1.0  # of the kept sweeps
OPEN_LEAST, OPEN_MOST = 64, 1 << 14  # sweeps, where the end is not known
OPEN_FIRST, OPEN_LEAST_OF_DEAR = 4, 16  # the first window; the least where sweeps are expensive:
DEAR = 1 << 22  # where one sweep of all chains makes more updates than this
FALSE_ALARM = 0.01  # chance that a warm-up which has done its work goes on, per window


@dataclass
class WarmUp:
    """The windows of one run. `length()` is the next window's, 0 at the end; `look(F)` is given each window's means."""

    chains: int
    kept: int | None
    fixed: int | None  # the caller's choice
    done: int = 0
    dear: bool = False  # a sweep makes more than DEAR updates
    _before: np.ndarray | None = field(default=None, repr=False)
    _settled: bool = False
    _windows: list[tuple[int, np.ndarray]] = field(default_factory=list, repr=False)  # sweeps, F averaged over chains

    @property
    def looks(self) -> bool:
        """Whether the means are needed at all."""
        return self.fixed is None and self.chains >= FEWEST_CHAINS

    def length(self) -> int:
        if not self.looks:
            short = OPEN_LEAST * 2 if self.kept is None else max(1, int(SHARE * self.kept))
            return (short if self.fixed is None else self.fixed) - self.done
        least, most = self._bounds()
        if self.done == 0:
            return OPEN_FIRST if self.kept is None else max(1, least // 4)
        if self.done >= most or (self.done >= least and self._settled):
            return 0
        return min(self.done, most - self.done)

    def state(self) -> dict[str, Any]:
        lengths, means = (None, None) if self.windows is None else self.windows
        past = {"lengths": lengths, "means": means}
        return {"done": self.done, "dear": self.dear, "before": self._before, "settled": self._settled, **past}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.done, self._before, self._settled = int(state["done"]), state["before"], bool(state["settled"])
        self.dear = bool(state["dear"])
        past = state["lengths"] is not None
        self._windows = list(zip(state["lengths"].tolist(), state["means"], strict=True)) if past else []

    def _bounds(self) -> tuple[int, int]:
        if self.kept is None:
            return OPEN_LEAST_OF_DEAR if self.dear else OPEN_LEAST, OPEN_MOST
        return max(4, int(LEAST_SHARE * self.kept)), max(4, int(MOST_SHARE * self.kept))

    def look(self, sweeps: int, means: np.ndarray | None) -> None:
        """After a window of so many sweeps, with F's means [chains, statistics]."""
        self.done += sweeps
        if means is None:
            return
        if self._before is not None:
            self._settled = has_settled(self._before, means)
        self._before = means
        self._windows = [*self._windows, (sweeps, means.mean(axis=0))]

    @property
    def windows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """int64[W] sweeps and float64[W, K] means of the windows so far; None where nobody looked."""
        if not self._windows:
            return None
        return np.array([n for n, _ in self._windows], dtype=np.int64), np.stack([m for _, m in self._windows])


def has_settled(before: np.ndarray, now: np.ndarray) -> bool:
    """No statistic has moved by more than the chains' spread explains (t test of paired differences, Bonferroni)."""
    from scipy.special import stdtrit

    difference = now - before
    chains = len(difference)
    move = np.abs(difference.mean(axis=0))
    error = difference.std(axis=0, ddof=1) / np.sqrt(chains)
    limit = stdtrit(chains - 1, 1.0 - FALSE_ALARM / (2 * max(len(move), 1)))
    return bool((np.nan_to_num(move) <= limit * np.nan_to_num(error) + 1e-12).all())
