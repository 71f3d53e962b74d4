"""Post-processing: samples that another program drew give what folding gives on the same states."""

from __future__ import annotations

from types import SimpleNamespace

import dimod
import numpy as np
import pytest
from folding import values_of
from hard_models import hard_grid
from small_models import hard_pairs, ising_ring, mean_field, potts_ring, triples

import definetti as dft
from definetti.errors import ModelError
from definetti.inference.graph.question import ask
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.samplers.gibbs import Gibbs
from definetti.samplers.graph.sampling import GraphSampling
from definetti.samplers.protocol import Plan
from definetti.symmetry.find import symmetries

CASES = [
    (mean_field(5, -0.3, 0.25), ("X0=1 ^ X1=1",)),
    (triples().condition({4: 3}), ("X0=1 ^ X1=1", "X0=2 v X2=2")),
    (potts_ring(4, 3, 0.9), ("X0=1 ^ X1=1",)),
]


def stored(model: FactorGraph, chains: int, sweeps: int, seed: int) -> np.ndarray:
    """int64[chains, sweeps, n]: every state that `marginals` with this seed folds."""
    question = ask(symmetries(model), (), "orbit", seed)
    gibbs, simple = Gibbs(), question.group.model
    engine = gibbs.engine(simple, question.slots)
    run = GraphSampling(simple, gibbs, engine, question.statistics, Plan(chains, 0, sweeps, seed, 1))
    states = []
    for _ in range(sweeps):
        order = run._orders.next(1)
        for block in run.blocks:
            block.run(order, 0)
        states.append(np.concatenate([values_of(block) for block in run.blocks]))
    return np.stack(states, axis=1)


@pytest.mark.parametrize("estimator", ["standard", "orbit"])
@pytest.mark.parametrize("chains", [5, 40])
@pytest.mark.parametrize("model, queries", CASES)
def test_same_number_as_folding(model: FactorGraph, queries: tuple[str, ...], chains: int, estimator: str) -> None:
    states = stored(model, chains, 70, 11)
    options = {"sampler": "gibbs", "chains": chains, "sweeps": 70, "burn_in": 0, "seed": 11}
    folded = dft.marginals(model, queries, estimator=estimator, **options)
    after = dft.marginals(states, queries, model=model, estimator=estimator)
    for name in [*queries, *(row.representative for row in folded.orbits)]:
        np.testing.assert_allclose(after[name].probability, folded[name].probability, atol=1e-12)
        assert after[name].orbit_size == folded[name].orbit_size
    later = dft.marginals(states, queries, model=model, estimator=estimator, burn_in=30)
    np.testing.assert_allclose(
        later[queries[0]].probability,
        dft.marginals(states[:, 30:], queries, model=model, estimator=estimator)[queries[0]].probability,
    )


def test_the_whole_population_gives_the_marginals() -> None:
    """One chain that holds each state as often as it weighs (weights are small integers)."""
    model = hard_pairs()
    states = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T
    legal = states[(states[:, :-1] * states[:, 1:]).sum(axis=1) == 0]
    samples = np.repeat(legal, 2 ** legal.sum(axis=1), axis=0)
    found, truth = dft.marginals(samples, model=model), dft.exact(model)
    for name in model.names:
        assert found[name].probability == pytest.approx(truth[name].probability, abs=1e-12)


def test_dimod_sample_set() -> None:
    names = [f"X{i}" for i in range(4)]
    model = ising_ring(4, 0.5, 0.3)
    rows = np.array([[-1, 1, 1, -1], [1, 1, 1, 1], [-1, -1, 1, -1]])
    spins = dimod.SampleSet.from_samples(
        (rows[:, ::-1], names[::-1]), "SPIN", energy=[0, 0, 0], num_occurrences=[2, 1, 3]
    )
    bits = (np.repeat(rows, [2, 1, 3], axis=0) + 1) // 2
    wanted = dft.marginals(bits, model=model)
    for given in (spins, spins.change_vartype("BINARY", inplace=False)):
        found = dft.marginals(given, model=model)
        assert found["X2"].probability == wanted["X2"].probability == pytest.approx(bits.mean())
    with pytest.raises(ModelError, match="no variable 'X3'"):
        few = dimod.SampleSet.from_samples((rows[:, :3], names[:3]), "SPIN", energy=[0, 0, 0])
        dft.marginals(few, model=model)
    with pytest.raises(ModelError, match="name 'slack', which is no variable"):
        more = dimod.SampleSet.from_samples((rows[:, [0, 1, 2, 3, 3]], [*names, "slack"]), "SPIN", energy=[0, 0, 0])
        dft.marginals(more, model=model)


class Posterior(dict):
    @property
    def data_vars(self) -> list[str]:
        return list(self)


