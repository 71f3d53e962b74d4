"""What the estimators rest on, to rounding on exact chains: every state enumerated, every expectation a finite sum.

The chains are Gibbs samplers of single sites on a few bits; σ² is the asymptotic variance of a mean, per step.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from definetti.estimators.regression import Coefficients, apply

CLOSE = {"rtol": 0.0, "atol": 1e-10}


def states(d: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=d)))


def law(log: np.ndarray) -> np.ndarray:
    p = np.exp(log - log.max())
    return p / p.sum()


def conditional(pi: np.ndarray, i: int) -> np.ndarray:
    """P(x_i = 1 | the others) in every state."""
    d = len(pi).bit_length() - 1
    x = states(d)
    flip = np.arange(len(pi)) ^ (1 << (d - 1 - i))
    return np.where(x[:, i] == 1, pi, pi[flip]) / (pi + pi[flip])


def update(pi: np.ndarray, i: int) -> np.ndarray:
    """The transition matrix that redraws site i."""
    d = len(pi).bit_length() - 1
    size = len(pi)
    flip = np.arange(size) ^ (1 << (d - 1 - i))
    x, g = states(d), conditional(pi, i)
    matrix = np.zeros((size, size))
    stay = np.where(x[:, i] == 1, g, 1 - g)
    matrix[np.arange(size), np.arange(size)] = stay
    matrix[np.arange(size), flip] = 1 - stay
    return matrix


def random_scan(pi: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    d = len(pi).bit_length() - 1
    weights = np.full(d, 1 / d) if weights is None else weights
    return sum(w * update(pi, i) for i, w in enumerate(weights))


def asymptotic(matrix: np.ndarray, pi: np.ndarray, f: np.ndarray) -> float:
    """2⟨f, Zf⟩ − ⟨f, f⟩ with Z the fundamental matrix, f centred."""
    f = f - pi @ f
    z = np.linalg.inv(np.eye(len(pi)) - matrix + np.outer(np.ones(len(pi)), pi))
    return float(2 * (pi * f) @ (z @ f) - (pi * f) @ f)


def finite(matrix: np.ndarray, pi: np.ndarray, f: np.ndarray, steps: int) -> float:
    """The variance of a mean over so many steps in stationarity."""
    f = f - pi @ f
    total, power = 0.0, f.copy()
    for lag in range(steps):
        total += (1 if lag == 0 else 2) * (steps - lag) * float((pi * f) @ power)
        power = matrix @ power
    return total / steps**2


def pairs(d: int, coupling: float, field: float = 0.0) -> np.ndarray:
    """Mean field: the law depends on the number of ones alone, so all permutations of sites are symmetries."""
    s = 2 * states(d) - 1
    total = s.sum(axis=1)
    return law(coupling * (total**2 - d) / 2 + field * total)


RANDOM = [law(np.random.default_rng(k).normal(0, 1.2, 16)) for k in range(3)]
SYMMETRIC = [pairs(4, -1.0), pairs(4, 0.3, 0.4), pairs(5, -0.4, 0.2), pairs(3, 0.8, -0.1)]


@pytest.mark.parametrize("pi", [*RANDOM, *SYMMETRIC])
def test_the_conditional_of_one_variable_always_helps(pi: np.ndarray) -> None:
    """σ²(f) − σ²(g) = 4d Var g + (2d − 1) E Var(f | the others) under the uniform random scan."""
    d = len(pi).bit_length() - 1
    matrix = random_scan(pi)
    for i in range(d):
        f, g = states(d)[:, i].astype(float), conditional(pi, i)
        var_g = pi @ (g - pi @ g) ** 2
        expected = 4 * d * var_g + (2 * d - 1) * (pi @ (g * (1 - g)))
        np.testing.assert_allclose(asymptotic(matrix, pi, f) - asymptotic(matrix, pi, g), expected, **CLOSE)


@pytest.mark.parametrize("pi", SYMMETRIC)
def test_the_conditional_of_an_orbit(pi: np.ndarray) -> None:
    """σ²(F) − σ²(G) = 2d⟨G, F⟩ + (2d − 1)‖F‖² + ‖G‖², centred; of either sign."""
    d = len(pi).bit_length() - 1
    matrix = random_scan(pi)
    f = states(d).mean(axis=1)
    g = np.mean([conditional(pi, i) for i in range(d)], axis=0)
    c, e = f - pi @ f, g - pi @ g
    expected = 2 * d * (pi * c) @ e + (2 * d - 1) * (pi * c) @ c + (pi * e) @ e
    np.testing.assert_allclose(asymptotic(matrix, pi, f) - asymptotic(matrix, pi, g), expected, **CLOSE)


def test_the_antiferromagnet_is_worse_with_conditionals() -> None:
    """Mean-field antiferromagnet of 4, β = 1: reduction of variance 318 by orbits, 119 with conditionals."""
    pi = pairs(4, -1.0)
    matrix = random_scan(pi)
    f = states(4)[:, 0].astype(float)
    orbit, g = states(4).mean(axis=1), np.mean([conditional(pi, i) for i in range(4)], axis=0)
    standard = asymptotic(matrix, pi, f)
    assert round(standard / asymptotic(matrix, pi, orbit)) == 318
    assert round(standard / asymptotic(matrix, pi, g)) == 119
    var = [pi @ (x - pi @ x) ** 2 for x in (f, orbit, g)]
    assert (round(var[0] / var[1], 1), round(var[0] / var[2], 1)) == (26.1, 9.7)


@pytest.mark.parametrize("pi", SYMMETRIC)
@pytest.mark.parametrize("steps", [1, 2, 7, 50])
def test_variance_splits_at_every_length(pi: np.ndarray, steps: int) -> None:
    """Var_N(f) = Var_N(Πf) + Var_N(f − Πf) for a kernel that commutes with the group."""
    d = len(pi).bit_length() - 1
    matrix, f, orbit = random_scan(pi), states(d)[:, 0].astype(float), states(d).mean(axis=1)
    parts = finite(matrix, pi, orbit, steps) + finite(matrix, pi, f - orbit, steps)
    np.testing.assert_allclose(finite(matrix, pi, f, steps), parts, **CLOSE)


def test_a_weighted_scan_breaks_the_promise() -> None:
    """Four fair bits, scan weights .85 .05 .05 .05: the orbit mean is worse than one of its members."""
    pi = np.full(16, 1 / 16)
    matrix = random_scan(pi, np.array([0.85, 0.05, 0.05, 0.05]))
    singles = [asymptotic(matrix, pi, states(4)[:, i].astype(float)) for i in range(4)]
    np.testing.assert_allclose(singles, [0.25 * (2 / 0.85 - 1)] + [9.75] * 3, **CLOSE)
    orbit = asymptotic(matrix, pi, states(4).mean(axis=1))
    np.testing.assert_allclose(orbit, sum(singles) / 16, **CLOSE)  # fair bits move independently
    assert round(singles[0], 3) == 0.338 and round(orbit, 3) == 1.849 and orbit > singles[0]


@pytest.mark.parametrize("pi", SYMMETRIC)
def test_orbital_chains_add_nothing_to_the_orbit_estimator(pi: np.ndarray) -> None:
    """σ²(orbital, standard) = σ²(plain, orbit) + Var f − Var Πf, and orbital with orbit is plain with orbit."""
    d = len(pi).bit_length() - 1
    x = states(d)
    same = (x.sum(axis=1)[:, None] == x.sum(axis=1)[None]).astype(float)
    jump = same / same.sum(axis=1, keepdims=True)  # a uniform element of the state's orbit
    matrix, f, orbit = random_scan(pi), x[:, 0].astype(float), x.mean(axis=1)
    orbital = matrix @ jump
    variances = [pi @ (y - pi @ y) ** 2 for y in (f, orbit)]
    expected = asymptotic(matrix, pi, orbit) + variances[0] - variances[1]
    np.testing.assert_allclose(asymptotic(orbital, pi, f), expected, **CLOSE)
    np.testing.assert_allclose(asymptotic(orbital, pi, orbit), asymptotic(matrix, pi, orbit), **CLOSE)


# --- control variates -----------------------------------------------------------------------------------


def sweeps(pi: np.ndarray, start: int, order: tuple[int, ...]) -> list[tuple[float, int, np.ndarray]]:
    """Every way one sweep can go: its chance, the last state, and the conditional at each site's update."""
    d = len(order)
    ways = [(1.0, start, np.zeros(d))]
    for i in order:
        g, bit = conditional(pi, i), 1 << (d - 1 - i)
        ways = [
            (
                chance * (g[s] if value else 1 - g[s]),
                s | bit if value else s & ~bit,
                np.where(np.arange(d) == i, g[s], met),
            )
            for chance, s, met in ways
            for value in (0, 1)
        ]
    return ways


