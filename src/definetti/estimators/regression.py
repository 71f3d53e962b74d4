"""Fitting control variates: F regressed on the differences D = F − G, statistic by statistic, few regressors each.

D has mean exactly 0, so F − βᵀD has the mean of F for every β (`docs/architecture.md`); the fit only makes it
quieter. The statistics of one variable (its values) have the same regressors and the same ridge: least squares is
linear in F, so that their estimates add up to what the values' F add up to, namely 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROWS_PER_REGRESSOR = 10
MOST_REGRESSORS = 10
MOST_REGRESSORS_OF_MANY = 4  # where there are more than MANY statistics
MANY = 256
POOL, POOL_OF_MANY = 256, 64  # statistics that may serve as regressors of others
BLOCK = 64  # components fitted at once
TINY = 1e-20
FRESH = 1e-7  # of a regressor's squared norm must be new beside those already there


@dataclass(frozen=True, eq=False)
class Coefficients:
    """θ̂_k = mean(F_k) − Σ_j beta[k, j] · mean(D of statistic regressor[k, j]); `fitted`: the data allowed a fit.

    `used[k]` counts the regressors. A statistic that hardly ever moved has the fixed coefficient 1 on its own D.
    """

    regressor: np.ndarray  # int64[K, q]
    beta: np.ndarray  # float64[K, q], 0 where there is none
    fitted: np.ndarray  # bool[K]

    @property
    def used(self) -> np.ndarray:
        return (self.beta != 0).sum(axis=1)


def apply(coefficients: Coefficients, f: np.ndarray, d: np.ndarray) -> np.ndarray:
    """F − βᵀD for arrays [..., K]."""
    out = f.copy()
    for j in range(coefficients.beta.shape[1]):
        active = np.flatnonzero(coefficients.beta[:, j])
        if len(active):
            out[..., active] -= d[..., coefficients.regressor[active, j]] * coefficients.beta[active, j]
    return out


def fit(f: np.ndarray, d: np.ndarray, has_own: np.ndarray, groups: np.ndarray, moves: np.ndarray) -> Coefficients:
    """Least squares on rows f[n, K] and d[n, K]. `has_own`: D of the statistic itself is known; `groups`: statistics
    that belong to one variable have one number. `moves[k]` counts how often F_k changed within a chain: where it did
    not, D has not shown its law (a chain that stays in one mode has a tiny D that goes with the mode), and nothing
    is fitted to it."""
    rows, count = f.shape
    budget = min(rows // ROWS_PER_REGRESSOR, MOST_REGRESSORS if count <= MANY else MOST_REGRESSORS_OF_MANY)
    made = Coefficients(
        np.zeros((count, max(budget, 1)), np.int64), np.zeros((count, max(budget, 1))), np.zeros(count, bool)
    )
    if budget < 1:
        return made
    y, x = f - f.mean(axis=0), d - d.mean(axis=0)
    norm = np.sqrt((x**2).sum(axis=0))
    x = np.where(norm > TINY, x / np.where(norm > TINY, norm, 1.0), 0.0)
    pool = _pool(x, y, (norm > TINY) & (moves >= ROWS_PER_REGRESSOR))
    for members in _components(groups, has_own):
        for at in range(0, len(members), BLOCK):
            _fit_block(made, members[at : at + BLOCK], x, y, norm, pool, has_own, moves, budget)
    return made


def _components(groups: np.ndarray, has_own: np.ndarray) -> list[np.ndarray]:
    """int64[T, m]: statistics that belong together, in tables of components alike in their number and in having own
    D."""
    order = np.argsort(groups, kind="stable")
    _, first, size = np.unique(groups[order], return_index=True, return_counts=True)
    key = 2 * size + has_own[order[first]]
    return [order[first[key == k][:, None] + np.arange(k // 2)] for k in np.unique(key).tolist()]


def _pool(x: np.ndarray, y: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Statistics whose D may serve others: all if they are few, else those that say most about a sample of the F."""
    able = np.flatnonzero(alive)
    if len(able) <= POOL:
        return able
    if len(able) > 16 * POOL:
        able = able[np.linspace(0, len(able) - 1, 16 * POOL).astype(np.int64)]
    targets = y[:, np.linspace(0, y.shape[1] - 1, POOL).astype(np.int64)]
    scale = np.sqrt((targets**2).sum(axis=0))
    explained = ((x[:, able].T @ (targets / np.where(scale > TINY, scale, 1.0))) ** 2).sum(axis=1)
    return np.sort(able[np.argsort(-explained)[:POOL_OF_MANY]])


