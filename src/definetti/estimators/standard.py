"""The standard estimator, equation (1) of the paper: the mean of the indicator itself.

It is the orbit estimator of the trivial group. The caller folds each variable by itself when this estimator is chosen, so F
already is the indicator here.
"""

from __future__ import annotations

from definetti.estimators.orbit import estimate

__all__ = ["estimate"]
