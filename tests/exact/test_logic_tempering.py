"""Parallel tempering of the relational engine: exchanges leave the product of the levels unchanged, sweeps are those of
the levels, ladders are placed for equal rejection, round trips are counted; planted bugs are seen."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
import pytest
from plain_kernels import plain_kernel, plain_model, start
from relational_worlds import atoms_of, energies, put_world

import definetti as dft
from definetti.lumping.logic_branches import MARK
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.kernels.logic import levels as kernels
from definetti.samplers.ladder import FEWEST_TRIPS, Ladder, level_count, penalty, placed
from definetti.samplers.logic import engine
from definetti.samplers.logic.engine import Relational, advance, blank
from definetti.samplers.logic.levels import recount
from definetti.samplers.logic.tempering import Rungs, blank_rungs, first_rungs, level_at, moved_rungs, shared_arrays

THEORY = "thing = {A, B}\nP(thing)\n!P(A) v !P(B).\n0.9 P(x)\n-0.4 P(A) v P(B)\n0.3 P(B)\n"
LEVELS = np.array([0.0, 0.6, 1.0])


def model():
    return read_mln_text(THEORY)


def rungs_at(r: Relational, worlds: list[dict[tuple, bool]]) -> Rungs:
    made, chain = blank_rungs(r, shared_arrays(r, LEVELS)), blank(r)
    for k, world in enumerate(worlds):
        put_world(r, chain, world)
        recount(r, chain)
        made.bits[k], made.tally[k] = chain.bits, chain.tally
    return made


def exchange_error(r: Relational, parity: int) -> float:
    """max |πP − π| of one round of exchanges on the product of the levels, every branch followed."""
    atoms = atoms_of(r.model)
    worlds = [dict(zip(atoms, v, strict=True)) for v in itertools.product((False, True), repeat=len(atoms))]
    soft, broken = map(np.array, zip(*(energies(r.model, w) for w in worlds), strict=True))
    law = []
    for level in LEVELS:
        log = level * soft - np.where(broken > 0, penalty(level) * np.maximum(broken, 1), 0.0)
        law.append(np.exp(log) / np.exp(log).sum())
    expected = np.einsum("i,j,k->ijk", *law)
    flow = np.zeros_like(expected)
    for joint in zip(*np.nonzero(expected), strict=True):
        for outcome in (True, False):
            weight = [1.0]

            def happens(uniform, chance, outcome=outcome, weight=weight):
                weight[0] *= chance if outcome else 1.0 - chance
                return outcome

            r.kernel.happens = happens
            rungs, chain = rungs_at(r, [worlds[i] for i in joint]), blank(r)
            rungs.counters[0] = parity
            with np.errstate(over="ignore"):
                r.kernel.exchange(
                    rungs.levels, rungs.weights, rungs.tally, rungs.soft, rungs.replica, rungs.heading,
                    rungs.counters, rungs.rejected, chain.streams, chain.uniform,
                )  # fmt: skip
            assert rungs.counters[0] == 1 - parity
            flow[tuple(joint[i] for i in rungs.replica)] += expected[joint] * weight[0]
    return float(np.abs(flow - expected).max())


@pytest.mark.parametrize("parity", [0, 1])
def test_exchanges_leave_the_levels_unchanged(parity: int) -> None:
    assert exchange_error(plain_model(model(), {}), parity) < 1e-12


MUTANTS = {
    "every exchange is made": (r"return 1.0 if swap >= stay else math.exp\(swap - stay\)", "return 1.0"),
    "violations are free": (r"\(level\[PENALTY\] \* broken if broken > 0.5 else 0.0\)", "0.0"),
    "levels mixed up": (r"stay = density_at\(low, soft\[a\]", "stay = density_at(high, soft[a]"),
    "a weight is left out": (r"weights\[s\] \* tally", "tally"),
    "the other way round": (r"math.exp\(swap - stay\)", "math.exp(stay - swap)"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    def kernel(text: str) -> ModuleType:
        changed, places = re.subn(*MUTANTS[name], Path(str(kernels.__file__)).read_text(encoding="utf-8"))
        assert places, f"the kernel no longer contains {MUTANTS[name][0]!r}"
        return plain_kernel(text + changed.split(MARK)[1])  # the later definition counts

    with np.errstate(all="ignore"):
        r = engine.compile_model(model(), {}, load=kernel)
        try:
            error = max(exchange_error(r, parity) for parity in (0, 1))
        except OverflowError:
            error = 1.0
    assert error > 1e-3


def test_a_sweep_is_one_on_every_level() -> None:
    """With a fixed order the draws are those of `advance` on the levels, one after the other."""
    r = plain_model(model(), {}, scan="fixed")
    chain, other = start(r, 3), start(r, 3)
    rungs = first_rungs(r, shared_arrays(r, LEVELS), chain)
    other.streams[:] = chain.streams
    states = rungs.bits.copy()
    with np.errstate(over="ignore"), patch.object(r.kernel, "exchange", lambda *arrays: None):
        assert r.kernel.temper(r.data, chain, rungs, 1) == len(LEVELS) * r.free_sites
    for k, level in enumerate(LEVELS):
        other.bits[:] = states[k]
        advance(level_at(r, float(level)), other, 1 << 40, 1)
        np.testing.assert_array_equal(other.bits, rungs.bits[k])
        recount(r, other)
        np.testing.assert_allclose(rungs.tally[k], other.tally, atol=1e-12)
    np.testing.assert_array_equal(chain.streams, other.streams)


def test_round_trips_are_counted_at_the_top() -> None:
    r = plain_model(model(), {})
    rungs = blank_rungs(r, shared_arrays(r, LEVELS))
    seen = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 1, 2], [0, 2, 1], [1, 2, 0], [2, 1, 0], [0, 1, 2]):
        rungs.replica[:] = order
        r.kernel.note_heading(rungs.replica, rungs.heading, rungs.counters)
        seen.append(int(rungs.counters[1]))
    assert seen == [0, 0, 0, 1, 1, 2, 2, 3]


def test_moved_ladders_keep_the_top() -> None:
    r = plain_model(model(), {})
    rungs = first_rungs(r, shared_arrays(r, LEVELS), start(r, 3))
    rungs.replica[:] = [1, 2, 0]
    made = moved_rungs(r, shared_arrays(r, np.array([0.0, 0.3, 0.5, 0.99, 1.0])), rungs)
    np.testing.assert_array_equal(made.bits, rungs.bits[[1, 1, 2, 2, 0]])
    np.testing.assert_array_equal(made.tally, rungs.tally[[1, 1, 2, 2, 0]])


def test_levels_are_placed_for_equal_rejection() -> None:
    """A barrier that lies at 0.5 draws the levels there."""

    def rejection(levels: np.ndarray) -> np.ndarray:
        return 3.0 * np.diff(1 / (1 + np.exp(-20 * (levels - 0.5))))

    levels = np.linspace(0.0, 1.0, 8)
    for _ in range(6):
        levels = placed(levels, rejection(levels), level_count(rejection(levels)))
    found = rejection(levels)
    assert level_count(found) == len(levels) == 8 and levels[0] == 0.0 and levels[-1] == 1.0
    assert (np.diff(levels) > 0).all() and found.max() < 1.5 * found.min()


def test_few_round_trips_are_not_trusted() -> None:
    few = Ladder(LEVELS, np.array([0.5, 0.4]), np.array([9.0, 9.0]), FEWEST_TRIPS - 1)
    assert [n.kind for n in few.notices()] == ["not-mixed"]
    assert few.report()["barrier"] == pytest.approx(0.9) and few.report()["round_trips"] == FEWEST_TRIPS - 1
    assert not Ladder(LEVELS, np.array([0.5, 0.4]), np.array([9.0, 9.0]), FEWEST_TRIPS).notices()


def test_log_z_by_thermodynamic_integration() -> None:
    """The value is within its error of the exact one; ladders of penalties (hard formulas) give none."""
    text = "person = {A,B,C,D}\nS(person)\nF(person,person)\n0.5 S(x)\n1.1 F(x,y) ^ S(x) => S(y)\n-0.7 F(x,y)\n"
    model = dft.markov_logic(text, "S(D)\nF(A,B)")
    found = dft.marginals(model, sampler="tempering", sweeps=400, seed=3).run["log_z"]
    assert abs(found["value"] - dft.exact(model).log_z) < 4 * found["mcse"] < 0.2
    hard = dft.markov_logic(text + "S(x) ^ S(y) ^ F(x,y) => F(y,x).\n")
    assert "log_z" not in dft.marginals(hard, sampler="tempering", sweeps=40, seed=3).run


def test_the_rule_of_integration_is_exact_for_cubics() -> None:
    from definetti.samplers.log_z import integral

    levels = np.array([0.0, 0.1, 0.35, 0.8, 1.0])
    mean = 2 - 3 * levels + levels**2 + 4 * levels**3
    slope = -3 + 2 * levels + 12 * levels**2
    assert integral(levels, mean, slope) == pytest.approx(2 - 1.5 + 1 / 3 + 1)
