"""Symmetries that are found: known groups, brute force over permutations of literals, relabelling, twins, limits."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import time

import igraph
import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from random_models import brute_force, models

from definetti import groups
from definetti.errors import ModelError, Unsatisfiable
from definetti.integer_rows import first_and_number
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.symmetry import components as pieces
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph import twins as twins_module
from definetti.symmetry.graph.check import scope_index, violation
from definetti.symmetry.graph.group import GraphSymmetries, find, none

ISING = np.array([[0.3, -0.3], [-0.3, 0.3]])
FIELD = np.array([-0.2, 0.2])
PARITY = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2 == 0, 0.5, -0.5)


def pairwise(n: int, pairs: list[tuple[int, int]], table: np.ndarray = ISING, field: bool = False) -> FactorGraph:
    factors: list = [(pair, table) for pair in pairs]
    factors += [((i,), FIELD) for i in range(n)] if field else []
    return factor_graph([len(table)] * n, factors, log=True)


def grid_pairs(m: int) -> list[tuple[int, int]]:
    place = np.arange(m * m).reshape(m, m)
    ends = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
    return [(int(a), int(b)) for here, there in ends for a, b in zip(here.ravel(), there.ravel(), strict=True)]


def ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)]


def complete(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)}


def literal_permutations(model: FactorGraph) -> list[np.ndarray]:
    """Every permutation of literals that takes variables to variables, by brute force."""
    start, cards, n = model.literal_start, model.cards, model.n
    out = []
    for to in itertools.permutations(range(n)):
        if any(cards[i] != cards[j] for i, j in enumerate(to)):
            continue
        for values in itertools.product(*(itertools.permutations(range(c)) for c in cards)):
            out.append(np.concatenate([start[to[i]] + np.array(values[i]) for i in range(n)]))
    return out


def keeps_distribution(model: FactorGraph, permutation: np.ndarray) -> bool:
    states, weights = brute_force(model)
    start = model.literal_start
    literals = permutation[start[:-1] + states]
    variable = np.searchsorted(start, literals, side="right") - 1
    moved = np.empty_like(states)
    np.put_along_axis(moved, variable, literals - start[variable], axis=1)
    place = {tuple(state): weight for state, weight in zip(states.tolist(), weights, strict=True)}
    return np.allclose([place[tuple(state)] for state in moved.tolist()], weights, rtol=1e-6, atol=1e-12)


# --- known groups ------------------------------------------------------------------------------------------------

KNOWN = {
    "4×4 grid": (pairwise(16, grid_pairs(4)), 16, 8),
    "4×4 grid in a field": (pairwise(16, grid_pairs(4), field=True), 8, 8),
    "5×5 grid": (pairwise(25, grid_pairs(5)), 16, 8),
    "ring of 7": (pairwise(7, ring(7)), 28, 14),
    "ring of 7 in a field": (pairwise(7, ring(7), field=True), 14, 14),
    "mean-field antiferromagnet of 8": (pairwise(8, complete(8), -ISING), 2 * math.factorial(8), math.factorial(8)),
    "Potts ring of 5, three colours": (pairwise(5, ring(5), np.eye(3)), 60, 10),
    "Potts, complete, four colours": (pairwise(5, complete(5), np.eye(4)), 120 * 24, 120),
    "independent bits": (factor_graph([2] * 6, [], log=True), 2**6 * math.factorial(6), math.factorial(6)),
    "independent biased bits": (pairwise(6, [], field=True), math.factorial(6), math.factorial(6)),
    "three separate pairs": (pairwise(6, [(0, 1), (2, 3), (4, 5)]), 4**3 * 6, 2**3 * 6),
    "star": (pairwise(6, [(0, k) for k in range(1, 6)]), 2 * 120, 120),
    "ferromagnetic and antiferromagnetic leaves": (
        factor_graph([2] * 5, [((0, k), ISING if k < 3 else -ISING) for k in range(1, 5)], log=True),
        2 * 24,  # all four leaves can change places, some with a flip
        2 * 2,
    ),
    "frustrated square": (
        factor_graph([2] * 4, [((i, j), -ISING if i == 3 else ISING) for i, j in ring(4)], log=True),
        16,  # flips of single variables move the odd sign round the square
        2,
    ),
    "a clause": (factor_graph([2] * 3, [((0, 1, 2), np.eye(8)[0b101].reshape(2, 2, 2))], log=True), 6, 2),
    "parity of three": (factor_graph([2] * 3, [((0, 1, 2), PARITY)], log=True), 24, 6),
    "an arrow": (factor_graph([3] * 2, [((0, 1), np.arange(9.0).reshape(3, 3))], log=True), 1, 1),
    "a hard arrow": (factor_graph([2] * 2, [((0, 1), [[0, 0], [-np.inf, 0]])], log=True), 2, 1),
    "tied values": (factor_graph([4, 2], [((0, 1), [[1, 0], [0, 1], [0, 1], [0, 1]])], log=True), 6, 1),
    "a forced value": (factor_graph([3], [((0,), [-np.inf, 0, 0])], log=True), 2, 1),
    "signed zeros": (factor_graph([2] * 2, [((0,), [-0.0, 1]), ((1,), [0.0, 1])], log=True), 2, 2),
}


@pytest.mark.parametrize("name", KNOWN)
def test_orders_of_known_groups(name: str) -> None:
    model, over_literals, over_variables = KNOWN[name]
    assert find(model).order == over_literals
    assert find(model, "variables").order == over_variables


@pytest.mark.parametrize("name", KNOWN)
def test_generators_generate_a_group_of_that_order(name: str) -> None:
    for over in ("literals", "variables"):
        found = find(KNOWN[name][0], over)
        assert groups.order(found.group) == found.order


@pytest.mark.parametrize("name", KNOWN)
def test_the_smaller_graph_over_variables_finds_the_same(name: str) -> None:
    found = find(KNOWN[name][0], "variables", most_nodes=0)
    assert found.order == KNOWN[name][2]
    assert not found.notices


def test_a_flip_joined_with_a_swap_makes_equal_marginals_but_no_equal_row() -> None:
    """X0 and X1 have opposite fields: (0, v) goes to (1, 1 - v), so their rows stay apart."""
    model = factor_graph([2] * 2, [((0, 1), ISING), ((0,), FIELD), ((1,), -FIELD)], log=True)
    found = find(model)
    assert found.order == 2
    assert found.literal_orbit.tolist() == [0, 1, 1, 0]
    assert found.row_of.tolist() == [0, 1]
    assert find(model, "variables").order == 1


def test_the_paper_size_grid() -> None:
    """100×100: order 16; orbits of variables are those of the square's symmetries."""
    place = np.arange(10_000).reshape(100, 100)
    ends = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
    scope = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    model = FactorGraph.from_arrays(
        np.full(10_000, 2), 2 * np.arange(len(scope) + 1), scope.ravel(), np.zeros(len(scope), int), [ISING]
    )
    found = find(model)
    assert found.order == 16
    assert len(found.orbits) == 50 * 51 // 2
    assert found.row_size.sum() == 10_000
    assert sorted(found.orbit_of("X0")) == ["X0", "X99", "X9900", "X9999"]
    assert set(found.literal_orbit_size.tolist()) == {8, 16}
    pair = model.literal_start[[0, 1]]
    assert len(found.tuple_orbit(pair)) == 16
    fallback = find(model, most_nodes=1000)
    assert fallback.order == 8
    assert fallback.kind == "variables"
    assert [notice.kind for notice in fallback.notices] == ["fallback"]


