"""Dense sweeps of crowded states: when they are made, and that nothing of a chain is lost on the way."""

from __future__ import annotations

from collections import defaultdict
from itertools import permutations

import numpy as np
import pytest
from small_theories import smokers, with_evidence
from sparse_worlds import plain, sites, stopped_and_not

import definetti as dft
from definetti.inference.logic.question import logic_question
from definetti.lumping.raster import raster_orders
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.protocol import Plan
from definetti.samplers.sparse.crowded import one_kernel, pairs_of
from definetti.samplers.sparse.engine import CROWDED, LOOKS, SWEEP, compile_sparse, tensor_of
from definetti.samplers.sparse.sampling import SparseSampling
from definetti.samplers.sparse.starts import drawn_chain
from definetti.symmetry.logic.renaming import RenamingSymmetries

PEOPLE = 12


class Full:
    """All atoms are true, or a share of them."""

    def __init__(self, model: MarkovLogic, share: float = 1.0) -> None:
        self.model, self.share = model, share

    def atoms(self, name: str) -> np.ndarray:
        return np.random.default_rng(len(name)).random(self.model.shape(name)) < self.share


def group_of(model: MarkovLogic) -> RenamingSymmetries:
    found = dft.symmetries(model)
    assert isinstance(found, RenamingSymmetries)
    return found


def run_of(model: MarkovLogic, most: int, share: float = 1.0) -> SparseSampling:
    group = group_of(model)
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    r.data.most_pairs[0] = most
    plan = Plan(chains=2, burn_in=2, sweeps=20, seed=5, workers=1, starts=[Full(model, share)] * 2)
    return SparseSampling(r, logic_question(group, (), "orbit")._asked, plan)


def test_a_crowded_run_is_the_dense_run() -> None:
    """Every sweep is dense: the draws are those of the dense engine with the same streams and starts, bit by bit."""
    run = run_of(smokers(PEOPLE), -1)
    for _ in run.steps():
        pass
    assert run.report()["dense_sweeps"] == 2 * (20 + 2)
    assert run.updates == 2 * 22 * (PEOPLE**2 + 2 * PEOPLE)
    engine = run._dense()
    from definetti.samplers.logic import engine as dense
    from definetti.samplers.logic.starts import at_state, first_state

    for k in range(2):
        start = first_state(engine, 5, k, {n: Full(run.group.model).atoms(n) for n in run.group.model.predicates})
        chain = at_state(engine, 5, k, start.bits)
        dense.advance(engine, chain, 1 << 40, 2)
        chain.sum_f[...], chain.sum_g[...] = 0, 0.0
        dense.advance(engine, chain, 1 << 40, 20)
        for name in run.group.model.predicates:
            assert np.array_equal(engine.atoms(chain, name), tensor_of(run.sparse, run._chains[k], name))
        draws, sizes = run.draws(), run.group.sizes
        weight = draws.lengths / draws.lengths.sum()
        np.testing.assert_allclose((weight[:, None] * draws.f[:, k]).sum(0), chain.sum_f[1, 1:] / (20 * sizes))
        assert draws.g is not None
        np.testing.assert_allclose((weight[:, None] * draws.g[:, k]).sum(0), chain.sum_g[1, 1:] / (20 * sizes))


