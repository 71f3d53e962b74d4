"""Batch means under symmetries that negate atoms: F of an orbit and 1 - F of its mirror image are one statistic.

An orbit that is its own mirror image holds each atom with its negation: its F is a half in every state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.draws import Batch


class Means(NamedTuple):
    """Means over a batch, [..., orbits]: of F, of G and of F²."""

    f: np.ndarray
    g: np.ndarray | None = None
    square: np.ndarray | None = None


def with_mirror_images(means: Means, mirror: np.ndarray, sizes: np.ndarray) -> Means:
    """The means of the joint statistics. `mirror`: the orbit of the negated atoms, or -1; `sizes`: atoms of orbits.

    The spread of a joint statistic is known by an upper bound: the norm of a sum is at most the sum of the norms.
    """
    if not (mirror >= 0).any():
        return means
    own = np.where(mirror >= 0, sizes / (sizes + sizes[mirror]), 1.0)
    itself = mirror == np.arange(len(mirror))

    def joint(x: np.ndarray) -> np.ndarray:
        return np.where(itself, 0.5, np.where(mirror >= 0, own * x + (1.0 - own) * (1.0 - x[..., mirror]), x))

    square = means.square
    if square is not None:
        turned = np.maximum(1.0 - 2.0 * means.f[..., mirror] + square[..., mirror], 0.0)
        most = (own * np.sqrt(np.maximum(square, 0.0)) + (1.0 - own) * np.sqrt(turned)) ** 2
        square = np.where(itself, 0.25, np.where(mirror >= 0, most, square))
    return Means(joint(means.f), None if means.g is None else joint(means.g), square)


def with_mirrored_means(batch: Batch, mirror: np.ndarray, sizes: np.ndarray) -> Batch:
    """A batch of the joint statistics; those beside the orbits (joint queries) stay as they are."""
    orbits = len(mirror)
    g, square = (None if x is None else x[..., :orbits] for x in (batch.g, batch.square))
    means = with_mirror_images(Means(batch.f[..., :orbits], g, square), mirror, sizes)
    f, g, square = (
        x if x is None or y is None else np.concatenate([y, x[..., orbits:]], axis=-1)
        for x, y in zip((batch.f, batch.g, batch.square), means, strict=True)
    )
    return batch._replace(f=f, g=g, square=square)


def indicator_counts(mirror: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """int64[orbits]: of how many indicators a statistic is the mean."""
    return np.where(mirror >= 0, sizes + sizes[mirror], sizes)
