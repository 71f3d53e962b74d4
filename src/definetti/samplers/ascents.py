"""Ends of ascents: in which of them chains begin."""

from __future__ import annotations

import numpy as np


def best_and_others(features: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of states: of those that differ the best ones, and some of the others. The last feature is the log
    density."""
    _, first = np.unique(np.round(features, 7), axis=0, return_index=True)
    order = first[np.argsort(-features[first, -1], kind="stable")]
    best = (wanted + 1) // 2
    rest = rng.permutation(order[best:])[: wanted - best]
    return np.concatenate([order[:best], rest]).astype(np.int64)
