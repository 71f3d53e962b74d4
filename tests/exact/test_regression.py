"""Control variates as algebra: what a fit must find, what it must not see, and bugs planted into it."""

# ruff: noqa: E501 - the patched lines stand as they are in the sources

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from planted import planted

from definetti.estimators import control, regression
from definetti.estimators.regression import Coefficients
from definetti.estimators.values import streams
from definetti.samplers.draws import Draws

BATCHES, CHAINS = 32, 4


def draws(f: np.ndarray, d: np.ndarray, groups: np.ndarray | None = None) -> Draws:
    return Draws(f, f - d, np.full(len(f), 10), np.full(f.shape[2], 2), last=f, groups=groups)


def differences(seed: int, statistics: int) -> np.ndarray:
    return 0.01 * np.random.default_rng(seed).normal(size=(BATCHES, CHAINS, statistics))


def linear() -> float:
    """F is a linear function of four D, each F of its own and of others: F − βᵀD is constant."""
    d = differences(1, 4)
    slopes = np.array([[3.0, 1.0, 0.0, 0.0], [0.0, -2.0, 0.5, 0.0], [0.7, 0.0, 1.0, -1.5], [1.0, 1.0, 1.0, 1.0]])
    made = control.estimate(draws(0.5 + d @ slopes.T, d))
    return float(np.abs(made.batches - 0.5).max() / 0.01)


def remembered() -> float:
    """F is D and half of the D of the batch before: β is one and a half, however the batches are folded."""
    d = differences(2, 1)
    before = np.concatenate([np.zeros((1, CHAINS, 1)), d[:-1]])
    betas = [part.coefficients.beta.sum() for part in control.fits(streams(draws(0.5 + d + 0.5 * before, d)))]
    return float(np.abs(np.array(betas) - 1.5).max())


def least_squares() -> float:
    """β beside ordinary least squares on the rows outside a fold: two statistics, little noise, thus little ridge."""
    d = differences(3, 2)
    f = 0.5 + d @ np.array([[2.0, -1.0], [0.0, 0.5]]).T + 1e-5 * np.random.default_rng(4).normal(size=d.shape)
    seen, error = streams(draws(f, d)), 0.0
    for part in control.fits(seen):
        rows = [np.ones((~part.inside).sum()), *seen.d[~part.inside].T]
        wanted = np.linalg.lstsq(np.stack(rows, axis=1), seen.f[~part.inside], rcond=None)[0][1:].T
        error = max(error, float(np.abs(dense(part.coefficients) - wanted).max()))
    return error


def dense(coefficients: Coefficients) -> np.ndarray:
    out = np.zeros((len(coefficients.beta),) * 2)
    np.add.at(out, (np.arange(len(out))[:, None], coefficients.regressor), coefficients.beta)
    return out


def peeking() -> float:
    """A fold's own batches are not looked at: other numbers there leave its coefficients as they are."""
    d = differences(5, 3)
    f = 0.5 + d @ np.array([[2.0, 1.0, 0.0], [0.0, 0.5, 0.0], [0.3, 0.0, 1.0]]).T + 0.3 * differences(6, 3)
    seen, error = streams(draws(f, d)), 0.0
    for part in control.fits(seen):
        other_d, other_f = d.copy(), f.copy()
        other_d[part.inside], other_f[part.inside] = differences(7, 3)[part.inside], 0.5 + d[part.inside]
        again = list(control.fits(streams(draws(other_f, other_d))))
        (same,) = [fit for fit in again if (fit.inside == part.inside).all()]
        error = max(error, float(np.abs(dense(same.coefficients) - dense(part.coefficients)).max()))
    return error


