"""The weight of a region by annealing in both directions between it and a product distribution.

On level t the log density is t · log f + (1 − t) · log q, q being the product of the region's own mean conditionals: so
the region is nearly a fixed point on every level, and no transition is crossed on the way. Upwards, from draws of q,
the mean weight of paths that end in region m is Z_m without bias; downwards, from states of the region, the mean of one
over the weight is (share of upward paths that end in m) / Z_m. Bennett's estimate uses both. In expectation
log share + E_up[log w | m] ≤ log Z_m ≤ E_down[log w] + log share; their distance, the *gap*, shows what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from definetti.errors import INTERRUPTED
from definetti.modes.brackets import effective, highest
from definetti.modes.walkers import STEEPNESS, Key, Paths, Product, States, Walkers

PATHS = 16  # in each direction
MOST_PATHS = 128  # on the levels that were found, where the budget allows
FEWEST_STEPS = 16
SMALL_GAP = 0.3  # nats: no further steps
BOOTSTRAPS = 200
LARGER = 1.25  # times the bootstrap's error: what repetitions show
UNSEEN = 0.5  # 1 / (2 · paths): a kind of path of share r changes log Z by about r, and goes unmet with e^(−r · paths)


@dataclass(frozen=True, eq=False)
class Annealed:
    """What paths in both directions say of one region."""

    log_z: float
    error: float  # of log_z
    gap: float
    share: float  # of the upward paths that end in the region
    ended: int  # how many these are
    steps: int
    lower: float  # log share + E_up[log w | m]
    upper: float  # E_down[log w] + log share, three errors of the mean, and what was not met

    @property
    def quality(self) -> float:
        return self.gap + self.error


NOTHING = Annealed(np.nan, np.inf, np.inf, 0.0, 0, 0, -np.inf, np.inf)


def log_weights(paths: Paths, levels: np.ndarray) -> np.ndarray:
    """float64[paths]; −inf where the state at the upper end is impossible."""
    width = np.diff(levels)
    total = width @ (paths.ratio - STEEPNESS * paths.broken)
    illegal = paths.broken[-1] > 0
    return np.where(illegal, -np.inf, total)  # the last step takes the penalty back where nothing is violated


def bennett(up: np.ndarray, down: np.ndarray) -> np.ndarray:
    """log Z from log weights [..., paths] of both directions (upward ones are −inf where they end elsewhere)."""
    ratio = np.log(up.shape[-1] / down.shape[-1])
    finite = np.where(np.isfinite(up), up, np.nan)
    low = np.fmin(np.nanmin(finite, axis=-1, initial=np.inf), down.min(axis=-1)) - 50.0
    high = np.fmax(np.nanmax(finite, axis=-1, initial=-np.inf), down.max(axis=-1)) + 50.0
    for _ in range(70):
        middle = (low + high) / 2
        forward = _logistic(up - middle[..., None] - ratio).sum(axis=-1)
        backward = _logistic(middle[..., None] + ratio - down).sum(axis=-1)
        above = forward > backward  # log Z is larger
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def _logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(np.clip(x, -700.0, 700.0)))
    return np.where(np.isneginf(x), 0.0, np.where(x >= 0, 1.0, e) / (1.0 + e))


def both_ways(
    up: np.ndarray, down: np.ndarray, steps: int, rng: np.random.Generator, chain: np.ndarray | None = None
) -> Annealed:
    """From the log weights of both directions; those of upward paths that end elsewhere are −inf. `chain`: that the
    first state of each downward path is from (None: one of each)."""
    inside = np.isfinite(up)
    share = float(inside.mean())
    if not np.isfinite(down).all():
        return NOTHING
    most = highest(down, chain)
    if not inside.any():
        return replace(NOTHING, upper=most)
    log_z = float(bennett(up, down))
    again_up = up[rng.integers(len(up), size=(BOOTSTRAPS, len(up)))]
    backward = _logistic(log_z + np.log(len(up) / len(down)) - down)  # what of a path counts in `bennett`
    draws = max(int(effective(backward, chain)), 2)
    again_down = down[rng.integers(len(down), size=(BOOTSTRAPS, draws))]
    some = np.isfinite(again_up).any(axis=1)
    error = float(np.std(bennett(again_up[some], again_down[some])))
    lower, upper = float(up[inside].mean()), float(down.mean())
    rounding = np.spacing(abs(log_z))  # of log densities, beside which small weights may be lost
    error = float(np.linalg.norm([LARGER * error, UNSEEN / min(len(up), draws), rounding]))
    return Annealed(
        log_z, error, max(upper - lower, 0.0), share, int(inside.sum()), steps,
        lower + np.log(share), most + np.log(share),
    )  # fmt: skip


def respaced(levels: np.ndarray, up: Paths, down: Paths, steps: int) -> np.ndarray:
    """Levels between which log weights vary equally, by the paths that were seen; also where the directions differ."""
    rows = [p.ratio - STEEPNESS * p.broken for p in (up, down)]
    noise = np.sqrt(sum(np.var(r, axis=1) for r in rows) / 2)
    apart = np.abs(rows[0].mean(axis=1) - rows[1].mean(axis=1))
    density = np.hypot(noise, apart)
    density = density + 0.05 * density.max() + 1e-9
    reach = np.concatenate([[0.0], np.cumsum(density * np.diff(levels))])
    out = np.interp(np.linspace(0.0, reach[-1], steps + 1), reach, levels)
    out[0], out[-1] = 0.0, 1.0
    return np.maximum.accumulate(out)


def anneal(
    walkers: Walkers,
    product: Product,
    pool: States,
    inside: Callable[[np.ndarray], np.ndarray],
    most_steps: int,
    key: Key,
    chain_of: np.ndarray | None = None,
) -> Annealed:
    """The weight of a region; `pool`: states of it, `inside`: which features belong to it, `chain_of`: the chain that
    each state of the pool is from (None: one of each). Twice the steps until the
    gap is small, gets worse twice, or `most_steps` have been made in all; the best is kept, since a region that does
    not last loses its paths when they are long. What is left of `most_steps` goes into more paths on its levels."""
    rng = np.random.default_rng([*key, 20])
    best, worse, steps, used = NOTHING, 0, FEWEST_STEPS, 0
    levels = np.linspace(0.0, 1.0, steps + 1)
    kept: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None  # of the best: levels, and what follows
    chain_of = np.arange(walkers.count(pool)) if chain_of is None else chain_of

    def made(count: int, number: int) -> tuple[Paths, Paths, np.ndarray, np.ndarray, np.ndarray]:
        """So many paths in each direction, their log weights, and the chains from whose states those down begin."""
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt
        from_product = walkers.draw(product, count, (*key, 21, number))
        states = walkers.count(pool)  # each once, where there are enough: paths from one state are no two draws
        chosen = rng.permutation(states)[:count] if states > PATHS else np.arange(PATHS) % states
        up = walkers.paths(from_product, product, levels, True, (*key, 22, number))
        down = walkers.paths(walkers.take(pool, chosen), product, levels, False, (*key, 23, number))
        upwards = np.where(inside(up.features), log_weights(up, levels), -np.inf)
        return up, down, upwards, log_weights(down, levels), chain_of[chosen]

    while True:
        up, down, upwards, downwards, chain = made(PATHS, steps)
        found = both_ways(upwards, downwards, steps, rng, chain)
        used += steps
        worse = 0 if found.quality < best.quality else worse + 1
        upper = min(best.upper, found.upper)
        if found.quality <= best.quality:
            best, kept = found, (levels, upwards, downwards, chain)
        best = replace(best, upper=upper)
        if best.gap < SMALL_GAP or worse >= 2 or used + 2 * steps > most_steps:
            break
        steps *= 2
        levels = respaced(levels, up, down, steps)
    more = min(MOST_PATHS, PATHS * (1 + max(most_steps - used, 0) // max(best.steps, 1))) - PATHS
    if kept is None or more < PATHS or not np.isfinite(best.log_z):
        return best
    levels, first_up, first_down, first_chain = kept
    _, _, upwards, downwards, chain = made(more, 0)
    if len(downwards) <= len(first_down):
        downwards, chain = first_down, first_chain
    joined = both_ways(np.append(first_up, upwards), downwards, best.steps, rng, chain)
    return replace(joined, upper=min(joined.upper, best.upper)) if np.isfinite(joined.log_z) else best
