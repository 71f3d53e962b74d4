"""The sparse sampler: the law of every visit with all ticks followed, and F and G along every path, by brute force."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_theories import smokers, with_evidence
from sparse_worlds import (
    ROUNDING,
    chain_at,
    exact_theories,
    list_error,
    literal,
    plain,
    random_world,
    stopped_and_not,
    visit_error,
    world_of,
    worst_error,
)

import definetti as dft
from definetti.cli.main import run
from definetti.constraints.logic.forced_atoms import with_forced_atoms
from definetti.inference.logic.question import logic_question
from definetti.integer_rows import increasing
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.protocol import Plan
from definetti.samplers.sparse.choice import verdict
from definetti.samplers.sparse.data import LIST
from definetti.samplers.sparse.engine import advance, blank, compile_sparse, put_lists
from definetti.samplers.sparse.sampling import SparseSampling

FORMS = {
    "reciprocity": "E(node,node)\n-0.7 E(x,y)\n0.9 E(x,y) ^ E(y,x)",
    "homophily": "G(node)\nE(node,node)\n0.3 G(x)\n-0.8 E(x,y)\n0.5 E(x,y) ^ E(y,x)\n0.6 E(x,y) ^ (G(x) <=> G(y))",
    "shared neighbours": "E(node,node)\n-0.7 E(x,y)\n0.4 E(x,y) ^ E(x,z) ^ E(y,z) ^ x != y ^ x != z ^ y != z",
    "irreflexive": "E(node,node)\n-0.7 E(x,y)\n0.4 E(x,y) ^ E(x,z) ^ E(y,z)\n!E(x,x).",
    "cycles": "E(node,node)\n-0.7 E(x,y)\n-0.4 E(x,y) ^ E(y,z) ^ E(z,x)",
    "in-stars": "E(node,node)\n-0.5 E(x,y)\n0.3 E(x,z) ^ E(y,z)",
    "out-stars, by columns": "E(node,node)\n-0.5 E(x,y)\n0.3 E(x,y) ^ E(x,z)",
    "two predicates": "G(node)\nE(node,node)\nD(node,node)\n-0.5 E(x,y)\n-0.4 D(x,y)\n0.6 E(x,y) => D(y,x)\n"
    "0.3 E(x,y) ^ D(y,z) => D(x,z)\n0.2 D(x,y) ^ G(y)",
    "two sorts": "A(user)\nLikes(user,item)\nB(item)\n-0.5 Likes(u,i)\n0.4 A(u) ^ Likes(u,i) => B(i)\n"
    "0.3 Likes(u,i) ^ Likes(w,i) ^ u != w",
    "hard": "G(node)\nE(node,node)\n-0.5 E(x,y)\n0.3 G(x)\n0.4 E(x,y) ^ E(y,z) => E(x,z)\nE(x,y) => G(y).",
    "hard transitivity": "E(node,node)\n-0.5 E(x,y)\nE(x,y) ^ E(y,z) => E(x,z).",
    "undirected": "E(node,node)\n-0.4 E(x,y)\n0.3 E(x,y) ^ E(y,z) ^ E(x,z)\nE(x,y) => E(y,x).\n!E(x,x).",
    "undirected, with loops": "E(node,node)\n-0.3 E(x,y)\n0.2 E(x,y) ^ E(y,z) ^ E(x,z) ^ x != y ^ y != z ^ x != z\n"
    "0.4 E(x,x)\nE(x,y) <=> E(y,x).",
    "undirected homophily": "G(node)\nE(node,node)\nD(node,node)\n0.3 G(x)\n-0.4 E(x,y)\n0.5 E(x,y) ^ (G(x) <=> G(y))\n"
    "-0.6 D(x,y)\n0.3 D(x,y) => E(x,y)\n0.2 D(x,y) ^ E(y,z)\nE(x,y) => E(y,x).\n!E(x,x).\n!D(x,x).",
    "several weights": "E(node,node)\n-0.5 E(x,y)\n0.31 E(x,y) ^ E(y,x)\n0.27 E(x,y) ^ E(y,z) => E(x,z)\n"
    "-0.13 E(x,y) ^ E(y,z) ^ E(z,x)",
}


def theory(name: str) -> MarkovLogic:
    sizes = {"user": 2, "item": 2} if "user" in FORMS[name] else {"node": 3}
    return dft.markov_logic(FORMS[name], domain=sizes)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_exact(name: str) -> None:
    r, group = plain(theory(name))
    assert worst_error(r, group, 2, 1) < ROUNDING
    assert [s.side for s in r.plan.systems] == [1 if "columns" in name else 0] * len(r.plan.systems)


def test_nothing_to_draw() -> None:
    """Hard formulas settle every atom."""
    text = "G(node)\nE(node,node)\n-6 E(x,y)\n0.3 E(x,y) ^ E(y,z) => E(x,z)\n!E(x,y) ^ !G(x)."
    r, group = plain(with_forced_atoms(dft.markov_logic(text, domain={"node": 3})))
    assert len(r.data.entries) == r.free_sites == 0
    assert advance(r, blank(r), 1 << 40, 2)[1] == 0
    assert worst_error(r, group, 1, 1) < ROUNDING


@pytest.mark.parametrize("transitive", [True, False])
def test_friends_and_smokers(transitive: bool) -> None:
    """At a low prior, where every branch is taken."""
    r, group = plain(smokers(3, transitive))
    assert worst_error(r, group, 2, 1) < ROUNDING


def test_evidence() -> None:
    """Known atoms are no sites: true ones stand in the lists; classes of constants split."""
    known = {"friends": {(0, 1): True, (1, 0): False, (2, 2): True, (1, 2): True}, "smokes": {(1,): True}}
    r, group = plain(with_evidence(smokers(3), known))
    assert len(group.sizes) > 6
    assert worst_error(r, group, 3, 2) < ROUNDING
    assert len(r.plan.sorts) + 1 in r.data.entries  # cancer of a known smoker is drawn after the others


# --- random theories -------------------------------------------------------------------------------------------------


def random_theory(seed: int) -> str:
    """Two unary and two binary predicates, two to four formulas of up to three variables."""
    rng = np.random.default_rng(seed)
    lines = ["P(node)", "Q(node)", "E(node,node)", "D(node,node)", f"{rng.normal():.3f} E(x,y)"]
    for _ in range(rng.integers(1, 4)):
        names = "xyz"[: rng.integers(1, 4)]
        parts = [literal(rng, names) for _ in range(rng.integers(2, 4))]
        lines.append(f"{rng.normal():.3f} " + f" {rng.choice(['v', '^'])} ".join(parts))
    return "\n".join(lines)


@pytest.mark.parametrize("block", range(4))
def test_random_theories(block: int) -> None:
    """Those that the generator covers are exact; two constants, so that every coincidence is met."""
    assert len(exact_theories(random_theory, {"node": 2}, range(25 * block, 25 * block + 25))) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_theories_of_three_constants(seed: int) -> None:
    exact_theories(random_theory, {"node": 3}, [1000 + seed])


# --- planted mistakes ------------------------------------------------------------------------------------------------

MUTANTS = {
    "sites that have been visited get new candidates": ("if s.node[b, POS] > s.node[y, POS]:", "if True:"),
    "a falling chance keeps its candidates": ("and not draw(streams, q / p)", "and False"),
    "a rising chance makes no candidates": (", faster - rate) == 0", ", faster - rate) == 5"),
    "ticks for no site count": ("& EXCLUDED:\n        s.node[b, MARKS] |= C", "& 64:\n        s.node[b, MARKS] |= C"),
    "the diagonal stays in the sums of classes": ("s.node[a, MARKS] = EXCLUDED", "s.node[a, MARKS] = 0"),
    "G does not follow the touched sites": ("s.node[b, ORBIT], q - p)", "s.node[b, ORBIT], 0.0)"),
    "a flip back does not take its supports away": ("I(1) if value else I(-1))", "I(1))"),
    "coincidences are counted twice": ("] - d.steps[0, ", "] + d.steps[0, "),
    "the loop does not tell the rest of its row": ("        loop_delta_0(d, c, s, a,", "        max(0,"),
    "classes do not follow the degree": ("    change_class(c.pool, c.blocks, s, x,", "    max(0,"),
}  # fmt: skip


UNDIRECTED_MUTANTS = {
    "a pair is drawn from both its ends": ("not True or s.node[b, POS] > s.node[a, POS]", "True"),
    "a stays in its class": ("        leave_class(c.pool, s, a)\n", "        pass\n"),
    "only one of the two atoms counts": ("        sum_g[NOW, s.mirror[o]] += p\n", "        pass\n"),
    "the classes stay empty": (
        "            join_class(c.pool, c.blocks, s, b, class_key_0",
        "            max(0, class_key_0",
    ),
}


LIVELY = """
Smokes(person)
Friends(person,person)
0.3 !Smokes(x)
0.4 !Friends(x,y)
1.1 Friends(x,y) ^ Smokes(x) => Smokes(y)
0.9 Friends(x,y) ^ Friends(y,z) => Friends(x,z)
"""


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_mistakes_are_seen(name: str) -> None:
    """In a theory in which every branch has a fair chance."""
    model = dft.markov_logic(LIVELY, domain={"person": 3})
    known = with_evidence(model, {"Friends": {(0, 1): True, (1, 0): False}})
    assert any(seen(theory, MUTANTS[name]) for theory in (model, known))


@pytest.mark.parametrize("name", UNDIRECTED_MUTANTS)
def test_planted_mistakes_of_unordered_pairs_are_seen(name: str) -> None:
    assert seen(theory("undirected"), UNDIRECTED_MUTANTS[name])


def seen(model: MarkovLogic, change: tuple[str, str]) -> bool:
    """Whether the judge finds a kernel with this change wrong."""
    r, group = plain(model, change)
    try:
        return worst_error(r, group, 3, 1) > 1e-6
    except (AssertionError, IndexError):  # lists that no longer fit the state
        return True


def test_evidence_on_unordered_pairs() -> None:
    """Known pairs are no sites in the row of either end; classes of constants split."""
    model = dft.markov_logic(FORMS["undirected"], domain={"node": 4})
    known = {"E": {(0, 1): True, (1, 0): True, (2, 3): False, (3, 2): False}}
    r, group = plain(with_evidence(model, known))
    assert r.free_sites == 4
    assert worst_error(r, group, 3, 2) < ROUNDING


def test_pairs_of_starts_are_sorted_not_hashed(cpu_limit) -> None:
    """Dense starts of large models have millions: `np.unique` took six seconds for these."""
    rng = np.random.default_rng(1)
    for values in (rng.integers(0, 50, 80), np.arange(3), np.array([7, 7]), np.zeros(0, np.int64)):
        assert np.array_equal(increasing(values), np.unique(values))
    with cpu_limit(2):
        assert len(increasing(rng.integers(0, 10**12, 4_000_000))) > 3_999_000


def test_lists_of_a_start_are_those_of_its_pairs() -> None:
    """In the order of the pairs, those by the second argument too, also of more constants than 16 bits count."""
    rng, n = np.random.default_rng(2), 70_000
    model = dft.markov_logic("E(n,n)\n-9 E(x,y)\n0.1 E(x,y) ^ E(y,x)", domain={"n": n})
    r, _ = plain(model)
    keys = np.sort(rng.choice(n * n, 5000, replace=False))
    rows = np.stack([keys // n, keys % n], axis=1)
    rows = rows[rows[:, 0] != rows[:, 1]]
    chain = blank(r)
    parts = [put_lists(chain, int(r.data.lists[j]), rows[:, j], rows[:, 1 - j], n) for j in (0, 1)]
    whole = np.concatenate(parts)
    for side in (0, 1):
        for x in rows[::500, side]:
            h = int(r.data.lists[side]) + LIST * int(x)
            found = whole[chain.head[h] : chain.head[h] + chain.head[h + 1]]
            assert found.tolist() == rows[rows[:, side] == x, 1 - side].tolist()


# --- compiled --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def people() -> MarkovLogic:
    return smokers(12)


def test_compiled_is_the_text(people: MarkovLogic) -> None:
    """Bit by bit over some sweeps; lists, classes and counts are those of the state."""
    group = dft.symmetries(people)
    world = random_world(people, np.random.default_rng(4))
    assert world is not None
    slow, _ = plain(people, group=group)
    fast = compile_sparse(group.model, group.atom_orbits, shuffled=False)
    chains = [chain_at(r, group, world) for r in (slow, fast)]
    for k, r in enumerate((slow, fast)):
        chains[k], drawn = advance(r, chains[k], 1 << 40, 3)
        assert drawn == 3 * fast.free_sites == 3 * (12 * 12 + 24)
    assert np.array_equal(chains[0].types, chains[1].types)
    assert world_of(slow, chains[0]) == world_of(fast, chains[1])
    np.testing.assert_allclose(chains[0].sum_g, chains[1].sum_g, rtol=1e-13, atol=1e-13)
    assert np.array_equal(chains[0].sum_f, chains[1].sum_f)
    assert list_error(slow, chains[0]) == 0.0


@pytest.mark.parametrize("name", ["homophily", "out-stars, by columns", "two predicates", "two sorts", "undirected"])
def test_looking_ahead_changes_nothing(name: str) -> None:
    """Requests of large models, made in a small one: places of the arrays, and the same draws."""
    model, chains = theory(name), []
    for changes in ((), (("LARGE = 1 << 15", "LARGE = 0"), ("NODES = 16, 12, 8, 5, 2", "NODES = 1, 1, 1, 1, 1"))):
        r, group = plain(model, *changes)
        asked, prefetch = [], r.kernel.prefetch
        r.kernel.prefetch = lambda array, index, asked=asked, prefetch=prefetch: (
            asked.append(index),
            prefetch(array, index),
        )
        world = random_world(model, np.random.default_rng(6), r)
        assert world is not None
        chains.append((r, advance(r, chain_at(r, group, world), 1 << 40, 3)[0], len(asked)))
    (r, near, few), (_, far, many) = chains
    assert many > few + 10
    assert world_of(r, near) == world_of(r, far)
    assert np.array_equal(near.sum_g, far.sum_g)


def test_records_are_lines_of_the_cache(people: MarkovLogic) -> None:
    group = dft.symmetries(people)
    chain = blank(plain(people, group=group)[0])
    for array in (chain.head, chain.systems[0].node, chain.systems[0].classes):
        assert array.ctypes.data % 64 == 0
        assert not array.any()


def test_lists_grow() -> None:
    """A pool that is too small for another row is made larger, and nothing else changes."""
    model = dft.markov_logic("E(node,node)\n0.9 E(x,y)\n0.2 E(x,y) ^ E(y,x)", domain={"node": 6})
    r, group = plain(model)
    world = dict.fromkeys(random_world(model, np.random.default_rng(0)) or {}, False)
    large, small = chain_at(r, group, world), chain_at(r, group, world)
    small = small._replace(pool=small.pool[: int(small.blocks[0])].copy())
    large, _ = advance(r, large, 1 << 40, 2)
    grown, _ = advance(r, small, 1 << 40, 2)
    assert len(grown.pool) > len(small.pool)
    assert world_of(r, large) == world_of(r, grown)
    assert large.true_atoms[1:].sum() > 18


def test_a_saved_run_goes_on(people: MarkovLogic) -> None:
    """Bit by bit, the clock's remainder and lists that have grown included."""
    group = dft.symmetries(people)
    r = compile_sparse(group.model, group.atom_orbits, group.deferred)
    question = logic_question(group, (), "orbit")
    plan = Plan(chains=2, burn_in=3, sweeps=40, seed=5, workers=1)
    whole, second = stopped_and_not(lambda: SparseSampling(r, question._asked, plan), 4)
    assert np.array_equal(whole.draws().f, second.draws().f)
    assert np.array_equal(whole.draws().g, second.draws().g)
    assert np.array_equal(whole.values(), second.values())
    assert whole.updates == second.updates