def values() -> float:
    """Estimates of a variable's values add up to 1, and those of a frozen one are its conditionals."""
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet([8, 5, 3], size=(BATCHES, CHAINS)), rng.dirichlet([80, 50, 30], size=(BATCHES, CHAINS))
    still, known = np.zeros((BATCHES, CHAINS, 1)), 1e-3 * (1 + 0.1 * rng.random((BATCHES, CHAINS, 1)))
    still[[3, 9], 1] = 0.1  # too few moves to fit anything to
    f, g = np.concatenate([p, still], axis=2), np.concatenate([q, known], axis=2)
    made = control.estimate(draws(f, f - g, np.array([0, 0, 0, 1])))
    apart = np.abs(made.batches[:, :, :3].sum(axis=2) - 1.0).max()
    return float(max(apart, np.abs(made.batches[:, :, 3:] - known).max()))


def rounding() -> float:
    """Two variables of three values, whose D add up to 0: what is left of two values beside the third is the same, and
    noise of the size of rounding must not decide which of them serves."""
    rng = np.random.default_rng(9)
    d = 0.01 * rng.normal(size=(BATCHES, CHAINS, 6))
    d -= np.repeat(d.reshape(BATCHES, CHAINS, 2, 3).mean(axis=3), 3, axis=2)
    mix = rng.normal(size=(6, 6)) + 2.0 * np.eye(6)
    f = 1 / 3 + d @ mix + 0.003 * rng.normal(size=d.shape)
    groups, apart = np.array([0, 0, 0, 1, 1, 1]), 0.0
    plain = control.estimate(draws(f, d, groups))
    for _ in range(8):
        noisy = control.estimate(draws(f, d * (1 + 1e-15 * rng.normal(size=d.shape)), groups))
        apart = max(apart, float(np.abs(noisy.batches - plain.batches).max()))
    return apart


#: check → what rounding leaves; of least squares the ridge, of memory the noise of so few batches
CHECKS = {linear: 1e-6, remembered: 0.1, least_squares: 1e-3, peeking: 1e-12, values: 1e-12, rounding: 1e-11}


def names(checks: object) -> str:
    return getattr(checks, "__name__", str(checks))


@pytest.mark.parametrize("check", CHECKS, ids=names)
def test_what_a_fit_must_do(check) -> None:
    assert check() < CHECKS[check]


MUTANTS = {
    "the wrong sign": (regression, "out -= d.take(regressor, axis=-1) * beta", "out += d.take(regressor, axis=-1) * beta"),
    "another statistic's regressors": (regression, "d.take(regressor, axis=-1) * beta", "d.take(regressor[::-1], axis=-1) * beta"),
    "norms multiplied": (regression, "beta /= np.where(norm > TINY, norm, 1.0)", "beta *= np.where(norm > TINY, norm, 1.0)"),
    "what was explained stays": (regression, "left -= column[:, :, None] * along[:, None, :]", "left -= 0.0 * column[:, :, None]"),
    "products of others forgotten": (regression, "gram[:, a:, :a] = gram[:, :a, a:].transpose(0, 2, 1)", "gram[:, a:, :a] = 0.0"),
    "the batch before subtracted": (regression, "beta += _late(", "beta -= _late("),
    "one regressor too many for values": (regression, "chosen = np.concatenate([own,", "beta[..., -1] *= 0.9; chosen = np.concatenate([own,"),
    "a heavy ridge": (regression, "weight = np.minimum(used * residual", "weight = np.minimum(0.1 + used * residual"),
    "the best by a hair": (regression, "(1.0 - LEVEL) * score.max", "1.0 * score.max"),
    "fitted on what it is used on": (control, "outside = rows != k", "outside = rows >= 0"),
    "later batches before earlier ones": (control, "np.stack([number[:-1][both], number[1:][both]])", "np.stack([number[1:][both], number[:-1][both]])"),
    "another fold's coefficients": (control, "Fit(of == k,", "Fit(of == (k + 1) % len(moves),"),
    "moves of the fold itself": (control, "return total - own", "return total + 10 * (total + own)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    change: tuple[ModuleType, str, str] = MUTANTS[name]
    with planted(*change):
        seen = []
        for check, most in CHECKS.items():
            try:
                seen.append(not check() < most)
            except (ValueError, IndexError, np.linalg.LinAlgError):
                seen.append(True)
    assert any(seen)
