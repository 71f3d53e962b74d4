"""Orbital chains leave the distribution alone and have the variance that theory says, exactly; so do proposals by the
symmetries of a more symmetric model."""

from __future__ import annotations

import numpy as np
import pytest
from small_models import all_elements, hard_pairs, ising_ring, mean_field, potts_ring
from small_models import moved as moved_by_hand

import definetti as dft
from definetti import groups
from definetti.errors import ModelError
from definetti.lumping import estimator_errors
from definetti.lumping.estimator_errors import Chain
from definetti.lumping.quotient import QuotientChain
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.graph.orbital import accepts, build, moved, permute, rounded, values_of
from definetti.samplers.logic.orbital import Renamings
from definetti.symmetry.graph.group import none
from definetti.symmetry.logic.renaming import renaming

TOLERANCE = 1e-12
MODELS = {"ring": ising_ring(4), "field": mean_field(4, -0.6, 0.2), "hard": hard_pairs(), "potts": potts_ring(3, 3)}


def dense(matrix) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def averaging(found: QuotientChain) -> np.ndarray:
    """Π: a uniformly random element of the group takes a state to any state of its orbit, all equally likely."""
    same = found.partition.orbit_of[:, None] == found.partition.orbit_of
    return same / found.partition.sizes[found.partition.orbit_of][:, None]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scan", ["random", "symmetric"])
def test_the_orbital_chain_leaves_the_distribution_alone_and_its_variance_is_known(name: str, scan: str) -> None:
    """σ²(orbital, standard) = σ²(plain, orbit) + Var f − Var Πf, and orbital + orbit ≡ plain + orbit."""
    found = dft.quotient(MODELS[name], scan=scan)
    project, pi, f = averaging(found), found.chain.stationary, found.indicators
    orbital = Chain(dense(found.chain.matrix) @ project, pi, False)
    np.testing.assert_allclose(pi @ orbital.matrix, pi, atol=TOLERANCE)
    mean = project @ f
    plain = Chain(dense(found.chain.matrix), pi, False)
    left = estimator_errors.asymptotic_variance(orbital, f)
    right = estimator_errors.asymptotic_variance(plain, mean)
    drawn = estimator_errors.draw_variance(plain, f) - estimator_errors.draw_variance(plain, mean)
    np.testing.assert_allclose(left, right + drawn, atol=1e-10)
    np.testing.assert_allclose(estimator_errors.asymptotic_variance(orbital, mean), right, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_drawn_elements_are_uniform(name: str) -> None:
    """Small groups are listed: every element is drawn by as many numbers as any other."""
    group = dft.symmetries(MODELS[name])
    listed = all_elements(group)
    drawn = groups.Sampler(group.group)
    rng = np.random.default_rng(1)
    seen = {tuple(drawn.draw(rng).tolist()) for _ in range(60 * len(listed))}
    assert seen == {tuple(element) for element in listed.tolist()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chains", [3, 70])
def test_blocks_are_moved_by_the_element(name: str, chains: int) -> None:
    """Bits of words, bytes of lanes and bytes of a few chains alike."""
    group = dft.symmetries(MODELS[name])
    model = group.model
    found = dft.quotient(MODELS[name]).space.states.astype(np.int64)
    states = found[np.arange(chains) % len(found)]
    for sampler in (dft.Gibbs(), dft.Blocks()):
        engine = sampler.engine(model, slots_of(model, none(model).row_of))
        if chains > engine.width:
            continue
        for element in all_elements(group)[:12]:
            block = engine.block(states, [np.random.SeedSequence(0)], False)
            permute(block, model, element)
            expected = moved_by_hand(states, model, element)
            np.testing.assert_array_equal(values_of(block, model.n), expected)
            np.testing.assert_array_equal(moved(states, model, element), expected)


# --- Metropolis ------------------------------------------------------------------------------------------------------


def uneven() -> dft.FactorGraph:
    """A ring that would be symmetric, were its fields not a little different."""
    bond = [[0.5, -0.5], [-0.5, 0.5]]
    pairs = [([i, (i + 1) % 4], bond) for i in range(4)]
    return dft.factor_graph([2] * 4, pairs + [([i], [0.0, 0.3 * i]) for i in range(4)], log=True)


@pytest.mark.parametrize("tolerance", [np.inf, 1.0])
def test_proposals_by_nearly_symmetries_leave_the_true_distribution_alone(tolerance: float) -> None:
    model = uneven()
    assert dft.symmetries(model).order == 1
    found = dft.quotient(model)
    simple, states, pi = found.space.model, found.space.states.astype(np.int64), found.chain.stationary
    relaxed = dft.symmetries(rounded(simple, tolerance))
    assert relaxed.order is not None and relaxed.order >= 2
    assert int(relaxed.model.literal_start[-1]) == int(simple.literal_start[-1])
    engine = build(simple, dft.Gibbs().engine(simple, slots_of(simple, none(simple).row_of)), "auto", tolerance)
    proposals = [(0.5 / len(engine.generators), g) for g in engine.generators]
    proposals += [(0.5 / relaxed.order, g) for g in all_elements(relaxed)]
    step = np.zeros((len(pi), len(pi)))
    for share, element in proposals:
        then = moved(states, simple, element)
        target = found.space.place[then @ found.space.stride]
        chance = np.minimum(1.0, pi[target] / pi)
        below, above = np.nextafter(chance, -1.0), np.minimum(chance * (1 + 1e-9), 1.0)
        assert accepts(simple, states, then, below * (1 - 1e-9)).all()
        assert not accepts(simple, states, then, above)[chance < 1].any()
        step[np.arange(len(pi)), target] += share * chance
        step[np.arange(len(pi)), np.arange(len(pi))] += share * (1.0 - chance)
    np.testing.assert_allclose(step.sum(axis=1), 1.0, atol=TOLERANCE)
    np.testing.assert_allclose(pi @ step, pi, atol=TOLERANCE)


# --- Markov logic ----------------------------------------------------------------------------------------------------


def test_renamings_move_tuples_and_keep_the_evidence() -> None:
    model = dft.markov_logic("P(t)\nR(t,t)\n0.5 P(x) ^ R(x,y) => P(y)\n1.3 P(A)", domain={"t": 4})
    group = renaming(model, simplify=False)
    moves = Renamings(group.constants, group, 3)
    rng = np.random.default_rng(0)
    atoms = {"P": rng.random(4) < 0.5, "R": rng.random((4, 4)) < 0.5}
    seen = set()
    for sweep in range(60):
        image = moves.draw(0, sweep)
        seen.add(tuple(image.tolist()))
        assert image[0] == 0  # the named constant stays
        other = {name: moves.apply(image, name, tensor) for name, tensor in atoms.items()}
        for x in range(4):
            assert other["P"][image[x]] == atoms["P"][x]
            assert all(other["R"][image[x], image[y]] == atoms["R"][x, y] for y in range(4))
    assert len(seen) == 6
    assert (moves.draw(1, 5) == moves.draw(1, 5)).all()


def test_what_cannot_be_wrapped_is_refused() -> None:
    with pytest.raises(ModelError, match="independent"):
        dft.Orbital(dft.LiftedSampler())
    with pytest.raises(ModelError, match="wraps a sampler"):
        dft.Orbital(dft.Orbital())
    with pytest.raises(ModelError, match="choose one of auto, literals, variables"):
        dft.Orbital(symmetries="renaming")
    with pytest.raises(ModelError, match="must be positive"):
        dft.OrbitalMetropolis(tolerance=0.0)
