"""Joint queries as orbits of tuples: what is looked up in every sweep stays small and keeps the mean."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import mean_field

import definetti as dft
from definetti.errors import Notice
from definetti.inference.graph.events import MOST_MEMBERS, RANDOM_IMAGES, Event, build_event
from definetti.model.queries import parse_query
from definetti.symmetry.graph.group import GraphSymmetries


def complete(n: int) -> GraphSymmetries:
    """All n variables interchangeable."""
    return dft.symmetries(mean_field(n, 0.05, field=0.2))


def event_of(group: GraphSymmetries, text: str) -> tuple[Event, list[Notice]]:
    return build_event(parse_query(text, group.model), group, True, np.random.default_rng(1))


@pytest.mark.parametrize("text", ["X0=1 ^ X1=1", "X0=1 ^ X1=0 ^ X4=1", "X1=0 v X3=1", "X0=1 <=> X2=0"])
def test_sets_of_literals_have_the_mean_of_the_orbit_of_the_tuple(text: str) -> None:
    group = complete(5)
    model, query = group.model, parse_query(text, group.model)
    event, notices = event_of(group, text)
    assert not notices
    states = np.indices([2] * 5).reshape(5, -1).T
    true = model.literal_start[:-1] + states  # the literals that hold in each state
    wanted = np.zeros(len(states))
    for values in query.satisfying:
        tuples = group.tuple_orbit(model.literal_start[list(query.variables)] + values)
        assert tuples is not None
        wanted += [np.isin(tuples, row).all(axis=1).mean() for row in true]
    sums = [sum(np.isin(sets, row).all(axis=1).mean() for sets in event.tuples) for row in true]
    np.testing.assert_allclose(event.certain + event.sign * np.array(sums), wanted, rtol=0, atol=1e-15)


def test_a_disjunction_is_what_one_conjunction_leaves() -> None:
    """Sixteen variables are 65,535 ways to satisfy it: gigabytes of statistics, and seconds a sweep."""
    group = dft.symmetries(mean_field(16, 0.05, field=0.2), "none")
    event, _ = event_of(group, " v ".join(f"X{i}" for i in range(16)))
    assert (event.certain, event.sign, [members.shape for members in event.tuples]) == (1, -1, [(1, 16)])


@pytest.mark.parametrize("text", ["X0=1 ^ X1=1 ^ X2=1", " ^ ".join(f"X{i}=1" for i in range(12)), "X0 v X1 v X2 v X3"])
def test_few_tuples_are_looked_up_whatever_the_orbit(text: str) -> None:
    """Listing the orbit of three of forty variables took 40 ms of every sweep, of six some minutes before the first."""
    event, notices = event_of(complete(40), text)
    assert sum(map(len, event.tuples)) <= MOST_MEMBERS
    assert [notice.kind for notice in notices] == ["fallback"]
    assert f"{event.orbit_size} random images" in notices[0].message


def test_many_ways_to_satisfy_a_query_share_the_random_images() -> None:
    event, _ = event_of(complete(40), " <=> ".join(f"X{i}" for i in range(8)))
    assert len(event.tuples) == 128 and event.orbit_size == RANDOM_IMAGES // 128
    assert {images.shape for images in event.tuples} == {(event.orbit_size, 8)}
