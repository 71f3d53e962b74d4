"""Join trees: the legal states of a connected part of the hard factors as small tables that agree where they overlap.

A cluster is a set of variables with their legal tuples; every factor, hard or soft, lies within one; the clusters that
hold a variable are connected. Clusters come from an elimination order (min-fill), so that a long chain has many small
ones. Only tuples that some legal state has are kept: no cluster has more rows than the part has legal states. Clusters
that cost less together than apart are joined, so a part with two legal states, however large, is one cluster.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from definetti.constraints.graph.connectivity import Part, legal_tuples
from definetti.errors import TooLarge
from definetti.model.graph.factors import FactorGraph
from definetti.solvers.graph.elimination_order import min_fill_of

MOST_VARIABLES = 20_000  # of a part; each takes about 0.4 ms here
MOST_STATES = 2.0**48  # combinations of values, legal or not, of a cluster: they are numbered in 64 bits
AT_FIRST = 4  # times as many rows may a table have before those that no legal state has are dropped
MOST_CELLS = 2**26  # values in all tables while they are made
ROW_COST, CLUSTER_COST = 8.0, 30.0  # of drawing, measured in factors looked up: exp and log of a row, choosing one


@dataclass(frozen=True, eq=False)
class Cluster:
    """Rows with the same values of the variables shared with the parent are a group; groups follow one another."""

    variables: tuple[int, ...]
    rows: np.ndarray  # uint8[R, len(variables)]: legal tuples
    parent: int  # its place in the tree, after that of this cluster; -1: this is the root
    group: np.ndarray  # int64[R]: ascending from 0; all 0 in the root
    reach: np.ndarray  # int64[rows of the parent]: the group that goes with each


Tree = tuple[Cluster, ...]  # the root last


def single(variable: int, card: int) -> Tree:
    """One variable with all its values."""
    rows = np.arange(card, dtype=np.uint8)[:, None]
    return (Cluster((variable,), rows, -1, np.zeros(card, np.int64), np.zeros(0, np.int64)),)


def join_tree(model: FactorGraph, part: list[Part], scopes: Sequence[Sequence[int]], most: int) -> Tree | None:
    """A tree for hard factors that are connected; None if some cluster has more than `most` rows.

    `scopes`: the part's variables in every factor of the model that has any.
    """
    if len({i for scope, _ in part for i in scope}) > MOST_VARIABLES:
        return None
    return _by_elimination(model, part, scopes, most) or _by_listing(model, part, most)


def _by_elimination(model: FactorGraph, part: list[Part], scopes: Sequence[Sequence[int]], most: int) -> Tree | None:
    try:
        cliques = min_fill_of(scopes, model.cards, MOST_STATES).cliques
    except TooLarge:
        return None
    draft = _draft(model, part, cliques, AT_FIRST * most)
    if draft is None:
        return None
    draft.make_consistent()
    if not 0 < max(len(rows) for rows in draft.rows) <= most:
        return None
    draft.join_cheap(scopes, most)
    return draft.tree()


def _by_listing(model: FactorGraph, part: list[Part], most: int) -> Tree | None:
    """One cluster: for parts whose order of elimination is bad though they have few legal states."""
    found = legal_tuples(model, part, most)
    if found is None or not len(found[1]):
        return None
    variables, rows = found
    return Draft(model.cards, [tuple(variables)], [rows.astype(np.uint8)], [-1], [0]).tree()


# --- the tables --------------------------------------------------------------------------------------------------


def _draft(model: FactorGraph, part: list[Part], cliques: Sequence[tuple[int, ...]], most: int) -> Draft | None:
    """Each clique with the tuples that no hard factor forbids by itself."""
    touching: dict[int, set[int]] = {}
    by_itself = {i: np.ones(int(model.cards[i]), dtype=bool) for scope, _ in part for i in scope}
    for k, (scope, _) in enumerate(part):
        for i in scope:
            touching.setdefault(i, set()).add(k)
            by_itself[i] &= _onto(part[k], (i,))[1]
    position = {clique[0]: j for j, clique in enumerate(cliques)}
    rows, cells = [], 0
    known: dict[object, tuple[list[int], np.ndarray] | None] = {}
    for clique in cliques:
        near = {k for a, b in itertools.combinations(clique, 2) for k in touching[a] & touching[b]}
        alone = [((i,), by_itself[i]) for i in clique]
        found = _legal_once(model, [*alone, *(_onto(part[k], clique) for k in sorted(near))], most, known)
        cells += found[1].size if found else 0
        if found is None or cells > MOST_CELLS:
            return None
        column = {i: c for c, i in enumerate(found[0])}
        rows.append(found[1][:, [column[i] for i in clique]].astype(np.uint8))
    parent = [position[clique[1]] if len(clique) > 1 else -1 for clique in cliques]
    return Draft(model.cards, list(cliques), rows, parent, [len(clique) - 1 for clique in cliques])


def _legal_once(
    model: FactorGraph, parts: list[Part], most: int, known: dict[object, tuple[list[int], np.ndarray] | None]
) -> tuple[list[int], np.ndarray] | None:
    """`legal_tuples`; of parts that differ in the numbers of their variables alone, once."""
    variables = sorted({i for scope, _ in parts for i in scope})
    rank = {i: r for r, i in enumerate(variables)}
    key = tuple((*(rank[i] for i in scope), allowed.shape, allowed.tobytes()) for scope, allowed in parts)
    if key not in known:
        found = legal_tuples(model, parts, most)
        known[key] = found and ([rank[i] for i in found[0]], found[1])
    found = known[key]
    return found and ([variables[r] for r in found[0]], found[1])


def _onto(part: Part, variables: tuple[int, ...]) -> Part:
    """What a hard factor says of some variables, whatever its others are."""
    scope, allowed = part
    inside = tuple(i for i in scope if i in variables)
    if len(inside) == len(scope):
        return part
    return inside, np.asarray(allowed.any(axis=tuple(axis for axis, i in enumerate(scope) if i not in variables)))


@dataclass(eq=False)
class Draft:
    """A tree in the making; clusters that were joined to their parents have no rows left."""

    cards: np.ndarray
    variables: list[tuple[int, ...]]
    rows: list[np.ndarray]
    parent: list[int]
    common: list[int]  # how many of the variables, the last ones, are those of the parent too

    def shared(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """For the rows of a cluster and for those of its parent: the values they share, as a number."""
        up = self.parent[j]
        own = len(self.variables[j]) - self.common[j]
        both = self.variables[j][own:]
        stride = np.cumprod([1, *self.cards[list(both)].tolist()], dtype=np.int64)[:-1]
        return self.rows[j][:, own:] @ stride, self.rows[up][:, [self.variables[up].index(i) for i in both]] @ stride

    def make_consistent(self) -> None:
        """Keep the rows that go with some row of every child, then those that go with a row of the parent."""
        for j, up in enumerate(self.parent):
            if up >= 0:
                mine, theirs = self.shared(j)
                self.rows[up] = self.rows[up][np.isin(theirs, mine)]
        for j in reversed(range(len(self.parent))):
            if self.parent[j] >= 0:
                mine, theirs = self.shared(j)
                self.rows[j] = self.rows[j][np.isin(mine, theirs)]

    def join_cheap(self, scopes: Iterable[Sequence[int]], most: int) -> None:
        """Join clusters to their parents, from the leaves on, where drawing then costs less."""
        position = {clique[0]: j for j, clique in enumerate(self.variables)}
        work = np.full(len(self.variables), ROW_COST + 1)  # of a row: itself, its own variable, its factors
        for scope in scopes:
            work[min(position[i] for i in scope)] += 1
        for j, up in enumerate(self.parent):
            if up < 0:
                continue
            mine, theirs = self.shared(j)
            values, count = np.unique(mine, return_counts=True)
            at = np.searchsorted(values, theirs)
            size = int(count[at].sum())
            apart = len(mine) * work[j] + len(theirs) * work[up] + CLUSTER_COST
            together = work[j] + work[up] - ROW_COST
            if size <= most and size * together <= apart:
                self._join(j, np.argsort(mine, kind="stable"), (np.cumsum(count) - count)[at], count[at])
                work[up] = together

    def _join(self, j: int, order: np.ndarray, first: np.ndarray, count: np.ndarray) -> None:
        """Each row of the parent meets the `count` rows of j that begin at `first` in this order."""
        up, own = self.parent[j], len(self.variables[j]) - self.common[j]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        mine = self.rows[j][order[np.repeat(first, count) + within]]
        self.rows[up] = np.column_stack([mine[:, :own], np.repeat(self.rows[up], count, axis=0)])
        self.variables[up] = self.variables[j][:own] + self.variables[up]
        self.rows[j] = self.rows[j][:0]

    def tree(self) -> Tree:
        """From the root down: a cluster's rows are put in order of its groups, by what its parent's rows then are."""
        kept = [j for j, rows in enumerate(self.rows) if len(rows)]
        place = {j: c for c, j in enumerate(kept)} | {-1: -1}
        for j in reversed(range(len(self.parent))):
            if self.parent[j] not in place:  # it was joined to its own parent
                self.parent[j] = self.parent[self.parent[j]]
        out: list[Cluster] = []
        for j in reversed(kept):
            group, reach = np.zeros(len(self.rows[j]), np.int64), np.zeros(0, np.int64)
            if self.parent[j] >= 0:
                mine, theirs = self.shared(j)
                order = np.argsort(mine, kind="stable")
                self.rows[j] = self.rows[j][order]
                values, group = np.unique(mine[order], return_inverse=True)
                reach = np.searchsorted(values, theirs)
            out.append(Cluster(self.variables[j], self.rows[j], place[self.parent[j]], group, reach))
        return tuple(reversed(out))
