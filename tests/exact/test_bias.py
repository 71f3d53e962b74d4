"""The test E[F − G] = 0: the pass is exact, right draws pass it, planted mistakes do not, rare events are no alarm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hard_models import NOT_BOTH, SAME, one_of
from random_models import brute_force
from small_models import ising_ring, mean_field, potts_ring, triples

import definetti as dft
from definetti.constraints.graph.contract import contract
from definetti.diagnose import balance_scores, family_score
from definetti.inference.bias import LARGEST
from definetti.model.graph.factors import FREE, FactorGraph, factor_graph
from definetti.model.logic.ground import ground
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers import conditionals
from definetti.samplers.conditionals import BATCHES, Looks, balance_of, conditional_pass
from definetti.samplers.kernels.graph import tempering as tempering_kernels

TOLERANCE = 1e-12


def tied() -> FactorGraph:
    """x = y, y ≠ z, and one of three: two sites in all."""
    factors = [([0, 1], SAME), ([1, 2], [[0, 1], [2, 0]]), one_of(3, 3), ([0, 3], [[1, 2], [3, 1]]), ([4], [1.0, 3.0])]
    return factor_graph([2] * 6, factors)


def forced() -> FactorGraph:
    """A variable with one possible value, and one that sometimes has one value only."""
    return factor_graph([2, 2, 3], [([0], [0.0, 2.0]), ([0, 1], [[1, 1], [1, 2]]), ([1, 2], [[1, 1, 0], [0, 0, 5]])])


MODELS: dict[str, Callable[[], FactorGraph]] = {
    "pairs": lambda: mean_field(4, 0.4, 0.3),
    "three values": lambda: potts_ring(4, 3, 0.7),
    "triples and evidence": lambda: triples().condition({4: 3}),
    "not both": lambda: factor_graph([2, 2], [([0, 1], NOT_BOTH), ([0], [1.0, 3.0])]),
    "tied": tied,
    "forced": forced,
}


def literal_statistics(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Each literal of a free variable by itself."""
    free = model.evidence[model.variable_of] == FREE
    return np.where(free, np.cumsum(free) - 1, -1), np.ones(int(free.sum()))


