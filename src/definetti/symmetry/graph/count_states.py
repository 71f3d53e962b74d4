"""Orbits of assignments of a factor graph under a group of its literals.

Direct factors of the group move different variables, so their orbits multiply. A factor that permutes whole blocks of
variables in every way has multisets for orbits; a small one is listed; of others random elements are drawn.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from definetti import groups
from definetti.groups import Factor, PermutationGroup
from definetti.model.graph.factors import FactorGraph
from definetti.symmetry.state_count import MOST_ELEMENTS, StateCount, burnside, elements, estimated, exactly, multisets

if TYPE_CHECKING:
    from definetti.symmetry.graph.group import GraphSymmetries


def count_states(symmetries: GraphSymmetries, seed: int = 0) -> StateCount:
    """The number of assignments of the free variables and of their orbits."""
    model, group = symmetries.model, symmetries.group
    touched = np.zeros(model.n, dtype=bool)
    total = exactly(1, 1, "none")
    for factor in _parts(model, group):
        variables = np.unique(model.variable_of[factor.support])
        touched[variables] = True
        total = total * _count(model, factor, variables, np.random.default_rng(seed))
    rest = math.prod(int(c) for c in model.cards[model.free][~touched[model.free]])
    return total * exactly(rest, rest, "none")


def _parts(model: FactorGraph, group: PermutationGroup) -> list[Factor]:
    """Direct factors; those that permute different values of one variable are taken together."""
    factors = groups.direct_factors(group)
    owner = [np.unique(model.variable_of[f.support]) for f in factors]
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *(np.column_stack([np.full(len(v), k), v]) for k, v in enumerate(owner))])
    label = groups.components(len(factors) + model.n, pairs[:, 0], len(factors) + pairs[:, 1])[: len(factors)]
    out = []
    for one in np.unique(label).tolist():
        mine = [factor for factor, l in zip(factors, label.tolist(), strict=True) if l == one]
        out.append(mine[0] if len(mine) == 1 else _together(mine))
    return out


def _together(factors: list[Factor]) -> Factor:
    support = np.unique(np.concatenate([factor.support for factor in factors]))
    generators = [
        (np.searchsorted(support, factor.support[points]), np.searchsorted(support, factor.support[images]))
        for factor in factors
        for points, images in factor.generators
    ]
    return Factor(support, generators, None)


def _count(model: FactorGraph, factor: Factor, variables: np.ndarray, rng: np.random.Generator) -> StateCount:
    states = math.prod(int(c) for c in model.cards[variables])
    if factor.blocks is not None and (kinds := _kinds(model, factor)) is not None:
        return exactly(states, multisets(kinds, len(factor.blocks)), "classes")
    degree = len(factor.support)
    group = PermutationGroup(degree, tuple(factor.generators))
    order = groups.order(group)
    if order is not None and order <= MOST_ELEMENTS:
        listed = elements((groups.dense(g, degree) for g in factor.generators), degree)
        return burnside(states, listed, lambda g: fixed_states(model, factor.support, g))
    drawn = groups.random_elements(group, rng)
    return estimated(states, drawn, lambda g: fixed_states(model, factor.support, g), order, degree)


def _kinds(model: FactorGraph, factor: Factor) -> int | None:
    """The assignments of one of the blocks that a symmetric group permutes; None if blocks share variables."""
    assert factor.blocks is not None
    blocks = model.variable_of[factor.support[factor.blocks]]
    first = np.unique(blocks[0])
    whole = sum(int(c) for c in model.cards[first]) == blocks.shape[1]
    apart = len(np.unique(blocks)) == len(blocks) * len(first)
    return math.prod(int(c) for c in model.cards[first]) if whole and apart else None


def fixed_states(model: FactorGraph, support: np.ndarray, element: np.ndarray) -> int:
    """Assignments of the moved variables that a permutation of `support` (positions) leaves as they are: in each cycle
    of variables those values of the first that come back to themselves."""
    image = dict(zip(support.tolist(), support[element].tolist(), strict=True))
    start, owner = model.literal_start, model.variable_of
    left = set(np.unique(owner[support]).tolist())
    total = 1
    while left:
        first = min(left)
        returning = 0
        for value in range(int(model.cards[first])):
            literal = begin = int(start[first]) + value
            while True:
                literal = image.get(literal, literal)
                left.discard(int(owner[literal]))
                if owner[literal] == first:
                    break
            returning += literal == begin
        left.discard(first)
        total *= returning
        if not total:
            return 0
    return total
