"""Fitting control variates: F regressed on the differences D = F − G, statistic by statistic, few regressors each.

D has mean exactly 0, so F − βᵀD has the mean of F for every β (`docs/architecture.md`); the fit only makes it
quieter. A statistic's own D comes first, then those of others that explain what is left; all statistics look for them
in one pool, so that the work grows with their number and not with its square.

What counts is the mean over a whole run, and a chain remembers: D of one batch shows in F of this batch and of the
next. Nothing of D shows in earlier F, because D is a martingale difference. So what the fit leaves is regressed once
more on the D of the batch before, and β is the sum of both. The statistics of one variable (its
values) have the same regressors and the same ridge: least squares is linear in F, so that their estimates add up to
what the values' F add up to, namely 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROWS_PER_REGRESSOR = 10
MOST_REGRESSORS = 10
MOST_REGRESSORS_OF_MANY = 4  # where there are more than MANY statistics
MANY = 256
POOL, POOL_OF_MANY = 256, 64  # statistics that may serve as regressors of others
SAMPLE = 1024  # statistics looked at for the pool, where there are more
BLOCK = 1 << 20  # numbers worked on at once
PIECE = 1 << 18  # multiplications of a product of matrices; OpenBLAS works on one thread up to here
TINY = 1e-20
FRESH = 1e-7  # of a regressor's squared norm must be new beside those already there
LEVEL = 1e-6  # scores so near are level, and the first is taken: rounding, which CPUs do differently, must not choose


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
        beta, regressor = coefficients.beta[:, j], coefficients.regressor[:, j]
        active = np.flatnonzero(beta)
        if len(active) == len(beta):
            out -= d.take(regressor, axis=-1) * beta
        elif len(active):
            out[..., active] -= d.take(regressor[active], axis=-1) * beta[active]
    return out


def fit(
    f: np.ndarray, d: np.ndarray, after: np.ndarray, has_own: np.ndarray, groups: np.ndarray, moves: np.ndarray
) -> Coefficients:
    """Least squares on rows f[n, K] and d[n, K]; row after[1, j] is of the batch that follows the one of row
    after[0, j]. `has_own`: D of the statistic itself is known; `groups`: statistics that belong to one variable have
    one number. `moves[k]` counts how often F_k changed within a chain: where it did not, D has not shown its law (a
    chain that stays in one mode has a tiny D that goes with the mode), and nothing is fitted to it."""
    rows, count = f.shape
    budget = min(rows // ROWS_PER_REGRESSOR, MOST_REGRESSORS if count <= MANY else MOST_REGRESSORS_OF_MANY)
    made = Coefficients(
        np.zeros((count, max(budget, 1)), np.int64), np.zeros((count, max(budget, 1))), np.zeros(count, bool)
    )
    if budget < 1:
        return made
    y, x = f - f.mean(axis=0), d - d.mean(axis=0)
    norm = np.sqrt(np.einsum("nk,nk->k", x, x))
    x *= np.where(norm > TINY, 1.0 / np.where(norm > TINY, norm, 1.0), 0.0)
    pool = _pool(x, y, (norm > TINY) & (moves >= ROWS_PER_REGRESSOR))
    rows_of = Rows(x, y, norm, pool, np.ascontiguousarray(x[:, pool]), after)
    for members in _components(groups, has_own):
        step = max(1, BLOCK // (max(len(pool), 1) * members.shape[1]))
        for at in range(0, len(members), step):
            _fit_block(made, members[at : at + step], rows_of, has_own, moves, budget)
    return made


@dataclass(frozen=True, eq=False)
class Rows:
    """Centred rows: D of norm 1 (or 0) and what their norm was, F, and the D that may serve all."""

    x: np.ndarray  # [n, K]
    y: np.ndarray  # [n, K]
    norm: np.ndarray  # [K]
    pool: np.ndarray  # int64[P]
    shared: np.ndarray  # [n, P]
    after: np.ndarray  # int64[2, n']: rows, and those of the batches that follow them


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
    able = able[np.unique(np.linspace(0, len(able) - 1, SAMPLE).astype(np.int64))]
    targets = y[:, np.linspace(0, y.shape[1] - 1, POOL).astype(np.int64)]
    scale = np.sqrt((targets**2).sum(axis=0))
    explained = (cross(x[:, able], targets / np.where(scale > TINY, scale, 1.0)) ** 2).sum(axis=1)
    return np.sort(able[np.argsort(-explained)[:POOL_OF_MANY]])


def _fit_block(
    made: Coefficients, members: np.ndarray, rows: Rows, has_own: np.ndarray, moves: np.ndarray, budget: int
) -> None:
    """Components of m statistics each: own regressors first (one fewer than values: they add up to a constant)."""
    m = members.shape[1]
    own = members[:, : max(m - 1, 1)] if has_own[members[0, 0]] else members[:, :0]
    if own.shape[1] > budget:
        _share_one(made, members, rows)
        return
    allowed = np.minimum(moves[members].min(axis=1) // ROWS_PER_REGRESSOR, budget)
    products = _products(rows, members, own)
    foreign = (rows.pool[None, :, None] != members[:, None, :]).all(axis=2)
    more = np.maximum(allowed - own.shape[1], 0)
    place, valid = _forward(products, foreign, more, budget - own.shape[1])
    beta = _ridge(products, place, valid)
    chosen = np.concatenate([own, rows.pool[place]], axis=1)
    beta += _late(rows, members, chosen, beta)
    norm = rows.norm[chosen]
    beta /= np.where(norm > TINY, norm, 1.0)[:, :, None]
    rare = allowed < max(own.shape[1], 1)
    beta[rare] = 0.0
    width = chosen.shape[1]
    made.regressor[members, :width] = chosen[:, None, :]
    made.beta[members, :width] = beta.transpose(0, 2, 1)
    made.fitted[members] = ~rare[:, None]
    if own.shape[1]:  # too few moves to fit anything: the conditional alone
        k = members[rare]
        made.regressor[k, 0], made.beta[k, 0], made.fitted[k] = k, 1.0, True


def _share_one(made: Coefficients, members: np.ndarray, rows: Rows) -> None:
    """One coefficient for all values of a variable, each on its own D: where there are more values than a fit can
    bear."""
    d = rows.x[:, members] * rows.norm[members]
    total = (d**2).sum(axis=(0, 2))
    beta = (d * rows.y[:, members]).sum(axis=(0, 2)) / np.where(total > TINY, total, 1.0)
    made.regressor[members, 0] = members
    made.beta[members, 0] = beta[:, None]
    made.fitted[members] = True


@dataclass(frozen=True, eq=False)
class Products:
    """All that least squares needs: products of T components' a own regressors, of the pool's P, and of m
    statistics."""

    own: np.ndarray  # [T, a, a]
    between: np.ndarray  # [T, a, P]
    pool: np.ndarray  # [P, P]
    own_moments: np.ndarray  # [T, a, m]: with the statistics
    pool_moments: np.ndarray  # [T, P, m]
    squares: np.ndarray  # [T]: of the statistics
    rows: int


def _products(rows: Rows, members: np.ndarray, own: np.ndarray) -> Products:
    (count, m), a, width = members.shape, own.shape[1], len(rows.pool)
    x, y = rows.x[:, own], rows.y[:, members]
    between = cross(x.reshape(len(x), -1), rows.shared).reshape(count, a, width)
    moments = cross(y.reshape(len(y), -1), rows.shared).reshape(count, m, width).transpose(0, 2, 1)
    return Products(
        own=np.einsum("nta,ntb->tab", x, x),
        between=between,
        pool=cross(rows.shared, rows.shared),
        own_moments=np.einsum("nta,ntv->tav", x, y),
        pool_moments=np.ascontiguousarray(moments),
        squares=np.einsum("ntv,ntv->t", y, y),
        rows=len(x),
    )


def _forward(products: Products, foreign: np.ndarray, more: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Regressors of each component from the pool [T, q] and which of them are valid: one after the other the one that
    explains most of what its own ones and those before leave (Gram and Schmidt on products alone). Chance
    correlations, the largest of a pool's, are not enough.
    """
    count, at = len(foreign), np.arange(len(foreign))
    chosen, valid = np.zeros((count, most), np.int64), np.zeros((count, most), bool)
    if not foreign.shape[1]:
        return chosen[:, :0], valid[:, :0]
    free, left, rest, basis = _beside_own(products)
    chance = (4.0 + 2.0 * np.log(max(int(foreign.sum(axis=1).max(initial=1)), 1))) / products.rows
    for step in range(most):
        score = np.einsum("tpv,tpv->tp", left, left)
        usable = foreign & (free > FRESH)
        score /= np.where(usable, free, 1.0)
        score[~usable] = 0.0
        pick = (score >= (1.0 - LEVEL) * score.max(axis=1, keepdims=True)).argmax(axis=1)
        enough = np.maximum(chance * rest, FRESH**2 * products.squares)
        good = (score[at, pick] > enough) & (rest > FRESH**2 * products.squares) & (step < more)
        if not good.any():
            return chosen[:, :step], valid[:, :step]
        chosen[:, step], valid[:, step] = pick, good
        scale = np.where(good, 1.0 / np.sqrt(np.where(good, free[at, pick], 1.0)), 0.0)
        column = products.pool[pick]
        for b in basis:
            column -= b * b[at, pick][:, None]
        column *= scale[:, None]
        along = left[at, pick] * scale[:, None]
        left -= column[:, :, None] * along[:, None, :]
        free -= column**2
        rest -= (along**2).sum(axis=1)
        basis.append(column)
    return chosen, valid


