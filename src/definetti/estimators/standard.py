"""The standard estimator, equation (1) of the paper: the mean of the indicator itself.

It is the orbit estimator of the trivial group. The caller folds each variable by itself when this estimator is
chosen, so F already is the indicator here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from definetti.estimators import orbit
from definetti.estimators.values import STANDARD, Estimates
from definetti.samplers.draws import Draws


def estimate(draws: Draws) -> Estimates:
    made = orbit.estimate(draws)
    return replace(made, method=np.full_like(made.method, STANDARD))
