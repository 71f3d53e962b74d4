"""Enumeration, elimination and brute force are three programs that must give one answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import brute_force, models

from definetti.errors import ModelError, TooLarge, UnknownName, Unsatisfiable
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.model.queries import parse_query
from definetti.readers.logic.mln import read_mln_text
from definetti.solvers.exact import exact
from definetti.solvers.graph import eliminate as elimination
from definetti.solvers.graph import enumerate as enumeration
from definetti.solvers.graph.eliminate import eliminate
from definetti.solvers.graph.elimination_order import core_number, min_fill
from definetti.solvers.graph.enumerate import enumerate_states
from definetti.symmetry.find import symmetries

ENGINES = [enumerate_states, eliminate]


def random_query(model: FactorGraph, rng: np.random.Generator) -> str:
    """A formula over literals of random variables, each used at most a few times."""
    parts = []
    for _ in range(rng.integers(1, 6)):
        i = int(rng.integers(model.n))
        parts.append(f"{rng.choice(['', '!'])}(X{i}={rng.integers(model.cards[i])})")
    text = parts[0]
    for part in parts[1:]:
        text = f"({text}) {rng.choice(['^', 'v', '=>', '<=>'])} {part}"
    return text


def truth_of(model: FactorGraph, text: str, states: np.ndarray) -> np.ndarray:
    query = parse_query(text, model)
    rows = {tuple(row) for row in query.satisfying.tolist()}
    return np.array([tuple(state[list(query.variables)].tolist()) in rows for state in states])


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=120, deadline=None)
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_against_brute_force(engine, model: FactorGraph, seed: int) -> None:
    states, weights = brute_force(model)
    if not weights.any():
        with pytest.raises(Unsatisfiable):
            engine(model)
        return
    rng = np.random.default_rng(seed)
    texts = [random_query(model, rng) for _ in range(3)]
    solution = engine(model, [parse_query(t, model) for t in texts])
    p = weights / weights.sum()
    assert solution.log_z == pytest.approx(np.log(weights.sum()), abs=1e-8)
    for i in range(model.n):
        expected = [p[states[:, i] == v].sum() for v in range(model.cards[i])]
        np.testing.assert_allclose(solution.marginal(model, i), expected, atol=1e-8)
    for text, probability in zip(texts, solution.events, strict=True):
        assert probability == pytest.approx(p[truth_of(model, text, states)].sum(), abs=1e-8)


def random_graph(rng: np.random.Generator, n: int, factors: int, arity: int, zeros: float = 0.0) -> FactorGraph:
    cards = rng.integers(2, 4, size=n)
    out = []
    for _ in range(factors):
        near = rng.integers(n - 4)
        scope = near + rng.choice(5, size=rng.integers(1, arity + 1), replace=False)
        table = np.exp(rng.normal(size=cards[scope]))
        table[rng.random(table.shape) < zeros] = 0
        table[(0,) * table.ndim] = 1.0  # all zero is always possible
        out.append((scope, table))
    return factor_graph(cards.tolist(), out)


@pytest.mark.parametrize("seed", range(6))
def test_two_engines_on_larger_models(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that enumeration has many outer states and elimination really has a tree."""
    rng = np.random.default_rng(seed)
    model = random_graph(rng, 13, 22, 3, zeros=0.15 * (seed % 3))
    monkeypatch.setattr(enumeration, "BLOCK", 500)
    texts = [random_query(model, rng) for _ in range(8)]
    texts += [" ^ ".join(f"X{i}=0" for i in range(13)), " v ".join(f"X{i}=1" for i in (0, 3, 6, 9, 12))]
    queries = [parse_query(t, model) for t in texts]
    one, two = enumerate_states(model, queries), eliminate(model, queries)
    assert one.log_z == pytest.approx(two.log_z, abs=1e-9)
    np.testing.assert_allclose(one.literals, two.literals, atol=1e-10)
    np.testing.assert_allclose(one.events, two.events, atol=1e-10)
    monkeypatch.setattr(elimination, "FEW_ROWS", 0)  # every event as a factor of its own
    np.testing.assert_allclose(one.events, eliminate(model, queries).events, atol=1e-10)


