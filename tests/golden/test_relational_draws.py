"""Golden values of the relational kernel: draws bit for bit, and marginals of friends and smokers within error."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import relational_theories as th

from definetti.samplers.kernels.relational_seeds import seed_words, splitmix64
from definetti.samplers.relational import compile_model
from definetti.samplers.relational_chains import Tally, run_chains
from definetti.symmetry.logic_orbits import AtomOrbits

# P(smokes), P(cancer), P(friends(x,y)) for x != y, from enumeration
TRANSITIVE = {
    2: (0.0672226226, 0.1058381651, 0.0094599192),
    3: (0.0668733900, 0.1057617171, 0.0093533167),
    4: (0.0665334667, 0.1056873071, 0.0092502494),
}
PLAIN = {
    2: (0.0672195515, 0.1058374928, 0.0095372574),
    3: (0.0668586338, 0.1057584870, 0.0095393223),
    4: (0.0664989197, 0.1056797446, 0.0095413819),
}


def smoker_orbits(n: int) -> dict[str, AtomOrbits]:
    z = np.zeros(n, np.int32)
    return {
        "smokes": AtomOrbits((z,), np.array([[0]], np.int32)),
        "cancer": AtomOrbits((z,), np.array([[1]], np.int32)),
        "friends": AtomOrbits((z, z), np.array([[[2, 3]]], np.int32)),
    }


def finish(runs) -> Tally:
    *_, last = runs
    return last


def test_splitmix64_is_the_published_one():
    state, out = splitmix64(1234567)
    assert [out, splitmix64(state)[1]] == [6457827717110365317, 3203168211198807973]
    assert len({seed_words(s, c).tobytes() for s in range(20) for c in range(-1, 20)}) == 420


GOLDEN = ([34, 65, 67, 7], "aaae38372a23c59c")


def test_draws_are_the_same_for_ever():
    """Changed consciously, or not at all: the same seed gives the same numbers in every release."""
    r = compile_model(th.smokers(20), smoker_orbits(20))
    chain = r.start(7, 3)
    r.advance(chain, 1 << 40, 25)
    found = hashlib.sha256(chain.bits.tobytes() + chain.sum_f.tobytes() + chain.streams.tobytes()).hexdigest()[:16]
    assert (chain.sum_f[1, 1:].tolist(), found) == GOLDEN


@pytest.mark.parametrize(
    ("transitive", "scan"), [(True, "symmetric"), (False, "symmetric"), (True, "random"), (True, "fixed")]
)
def test_marginals_of_friends_and_smokers(transitive, scan):
    for n, truth in (TRANSITIVE if transitive else PLAIN).items():
        r = compile_model(th.smokers(n, transitive), smoker_orbits(n), scan=scan)
        tally = finish(run_chains(r, chains=4, sweeps=6000, burn_in=100, batches=10, seed=n))
        sizes = np.array([n, n, n * (n - 1), n])
        weight = tally.visits if scan == "random" else sizes * tally.sweeps[:, None, None]
        for sums in (tally.f, tally.g):
            means = (sums / weight).reshape(-1, 4)
            error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
            z = (means.mean(axis=0)[:3] - truth) / error[:3]
            assert np.abs(z).max() < 4.5, (n, z)


def test_chains_do_not_depend_on_threads_and_share_the_scan():
    r = compile_model(th.smokers(20), smoker_orbits(20))
    one = finish(run_chains(r, chains=3, sweeps=40, burn_in=5, batches=4, seed=9, workers=1))
    two = finish(run_chains(r, chains=3, sweeps=40, burn_in=5, batches=4, seed=9, workers=2))
    np.testing.assert_array_equal(one.f, two.f)
    np.testing.assert_array_equal(one.g, two.g)
    assert one.done and one.updates == 3 * 45 * r.free_sites and one.sweeps.tolist() == [10] * 4
    chains = [r.start(9, k) for k in range(2)]
    for chain in chains:
        r.advance(chain, 1 << 40, 6)
    np.testing.assert_array_equal(chains[0].order, chains[1].order)
    assert (chains[0].bits != chains[1].bits).any()


def test_known_atoms_shift_the_others():
    """P(cancer | smokes) is a logistic of the two formulas that speak of it; known atoms stay as they are."""
    model = th.with_evidence(th.smokers(3), {"smokes": {(0,): True}})
    z = np.array([0, 1, 1], np.int32)
    orbits = {"cancer": AtomOrbits((z,), np.array([[0], [1]], np.int32))}
    r = compile_model(model, orbits)
    tally = finish(run_chains(r, chains=2, sweeps=4000, burn_in=10, batches=10, seed=1))
    g = tally.g[..., 0].sum() / (2 * 4000)
    assert abs(g - 1 / (1 + np.exp(2.3 - 1.5))) < 1e-12
    f = tally.f[..., 0].reshape(-1) / 400
    assert abs(f.mean() - g) < 4 * np.sqrt(g * (1 - g) / 8000)
    assert r.atoms(r.start(1), "smokes")[0]
