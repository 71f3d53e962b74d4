"""The truths of `benchmarks/trap_models.py`, which come from sums over counts and transfer matrices, against the
enumeration of all states of small instances."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import definetti as dft

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import calm_models  # noqa: E402
import class_traps  # noqa: E402
import compound_traps  # noqa: E402
import gated_traps  # noqa: E402
import numpy as np  # noqa: E402
import planted_traps  # noqa: E402
import site_traps  # noqa: E402
import trap_models as models  # noqa: E402
import traps  # noqa: E402

SMALL = [
    models.curie_weiss(7, 0.6, -4.1),
    models.agreement(7, 0.3, 0.2),
    *(models.cubic(6, formula, 0.07, -0.1, 0.3) for formula in models.CUBIC),
    models.either(4, 0.7, (0.3, -0.2)),
    models.either(3, 0.4, (0.3, 0.0, -0.2)),
    models.needle(4, 6.0, (True, False), (-0.7, 0.4)),
    models.graph_needle(3, 9.0, -0.8),
    models.two_predicates(4, (0.5, 0.2, -0.3), (-1.0, 0.4)),
    models.two_predicates(4, (0.5, 0.2, -0.3), (-1.0, 0.4), 0.6, 0.1),
    models.equivalence(3, 9.0, -2.0, 2.3),
    models.equivalence(4, 9.0, -2.0, 0.3, 0.1),
    models.digraph(4, -3.0, 0.7, 1.1),
    models.digraph(4, -3.0, 0.7, 1.1, cyclic=True),
    models.large_digraph(4, -1.0, 0.2, 0.3),
    models.large_digraph(4, -1.0, 0.7, 1.5),
    models.counted_edges(4, 0.2, -2.4, 0.3),
    models.stars(3, 0.7, -2.0),
    models.colours(5, 3, 0.25, 0.3),
    models.mean_field_potts(5, 3, 0.25, 0.3),
    models.split_mean_field(5, 2, 0.25, 0.9),
    models.lattice("open", 3, 3, [models.agree(0.9)] * 3, [models.agree(0.9)] * 3, models.agree(0.3)[0], closed=False),
    models.ising(3, 4, 0.4, 0.1),
    models.large_ising(4, 0.4, 0.1),
    models.potts(3, 3, 3, 0.8, 0.2),
    models.split_torus(3, 3, 2, 0.5, 0.1),
    models.triangular(3, 4, 0.6, 0.2),
    models.villain(4, 3, 0.6, 0.2),
    models.groups(3, 0.5, (0.3, -0.3, 0.3, 0.3), (0.4, 0.0, 0.0, -0.1)),
    models.one_hot(4, 3, 2.0, -0.5, 0.8),
    models.permutations(5, -0.5, 0.3),
    models.permutations(5, -0.5, 0.3, involutions=True),
    models.injection(4, 5, 0.7),
    models.injection(4, 4, 0.7),
    models.latin(3, 0.3, 0.5),
    models.parities(12, 4, 3),
    models.asthma(3),
    models.asthma(3, known_smoker=True),
    models.asthma(3, two_steps=True),
    models.sociable(4, 1.7, 0.3),
    *(next(family(np.random.default_rng(5))) for family in site_traps.FAMILIES.values()),
    gated_traps.gated_edges(3, 2.0, -1.0, -0.7),
    gated_traps.sided_edges(3, 1.0, -0.5, 0.2),
    gated_traps.crossed(3, 1.5, -0.4, 0.3, 0.2),
    gated_traps.rows(3, 2.0, -1.2),
    gated_traps.proposition(5, 1.1, 0.8, 0.3, 0.2),
    gated_traps.components(np.array([0.2, 0.5, 0.3]), np.array([[0.1, 0.9, 0.4]] * 2 + [[0.7, 0.2, 0.5]]), "three"),
    gated_traps.machine(2, 4, np.array([[0.5, -0.4, 0.3, 0.9], [0.2, 0.8, -0.6, 0.1]]), np.arange(6) / 9, "machine"),
    gated_traps.tree(2, 2, (0.7, 1.1), (0.1, -0.2, 0.15)),
    class_traps.observed_groups((2, 3), 0.4, (-1.0, 0.3)),
    class_traps.two_sorts(3, 4, 0.7, -0.5, -1.0, 0.2),
    class_traps.triples(2, 1.5, -1.0, -0.4),
    class_traps.all_or_none(3, 0.4, -0.3),
    class_traps.random_fields(3, 4, 0.6, np.arange(12.0).reshape(4, 3) / 20 - 0.3),
    gated_traps.soft_parity(5, 2.0, np.array([0.3, -0.5, 0.2, 0.9, -1.0])),
    gated_traps.open_pairs(3, 2, (0.1, -0.2, 0.3), 1.5, tie=2.0),
    planted_traps.planted_pairs(5, 3, 0.4, np.random.default_rng(3)),
    planted_traps.planted_formulas(4, 3, 0.4, True, np.random.default_rng(4)),
    planted_traps.planted_formulas(4, 3, 0.4, False, np.random.default_rng(5)),
    planted_traps.tournament(3, 4.0, -0.8),
    planted_traps.function(3, 2.0, 3.0, -0.8),
    planted_traps.star(3, 2.0, -0.8),
    planted_traps.group_needles((2, 3), 2.5, -0.8),
    planted_traps.group_cubes((2, 3), (0.2, 0.1), (-0.8, -0.5), 0.3),
    planted_traps.colours(4, 3, 0.3, 0.2),
    planted_traps.alike(3, 2, 1.2, -0.7, 0.3),
    planted_traps.hard_squares(3, 4, 1.5, 0.2),
    planted_traps.two_gases(3, 2, 1.1, 0.3),
    planted_traps.clock(3, 2, 3, 1.2, np.arange(18.0).reshape(3, 2, 3) / 20),
    planted_traps.levels(4, 2, 3, np.random.default_rng(1)),
    compound_traps.beside_a_magnet(3, 3, 0.4, 4, 0.3, 0.1, np.random.default_rng(6)),
    compound_traps.in_a_chain(4, 0.4, 0.05, 3, None, np.random.default_rng(7)),
    compound_traps.patterns(4, 2, (1.2, 1.4), (0.1, 0.05), np.random.default_rng(8)),
]


@pytest.mark.parametrize("trap", SMALL, ids=lambda trap: trap.name)
def test_truth_is_the_enumerated_answer(trap: models.Trap) -> None:
    method = "auto" if "Latin" in trap.name or "asthma" in trap.name else "enumerate"
    answer = dft.exact(trap.build(), list(trap.truth), method=method)
    for query, (low, high) in trap.truth.items():
        assert low - 1e-10 <= answer[query].probability <= high + 1e-10, query
        assert trap.name.startswith(("triangles", "Ising 4×4")) or low == high


def test_bounds_decide() -> None:
    for trap in models.traps(1, ["large digraph"]):
        ((low, high),) = trap.truth.values()
        assert high < 0.25 or low > 0.3, trap.name


def test_there_are_enough_and_the_seed_decides() -> None:
    drawn = models.traps(1)
    assert len(drawn) >= 200
    assert sum(trap.beyond_exact for trap in drawn) >= 80
    names = [trap.name for trap in (*drawn, *calm_models.calm(1))]
    assert len(set(names)) == len(names)
    again = models.traps(1, ["Curie–Weiss", "needle"])
    assert [t.name for t in again] == [t.name for t in drawn if t.family in ("Curie–Weiss", "needle")]
    assert [t.name for t in again] != [t.name for t in models.traps(2, ["Curie–Weiss", "needle"])]


def test_sixty_calm_models() -> None:
    assert len(calm_models.calm(1)) == 60


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_truths_of_calm_models_are_probabilities(seed: int) -> None:
    """A transfer matrix to the power of a thousand overflowed for some parameters."""
    bounds = [pair for trap in calm_models.calm(seed) for pair in trap.truth.values()]
    assert bounds and all(0.0 <= low <= high <= 1.0 for low, high in bounds)


@pytest.mark.parametrize(
    ("probability", "half_width", "trusted", "verdict"),
    [
        (0.75005, 1.96e-5, True, "right"),  # five errors
        (0.75007, 1.96e-5, True, "SILENT"),  # seven
        (0.75007, 1.96e-5, False, "flagged"),
        (0.75, 0.0, True, "right"),
        (0.75001, 0.0, True, "SILENT"),
        (0.75001, None, True, "SILENT"),
    ],
)
def test_verdicts(probability: float, half_width: float | None, trusted: bool, verdict: str) -> None:
    trap = models.Trap("three quarters", models.Theory(""), lambda: {"P(1)": 0.75})
    found = {"values": {"P(1)": (probability, half_width)}, "trusted": trusted, "kinds": [], "sampler": "gibbs"}
    assert traps.judged(trap, 1, False, found, 0.0).verdict == verdict


def test_bounds_are_right_within_and_slightly_beyond() -> None:
    trap = models.Trap("bounded", models.Theory(""), lambda: {"P(1)": (0.2, 0.4)})
    for probability, verdict in ((0.3, "right"), (0.4005, "right"), (0.5, "SILENT"), (0.1, "SILENT")):
        found = {"values": {"P(1)": (probability, 0.001)}, "trusted": True, "kinds": [], "sampler": "gibbs"}
        assert traps.judged(trap, 1, False, found, 0.0).verdict == verdict
