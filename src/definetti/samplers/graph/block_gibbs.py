"""Block moves: the variables of a connected part of the hard factors are drawn together, given all others.

Parts which single moves do not connect (or may not) are blocks, however many legal states they have, if elimination
on them needs small tables only (`solvers/graph/join_tree.py`); every other variable is a block of its own. Blocks are
parts of the model, and the order of elimination does not change what is drawn, so the moves commute with its
symmetries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from definetti.constraints.graph.connectivity import Part, unconnected_parts
from definetti.errors import ModelError, TooLarge
from definetti.memory import available_memory
from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph.lanes import ByteBlock, Engine, Orders, Seeds, Slots, words
from definetti.samplers.graph.tables import Stuck, check_values
from definetti.solvers.graph.join_tree import Cluster, Tree, join_tree, single

MOST_ROWS = 4096  # legal tuples in the largest table of elimination


@dataclass(frozen=True)
class Blocks:
    """Joint draws of the parts of the hard factors that single moves do not connect.

    Parameters
    ----------
    scan : {"symmetric", "fixed"}
        The order of a sweep, as for `Gibbs`.
    most : int
        The most legal tuples in the largest table that this needs.

    Examples
    --------
    >>> import definetti as dft
    >>> differ = dft.factor_graph([2, 2], [([0, 1], [[0, 1], [1, 0]])])
    >>> dft.marginals(differ, sampler=dft.Blocks(), sweeps=10, seed=7).run["sampler"]
    'blocks'
    """

    scan: str = "symmetric"
    most: int = MOST_ROWS

    def __post_init__(self) -> None:
        if self.scan not in ("symmetric", "fixed"):
            raise ModelError(f"blocks are drawn once per sweep, in the scan 'symmetric' or 'fixed', not {self.scan!r}")

    name = "blocks"
    kinds = ("graph",)
    single_site = False
    visits_once = conditionals = warms_up = True

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time."""
        together = [i for tree in self.parts(model) for cluster in tree for i in cluster.variables]
        return np.setdiff1d(model.free, together)

    def parts(self, model: FactorGraph) -> list[Tree]:
        """A join tree for every part that is drawn jointly."""
        return [tree for tree in _trees(model, self.most) if tree is not None]

    def covers(self, model: FactorGraph) -> bool:
        """Whether every part that single moves may not connect is a block: then every state can be reached."""
        return all(tree is not None for tree in _trees(model, self.most))

    def engine(self, model: FactorGraph, slots: Slots) -> JointEngine:
        return build(model, slots, self.parts(model))

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return Orders(self.scan, sites, words(seed, (4,)), orbit_of)


@lru_cache(maxsize=1)  # choosing a sampler, compiling it and watching it ask the same about the same model
def _trees(model: FactorGraph, most: int) -> tuple[Tree | None, ...]:
    """For every part that single moves may not connect; None where a table would be too large."""
    parts = unconnected_parts(model)
    scopes = _scopes_within(model, parts)
    return tuple(join_tree(model, part, inside, most) for part, inside in zip(parts, scopes, strict=True))


def _scopes_within(model: FactorGraph, parts: Sequence[Sequence[Part]]) -> list[list[list[int]]]:
    """For every part the variables that each factor, hard or soft, has in it."""
    part_of = np.full(model.n, -1)
    for p, part in enumerate(parts):
        part_of[[i for scope, _ in part for i in scope]] = p
    factor = model.owner_of
    inside: dict[tuple[int, int], list[int]] = {}
    at = np.flatnonzero(part_of[model.scope] >= 0)
    variables = model.scope[at]
    for p, k, i in zip(part_of[variables].tolist(), factor[at].tolist(), variables.tolist(), strict=True):
        inside.setdefault((p, k), []).append(i)
    out: list[list[list[int]]] = [[] for _ in parts]
    for (p, _), scope in inside.items():
        out[p].append(scope)
    return out


@dataclass(frozen=True, eq=False)
class JointEngine(Engine):
    model: Any  # kernels.block_gibbs.Joint
    cards: np.ndarray
    slots: Slots
    names: tuple[str, ...]
    name: str = "joint"
    width: int = 16
    together: int = 1

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> JointBlock:
        return JointBlock(self, starts, seeds[0])

    def memory(self, chains: int, conditionals: bool) -> int:
        rows, groups, clusters = self.largest
        return chains * (len(self.names) + 16 * self.slots.count + 8 * (rows + 2 * groups + clusters + 1))

    @property
    def largest(self) -> tuple[int, int, int]:
        """The most rows, groups of them and clusters that a block has."""
        group = self.model.group[self.model.start]
        counts = (self.model.row[group], group, self.model.start)
        rows, groups, clusters = (int(np.diff(count).max(initial=0)) for count in counts)
        return rows, groups, clusters


