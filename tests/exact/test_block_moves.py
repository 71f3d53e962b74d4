"""Joint draws of parts of the hard factors: exact transition matrices, conditionals, and that everything is reached.

Small parts would be one cluster of their join tree each; most tests here also keep the clusters apart.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import permutations
from types import ModuleType

import numpy as np
import pytest
from hard_models import DIFFER, NOT_BOTH, SAME, hard_grid, one_of, parity
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import brute_force, models
from small_models import dense, moved
from uncompiled import block_branches as branches
from uncompiled import uncompiled

import definetti as dft
from definetti.constraints.graph.connectivity import regions, single_moves_connect
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.inference.graph.prepare import choose
from definetti.inference.question import UNDECIDED
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph import block_gibbs as joint
from definetti.samplers.graph.block_gibbs import Blocks
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.graph.starts import starts
from definetti.samplers.graph.tables import Stuck
from definetti.samplers.kernels.graph import block_gibbs as kernels
from definetti.samplers.tempering import Tempering
from definetti.solvers.graph import join_tree
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph.group import none

TOLERANCE = 1e-12
SOFT = [[1.0, 2.0], [3.0, 1.5]]
MODELS = {
    "tie": factor_graph([2] * 3, [([0, 1], SAME), ([1, 2], SOFT), ([0], [1.0, 2.0])]),
    "one of three": factor_graph([2] * 4, [one_of(3), ([2, 3], SOFT)]),
    "two parts": factor_graph([2] * 4, [([0, 1], DIFFER), ([2, 3], SAME), ([1, 2], SOFT)]),
    "parity": factor_graph([2] * 4, [([0, 1, 2], parity(3)), ([2, 3], NOT_BOTH)]),
    "shift": factor_graph([3, 3, 2], [([0, 1], [[0, 1, 0], [0, 0, 2], [3, 0, 0]]), ([1, 2], [[1, 2], [3, 1], [1, 1]])]),
}


def colour_ring(n: int, colours: int = 3, seed: int = 0) -> FactorGraph:
    """Neighbours differ; with three colours single moves cannot change how often the ring winds round them."""
    rng = np.random.default_rng(seed)
    pairs = [([i, (i + 1) % n], 1.0 - np.eye(colours)) for i in range(n)]
    return factor_graph([colours] * n, [*pairs, *(([i], np.exp(rng.normal(size=colours))) for i in range(n))])


def hard_path(seed: int) -> FactorGraph:
    """Hard links between three variables of 2 or 3 values. Of two more one shares a soft factor with both ends, the
    other is observed."""
    rng = np.random.default_rng(seed)
    n = 3
    cards = rng.integers(2, 4, size=n + 2).tolist()
    factors = []
    for i in range(n - 1):
        table = np.exp(rng.normal(size=(cards[i], cards[i + 1]))) * (rng.random((cards[i], cards[i + 1])) < 0.4)
        table[np.arange(cards[i]), rng.integers(cards[i + 1], size=cards[i])] += 0.5  # something goes on from each
        factors.append(([i, i + 1], table))
    for scope in ([n, 0, n - 1], [1, n], [n + 1, 1], [n]):
        factors.append((scope, np.exp(rng.normal(size=[cards[i] for i in scope]))))
    return factor_graph(cards, factors).condition({n + 1: 1})


MODELS["path"] = hard_path(9)
MODELS["ring"] = colour_ring(4)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_tree, "CLUSTER_COST", -np.inf)


def engine_of(model: FactorGraph) -> joint.JointEngine:
    return Blocks().engine(model, slots_of(model, none(model).row_of))


def matrix(model: FactorGraph, order: np.ndarray, *changes: tuple[str, str]) -> tuple[np.ndarray, ...]:
    states, weights = brute_force(model)
    states, weights = states[weights > 0], weights[weights > 0]
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    source, engine = uncompiled(kernels, *changes), engine_of(simplify(model))
    out = np.zeros((len(states), len(states)))
    for k, state in enumerate(states):
        for chance, reached, _ in branches(source, engine, state, order):
            out[k, number[tuple(reached.tolist())]] += chance
    return states, weights / weights.sum(), out


def flow_error(model: FactorGraph, *changes: tuple[str, str]) -> float:
    _, probability, step = matrix(model, simplify(model).free[::-1], *changes)
    return float(np.abs(probability @ step - probability).max())


@pytest.mark.parametrize("name", MODELS)
def test_block_moves_leave_the_distribution_alone_and_reach_everything(name: str) -> None:
    model = MODELS[name]
    _, probability, step = matrix(model, simplify(model).free)
    assert np.abs(step.sum(axis=1) - 1).max() < TOLERANCE
    assert np.abs(probability @ step - probability).max() < TOLERANCE
    assert (np.linalg.matrix_power(step, 8) > 0).all()


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("name", MODELS)
def test_so_do_clusters_that_are_kept_apart(name: str) -> None:
    test_block_moves_leave_the_distribution_alone_and_reach_everything(name)


@settings(max_examples=40)
@given(models(most=4))
def test_random_models_are_left_alone(model: FactorGraph) -> None:
    if brute_force(model)[1].any() and len(simplify(model).free) and np.prod(model.cards) <= 32:
        assert flow_error(model) < TOLERANCE


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_paths_are_left_alone(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_tree, "CLUSTER_COST", -np.inf)
        assert flow_error(hard_path(seed)) < TOLERANCE


RUNGS = factor_graph([2] * 4, [([0, 1], DIFFER), ([2, 3], DIFFER), ([0, 2], SOFT), ([1, 3], SOFT)])
TURNS = factor_graph([3] * 4, [([i, (i + 1) % 3], 1.0 - np.eye(3)) for i in range(3)] + [([0, 3], np.exp(np.eye(3)))])


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("model, orders", [(RUNGS, list(permutations(range(4)))), (TURNS, [(0, 1, 2, 3)])])
def test_sweeps_commute_with_the_group(model: FactorGraph, orders: list[tuple[int, ...]]) -> None:
    """Averaged over all orders, as a fresh random order does; in any order where the group leaves the blocks alone."""
    steps = [matrix(model, np.array(order)) for order in orders]
    states, step = steps[0][0], np.mean([s for _, _, s in steps], axis=0)
    number = {tuple(s): k for k, s in enumerate(states.tolist())}
    group = symmetries(model)
    assert group.group.generators
    for element in dense(group):
        image = [number[tuple(s)] for s in moved(states, simplify(model), element).tolist()]
        assert np.abs(step[np.ix_(image, image)] - step).max() < TOLERANCE


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("name", ["two parts", "path", "ring"])
def test_conditionals_have_the_mean_of_what_is_drawn(name: str) -> None:
    model = simplify(MODELS[name])
    engine = engine_of(model)
    states, weights = brute_force(model)
    for state in states[weights > 0][::5]:
        found = list(branches(uncompiled(kernels), engine, state, model.free))
        total = sum(chance * (sums.final - sums.conditional) for chance, _, sums in found)  # type: ignore[attr-defined]
        assert np.abs(total).max() < TOLERANCE  # type: ignore[arg-type]


def conditional_error(model: FactorGraph, *changes: tuple[str, str]) -> float:
    """The largest difference between what drawing one block alone folds and enumeration given all other variables."""
    engine = engine_of(simplify(model))
    slots = engine.slots
    states, weights = brute_force(model)
    states, weights = states[weights > 0], weights[weights > 0]
    worst = 0.0
    for state in states[:: max(1, len(states) // 4)]:
        for b in range(len(engine.model.start) - 1):
            mine = np.flatnonzero(engine.model.block_of == b)
            block = joint.JointBlock(engine, state[None], np.random.SeedSequence(0))
            if changes:
                block._kernels = uncompiled(kernels, *changes)
            block.run(mine[None, :1].astype(np.int32), 2)
            same = (np.delete(states, mine, axis=1) == np.delete(state, mine)).all(axis=1)
            wanted = np.zeros(slots.count)
            for i in mine.tolist():
                at = int(slots.start[slots.row_of[i]])
                count = np.bincount(states[same, i], weights[same] / weights[same].sum(), minlength=int(model.cards[i]))
                wanted[at : at + len(count)] = count
            worst = max(worst, float(np.abs(block.harvest().conditional[:, 0] - wanted).max()))  # type: ignore[index]
    return worst


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("together", [True, False])
def test_conditionals_of_a_block_are_those_of_enumeration(
    name: str, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not together:
        monkeypatch.setattr(join_tree, "CLUSTER_COST", -np.inf)
    assert conditional_error(MODELS[name]) < TOLERANCE


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_conditionals_on_random_paths(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_tree, "CLUSTER_COST", -np.inf)
        assert conditional_error(hard_path(seed)) < TOLERANCE


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    "change",
    [
        ("work.weight[r - row, lane] += model.log", "work.weight[r - row, lane] = model.log"),
        ("work.entry[lane] += model.stride[p] * state[model.other[p], lane]", "work.entry[lane] += 0"),
        ("work.weight[r - row, lane] += work.message[g - group, lane]", "pass"),
        ("message[g, lane] += np.log(total[g, lane])", "pass"),
        ("work.chosen[up - first, lane]]", "model.row[model.group[up]]]"),
    ],
)
def test_planted_bugs_are_seen(change: tuple[str, str]) -> None:
    with suppress(KeyError, Stuck):  # an illegal state was reached
        assert flow_error(MODELS["path"], change) > 1e-4


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize(
    "change",
    [
        ("1.0 if up < 0 else 0.0", "1.0"),
        ("work.message[g - group, lane] /= work.total[g - group, lane]", "pass"),
        ("conditional[slot, lane] +=", "conditional[slot, lane] ="),
    ],
)
def test_planted_bugs_of_conditionals_are_seen(change: tuple[str, str]) -> None:
    assert conditional_error(MODELS["path"], change) > 1e-4


# --- parts with more legal states than could be listed -----------------------------------------------------------


def drawn(
    model: FactorGraph, sweeps: int, lanes: int = 16, source: ModuleType = kernels
) -> tuple[np.ndarray, joint.JointBlock]:
    """The states after each sweep of one block of lanes, int64[sweeps · lanes, n]; conditionals are folded."""
    simple = simplify(model)
    sampler, seeds = Blocks(), np.random.SeedSequence(4)
    engine = engine_of(simple)
    block = joint.JointBlock(engine, starts(simple, lanes, np.random.default_rng(0)), seeds.spawn(1)[0])
    block._kernels = source
    orders = sampler.orders(simple.free, seeds.spawn(1)[0]).next(sweeps)
    states = []
    for s in range(sweeps):
        block.run(orders[s : s + 1], 2)
        states.append(block.state.T.astype(np.int64))
    return np.concatenate(states), block


def test_a_long_ring_is_one_block_and_drawn_exactly() -> None:
    """Two hundred variables with 2^200 legal states: every draw is independent of the one before."""
    model = colour_ring(200)
    (tree,) = Blocks().parts(simplify(model))
    assert len(tree) > 100 and max(len(cluster.rows) for cluster in tree) <= 24
    pairs = [f"X{i}={a} ^ X{i + 1}={b}" for i in (0, 50, 198) for a, b in ((0, 1), (1, 2), (2, 0))]
    truth = dft.exact(model, pairs)
    states, block = drawn(model, 250)
    assert (states != np.roll(states, 1, axis=1)).all()
    wanted = np.concatenate([truth[name].probability for name in model.names])
    found = block.harvest().conditional[:, 0] / 250  # type: ignore[index]
    np.testing.assert_allclose(found, wanted, atol=TOLERANCE)  # given nothing, G is the marginal
    counts = np.stack([(states == v).mean(axis=0) for v in range(3)], axis=1).ravel()
    spread = np.sqrt(wanted * (1 - wanted) / len(states))
    assert np.abs((counts - wanted) / spread).max() < 5.5  # of 600
    for i, text in zip(np.repeat([0, 50, 198], 3), pairs, strict=True):
        a, b = int(text.split("=")[1][0]), int(text[-1])
        p = truth[text].probability
        assert abs(((states[:, i] == a) & (states[:, i + 1] == b)).mean() - p) < 5 * np.sqrt(p * (1 - p) / len(states))


@pytest.mark.usefixtures("apart")
def test_weights_far_beyond_floating_point() -> None:
    """Every variable wants the same value by e^900, and neighbours differ: what one rules out another demands."""
    with np.errstate(divide="ignore"):
        pairs = [([i, (i + 1) % 5], np.log(1.0 - np.eye(3))) for i in range(5)]
    model = factor_graph([3] * 5, [*pairs, *(([i], [900.0, 0.1 * i, 0.0]) for i in range(5))], log=True)
    wanted = np.concatenate([dft.exact(model)[name].probability for name in model.names])
    _, block = drawn(model, 1)
    np.testing.assert_allclose(block.harvest().conditional[:, 0], wanted, atol=TOLERANCE)  # type: ignore[index]


@pytest.mark.parametrize("model", [MODELS["path"], MODELS["two parts"], colour_ring(12)])
def test_compiled_equals_source(model: FactorGraph) -> None:
    (states, compiled), (others, plain) = (drawn(model, 6, 3, source) for source in (kernels, uncompiled(kernels)))
    np.testing.assert_array_equal(states, others)
    a, b = compiled.harvest(), plain.harvest()
    np.testing.assert_array_equal(a.final, b.final)
    np.testing.assert_array_equal(a.visits, b.visits)
    np.testing.assert_allclose(a.conditional, b.conditional, rtol=1e-13)  # type: ignore[arg-type]
    np.testing.assert_array_equal(compiled.present(), plain.present())


def test_auto_draws_a_long_ring_jointly() -> None:
    model = colour_ring(200)
    assert single_moves_connect(simplify(model)) is None
    found = dft.marginals(model, sweeps=100, seed=3)
    assert found.run["sampler"] == "blocks" and found.trusted and not found.notices
    assert found.compare(dft.exact(model)).agrees


def test_too_wide_a_part_is_left_to_the_others() -> None:
    """As before: Gibbs with a note where nothing is decided, tempering where single moves are known not to suffice."""
    wide = hard_grid(12, 12, 1.0 - np.eye(3))
    assert not Blocks().covers(simplify(wide)) and Blocks().parts(simplify(wide)) == []
    assert choose(simplify(wide), "symmetric") == (Gibbs(), [UNDECIDED])
    ring = [([144 + i, 144 + (i + 1) % 6], 1.0 - np.eye(3)) for i in range(6)]
    pairs = [(wide.variables(k).tolist(), np.exp(wide.table(k))) for k in range(wide.factor_count)]
    both = simplify(factor_graph([3] * 150, [*pairs, *ring]))
    assert len(Blocks().parts(both)) == 1
    assert choose(both, "symmetric") == (Tempering(Gibbs()), [])


def test_memory_is_known_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    model = simplify(colour_ring(200))
    engine = engine_of(model)
    block = engine.block(np.zeros((16, model.n), np.uint8), np.random.SeedSequence(0).spawn(1), False)
    assert isinstance(block, joint.JointBlock)
    taken = block.state.nbytes + sum(a.nbytes for a in block._work) + sum(a.nbytes for a in block._sums)
    assert taken <= engine.memory(16, True) + 8 * engine.slots.count + model.n < 1.1 * taken
    monkeypatch.setattr(joint, "available_memory", lambda: 1 << 10)
    with pytest.raises(TooLarge, match="the factors of blocks"):
        Blocks().engine(model, engine.slots)


def test_auto_draws_small_parts_jointly() -> None:
    rows = [one_of(5, 5 * r) for r in range(5)]
    columns = [([5 * r + c for r in range(5)], one_of(5)[1]) for c in range(5)]
    fields = np.random.default_rng(3).exponential(size=(25, 2)) + 0.5
    model = factor_graph([2] * 25, [*rows, *columns, *(([i], f) for i, f in enumerate(fields))])
    truth = dft.exact(model)
    for sampler in ("auto", "blocks"):
        found = dft.marginals(model, sampler=sampler, sweeps=200, seed=2)
        assert found.run["sampler"] == "blocks" and found.trusted, found.notices
        assert found.compare(truth).agrees


def test_parts_too_large_are_left_and_watched() -> None:
    model = simplify(hard_grid(6, 6))
    assert Blocks(most=1).parts(model) == []
    found = dft.marginals(hard_grid(6, 6), sampler=Blocks(most=1), sweeps=50, seed=1)
    assert "frozen" in {notice.kind for notice in found.notices}
    assert dft.marginals(hard_grid(6, 6), sampler="blocks", sweeps=100, seed=1).trusted


def test_values_that_no_byte_holds_are_refused() -> None:
    shift = factor_graph([300, 300], [([0, 1], np.roll(np.eye(300), 1, axis=0))])
    with pytest.raises(TooLarge, match="the number of values of X0 is 300"):
        engine_of(simplify(shift))


def test_random_scan_is_refused() -> None:
    with pytest.raises(ModelError, match="once per sweep"):
        Blocks("random")


@pytest.mark.parametrize("seed", range(30))
def test_auto_reaches_every_state_where_that_is_decided(seed: int) -> None:
    """On small random hard models auto's kernel is irreducible: Gibbs only where the legal states are connected."""
    from definetti.constraints.graph.contract import contract

    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=5).tolist()
    factors = []
    for _ in range(4):
        scope = rng.permutation(5)[: rng.integers(2, 4)].tolist()
        factors.append((scope, (rng.random([cards[i] for i in scope]) < 0.5).astype(float)))
    try:
        core = contract(factor_graph(cards, factors)).core
    except Unsatisfiable:
        return
    weights = brute_force(core)[1]
    if not weights.any():
        return
    sampler, _ = choose(core, "symmetric")
    if sampler.name == "gibbs":
        assert regions((weights > 0).reshape(core.cards)) == 1
    else:
        assert sampler.name == "blocks"
        assert len(matrix(core, core.free)[0]) == (weights > 0).sum()
        assert (np.linalg.matrix_power(matrix(core, core.free)[2], 8) > 0).all()
