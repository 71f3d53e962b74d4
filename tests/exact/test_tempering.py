"""Parallel tempering: exchanges leave the product of the levels alone, level by level kernels are those tested
elsewhere.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hard_models import NOT_BOTH, SAME, one_of, parity
from random_models import brute_force
from uncompiled import uncompiled

import definetti as dft
from definetti.constraints.graph.connectivity import regions, single_moves_connect
from definetti.constraints.graph.contract import contract
from definetti.errors import ModelError
from definetti.inference.graph.prepare import choose
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.graph.tempering import TemperingBlock, _held, build, ladder, softened, word_parts
from definetti.samplers.kernels.graph import tempering as kernels
from definetti.samplers.ladder import penalty
from definetti.samplers.tempering import Tempering
from definetti.symmetry.graph.group import none

TOLERANCE = 1e-12
MODELS = {
    "tie": factor_graph([2, 2], [([0, 1], SAME), ([0], [1.0, 2.0])]),
    "not both": factor_graph([2, 2], [([0, 1], NOT_BOTH), ([0], [1.0, 3.0])]),
    "three values": factor_graph([3, 2], [([0, 1], [[1.0, 0.0], [2.0, 3.0], [0.0, 5.0]])]),
    "soft": factor_graph([2, 2], [([0, 1], [[1.0, 4.0], [2.0, 0.5]])]),
}
LEVELS = (0.0, 0.6, 1.0)


def densities(model: FactorGraph) -> tuple[np.ndarray, list[np.ndarray]]:
    """All states, and the normalised density on every level."""
    states, _ = brute_force(model)
    out = []
    for level in LEVELS:
        weights = brute_force(softened(model, level))[1]
        out.append(weights / weights.sum())
    return states, out


def exchange_error(model: FactorGraph, parity_: int, *changes: tuple[str, str]) -> float:
    """max |πP - π| of one round of exchanges on the product of the levels, all branches followed."""
    model = simplify(model)
    states, level_density = densities(model)
    source = uncompiled(kernels, *changes)
    engine = build(model, Gibbs(), slots_of(model, none(model).row_of), LEVELS)
    flow: dict[tuple[int, ...], float] = {}
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    for joint in itertools.product(range(len(states)), repeat=len(LEVELS)):
        chance = float(np.prod([level_density[k][s] for k, s in enumerate(joint)]))
        if not chance:
            continue
        for outcome in (True, False):
            weight = [1.0]

            def happens(p: float, stream: object, outcome: bool = outcome, weight: list[float] = weight) -> bool:
                weight[0] *= p if outcome else 1.0 - p
                return outcome

            source.happens = happens
            block = TemperingBlock(
                engine, states[joint[-1]][None].astype(np.uint8), np.random.SeedSequence(0), False, True
            )
            block._kernels, block._parity = source, parity_
            for level, s in enumerate(joint):
                _held(block._blocks[level])[: model.n, 0] = states[s]
            block._exchange()
            after = [part.state[: model.n, 0] & np.uint8(part.mask) for part in block._blocks]
            key = tuple(number[tuple(s.tolist())] for s in after)
            flow[key] = flow.get(key, 0.0) + chance * weight[0]
    return max(
        abs(flow.get(joint, 0.0) - float(np.prod([level_density[k][s] for k, s in enumerate(joint)])))
        for joint in itertools.product(range(len(states)), repeat=len(LEVELS))
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("which", [0, 1])
def test_exchanges_leave_the_levels_alone(name: str, which: int) -> None:
    assert exchange_error(MODELS[name], which) < TOLERANCE


@pytest.mark.parametrize(
    "change",
    [
        ("return 1.0 if swap >= stay else np.exp(swap - stay)", "return 1.0"),
        ("level * soft - (penalty * broken if broken > 0 else 0.0)", "level * soft"),
        ("stay = level_density(levels[k], penalties[k]", "stay = level_density(levels[k + 1], penalties[k + 1]"),
    ],
)
def test_planted_bugs_are_seen(change: tuple[str, str]) -> None:
    with np.errstate(invalid="ignore"):
        assert max(exchange_error(MODELS["tie"], 0, change), exchange_error(MODELS["three values"], 1, change)) > 1e-3


def pairs_of_bits(n: int = 9) -> FactorGraph:
    """A ring of binary variables, with pairs and fields of two kinds, not symmetric."""
    rng = np.random.default_rng(1)
    kinds, fields = np.exp(rng.normal(size=(2, 2, 2))), np.exp(rng.normal(size=(2, 2)))
    factors = [([i, (i + 1) % n], kinds[i % 2]) for i in range(n)]
    return simplify(factor_graph([2] * n, [*factors, *(([i], fields[i % 3 % 2]) for i in range(n))]))


def packed(states: np.ndarray) -> np.ndarray:
    """uint64[n + 1, words] from uint8[n, lanes]."""
    lanes = -(-states.shape[1] // 64) * 64
    wide = np.zeros((len(states) + 1, lanes), np.uint8)
    wide[: len(states), : states.shape[1]] = states
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize("python", [True, False])
def test_energies_from_bits_are_those_from_bytes(python: bool) -> None:
    model, lanes = pairs_of_bits(), 70
    parts = word_parts(model)
    states = np.random.default_rng(2).integers(0, 2, (model.n, lanes)).astype(np.uint8)
    expected = model.log_density(states.T.astype(np.int64)) - model.log_constant
    planes = np.full((len(parts.left).bit_length(), kernels.ENTRIES * len(parts.gain), 2), 7, np.uint64)
    soft = np.full(lanes, 3.0)
    source = uncompiled(kernels) if python else kernels
    with np.errstate(over="ignore"):
        source.weigh_words(parts, packed(states), planes, lanes, soft)
    np.testing.assert_allclose(soft, expected, atol=1e-9)


@pytest.mark.parametrize("python", [True, False])
def test_bits_are_exchanged_as_bytes_are(python: bool) -> None:
    rng, lanes, n = np.random.default_rng(4), 70, 5
    a, b = rng.integers(0, 2, (2, n, lanes)).astype(np.uint8)
    wide = [packed(a), packed(b)]
    source = uncompiled(kernels) if python else kernels
    levels, penalties = np.array([0.3, 1.0]), np.array([penalty(0.3), penalty(1.0)])
    found = []
    for bits in (False, True):
        soft, broken = np.random.default_rng(5).normal(0, 2, (2, lanes)), np.zeros((2, lanes), np.int64)
        replica, rejected = np.repeat(np.arange(2)[:, None], lanes, axis=1), np.zeros((2, 1))
        stream = np.arange(1, 5, dtype=np.uint64)
        told = (soft, broken, replica, rejected, lanes, stream)
        with np.errstate(over="ignore"):
            if bits:
                source.swap_words(levels, penalties, 0, *wide, *told, np.full(2, 9, np.uint64))
            else:
                source.swap_levels(levels, penalties, 0, a, np.uint8(1), b, np.uint8(1), *told)
        found.append((soft, replica, rejected, stream))
    assert 5 < found[0][1][0].sum() < lanes - 5  # some exchange, some do not
    assert (packed(a) == wide[0]).all() and (packed(b) == wide[1]).all()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_which_models_are_kept_in_bits() -> None:
    assert word_parts(pairs_of_bits()) is not None
    for name in ("tie", "not both", "three values"):
        assert word_parts(simplify(MODELS[name])) is None
    rng = np.random.default_rng(1)
    many = factor_graph([2] * 12, [([i, j], np.exp(rng.normal(size=(2, 2)))) for i in range(12) for j in range(i)])
    assert word_parts(simplify(many)) is None


@pytest.mark.parametrize("chains", [4, 64, 70])
def test_ladders_in_bits_agree_with_enumeration(chains: int) -> None:
    model = pairs_of_bits()
    found = dft.marginals(model, sampler=Tempering(), sweeps=400, seed=5, chains=chains)
    assert found.compare(dft.exact(model)).agrees
    engine = Tempering(levels=(0.2, 1.0)).engine(model, slots_of(model, none(model).row_of))
    assert {level.name for level in engine.engines} == {"fields"}  # pyright: ignore[reportAttributeAccessIssue]


def test_hot_levels_allow_what_is_impossible() -> None:
    assert (brute_force(softened(MODELS["tie"], 0.6))[1] > 0).all()
    assert penalty(1.0) == np.inf and penalty(0.0) == 0.0
    np.testing.assert_allclose(brute_force(softened(MODELS["tie"], 0.0))[1], 1.0)


@pytest.mark.parametrize("name", MODELS)
def test_ladders_rise_from_0_to_1(name: str) -> None:
    model = simplify(MODELS[name])
    levels = ladder(model, Gibbs(), slots_of(model, none(model).row_of))
    assert levels[0] == 0.0 and levels[-1] == 1.0 and (np.diff(levels) > 0).all() and len(levels) < 12


@pytest.mark.parametrize("levels", [(1.0,), (0.5, 0.4, 1.0), (0.0, 0.9)])
def test_wrong_ladders_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises(ModelError, match="rise to 1"):
        Tempering(Gibbs(), levels)


@pytest.mark.parametrize("name", MODELS)
def test_tempering_agrees_with_enumeration(name: str) -> None:
    found = dft.marginals(MODELS[name], sampler=Tempering(), sweeps=600, seed=5, symmetries=None)
    assert found.trusted, found.notices
    comparison = found.compare(dft.exact(MODELS[name]))
    assert comparison.agrees
    rates = found.run["tempering"]["swap_rates"]
    assert len(rates) == len(found.run["tempering"]["levels"]) - 1 and min(rates) > 0.2
    assert abs(found.run["tempering"]["barrier"] - sum(1 - rate for rate in rates)) < 1e-9
    assert found.run["tempering"]["round_trips"] >= 10


def test_tempering_composes_with_clusters() -> None:
    model = MODELS["soft"]
    found = dft.marginals(model, sampler=Tempering(dft.SwendsenWang()), sweeps=400, seed=6, symmetries=None)
    assert found.compare(dft.exact(model)).agrees


# --- what auto takes -------------------------------------------------------------------------------------------------


def permutations(size: int) -> FactorGraph:
    rows = [one_of(size, size * r) for r in range(size)]
    columns = [([size * r + c for r in range(size)], one_of(size)[1]) for c in range(size)]
    fields = np.random.default_rng(3).exponential(size=(size * size, 2)) + 0.5
    return factor_graph([2] * size**2, [*rows, *columns, *(([i], f) for i, f in enumerate(fields))])


def test_permutations_by_tempering() -> None:
    model = permutations(5)
    core = contract(model).core
    assert single_moves_connect(core) is False
    assert choose(core, "random")[0] == Tempering(Gibbs("random"))
    found = dft.marginals(core, sampler="tempering", sweeps=1200, seed=1)
    assert found.run["sampler"] == "tempering" and found.trusted, found.notices
    assert found.compare(dft.exact(core)).agrees


@pytest.mark.parametrize("seed", range(40))
def test_connectivity_is_that_of_the_listed_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=4).tolist()
    factors = []
    for _ in range(3):
        scope = rng.permutation(4)[: rng.integers(2, 4)].tolist()
        factors.append((scope, (rng.random([cards[i] for i in scope]) < 0.6).astype(float)))
    model = factor_graph(cards, factors)
    states, weights = brute_force(model)
    if not weights.any():
        return
    legal = (weights > 0).reshape(cards)
    assert single_moves_connect(simplify(model)) == (regions(legal) == 1)
    assert regions(legal) == _regions(states[weights > 0])


def _regions(states: np.ndarray) -> int:
    """By walking."""
    left, count = {tuple(s) for s in states.tolist()}, 0
    while left:
        count, walk = count + 1, [left.pop()]
        while walk:
            at = walk.pop()
            near = {s for s in left if sum(a != b for a, b in zip(s, at, strict=True)) == 1}
            left -= near
            walk += near
    return count


def test_large_models_with_safe_values_are_connected() -> None:
    pairs = [([i, i + 1], NOT_BOTH) for i in range(500)]
    assert single_moves_connect(simplify(factor_graph([2] * 501, pairs))) is True
    chain = [([i, i + 1, i + 2], parity(3)) for i in range(60)]
    assert single_moves_connect(simplify(factor_graph([2] * 62, chain))) is None


def kinds(found: dft.Marginals) -> set[str]:
    return {n.kind for n in found.notices if "of the ladder" in n.message}


def test_neighbours_that_seldom_exchange_are_told() -> None:
    """Nine independent ties: one of 512 states is legal, and two levels hardly ever meet; a chosen ladder does."""
    model = factor_graph([2] * 18, [([2 * k, 2 * k + 1], SAME) for k in range(9)])
    settings = {"symmetries": None, "sweeps": 60, "seed": 1}
    far = dft.marginals(model, sampler=Tempering(levels=(0.0, 1.0)), **settings)
    assert "not-mixed" in kinds(far) and not far.trusted and far.run["tempering"]["round_trips"] < 10
    seldom = dft.marginals(model, sampler=Tempering(levels=(0.0, 0.45, 0.75, 1.0)), **settings)
    assert "note" in kinds(seldom), seldom.run["tempering"]
    chosen = dft.marginals(model, sampler=Tempering(), **settings)
    assert not kinds(chosen) and min(chosen.run["tempering"]["swap_rates"]) > 0.2


def test_tempering_over_tempering_is_refused() -> None:
    with pytest.raises(ModelError):
        Tempering(Tempering())
    assert Tempering().name == "tempering"


def test_levels_below_the_model_start_anywhere_each_chain_by_itself() -> None:
    """Chains that share one mixture of regions agree with each other and not with the model: it takes long to forget
    where they came from. Evidence stays, and the level of the model starts where it is told."""
    model = simplify(factor_graph([2, 3, 2], [([0, 1], [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])]).condition({2: 1}))
    starts = np.tile(np.array([[0, 0, 1]], dtype=np.uint8), (64, 1))
    engine = build(model, Gibbs(), slots_of(model, none(model).row_of), LEVELS)
    block = TemperingBlock(engine, starts, np.random.SeedSequence(0), False, True)
    *below, own = [part.state[: model.n, :64] & np.uint8(part.mask) for part in block._blocks]
    assert (starts == own.T).all()
    for states in below:
        assert (states[2] == 1).all() and set(states[0]) == {0, 1} and set(states[1]) == {0, 1, 2}
    assert (below[0] != below[1]).any()
