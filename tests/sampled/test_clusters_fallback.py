"""`auto` on models of pairs whose chains of single moves are stuck: cluster flips, where they are seen to cross."""

from __future__ import annotations

import numpy as np
import pytest

import definetti as dft
from definetti.inference import modes
from definetti.inference.modes import MOST_RARE, entries
from definetti.modes import weighing

SIGNS = np.array([[1.0, -1.0], [-1.0, 1.0]])


def tied_pairs(count: int, coupling: float, field: float) -> dft.FactorGraph:
    """Pairs that hardly ever differ: as many modes as combinations; P(X0) is nearly the logistic of 2 · field."""
    factors = [([2 * i, 2 * i + 1], np.exp(coupling * SIGNS)) for i in range(count)]
    factors += [([2 * i], np.exp([-field, field])) for i in range(count)]
    return dft.factor_graph([2] * (2 * count), factors)


@pytest.fixture
def unweighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weight of a region is found to be good enough."""
    monkeypatch.setattr(weighing, "MOST_ERROR", 0.0)


def test_cluster_flips_answer_where_they_cross(unweighed: None) -> None:
    found = dft.marginals(tied_pairs(6, 12.0, 0.3), ["X0"], sweeps=1000, seed=1)
    assert found.run["sampler"] == "swendsen-wang" and found.trusted
    assert abs(found["X0"].probability - 0.645656) < 6 * found["X0"].mcse
    assert any("do not mix" in notice.message for notice in found.notices)


def test_the_doubt_stays_where_nothing_shows_that_they_cross(unweighed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "CROSSING_SWEEPS", 2)
    found = dft.marginals(tied_pairs(6, 12.0, 0.3), ["X0"], sweeps=400, seed=1)
    assert found.run["sampler"] == "gibbs" and not found.trusted
    assert any("doubts of their own" in notice.message for notice in found.notices)


def test_a_sampler_that_was_named_is_not_replaced() -> None:
    found = dft.marginals(tied_pairs(6, 12.0, 0.3), ["X0"], sampler="gibbs", sweeps=400, seed=1)
    assert found.run["sampler"] == "gibbs" and not found.trusted


def test_weights_are_preferred_where_they_are_found() -> None:
    found = dft.marginals(tied_pairs(6, 12.0, 0.3), ["X0"], sweeps=1000, seed=1)
    assert found.run["sampler"] == "gibbs" and found.trusted
    assert abs(found["X0"].probability - 0.645656) < 6 * found["X0"].mcse


def test_pairs_without_clusters_are_left_alone() -> None:
    """Hard squares: `not both` has no bonds."""
    both = np.array([[1.0, 1.0], [1.0, 0.0]])
    factors = [([i, (i + 1) % 16], both) for i in range(16)] + [([i], np.array([1.0, 1e4])) for i in range(16)]
    found = dft.marginals(dft.factor_graph([2] * 16, factors), ["X0"], sweeps=300, seed=1)
    assert not any("cluster" in notice.message for notice in found.notices)


def test_entries_are_counted_from_other_regions_that_count() -> None:
    there = np.array([0] * 5 + [1] * 3 + [7] + [1] * 3 + [0] * 4 + [2] + [0] * 4)
    where = np.stack([there, np.zeros_like(there)], axis=1)
    counted, rare = entries(where, [0, 1, 2])
    assert counted == (2, 1, 1) and rare == 0.0


def test_what_is_hardly_entered_and_soon_left_is_bounded() -> None:
    where = np.tile(np.array([0, 1]), 5000)[:, None]
    where[5000] = 2
    counted, rare = entries(where, [0, 1, 2])
    assert len(counted) == 2 and min(counted) > 1000
    assert rare == pytest.approx(1 * (1 + 2 + 3) / 10_000) and rare < MOST_RARE
    stayed = np.zeros((10_000, 1), dtype=int)
    assert entries(stayed, [0, 1]) == ((0, 0), 0.0)  # 1 was never there, and 0 was never entered
