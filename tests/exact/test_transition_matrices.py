"""Every kernel and scan leaves the model's distribution alone: exact transition matrices, all branches followed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from random_models import models
from small_models import (
    cubic_models,
    dense,
    hard_pairs,
    hub,
    implications,
    ising_ring,
    many_at_once,
    mean_field,
    moved,
    pair_models,
    potts_ring,
    triples,
)
from uncompiled import (
    KERNELS,
    REAL,
    Target,
    flow_error,
    kernel_error,
    runner,
    scan_matrix,
    site_matrices,
    sweep_matrix,
    target,
    uncompiled,
    weighed,
)

from definetti.inference.graph.question import ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.samplers.graph import polynomial
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels.graph import polynomial as polynomial_kernels
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph.group import none

TOLERANCE = 1e-12
SCANS = ("symmetric", "random", "fixed")


def check_scans(model: FactorGraph, kernel: str) -> None:
    """Site by site, scan by scan, and one whole sweep as the kernel itself composes it."""
    aim = target(model)
    assume(aim is not None and len(aim.simple.free) and len(aim.states) <= 64)
    assert aim is not None
    run = runner(aim, kernel)
    assume(run is not None)
    assert run is not None
    sites = site_matrices(aim, run)
    for matrix in sites:
        assert flow_error(aim, matrix) < TOLERANCE
    for scan in SCANS:
        if scan != "symmetric" or len(sites) <= 4:
            assert flow_error(aim, scan_matrix(sites, scan)) < TOLERANCE
    if np.prod(aim.simple.cards[aim.simple.free]) <= 16:
        whole = sweep_matrix(aim, run, aim.simple.free[::-1])
        np.testing.assert_allclose(whole, scan_matrix(sites[::-1], "fixed"), atol=TOLERANCE)


@pytest.mark.parametrize("kernel", ["narrow", "wide"])
@settings(max_examples=40)
@given(model=pair_models())
def test_fields_leave_random_models_alone(kernel: str, model: FactorGraph) -> None:
    check_scans(model, kernel)


@settings(max_examples=60)
@given(model=models(most=4))
def test_tables_leave_random_models_alone(model: FactorGraph) -> None:
    check_scans(model, "tables")


@settings(max_examples=60)
@given(model=cubic_models())
def test_polynomials_leave_random_models_alone(model: FactorGraph) -> None:
    check_scans(model, "polynomial")


@pytest.mark.parametrize("model", [hub(), implications(), mean_field(7, 0.3, 0.2), mean_field(7, -0.3, 0.2)])
@pytest.mark.parametrize("most", [255, 3, 1])
def test_products_that_are_counted_together(model: FactorGraph, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either sign, in more than one word of lanes; past so many another count begins."""
    monkeypatch.setattr(polynomial_kernels, "MOST", most)
    aim = target(model)
    assert aim is not None and runner(aim, "polynomial") is not None
    assert kernel_error(aim, "polynomial") < TOLERANCE


def test_most_products_fill_a_byte() -> None:
    """255 in one count, of one sign and of both, and the next one in a second count: one site's odds, by hand."""
    for minus, others in itertools.product((0, 100, 256), (255, 256)):
        weights = [[0.0, 0.0], [0.0, 0.01]]
        tables = [weights if j > minus else np.negative(weights) for j in range(1, others + 1)]
        model = factor_graph([2] * (others + 1), [([0, j], tables[j - 1]) for j in range(1, others + 1)], log=True)
        states = np.random.default_rng(1).integers(0, 2, (3, others + 1))
        states[0] = 1
        found = []
        engine = polynomial.build(model, slots_of(model, none(model).row_of))
        assert engine is not None and engine.model.start[1] == 1 + (others > 255)
        block = engine.block(states, [np.random.SeedSequence(0)], False)
        kernels: Any = uncompiled(polynomial_kernels)
        kernels.draw = lambda state, i, ratio, uniform, chance, found=found: found.append(np.log(ratio))
        block._kernels = kernels
        block.run(np.zeros((1, 1), np.int32), 0)
        signs = np.where(np.arange(1, others + 1) > minus, 0.01, -0.01)
        np.testing.assert_allclose(found[0], states[:, 1:] @ signs, atol=TOLERANCE)


