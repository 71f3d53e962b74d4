"""Join trees of hard parts: their rows are the legal states, whatever the order of elimination, and no more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hard_models import SAME, hard_grid
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from random_models import brute_force, models

from definetti.constraints.graph.connectivity import components, hard_tables, legal_tuples
from definetti.errors import Unsatisfiable
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph.block_gibbs import Blocks
from definetti.solvers.graph import join_tree as trees
from definetti.solvers.graph.join_tree import Tree, join_tree


def states_of(tree: Tree, n: int) -> np.ndarray:
    """All ways to choose a row in every cluster, from the root down, among those that the parent's row leads to."""
    out = np.full((1, n), -1)
    row = np.zeros((1, len(tree)), dtype=np.int64)
    for c in reversed(range(len(tree))):
        cluster = tree[c]
        group = np.zeros(len(out), np.int64) if cluster.parent < 0 else cluster.reach[row[:, cluster.parent]]
        which, chosen = np.nonzero(cluster.group == group[:, None])
        out, row = out[which], row[which]
        row[:, c] = chosen
        known = out[:, cluster.variables]
        assert ((known < 0) | (known == cluster.rows[chosen])).all(), "clusters agree on what they share"
        out[:, cluster.variables] = cluster.rows[chosen]
    return out


@settings(max_examples=150, deadline=None)
@given(models(), st.booleans())
def test_rows_are_the_legal_states(model: FactorGraph, together: bool) -> None:
    try:
        simple = simplify(model)
    except Unsatisfiable:
        reject()
    for part in components(hard_tables(simple)):
        inside = {i for scope, _ in part for i in scope}
        scopes = [[i for i in simple.variables(k).tolist() if i in inside] for k in range(simple.factor_count)]
        scopes = [scope for scope in scopes if scope]
        with pytest.MonkeyPatch.context() as patch:
            if not together:
                patch.setattr(trees, "CLUSTER_COST", -np.inf)
            tree = join_tree(simple, part, scopes, 4096)
        listed = legal_tuples(simple, part, 4096)
        assert listed is not None
        if not len(listed[1]):
            assert tree is None
            continue
        assert tree is not None
        found = states_of(tree, simple.n)[:, listed[0]]
        assert len(found) == len(listed[1]) == len(np.unique(found, axis=0))
        np.testing.assert_array_equal(np.unique(found, axis=0), np.unique(listed[1], axis=0))
        for scope in scopes:
            assert any(set(scope) <= set(cluster.variables) for cluster in tree)
        for cluster in tree:  # no row is without a state
            columns = [listed[0].index(i) for i in cluster.variables]
            np.testing.assert_array_equal(np.unique(cluster.rows, axis=0), np.unique(listed[1][:, columns], axis=0))


@settings(max_examples=60)
@given(models(most=4))
def test_legal_tuples_are_those_of_brute_force(model: FactorGraph) -> None:
    try:
        simple = simplify(model)
    except Unsatisfiable:
        reject()
    parts = hard_tables(simple)
    assume(parts)
    found = legal_tuples(simple, parts, 4096)
    assert found is not None
    variables, tuples = found
    hard = factor_graph(simple.cards.tolist(), [(scope, allowed.astype(float)) for scope, allowed in parts])
    states, weights = brute_force(hard)
    np.testing.assert_array_equal(
        np.unique(tuples, axis=0).reshape(-1, len(variables)),
        np.unique(states[weights > 0][:, variables], axis=0).reshape(-1, len(variables)),
    )


def test_few_states_are_one_cluster() -> None:
    """However wide elimination would be: by joining clusters, and where no order serves, by listing."""
    (tree,) = Blocks().parts(simplify(hard_grid(6, 6)))
    assert len(tree) == 1 and tree[0].rows.shape == (2, 36)
    rng = np.random.default_rng(0)
    edges = {(i, int(j)) for i in range(1, 200) for j in rng.integers(i, size=2)}
    (tree,) = Blocks().parts(simplify(factor_graph([2] * 200, [(edge, SAME) for edge in sorted(edges)])))
    assert len(tree) == 1 and tree[0].rows.shape == (2, 200)


@pytest.mark.parametrize("edges", [[(i, i + 1) for i in range(999)], [(0, i) for i in range(1, 1000)]])
def test_long_chains_and_wide_stars(edges: list[tuple[int, int]]) -> None:
    (tree,) = Blocks().parts(simplify(factor_graph([2] * 1000, [(edge, SAME) for edge in edges])))
    assert len(tree) == 1 and tree[0].rows.shape == (2, 1000)
    differ = 1.0 - np.eye(4)
    model = simplify(factor_graph([4] * 1000, [(edge, differ) for edge in edges]))
    (part,) = components(hard_tables(model))
    found = join_tree(model, part, edges, 4096)
    assert found is not None and sum(len(cluster.rows) for cluster in found) <= 12_000


def test_soft_factors_count_for_the_width() -> None:
    """Hard links along a path, soft ones between all its variables."""
    step = np.eye(3) + np.roll(np.eye(3), 1, axis=1)
    ring = [([i, (i + 1) % 30], step) for i in range(30)]
    soft = [([i, j], np.exp(np.eye(3))) for i, j in itertools.combinations(range(30), 2)]
    assert len(Blocks().parts(simplify(factor_graph([3] * 30, ring)))) == 1
    assert Blocks().parts(simplify(factor_graph([3] * 30, [*ring, *soft]))) == []
