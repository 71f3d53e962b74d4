"""Standard errors, their degrees of freedom, warm-up and stopping, on series whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from definetti.diagnose import (
    diagnose,
    half_width,
    lag_correlation,
    merged,
    one_event,
    rarity,
    standard_error,
    weighted_mean,
)
from definetti.estimators.auto import estimate as auto
from definetti.estimators.control import estimate as control
from definetti.estimators.control import folds
from definetti.estimators.orbit import estimate as orbit
from definetti.samplers.draws import Draws, Tracked, pick_members
from definetti.samplers.warmup import WarmUp, has_settled


def series(kind: str, chains: int, batches: int, seed: int = 1, statistics: int = 400) -> np.ndarray:
    """Batch means: independent, slow (autoregressive) or telescoping (differences of independent numbers)."""
    rng = np.random.default_rng(seed)
    shape = (batches, chains, statistics)
    noise = rng.normal(size=(batches + 1, *shape[1:]))
    if kind == "independent":
        return noise[1:]
    if kind == "telescoping":
        return np.diff(noise, axis=0) + 0.3 * rng.normal(size=shape)
    out = np.zeros(shape)
    out[0] = noise[0]
    for b in range(1, batches):
        out[b] = 0.5 * out[b - 1] + np.sqrt(0.75) * noise[b]
    return out


@pytest.mark.parametrize("kind", ["independent", "slow", "telescoping"])
@pytest.mark.parametrize("chains", [1, 4, 12, 40])
def test_intervals_cover(kind: str, chains: int) -> None:
    """400 statistics, nominal 95 %. If the coverage is 95 %, below 90.75 % or above 98.5 % happens once in 10,000;
    one chain whose neighbours correlate has few means left after merging: there only gross errors are seen."""
    x = series(kind, chains, 32)
    lengths = np.full(32, 10)
    error, dof = standard_error(x, lengths)
    covered = (np.abs(weighted_mean(x, lengths)) <= half_width(error, dof)).mean()
    low, high = (0.86, 1.0) if chains == 1 and kind != "independent" else (0.9075, 0.985)
    assert low <= covered <= high


@pytest.mark.parametrize("kind", ["independent", "slow", "telescoping"])
@pytest.mark.parametrize("chains", [1, 2, 3])
def test_few_chains_are_hardly_ever_far_off(kind: str, chains: int) -> None:
    """By more than six times what the half-width says of the standard error: 4 of 20,000 at most. Where merging left
    four means it was up to 19, as Student's t with three degrees of freedom has it."""
    far = 0
    for seed in range(10):
        x, lengths = series(kind, chains, 32, seed, statistics=2000), np.full(32, 10)
        error, dof = standard_error(x, lengths)
        far += int((np.abs(weighted_mean(x, lengths)) > 6 * half_width(error, dof) / 1.96).sum())
    assert far <= 8  # of 20,000


def test_width_of_a_telescoping_series() -> None:
    """Short batches would overstate it more than three times; what remains is at most 1.5 times the true spread."""
    x = series("telescoping", 4, 32)
    lengths = np.full(32, 10)
    error, dof = standard_error(x, lengths)
    assert half_width(error, dof).mean() <= 1.5 * 1.96 * weighted_mean(x, lengths).std()
    assert (x.reshape(-1, 400).std(axis=0) / np.sqrt(128)).mean() > 3 * weighted_mean(x, lengths).std()


def test_merging_keeps_the_mean_and_skips_what_is_unknown() -> None:
    x = np.arange(10.0).reshape(5, 1, 2)
    lengths = np.array([1, 3, 2, 2, 2])
    y, more = merged(x, lengths)
    assert more.tolist() == [4, 6]
    np.testing.assert_allclose(weighted_mean(y, more), weighted_mean(x, lengths))
    x[1, 0, 0] = np.nan
    y, _ = merged(x, lengths)
    assert y[0, 0, 0] == 0.0 and y[0, 0, 1] == (1 * 1 + 3 * 3) / 4


def test_lag_correlation_is_unbiased_on_short_series() -> None:
    rho = lag_correlation(series("independent", 4, 8, statistics=4000))
    assert abs(rho.mean()) < 4 * rho.std() / np.sqrt(4000)
    assert (lag_correlation(np.ones((8, 4, 3))) == 0).all()


