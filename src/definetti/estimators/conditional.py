"""The orbit mean of full conditionals, G: each update contributes P(value | the rest) instead of the value drawn.

It always helps a single variable under the random scan; averaged over an orbit it can hurt (mean-field
antiferromagnet), so it is a choice and not the default. Joint events have no conditional here: the orbit estimator
stands in for them.
"""

from __future__ import annotations

import numpy as np

from definetti.diagnose import weighted_mean
from definetti.errors import ModelError
from definetti.estimators.values import CONDITIONAL, ORBIT, Estimates
from definetti.samplers.draws import Draws


def estimate(draws: Draws) -> Estimates:
    if draws.g is None:
        raise ModelError("these draws carry no full conditionals; use the estimator 'orbit'")
    missing = np.asarray(np.isnan(draws.g).all(axis=(0, 1)))
    batches = np.where(missing, draws.f, draws.g)
    method = np.where(missing, ORBIT, CONDITIONAL).astype(np.int8)
    return Estimates(weighted_mean(batches, draws.lengths), batches, missing, method)