def test_arviz_like_object() -> None:
    model = triples()
    states = stored(model, 3, 20, 2)
    wanted = dft.marginals(states, model=model)
    apart = Posterior({f"X{i}": states[:, :, i] for i in range(5)})
    for posterior in (Posterior(x=states), apart):
        found = dft.marginals(SimpleNamespace(posterior=posterior), model=model)
        assert found["X4"] == wanted["X4"]
    del apart["X3"]
    with pytest.raises(ModelError, match="no 'X3'"):
        dft.marginals(SimpleNamespace(posterior=apart), model=model)


GOOD = np.zeros((2, 5, 4), dtype=np.int64)


@pytest.mark.parametrize(
    "samples, message",
    [
        (GOOD[:, :, :3], "with 4 variables"),
        (GOOD[:, :0], "with 4 variables"),
        (np.zeros(4), "with 4 variables"),
        (GOOD + 2, "its values are 0 to 1"),
        (GOOD - 1, "its values are 0 to 1"),
        (GOOD + 0.5, "whole numbers"),
        (GOOD + np.nan, "whole numbers"),
        (GOOD + np.inf, "whole numbers"),
        (np.full((2, 5, 4), "a"), "numbers"),
        (np.full((2, 5, 4), None), "numbers"),
        ([[0, 1, 0, 1], [0, 1]], "numbers"),
        (GOOD.astype(complex), "numbers"),
    ],
)
def test_malformed_samples(samples, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        dft.marginals(samples, model=hard_pairs())


def test_misuse_of_samples() -> None:
    model = hard_pairs()
    assert dft.marginals(GOOD.astype(float), model=model)["X0"].probability == 0.0
    assert dft.marginals(GOOD.astype(bool)[0], model=model)["X0"].probability == 0.0
    with pytest.raises(ModelError, match="need their model"):
        dft.marginals(GOOD)
    with pytest.raises(ModelError, match="no full conditionals"):
        dft.marginals(GOOD, model=model, estimator="conditional")
    with pytest.raises(ModelError, match="burn_in is 5"):
        dft.marginals(GOOD, model=model, burn_in=5)
    with pytest.raises(ModelError, match="the evidence says 1"):
        dft.marginals(GOOD, model=model.condition({0: 1}))


# --- models at the edge, and misuse ------------------------------------------------------------------------------


def test_models_at_the_edge() -> None:
    empty = dft.marginals(dft.factor_graph([], []), chains=2, sweeps=2, seed=1)
    assert list(empty) == [] and empty.trusted
    observed = dft.marginals(
        dft.factor_graph([2, 3], []).condition({0: 1, 1: 2}), ["X0=1 ^ X1=2"], chains=2, sweeps=2, seed=1
    )
    assert (observed["X0"].probability, observed["X0=1 ^ X1=2"].probability) == (1.0, 1.0)
    single = dft.factor_graph([1, 2], [([1], [1.0, 3.0])])
    assert dft.marginals(single, chains=4, sweeps=50, seed=1)["X0"] == dft.exact(single)["X0"]
    bare = dft.marginals(dft.factor_graph([2, 5], []), ["X0 v !X0"], chains=1, sweeps=1, seed=1)
    assert bare["X1"].probability == pytest.approx([0.2] * 5) and bare.trusted
    assert (bare["X0 v !X0"].probability, bare["X0 v !X0"].mcse) == (1.0, 0.0)


def test_every_number_of_chains() -> None:
    """Around the widths at which blocks change their shape."""
    for chains in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 128, 129, 257):
        for model in (mean_field(3, 0.2, 0.1), triples()):
            found = dft.marginals(
                model, ["X0", "X0=1 ^ X1=1"], chains=chains, sampler="gibbs", sweeps=2, burn_in=1, seed=1
            )
            assert found.run["updates"] == chains * 3 * model.n  # one sweep of warm-up, two kept


@pytest.mark.parametrize("values", [9, 255, 256])
def test_many_values(values: int) -> None:
    weights = np.arange(values, dtype=float)
    found = dft.marginals(dft.factor_graph([values], [([0], weights)]), chains=32, sweeps=4000, seed=1)["X0"]
    p, want = np.array(found.probability), weights / weights.sum()
    counts, expected = p[1:] * 128_000, want[1:] * 128_000
    assert p[0] == 0.0
    assert ((counts - expected) ** 2 / expected).sum() < values + 5 * np.sqrt(2 * values)