def test_a_long_ising_chain_by_hand() -> None:
    """Z of an open chain is 2 (2 cosh J)^(n-1); P(ends equal) = (1 + tanh(J)^(n-1)) / 2."""
    n, j = 2000, 0.9
    chain = factor_graph([2] * n, [((i, i + 1), np.array([[j, -j], [-j, j]])) for i in range(n - 1)], log=True)
    answer = exact(chain, ["X0 <=> X3", "X0=0 ^ X1=0"])
    assert answer.method == "eliminate"
    assert answer.log_z == pytest.approx(np.log(2) + (n - 1) * np.log(2 * np.cosh(j)), rel=1e-12)
    assert answer["X0 <=> X3"].probability == pytest.approx((1 + np.tanh(j) ** 3) / 2, abs=1e-9)
    assert answer["X0=0 ^ X1=0"].probability == pytest.approx((1 + np.tanh(j)) / 4, abs=1e-9)
    assert all(row.probability == pytest.approx(0.5, abs=1e-12) for row in answer.orbits)


def test_the_noun() -> None:
    model = factor_graph({"a": 2, "b": 3, "c": 2, "d": 1}, [(("a", "b"), np.arange(1, 7))]).condition({"c": 1})
    answer = exact(model, ["b", "c", "d", "a ^ b=2", "c=0"])
    total = 21
    assert [row.representative for row in answer.orbits] == ["a", "b", "d"]
    assert answer["a"].probability == pytest.approx(15 / total) and answer["a"].mcse == 0
    assert answer["b"].probability == pytest.approx([5 / total, 7 / total, 9 / total])
    assert answer["b"].mcse == [0, 0, 0] and answer["b"].rhat == [None] * 3
    assert answer["c"].probability == 1 and answer["c=0"].probability == 0
    assert answer["a ^ b=2"].probability == pytest.approx(6 / total)
    assert answer.log_z == pytest.approx(np.log(total)) and answer.method in ("enumerate", "eliminate")
    assert set(answer.queries) == {"b", "c", "d", "a ^ b=2", "c=0"}
    assert answer.to_json()["orbit_count"] == 3
    with pytest.raises(UnknownName):
        exact(model, ["nobody"])
    with pytest.raises(ModelError, match="auto, lifted, enumerate, eliminate"):
        exact(model, method="magic")


def test_rows_by_orbit() -> None:
    model = factor_graph([2, 2, 2], [((0, 1), np.array([[1, 2], [2, 5]])), ((1, 2), np.array([[1, 2], [2, 5]]))])
    plain, group = exact(model, symmetries=None), symmetries(model)
    assert [(row.representative, row.size) for row in plain.orbits] == [("X0", 1), ("X1", 1), ("X2", 1)]
    for wanted in ("auto", "literals", "variables", group):
        folded = exact(model, ["X2"], symmetries=wanted)
        assert [(row.representative, row.size) for row in folded.orbits] == [("X0", 2), ("X1", 1)]
        assert folded["X2"].orbit_size == 2 and folded["X2"].probability == pytest.approx(plain["X2"].probability)
    with pytest.raises(ModelError, match="belong to another model"):
        exact(model.condition({0: 1}), symmetries=group)
    with pytest.raises(ModelError, match="renaming is for Markov logic"):
        exact(model, symmetries="renaming")
    for nonsense in ("all", 3, [group]):
        with pytest.raises(ModelError, match="symmetries is one of auto, "):
            exact(model, symmetries=nonsense)  # type: ignore[arg-type]