@pytest.mark.parametrize("odds", [0.0, 1e-3, 0.4, 1.0, 7.0, 1e6, 1e200])
def test_polynomial_draws_by_its_odds(odds: float) -> None:
    """Uniforms in equal steps: as many are 1 as the odds say."""
    uniform = np.arange(4096) / 4096
    state, chance = np.zeros((1, 4096), np.uint8), np.zeros(4096)
    uncompiled(polynomial_kernels).draw(state, 0, np.full(4096, odds), uniform, chance)
    assert (chance == odds / (1 + odds)).all()
    assert abs(state.mean() - odds / (1 + odds)) <= 1 / 4096 and set(np.unique(state)) <= {0, 1}


@pytest.mark.parametrize("model", [hub(), many_at_once()])
def test_tables_with_many_factors_or_variables(model: FactorGraph) -> None:
    """More factors than are looked up together; more variables than one look at a factor takes in."""
    assert kernel_error(model, "tables") < TOLERANCE


@settings(max_examples=20)
@given(model=pair_models())
def test_kernels_agree_on_pair_models(model: FactorGraph) -> None:
    aim = target(model)
    assume(aim is not None and len(aim.simple.free))
    assert aim is not None
    found = [site_matrices(aim, run) for kernel in KERNELS if (run := runner(aim, kernel)) is not None]
    for other in found[1:]:
        np.testing.assert_allclose(np.array(found[0]), np.array(other), atol=TOLERANCE)


@pytest.mark.parametrize("kernel", ["narrow", "wide"])
@pytest.mark.parametrize("coupling", [0.3, -0.3])
def test_more_than_four_neighbours(kernel: str, coupling: float) -> None:
    """The first four neighbours and the others are different loops in the wide kernel."""
    assert runner(target(mean_field(7, coupling, 0.2)), kernel) is not None  # type: ignore[arg-type]
    assert kernel_error(mean_field(7, coupling, 0.2), kernel) < TOLERANCE


@pytest.mark.parametrize("kernel", ["narrow", "wide"])
def test_two_kinds_of_neighbours(kernel: str) -> None:
    """A hub with two and three neighbours of two kinds: twelve codes, coefficients 1 and 3."""
    kinds = [np.exp([[0.5, -0.2], [0.1, 0.4]]), np.exp([[-0.7, 0.3], [0.9, 0.0]])]
    model = factor_graph([2] * 6, [([0, j], kinds[j % 2]) for j in range(1, 6)] + [([0], [1.0, 2.0])])
    assert runner(target(model), kernel) is not None  # type: ignore[arg-type]
    assert kernel_error(model, kernel) < TOLERANCE


@pytest.mark.parametrize("kernel", KERNELS)
def test_site_without_neighbours(kernel: str) -> None:
    """Its threshold is its own, whatever site was updated before it."""
    bond = np.exp([[0.5, -0.5], [-0.5, 0.5]])
    model = factor_graph([2, 2, 2], [([0], [1.0, 3.0]), ([1], [9.0, 1.0]), ([1, 2], bond)])
    aim = target(model)
    assert aim is not None
    run = runner(aim, kernel)
    assert run is not None
    for order in itertools.permutations(range(3)):
        assert flow_error(aim, sweep_matrix(aim, run, np.array(order))) < TOLERANCE


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("strength", [50.0, 720.0, 1000.0, 1e5])
def test_extreme_weights(kernel: str, strength: float) -> None:
    """Strong factors that contradict each other leave the weak one to decide: nothing underflows."""
    bond = np.array([[0.0, -strength], [-strength, 0.0]])
    wide = np.array([[0.0, -strength, -strength], [-strength, 0.0, 0.0]])
    for third, table in ((2, bond), (3, wide)):
        cards = [2, 2, third]
        model = factor_graph(cards, [([0, 1], bond), ([1, 2], table), ([0, 2], -table), ([0], [0.0, 0.3])], log=True)
        states = np.array(list(itertools.product(*map(range, cards))))
        logs = [sum(model.table(k)[tuple(s[model.variables(k)])] for k in range(4)) for s in states]
        aim = weighed(model, states, np.exp(np.array(logs) - max(logs)))
        if kernel == "polynomial" and strength > 100:
            assert runner(aim, kernel) is None  # what could leave the range of doubles is left to tables
        elif kernel == "tables" or third == 2:
            assert runner(aim, kernel) is not None
            assert kernel_error(aim, kernel) < 1e-10