def _fit_block(
    made: Coefficients, members: np.ndarray, x: np.ndarray, y: np.ndarray, norm: np.ndarray, pool: np.ndarray,
    has_own: np.ndarray, moves: np.ndarray, budget: int,
) -> None:  # fmt: skip
    """Components of m statistics each: own regressors first (one fewer than values: they add up to a constant)."""
    count, m = members.shape
    own = members[:, : max(m - 1, 1)] if has_own[members[0, 0]] else members[:, :0]
    if own.shape[1] > budget:
        _share_one(made, members, x, y, norm)
        return
    allowed = np.minimum(moves[members].min(axis=1) // ROWS_PER_REGRESSOR, budget)
    candidates = np.union1d(pool, own)
    some = x[:, candidates]
    moments = _cross(some, y[:, members.ravel()]).reshape(len(candidates), count, m).transpose(1, 0, 2)
    products = Products(_cross(some, some), moments, (y[:, members] ** 2).sum(axis=(0, 2)), len(x))
    foreign = np.isin(candidates, pool) & (candidates[None, :, None] != members[:, None, :]).all(axis=2)
    more = np.maximum(allowed - own.shape[1], 0)
    place, valid = _forward(products, np.searchsorted(candidates, own), foreign, more, budget - own.shape[1])
    beta = _ridge(products, place, valid)
    chosen = candidates[place]
    beta = np.where(valid[:, :, None], beta / np.where(norm[chosen] > TINY, norm[chosen], 1.0)[:, :, None], 0.0)
    rare = allowed < max(own.shape[1], 1)
    width = chosen.shape[1]
    for v in range(m):
        made.regressor[members[:, v], :width] = chosen
        made.beta[members[:, v], :width] = np.where(rare[:, None], 0.0, beta[:, :, v])
        made.fitted[members[:, v]] = ~rare
        if own.shape[1]:  # too few moves to fit anything: the conditional alone
            k = members[rare, v]
            made.regressor[k, 0], made.beta[k, 0], made.fitted[k] = k, 1.0, True


def _share_one(made: Coefficients, members: np.ndarray, x: np.ndarray, y: np.ndarray, norm: np.ndarray) -> None:
    """One coefficient for all values of a variable, each on its own D: where there are more values than a fit can
    bear."""
    d = x[:, members] * norm[members]
    total = (d**2).sum(axis=(0, 2))
    beta = (d * y[:, members]).sum(axis=(0, 2)) / np.where(total > TINY, total, 1.0)
    made.regressor[members, 0] = members
    made.beta[members, 0] = beta[:, None]
    made.fitted[members] = True


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """aᵀb; small ones without BLAS, whose threads wait for each other longer than the work takes on a busy machine."""
    if a.shape[0] * a.shape[1] * b.shape[1] > 1 << 24:
        return a.T @ b
    return np.einsum("pn,qn->pq", np.ascontiguousarray(a.T), np.ascontiguousarray(b.T))


@dataclass(frozen=True, eq=False)
class Products:
    """All that least squares needs of U candidate regressors (of norm 1, or 0) and T components with m statistics
    each."""

    gram: np.ndarray  # [U, U]
    moments: np.ndarray  # [T, U, m]: with the statistics
    squares: np.ndarray  # [T]: of the statistics
    rows: int


def _forward(
    products: Products, own: np.ndarray, foreign: np.ndarray, more: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Regressors of each component [T, q] and which of them are valid: its own, then, one after the other, the one
    that explains most of what is left (Gram and Schmidt on products alone). Chance correlations, the largest of a
    pool's, are not enough.
    """
    count, at = len(own), np.arange(len(own))
    free = np.tile(np.diag(products.gram), (count, 1))  # squared norm of what is new in a candidate
    left, rest, basis = products.moments.copy(), products.squares.copy(), []

    def include(pick: np.ndarray, good: np.ndarray) -> None:
        nonlocal rest
        good = good & (free[at, pick] > FRESH)
        scale = np.where(good, 1.0 / np.sqrt(np.where(good, free[at, pick], 1.0)), 0.0)
        column = products.gram[pick] - sum((b * b[at, pick][:, None] for b in basis), np.zeros_like(free))
        column *= scale[:, None]
        along = left[at, pick] * scale[:, None]
        left[...] -= column[:, :, None] * along[:, None, :]
        free[...] -= column**2
        rest = rest - (along**2).sum(axis=1)
        basis.append(column)

    chosen, valid = [*own.T], [np.ones(count, dtype=bool)] * own.shape[1]
    for pick in own.T:
        include(pick, np.ones(count, dtype=bool))
    chance = (4.0 + 2.0 * np.log(max(int(foreign.sum(axis=1).max(initial=1)), 1))) / products.rows
    for step in range(most):
        usable = foreign & (free > FRESH) & (rest > FRESH**2 * products.squares)[:, None] & (rest > 0)[:, None]
        score = np.where(usable, (left**2).sum(axis=2) / np.where(usable, free * rest[:, None], 1.0), 0.0)
        best = score.argmax(axis=1) if score.shape[1] else np.zeros(count, np.int64)
        good = (score[at, best] > chance) & (step < more) if score.shape[1] else np.zeros(count, bool)
        if not good.any():
            break
        include(best, good)
        chosen, valid = [*chosen, best], [*valid, good]
    if not chosen:
        return np.zeros((count, 0), np.int64), np.zeros((count, 0), bool)
    return np.column_stack(chosen), np.column_stack(valid)


def _ridge(products: Products, place: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """[T, q, m]: ridge regression, one ridge per component: that of Hoerl, Kennard and Baldwin, q·s² / |β|².

    It is large where little is explained and vanishes where nearly all is.
    """
    count, q = place.shape
    if q == 0:
        return np.zeros((count, 0, products.moments.shape[2]))
    both = valid[:, :, None] & valid[:, None, :]
    gram = np.where(both, products.gram[place[:, :, None], place[:, None, :]], 0.0)
    moment = np.take_along_axis(products.moments, place[:, :, None], axis=1) * valid[:, :, None]
    dead = np.einsum("taa->ta", gram) < 0.5  # a column that is not used, or never moved
    gram += np.eye(q) * (dead[:, :, None] + 1e-10)
    beta = np.linalg.solve(gram, moment)
    used = (~dead).sum(axis=1)
    explained = (beta * (2.0 * moment - gram @ beta)).sum(axis=(1, 2))
    residual = np.maximum(products.squares - explained, 0.0) / np.maximum(products.rows - used - 1, 1)
    size = (beta**2).sum(axis=(1, 2))
    weight = np.minimum(used * residual / np.where(size > TINY, size, 1.0), 1.0)
    return np.linalg.solve(gram + np.eye(q) * weight[:, None, None], moment)
