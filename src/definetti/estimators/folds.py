"""Folds for cross-fitting: what is fitted or chosen on all other batches is used on a fold's own.

Then a fitted coefficient or a choice is independent, or nearly so, of the batches it is used on: their mean stays
unbiased and the spread of the results is an honest error that contains the noise of the fit.
"""

from __future__ import annotations

import numpy as np

FOLDS = 8  # at least 5, so that little is lost from each fit


def folds(batches: int, chains: int) -> np.ndarray:
    """int64[batches, chains]: the fold of each batch. Whole chains where there are 5 or more, else stretches of
    chains."""
    if chains >= 5:
        return np.broadcast_to(np.arange(chains) % min(FOLDS, chains), (batches, chains))
    stretches = min(-(-FOLDS // chains), batches)
    return np.arange(chains)[None] * stretches + (np.arange(batches) * stretches // max(batches, 1))[:, None]
