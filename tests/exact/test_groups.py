"""Permutation groups against sympy, brute force and closed forms."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from cycles import to_cycles
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy.combinatorics import Permutation
from sympy.combinatorics import PermutationGroup as Oracle

from definetti.groups import (
    PermutationGroup,
    components,
    dense,
    direct_factors,
    from_cycles,
    inverse,
    orbits,
    order,
    random_elements,
    sparse,
    tuple_orbit,
)


def group(degree: int, *generators: list[list[int]]) -> PermutationGroup:
    return PermutationGroup(degree, tuple(from_cycles(cycles) for cycles in generators))


def symmetric(n: int) -> PermutationGroup:
    return group(n, [[0, 1]], [list(range(n))])


def wreath(m: int, n: int) -> PermutationGroup:
    """S_m on each of n blocks of m points, and S_n on the blocks."""
    blocks = np.arange(m * n).reshape(n, m)
    swap = [[int(a), int(b)] for a, b in zip(blocks[0], blocks[1], strict=True)]
    turn = [column.tolist() for column in blocks.T]
    return group(m * n, [[0, 1]], [list(range(m))], swap, turn)


def oracle(g: PermutationGroup) -> Oracle:
    generators = [Permutation(dense(generator, g.degree).tolist()) for generator in g.generators]
    return Oracle(*generators) if generators else Oracle(Permutation(list(range(g.degree))))


def elements(g: PermutationGroup) -> set[tuple[int, ...]]:
    return {tuple(p.array_form) for p in oracle(g).generate()}


@st.composite
def small_groups(draw: st.DrawFn) -> PermutationGroup:
    degree = draw(st.integers(2, 7))
    permutations = draw(st.lists(st.permutations(range(degree)), min_size=0, max_size=3))
    return PermutationGroup(degree, tuple(sparse(np.array(p)) for p in permutations))


# --- order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5, 7, 8, 12, 40, 200])
def test_the_order_of_symmetric_groups(n: int) -> None:
    assert order(symmetric(n)) == math.factorial(n)


@pytest.mark.parametrize("n", [5, 9, 25])
def test_the_order_of_alternating_groups(n: int) -> None:
    assert order(group(n, *([[0, 1, k]] for k in range(2, n)))) == math.factorial(n) // 2


@pytest.mark.parametrize("n", [3, 8, 101])
def test_the_order_of_dihedral_groups(n: int) -> None:
    turn, mirror = list(range(n)), [[k, n - k] for k in range(1, (n + 1) // 2)]
    assert order(group(n, [turn], mirror)) == 2 * n


@pytest.mark.parametrize(("m", "n"), [(2, 4), (3, 3), (2, 10), (4, 5)])
def test_the_order_of_wreath_products(m: int, n: int) -> None:
    assert order(wreath(m, n)) == math.factorial(m) ** n * math.factorial(n)


def test_the_mathieu_group_is_no_giant() -> None:
    """M_11 is 4-transitive on 11 points and must not be taken for the alternating group."""
    mathieu = group(11, [list(range(11))], [[2, 6, 10, 7], [3, 9, 4, 5]])
    assert order(mathieu) == 7920


@given(small_groups())
def test_the_order_agrees_with_sympy(g: PermutationGroup) -> None:
    assert order(g) == oracle(g).order()


def test_the_order_of_a_direct_product_is_the_product() -> None:
    parts = [from_cycles([[10 * k, 10 * k + 1]]) for k in range(50)] + [from_cycles([list(range(500, 507))])]
    assert order(PermutationGroup(600, tuple(parts))) == 2**50 * 7


def test_swaps_of_blocks_along_a_tree_are_recognised() -> None:
    """Any tree of swaps of m blocks generates S_m, at no cost even for thousands of blocks."""
    rng = np.random.default_rng(1)
    points = rng.permutation(3 * 2000).reshape(2000, 3)
    swaps = [
        [[int(a), int(b)] for a, b in zip(points[k], points[rng.integers(k)], strict=True)] for k in range(1, 2000)
    ]
    g = group(6000, *swaps)
    (factor,) = direct_factors(g)
    assert factor.blocks is not None
    assert {frozenset(row) for row in factor.support[factor.blocks].tolist()} == {frozenset(r) for r in points.tolist()}
    assert order(g) == math.factorial(2000)
    element = next(random_elements(g, rng))
    assert {tuple(element[row]) for row in points} == {tuple(row) for row in points}


def test_swaps_of_blocks_that_cross_over_are_not_recognised() -> None:
    """Two swaps that match the points differently: a group of order 8 on 3 blocks' worth of points would be wrong."""
    g = group(6, [[0, 2], [1, 3]], [[2, 5], [1, 4]])
    assert order(g) == oracle(g).order()
    twisted = group(6, [[0, 2], [1, 3]], [[2, 4], [3, 5]], [[0, 5], [1, 4]])
    assert order(twisted) == oracle(twisted).order()