def test_tracked_atoms_are_those_of_the_dense_run() -> None:
    """They are read from the bits after each sweep, however many sweeps are made before these become lists."""
    run = run_of(smokers(PEOPLE), -1)
    for _ in run.steps():
        pass
    from definetti.samplers.draws import EVERY
    from definetti.samplers.logic import engine as dense
    from definetti.samplers.logic.starts import at_state, first_state

    engine = run._dense()
    assert [length for length, _ in run._tracked] == [1] * (1 + 19 // EVERY)
    for k in range(2):
        start = first_state(engine, 5, k, {n: Full(run.group.model).atoms(n) for n in run.group.model.predicates})
        chain = at_state(engine, 5, k, start.bits)
        dense.advance(engine, chain, 1 << 40, 2)
        for number, (_, means) in enumerate(run._tracked):
            dense.advance(engine, chain, 1 << 40, 1 if number == 0 else EVERY)
            atoms = [engine.atoms(chain, name)[tuple(tuples.T)] for name, tuples, _ in run._atoms]
            assert np.array_equal(means[k], np.concatenate(atoms)) and 0 < means[k].mean() < 1


def test_it_ends_with_the_crowd() -> None:
    """From a third of all atoms the prior leads to few: the first sweeps are dense, the others are not."""
    run = run_of(smokers(PEOPLE), 200, share=0.3)
    for _ in run.steps():
        pass
    assert 2 <= run.report()["dense_sweeps"] < 2 * 22
    assert all(int(chain.clock[SWEEP]) == 22 for chain in run._chains)


def test_a_saved_run_goes_on() -> None:
    whole, second = stopped_and_not(lambda: run_of(smokers(PEOPLE), 60), 3)
    assert np.array_equal(whole.draws().f, second.draws().f)
    assert np.array_equal(whole.values(), second.values())


@pytest.mark.parametrize(
    "text",
    [
        "E(n,n)\n-1 E(x,y)\n0.2 E(x,y) ^ E(y,z) => E(x,z)",
        "E(n,n)\n-1 E(x,y)\n0.2 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x).",
        "L(u,n)\n-1 L(x,y)\n0.3 L(x,y) ^ L(z,y) ^ x != z",
        "E(n,n)\n-1 E(x,y)\n0.2 E(x,y) ^ E(y,x)",
        "R(n,n,k)\n-1 R(x,y,v)\n0.3 R(x,y,v) ^ R(y,z,v) => R(x,z,v)",
    ],
)
def test_both_engines_add_up_the_same_pairs(text: str) -> None:
    model = dft.markov_logic(
        text, domain={s: n for s, n in {"n": 4, "u": 3, "k": 2}.items() if f"{s})" in text or f"({s}," in text}
    )
    r, _ = plain(model)
    rng = np.random.default_rng(2)

    class Some:
        def atoms(self, name: str) -> np.ndarray:
            found = rng.random(model.shape(name)) < 0.4
            return found & found.T & ~np.eye(4, dtype=bool) if "!E" in text else found

    chain = drawn_chain(r, 1, 0, Some())

    class Engine:
        def atoms(self, _: object, name: str) -> np.ndarray:
            return tensor_of(r, chain, name)

    pairs = pairs_of(r, Engine(), chain)  # pyright: ignore
    assert pairs > 0
    chain.clock[LOOKS] = 1
    for most, seen in ((pairs, 0), (pairs - 1, 1)):
        r.data.most_pairs[0] = most
        r.kernel.advance(r.data, chain, 0 if not seen else 1, 1)
        with np.errstate(over="ignore"):
            assert bool(r.kernel.crowded(r.data, chain)) == bool(seen)
    assert chain.clock[CROWDED] == 1


def test_many_atoms_are_a_crowd_without_joins() -> None:
    """Mutual pairs touch no third constant, but a sparse sweep visits each true atom."""
    model = dft.markov_logic("E(n,n)\n-5 E(x,y)\n6 E(x,y) ^ E(y,x)", domain={"n": 20})
    r, _ = plain(model)
    for share, crowd in ((1.0, True), (0.01, False)):
        assert bool(r.kernel.crowded(r.data, drawn_chain(r, 1, 0, Full(model, share)))) == crowd


def test_one_kernel_has_one_schedule() -> None:
    """The orders in which the dense kernel visits the sites, read off it, are those of the sparse rows."""
    text = "P(n)\nE(n,n)\n-0.5 E(x,y)\n0.3 E(x,y) ^ P(x) => P(y)\n0.4 E(x,y) ^ E(y,z) => E(x,z)"
    group = group_of(dft.markov_logic(text, domain={"n": 2}))
    r, _ = plain(group.model, group=group)
    assert one_kernel(r, group.deferred)
    boxes, found = layout(group.model), []
    for order in permutations(range(2)):
        visited = [site for kind in r.data.entries for a in order for site in sites(r, int(kind), a, np.array(order))]
        found.append([boxes[name].literal(row)[0] for name, *row in visited])
    assert sorted(found) == sorted(list(seen) for _, seen in raster_orders(group, "symmetric"))
    assert len(found[0]) == 6


def test_different_schedules_are_not_mixed() -> None:
    """After warm-up only where both engines visit the sites in one order."""
    assert one_kernel(plain(smokers(6))[0], {})
    for text in (
        "E(n,n)\n-0.5 E(x,y)\n0.3 E(x,y) ^ E(x,z)",
        "E(n,n)\n-0.4 E(x,y)\n0.3 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x).",
        "E(n,n)\n-0.4 E(x,y)\nE(x,y) ^ E(y,z) => E(x,z).",
        "R(n,n,k)\n-0.5 R(x,y,v)\n0.3 R(x,y,v) ^ R(y,z,v) => R(x,z,v)",
    ):
        assert not one_kernel(
            plain(dft.markov_logic(text, domain={"n": 9, "k": 2} if "k)" in text else {"n": 9}))[0], {}
        )
    few = {(x, y): False for x in range(9) for y in range(9) if x > 0 or y == 0}  # the rest is visited by a list
    r, group = plain(with_evidence(smokers(9), {"friends": few}))
    assert not one_kernel(r, group.deferred)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("late", ["loops", "cancer of a known smoker", "pairs"])
def test_what_is_drawn_after_all_others_has_any_order(late: str) -> None:
    """Given the others it is independent: what comes before it has the same orders in both engines."""
    text, known = "P(n)\nE(n,n)\n-5 E(x,y)\n6 E(x,y) ^ E(y,x)\n0.2 E(x,y) ^ P(x)", {}
    if late == "cancer of a known smoker":
        text = "P(n)\nQ(n)\nE(n,n)\n0.3 P(x) => Q(x)\n0.3 E(x,y) ^ P(x) => P(y)\n0.4 E(x,y) ^ E(y,z) => E(x,z)"
        known = {"P": {(0,): True}}
    if late == "pairs":
        text = "P(n)\nE(n,n)\n-5 E(x,y)\n0.2 E(x,y) ^ P(x)\n0.3 P(x)"
    group = group_of(with_evidence(dft.markov_logic(text, domain={"n": 2}), known))
    r, _ = plain(group.model, group=group)
    after = sum(int(mask.sum()) for mask in group.late().values())
    assert after
    assert one_kernel(r, group.deferred)
    boxes = layout(group.model)
    mine, theirs = defaultdict[tuple[int, ...], float](float), defaultdict[tuple[int, ...], float](float)
    for order in permutations(range(2)):
        visited = [site for kind in r.data.entries for a in order for site in sites(r, int(kind), a, np.array(order))]
        seen = [boxes[name].literal(row)[0] for name, *row in visited]
        mine[(*seen[:-after], *sorted(seen[-after:]))] += 0.5
    for weight, found in raster_orders(group, "symmetric"):
        theirs[(*found[:-after], *sorted(found[-after:]))] += weight
    assert mine == pytest.approx(theirs)