@pytest.mark.parametrize("kernel", ["tables"])
def test_many_values(kernel: str) -> None:
    rng = np.random.default_rng(8)
    model = factor_graph([9, 6], [([0, 1], rng.exponential(size=(9, 6)) * (rng.random((9, 6)) < 0.8)), ([1], [1] * 6)])
    assert kernel_error(model, kernel) < TOLERANCE
    assert kernel_error(triples(), kernel) < TOLERANCE


# --- the group ---------------------------------------------------------------------------------------------------

SYMMETRIC = {
    "ring": ising_ring(4),
    "ring in a field": ising_ring(4, 0.9, 0.3),
    "antiferromagnet": mean_field(4, -0.5),
    "hard": hard_pairs(),
    "potts": potts_ring(3, 3),
    "observed": potts_ring(4, 2, 1.1).condition({0: 1}),
    "flipped": factor_graph([2, 2], [([0], [1, 2]), ([1], [2, 1]), ([0, 1], [[1, 3], [3, 1]])]),  # one orbit, two rows
}


def unrest(aim: Target, matrix: np.ndarray, element: np.ndarray) -> float:
    """The largest |Q(gx, gy) − Q(x, y)|."""
    number = aim.number
    image = [number[s.tobytes()] for s in moved(aim.states, aim.simple, element).astype(np.uint8)]
    return float(np.abs(matrix[np.ix_(image, image)] - matrix).max())


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scan", ["symmetric", "random"])
def test_scan_commutes_with_group(name: str, kernel: str, scan: str) -> None:
    model = SYMMETRIC[name]
    aim = target(model)
    assert aim is not None
    run = runner(aim, kernel)
    if run is None:
        assert name == "potts" or (name == "hard" and kernel == "polynomial")
        return
    group = symmetries(model)
    assert len(group.group.generators) > 0
    orbit_of = ask(group, (), "orbit", 1).statistics.orbit_of
    assert orbit_of is not None
    orbits = orbit_of[group.model.free].tolist()
    assert len(set(orbits)) == {"hard": 2, "observed": 2}.get(name, 1)
    matrix = scan_matrix(site_matrices(aim, run), scan, orbits)
    for element in dense(group):
        assert unrest(aim, matrix, element) < TOLERANCE


@pytest.mark.parametrize("kernel", KERNELS)
def test_fixed_scan_does_not_commute(kernel: str) -> None:
    model = ising_ring(4)
    aim = target(model)
    assert aim is not None
    run = runner(aim, kernel)
    assert run is not None
    matrix = scan_matrix(site_matrices(aim, run), "fixed")
    assert flow_error(aim, matrix) < TOLERANCE
    assert max(unrest(aim, matrix, element) for element in dense(symmetries(model))) > 1e-3


def test_thresholds_respect_value_flips() -> None:
    """To the last of the 48 bits: P(1) of a state and of the flipped state add up to 1, whatever the order of sums."""
    rng = np.random.default_rng(4)
    kinds = rng.normal(size=(3, 1)) * np.array([[1.0, -1.0, -1.0, 1.0]])
    factors = [([0, j], kinds[j % 3].reshape(2, 2)) for j in range(1, 4)]
    model = factor_graph([2] * 4, factors, log=True)
    aim = target(model)
    assert aim is not None
    from definetti.samplers.graph.lanes import slots_of
    from definetti.symmetry.graph.group import none

    engine = REAL.fields.build(aim.simple, slots_of(aim.simple, none(aim.simple).row_of))
    assert engine is not None
    hub = engine.model.threshold[engine.model.table[0], : engine.model.codes[engine.model.table[0]]]
    assert len(hub) == 8
    np.testing.assert_array_equal(hub + hub[::-1], np.uint64(2**48))  # code c flipped is 7 - c