def build(model: FactorGraph, slots: Slots, parts: list[Tree]) -> JointEngine:
    """Compile a simplified model with these parts as blocks."""
    return JointEngine(compiled(model, slots, parts), model.cards.astype(np.int64), slots, model.names)


class JointBlock(ByteBlock):
    """Chains whose joint blocks are drawn together."""

    def __init__(self, engine: JointEngine, starts: np.ndarray, seed: np.random.SeedSequence) -> None:
        from definetti.samplers.kernels.graph import block_gibbs as kernels

        super().__init__(engine.slots, starts, seed)
        self._kernels, self._engine = kernels, engine
        rows, groups, clusters = engine.largest
        self._work = kernels.Work(
            np.zeros((rows, self.lanes)),
            np.zeros((groups, self.lanes)),
            np.zeros((groups, self.lanes)),
            np.zeros((clusters, self.lanes), np.int64),
            np.zeros(self.lanes, np.int64),
            np.zeros(len(engine.model.start) - 1, np.bool_),
        )

    def run(self, orders: np.ndarray, folded: int) -> None:
        engine = self._engine
        stuck = self._kernels.run_sweeps(
            engine.model, self.state, orders, self._streams, self._work, self._sums, engine.cards, folded
        )
        if stuck >= 0:
            root = engine.model.start[stuck + 1] - 1
            name = engine.names[engine.model.variable[engine.model.own[root]]]
            raise Stuck(f"every value of {name} became impossible: the chain's start was illegal")


# --- join trees and factors as flat arrays ---------------------------------------------------------------------------


def compiled(model: FactorGraph, slots: Slots, parts: Sequence[Tree]) -> Any:
    """`kernels.block_gibbs.Joint` of a simplified model: these parts are blocks, and so is every other variable."""
    from definetti.samplers.kernels.graph import block_gibbs as kernels

    check_values(model)
    forest = _forest(model, parts)
    weighed = _weighed(model, forest)
    own = np.flatnonzero(forest.home[forest.variable] == forest.cluster)
    variable = forest.variable[own]
    out = kernels.Joint(
        block_of=forest.block_of,
        start=_starts([len(tree) for tree in forest.blocks]),
        **_groups(forest),
        own=_starts(np.bincount(forest.cluster[own], minlength=len(forest.clusters))),
        variable=variable,
        slot=slots.start[slots.row_of[variable]].astype(np.int64),
        value_at=forest.value_at[own],
        value=forest.value,
        touch=_starts(np.bincount(weighed.cluster, minlength=len(forest.clusters))),
        first=np.ascontiguousarray(model.table_start[model.table_of[weighed.factor]]),
        **_offsets(forest, weighed),
        **_others(model, weighed),
        log=np.ascontiguousarray(model.tables),
    )
    at = weighed.number
    column, cluster = _columns(model, forest, weighed), weighed.cluster[at]
    kernels.add_offsets(
        out.offset, out.offset_at[at], model.strides, out.value, forest.value_at[column], forest.row[cluster],
        forest.row[cluster + 1],
    )  # fmt: skip
    return out