# --- brute force -------------------------------------------------------------------------------------------------


def small_enough(model: FactorGraph) -> bool:
    return math.factorial(model.n) * math.prod(math.factorial(int(c)) for c in model.cards) <= 2000


@settings(max_examples=120)
@given(models(most=4))
def test_find_is_the_group_of_all_permutations_that_pass_the_check(model: FactorGraph) -> None:
    """And each of them leaves the distribution alone: the check is checked by enumeration."""
    try:
        model = simplify(model)
    except Unsatisfiable:
        reject()
    assume(small_enough(model))
    index = scope_index(model)
    passing = [p for p in literal_permutations(model) if violation(index, [groups.sparse(p)]) is None]
    assert find(model).order == len(passing)
    for permutation in passing[:: max(1, len(passing) // 8)]:
        assert keeps_distribution(model, permutation)
    start = model.literal_start
    own = np.arange(start[-1]) - np.repeat(start[:-1], model.cards)
    renamings = [p for p in passing if (own[p] == own).all()]
    assert find(model, "variables").order == len(renamings)
    assert len(renamings) % find(model, "variables", most_nodes=0).order == 0


@pytest.mark.parametrize("name", ["ring of 7 in a field", "a clause", "parity of three", "a hard arrow", "an arrow"])
def test_the_check_refuses_what_changes_the_distribution(name: str) -> None:
    model = KNOWN[name][0]
    if model.n > 4:
        model = pairwise(4, ring(4), field=True)
    index = scope_index(model)
    for permutation in literal_permutations(model):
        passes = violation(index, [groups.sparse(permutation)]) is None
        assert passes == keeps_distribution(model, permutation)


@settings(max_examples=60)
@given(models(most=5), st.randoms(use_true_random=False))
def test_a_relabelled_model_has_relabelled_orbits(model: FactorGraph, random) -> None:
    try:
        model = simplify(model)
    except Unsatisfiable:
        reject()
    to = list(range(model.n))
    random.shuffle(to)
    values = [random.sample(range(c), c) for c in model.cards.tolist()]
    cards = np.empty(model.n, dtype=int)
    cards[to] = model.cards
    factors = []
    for k in range(model.factor_count):
        scope = model.variables(k).tolist()
        table = np.empty(model.shape(k))
        table[np.ix_(*(values[i] for i in scope))] = model.table(k)
        axes = random.sample(range(len(scope)), len(scope))
        factors.append(([to[scope[a]] for a in axes], table.transpose(axes)))
    other = factor_graph(cards.tolist(), factors, log=True)
    other = other.condition({to[i]: values[i][v] for i, v in enumerate(model.evidence.tolist()) if v >= 0})
    image = np.concatenate([other.literal_start[to[i]] + np.array(values[i]) for i in range(model.n)])
    before, after = find(model), find(other)
    assert before.order == after.order
    assert partition(before.literal_orbit) == partition(after.literal_orbit[image])


def graphs() -> st.SearchStrategy[tuple[int, list[tuple[int, int]], list[int]]]:
    """Sparse graphs with two colours: they fall into pieces of every kind."""
    return st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=14)
            if n > 1
            else st.just([]),
            st.lists(st.integers(0, 1), min_size=n, max_size=n),
        )
    )