def test_few_means_have_no_error() -> None:
    error, _ = standard_error(np.random.default_rng(1).normal(size=(7, 1, 2)), np.ones(7))
    assert np.isnan(error).all()
    assert half_width(np.array([0.0, 1.0]), np.array([0.0, 3.0]))[0] == 0.0
    assert half_width(np.array([1.0]), np.array([3.0]))[0] == pytest.approx(3.182446)


@pytest.mark.parametrize("chains", [1, 2, 8, 64])
@pytest.mark.parametrize("events", [3, 6, 10, 30])
def test_intervals_of_rare_events_cover(events: int, chains: int) -> None:
    """Poisson counts of so many events in a run. Of those that saw any, 93 % of the intervals hold (2,000 counts: a
    coverage of 95 % falls below 93 % once in 50,000); at 30 events they are no wider than 1.2 times the true ones."""
    rng = np.random.default_rng(chains)
    x = rng.poisson(events / (32 * chains), size=(32, chains, 2000)).astype(float)
    found = diagnose(x, np.full(32, 10), x, x**2, np.ones(2000))
    met = x.any(axis=(0, 1))
    half = half_width(found.mcse, found.dof)[met] * 32 * chains
    assert (np.abs(x.sum(axis=(0, 1))[met] - events) <= half).mean() >= 0.93
    assert events < 30 or np.median(half) <= 1.2 * 1.96 * np.sqrt(events)


def test_rarity_counts_events_and_vanishes_for_normal_means() -> None:
    x = np.zeros((32, 8, 4))
    x[:3, 0, 0], x[:10, 1, 1], x[5, 5, 2] = 1.0, 1.0, 1e-300
    np.testing.assert_allclose(1 / rarity(x)[:3], [3, 10, 1], rtol=0.25)
    assert rarity(x)[3] == 0.0
    assert rarity(np.random.default_rng(1).normal(size=(256, 4000))).mean() < 0.2 / 85


def test_a_fit_without_residual_has_the_error_of_its_events() -> None:
    """20 events, all explained to rounding: half of one could have been of another kind."""
    f = np.zeros((32, 8, 1))
    f[::8, :5] = 1 / 40
    left = np.full_like(f, 0.01) + 1e-16 * np.random.default_rng(1).normal(size=f.shape)
    found = diagnose(left, np.full(32, 40), f, f, np.ones(1))
    assert 0.6 < found.mcse[0] / (0.5 * f.mean() ** 2 / 20 / 0.01) < 1.7
    plain = diagnose(f, np.full(32, 40), f, f, np.ones(1))
    assert plain.mcse[0] == standard_error(f, np.full(32, 40))[0][0]  # draws as they are


def test_an_event_that_was_not_met_moves_a_joint_one_as_a_whole() -> None:
    """A ∧ B where B is true in 97 % of the 42 draws with A: some runs meet no A without B, and what the differences of
    A leave is then quiet. An event moves it by 1, not by the estimate's size: .73 of the intervals held."""
    rng = np.random.default_rng(1)
    shape = (32, 4, 600, 31)
    first = rng.random(shape) < 0.0107
    both = first & (rng.random(shape) < 0.97)
    conditionals = 0.0107 + 0.1 * ((rng.random(shape) < 0.0016) - 0.0016)
    f, lengths = both.mean(axis=3), np.full(32, 31)
    left = f - (first.mean(axis=3) - conditionals.mean(axis=3))
    found = diagnose(left, lengths, f, f, np.ones(600))
    held = np.abs(left.mean(axis=(0, 1)) - 0.97 * 0.0107) <= found.half_width
    assert held.mean() > 0.82
    assert 0.8 < np.median(one_event(f, lengths)) <= 1.0
    many = rng.normal(0.5, 0.02, size=(256, 4, 50))
    assert one_event(many, np.full(256, 31)).mean() < 0.1


# --- fitted and chosen estimators -----------------------------------------------------------------------