def test_past_the_work_limit_the_order_is_not_known() -> None:
    assert order(wreath(4, 5), work=100) is None


# --- orbits ------------------------------------------------------------------------------------------------------


@given(small_groups())
def test_orbits_agree_with_sympy_and_are_numbered_by_smallest_member(g: PermutationGroup) -> None:
    found = orbits(g)
    expected = {frozenset(orbit) for orbit in oracle(g).orbits()}
    singles = {frozenset([x]) for x in range(g.degree)} - {frozenset([x]) for o in expected for x in o}
    assert {frozenset(np.flatnonzero(found == k).tolist()) for k in range(found.max() + 1)} == expected | singles
    firsts = [int(np.flatnonzero(found == k)[0]) for k in range(found.max() + 1)]
    assert firsts == sorted(firsts)


def test_components_of_a_long_shuffled_path() -> None:
    path = np.random.default_rng(0).permutation(100_000)
    joined = components(100_001, path[:-1], path[1:])
    assert joined[:-1].max() == 0
    assert joined[-1] == 1


@settings(max_examples=60)
@given(small_groups(), st.data())
def test_tuple_orbits_agree_with_brute_force(g: PermutationGroup, data: st.DataObject) -> None:
    start = data.draw(st.lists(st.integers(0, g.degree - 1), min_size=1, max_size=3))
    expected = {tuple(e[x] for x in start) for e in elements(g)}
    found = tuple_orbit(g, start, cap=10_000)
    assert found is not None
    assert Counter(map(tuple, found.tolist())) == Counter(expected)
    assert tuple(found[0]) == tuple(start)
    assert tuple_orbit(g, start, cap=len(expected)) is not None
    assert tuple_orbit(g, start, cap=len(expected) - 1) is None or len(expected) == 1


def test_long_tuples_whose_keys_do_not_fit_a_word() -> None:
    g = group(3000, [list(range(1000))], [[5, 2900]])
    start = [0, 1, 2, 3, 4, 2999]
    found = tuple_orbit(g, start, cap=5000)
    shifted = tuple_orbit(group(3000, [list(range(1000))]), start, cap=5000)
    assert shifted is not None and len(shifted) == 1000
    assert found is None  # 2900 can take the place of any of the thousand
    small = group(3000, [[0, 1, 2, 3, 4, 5, 6]])
    assert {tuple(t) for t in tuple_orbit(small, start, cap=99).tolist()} == {
        (*((x + k) % 7 for x in range(5)), 2999) for k in range(7)
    }


def test_pairs_of_a_thousand_interchangeable_points() -> None:
    g = PermutationGroup(1000, tuple(from_cycles([[k, k + 1]]) for k in range(299)))
    found = tuple_orbit(g, [3, 7], cap=100_000)
    assert found is not None
    assert len(found) == 300 * 299
    assert len(np.unique(found, axis=0)) == 300 * 299


# --- elements ----------------------------------------------------------------------------------------------------


def chi_square(g: PermutationGroup, draws: int) -> float:
    """Of the element counts: about its degrees of freedom, the order less 1, if the elements are uniform."""
    members = elements(g)
    stream = random_elements(g, np.random.default_rng(7))
    counts = Counter(tuple(element.tolist()) for element in itertools.islice(stream, draws))
    assert set(counts) <= members
    expected = draws / len(members)
    return sum((counts[e] - expected) ** 2 / expected for e in members)


def test_product_replacement_is_uniform_on_the_permutations_of_four() -> None:
    assert chi_square(symmetric(4), 4800) < 57.0  # 23 degrees of freedom, 1 in 10,000 is larger
    assert direct_factors(symmetric(4))[0].blocks is None


def test_product_replacement_is_uniform_on_a_direct_product() -> None:
    g = group(8, [[0, 1, 2, 3]], [[0, 2]], [[5, 6]], [[6, 7]])
    assert len(direct_factors(g)) == 2
    assert chi_square(g, 4800) < 91.8  # 47 degrees of freedom


def test_the_trivial_group() -> None:
    g = PermutationGroup(4)
    assert order(g) == 1
    assert orbits(g).tolist() == [0, 1, 2, 3]
    assert tuple_orbit(g, [2, 2], cap=1).tolist() == [[2, 2]]
    assert next(random_elements(g, np.random.default_rng(0))).tolist() == [0, 1, 2, 3]


@given(st.integers(1, 12).flatmap(lambda n: st.permutations(range(n))))
def test_cycles_and_inverses_round_trip(permutation: list[int]) -> None:
    array = np.array(permutation)
    points, images = from_cycles(to_cycles(sparse(array)))
    assert np.array_equal(dense((points, images), len(array)), array)
    assert (np.diff(points) > 0).all()
    assert np.array_equal(dense(inverse(sparse(array)), len(array))[array], np.arange(len(array)))