def legal(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    states, weights = brute_force(model)
    return states[weights > 0], weights[weights > 0] / weights.sum()


def passed(model: FactorGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All legal states, their probabilities, what the pass says of each, and where each literal stands."""
    states, chance = legal(model)
    statistic, sizes = literal_statistics(model)
    check = conditional_pass(model, statistic, sizes)
    score, spread = np.zeros((len(sizes) + 1, len(states))), np.zeros((len(sizes) + 1, len(states)))
    check.add(np.ascontiguousarray(states.T.astype(np.uint8)), score, spread)
    return states, chance, score, spread, statistic


@pytest.mark.parametrize("name", MODELS)
def test_differences_have_mean_zero_and_the_variance_that_is_said(name: str) -> None:
    """Where several values of a site of the core are one value of a variable, the variance is said to be larger."""
    model = MODELS[name]()
    _, chance, score, spread, _ = passed(model)
    assert np.abs(score @ chance).max() < TOLERANCE
    variance, said = score[:-1] ** 2 @ chance, spread[:-1] @ chance
    assert (variance <= said + TOLERANCE).all() and (variance[said > 0] > said[said > 0] / 5).all() and said.any()
    if not contract(model).merged:
        np.testing.assert_allclose(variance, said, atol=TOLERANCE)


@pytest.mark.parametrize("name", MODELS)
def test_the_pass_computes_conditionals_of_the_sites_of_the_core(name: str) -> None:
    """Against sums over the legal states that agree at all other sites: variables that move together are one site."""
    model = MODELS[name]()
    states, chance, score, _, statistic = passed(model)
    untied = contract(model)
    site = untied.links.parent
    for i in model.free.tolist():
        others = np.flatnonzero(site != site[i])
        groups = np.unique(states[:, others], axis=0, return_inverse=True)[1].ravel()
        whole = np.bincount(groups, weights=chance)[groups]
        for v in range(int(model.cards[i])):
            holds = states[:, i] == v
            g = np.bincount(groups, weights=chance * holds)[groups] / whole
            at = statistic[model.literal_start[i] + v]
            np.testing.assert_allclose(score[at], holds - g, atol=1e-9)


def test_what_is_tied_is_tested_and_what_is_forced_is_not() -> None:
    _, _, _, spread, statistic = passed(tied())
    assert (spread[:-1].sum(axis=1) > 0.1).all()
    _, _, _, spread, statistic = passed(forced())
    assert spread[statistic[0]].sum() == spread[statistic[1]].sum() == 0.0  # X0 is always 1


def test_all_sites_together_are_scored_by_their_own_conditionals() -> None:
    model = mean_field(3, 0.5, 0.2)
    states, _, score, _, statistic = passed(model)
    g = np.stack([(states == v).T - score[statistic[model.literal_start[:-1] + v]] for v in (0, 1)])  # [v, i, state]
    there = np.take_along_axis(g, states.T[None], axis=0)[0]
    np.testing.assert_allclose(score[-1], (there - (g**2).sum(axis=0)).sum(axis=0), atol=TOLERANCE)


def test_an_orbit_adds_up_its_members() -> None:
    model = ising_ring(5, 0.4, 0.3)
    states, _, score, spread, statistic = passed(model)
    check = conditional_pass(model, np.tile([0, 1], 5), np.array([5, 5]))
    together, spreads = np.zeros((3, len(states))), np.zeros((3, len(states)))
    check.add(np.ascontiguousarray(states.T.astype(np.uint8)), together, spreads)
    for v in (0, 1):
        np.testing.assert_allclose(together[v], score[statistic[v::2]].sum(axis=0), atol=TOLERANCE)
        np.testing.assert_allclose(spreads[v], spread[statistic[v::2]].sum(axis=0), atol=TOLERANCE)


def test_of_a_large_model_some_sites_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their conditionals are those of the whole model, though factors beside other sites are left out: two sites for
    each value of the orbit of nine, and the whole orbit of two."""
    core = ising_ring(9, 0.4, 0.3)
    edges = [(core.variables(k).tolist(), np.exp(core.table(k))) for k in range(core.factor_count)]
    model = factor_graph([2] * 11, [*edges, ([9, 10], [[1.0, 2.0], [2.0, 5.0]])])
    states, chance, score, _, statistic = passed(model)
    monkeypatch.setattr(conditionals, "MOST_PAIRS", 0)
    monkeypatch.setattr(conditionals, "SOME_SITES", 2)
    orbit = np.where(np.arange(22) < 18, np.arange(22) % 2, 2 + np.arange(22) % 2)
    check = conditional_pass(model, orbit, np.array([9, 9, 2, 2]))
    found, spreads = np.zeros((5, len(states))), np.zeros((5, len(states)))
    check.add(np.ascontiguousarray(states.T.astype(np.uint8)), found, spreads)
    assert np.abs(found @ chance).max() < TOLERANCE and (spreads @ chance > 0).all()
    some = check.places.site[check.places.site < 9]
    assert 2 <= len(some) <= 4 and check.sizes.tolist() == [len(some), len(some), 2, 2, len(some) + 2]
    for at, mine in ((0, 2 * some), (1, 2 * some + 1), (2, [18, 20]), (3, [19, 21])):
        np.testing.assert_allclose(found[at], score[statistic[mine]].sum(axis=0), atol=TOLERANCE)


def test_batches_of_looks_are_merged_without_losing_any() -> None:
    model = mean_field(3, 0.4, 0.1)
    states, _, score, spread, _ = passed(model)
    statistic, sizes = literal_statistics(model)
    looks = Looks(conditional_pass(model, statistic, sizes), 1, 1)
    count = 5 * BATCHES + 3
    for k in range(count):
        looks.look(np.ascontiguousarray(states[k % 8][:, None].astype(np.uint8)))
    found = balance_of([looks])
    assert found is not None and found.looks.sum() == count and len(found.looks) <= BATCHES
    turn = np.arange(count) % 8
    mean = np.average(found.differences[:, 0], axis=0, weights=found.looks)
    sizes = np.append(sizes, 3)
    np.testing.assert_allclose(mean, score[:, turn].mean(axis=1) / sizes, atol=TOLERANCE)
    np.testing.assert_allclose(found.variance, spread[:, turn].sum(axis=1) / (sizes * count) ** 2, atol=TOLERANCE)


# --- the statistic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", [0.01, 0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("clump", [1, 8])
def test_rare_events_are_no_alarm(expected: float, clump: int) -> None:
    """Counts with a Poisson mean, spread over the batches of eight chains, events perhaps in clumps: 2,000 repetitions
    of 10 statistics. A right test at 3.9 fails in one of 10,000."""
    rng = np.random.default_rng([int(100 * expected), clump])
    batches, chains, statistics = 32, 8, 10 * 2000
    states = batches * chains * 25
    hits = clump * rng.poisson(expected / clump / (batches * chains), size=(batches, chains, statistics))
    differences = (hits - expected / (batches * chains)) / 25
    variance = np.full(statistics, expected / states**2)
    _, tails = balance_scores(differences, np.full(batches, 25), variance, np.full(statistics, 1.0 / states))
    alarms = sum(family_score(tail) > LARGEST for tail in tails.reshape(-1, 10))
    assert alarms <= 3  # more: probability 1e-3 at a rate of 4e-4


@pytest.mark.parametrize("chains", [1, 8, 64])
def test_correlated_differences_are_no_alarm(chains: int) -> None:
    """Batch means of autoregressive chains, whose neighbours correlate: 1,000 repetitions of five statistics."""
    rng = np.random.default_rng(chains)
    noise = rng.normal(size=(64, chains, 5000))
    for b in range(1, 64):
        noise[b] = 0.5 * noise[b - 1] + np.sqrt(0.75) * noise[b]
    least = np.full(5000, 0.25 / (64 * chains))
    tails = balance_scores(noise, np.ones(64), least, np.full(5000, 1e-6))[1]
    assert sum(family_score(tail) > LARGEST for tail in tails.reshape(-1, 5)) <= 3


def test_a_real_difference_is_seen_and_its_score_is_that_of_a_normal_variable() -> None:
    noise = np.random.default_rng(1).normal(size=(1, 4000, 1))
    noise -= noise.mean()
    noise /= noise.std(ddof=1) / np.sqrt(4000)
    for z in (0.5, 2.0, 5.0, 20.0):
        tail = balance_scores(noise + z, np.ones(1), np.ones(1), np.array([1e-9]))[1]
        assert family_score(tail) == pytest.approx(z, rel=0.03)  # Student's t with 3999 degrees of freedom
    assert family_score(np.array([np.nan])) != family_score(np.array([np.nan]))  # NaN: nothing was tested


# --- draws ---------------------------------------------------------------------------------------------------------


def drawn(model: FactorGraph, chains: int, draws: int, seed: int) -> np.ndarray:
    """Independent exact draws."""
    states, chance = legal(model)
    return states[np.random.default_rng(seed).choice(len(states), p=chance, size=(chains, draws))]


def verdict(found: dft.Marginals) -> bool:
    """Whether the draws failed; every run that looks must have tested something."""
    assert found.run["bias"]["tested"] > 0 or found.run["bias"]["z"] is not None
    return any(notice.kind == "biased" for notice in found.notices)


SAMPLED = {
    "fields": mean_field(5, 0.35, 0.2),
    "flips": ising_ring(8, 0.6),  # every value is ½ by symmetry
    "three values": potts_ring(5, 3, 0.7),
    "tied": tied(),
}
WRONG = {
    "fields": mean_field(5, 0.42, 0.2),
    "flips": ising_ring(8, 0.66),
    "three values": potts_ring(5, 3, 0.8),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_right_samples_of_another_program_pass(name: str) -> None:
    for seed in range(6):
        samples = drawn(SAMPLED[name], 4, 1500, seed)
        assert not verdict(dft.marginals(samples, model=SAMPLED[name]))


@pytest.mark.parametrize("name", ["fields", "flips", "three values"])
def test_samples_of_a_model_with_another_weight_fail(name: str) -> None:
    found = dft.marginals(drawn(WRONG[name], 4, 8000, 1), model=SAMPLED[name])
    assert verdict(found) and not found.trusted


def test_samples_of_another_model_fail_and_the_worst_variables_are_named() -> None:
    model = factor_graph({"rain": 2, "wet": 2, "sun": 2}, [(["rain", "wet"], [[9, 1], [1, 4]]), (["sun"], [1, 3])])
    other = factor_graph({"rain": 2, "wet": 2, "sun": 2}, [(["rain", "wet"], [[9, 1], [1, 8]]), (["sun"], [1, 3])])
    found = dft.marginals(drawn(other, 4, 4000, 3), model=model, symmetries="none")
    assert verdict(found)
    text = next(notice.message for notice in found.notices if notice.kind == "biased")
    assert ("rain" in text or "wet" in text) and "sun" not in text and "in the draws" in text


def test_ties_do_not_hide_a_wrong_weight() -> None:
    """Variables that only move together have one value each given the others: they are tested as one site."""
    right = tied()
    factors = [([0, 1], SAME), ([1, 2], [[0, 1], [2, 0]]), one_of(3, 3), ([0, 3], [[1, 2], [3, 1]]), ([4], [1.0, 4.0])]
    other = factor_graph([2] * 6, factors)
    assert verdict(dft.marginals(drawn(other, 4, 4000, 5), model=right))
    assert not verdict(dft.marginals(drawn(right, 4, 4000, 5), model=right))


def test_modes_with_wrong_weights_pass() -> None:
    """What the test cannot see, as the documentation says: all draws from one of two modes."""
    model = mean_field(8, 1.5, 0.0)
    samples = drawn(model, 4, 4000, 2)
    mode = samples.sum(axis=2) > 4
    samples = np.where(mode[:, :, None], samples, 1 - samples)  # the mirror image of the other mode
    assert not verdict(dft.marginals(samples, model=model, symmetries="variables"))


def smokers_samples(n: int, tilt: float, draws: int, seed: int) -> np.ndarray:
    """Exact independent draws of friends and smokers, in the order of the ground model's variables (smokes, cancer,
    friends); with a tilt of the log odds of the number of smokers, as a biased sampler would have it."""
    rng = np.random.default_rng(seed)
    k = np.arange(n + 1)
    pair = np.exp(4.6 + 1.1) + np.exp(1.1), np.exp(4.6 + 1.1) + 1.0  # influence satisfied, violated by friendship
    log = np.array([np.log(float(np.prod(np.arange(j + 1, n + 1)) / np.prod(np.arange(1, n - j + 1)))) for j in k])
    log += (n - k) * (1.4 + np.log(np.exp(2.3 + 1.5) + np.exp(1.5))) + k * np.log(np.exp(2.3) + np.exp(1.5))
    log += (n * n - k * (n - k)) * np.log(pair[0]) + k * (n - k) * np.log(pair[1]) + tilt * k
    counts = rng.choice(n + 1, p=np.exp(log - log.max()) / np.exp(log - log.max()).sum(), size=draws)
    smokes = np.argsort(rng.random((draws, n)), axis=1) < counts[:, None]
    cancer = rng.random((draws, n)) < np.where(smokes, 1 / (1 + np.exp(2.3 - 1.5)), 1 / (1 + np.exp(2.3)))
    odds = np.exp(-4.6 - 1.1 * (smokes[:, :, None] & ~smokes[:, None, :]))
    friends = rng.random((draws, n, n)) < odds / (1 + odds)
    return np.concatenate([smokes, cancer, friends.reshape(draws, -1)], axis=1).astype(np.int64)


def test_alchemys_bias_is_caught() -> None:
    """P(smokes) .0666 for .0644, n=10, as Alchemy's MC-SAT has it; the same number of exact draws passes."""
    text = "person={1,...,10}\nsmokes(person)\ncancer(person)\nfriends(person,person)\n1.4 !smokes(x)\n2.3 !cancer(x)\n"
    text += "4.6 !friends(x,y)\n1.5 smokes(x) => cancer(x)\n1.1 friends(x,y) ^ smokes(x) => smokes(y)\n"
    theory = read_mln_text(text)
    model, group = ground(theory), dft.symmetries(ground(theory), "variables")
    right, wrong = smokers_samples(10, 0.0, 80_000, 1), smokers_samples(10, 0.0365, 80_000, 1)
    assert abs(right[:, :10].mean() - 0.0643661551) < 0.001 and abs(wrong[:, :10].mean() - 0.0666) < 0.001
    assert not verdict(dft.marginals(right.reshape(8, -1, 120), model=model, symmetries=group))
    found = dft.marginals(wrong.reshape(8, -1, 120), model=model, symmetries=group)
    assert verdict(found)
    assert "smokes" in next(notice.message for notice in found.notices if notice.kind == "biased")


# --- our own samplers ----------------------------------------------------------------------------------------------

SAMPLERS = {
    "tempering": dft.Tempering(dft.Gibbs(), (0.0, 0.5, 1.0)),
    "tempering over clusters": dft.Tempering(dft.SwendsenWang(), (0.0, 0.5, 1.0)),
    "mcsat": dft.MCSat(),
    "blocks": dft.Blocks(),
    "swendsen-wang": dft.SwendsenWang(),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_our_samplers_pass(name: str) -> None:
    model = mean_field(6, 0.3, 0.25)
    for seed in range(3):
        found = dft.marginals(model, sampler=SAMPLERS[name], sweeps=400, seed=seed)
        assert not verdict(found) and found.run["bias"]["states"] >= 64 * 400 // 16


def test_gibbs_sampling_needs_no_such_test() -> None:
    assert "bias" not in dft.marginals(mean_field(4, 0.3), sampler="gibbs", sweeps=50, seed=1).run


def with_power(real: Callable[..., None], exponent: float, levels: np.ndarray, *rest: object) -> None:
    real(exponent * levels, *rest)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_wrong_exchanges_between_levels_are_caught(exponent: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every exchange is accepted; or with the wrong power of the ratio."""
    for name in ("swap_levels", "swap_words"):  # states as bytes, and as bits
        real = getattr(tempering_kernels, name)
        monkeypatch.setattr(tempering_kernels, name, partial(with_power, real, exponent))
    model = mean_field(6, 0.3, 0.25)
    found = dft.marginals(model, sampler=SAMPLERS["tempering"], sweeps=1000, seed=1)
    assert verdict(found) and not found.trusted


def test_a_wrong_weight_inside_a_sampler_is_caught() -> None:
    """The kernel of cluster flips gets fields that are too strong."""
    model = mean_field(6, 0.3, 0.25)
    real = dft.SwendsenWang.engine

    class Wrong(dft.SwendsenWang):
        def engine(self, model, slots):  # type: ignore[no-untyped-def]
            made = real(self, model, slots)
            made.model.field[:] *= 1.3
            return made

    assert verdict(dft.marginals(model, sampler=Wrong(), sweeps=4000, seed=1))


def test_markov_logic_is_looked_at_on_its_ground_model() -> None:
    text = "n={A,B,C}\nP(n)\nE(n,n)\n0.4 P(x)\nE(x,y) <=> E(y,x).\n1.1 E(x,y) ^ P(x) => P(y)\n-0.5 E(x,y)\n"
    model = read_mln_text(text)
    for seed in range(3):
        found = dft.marginals(model, sampler="mcsat", sweeps=600, seed=seed)
        assert not verdict(found) and found.trusted and found.run["approximate_share"] == 0
        assert found.run["bias"]["tested"] == found.run["bias"]["statistics"]  # E(x,y) too, which is tied to E(y,x)


def test_a_wrong_start_of_slices_is_caught() -> None:
    """MC-SAT on the ground model of weights that are not the theory's: what a mistake in reading weights would do."""
    import definetti.samplers.logic.mcsat as sampling

    model = read_mln_text("n={A,B,C}\nP(n)\n0.4 P(x)\n0.5 P(x) ^ P(y) ^ x != y\n")
    other = read_mln_text("n={A,B,C}\nP(n)\n0.6 P(x)\n0.5 P(x) ^ P(y) ^ x != y\n")
    real = sampling.graph_of
    try:
        sampling.graph_of = lambda graph, cell: real(ground(other), cell)
        assert verdict(dft.marginals(model, sampler="mcsat", sweeps=4000, seed=1))
    finally:
        sampling.graph_of = real