@pytest.mark.parametrize("large", [2000, 2])
@settings(max_examples=150)
@given(graphs())
def test_taking_a_graph_apart_gives_what_bliss_gives(large: int, drawn) -> None:
    n, edges, colours = drawn
    edges = sorted(set(edges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGE", large)  # 2: single out nodes wherever it is possible
        patch.setattr(pieces, "FEW", 12)
        ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
        generators, order = pieces.automorphisms(pieces.Graph(np.array(colours, dtype=np.uint64), ends))
    assert order == igraph.Graph(n=n, edges=edges).count_automorphisms(color=colours)
    assert groups.order(groups.PermutationGroup(n, tuple(generators))) == order
    for generator in generators:
        image = groups.dense(generator, n)
        assert {tuple(sorted(pair)) for pair in image[ends].tolist()} == set(edges)
        assert [colours[x] for x in image] == colours


@pytest.mark.parametrize("large", [500, 20, 2])
def test_copies_of_a_tree_are_recognised(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero-field trees, scattered: each has its flip and its own symmetries, and copies change places."""
    monkeypatch.setattr(pieces, "LARGE", large)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        pairs, n = [], 0
        for _ in range(3):
            size = int(rng.integers(3, 9))
            tree = [(int(rng.integers(k)), k) for k in range(1, size)]
            for _ in range(int(rng.integers(1, 5))):
                pairs += [(n + a, n + b) for a, b in tree]
                n += size
        place = rng.permutation(n)
        pairs = [(int(place[a]), int(place[b])) for a, b in rng.permutation(pairs)]
        ends = [(i, n + 2 * i + v) for i in range(n) for v in (0, 1)]
        ends += [(n + 2 * a + v, n + 2 * b + v) for a, b in pairs for v in (0, 1)]
        colours = [0] * n + [1] * 2 * n
        expected = igraph.Graph(n=3 * n, edges=ends).count_automorphisms(color=colours)
        assert pieces.automorphisms(pieces.Graph(np.array(colours, dtype=np.uint64), np.array(ends)))[1] == expected
        assert find(pairwise(n, pairs)).order == expected


# --- twins -------------------------------------------------------------------------------------------------------


def test_many_twins_cost_no_search() -> None:
    """3,000 leaves on 3 hubs: as many sparse generators, an exact order, and no dense generator on the way."""
    hubs, leaves = 3, 3000
    pairs = [(0, 1), (1, 2)] + [(k % hubs, hubs + k) for k in range(leaves)]
    found = find(pairwise(hubs + leaves, pairs))
    assert found.order == 2 * math.factorial(1000) ** 3 * 2
    assert sum(len(points) for points, _ in found.group.generators) < 10 * leaves + 4 * (hubs + leaves)
    assert sorted(found.row_size.tolist()) == [1, 2, 1000, 2000]
    assert found.tuple_orbit(found.model.literal_start[[3, 6]], cap=1000) is None


def gauged_cliques(seed: int) -> FactorGraph:
    """Cliques of variables joined by one table each, some joined as wholes, with values that have other names."""
    rng = np.random.default_rng(seed)
    card = int(rng.integers(2, 4))
    size, copies = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    kinds = [np.eye(card), np.diag(np.arange(card) * 0.5), np.eye(card) * -1]
    kind = [kinds[int(rng.integers(3)) if rng.random() < 0.5 else 0] for _ in range(copies)]
    factors: dict[tuple[int, int], np.ndarray] = {}
    for c, table in enumerate(kind):
        factors |= {(c * size + i, c * size + j): table for i, j in complete(size)}
    for a, b in complete(copies) if rng.random() < 0.5 else []:
        factors |= {(a * size + i, b * size + j): np.eye(card) * 0.3 for i in range(size) for j in range(size)}
    names = [rng.permutation(card) if rng.random() < 0.4 else np.arange(card) for _ in range(copies * size)]
    turned = [((i, j), table[np.ix_(names[i], names[j])]) for (i, j), table in factors.items()]
    return factor_graph([card] * (copies * size), turned, log=True)


@pytest.mark.parametrize("over", ["literals", "variables"])
def test_twins_in_cliques_are_what_a_search_finds(over: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(120):
        model, found = simplify(gauged_cliques(seed)), {}
        for least in (2, 1000):
            monkeypatch.setattr(twins_module, "CLIQUE", least)
            found[least] = find(model, over)
        assert found[2].order == found[1000].order == groups.order(found[2].group), seed
        assert found[2].orbits == found[1000].orbits


def test_a_complete_graph_and_isolated_variables_need_no_search(cpu_limit) -> None:
    with cpu_limit(10):
        group = symmetries(pairwise(300, complete(300)))
        assert group.order == 2 * math.factorial(300) and not group.notices
        alone = symmetries(pairwise(50_000, [], field=True))
    assert alone.order == math.factorial(50_000) and len(alone.row_size) == 1


def test_twins_of_any_arity_and_orientation() -> None:
    table = np.arange(8.0).reshape(2, 2, 2)
    factors = [((0, 1, k), table) if k % 2 else ((k, 0, 1), table.transpose(2, 0, 1)) for k in range(2, 7)]
    found = find(factor_graph([2] * 7, factors, log=True))
    assert found.order == math.factorial(5)
    assert found.orbit_of("X4") == ["X2", "X3", "X4", "X5", "X6"]


def test_a_random_graph_with_twin_leaves_stays_small() -> None:
    rng = np.random.default_rng(5)
    core, leaves = 3000, 1500
    pairs = {tuple(sorted(pair)) for pair in rng.integers(core, size=(4500, 2)).tolist() if pair[0] != pair[1]}
    pairs |= {(int(rng.integers(core // 10)), core + k) for k in range(leaves)}
    found = find(pairwise(core + leaves, sorted(pairs)))
    assert not found.notices
    assert len(found.group.generators) > 1000
    moved = sorted(len(points) for points, _ in found.group.generators)
    assert moved[-2] < 200  # all but the flip of the giant component are local
    element = next(found.random_elements(rng))
    assert violation(scope_index(found.model), [groups.sparse(element)]) is None


# --- what surrounds the search -----------------------------------------------------------------------------------


def hard_model() -> FactorGraph:
    """Random parity constraints: refinement sees nothing, and the search tree is exponential. Two isolated twins."""
    rng = np.random.default_rng(300)
    scopes = {tuple(sorted(rng.choice(300, 3, replace=False).tolist())) for _ in range(330)}
    return factor_graph([2] * 302, [(scope, PARITY) for scope in sorted(scopes)], log=True)


def test_the_time_limit_really_stops_the_search(cpu_limit) -> None:
    with cpu_limit(5):
        found = find(hard_model(), time_limit=1.0)
    (notice,) = found.notices
    assert notice.kind == "time-limit"
    assert not notice.fails
    assert found.order > 1
    assert found.orbit_of("X300")[-2:] == ["X300", "X301"]
    assert groups.order(found.group) == found.order
    assert [n.kind for n in find(pairwise(9, grid_pairs(3)), time_limit=0.0).notices] == ["time-limit"]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_an_interrupted_search_leaves_no_process_behind() -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a parent may have it ignored
        "import sys; sys.path.insert(0, sys.argv[1]); import test_symmetries as t\n"
        "print('ready', flush=True)\n"
        "t.find(t.hard_model(), time_limit=60.0)"
    )
    here = os.path.dirname(__file__)
    env = os.environ | {"PYTHONPATH": os.pathsep.join([p for p in sys.path if p] + [os.path.dirname(here)])}
    parent = subprocess.Popen(
        [sys.executable, "-c", code, here],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=env,
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        parent.send_signal(signal.SIGINT)
        parent.wait(timeout=30)
        with pytest.raises(ProcessLookupError):
            os.killpg(parent.pid, 0)  # the whole group is gone
    finally:
        parent.stdout.close()
        if parent.poll() is None:
            os.killpg(parent.pid, signal.SIGKILL)
            parent.wait()


def test_observed_variables_are_alone() -> None:
    model = pairwise(6, ring(6)).condition({0: 1})
    with pytest.raises(ModelError, match="observed variable; simplify the model first"):
        find(model)
    found = symmetries(model)
    assert found.order == 2
    assert found.row_of.tolist() == [-1, 0, 1, 2, 1, 0]
    assert found.row_representative.tolist() == [1, 2, 3]
    assert found.orbit_of("X0") == ["X0"]
    assert found.orbit_of("X5") == ["X1", "X5"]
    assert [(orbit.representative, orbit.size) for orbit in found.orbits] == [("X1", 2), ("X2", 2), ("X3", 1)]


def test_two_factors_over_one_scope_must_be_merged_first() -> None:
    model = factor_graph([2] * 2, [((0, 1), ISING), ((1, 0), ISING)], log=True)
    with pytest.raises(ModelError, match="simplify the model first"):
        find(model)
    assert symmetries(model).order == 4


def test_kinds() -> None:
    model = pairwise(4, ring(4))
    assert symmetries(model).order == symmetries(model, "literals").order == 16
    assert symmetries(model, "variables").order == 8
    assert symmetries(model, "none").order == 1
    assert len(none(model).orbits) == 4
    with pytest.raises(ModelError, match="renaming"):
        symmetries(model, "renaming")


def test_a_model_without_free_variables() -> None:
    model = symmetries(pairwise(2, [(0, 1)]).condition({0: 0, 1: 1}))
    assert model.order == 1
    assert model.orbits == ()
    assert symmetries(factor_graph([], [])).order == 1


def test_random_elements_are_symmetries() -> None:
    found = find(pairwise(9, grid_pairs(3)))
    seen = {tuple(e.tolist()) for e in itertools.islice(found.random_elements(np.random.default_rng(3)), 300)}
    assert len(seen) == 16
    for element in seen:
        assert violation(scope_index(found.model), [groups.sparse(np.array(element))]) is None
    assert len(found.random_element(np.random.default_rng(3))) == 18


def test_the_repr_is_one_line_with_order_and_orbits() -> None:
    found: GraphSymmetries = find(pairwise(16, grid_pairs(4)))
    assert repr(found) == "GraphSymmetries(order 16, 3 orbits of 16 variables, literals)"
    assert "e+" in repr(find(factor_graph([2] * 3000, [], log=True)))


def test_equal_small_keys_are_counted_and_large_ones_sorted() -> None:
    rng = np.random.default_rng(1)
    for most in (1, 3, 10**6):
        keys = rng.integers(0, most, 50)
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        got = first_and_number(keys)
        assert np.array_equal(got[0], first) and np.array_equal(got[1], number)
    assert [len(x) for x in first_and_number(np.empty(0, np.int64))] == [0, 0]


def test_a_dense_generator_that_changes_values_is_checked_factor_by_factor() -> None:
    """Rows with equal tables are looked at once, but only where the same happens to their values."""
    ring = [([i, (i + 1) % 6], [[3, 1], [1, 2.5 if i == 4 else 3]]) for i in range(6)]
    model = simplify(factor_graph([2] * 6, ring))
    flip = np.arange(12) ^ 1
    wrong = violation(scope_index(model), [(np.arange(12), flip)])
    assert wrong is not None and wrong.factor >= 0
    even = simplify(factor_graph([2] * 6, [(scope, [[3, 1], [1, 3]]) for scope, _ in ring]))
    assert violation(scope_index(even), [(np.arange(12), flip)]) is None
    some = np.concatenate([[1, 0], np.arange(2, 12)])  # one variable's values alone
    assert violation(scope_index(even), [(np.arange(2), some[:2])]) is not None


def test_long_rings_and_sparse_random_graphs_have_their_whole_group(cpu_limit) -> None:
    with np.errstate(divide="ignore"):
        differ = np.log(1.0 - np.eye(3))
    count = 3000
    place = np.arange(count)
    scopes = np.stack([place, (place + 1) % count], axis=1)
    ring = FactorGraph.from_arrays(np.full(count, 3), 2 * np.arange(count + 1), scopes.ravel(), 0 * place, [differ])
    with cpu_limit(5):
        group = symmetries(ring)
    assert group.order == 2 * count * 6 and len(group.orbits) == 1 and not group.notices
    rng = np.random.default_rng(1)
    ends = rng.integers(0, count, (3 * count // 2, 2))
    edges = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    pair = [np.array([[0.0, -0.1], [-0.1, 0.0]])]
    sparse = FactorGraph.from_arrays(
        np.full(count, 2), 2 * np.arange(len(edges) + 1), edges.ravel(), np.zeros(len(edges), np.int64), pair
    )
    with cpu_limit(5):
        group = symmetries(sparse)
    assert not group.notices and group.order is not None
    variables = igraph.Graph(n=count, edges=edges)
    parts = len(variables.connected_components())
    assert group.order == int(variables.count_automorphisms()) * 2**parts  # values flip part by part