def _starts(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _joined(parts: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)


# --- clusters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Forest:
    """The clusters of all blocks; a *column* is a variable of a cluster with its values in the cluster's rows."""

    blocks: list[Tree]
    clusters: list[Cluster]
    block_of: np.ndarray  # int64[n]: -1 for observed variables
    home: np.ndarray  # int64[n]: the cluster nearest to the root that has the variable
    row: np.ndarray  # int64[C + 1]: cluster c has the rows row[c] : row[c + 1]
    cluster: np.ndarray  # int64 by column
    variable: np.ndarray  # int32 by column
    value_at: np.ndarray  # int64 by column: where its values begin, less the number of the cluster's first row
    value: np.ndarray  # uint8


def _forest(model: FactorGraph, parts: Sequence[Tree]) -> Forest:
    together = {i for tree in parts for cluster in tree for i in cluster.variables}
    alone = [single(i, int(model.cards[i])) for i in model.free.tolist() if i not in together]
    blocks = sorted([*parts, *alone], key=lambda tree: min(i for cluster in tree for i in cluster.variables))
    clusters = [cluster for tree in blocks for cluster in tree]
    row = _starts([len(c.rows) for c in clusters])
    cluster = np.repeat(np.arange(len(clusters)), [len(c.variables) for c in clusters])
    variable = np.array([i for c in clusters for i in c.variables], dtype=np.int32)
    home = np.full(model.n, -1, dtype=np.int64)
    np.maximum.at(home, variable, cluster)  # parents come after their children
    block = np.repeat(np.arange(len(blocks)), [len(tree) for tree in blocks])
    block_of = np.full(model.n, -1, dtype=np.int64)
    block_of[model.free] = block[home[model.free]]
    value_at = _starts(np.diff(row)[cluster])[:-1] - row[cluster]
    value = _joined([c.rows.T.ravel() for c in clusters], np.uint8)
    return Forest(blocks, clusters, block_of, home, row, cluster, variable, value_at, value)


def _groups(forest: Forest) -> dict[str, np.ndarray]:
    """Groups of rows, and how rows of parents lead to them."""
    clusters = forest.clusters
    begin = _starts([len(tree) for tree in forest.blocks])[:-1]
    parent = np.array(
        [b + c.parent if c.parent >= 0 else -1 for b, t in zip(begin, forest.blocks, strict=True) for c in t]
    )
    parent = parent.astype(np.int64)
    group = _starts([int(c.group[-1]) + 1 for c in clusters])
    rows = _joined([c.group + first for c, first in zip(clusters, group, strict=False)], np.int64)
    reach = _starts([len(c.reach) for c in clusters])[:-1]
    return {
        "group": group,
        "row": _starts(np.bincount(rows, minlength=int(group[-1]))),
        "parent": parent,
        "reach_at": reach - forest.row[np.maximum(parent, 0)],
        "reach": _joined([c.reach + first for c, first in zip(clusters, group, strict=False)], np.int64),
    }


# --- factors -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Weighed:
    """Each factor once for each block that it touches, in the order of the clusters that weigh it."""

    factor: np.ndarray  # int64[M]
    cluster: np.ndarray  # int64[M]
    number: np.ndarray  # int64 beside the model's `scope`: with which of them the variable's block weighs the factor


def _weighed(model: FactorGraph, forest: Forest) -> Weighed:
    """Of the homes of a factor's variables the one furthest from the root has all of them that are in the block."""
    factor = model.owner_of
    count = max(len(forest.blocks), 1)
    pairs, number = np.unique(factor * count + forest.block_of[model.scope], return_inverse=True)
    cluster = np.full(len(pairs), len(forest.clusters), dtype=np.int64)
    np.minimum.at(cluster, number, forest.home[model.scope])
    order = np.argsort(cluster, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Weighed((pairs // count)[order], cluster[order], rank[number])


def _offsets(forest: Forest, weighed: Weighed) -> dict[str, np.ndarray]:
    """Room for what a row's values add to a factor's entry: an integer for each factor and row."""
    start = _starts(np.diff(forest.row)[weighed.cluster])
    need, have = 4 * int(start[-1]), 0.8 * available_memory()
    if need > have:
        raise TooLarge("the array of the factors of blocks", need, have, "use another sampler", unit="bytes")
    return {"offset_at": start[:-1] - forest.row[weighed.cluster], "offset": np.zeros(int(start[-1]), np.int32)}


def _columns(model: FactorGraph, forest: Forest, weighed: Weighed) -> np.ndarray:
    """int64 beside the model's `scope`: the column of the variable in the cluster that weighs the factor."""
    key = forest.cluster * model.n + forest.variable
    order = np.argsort(key)
    wanted = weighed.cluster[weighed.number] * model.n + model.scope
    return order[np.searchsorted(key, wanted, sorter=order)]


def _others(model: FactorGraph, weighed: Weighed) -> dict[str, np.ndarray]:
    """The variables of each factor outside the block, and how far one step of each goes in the table."""
    arity = model.arity[weighed.factor]
    number = np.repeat(np.arange(len(arity)), arity)
    at = np.arange(len(number)) + np.repeat(model.scope_start[weighed.factor] - _starts(arity)[:-1], arity)
    out = weighed.number[at] != number
    return {
        "outside": _starts(np.bincount(number[out], minlength=len(arity))),
        "other": np.ascontiguousarray(model.scope[at[out]]),
        "stride": np.ascontiguousarray(model.strides[at[out]]),
    }