TRANSITIVE = "S(p)\nF(p,p)\nT(p,t!)\nt={X,Y,Z}\n1 F(x,y) ^ F(y,z) => F(x,z)\n0.5 S(x) ^ F(x,y) => S(y)\n0.3 T(x,Y)"


WITHOUT_BLOCKS = TRANSITIVE.replace("T(p,t!)\nt={X,Y,Z}\n", "").replace("\n0.3 T(x,Y)", "")


@pytest.mark.parametrize("text", ["S(p)\nF(p,p)\n0.5 S(x) ^ F(x,y) => S(y)", TRANSITIVE, WITHOUT_BLOCKS])
def test_rows_of_markov_logic(text: str) -> None:
    """Lifted, grounded, and grounded with `!` blocks: symmetries are used, or refused, never ignored."""
    model = read_mln_text(text, {"S(A)": True}, domain={"p": 3})
    found, other = exact(model), model.condition({"S(P1)": False})
    for wanted in (None, "renaming", "literals", symmetries(model), symmetries(model, "literals")):
        again = exact(model, symmetries=wanted)
        assert len(again) == len(found) == model.atom_count
        for name in found:
            np.testing.assert_allclose(again[name].probability, found[name].probability, atol=1e-12)
        sizes = {name: again[name].orbit_size for name in ("S(P1)", "F(P1,P2)")}
        assert set(sizes.values()) == ({1} if wanted is None else {2})
        assert again['F("P1", P2)'] == again["F(P1,P2)"]  # quotes that are not needed
    for nonsense in ("all", 3):
        with pytest.raises(ModelError, match="symmetries is one of"):
            exact(model, symmetries=nonsense)  # type: ignore[arg-type]
    for group in (symmetries(other), symmetries(other, "literals")):
        with pytest.raises(ModelError, match="belong to another model"):
            exact(model, symmetries=group)


@pytest.mark.parametrize("method", ["auto", "enumerate", "eliminate"])
def test_edges_of_the_world(method: str) -> None:
    empty = exact(factor_graph([], []), method=method)
    assert empty.log_z == 0 and len(empty.orbits) == 0
    idle = exact(factor_graph([2, 3], []), ["X0 ^ X1=2", "X0=0 ^ X0=1", "X0 v !X0"], method=method)
    assert idle.log_z == pytest.approx(np.log(6))
    assert [e.probability for e in idle.queries.values()] == pytest.approx([1 / 6, 0, 1])
    seen = exact(factor_graph([2], [((0,), np.array([1.0, 3.0]))]).condition({0: 1}), method=method)
    assert seen.log_z == pytest.approx(np.log(3)) and seen["X0"].probability == 1
    different = np.array([[0, 1], [1, 0]])  # a triangle has no 2-colouring, though each factor can be satisfied
    triangle = factor_graph([2] * 3, [((i, j), different) for i, j in itertools.combinations(range(3), 2)])
    with pytest.raises(Unsatisfiable, match="no state"):
        exact(triangle, method=method)
    forced = exact(factor_graph([2] * 2, [((0, 1), different), ((0,), np.array([0, 1]))]), method=method)
    assert forced["X0"].probability == 1 and forced["X1"].probability == 0


def grid(side: int) -> FactorGraph:
    cells = np.arange(side * side).reshape(side, side)
    right = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], axis=1)
    scope = np.concatenate([right, np.stack([cells[:-1].ravel(), cells[1:].ravel()], axis=1)])
    starts, which = 2 * np.arange(len(scope) + 1), np.zeros(len(scope), dtype=np.int64)
    table = np.array([[0, 0.2], [0.2, 0]])
    return FactorGraph.from_arrays(np.full(side * side, 2), starts, scope.ravel(), which, [table])


def test_refusals_come_first_and_carry_sizes(cpu_limit) -> None:
    with cpu_limit(4), pytest.raises(TooLarge, match=r"10\^3010 states.*table entries") as caught:
        exact(grid(100))
    assert caught.value.size > caught.value.limit >= 2**20  # what the memory has room for
    with pytest.raises(TooLarge, match="33,554,432 states") as caught:
        exact(grid(5), method="enumerate")
    assert caught.value.size == 2**25
    with pytest.raises(TooLarge):
        eliminate(grid(10), limit=1000)


