"""Sweeps of the relational kernel: transition matrices, what is visited, folding, queries, starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import small_theories as th
from plain_kernels import plain_model, start
from relational_worlds import atoms_of, chances, expected_chances, log_density, put_world, random_state, world_of

from definetti.errors import Unsatisfiable
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.samplers.logic.engine import Relational, advance, blank, compile_model, violations
from definetti.samplers.logic.queries import Query
from definetti.samplers.logic.tensors import state

# --- sweeps, as exact transition matrices of the kernel's own text ---


def matrices(r: Relational, order: tuple[int, ...]) -> list[np.ndarray]:
    """One matrix per update of a sweep that visits the constants in this order, by following both branches."""
    atoms = atoms_of(r.model)
    states = [{a: bool(i >> k & 1) for k, a in enumerate(atoms)} for i in range(2 ** len(atoms))]
    number = {tuple(w.values()): i for i, w in enumerate(states)}

    def fixed_order(streams, scratch, items, start, n):
        items[start : start + n] = order

    r.kernel.shuffle = fixed_order
    chain, found = blank(r), []
    for _ in range(r.free_sites):
        matrix = np.zeros((len(states), len(states)))
        clock, old = chain.clock.copy(), chain.order.copy()
        for i, world in enumerate(states):
            for branch in (False, True):
                put_world(r, chain, world)
                chain.clock[:], chain.order[:] = clock, old
                r.kernel.draw = lambda uniform, chance, branch=branch: branch
                assert advance(r, chain, 1) == 1
                chance = chain.chance[0] if branch else 1 - chain.chance[0]
                matrix[i, number[tuple(world_of(r, chain).values())]] += chance
        found.append(matrix)
    return found


@pytest.fixture(scope="module")
def two_smokers():
    model = th.smokers(2)
    atoms = atoms_of(model)
    log = [log_density(model, {a: bool(i >> k & 1) for k, a in enumerate(atoms)}) for i in range(2 ** len(atoms))]
    pi = np.exp(np.array(log) - max(log))
    sites = {order: matrices(plain_model(model, {}), order) for order in ((0, 1), (1, 0))}
    return model, atoms, pi / pi.sum(), sites


def swapped(atoms: list[tuple]) -> np.ndarray:
    """The permutation of states that exchanging the two people makes."""
    place = {a: k for k, a in enumerate(atoms)}
    moved = [place[(p, *(1 - x for x in at))] for p, *at in atoms]
    return np.array([sum((i >> moved[k] & 1) << k for k in range(len(atoms))) for i in range(2 ** len(atoms))])


def test_golden_marginals_by_enumeration(two_smokers):
    _, atoms, pi, _ = two_smokers
    truth = {("smokes", 0): 0.0672226226, ("cancer", 1): 0.1058381651, ("friends", 0, 1): 0.0094599192}
    for atom, value in truth.items():
        mean = sum(pi[i] for i in range(len(pi)) if i >> atoms.index(atom) & 1)
        assert abs(mean - value) < 1e-9


def test_a_sweep_leaves_the_distribution_alone(two_smokers):
    _, _, pi, sites = two_smokers
    for matrix_list in sites.values():
        for matrix in matrix_list:
            assert np.abs(pi @ matrix - pi).max() < 1e-12
        sweep = np.linalg.multi_dot(matrix_list)
        assert np.abs(sweep.sum(axis=1) - 1).max() < 1e-12
        assert (sweep > 0).all()


def test_symmetric_and_random_scans_commute_with_renaming_and_a_fixed_one_does_not(two_smokers):
    _, atoms, _, sites = two_smokers
    g = swapped(atoms)
    sweeps = [np.linalg.multi_dot(m) for m in sites.values()]
    symmetric = sum(sweeps) / 2
    uniform = sum(sites[0, 1]) / len(sites[0, 1])
    assert np.abs(symmetric[np.ix_(g, g)] - symmetric).max() < 1e-14
    assert np.abs(uniform[np.ix_(g, g)] - uniform).max() < 1e-14
    assert np.abs(sweeps[0][np.ix_(g, g)] - sweeps[0]).max() > 1e-3


def test_the_random_scan_draws_free_sites_uniformly():
    model = th.with_evidence(th.smokers(3), {"friends": {(0, 1): True, (2, 2): False}, "smokes": {(1,): True}})
    r = plain_model(model, {}, scan="random")
    every, hits = r.data.all_sites, {}
    for pick in range(every):
        chain, queue = blank(r), [pick]

        def pretend(streams, first, out, m, queue=queue):
            out[0] = (queue.pop() if queue else 0) / every + 1e-9

        r.kernel.uniforms = pretend
        d, c = r.data, chain
        _, e = r.kernel.fill_random(
            d.entries, d.words, d.sorts, c.order, c.coords, c.clock, c.streams, c.uniform, 1, 1024, 12, every
        )
        if not queue:
            p = int(d.entries[e, 0])
            atom = (list(model.predicates)[p], *map(int, c.coords[: len(model.shape(list(model.predicates)[p])), 0]))
            hits[atom] = hits.get(atom, 0) + 1
    known = {("friends", 0, 1), ("friends", 2, 2), ("smokes", 1)}
    assert set(hits) == set(atoms_of(model)) - known
    extra = hits.pop(("smokes", 0))  # a known site draws again; here the second draw is site 0
    assert extra == 1 + len(known) and set(hits.values()) == {1}


# --- what is visited ---


def visited(r: Relational, sweeps: int = 1) -> list[tuple]:
    """The sites of a sweep in the order of their updates."""
    chain, names, seen = blank(r), list(r.model.predicates), []
    state.seed_chain(chain, 5, 0)
    put_world(r, chain, dict.fromkeys(atoms_of(r.model), False))
    original = r.kernel.update

    def record(*args):
        p, m = args[-3], args[-2]
        arity = len(r.model.shape(names[p]))
        seen.extend((names[p], *map(int, args[5][:arity, i])) for i in range(m))
        return -1

    r.kernel.update = record
    advance(r, chain, 1 << 40, sweeps)
    r.kernel.update = original
    return seen


@pytest.mark.parametrize("scan", ["symmetric", "fixed"])
def test_each_free_atom_is_visited_once_a_sweep(scan):
    facts = {"friends": {(0, 1): True, (3, 3): False}, "cancer": {(i,): True for i in range(4)}}
    model = th.with_evidence(th.smokers(5), facts)
    model = replace(model, closed=frozenset({"smokes"}), unknown={"smokes": np.array([[2]], np.int32)})
    r = plain_model(model, {}, scan=scan)
    found = visited(r)
    known = {("friends", 0, 1), ("friends", 3, 3)} | {("cancer", i) for i in range(4)}
    known |= {("smokes", i) for i in range(5) if i != 2}
    assert sorted(found) == sorted(set(atoms_of(model)) - known)
    assert r.free_sites == len(found)
    second = visited(r, 2)[len(found) :]
    assert sorted(second) == sorted(found)
    assert (second == found) == (scan == "fixed")


def test_known_atoms_of_three_arguments_are_not_visited():
    facts = {(x, y, z): bool(z) for x, y, z in np.ndindex(3, 3, 3) if (x + 2 * y + z) % 4 == 0}
    model = th.with_evidence(th.zoo(3), {"t": facts})
    r = plain_model(model, {})
    chain = start(r, 1)
    before = r.atoms(chain, "t").copy()
    advance(r, chain, 1 << 40, 3)
    after = r.atoms(chain, "t")
    assert all(before[at] == after[at] == value for at, value in facts.items())
    found = {a for a in visited(r) if a[0] == "t"}
    assert found == {("t", *at) for at in np.ndindex(3, 3, 3) if at not in facts}


def test_late_sites_come_after_all_others():
    late = np.zeros((4, 4), dtype=bool)
    late[1] = True
    model = th.smokers(4)
    ordered = {name: model.predicates[name] for name in ("friends", "smokes", "cancer")}
    r = plain_model(replace(model, predicates=ordered), {}, late={"friends": late})
    found = visited(r)
    assert [p for p, *_ in found] == ["friends"] * 12 + ["smokes"] * 4 + ["cancer"] * 4 + ["friends"] * 4
    assert {a for _, a, *_ in found[-4:]} == {1} and len(set(found)) == 24


def test_a_sweep_can_be_cut_anywhere(compiled_zoo):
    r, _ = compiled_zoo
    whole, cut = start(r, 3), start(r, 3)
    advance(r, whole, 1 << 40, 3)
    done = 0
    while cut.clock[0] < 3:
        done += advance(r, cut, 7 + done % 5, 3 - int(cut.clock[0]))
    assert_same_chain(whole, cut)


# --- compiled and plain ---


def assert_same_chain(one, other) -> None:
    for name in ("bits", "clock", "streams", "order", "sum_f", "sum_g", "seen"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def zoo_orbits(model) -> dict[str, AtomOrbits]:
    """Every atom of the small predicates its own orbit, the others by classes and patterns."""
    every = np.arange(model.sorts["person"].size, dtype=np.int32)
    z = every % 2
    k = np.arange(model.sorts["kind"].size, dtype=np.int32)
    return {
        "s": AtomOrbits((every,), every[:, None]),
        "e": AtomOrbits((z, z), (100 + np.arange(8, dtype=np.int32)).reshape(2, 2, 2)),
        "t": AtomOrbits((z, z, z), (200 + np.arange(64, dtype=np.int32)).reshape(2, 2, 2, 8)),
        "of": AtomOrbits((z, k), (300 + np.arange(2 * k.size, dtype=np.int32)).reshape(2, k.size, 1)),
    }


def zoo_queries(model) -> list[Query]:
    n = model.sorts["person"].size
    odd, every = np.arange(n) % 2 == 1, np.ones(n, dtype=bool)
    path = th.And((th.atom("e", "x", "y"), th.atom("e", "y", "z")))
    either = th.Or((th.atom("s", "x"), th.Not(th.atom("e", "x", "x"))))
    return [
        Query(path, dict.fromkeys("xyz", "person"), {"x": odd, "y": every, "z": ~odd}),
        Query(either, {"x": "person"}, {"x": odd}),
        Query(path, dict.fromkeys("xyz", "person"), {"x": every, "y": every, "z": every}),
    ]


@pytest.fixture(scope="module")
def compiled_zoo():
    model = th.zoo(6)
    return tuple(ready(model, zoo_orbits(model), queries=zoo_queries(model)) for ready in (compile_model, plain_model))


def test_compiled_equals_plain_bit_for_bit(compiled_zoo):
    compiled, plain = compiled_zoo
    for chain in (0, 1):
        one, other = start(compiled, 11, chain), start(plain, 11, chain)
        advance(compiled, one, 1 << 40, 4)
        advance(plain, other, 1 << 40, 4)
        assert one.sum_f[1].sum() > 0
        assert_same_chain(one, other)


def test_all_orientations_agree_after_flips(compiled_zoo):
    for r in compiled_zoo:
        chain, rebuilt = start(r, 5), blank(r)
        advance(r, chain, 1 << 40, 3)
        put_world(r, rebuilt, world_of(r, chain))
        np.testing.assert_array_equal(chain.bits, rebuilt.bits)


def test_folding_adds_up_values_and_conditionals_by_orbit(compiled_zoo):
    r, _ = compiled_zoo
    chain = start(r, 2)
    advance(r, chain, 1 << 40, 1)
    s, e, t, of = (r.atoms(chain, name) for name in ("s", "e", "t", "of"))
    f = chain.sum_f[1, 1:]
    np.testing.assert_array_equal(f[: s.size], s)
    parity = np.arange(s.size) % 2
    for a, b in np.ndindex(2, 2):
        block = e[np.ix_(parity == a, parity == b)]
        same = np.equal.outer(np.flatnonzero(parity == a), np.flatnonzero(parity == b))
        assert f[100 + 4 * a + 2 * b] == block[~same].sum() and f[100 + 4 * a + 2 * b + 1] == block[same].sum()
    pattern = np.fromfunction(lambda x, y, z: (x == y) + 2 * (x == z) + 4 * (y == z), t.shape, dtype=int)
    cell = np.fromfunction(lambda x, y, z: x % 2 * 4 + y % 2 * 2 + z % 2, t.shape, dtype=int)
    np.testing.assert_array_equal(f[200:264], np.bincount((cell * 8 + pattern).ravel(), t.ravel(), 64))
    for a, k in np.ndindex(2, of.shape[1]):
        assert f[300 + a * of.shape[1] + k] == of[parity == a, k].sum()
    g = chain.sum_g[1, 300:308]
    assert abs(chain.sum_g[1, 301 : 301 + 2 * of.shape[1]].sum() - s.size) < 1e-9 and g.min() >= 0
    np.testing.assert_array_equal(chain.sum_g[2], chain.sum_f[1].astype(float) ** 2)


def test_queries_count_satisfying_tuples(compiled_zoo):
    r, _ = compiled_zoo
    chain = start(r, 2)
    advance(r, chain, 1 << 40, 1)
    e, s = r.atoms(chain, "e"), r.atoms(chain, "s")
    n = len(s)
    triples = [(x, y, z) for x, y, z in np.ndindex(n, n, n) if len({x, y, z}) == 3 and e[x, y] and e[y, z]]
    mixed = sum(x % 2 == 1 and z % 2 == 0 for x, _, z in triples)
    expected = [mixed, sum((s[x] or not e[x, x]) for x in range(1, n, 2)), len(triples)]
    assert chain.seen[1, r.query_places].tolist() == expected


# --- blocks, hard formulas, starts ---


def test_blocks_with_evidence():
    model = th.with_evidence(th.zoo(4), {"of": {(0, 1): True, (1, 0): False, (2, 0): False, (2, 2): False}})
    r = plain_model(model, {})
    assert r.free_sites == 4 + 16 + 64 + 2 + 1
    chain = start(r, 1)
    for _ in range(20):
        advance(r, chain, 1 << 40, 1)
        of = r.atoms(chain, "of")
        assert (of.sum(axis=1) == 1).all() and of[0, 1] and of[2, 1] and not of[1, 0]
    tensors = random_state(model, 3)
    tensors["of"] = np.array([[0, 1, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
    expected = expected_chances(model, tensors, "of", (1, 0))
    expected[0] = 0
    np.testing.assert_allclose(chances(r, tensors, "of", (1, 0)), expected / expected.sum(), atol=1e-12)


def test_a_value_is_drawn_as_often_as_its_chance_says(compiled_zoo):
    _, plain = compiled_zoo
    chances = np.array([9.0, 0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    drawn = [plain.kernel.draw_value(u, chances, 1, 6) for u in (np.arange(1000) + 0.5) / 1000]
    assert np.bincount(drawn, minlength=6).tolist() == [0, 250, 0, 500, 250, 0]
    assert plain.kernel.draw_value(1 - 2**-53, np.array([0.5, 0.5 - 1e-12, 0.0]), 0, 3) == 1


def test_blocks_that_evidence_contradicts_are_an_error():
    for facts in ({(0, 0): True, (0, 1): True}, {(0, k): False for k in range(3)}):
        with pytest.raises(Unsatisfiable, match="exactly one"):
            plain_model(th.with_evidence(th.zoo(2), {"of": facts}), {})


def test_hard_formulas_hold_at_the_start_and_ever_after():
    model = th.smokers(4, hard=True)
    unfriendly = tuple(f for f in model.formulas if f.weight != 4.6)
    r = plain_model(replace(model, formulas=unfriendly), {})
    chain = start(r, 4)
    moved = 0
    for _ in range(30):
        advance(r, chain, 1 << 40, 1)
        assert violations(r, chain) == 0
        e = r.atoms(chain, "friends")
        assert not ((e[:, :, None] & e[None]).any(axis=1) & ~e).any()
        moved += int(e.sum())
    assert moved > 0


def test_a_state_without_a_legal_value_is_an_error():
    body = th.And((th.atom("smokes", "x"), th.Not(th.atom("cancer", "x"))))
    model = replace(th.smokers(2), formulas=(th.rule(body, None, "person", "x"),))
    r = plain_model(model, {})
    with pytest.raises(Unsatisfiable, match="given start"):
        start(r, 1, atoms={p: np.zeros(model.shape(p), bool) for p in model.predicates})
    chain = blank(r)
    put_world(r, chain, {a: a[0] == "cancer" for a in atoms_of(model)})
    with pytest.raises(Unsatisfiable, match="probability zero"):
        advance(r, chain, 1)
    contradiction = th.And((th.atom("smokes", "x"), th.Not(th.atom("smokes", "x"))))
    r = plain_model(replace(model, formulas=(th.rule(contradiction, None, "person", "x"),)), {})
    with pytest.raises(Unsatisfiable, match="clash"):
        start(r, 1)


def test_starts_follow_the_formulas_that_speak_of_one_atom():
    base = th.smokers(200)
    one = th.Atom("cancer", (th.Constant("person", 0),))
    model = replace(base, formulas=(*base.formulas, th.rule(one, 50.0, "person", "")))
    r = plain_model(model, {})
    chain = start(r, 1)
    assert abs(r.atoms(chain, "friends").mean() - 1 / (1 + np.exp(4.6))) < 4 * np.sqrt(0.01 / 40000)
    assert r.atoms(chain, "cancer")[0] and r.atoms(chain, "cancer").mean() < 0.25
