"""Enumeration over orbits of states: the same numbers as plain enumeration, from far fewer states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import definetti as dft
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.solvers.graph.enumerate import enumerate_states, orbit_solution, orbits_of_states
from definetti.symmetry.graph.group import GraphSymmetries


def ring(n: int, field: float = 0.0, cards: int = 2) -> FactorGraph:
    differ = np.where(np.eye(cards, dtype=bool), 1.0, 2.0)
    lean = np.exp(field * (np.arange(cards) == 0))
    return factor_graph(
        [cards] * n, [*(((i, (i + 1) % n), differ) for i in range(n)), *(((i,), lean) for i in range(n))]
    )


def same(model: FactorGraph) -> GraphSymmetries:
    group = dft.symmetries(model, "literals")
    assert isinstance(group, GraphSymmetries)
    one, two = orbit_solution(group), enumerate_states(model)
    assert one.log_z == pytest.approx(two.log_z, abs=1e-10)
    assert one.literals == pytest.approx(two.literals, abs=1e-12)
    return group


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 8), st.sampled_from([0.0, 0.7]), st.integers(2, 3), st.booleans())
def test_rings(n: int, field: float, cards: int, observed: bool) -> None:
    model = ring(n, field, cards)
    same(model.condition({0: 1}) if observed else model)


def test_fewer_states_by_nearly_the_order_of_the_group() -> None:
    """Sixteen bits on a ring with value flips: 64 symmetries; necklaces and bracelets are counted right."""
    group = same(ring(16))
    found = orbits_of_states(group)
    assert group.order == 64 and found.sizes.sum() == 2**16
    assert 2**16 / len(found.sizes) > 50
    plain = dft.symmetries(ring(10, field=0.3), "literals")
    assert isinstance(plain, GraphSymmetries)
    assert len(orbits_of_states(plain).sizes) == 78  # bracelets of ten beads in two colours, A000029


def test_it_reaches_further_than_plain_enumeration() -> None:
    """Twenty bits on a ring, 80 symmetries: the same room holds six more bits."""
    model, room = ring(20), 2**14
    with pytest.raises(TooLarge):
        enumerate_states(model, limit=room)
    group = dft.symmetries(model, "literals")
    assert isinstance(group, GraphSymmetries)
    assert len(orbits_of_states(group).sizes) <= room
    one, two = dft.exact(model, method="orbits"), dft.exact(model, method="eliminate")
    assert one.method == "orbits" and one.log_z == pytest.approx(two.log_z, abs=1e-9)
    assert one["X3"].probability == pytest.approx(0.5)


def test_large_groups_are_refused() -> None:
    free = factor_graph([2] * 12, [((i,), np.array([1.0, 2.0])) for i in range(12)])
    group = dft.symmetries(free, "literals")
    assert isinstance(group, GraphSymmetries)
    with pytest.raises(TooLarge, match="the order of the group"):
        orbits_of_states(group)
