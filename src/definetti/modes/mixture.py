"""Runs of chains that are confined to regions, and the mixture of what they say.

P = Σ w_m P_m. Its variance is that of the parts, Σ (w_m s_m)², and that of the weights, Σ (w_m (P_m − P))² s(log Z_m)².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from definetti.diagnose import FEWEST_CARRIERS, Diagnosis, carriers, expected_at_most
from definetti.estimators.values import Estimates
from definetti.modes.walkers import Inside, Key, States, Walkers
from definetti.samplers.draws import BATCHES, Batch, Draws, merge_pairs, tally

WARM_UP = 2  # batches
THIN = 4  # sweeps of a block where chains leave a region
FEWEST_CHAINS = 4
RELEVANT = 1e-3  # share: what is said of mixing in lighter regions does not matter
HARMLESS = 0.1  # of the mixture's error: chains that differ by less than this do no harm
WEIGHT_DEGREES = 15.0  # of freedom of an annealed weight


@dataclass(frozen=True, eq=False)
class Stay:
    """What chains did that are confined to a region."""

    states: States
    present: np.ndarray  # [chains, statistics]: F of these
    batches: tuple[Batch, ...] = ()
    left: int = 0  # blocks that ended outside


def arrive(walkers: Walkers, pool: States, chains: int, key: Key) -> Stay:
    """So many chains somewhere in a region."""
    places = np.random.default_rng([*key, 30]).permutation(np.arange(chains) % walkers.count(pool))
    states = walkers.take(pool, places)
    return Stay(states, walkers.statistics_of(states))


def stay(
    walkers: Walkers, before: Stay, inside: Inside, lengths: Sequence[int], leaks: bool, key: Key,
    follow: Callable[[int], bool], warm: bool = False, first: int = 0,
    note: Callable[[int, Stay], None] | None = None,
) -> Stay:  # fmt: skip
    """Batches of chains that are confined to a region: a block that ends outside is rejected, and the state before it
    counts again; those of a `warm` stretch are dropped. A batch is one block, all sweeps of which count, where chains
    do not leave; where they do (`leaks`), blocks are short and their ends alone count: what lies inside a block is not
    distributed as the region is. `follow` hears of sweeps done, and says whether to go on;
    `note` hears of batches done and of what there is. `first`: so many batches were done `before`."""
    states, present, out, left = before.states, before.present, list(before.batches), before.left
    chains = walkers.count(states)
    for b, length in enumerate(lengths[first:], first):
        blocks: list[Batch] = []
        for k in range(-(-length // THIN) if leaks else 1):
            made = walkers.advance(states, THIN if leaks else length, (*key, b, k) if leaks else (*key, b))
            ok = inside(made.features)
            left += 0 if warm else int((~ok).sum())
            present = np.where(ok[:, None], made.last, present)
            states = walkers.take(walkers.join([states, made.ends]), np.where(ok, chains, 0) + np.arange(chains))
            exact = made.square is not None  # the engine's way to give the spread of single draws
            ends = Batch(1, present, None, None if exact else present, present**2 if exact else None)
            whole = Batch(length, made.f, made.g, None if exact else made.last, made.square)
            if made.counts is not None:
                now = np.stack([np.rint(present[:, k] * size) for k, size in walkers.counted], axis=-1)
                ends, whole = ends._replace(tally=tally(now[None])), whole._replace(tally=tally(made.counts))
            blocks.append(ends if leaks else whole)
        if not warm:
            out.append(_together(blocks))
        if len(out) >= 2 * BATCHES:
            out = merge_pairs(out)
        going = follow(length)
        if note is not None:
            note(b + 1, Stay(states, present, tuple(out), left))
        if not going:
            break
    return Stay(states, present, tuple(out), left)


def _together(batches: list[Batch]) -> Batch:
    while len(batches) > 1:
        batches = merge_pairs(batches)
    return batches[0]


def unmet_share(life: int, runs: Sequence[tuple[int, int]]) -> float:
    """The largest share of regions that chains leave after `life` sweeps, by how often others go there: what is left
    w / life times a sweep is entered as often. `runs`: (exits, sweeps of all chains) of each region; as many exits as
    may have been expected (95 %)."""
    if not life:
        return 0.0
    return min(1.0, max(life * expected_at_most(exits) / max(sweeps, 1) for exits, sweeps in runs))


def mixed(
    parts: Sequence[tuple[Estimates, Diagnosis, Draws]], shares: np.ndarray, errors: np.ndarray, left_out: float
) -> tuple[Estimates, Diagnosis]:
    """The mixture of regions with these shares; `errors` are those of the logarithms of their weights, `left_out` is
    the share that regions which were dropped may have."""
    values = np.stack([e.value for e, _, _ in parts])
    own = np.stack([_errors(found, draws) for _, found, draws in parts])
    degrees = np.stack([found.dof for _, found, _ in parts])
    mean, mcse, dof = combined(values, own, degrees, shares, errors, left_out)
    rhat, ess = _agreement(parts, shares, mcse)
    heaviest = int(shares.argmax())
    estimates, found, _ = parts[heaviest]
    constant = np.stack([f.constant for _, f, _ in parts]).all(axis=0) & (np.ptp(values, axis=0) == 0)
    made = Diagnosis(mcse, rhat, ess, constant, np.zeros_like(found.frozen), dof)
    return replace(estimates, value=mean), made


def combined(
    values: np.ndarray, own: np.ndarray, degrees: np.ndarray, shares: np.ndarray, errors: np.ndarray, left_out: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, errors and degrees of freedom of the mixture, from those of the regions [regions, numbers]."""
    mean = shares @ values
    terms = (shares[:, None] * own) ** 2
    moved = (shares[:, None] * (values - mean) * errors[:, None]) ** 2
    variance = terms.sum(axis=0) + moved.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = np.maximum(degrees, 1.0)
        dof = variance**2 / ((terms**2 / degrees).sum(axis=0) + (moved**2).sum(axis=0) / WEIGHT_DEGREES)
    dof = np.where(np.isfinite(dof), np.maximum(dof, 1.0), WEIGHT_DEGREES)
    return mean, np.minimum(np.sqrt(variance + left_out**2), 1.0), dof