@pytest.mark.parametrize("pi", [RANDOM[0][:8] / RANDOM[0][:8].sum(), pairs(3, 0.8, -0.1), pairs(3, -1.0, 0.3)])
def test_differences_have_mean_zero_from_any_start(pi: np.ndarray) -> None:
    """Each site once per sweep: E(value at the end − conditional at the update) = 0, warm-up included, in any order."""
    x = states(3)
    for start, order in itertools.product(range(8), itertools.permutations(range(3))):
        ways = sweeps(pi, start, order)
        np.testing.assert_allclose(sum(w * (x[s] - met) for w, s, met in ways), np.zeros(3), **CLOSE)


@pytest.mark.parametrize("beta", [0.0, 1.0, 0.37, -2.0, 8.0])
def test_control_with_fixed_coefficients_is_unbiased(beta: float) -> None:
    """E[F − βᵀD] = the marginal, by enumeration of one sweep in a fresh random order from stationarity."""
    pi = law(np.random.default_rng(7).normal(0, 1.0, 8))
    x = states(3)
    regressor = np.array([[0, 1], [1, 2], [2, 0]])
    fixed = Coefficients(regressor, np.array([[beta, 0.5], [beta, -0.3], [1 - beta, 0.2]]), np.ones(3, bool))
    total = np.zeros(3)
    orders = list(itertools.permutations(range(3)))
    for start, order in itertools.product(range(8), orders):
        for chance, end, met in sweeps(pi, start, order):
            f = x[end].astype(float)
            total += pi[start] * chance / len(orders) * apply(fixed, f, f - met)
    np.testing.assert_allclose(total, pi @ x, **CLOSE)
