"""Small models with known symmetries, and actions of groups on states: shared by exact and sampled tests."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.symmetry.graph.group import GraphSymmetries


@st.composite
def pair_models(draw: st.DrawFn, zeros: bool = True, most: int = 4) -> FactorGraph:
    """Binary pairwise models with few kinds of couplings (so that neighbours are counted together), zeros, evidence."""
    n = draw(st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = [np.exp(rng.normal(size=(2, 2))) for _ in range(2)]
    if zeros and rng.random() < 0.4:
        kinds[1][tuple(rng.integers(2, size=2))] = 0.0
    factors: list[tuple[list[int], np.ndarray]] = []
    for i in range(n):
        if rng.random() < 0.5:
            factors.append(([i], np.exp(rng.normal(size=2))))
        for j in range(i):
            if rng.random() < 0.7:
                factors.append(([i, j] if rng.random() < 0.5 else [j, i], kinds[int(rng.integers(2))]))
    model = factor_graph([2] * n, factors)
    return model.condition({0: int(rng.integers(2))}) if rng.random() < 0.3 else model


def ising_ring(n: int, coupling: float = 0.7, field: float = 0.0) -> FactorGraph:
    bond = [[coupling, -coupling], [-coupling, coupling]]
    pairs = [([i, (i + 1) % n], bond) for i in range(n)]
    return factor_graph([2] * n, pairs + [([i], [-field, field]) for i in range(n)], log=True)


def mean_field(n: int, coupling: float, field: float = 0.0) -> FactorGraph:
    """Every pair coupled alike; a negative coupling is the antiferromagnet."""
    bond = [[coupling, -coupling], [-coupling, coupling]]
    pairs = [([i, j], bond) for i in range(n) for j in range(i)]
    return factor_graph([2] * n, pairs + [([i], [-field, field]) for i in range(n)], log=True)


def potts_ring(n: int, values: int, coupling: float = 0.8) -> FactorGraph:
    """Values may be permuted and the ring turned."""
    return factor_graph([values] * n, [([i, (i + 1) % n], coupling * np.eye(values)) for i in range(n)], log=True)


def triples(seed: int = 3) -> FactorGraph:
    """Three-variable tables over 2 to 5 values: two equal halves that may be swapped, and one shared variable."""
    rng = np.random.default_rng(seed)
    table = np.exp(rng.normal(size=(3, 2, 5)))
    return factor_graph([3, 2, 3, 2, 5], [([0, 1, 4], table), ([2, 3, 4], table), ([4], np.exp(rng.normal(size=5)))])


def implications() -> FactorGraph:
    """Six binary variables: a ∧ b ⇒ c softly, with few weights, so that products of both signs are counted together."""
    implies = np.zeros((2, 2, 2))
    implies[1, 1, 0] = -1.1
    triples = [(scope, implies) for scope in ([0, 1, 2], [1, 2, 3], [4, 2, 0], [5, 1, 4], [3, 5, 2])]
    pairs = [([i, 5], [[0.0, 0.7], [0.2, 0.0]]) for i in range(3)] + [([4, 5], [[0.0, 0.0], [0.0, -1.1]])]
    return factor_graph(
        [2] * 6, [*triples, *pairs, ([3, 4, 5], -implies), ([0], [0.0, 0.4]), ([4], [0.3, 0.0])], log=True
    )


@st.composite
def cubic_models(draw: st.DrawFn) -> FactorGraph:
    """Soft binary models of factors over one to three variables, tables repeated with either sign, evidence."""
    n = draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = {k: [rng.normal(size=[2] * k) * (rng.random([2] * k) < 0.6) for _ in range(2)] for k in (1, 2, 3)}
    factors = []
    for _ in range(draw(st.integers(1, 9))):
        scope = rng.permutation(n)[: rng.integers(1, min(n, 3) + 1)].tolist()
        factors.append((scope, rng.choice([-1.0, 1.0]) * kinds[len(scope)][int(rng.integers(2))]))
    model = factor_graph([2] * n, factors, log=True)
    return model.condition({0: int(rng.integers(2))}) if rng.random() < 0.3 else model


def hub() -> FactorGraph:
    """One variable in 21 factors with six others."""
    rng = np.random.default_rng(5)
    others = [c for k in (1, 2) for c in itertools.combinations(range(1, 7), k)]
    return factor_graph([2] * 7, [([*c, 0], np.exp(rng.normal(size=[2] * (len(c) + 1)))) for c in others])


def many_at_once() -> FactorGraph:
    """Tables over six and four variables, one of which has five values."""
    rng = np.random.default_rng(6)
    cards = [2, 2, 3, 2, 5, 2]
    scopes = [[0, 1, 2, 3, 4, 5], [4, 2, 0, 1]]
    return factor_graph(cards, [(scope, np.exp(rng.normal(size=[cards[i] for i in scope]))) for scope in scopes])


def hard_pairs() -> FactorGraph:
    """No two neighbours on a path of four are both 1 (hard), 1 is likely; the path may be reversed."""
    apart = np.array([[1.0, 1.0], [1.0, 0.0]])
    return factor_graph([2] * 4, [([i, i + 1], apart) for i in range(3)] + [([i], [1.0, 2.0]) for i in range(4)])


def moved(states: np.ndarray, model: FactorGraph, element: np.ndarray) -> np.ndarray:
    """The states that a permutation of literals takes states[S, n] to."""
    literals = element[model.literal_start[:-1] + states]
    variable = np.searchsorted(model.literal_start, literals, side="right") - 1
    out = np.empty_like(states)
    np.put_along_axis(out, variable, literals - model.literal_start[variable], axis=1)
    return out


def dense(group: GraphSymmetries) -> list[np.ndarray]:
    """The generators as dense permutations of literals."""
    out = []
    for points, images in group.group.generators:
        element = np.arange(int(group.model.literal_start[-1]))
        element[points] = images
        out.append(element)
    return out


def all_elements(group: GraphSymmetries) -> np.ndarray:
    """Every element of a small group, by closing its generators."""
    one = tuple(range(int(group.model.literal_start[-1])))
    found, frontier = {one}, [one]
    while frontier:
        images = {tuple(g[list(element)].tolist()) for element in frontier for g in dense(group)}
        frontier = list(images - found)
        found |= images
    return np.array(sorted(found))
