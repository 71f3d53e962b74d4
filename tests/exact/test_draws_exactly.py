"""The lines that draw: with random bits given one by one, a value is drawn with exactly its probability."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uncompiled import WHOLE, uncompiled, wide_probability

from definetti.samplers.graph.fields import _log_odds, _thresholds
from definetti.samplers.graph.lanes import Orders
from definetti.samplers.kernels import orders as order_kernels
from definetti.samplers.kernels.graph import fields as field_kernels
from definetti.samplers.kernels.graph import tables as table_kernels

THRESHOLDS = [0, 1, 2**38 - 1, 2**38, 3 * 2**46 + 12345, WHOLE - 2**38, WHOLE - 1, WHOLE]


@settings(max_examples=40)
@given(st.one_of(st.sampled_from(THRESHOLDS), st.integers(0, WHOLE)))
def test_wide_draw(threshold: int) -> None:
    assert wide_probability(uncompiled(field_kernels), threshold) == threshold


@pytest.mark.parametrize("threshold", [*THRESHOLDS, 123456789012345])
def test_narrow_draw(threshold: int) -> None:
    kernels = uncompiled(field_kernels)
    for word in {0, max((threshold << 16) - 1, 0), min(threshold << 16, 2**64 - 1), 2**64 - 1}:
        assert kernels.draw_narrow(np.uint64(threshold), np.uint64(word)) == (word >> 16 < threshold)


def odds_of(unary: list[float], couplings: list[float]) -> float:
    """Log odds of a site whose neighbours, each of a kind of its own, are all 1."""
    kinds = np.array([[[-c, c, c, -c] for c in couplings]]).reshape(1, -1, 4)
    counts = np.ones(len(couplings), dtype=np.int64)
    return float(_log_odds(np.array([unary]), kinds, counts, 2 ** np.arange(len(couplings) + 1))[0, -1])


@given(st.lists(st.floats(-20, 20), max_size=4), st.floats(-20, 20), st.randoms())
def test_thresholds_of_opposite_odds(couplings: list[float], field: float, random) -> None:
    """T(p) + T(1 - p) = 2^48 exactly, in whatever order the terms of the log odds are added."""
    odds = odds_of([-field, field], couplings)
    assert odds == pytest.approx(2 * field - 2 * sum(couplings), abs=1e-12)
    mirrored = odds_of([field, -field], [-c for c in random.sample(couplings, len(couplings))])
    p, above = _thresholds(np.array([odds]))
    q, below = _thresholds(np.array([mirrored]))
    assert int(above[0]) + int(below[0]) == WHOLE
    assert p[0] + q[0] == pytest.approx(1.0, abs=1e-15)
    assert abs(int(above[0]) / WHOLE - 1 / (1 + np.exp(-odds))) < 2**-48


def test_certain_and_impossible_values() -> None:
    p, threshold = _thresholds(np.array([np.inf, -np.inf, 0.0, 800.0, -800.0]))
    assert threshold.tolist() == [WHOLE, 0, WHOLE // 2, WHOLE, 0]
    np.testing.assert_allclose(p, [1, 0, 0.5, 1, 0], atol=1e-300)


def chosen(weights: np.ndarray, uniform: float) -> tuple[int, float, bool]:
    value, scale = np.zeros(1, np.int64), np.zeros(1)
    stuck = table_kernels.choose.py_func(weights[:, None], len(weights), np.array([uniform]), value, scale)
    return int(value[0]), float(scale[0]), stuck


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, 0.0, 1e-300, 1e-9, 0.3, 1.0]), min_size=1, max_size=9).filter(any))
def test_choose_by_weight(weights: list[float]) -> None:
    """The measure of the uniform numbers that lead to each value, by bisection over all 2^53 of them."""
    array = np.array(weights)
    borders = [0.0]
    for v in range(len(weights)):
        low, high = 0, 2**53
        while low < high:  # the smallest number that leads past v
            middle = (low + high) // 2
            low, high = (low, middle) if chosen(array, middle * 2.0**-53)[0] > v else (middle + 1, high)
        borders.append(low * 2.0**-53)
    np.testing.assert_allclose(np.diff(borders), array / array.sum(), atol=2**-52)
    for uniform in (0.0, 0.5, 1 - 2.0**-53):
        value, scale, stuck = chosen(array, uniform)
        assert array[value] > 0 and not stuck
        assert scale == pytest.approx(1 / array.sum())


def test_choose_reports_the_impossible() -> None:
    assert chosen(np.zeros(3), 0.5)[2]


# --- scan orders -------------------------------------------------------------------------------------------------


def followed(make, bounds_product: int):
    """Every result of code that calls `below`, with its exact probability: all answers of `below` in turn."""
    kernels = uncompiled(order_kernels)
    results: Counter[tuple[int, ...]] = Counter()
    for script in range(bounds_product):
        rest = script

        def follow(bound, *stream):
            nonlocal rest
            rest, answer = divmod(rest, bound)
            return answer, *stream

        kernels.below = follow
        results[tuple(make(kernels).tolist())] += 1
    return results


@pytest.mark.parametrize("sizes", [(1,), (2,), (3,), (4,), (2, 1, 3)])
def test_shuffled_is_uniform_within_orbits(sizes: tuple[int, ...]) -> None:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    sites = np.arange(10, 10 + starts[-1], dtype=np.int32)

    def make(kernels):
        rows = np.empty((1, len(sites)), dtype=np.int32)
        kernels.shuffled(np.zeros(4, np.uint64), sites, starts, rows)
        return rows[0]

    results = followed(make, math.prod(map(math.factorial, sizes)))
    orbits = [sites[a:b].tolist() for a, b in itertools.pairwise(starts.tolist())]
    orders = itertools.product(*(itertools.permutations(orbit) for orbit in orbits))
    assert results == Counter(tuple(itertools.chain(*order)) for order in orders)


def test_orbits_take_turns() -> None:
    """In the order of their first sites, whatever their numbers; other scans do not know them."""
    sites, orbit_of = np.array([0, 1, 3, 4, 5]), np.array([7, 2, 9, 7, 2, 2])
    for scan, orbits in (("symmetric", [{0, 3}, {1, 4, 5}]), ("fixed", [{0}, {1}, {3}, {4}, {5}])):
        for row in Orders(scan, sites, np.arange(1, 5, dtype=np.uint64), orbit_of).next(9).tolist():
            cuts = np.cumsum([0, *map(len, orbits)]).tolist()
            assert [set(row[a:b]) for a, b in itertools.pairwise(cuts)] == orbits


def test_with_replacement_is_uniform() -> None:
    sites = np.array([3, 5, 9], dtype=np.int32)

    def make(kernels):
        rows = np.empty((1, 3), dtype=np.int32)
        kernels.with_replacement(np.zeros(4, np.uint64), sites, rows)
        return rows[0]

    assert followed(make, 27) == Counter(itertools.product([3, 5, 9], repeat=3))


@pytest.mark.parametrize("bound", [1, 3, 6, 7, 1000, 2**31 + 1])
def test_below_is_unbiased(bound: int) -> None:
    """Each answer has the same number of 32-bit words that lead to it; the others are rejected."""
    kernels = uncompiled(order_kernels)
    words = iter(())
    kernels.next_word = lambda *stream: (np.uint64(next(words) << 32), *stream)

    def answer(word: int) -> int | None:
        """None if the word is rejected."""
        nonlocal words
        words = iter([word])
        try:
            return int(kernels.below(bound, *np.zeros(4, np.uint64))[0])
        except StopIteration:
            return None

    for value in {0, bound // 2, bound - 1}:
        first, last = -(-(value << 32) // bound), -(-((value + 1) << 32) // bound) - 1  # the words that lead to it
        rejected = [answer(word) is None for word in range(first, min(first + 3, last + 1))]
        assert all(answer(word) in (value, None) for word in (first, last))
        assert last - first + 1 - sum(rejected) == 2**32 // bound