# --- which engine ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("E(n,n)\nA(n,n,n)\n1 E(x,y)\n1 A(x,y,z)", "3 arguments"),
        ("E(n,n)\n1 EXIST y (E(x,y) ^ E(y,x))", "quantifier"),
        ("E(n,n)\n1 E(x,y) ^ E(z,w)", "constant"),
        ("S(n)\n1 S(x)", "no predicate has two arguments"),
        ("E(n,n)\n1 E(x,y) ^ E(y,z) ^ E(z,w) ^ x != y ^ y != z ^ z != w ^ x != z ^ y != w ^ x != w", "three constants"),
    ],
)
def test_why_not(text: str, reason: str) -> None:
    found = verdict(dft.markov_logic(text, domain={"n": 50}))
    assert found.engine == "dense"
    assert reason in found.reason


def test_a_closed_relation_with_open_atoms_is_dense() -> None:
    """Rows are visited whole, but for what is known."""
    model = dft.markov_logic("E(n,n)\n1 E(x,y)\n0.3 E(x,y) ^ E(y,x)", domain={"n": 50})
    found = verdict(replace(model, closed=frozenset({"E"}), unknown={"E": np.array([[0, 1]], np.int32)}))
    assert "known but for some" in found.reason


def test_cost_decides() -> None:
    assert verdict(smokers(1000)).engine == "sparse"
    for rules in ("!E(x,x).", "!E(x,x).\nE(x,y) => E(y,x)."):  # what evidence and ties take up is no hard formula
        graph = dft.markov_logic(f"E(n,n)\n-6 E(x,y)\n0.1 E(x,y) ^ E(y,z) ^ E(x,z)\n{rules}", domain={"n": 1000})
        assert verdict(with_forced_atoms(graph)).engine == "sparse"
    assert verdict(smokers(20)).engine == "dense"
    crowded = "E(n,n)\n2 E(x,y)\n0.1 E(x,y) ^ E(y,z) => E(x,z)"
    assert verdict(dft.markov_logic(crowded, domain={"n": 300})).engine == "dense"


def test_info_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Never grounded: a million people are answered about at once."""
    path = str(Path(__file__).parents[2] / "examples" / "smokers-transitive.mln")
    assert run(["info", path, "--domain", "person=1000000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["engines"]
    assert set(found) == {"Smokes", "Cancer", "Friends"}
    assert all(text.startswith("sparse (a sparse sweep is about ") for text in found.values())
    assert run(["info", path, "--domain", "person=4"]) == 0
    assert "Smokes, Cancer, Friends: dense (a dense sweep costs " in capsys.readouterr().out


def test_visit_error_sees_an_error() -> None:
    """The judge itself: another order than the kernel's gives another law."""
    r, group = plain(smokers(3))
    world = random_world(r.model, np.random.default_rng(1))
    assert world is not None
    world = {site: value or (site[0] == "friends" and site[1] != site[2]) for site, value in world.items()}
    order = np.array([0, 1, 2])
    assert visit_error(r, group, world, 2, 0, order) < ROUNDING
    r.kernel.begin_sweep = lambda d, c, begin=r.kernel.begin_sweep: (
        c.order.__setitem__(slice(3), [2, 1, 0]),
        begin(d, c),
    )
    assert visit_error(r, group, world, 2, 0, order) > 1e-6
