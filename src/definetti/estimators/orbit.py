"""The paper's symmetry-aware Rao-Blackwell estimator, equation (2): every draw averaged over its orbit.

By Lemma 1 the average of the indicator over the orbit of a state is the orbit Hamming weight of the state, divided
by the size of the orbit of the (tuple of) variables: that is F, and the estimate is its mean.
"""

from __future__ import annotations

import numpy as np

from definetti.diagnose import weighted_mean
from definetti.estimators.values import ORBIT, Estimates
from definetti.samplers.draws import Draws


def estimate(draws: Draws) -> Estimates:
    count = draws.f.shape[2]
    method = np.full(count, ORBIT, dtype=np.int8)
    return Estimates(weighted_mean(draws.f, draws.lengths), draws.f, np.zeros(count, dtype=bool), method)
