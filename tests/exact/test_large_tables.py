"""Symmetries of tables with very many entries: by roles, and flips by linear equations modulo 2."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from definetti import factor_graph, groups, symmetries
from definetti.model.graph.simplify import simplify
from definetti.symmetry.graph import large_tables
from definetti.symmetry.graph.group import find


def count(axes: int, value: int = 1, card: int = 2) -> np.ndarray:
    """Of each state how many of its axes have the value."""
    return (np.indices((card,) * axes, dtype=np.uint8) == value).sum(axis=0)


def parity(axes: int) -> np.ndarray:
    return np.where(count(axes) % 2, 3.0, 1.0)


def noisy_or(parents: int) -> np.ndarray:
    off = 0.9 * 0.7 ** count(parents)
    return np.stack([off, 1 - off], axis=-1)


def test_a_parity_has_its_whole_group(cpu_limit) -> None:
    """2^16 entries are too many nodes for a search of ten seconds; it has 17! renamings and flips of even sets."""
    with cpu_limit(5):
        group = symmetries(factor_graph([2] * 17, [(list(range(17)), parity(17))]))
    assert group.order == factorial(17) << 16 and not group.notices
    assert len(group.orbits) == 1


@pytest.mark.slow
def test_a_parity_of_twenty_variables(cpu_limit) -> None:
    with cpu_limit(10):
        assert symmetries(factor_graph([2] * 20, [(list(range(20)), parity(20))])).order == factorial(20) << 19


def test_parities_that_share_variables() -> None:
    """Flips must be even in both: 25 - 2 of them are independent. The two factors change places, too."""
    model = factor_graph([2] * 25, [(list(range(15)), parity(15)), (list(range(10, 25)), parity(15))])
    group = symmetries(model)
    assert group.order == (2 * factorial(10) ** 2 * factorial(5)) << 23 == groups.order(group.group)


def test_flips_end_where_another_factor_sees_the_value() -> None:
    model = factor_graph([2] * 16, [(list(range(15)), parity(15)), ([0], [1, 2]), ([1, 15], [[1, 2], [3, 1]])])
    assert symmetries(model).order == factorial(13) << 12


def test_counts_up_to_the_names_of_values() -> None:
    """A threshold, some of whose variables count where they are false; at the middle of an odd number it has a flip."""
    table = np.where(count(15) >= 6, 2.0, 1.0)
    turned = np.flip(table, (1, 4, 5))
    assert symmetries(factor_graph([2] * 15, [(list(range(15)), turned)])).order == factorial(15)
    middle = np.flip(np.where(count(15) >= 8, 2.0, 1.0), (1, 4, 5))
    assert symmetries(factor_graph([2] * 15, [(list(range(15)), middle)])).order == factorial(15)
    even = np.flip(np.abs(count(15) - 7.5), (0, 2))
    assert symmetries(factor_graph([2] * 15, [(list(range(15)), even)])).order == 2 * factorial(15)
    two = [(list(range(15)), turned), (list(range(15, 30)), np.flip(turned, (0, 2, 14)))]
    assert symmetries(factor_graph([2] * 30, two)).order == 2 * factorial(15) ** 2


def test_axes_of_several_roles() -> None:
    model = factor_graph([2] * 15, [(list(range(15)), noisy_or(14))])
    group = symmetries(model)
    assert group.order == factorial(14) and [orbit.size for orbit in group.orbits] == [14, 1]


def test_values_that_change_places_at_all_axes() -> None:
    """Of nine variables with three values each what counts is how often the most frequent value occurs."""
    most = np.max([count(9, v, 3) for v in range(3)], axis=0)
    assert np.bincount(most.ravel()).max() < 3**9 - large_tables.MOST_ENTRIES
    group = symmetries(factor_graph([3] * 9, [(list(range(9)), most + 1.0)]))
    assert group.order == factorial(9) * 6
    two = np.max([count(9, v, 3) for v in range(2)], axis=0) + 0.1 * count(9, 2, 3)
    assert symmetries(factor_graph([3] * 9, [(list(range(9)), two + 1.0)])).order == factorial(9) * 2


def test_a_table_whose_axes_all_differ_is_shown_by_its_entries() -> None:
    state = np.indices((2,) * 14, dtype=np.int64)
    energy = np.tensordot(np.arange(1.0, 15.0), state, 1)
    assert large_tables.roles_of(energy) is None
    assert symmetries(factor_graph([2] * 14, [(list(range(14)), np.exp(-0.1 * energy))])).order == 1


def _random_model(rng: np.random.Generator):
    n, card = int(rng.integers(3, 7)), 2 if rng.random() < 0.7 else 3
    factors = []
    for _ in range(int(rng.integers(1, 4))):
        axes = int(rng.integers(2, min(n, 5) + 1))
        index, values = np.indices((card,) * axes), rng.integers(1, 4, size=60).astype(float)
        kinds = [index.sum(0) % card, index.sum(0), (index == 0).sum(0), index[:2].sum(0) % card + 5 * index[2:].sum(0)]
        table = values[kinds[rng.integers(4)]]
        for axis in range(axes):
            table = table.take(rng.permutation(card), axis) if rng.random() < 0.4 else table
        factors.append((rng.choice(n, axes, replace=False).tolist(), table))
    if rng.random() < 0.3:
        factors.append(([0], rng.integers(1, 3, size=card).astype(float)))
    return simplify(factor_graph([card] * n, factors))


@pytest.mark.parametrize("axes_per_role", [1, 2])
def test_small_tables_shown_by_roles(monkeypatch, axes_per_role: int) -> None:
    """Every generator passes the check in `find`; the order is that of the group, a part of the whole one."""
    whole = 0
    for seed in range(60):
        model = _random_model(np.random.default_rng(seed))
        full = find(model)
        with monkeypatch.context() as patch:
            patch.setattr(large_tables, "MOST_ENTRIES", -1)
            patch.setattr(large_tables, "FEWEST_AXES", 2)
            patch.setattr(large_tables, "AXES_PER_ROLE", axes_per_role)
            shown = find(model)
        assert shown.order is not None and shown.order == groups.order(shown.group), seed
        assert full.order is not None and full.order % shown.order == 0, seed
        whole += full.order == shown.order
    assert whole >= 45
