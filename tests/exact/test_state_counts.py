"""Orbits of assignments without listing them: class counts, Burnside's lemma and estimates against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_models import ising_ring, mean_field, potts_ring, triples

import definetti as dft
from definetti.symmetry.graph import count_states as graph_counts
from definetti.symmetry.logic import count_states as logic_counts

GRAPHS = {
    "symmetric group": (mean_field(6, -0.5), "variables"),
    "with flips": (mean_field(5, -0.5), "literals"),
    "turns and reflections": (ising_ring(6), "variables"),
    "turned with flips": (ising_ring(6), "literals"),
    "permuted values": (potts_ring(4, 3), "literals"),
    "one swap of blocks": (triples(), "literals"),
    "one variable flips": (dft.factor_graph([2, 3], []), "literals"),
    "observed": (potts_ring(4, 2).condition({0: 1}), "literals"),
}


def listed(model: dft.FactorGraph, symmetries: str) -> int:
    return dft.quotient(model, symmetries=symmetries).orbits


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("most", [1 << 16, 1])
def test_counts_of_factor_graphs_equal_enumeration(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the fastest way, and by Burnside's lemma where states would be listed."""
    model, kind = GRAPHS[name]
    monkeypatch.setattr(graph_counts, "MOST_LISTED", most)
    count = dft.symmetries(model, kind).count_states()
    assert count.orbits == listed(model, kind) and count.relative_error == 0.0
    assert count.states == int(np.prod(model.cards[model.free]))


@pytest.mark.parametrize("name", ["turned with flips", "with flips", "permuted values"])
def test_estimates_agree_with_enumeration(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, kind = GRAPHS[name]
    monkeypatch.setattr(graph_counts, "MOST_LISTED", 1)
    monkeypatch.setattr(graph_counts, "MOST_ELEMENTS", 1)
    count = dft.symmetries(model, kind).count_states(seed=3)
    assert count.orbits is None and count.method == "monte-carlo" and 0 < count.relative_error < 0.1
    truth = listed(model, kind)
    assert abs(10**count.log10_orbits - truth) < 4.5 * count.relative_error * truth


THEORIES = {
    "unary": ("P(t)\nQ(t)\n0.5 P(x) => Q(x)", {"t": 4}),
    "binary": ("P(t)\nR(t,t)\n0.5 P(x) ^ R(x,y) => P(y)", {"t": 3}),
    "two sorts": ("P(t)\nR(t,u)\n0.5 P(x) ^ R(x,y)", {"t": 2, "u": 3}),
    "nullary": ("P(t)\nRain()\n0.5 Rain() => P(x)", {"t": 3}),
}


@pytest.mark.parametrize("name", THEORIES)
@pytest.mark.parametrize("way", ["cycle types", "elements", "random"])
def test_counts_of_renamings_equal_enumeration(name: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, sizes = THEORIES[name]
    model = dft.markov_logic(text, domain=sizes)
    truth = dft.quotient(model).orbits
    assert dft.symmetries(model).count_states().orbits == truth
    monkeypatch.setattr(logic_counts, "_by_classes", lambda *_: None)
    if way != "cycle types":
        monkeypatch.setattr(logic_counts, "_partitions", lambda n: 1 << 62)
    if way == "random":
        monkeypatch.setattr(logic_counts, "MOST_ELEMENTS", 0)
    count = dft.symmetries(model).count_states(seed=5)
    if way == "random":
        assert abs(10**count.log10_orbits - truth) < 4.5 * count.relative_error * truth
    else:
        assert count.orbits == truth and count.method == "burnside"


def test_a_named_constant_is_a_class_of_its_own() -> None:
    model = dft.markov_logic("P(t)\nQ(t)\n0.5 P(x) => Q(x)\n1.3 P(A)", domain={"t": 4})
    assert dft.symmetries(model).count_states().orbits == dft.quotient(model).orbits == 4 * 20


def test_the_known_number_of_graphs() -> None:
    """Directed graphs with loops up to isomorphism (OEIS A000595), and bracelets of 10 beads."""
    for n, graphs in ((1, 2), (2, 10), (3, 104), (4, 3044), (5, 291968)):
        model = dft.markov_logic("R(t,t)\n0.5 R(x,y) ^ R(y,z) => R(x,z)", domain={"t": n})
        assert dft.symmetries(model).count_states().orbits == graphs
    assert dft.symmetries(ising_ring(10, 0.5, 0.1)).count_states().orbits == 78


def test_class_counts_of_a_large_model() -> None:
    model = dft.markov_logic("P(t)\nQ(t)\n0.5 P(x) => Q(x)", domain={"t": 1000})
    count = dft.symmetries(model).count_states()
    assert count.orbits == 1003 * 1002 * 1001 // 6 and count.states == 4**1000 and count.method == "classes"


def test_every_partition_is_a_cycle_type() -> None:
    for n in range(8):
        types = list(logic_counts._cycle_types(n))
        assert len(types) == len(set(types)) == logic_counts._partitions(n)
        assert all(sum(t) == n and all(a >= b for a, b in itertools.pairwise(t)) for t in types)
