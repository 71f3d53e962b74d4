"""Orbital chains leave the distribution alone and have the variance that theory says, exactly; so do proposals by the
symmetries of a more symmetric model."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from relational_worlds import log_density
from small_models import all_elements, hard_pairs, ising_ring, mean_field, potts_ring
from small_models import moved as moved_by_hand

import definetti as dft
from definetti import groups
from definetti.errors import ModelError
from definetti.inference.logic.question import logic_question
from definetti.lumping import estimator_errors
from definetti.lumping.estimator_errors import Chain
from definetti.lumping.quotient import QuotientChain
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.graph.orbital import accepts, build, moved, permute, rounded, values_of
from definetti.samplers.logic.orbital import Proposals, Renamings
from definetti.samplers.protocol import Plan
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
    moves = Renamings(renaming(model, simplify=False), 3)
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


# `!` blocks, hard formulas, evidence on both sides of a swap, a constant that a formula of two atoms names
KNOWN = {
    "evidence": ("P(t)\nR(t,t)\n0.7 P(x) ^ R(x,y) => P(y)\n-0.3 R(x,y)", {"t": 2}, {"P(T1)": True, "R(T2,T1)": False}),
    "named": ("P(t)\nQ(t)\n1.3 P(A)\n0.4 Q(x) ^ P(x)\n0.9 P(x) ^ P(y)", {"t": 3}, {"Q(T2)": True}),
    "blocks": ("L(t,c!)\nQ(t)\n0.8 L(x,C1) ^ Q(x)\n0.5 L(x,c) ^ L(y,c)", {"t": 3, "c": 3}, {"L(T1,C2)": False}),
    "hard": ("P(t)\nR(t,t)\nR(x,y) <=> R(y,x).\n0.7 P(x) ^ R(x,y) => P(y)", {"t": 2}, {"P(T1)": True}),
}


def worlds(model: dft.MarkovLogic) -> list[dict[str, np.ndarray]]:
    """Every assignment of the atoms that agrees with the evidence, possible or not."""
    codes = {name: model.knowledge.codes(name) for name in model.predicates}
    free = [(name, at) for name, some in codes.items() for at in zip(*np.nonzero(some == 2), strict=True)]
    found = []
    for values in itertools.product((False, True), repeat=len(free)):
        world = {name: some == 1 for name, some in codes.items()}
        for (name, at), value in zip(free, values, strict=True):
            world[name][at] = value
        found.append(world)
    return found


@pytest.mark.parametrize("tolerance", [np.inf, 0.5])
@pytest.mark.parametrize("name", KNOWN)
def test_proposed_renamings_leave_the_true_distribution_alone(name: str, tolerance: float) -> None:
    """Every swap and every renaming of the more symmetric theory, with the chances that the code gives them."""
    text, domain, evidence = KNOWN[name]
    model = dft.markov_logic(text, domain=domain).condition(evidence)
    moves = Proposals(renaming(model, simplify=False), 1, 3, tolerance)
    space = [world for world in worlds(model) if moves.legal(world)]
    number = {tuple(np.concatenate([a.ravel() for a in w.values()]).tolist()): s for s, w in enumerate(space)}
    logs = np.array([log_density(model, dict(flat(world))) for world in space])
    pi = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    swaps = [(c, pair) for c in moves.classes for pair in itertools.combinations(c.tolist(), 2)]
    proposals = []
    for members, (a, b) in swaps:
        image = np.arange(moves.count)
        image[[a, b]] = b, a
        proposals.append((0.5 / len(moves.classes) / math.comb(len(members), 2), image))
    within = [[np.array(p) for p in itertools.permutations(c.tolist())] for c in moves.classes]
    for choice in itertools.product(*within):
        image = np.arange(moves.count)
        for members, images in zip(moves.classes, choice, strict=True):
            image[members] = images
        proposals.append(((0.5 if swaps else 1.0) / math.prod(len(some) for some in within), image))
    step = np.zeros((len(space), len(space)))
    for share, image in proposals:
        for s, world in enumerate(space):
            then = {name: moves.apply(image, name, tensor) for name, tensor in world.items()}
            target = number.get(tuple(np.concatenate([a.ravel() for a in then.values()]).tolist()), s)
            chance = min(1.0, pi[target] / pi[s]) if pi[s] else 0.0
            step[s, target] += share * chance
            step[s, s] += share * (1.0 - chance)
    np.testing.assert_allclose(step.sum(axis=1), 1.0, atol=TOLERANCE)
    np.testing.assert_allclose(pi @ step, pi, atol=TOLERANCE)
    flow = pi[:, None] * step
    np.testing.assert_allclose(flow, flow.T, atol=TOLERANCE)
    moving = np.abs(step - np.eye(len(space))).max() > 0.01
    assert moving == (tolerance == np.inf or name == "blocks"), "proposals that go nowhere test nothing"


@pytest.mark.parametrize("sampler", [dft.Gibbs(), dft.MCSat(), dft.Tempering(levels=(0.0, 0.5, 1.0))])
@pytest.mark.parametrize("name", ["evidence", "blocks", "hard"])
def test_moves_are_accepted_by_the_engines_own_density(name: str, sampler: Any) -> None:
    """What the runs hand to the proposals is the density of the theory, up to a constant; moves are put into states."""
    text, domain, evidence = KNOWN[name]
    model = dft.markov_logic(text, domain=domain).condition(evidence)
    if sampler.name == "tempering" and name == "hard":
        return
    seen: list[tuple[float, float]] = []

    class Reverses:
        """Every state moves to that with truth values of the free atoms of P or Q negated."""

        def moved(self, chain, sweep, atoms, density):  # type: ignore[no-untyped-def]
            target = "Q" if "Q" in atoms else "P"
            free = model.knowledge.codes(target) == 2
            then = {**atoms, target: np.where(free, ~atoms[target], atoms[target])}
            for some in (atoms, then):
                seen.append((density(some), log_density(model, dict(flat(some)))))
            return then

        def arrays(self):  # type: ignore[no-untyped-def]
            return {}

        def report(self):  # type: ignore[no-untyped-def]
            return {"turned": len(seen)}

    group = dft.symmetries(model)
    question = logic_question(group, (), "orbit")
    run = question.sampling(sampler, Plan(2, 3, 5, 7, 1, conditionals=False), "orbit")
    run.renamed = Reverses()
    states = run.snapshots(1)
    first = [next(states)[0] for _ in range(4)]
    assert all(state.shape == (2, group.model.atom_count) for state in first)
    here, by_hand = np.array(seen).T
    possible = np.isfinite(by_hand)
    np.testing.assert_array_equal(np.isfinite(here), possible)
    np.testing.assert_allclose(np.ptp((here - by_hand)[possible]), 0.0, atol=1e-9)
    assert run.report()["turned"] == len(seen)


def flat(world: Any) -> Any:
    return (((name, *at), bool(value)) for name, tensor in world.items() for at, value in np.ndenumerate(tensor))


def test_what_cannot_be_wrapped_is_refused() -> None:
    with pytest.raises(ModelError, match="independent"):
        dft.Orbital(dft.LiftedSampler())
    with pytest.raises(ModelError, match="independent"):
        dft.OrbitalMetropolis(dft.LiftedSampler())
    with pytest.raises(ModelError, match="'orbital:lifted' is not known"):
        dft.sample(ising_ring(4), sampler="orbital:lifted")
    with pytest.raises(ModelError, match="did you mean orbital:mcsat"):
        dft.sample(ising_ring(4), sampler="orbital:mcsatt")
    with pytest.raises(ModelError, match="wraps a sampler"):
        dft.Orbital(dft.Orbital())
    with pytest.raises(ModelError, match="choose one of auto, literals, variables"):
        dft.Orbital(symmetries="renaming")
    with pytest.raises(ModelError, match="must be positive"):
        dft.OrbitalMetropolis(tolerance=0.0)


@pytest.mark.parametrize("sampler", ["orbital", "orbital:mcsat", "orbital-metropolis"])
def test_a_theory_without_constants_has_nothing_to_rename(sampler: str) -> None:
    """Predicates without arguments only: the lists of constants of no sort could not be joined (ValueError)."""
    model = dft.markov_logic("H()\nG()\n0.7 H() ^ G()\n-1 H()")
    found, truth = dft.marginals(model, sampler=sampler, sweeps=500, seed=1), dft.exact(model)
    assert found.trusted
    for name in ("H", "G"):
        assert abs(found[name].probability - truth[name].probability) < 5 * found[name].mcse
    assert dft.quotient(model).lumpable
