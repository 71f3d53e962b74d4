"""Sweeps of chains that look for modes: dense ones and those at the cost of the true atoms are one kernel, in both
directions, and what is followed beside the state is right after each."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from small_theories import smokers
from sparse_worlds import chain_at, list_error, path_error, plain, random_world, sites, world_of

import definetti as dft
from definetti.inference.logic.question import logic_question
from definetti.modes.logic import walkers as survey
from definetti.modes.logic.sweeps import Sweeps, backwards
from definetti.samplers.logic.levels import recount, violated
from definetti.samplers.logic.tensors.state import clear_sums
from definetti.samplers.sparse.engine import FOREVER, advance, compile_sparse
from definetti.symmetry.logic.renaming import RenamingSymmetries

PEOPLE = 12
FEW, MANY, ANY = 60, 300, 1 << 60  # squares of degrees of a crowded state


STARS = "P(n)\nE(n,n)\n1 E(x,y)\n-0.6 E(x,y) ^ E(x,z)\n2 E(x,y) ^ E(y,x)\nE(x,y) => P(y)."  # by columns, and hard


def walkers_of(most: int | None, hard: bool = False) -> survey.LogicWalkers:
    """`most`: squares of degrees up to which sweeps cost what the true atoms cost; None: all sweeps are dense."""
    group = dft.symmetries(dft.markov_logic(STARS, domain={"n": PEOPLE}) if hard else smokers(PEOPLE))
    assert isinstance(group, RenamingSymmetries)
    asked = logic_question(group, (), "orbit")._asked
    ways = None
    if most is not None:
        r = compile_sparse(asked.group.model, asked.group.atom_orbits, asked.group.deferred)
        r.data.most_pairs[0] = most
        ways = (r, backwards(r))
    with patch.object(survey, "sparse_ways", lambda *_: ways) if ways else nullcontext():
        walkers = survey.logic_walkers(asked, "symmetric")
    assert isinstance(walkers, survey.LogicWalkers)
    assert walkers._sparse is ways  # none where the model is so small
    return walkers


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sweep_backwards_visits_predicates_in_reversed_order(seed: int) -> None:
    """F and G are those of single-site updates in that order."""
    r, group = plain(smokers(4))
    rng = np.random.default_rng(seed)
    world = random_world(r.split.source, rng, r)
    assert world is not None
    back, chain = backwards(r), chain_at(r, group, world)
    chain.order[:] = rng.permutation(4)
    chain, drawn = advance(back, chain, FOREVER, 1)
    visited = [
        s for kind in r.data.entries[::-1] for a in chain.order for s in sites(r, int(kind), int(a), chain.order)
    ]
    assert drawn == len(visited) == 4 * 4 + 2 * 4
    assert [s[0] for s in visited[:16]] == ["friends"] * 16
    chain.sum_g[0] = chain.sum_g[1]
    assert path_error(r, group, world, world_of(r, chain), visited, chain) < 1e-12
    assert list_error(r, chain) == 0.0


def test_crowded_states_are_swept_as_before() -> None:
    """Bit by bit, where every state is called crowded."""
    plainly, crowded = walkers_of(None), walkers_of(-1)
    states = plainly.starts((1,), 4, 10)
    one, other = (w.walk(states, 6, (2,)) for w in (plainly, crowded))
    assert all(np.array_equal(a, b) for a, b in zip(one.ends, other.ends, strict=True))
    assert np.array_equal(one.statistics, other.statistics)
    assert np.array_equal(one.log_density, other.log_density)


@pytest.mark.parametrize(("most", "hard"), [(FEW, False), (ANY, False), (MANY, True)])
def test_what_is_followed_is_right(most: int, hard: bool) -> None:
    """The tally is that of the state, F that of the state after the sweep, G a mean of probabilities."""
    walkers = walkers_of(most, hard)
    kinds = set()
    for k, bits in enumerate(walkers.starts((3,), 6, 10)):
        chain, again = (walkers._chain((4,), k, bits) for _ in range(2))
        swept = Sweeps(walkers._ways, chain, walkers._sparse)
        for way, sweeps in ((0, 1), (1, 1), (1, 2), (0, 3)):
            clear_sums(chain)
            swept.make(way, sweeps)
            kinds.add(swept._lists is not None)
            again.bits[:] = chain.bits
            recount(walkers._ways[0], again)
            np.testing.assert_allclose(chain.tally, again.tally, rtol=1e-12)
            g, f = chain.sum_g[1, 1:] / walkers._sizes, chain.sum_f[1, 1:] / walkers._sizes
            assert (g > 0).all()
            assert (g <= sweeps if hard else g < sweeps).all()
            assert violated(chain) == 0
            assert sweeps > 1 or np.allclose(f, walkers._last(chain), rtol=1e-12)
    assert kinds == ({True} if most == ANY else {True, False})


@pytest.mark.parametrize(("few", "hard"), [(FEW, False), (MANY, True)])
def test_both_have_the_same_means(few: int, hard: bool) -> None:
    """Of F and G over many sweeps, beside each other's errors."""
    means, errors = [], []
    for most in (None, few):
        walkers = walkers_of(most, hard)
        done = walkers.advance(walkers.starts((5,), 16, 10), 400, (6, most or 0))
        both = np.concatenate([done.f, done.g], axis=1)
        means.append(both.mean(axis=0))
        errors.append(both.std(axis=0, ddof=1) / 4)
    assert (np.abs(means[0] - means[1]) < 5 * np.hypot(*errors)).all()


def test_a_large_model_has_sparse_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the counts of sites and of work; not where the two engines have different sites, or pairs have no order."""
    from definetti.modes.logic import sweeps

    monkeypatch.setattr(sweeps, "sparse_engine", lambda asked, scan: r if scan == "symmetric" else "visits one by one")
    walkers = walkers_of(ANY)
    assert walkers._sparse is not None
    r = walkers._sparse[0]
    for sites_, scan, found in ((sweeps.FEWEST_SITES, "symmetric", True), (10, "symmetric", False),
                                (sweeps.FEWEST_SITES, "random", False)):  # fmt: skip
        assert (sweeps.sparse_ways(walkers.asked, sites_, scan) is not None) == found
    tied = replace(r, plan=replace(r.plan, ties=frozenset({2})))
    monkeypatch.setattr(sweeps, "sparse_engine", lambda *_: tied)
    assert sweeps.sparse_ways(walkers.asked, sweeps.FEWEST_SITES, "symmetric") is None
    monkeypatch.setattr(sweeps, "sparse_engine", lambda *_: r)
    monkeypatch.setattr(sweeps, "one_kernel", lambda *_: False)
    assert sweeps.sparse_ways(walkers.asked, sweeps.FEWEST_SITES, "symmetric") is None
