"""Dense sweeps of crowded states: when they are made, and that nothing of a chain is lost on the way."""

from __future__ import annotations

import numpy as np
import pytest
from small_theories import smokers
from sparse_worlds import plain, stopped_and_not

import definetti as dft
from definetti.inference.logic.question import logic_question
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.protocol import Plan
from definetti.samplers.sparse import sampling
from definetti.samplers.sparse.crowded import pairs_of
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


def run_of(model: MarkovLogic, most: int, share: float = 1.0, sweeps: int = 20) -> SparseSampling:
    group = group_of(model)
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    r.data.most_pairs[0] = most
    plan = Plan(chains=2, burn_in=2, sweeps=sweeps, seed=5, workers=1, starts=[Full(model, share)] * 2)
    return SparseSampling(r, logic_question(group, (), "orbit")._asked, plan)


STARS = "P(n)\nE(n,n)\n1 E(x,y)\n-0.6 E(x,y) ^ E(x,z)\n2 E(x,y) ^ E(y,x)\nE(x,y) => P(y)."
TRIANGLES = "E(n,n)\n-0.2 E(x,y)\n0.2 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x)."
VALUES = "R(n,n,k)\n-1 R(x,y,v)\n0.1 R(x,y,v) ^ R(y,z,v) => R(x,z,v)\n0.3 R(x,y,v) ^ R(x,y,w) ^ v != w"


@pytest.mark.parametrize("text", [None, STARS, TRIANGLES, pytest.param(VALUES, marks=pytest.mark.slow)])
def test_a_crowded_run_is_the_dense_run(text: str | None) -> None:
    """Every sweep is dense: the draws are those of the dense engine with the same streams and starts, bit by bit."""
    model = smokers(PEOPLE) if text is None else dft.markov_logic(text, domain=sizes_of(text, PEOPLE))
    run = run_of(model, -1, share=0.0 if text == TRIANGLES else 1.0)
    for _ in run.steps():
        pass
    run._make_lists()
    assert run.report()["dense_sweeps"] == 2 * (20 + 2)
    assert run.updates == 2 * 22 * run.sparse.free_sites
    engine = run._dense()
    from definetti.samplers.logic import engine as dense
    from definetti.samplers.logic.starts import at_state, first_state

    full = Full(run.group.model, 0.0 if text == TRIANGLES else 1.0)
    for k in range(2):
        start = first_state(engine, 5, k, {n: full.atoms(n) for n in run.group.model.predicates})
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


def sizes_of(text: str, n: int) -> dict[str, int]:
    return {"n": n, "k": 2} if "k)" in text else {"n": n}


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


@pytest.mark.parametrize("most", [60, -1])
def test_a_saved_run_goes_on(most: int) -> None:
    whole, second = stopped_and_not(lambda: run_of(smokers(PEOPLE), most), 3)
    assert np.array_equal(whole.draws().f, second.draws().f)
    assert np.array_equal(whole.values(), second.values())


def test_a_saved_run_with_listed_sites_goes_on() -> None:
    """Loops are drawn after all others: their order in the last sweep is not saved, so it may not matter."""
    text = "P(n)\nE(n,n)\n-1 E(x,y)\n2 E(x,y) ^ E(y,x)\n0.2 E(x,y) ^ P(x)"
    whole, second = stopped_and_not(lambda: run_of(dft.markov_logic(text, domain={"n": PEOPLE}), -1), 3)
    assert np.array_equal(whole.draws().f, second.draws().f)
    assert np.array_equal(whole.values(), second.values())


def test_known_atoms_over_a_small_sort_stay_known() -> None:
    """They are written into the formulas of the sparse engine; the bits of a crowded state had them false: .1485
    ± .0032 where .8791 is right."""
    text = "k = {A, B}\nS(k)\nR(n,n,k)\n-1 R(x,y,v)\n1 S(v) ^ R(x,y,v) ^ R(x,z,v)"
    model = dft.markov_logic(text, domain={"n": 3}, evidence={"S(A)": True, "S(B)": False})
    truth = dft.exact(model)
    for most in (-1, 1 << 40):
        run = run_of(model, most, sweeps=2000)
        for _ in run.steps():
            pass
        means = run.draws().f.mean(axis=(0, 1))
        for orbit, mean in zip(run.group.orbits, means, strict=True):
            assert abs(mean - np.asarray(truth[orbit.representative].probability)) < 0.05
        assert run.values()[:, :2].tolist() == [[1, 0]] * len(run._chains)


