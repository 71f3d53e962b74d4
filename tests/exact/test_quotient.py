"""Quotient chains: golden mixing times, lumpability by scan, and the theorems, all exact."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path

import numpy as np
import pytest
from hard_models import DIFFER, SAME
from small_models import hard_pairs, hub, ising_ring, mean_field, potts_ring, triples
from uncompiled import block_branches, cluster_branches, uncompiled

import definetti as dft
from definetti.errors import ModelError, TooLarge
from definetti.lumping import estimator_errors, logic_branches, mixing, moves, spectrum
from definetti.lumping.estimator_errors import Chain
from definetti.lumping.partition import commuting_error
from definetti.lumping.state_space import state_space
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels.graph import block_gibbs as block_kernels
from definetti.samplers.kernels.graph import swendsen_wang as cluster_kernels
from definetti.samplers.kernels.logic import drawing
from definetti.symmetry.graph.group import none

EXAMPLES = Path(__file__).parents[2] / "examples"
TOLERANCE = 1e-12


def dense(matrix) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


# --- golden numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "symmetries", "orbits", "tau", "small"),
    [
        (mean_field(8, -1.0), "variables", 9, 108, 10),
        (mean_field(8, -1.0), "literals", 5, 108, 9),
        (ising_ring(8, 1.0), "variables", 30, 887, 887),
        (ising_ring(8, 1.0), "literals", 18, 887, 163),
        (ising_ring(4, 1.0), "literals", 4, 436, 28),  # ours: below a tenth
    ],
)
def test_golden_mixing_times(model: dft.FactorGraph, symmetries: str, orbits: int, tau: int, small: int) -> None:
    found = dft.quotient(model, symmetries=symmetries)
    assert (found.orbits, found.tau, found.quotient_tau) == (orbits, tau, small)
    assert found.lumpability.ordinary < TOLERANCE and found.lumpability.exact < TOLERANCE
    assert found.reversible and found.quotient.reversible
    low, high = found.tau_bounds or (0.0, 0.0)
    assert low <= tau <= high


def test_friends_and_smokers() -> None:
    found = dft.quotient(dft.read(EXAMPLES / "smokers.mln", domain={"person": 2}))
    assert (found.states, found.orbits, found.tau, found.quotient_tau) == (256, 136, 54, 54)
    truth = {"Smokes(Person1)": 0.0672195515, "Cancer(Person1)": 0.1058374928, "Friends(Person1,Person2)": 0.0095372574}
    for name, probability in truth.items():
        assert abs(found.queries[name].probability - probability) < 1e-9
    free = dft.quotient(dft.read(EXAMPLES / "smokers.mln", domain={"person": 2}), symmetries="renaming")
    assert free.orbits == 108  # pendant and isolated atoms move freely


def test_the_papers_example_has_16_states_and_10_orbits() -> None:
    found = dft.quotient(dft.read(EXAMPLES / "two-smokers.mln"), ["smokes(A)", "smokes(A) ^ !cancer(B)"])
    assert (found.states, found.orbits) == (16, 10)
    assert found.verified is not None and found.verified < TOLERANCE
    (single, joint) = found.queries.values()
    assert single.strict and joint.strict
    weights = np.exp([1.4 + 2.3 + 1.5, 1.4 + 1.5, 2.3, 1.5])  # of neither, cancer alone, smoking alone, both
    assert abs(single.probability - weights[2:].sum() / weights.sum()) < TOLERANCE


# --- matrices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [ising_ring(5, 0.7, 0.2), hard_pairs(), triples(), potts_ring(3, 3)])
@pytest.mark.parametrize("scan", ["random", "fixed"])
def test_quick_matrices_are_those_of_the_kernels(model: dft.FactorGraph, scan: str, monkeypatch) -> None:
    monkeypatch.setattr("definetti.lumping.quotient.VERIFIED", 200)
    found = dft.quotient(model, scan=scan)
    assert found.verified is not None and found.verified < TOLERANCE
    step = dense(found.chain.matrix)
    np.testing.assert_allclose(step.sum(axis=1), 1.0, atol=TOLERANCE)
    np.testing.assert_allclose(found.chain.stationary @ step, found.chain.stationary, atol=TOLERANCE)


def test_many_factors_at_a_site() -> None:
    assert dft.quotient(hub(), symmetries="none").lumpability.ordinary == 0.0


THEORIES = {
    "smokers": ("S(t)\nC(t)\nF(t,t)\n1.4 !S(x)\n1.5 S(x) => C(x)\n1.1 F(x,y) ^ S(x) => S(y)", {"t": 1}, {}),
    "evidence": ("P(t)\nR(t,t)\n0.7 P(x) ^ R(x,y) => P(y)\n-0.3 R(x,y)", {"t": 2}, {"P(T1)": True, "R(T2,T1)": False}),
    "blocks": ("L(t,c!)\nQ(t)\n0.8 L(x,C1) ^ Q(x)\n0.5 L(x,c) ^ L(y,c)", {"t": 2, "c": 3}, {"L(T1,C2)": False}),
    "tied": ("P(t)\nR(t,t)\nR(x,y) <=> R(y,x).\nR(x,y) ^ P(x) => P(y).\n0.4 P(x)\n0.6 R(x,y)", {"t": 2}, {}),
    "opposite": ("P(t)\nQ(t)\nP(x) <=> !Q(x).\n0.4 P(x) ^ P(y)", {"t": 3}, {}),
    "no arguments": ("P(t)\nQ\n0.6 P(x) => Q\n-0.2 P(x)", {"t": 3}, {}),
}


def theory(name: str) -> dft.MarkovLogic:
    text, domain, evidence = THEORIES[name]
    return dft.markov_logic(text, domain=domain).condition(evidence)


@pytest.mark.parametrize("name", THEORIES)
@pytest.mark.parametrize("scan", ["random", "fixed"])
def test_matrices_of_markov_logic_are_those_of_the_kernel_that_never_grounds(name: str, scan: str) -> None:
    """The compiled kernel's conditionals, its own text with every branch followed, and the ground model's moves where
    the sites are the same."""
    found = dft.quotient(theory(name), scan=scan)
    assert found.verified is not None and found.verified < TOLERANCE
    pi, step = found.chain.stationary, dense(found.chain.matrix)
    np.testing.assert_allclose(step.sum(axis=1), 1.0, atol=TOLERANCE)
    np.testing.assert_allclose(pi @ step, pi, atol=TOLERANCE)
    assert found.gap > 0  # tied atoms move together
    if scan == "random" and name not in ("tied", "opposite"):
        ground = moves.random_scan(found.space, moves.graph_site_moves(found.space))
        np.testing.assert_allclose(step, dense(ground), atol=TOLERANCE)


def test_a_wrong_kernel_of_markov_logic_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real, right = logic_branches.plain_kernel, "e = math.exp(fields[0, k] - top)"

    def wrong(text: str):
        soften = inspect.getsource(drawing.soften.py_func)
        assert right in soften
        changed = soften.replace(right, right.replace("fields", "0.9 * fields"))
        return real(f"{text}\n\n{changed}")  # the later definition counts

    monkeypatch.setattr(logic_branches, "plain_kernel", wrong)
    with pytest.raises(AssertionError, match="differs by .* from the kernel's own source"):
        dft.quotient(theory("blocks"))


def test_clusters_by_sets_of_bonds_are_those_of_the_kernel() -> None:
    model = ising_ring(4, 0.6, 0.3)
    found = dft.quotient(model, sampler="swendsen-wang")
    source, out = uncompiled(cluster_kernels), np.zeros((16, 16))
    for s, state in enumerate(found.space.states.astype(np.int64)):
        for chance, reached, _ in cluster_branches(source, found.space.model, state):
            out[s, found.space.place[reached @ found.space.stride]] += chance
    np.testing.assert_allclose(out, found.chain.matrix, atol=TOLERANCE)
    assert found.lumpable and found.transitions.step == "sweep"


def test_blocks_are_those_of_the_kernel() -> None:
    soft = [[1.0, 2.0], [3.0, 1.5]]
    model = dft.factor_graph([2] * 4, [([0, 1], DIFFER), ([2, 3], SAME), ([1, 2], soft)])
    found = dft.quotient(model, sampler=dft.Blocks(scan="fixed"))
    graph = found.space.model
    engine = dft.Blocks().engine(graph, slots_of(graph, none(graph).row_of))
    source, out = uncompiled(block_kernels), np.zeros((len(found.space), len(found.space)))
    for s, state in enumerate(found.space.states.astype(np.int64)):
        for chance, reached, _ in block_branches(source, engine, state, graph.free):
            out[s, found.space.place[reached @ found.space.stride]] += chance
    np.testing.assert_allclose(out, found.chain.matrix, atol=TOLERANCE)
    alone = dft.quotient(model)  # single moves lead nowhere
    assert alone.gap == 0.0 and alone.tau is None and {n.kind for n in alone.notices} == {"divided"}


# --- scans -------------------------------------------------------------------------------------------------------

SYMMETRIC = {
    "ring": ising_ring(4),
    "antiferromagnet": mean_field(5, -0.5),
    "hard": hard_pairs(),
    "potts": potts_ring(3, 3),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("scan", ["random", "symmetric"])
def test_commuting_scans_can_be_lumped(name: str, scan: str) -> None:
    found = dft.quotient(SYMMETRIC[name], scan=scan)
    assert found.lumpability.ordinary < TOLERANCE and found.lumpability.exact < TOLERANCE
    assert found.lumpability.stationary < TOLERANCE
    assert commuting_error(found.chain.matrix, found.partition.images) < TOLERANCE
    small, mass = dense(found.quotient.matrix), found.quotient.stationary
    np.testing.assert_allclose(mass @ small, mass, atol=TOLERANCE)
    some = np.linalg.eigvals(small)
    every = np.linalg.eigvals(dense(found.chain.matrix))
    assert max(np.abs(every - value).min() for value in some) < 1e-7  # a subset of the chain's


@pytest.mark.parametrize(("name", "least"), [("ring", 0.3), ("antiferromagnet", 0.09), ("hard", 0.1), ("potts", 0.06)])
def test_a_fixed_scan_cannot(name: str, least: float) -> None:
    found = dft.quotient(SYMMETRIC[name], scan="fixed")
    assert found.lumpability.ordinary > least and not found.lumpable
    assert [n.kind for n in found.notices] == ["not-lumpable"]
    assert len(found.starts) == found.states  # an orbit's states do not mix alike


def test_a_raster_over_shuffled_constants_can_be_lumped_and_a_fixed_one_cannot() -> None:
    model = dft.read(EXAMPLES / "smokers.mln", domain={"person": 2})
    assert dft.quotient(model, scan="symmetric").lumpability.ordinary < TOLERANCE
    assert dft.quotient(model, scan="fixed").lumpability.ordinary > 0.2


# --- the theorems --------------------------------------------------------------------------------------------------


def symmetric_model(seed: int) -> dft.FactorGraph:
    """Random tables on all pairs, equal for all pairs of a part, so that the variables of a part may be permuted."""
    rng = np.random.default_rng(seed)
    cards = [2] * int(rng.integers(3, 6)) if seed % 4 else [3] * 3
    table = np.exp(0.8 * rng.normal(size=(cards[0], cards[0])))
    table = table + table.T
    own = np.exp(rng.normal(size=cards[0]))
    ring = bool(seed % 2) and len(cards) > 3
    pairs = itertools.combinations(range(len(cards)), 2)
    edges = [(i, (i + 1) % len(cards)) for i in range(len(cards))] if ring else list(pairs)
    return dft.factor_graph(cards, [*((list(e), table) for e in edges), *(([i], own) for i in range(len(cards)))])


@pytest.mark.parametrize("seed", range(20))
def test_bias_of_the_orbit_estimator_after_the_quotients_mixing_time(seed: int) -> None:
    """Theorem 3, and τ′ ≤ τ."""
    found = dft.quotient(symmetric_model(seed), epsilon=0.02)
    assert found.orbits < found.states and found.lumpable
    assert found.tau is not None and found.quotient_tau is not None and found.quotient_tau <= found.tau
    bias = estimator_errors.worst_bias(found.quotient, found.orbit_means, [found.quotient_tau])
    assert bias.max() <= 0.02
    curve = found.curve
    assert (curve.orbit <= curve.bound[:, None] + TOLERANCE).all()
    assert (np.diff(curve.bound) < TOLERANCE).all()
    for errors in found.queries.values():
        assert errors.variance[1] <= errors.variance[0] + TOLERANCE
        assert errors.strict == (errors.variance[1] < errors.variance[0] - TOLERANCE)
        assert errors.chain_variance is not None and errors.chain_variance[1] <= errors.chain_variance[0] + TOLERANCE
        assert errors.mse[1] <= errors.mse[0] + TOLERANCE


def test_mean_squared_errors_by_summing_over_paths() -> None:
    found = dft.quotient(ising_ring(3, 0.8, 0.3), "X0=1 ^ X1=1", draws=3)
    step, pi, f = dense(found.chain.matrix), found.chain.stationary, found.indicators[:, 0]
    theta = pi @ f
    late = np.linalg.matrix_power(step, found.burn_in)
    by_start = np.zeros(len(pi))
    for path in itertools.product(range(len(pi)), repeat=3):
        chance = step[:, path[0]] * step[path[0], path[1]] * step[path[1], path[2]]
        by_start += chance * (f[list(path)].mean() - theta) ** 2
    found_errors = found.queries["X0=1 ^ X1=1"]
    assert abs(found_errors.mse[0] - pi @ by_start) < TOLERANCE
    assert abs(found_errors.worst_mse[0] - (late @ by_start).max()) < TOLERANCE


def test_asymptotic_variance_is_the_sum_of_covariances(monkeypatch) -> None:
    found = dft.quotient(hard_pairs())
    f = found.chain.centred(found.indicators)
    total, later = found.chain.stationary @ (f * f), f
    for _ in range(2000):
        later = found.chain.matrix @ later
        total = total + 2 * found.chain.stationary @ (f * later)
    direct = estimator_errors.asymptotic_variance(found.chain, found.indicators)
    np.testing.assert_allclose(direct, total, rtol=1e-10)
    monkeypatch.setattr(estimator_errors, "MOST_DENSE", 1)
    np.testing.assert_allclose(estimator_errors.asymptotic_variance(found.chain, found.indicators), direct, rtol=1e-8)


def test_gaps_and_times_by_other_ways(monkeypatch) -> None:
    found = dft.quotient(mean_field(6, -0.7, 0.1), symmetries="variables")
    chain, every = found.chain, np.arange(found.states)
    stepped = mixing._stepped(chain.matrix, chain.stationary, every, 0.01)
    assert stepped == mixing._doubled(chain.matrix, chain.stationary, every, 0.01) == found.tau
    assert stepped == mixing._doubled(dense(chain.matrix), chain.stationary, every, 0.01)
    times = [0, 1, found.tau - 1, found.tau]
    distance = mixing.distances(chain.matrix, chain.stationary, every, times)
    assert distance is not None and distance[2] > 0.01 >= distance[3]
    monkeypatch.setattr(spectrum, "MOST_DENSE", 1)
    assert abs(spectrum.spectral_gap(chain.matrix, chain.stationary, True) - found.gap) < 1e-8
    assert abs(spectrum.spectral_gap(dense(chain.matrix), chain.stationary, False) - found.gap) < 1e-8


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["mcsat", "tempering", "lifted", "auto", "orbital"])
def test_samplers_whose_branches_cannot_be_listed_are_refused(sampler: str) -> None:
    with pytest.raises(ModelError, match="no transition matrix: .*use gibbs, blocks or swendsen-wang"):
        dft.quotient(ising_ring(4), sampler=sampler)


def test_large_models_are_refused_before_memory_is_taken() -> None:
    for scan, n in (("random", 17), ("fixed", 13), ("symmetric", 13)):
        with pytest.raises(TooLarge, match="states"):
            dft.quotient(ising_ring(n), scan=scan)
    with pytest.raises(TooLarge, match="sites of a symmetric sweep is 9"):
        dft.quotient(ising_ring(9), scan="symmetric")
    with pytest.raises(TooLarge, match="needs more than 10\\^300 states|about 10\\^"):
        dft.quotient(ising_ring(2000))
    with pytest.raises(TooLarge, match="the list of states"):
        dft.quotient(dft.read(EXAMPLES / "smokers.mln", domain={"person": 100}))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -1.0])
def test_epsilon_is_a_distance(epsilon: float) -> None:
    with pytest.raises(ModelError, match="between 0 and 1"):
        dft.quotient(ising_ring(4), epsilon=epsilon)


@pytest.mark.slow
def test_speed(cpu_limit) -> None:
    """Matrix, partition, lumpability and gaps; mixing times at 2^12 states."""
    with cpu_limit(3):
        space = state_space(dft.symmetries(ising_ring(12, 0.5)).model, 2**16)
        moves.random_scan(space, moves.graph_site_moves(space))
    with cpu_limit(60):
        large = dft.quotient(ising_ring(16, 0.5))
        assert large.states == 2**16 and large.tau is None and large.lumpable
        assert large.tau_bounds is not None and large.quotient_tau_bounds is not None
    with cpu_limit(60):
        assert dft.quotient(ising_ring(12, 0.5)).tau == 222


def test_a_chain_is_a_value() -> None:
    found = dft.quotient(potts_ring(3, 3), "X0")
    assert list(found.queries) == ["X0=0", "X0=1", "X0=2"]
    assert isinstance(found.chain, Chain) and "27 states" in repr(found)
