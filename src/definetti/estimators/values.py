"""What an estimator returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from definetti.estimators import ESTIMATORS

METHODS = tuple(name for name in ESTIMATORS if name != "auto")
STANDARD, ORBIT, CONDITIONAL, CONTROL = (METHODS.index(n) for n in ("standard", "orbit", "conditional", "control"))


@dataclass(frozen=True, eq=False)
class Estimates:
    """Per statistic: its estimate, and the batch means [batches, chains, statistics] whose spread is its error."""

    value: np.ndarray
    batches: np.ndarray
    fallback: np.ndarray  # bool: the estimator does not apply to this statistic, the orbit mean stands in
    method: np.ndarray  # int8: which of METHODS made it