def test_a_saved_watch_goes_on() -> None:
    """What dense sweeps left free before a run was saved is not watched in what follows; nor does it name more."""
    whole, second = stopped_and_not(lambda: run_of(dft.markov_logic(STARS, domain={"n": 4}), -1), 6)
    assert np.array_equal(whole.draws().f, second.draws().f)
    assert [notice.message for notice in whole.notices()] == [notice.message for notice in second.notices()]
    for one, other in zip(whole._chains, second._chains, strict=True):
        assert np.array_equal(one.live, other.live)
        assert np.array_equal(one.systems[0].watch_length, other.systems[0].watch_length)


def test_different_kernels_are_chosen_in_warm_up_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sweeps may differ there, and a state that is crowded at its end is written as lists."""
    monkeypatch.setattr(sampling, "one_kernel", lambda _: False)
    run = run_of(smokers(PEOPLE), -1)
    for _ in run.steps():
        pass
    assert run.report()["dense_sweeps"] == 2 * 2
    assert run._crowds == [None, None]
    assert all(int(chain.clock[SWEEP]) == 22 for chain in run._chains)


@pytest.mark.parametrize("most", [60, -1])
def test_looking_at_a_crowd_leaves_it_alone(most: int) -> None:
    """A crowded state stays as bits, and its lists are made anew for those who read them."""
    plainly, looked = (run_of(smokers(PEOPLE), most) for _ in range(2))
    seen = set()
    for _, _ in zip(plainly.steps(), looked.steps(), strict=True):
        assert np.array_equal(looked.values(), plainly.values())
        for k, crowd in enumerate(looked._crowds):
            seen.add(crowd is not None)
            if crowd is not None:
                tensors = [looked._dense().atoms(crowd.bits, name) for name in looked.group.model.predicates]
                assert np.array_equal(looked.values()[k], np.concatenate([x.ravel() for x in tensors]))
        looked.state()
    assert seen == ({True} if most < 0 else {True, False})
    assert np.array_equal(plainly.draws().f, looked.draws().f)


@pytest.mark.parametrize(("weight", "frozen"), [(30, True), (-5, False)])
def test_what_dense_sweeps_cannot_move_is_seen(weight: float, frozen: bool) -> None:
    """Each constant that some edge leads to has the property, and with this weight there are always such edges."""
    run = run_of(dft.markov_logic(STARS.replace("1 E(x,y)", f"{weight} E(x,y)", 1), domain={"n": 3}), -1)
    for _ in run.steps():
        pass
    assert run.report()["dense_sweeps"] == 2 * (20 + 2)
    found = [notice for notice in run.notices() if notice.kind == "frozen"]
    assert ["3 atoms could not move" in notice.message for notice in found] == [True] * frozen


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


@pytest.mark.parametrize(
    ("text", "most"), [(STARS, 70), (TRIANGLES, 10), pytest.param(VALUES, 40, marks=pytest.mark.slow)]
)
def test_a_run_of_both_sweeps_has_the_right_means(text: str, most: int) -> None:
    """Three constants, exact by enumeration, F and G; about half of the kept sweeps are dense."""
    model = dft.markov_logic(text, domain=sizes_of(text, 3))
    exact = dft.exact(model)
    group = group_of(model)
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    r.data.most_pairs[0] = most
    run = SparseSampling(
        r, logic_question(group, (), "orbit")._asked, Plan(chains=32, burn_in=20, sweeps=150, seed=5, workers=1)
    )
    for _ in run.steps():
        pass
    share = run.report()["dense_sweeps"] / (32 * 170)
    assert 0.2 < share < 0.8, share
    draws = run.draws()
    weight = draws.lengths / draws.lengths.sum()
    truth = np.array([exact[orbit.representative].probability for orbit in group.orbits])
    for found in (draws.f, draws.g):
        means = np.einsum("t,tko->ko", weight, found)
        error = means.std(axis=0, ddof=1) / np.sqrt(32)
        assert (np.abs(means.mean(axis=0) - truth) < 4.9 * error + 1e-12).all()