def test_a_grid_against_transfer_matrices() -> None:
    """8 columns of 8 cells: log Z by powers of a 256 × 256 matrix."""
    side = 8
    columns = np.array(list(itertools.product([0, 1], repeat=side)))
    inside = 0.2 * (columns[:, 1:] != columns[:, :-1]).sum(axis=1)
    between = 0.2 * (columns[:, None, :] != columns[None, :, :]).sum(axis=2)
    weights = np.exp(inside)
    for _ in range(side - 1):
        weights = np.exp(inside) * (np.exp(between) @ weights)
    answer = exact(grid(side))
    assert answer.log_z == pytest.approx(np.log(weights.sum()), abs=1e-9)
    assert max(abs(row.probability - 0.5) for row in answer.orbits) < 1e-12


def test_min_fill_orders(cpu_limit) -> None:
    rng = np.random.default_rng(3)
    n = 10_000
    trees = {
        "chain": [(i, i + 1) for i in range(n - 1)],
        "star": [(0, i) for i in range(1, n)],
        "tree": [(int(rng.integers(i)), i) for i in range(1, n)],
    }
    table = np.array([[1.0, 0], [0, 1]])
    with cpu_limit(6):
        for edges in trees.values():
            scope, which = np.array(edges).ravel(), np.zeros(n - 1, int)
            model = FactorGraph.from_arrays(np.full(n, 2), 2 * np.arange(n), scope, which, [table])
            order = min_fill(simplify(model), 2**26)
            assert order.largest == 4 and len(order.cliques) == n
    ring = factor_graph([2] * 50, [((i, (i + 1) % 50), table) for i in range(50)])
    assert min_fill(ring, 2**26).largest == 8
    assert min_fill(simplify(grid(8)), 2**26).largest <= 2**11  # the treewidth is 8


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_fill_counts_stay_right(seed: int) -> None:
    """Kept up to date edge by edge, they equal what counting again gives."""
    from definetti.solvers.graph.elimination_order import _eliminate, _fill

    rng = np.random.default_rng(seed)
    n = 9
    neighbours: dict[int, set[int]] = {v: set() for v in range(n)}
    for a, b in itertools.combinations(range(n), 2):
        if rng.random() < 0.35:
            neighbours[a].add(b)
            neighbours[b].add(a)
    fill = {v: _fill(neighbours, v) for v in neighbours}
    for v in rng.permutation(n).tolist():
        before = {u: (fill[u], len(neighbours[u])) for u in neighbours}
        changed = _eliminate(neighbours, fill, v)
        for u in neighbours:
            assert fill[u] == _fill(neighbours, u)
            assert u in changed or (fill[u], len(neighbours[u])) == before[u]


def test_a_refusal_names_the_size_and_not_where_counting_stopped() -> None:
    """A complete graph over 60 variables: every order has a table over all of them."""
    complete = factor_graph([2] * 60, [((i, j), [[1, 2], [3, 7 + i + 60 * j]]) for i in range(60) for j in range(i)])
    with pytest.raises(TooLarge) as refused:
        exact(complete)
    assert refused.value.size == 2**60 and refused.value.limit < 2**50
    assert str(refused.value).count(";") == 1 and "about 10^18 table entries" in str(refused.value)


def test_core_numbers() -> None:
    clique_and_path = [(i, j) for i in range(5) for j in range(i)] + [(4, 5), (5, 6), (6, 7)]
    model = factor_graph([2] * 8, [(pair, [[1, 2], [3, 5]]) for pair in clique_and_path])
    assert [core_number(model, k) for k in (0, 1, 4, 5)] == [4, 4, 4, 0]