def test_refusals() -> None:
    many = dft.factor_graph([257], [([0], np.ones(257))])
    for sampler in ("gibbs", "blocks", "mcsat", "tempering"):
        with pytest.raises(dft.errors.TooLarge, match="the number of values of X0 is 257"):
            dft.marginals(many, sampler=sampler, symmetries="none", seed=1)
    model = mean_field(3, 0.2)
    for wrong in (
        {"seed": -1},
        {"chains": 0},
        {"sweeps": 0},
        {"workers": 0},
        {"until": 2.0},
        {"seconds": 0},
        {"burn_in": -1},
    ):
        with pytest.raises(ModelError):
            dft.marginals(model, **wrong)
    with pytest.raises(ModelError, match="another model"):
        dft.marginals(model, symmetries=dft.symmetries(mean_field(3, 0.3)))
    with pytest.raises(dft.errors.Unsatisfiable):
        apart = 1 - np.eye(2)
        odd = dft.factor_graph([2] * 3, [([i, (i + 1) % 3], apart) for i in range(3)])
        dft.marginals(odd, chains=2, sweeps=2, seed=1)


def checkerboard(side: int, values: int) -> dft.FactorGraph:
    """Neighbours on a grid differ, hard."""
    place = np.arange(side * side).reshape(side, side)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1)
    pairs = [*across.tolist(), *np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1).tolist()]
    return dft.factor_graph([values] * side**2, [(pair, 1 - np.eye(values)) for pair in pairs])


def test_two_colours_are_found() -> None:
    """The starts hold both solutions. Plain single-site moves cannot leave them; merged, it is one variable."""
    model = checkerboard(10, 2)
    plain = dft.marginals(model, chains=20, sweeps=50, seed=4, estimator="standard", sampler="gibbs")
    assert {notice.kind for notice in plain.notices} & {"not-mixed", "divided"}
    merged = dft.marginals(model, chains=20, sweeps=50, seed=4)
    assert (merged["X0"].probability, merged["X0"].mcse) == (0.5, 0.0) and merged.trusted


def test_contradiction_is_proved() -> None:
    """Three colours for four that all differ: no state, and the search says that it is sure."""
    apart = 1 - np.eye(3)
    four = dft.factor_graph([3] * 4, [([i, j], apart) for i in range(4) for j in range(i)])
    with pytest.raises(dft.errors.Unsatisfiable, match="contradict each other"):
        dft.marginals(four, chains=2, sweeps=2, seed=1)


def test_starts_are_legal() -> None:
    """Three colours on a ladder, hard: every chain starts, and stays, where neighbours differ."""
    apart = 1 - np.eye(3)
    n = 30
    edges = [(i, i + 2) for i in range(n - 2)] + [(i, i + 1) for i in range(0, n, 2)]
    model = dft.factor_graph([3] * n, [(list(e), apart) for e in edges])
    states = stored(model, 40, 3, 5)
    assert all((states[:, :, i] != states[:, :, j]).all() for i, j in edges)


def test_samples_of_a_stuck_chain_carry_their_warning() -> None:
    """Two colours on a grid: symmetry makes one half of a chain that never moved. Draws that jump are fine."""
    board = np.indices((4, 4)).sum(axis=0).ravel() % 2
    stuck = np.tile(board, (2, 50, 1))
    found = dft.marginals(stuck, model=hard_grid(4, 4))
    assert found["X0"].probability == 0.5 and not found.trusted
    assert {notice.kind for notice in found.notices if notice.fails} == {"frozen"}
    flips = np.random.default_rng(1).integers(2, size=(2, 50, 1))
    assert dft.marginals(stuck ^ flips, model=hard_grid(4, 4)).trusted


def test_forced_samples_are_no_alarm() -> None:
    """X0 is forced by the hard factors, X1 is free."""
    forced = factor_graph([2, 2, 2], [((0, 1), [[0.0, 0.0], [1.0, 1.0]]), ((0, 2), [[1.0, 1.0], [2.0, 1.0]])])
    rng = np.random.default_rng(2)
    samples = rng.integers(2, size=(4, 200, 3))
    samples[:, :, 0] = 1
    samples[:, :, 2] = rng.random((4, 200)) < 1 / 3
    found = dft.marginals(samples, model=forced)
    assert found.trusted and (found["X0"].probability, found["X0"].mcse) == (1.0, 0.0)


def test_impossible_samples_are_refused() -> None:
    samples = np.tile(np.indices((3, 3)).sum(axis=0).ravel() % 2, (2, 5, 1))
    samples[1, 3, 8] ^= 1
    with pytest.raises(ModelError, match=r"chain 1, draw 3: the model gives X7=1, X8=1 probability 0"):
        dft.marginals(samples, model=hard_grid(3, 3))
    with pytest.raises(ModelError, match=r"chain 0, draw 0: the model gives X0=1 probability 0"):
        dft.marginals([[1, 0]], model=factor_graph([2, 2], [((0,), [1.0, 0.0])]))
