"""Where the chains of a run were, among regions that are known."""

from __future__ import annotations

import numpy as np

from definetti.modes.partition import partition
from definetti.modes.whereabouts import entries, strays

TWO_CENTRES = partition(np.array([[0.1], [0.9]]), np.full((2, 1), 0.02))


def batches_at(*chains: list[float]) -> np.ndarray:
    return np.array(chains).T[:, :, None]


def test_chains_that_end_where_nothing_counts_are_astray() -> None:
    means, lengths = batches_at([0.1] * 8, [0.9] * 8, [0.1] * 6 + [0.9] * 2, [0.5] * 8), np.full(8, 10)
    assert strays(TWO_CENTRES, means, lengths, [1]) == 1  # the last one lies between
    assert strays(TWO_CENTRES, means, lengths, [0]) == 2
    assert strays(TWO_CENTRES, means, lengths, [0, 1]) == 0
    alike = partition(np.array([[0.1], [0.101]]), np.full((2, 1), 0.02))
    assert strays(alike, batches_at([0.101] * 8), lengths, [0]) == 0


def test_entries_are_changes_of_place_and_batches_between() -> None:
    stays, changes = [0.1] * 4 + [0.9] * 4, [0.1, 0.9] * 4
    assert entries(TWO_CENTRES, batches_at(stays), [0, 1]) == (0, 1)
    assert entries(TWO_CENTRES, batches_at(changes), [0, 1]) == (3, 4)
    assert entries(TWO_CENTRES, batches_at([0.45] * 8), [0, 1]) == (8, 8)