def _errors(found: Diagnosis, draws: Draws) -> np.ndarray:
    """Errors inside a region; of what never moved there, about one in the draws at least, also where conditionals have
    something to say: they speak of the states that were met."""
    one = 1.0 / (draws.sweeps * draws.chains)
    least = one if draws.left_out is None else np.hypot(one, draws.left_out)
    error = np.where(np.isnan(found.mcse) & found.constant, least, found.mcse)
    if draws.f.shape[2] != len(error):
        return error
    return np.where(still(draws.f) & ~found.constant, np.maximum(error, one), error)


def still(f: np.ndarray) -> np.ndarray:
    """bool[statistics]: what was true in all draws, or in none."""
    return (f == f[:1, :1]).all(axis=(0, 1)) & np.isin(f[0, 0], (0.0, 1.0))


def _agreement(
    parts: Sequence[tuple[Estimates, Diagnosis, Draws]], shares: np.ndarray, mcse: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The worst R-hat, and the effective size of the mixture; regions that hardly matter are not asked, nor numbers
    whose chains differ in a region by much less than the mixture's error. What never moved in a region has mixed there
    as far as anybody can tell."""
    rhat, inverse = np.full_like(parts[0][1].rhat, np.nan), np.zeros_like(parts[0][1].ess)
    known = np.zeros_like(parts[0][1].constant)
    for (_, found, draws), share in zip(parts, shares.tolist(), strict=True):
        if share >= RELEVANT:
            spread = draws.f.mean(axis=0).std(axis=0) if draws.f.shape[2] == len(mcse) else np.full_like(mcse, np.inf)
            agreed = found.constant | (share * spread < HARMLESS * mcse)
            rhat = np.fmax(rhat, np.where(agreed, 1.0, found.rhat))
            ess = np.where(np.isnan(found.ess), draws.sweeps * draws.chains, found.ess)
            ess = np.minimum(ess, _carried(draws, share, mcse))
            inverse += share**2 / np.maximum(ess, 1e-9)
            known |= ~np.isnan(found.ess)
    with np.errstate(divide="ignore"):
        return rhat, np.where(known, 1.0 / inverse, np.nan)


def _carried(draws: Draws, share: float, mcse: np.ndarray) -> np.ndarray:
    """An effective size for numbers that few batches of a region carry, where they matter; inf for the others."""
    batches = draws.f if draws.g is None else np.where(np.isnan(draws.g), draws.f, draws.g)
    if batches.shape[2] != len(mcse):
        return np.full_like(mcse, np.inf)
    mean = batches.mean(axis=(0, 1))
    matters = share * np.minimum(mean, 1.0 - mean) > mcse
    count = carriers(batches)
    return np.where(matters & (count < min(FEWEST_CARRIERS, batches[:, :, 0].size / 2)), count, np.inf)
