"""Golden values of the relational kernel: draws bit for bit, and marginals of friends and smokers within error."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import small_theories as th
from plain_kernels import start

import definetti as dft
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.samplers.kernels.rng import seed_words, splitmix64
from definetti.samplers.logic.engine import advance, compile_model

EXAMPLES = Path(__file__).parents[2] / "examples"

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


def test_splitmix64_is_the_published_one():
    state, out = splitmix64(1234567)
    assert [out, splitmix64(state)[1]] == [6457827717110365317, 3203168211198807973]
    assert len({seed_words(s, c).tobytes() for s in range(20) for c in range(-1, 20)}) == 420


GOLDEN = ([34, 65, 67, 7], "aaae38372a23c59c")


def test_draws_are_the_same_for_ever():
    """Changed consciously, or not at all: the same seed gives the same numbers in every release."""
    r = compile_model(th.smokers(20), smoker_orbits(20))
    chain = start(r, 7, 3)
    advance(r, chain, 1 << 40, 25)
    found = hashlib.sha256(chain.bits.tobytes() + chain.sum_f.tobytes() + chain.streams.tobytes()).hexdigest()[:16]
    assert (chain.sum_f[1, 1:].tolist(), found) == GOLDEN


@pytest.mark.parametrize(
    ("transitive", "scan"), [(True, "symmetric"), (False, "symmetric"), (True, "random"), (True, "fixed")]
)
def test_marginals_of_friends_and_smokers(transitive: bool, scan: str) -> None:
    name = "smokers-transitive.mln" if transitive else "smokers.mln"
    for n, truth in (TRANSITIVE if transitive else PLAIN).items():
        model = dft.read(EXAMPLES / name, domain={"person": n})
        for estimator in ("orbit", "conditional"):
            found = dft.marginals(model, sweeps=6000, chains=4, seed=n, scan=scan, estimator=estimator)
            for atom, p in zip(("Smokes(Person1)", "Cancer(Person1)", "Friends(Person1,Person2)"), truth, strict=True):
                assert abs(found[atom].probability - p) < 4.5 * found[atom].mcse, (n, estimator, atom, found[atom])


def test_chains_share_the_scan_and_nothing_else() -> None:
    r = compile_model(th.smokers(20), smoker_orbits(20))
    chains = [start(r, 9, k) for k in range(2)]
    for chain in chains:
        advance(r, chain, 1 << 40, 6)
    np.testing.assert_array_equal(chains[0].order, chains[1].order)
    assert (chains[0].bits != chains[1].bits).any()


def test_known_atoms_shift_the_others() -> None:
    """P(cancer | smokes) is a logistic of the two formulas that speak of it; known atoms stay as they are."""
    model = dft.read(EXAMPLES / "smokers.mln", domain={"person": 3}, evidence={"Smokes(Person1)": True})
    found = dft.marginals(model, seed=1, estimator="conditional")
    assert abs(found["Cancer(Person1)"].probability - 1 / (1 + np.exp(2.3 - 1.5))) < 1e-12
    assert found["Cancer(Person1)"].mcse == 0