def draws(f: np.ndarray, g: np.ndarray | None, groups: np.ndarray | None = None) -> Draws:
    return Draws(f, g, np.full(len(f), 10), np.full(f.shape[2], 2), last=f, groups=groups)


def noisy(chains: int, batches: int, seed: int, quiet: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """F = ½ + 3 D₀ + D₁ + a little; the second statistic is D₁ alone with its own noise."""
    rng = np.random.default_rng(seed)
    d = 0.01 * rng.normal(size=(batches, chains, 2))
    rest = 0.01 * quiet * rng.normal(size=d.shape)
    f = 0.5 + rest + np.stack([3 * d[:, :, 0] + d[:, :, 1], d[:, :, 1]], axis=2)
    return f, f - d


@pytest.mark.parametrize("chains", [1, 2, 4, 5, 8, 40])
def test_folds_cover_every_batch_and_are_five_or_more(chains: int) -> None:
    of = folds(32, chains)
    assert of.shape == (32, chains) and len(np.unique(of)) >= 5
    if chains >= 5:
        assert (of == of[:1]).all()  # whole chains


def test_control_finds_the_coefficients() -> None:
    f, g = noisy(4, 32, 3)
    made = control(draws(f, g))
    assert made.batches[:, :, 0].std() < 1.3 * 0.001 and not made.fallback.any()
    chosen = auto(draws(f, g))
    assert chosen.method[0] == 3 and chosen.value[0] == pytest.approx(made.value[0])


def test_control_is_no_worse_than_orbit_where_it_cannot_help() -> None:
    """D is noise unrelated to F: 120 runs, the variance grows by no more than the noise of the fit."""
    worse, plain = [], []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        f = 0.5 + 0.01 * rng.normal(size=(32, 4, 3))
        g = f - 0.01 * rng.normal(size=f.shape)
        worse.append(control(draws(f, g)).value - 0.5)
        plain.append(orbit(draws(f, g)).value - 0.5)
    assert np.mean(np.square(worse)) < 1.15 * np.mean(np.square(plain))


def test_too_few_batches_fall_back_to_orbit() -> None:
    f, g = noisy(2, 5, 1)
    made = control(draws(f, g))
    assert made.fallback.all()
    np.testing.assert_array_equal(made.batches, f)


def test_few_moves_leave_the_conditional_alone() -> None:
    """Three changes in all: too few to fit anything to, and no difference that may serve others."""
    f, g = np.zeros((32, 4, 1)), 1e-3 * (1 + 0.1 * np.random.default_rng(1).random((32, 4, 1)))
    f[[3, 9], 1] = 0.1
    made = control(draws(f, g))
    np.testing.assert_allclose(made.batches, g, atol=1e-15)
    assert not made.fallback.any()


def slow(seed: int, memory: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Two orbits' batch means of 4 chains × 512 sweeps in 32 batches: F remembers, D is what is new in each sweep."""
    rng = np.random.default_rng(seed)
    d = 0.1 * rng.normal(size=(512, 4, 2))
    f, state = np.empty_like(d), np.zeros((4, 2))
    for t in range(512):
        state = memory * state + d[t]
        f[t] = 0.5 + state
    f += 0.02 * rng.normal(size=f.shape)
    means = [x.reshape(32, 16, 4, 2).mean(axis=1) for x in (f, f - d)]
    return means[0], means[1]


def test_control_knows_what_a_batch_does_to_the_next() -> None:
    """A fit within batches of 16 sweeps alone makes β too small for a chain with memory 0.9: the MSE falls 4.2 to 4.7
    times. With the next batch it falls 42 to 73 times (eight times 60 runs)."""
    runs = [draws(*slow(seed)) for seed in range(60)]
    mse = [np.mean([(method(d).value - 0.5) ** 2 for d in runs]) for method in (orbit, control)]
    assert mse[0] > 20 * mse[1], mse


def test_values_of_one_variable_add_up_to_one() -> None:
    rng = np.random.default_rng(5)
    p = rng.dirichlet([8, 5, 3], size=(32, 4))
    q = rng.dirichlet([80, 50, 30], size=(32, 4))
    other = rng.random((32, 4, 2))
    quieter = other + 0.01 * rng.normal(size=other.shape)
    both = np.concatenate([p, other], axis=2), np.concatenate([q, quieter], axis=2)
    d = draws(*both, np.array([0, 0, 0, 1, 2]))
    for made in (control(d), auto(d)):
        assert made.value[:3].sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(made.batches[:, :, :3].sum(axis=2), 1.0, atol=1e-12)


def test_many_values_share_one_coefficient() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(40), size=(32, 4)), rng.dirichlet(np.ones(40) * 9, size=(32, 4))
    made = control(draws(p, q, np.zeros(40, np.int64)))
    np.testing.assert_allclose(made.batches.sum(axis=2), 1.0, atol=1e-12)


def test_auto_keeps_orbit_unless_another_is_clearly_better() -> None:
    rng = np.random.default_rng(2)
    f = 0.5 + 0.01 * rng.normal(size=(32, 4, 1))
    worse = f + 0.02 * rng.normal(size=f.shape)
    assert auto(draws(f, worse)).method[0] == 1  # orbit
    assert auto(draws(worse, f)).method[0] in (2, 3)


def test_what_never_moved_is_told_by_its_conditionals() -> None:
    f = np.zeros((32, 4, 1))
    g = 1e-5 * (1 + 0.1 * np.random.default_rng(1).random(f.shape))
    for made in (control(draws(f, g)), auto(draws(f, g))):
        assert made.value[0] == pytest.approx(1.05e-5, rel=0.01)


def test_conditionals_that_depend_on_nothing_are_taken_in_every_fold() -> None:
    """F goes up and down in turn, so that batches are merged to whole chains, whose means are equal by chance in all
    folds but those of the last chain."""
    f = np.tile([0.0, 0.2], 16)[:, None, None] + np.zeros((1, 4, 1))
    f[:, 3] += 0.01 * np.random.default_rng(1).random((32, 1))
    made = auto(draws(f, np.full_like(f, 0.125)))
    assert (made.batches == 0.125).all() and made.value[0] == 0.125


def test_choice_does_not_go_with_the_smallest_estimate() -> None:
    """A rare event: estimates chosen by `auto` stay unbiased. 200 runs; a bias of 4 standard errors happens once in
    16,000."""
    found = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        f = rng.poisson(0.3, size=(32, 4, 1)) / 30.0
        g = 0.01 * rng.gamma(4.0, 0.25, size=f.shape)
        found.append(auto(draws(f, g)).value[0])
    assert abs(np.mean(found) - 0.01) < 4 * np.std(found) / np.sqrt(200)


# --- warm-up, tracking ----------------------------------------------------------------------------------


def test_warm_up_ends_when_nothing_drifts() -> None:
    rng = np.random.default_rng(1)
    still, drifting = (rng.normal(size=(2, 8, 3)) for _ in range(2))
    assert has_settled(still[0], still[1])
    assert not has_settled(drifting[0], drifting[1] + np.array([0, 5, 0]))


@pytest.mark.parametrize("drift", [0.0, 50.0])
def test_warm_up_is_longer_where_the_start_was_far_off(drift: float) -> None:
    rng = np.random.default_rng(1)
    warm = WarmUp(8, 2000, None)
    while length := warm.length():
        middle = warm.done + length / 2
        warm.look(length, drift * np.exp(-middle / 100) + rng.normal(size=(8, 3)) / np.sqrt(length))
    assert warm.done == 200 if drift == 0 else 400 <= warm.done <= 2000


def test_the_callers_warm_up_is_taken() -> None:
    warm = WarmUp(8, 2000, 17)
    assert not warm.looks and warm.length() == 17
    warm.look(17, None)
    assert warm.length() == 0
    assert WarmUp(8, None, 0).length() == 0


def test_members_are_picked_from_every_orbit() -> None:
    orbit = np.repeat([0, 1, -1, 2], [500, 3, 10, 64])
    places = pick_members(orbit, np.random.default_rng(1))
    assert np.bincount(orbit[places]).tolist() == [64, 3, 64] and len(set(places.tolist())) == len(places)
    assert len(pick_members(np.full(3, -1), np.random.default_rng(1))) == 0
    assert Tracked(orbit, np.zeros((1, 1, 1)), np.ones(1)).statistic is orbit
