"""The smaller coloured graph, for models too large for a graph over literals: its automorphisms only rename variables.

One node per free variable (coloured by its unary factor), one per factor (coloured by its table, up to the order of the
axes), one for every further role. Axes that can change places in the table have the same role; the variables of the
first role are joined to the factor itself. The most common table of two variables in one role is an edge.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, permutations, product

import numpy as np

from definetti.groups import Generator
from definetti.integer_rows import mix
from definetti.model.graph.factors import FactorGraph, SameShape
from definetti.symmetry.graph.coloured_graph import ColouredGraph, numbered, unary_values
from definetti.symmetry.graph.twins import Twins

TRIES = 24  # orders of similar axes that are compared to find a table's normal form

Token = tuple[tuple[int, ...], bytes]


def normal_form(table: np.ndarray) -> tuple[Token, list[int]]:
    """A table up to the order of its axes, and the role of each axis (roles of equal tokens correspond)."""
    alike: dict[tuple[int, bytes], list[int]] = {}
    for axis in range(table.ndim):
        rows = np.sort(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1), axis=1)
        alike.setdefault((table.shape[axis], rows.tobytes()), []).append(axis)
    groups = [alike[key] for key in sorted(alike)]
    if math.prod(math.factorial(len(group)) for group in groups) <= TRIES:
        orders = [list(chain(*choice)) for choice in product(*(permutations(group) for group in groups))]
    else:
        orders = [list(chain(*groups))]
    turned = [(table.transpose(order), order) for order in orders]
    best, order = min(turned, key=lambda pair: pair[0].tobytes())
    role_at: list[int] = []
    for place in range(table.ndim):
        same = (p for p in range(place) if _interchangeable(best, p, place))
        role_at.append(next((role_at[p] for p in same), max(role_at, default=-1) + 1))
    role = [0] * table.ndim
    for place, axis in enumerate(order):
        role[axis] = role_at[place]
    return (best.shape, best.tobytes()), role


def _interchangeable(table: np.ndarray, a: int, b: int) -> bool:
    return table.shape[a] == table.shape[b] and np.array_equal(table, table.swapaxes(a, b))


def variable_graph(model: FactorGraph, twins: Twins) -> ColouredGraph:
    variables = twins.representatives
    node = np.full(model.n, -1, dtype=np.int64)
    node[variables] = np.arange(len(variables))
    shapes = [alike for alike in model.by_shape if alike.arity > 1]
    forms = [{t: normal_form(model.log_values(t, b.shape)) for t in np.unique(b.tables).tolist()} for b in shapes]
    direct = _commonest(shapes, forms)
    palette: dict[Token, int] = {}
    colours = [_variable_colours(model, twins)]
    edges = [np.empty((0, 2), dtype=np.int64)]
    count = len(variables)
    for alike, form in zip(shapes, forms, strict=True):
        numbers = sorted(form)
        token = np.array([palette.setdefault(form[t][0], len(palette)) for t in numbers])
        role = np.array([form[t][1] for t in numbers])
        plain = np.array([form[t][0] == direct for t in numbers])
        scopes = node[alike.scopes]
        kept = (scopes >= 0).all(axis=1)
        scopes, table = scopes[kept], np.searchsorted(numbers, alike.tables[kept])
        edges.append(scopes[plain[table]][:, :2])
        scopes, table = scopes[~plain[table]], table[~plain[table]]
        roles = role.max(axis=1)[table] + 1  # nodes of each factor
        first = count + np.cumsum(roles) - roles
        owner = np.repeat(np.arange(len(table)), roles)
        which = np.arange(len(owner)) - (first - count)[owner]
        colours.append(np.stack([np.ones_like(owner), token[table[owner]], which, np.zeros_like(owner)], axis=1))
        further = which > 0
        edges.append(np.stack([first[owner[further]], count + np.flatnonzero(further)], axis=1))
        ends = first[:, None] + role[table]
        edges.append(np.stack([ends.ravel(), scopes.ravel()], axis=1))
        count += len(owner)

    def carry(generator: Generator) -> tuple[np.ndarray, np.ndarray]:
        points, images = (variables[x[generator[0] < len(variables)]] for x in generator)
        cards = model.cards[points].astype(np.int64)
        value = np.arange(int(cards.sum())) - np.repeat(np.cumsum(cards) - cards, cards)
        start = model.literal_start
        return np.repeat(start[points], cards) + value, np.repeat(start[images], cards) + value

    return ColouredGraph(numbered(np.concatenate(colours)), np.concatenate(edges), carry)


def _commonest(shapes: list[SameShape], forms: list[dict[int, tuple[Token, list[int]]]]) -> Token | None:
    """The table, over two variables in one role, that most factors have."""
    uses: Counter[Token] = Counter()
    for alike, form in zip(shapes, forms, strict=True):
        if alike.arity == 2:
            for table, count in Counter(alike.tables.tolist()).items():
                if form[table][1] == [0, 0]:
                    uses[form[table][0]] += count
    return max(uses, key=lambda token: uses[token]) if uses else None


def _variable_colours(model: FactorGraph, twins: Twins) -> np.ndarray:
    start, variables, sizes = model.literal_start, twins.representatives, twins.sizes
    value = unary_values(model) + 1
    position = np.arange(len(value)) - start[model.variable_of]
    key = np.zeros(model.n, dtype=np.uint64)
    np.add.at(key, model.variable_of, mix(value * (int(model.cards.max(initial=1)) + 1) + position))
    unary = np.unique(key[variables], return_inverse=True)[1].ravel()
    return np.stack([np.zeros_like(sizes), unary, sizes, twins.cards[variables]], axis=1)