def _beside_own(products: Products) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """What the pool's regressors have that the components' own do not: squared norms [T, P], moments [T, P, m]; what
    is left of the statistics [T]; and the own ones made orthonormal, as products with the pool [T, P] each."""
    left, rest, basis, among = products.pool_moments.copy(), products.squares.copy(), [], []
    free = np.repeat(np.diag(products.pool)[None], len(rest), axis=0)
    own, moments = products.own.copy(), products.own_moments.copy()
    for a in range(own.shape[1]):
        size = own[:, a, a].copy()
        scale = np.where(size > FRESH, 1.0 / np.sqrt(np.where(size > FRESH, size, 1.0)), 0.0)
        among.append(own[:, a] * scale[:, None])
        column = products.between[:, a].copy()
        for b, inside in zip(basis, among, strict=False):
            column -= b * inside[:, a][:, None]
        column *= scale[:, None]
        along = moments[:, a] * scale[:, None]
        own -= among[a][:, :, None] * among[a][:, None, :]
        moments -= among[a][:, :, None] * along[:, None, :]
        left -= column[:, :, None] * along[:, None, :]
        free -= column**2
        rest -= (along**2).sum(axis=1)
        basis.append(column)
    return free, left, rest, basis


def _ridge(products: Products, place: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """[T, q, m]: ridge regression, one ridge per component: q·s² / |β|². It is large where little is explained and
    vanishes where nearly all is."""
    a, m = products.own_moments.shape[1:]
    q = a + place.shape[1]
    if q == 0:
        return np.zeros((len(place), 0, m))
    gram = np.empty((len(place), q, q))
    gram[:, :a, :a] = products.own
    gram[:, :a, a:] = np.take_along_axis(products.between, place[:, None, :], axis=2) * valid[:, None, :]
    gram[:, a:, :a] = gram[:, :a, a:].transpose(0, 2, 1)
    gram[:, a:, a:] = products.pool[place[:, :, None], place[:, None, :]] * (valid[:, :, None] & valid[:, None, :])
    foreign = np.take_along_axis(products.pool_moments, place[:, :, None], axis=1) * valid[:, :, None]
    moment = np.concatenate([products.own_moments, foreign], axis=1)
    return _shrunk(gram, moment, products.squares, products.rows)


def _shrunk(gram: np.ndarray, moment: np.ndarray, squares: np.ndarray, rows: int) -> np.ndarray:
    """The solution [T, q, m] with the ridge of Hoerl, Kennard and Baldwin, from products of q regressors and m
    statistics."""
    q = gram.shape[1]
    dead = np.einsum("taa->ta", gram) < 0.5  # a column that is not used, or never moved
    gram = gram + np.eye(q) * (dead[:, :, None] + 1e-10)
    beta = np.linalg.solve(gram, moment)
    used = (~dead).sum(axis=1)
    explained = (beta * (2.0 * moment - gram @ beta)).sum(axis=(1, 2))
    residual = np.maximum(squares - explained, 0.0) / np.maximum(rows - used - 1, 1)
    size = (beta**2).sum(axis=(1, 2))
    weight = np.minimum(used * residual / np.where(size > TINY, size, 1.0), 1.0)
    return np.linalg.solve(gram + np.eye(q) * weight[:, None, None], moment)


def _late(rows: Rows, members: np.ndarray, chosen: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """[T, q, m]: what D of one batch adds to F of the next, by the regressors of `beta`; 0 where rows are too few."""
    before, now = rows.after
    used = (beta != 0).any(axis=2)
    fits = 2 * ROWS_PER_REGRESSOR * used.sum(axis=1) <= len(now)
    if not len(now) or not fits.any() or not used.any():
        return np.zeros_like(beta)
    x = rows.x[:, chosen]
    left = rows.y[:, members][now] - np.einsum("ntq,tqm->ntm", x[now], beta)
    x = x[before] * used
    x -= x.mean(axis=0)
    left -= left.mean(axis=0)
    gram, moment = np.einsum("ntp,ntq->tpq", x, x), np.einsum("ntq,ntm->tqm", x, left)
    late = _shrunk(gram, moment, np.einsum("ntm,ntm->t", left, left), len(now))
    return np.where((used & fits[:, None])[:, :, None], late, 0.0)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """aᵀb of a[n, p] and b[n, q], on one thread.

    BLAS starts threads for products of any size, and on a busy machine they wait for each other longer than the work
    takes. Pieces below its threshold stay on the caller's thread and cost as little.
    """
    a = np.ascontiguousarray(a.T)
    out = np.empty((len(a), b.shape[1]))
    wide = max(1, min(b.shape[1], PIECE // max(1, min(len(a), 64) * a.shape[1])))
    tall = max(1, PIECE // max(1, wide * a.shape[1]))
    for i in range(0, len(a), tall):
        for j in range(0, b.shape[1], wide):
            np.matmul(a[i : i + tall], b[:, j : j + wide], out=out[i : i + tall, j : j + wide])
    return out
