"""MC-SAT (Poon and Domingos, 2006) as a frozen value, for both kinds of model, and a factor graph laid out for its
kernel: a Markov logic network is grounded for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from definetti.errors import ModelError, Notice, TooLarge

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.samplers.graph.lanes import Engine, Orders, Slots
    from definetti.samplers.logic.queries import Asked
    from definetti.samplers.protocol import Plan, Sampling

MOST_VALUES = (1 << 16) - 1  # of one variable
MOST_ACTIVE = 1 << 18  # factors of one component
DIAGRAM = 1_200_000  # bytes of a decision diagram
TINY = 1e-300  # the least weight of what is possible: levels below it stay apart from 0


@dataclass(frozen=True)
class MCSat:
    """MC-SAT, slice sampling over factors: each sample is a solution of a random part of the model.

    Solutions are drawn uniformly, and the sampler is exact, where they can be listed or counted. Where a connected part
    has too many, SampleSAT's solutions are only nearly uniform: `run["approximate_share"]` is the share of such
    samples, and if there are any the answer carries the failing notice `approximate`.

    Parameters
    ----------
    temperature : float
        Of SampleSAT's annealing moves, used where solutions cannot be counted.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 0]])])
    >>> dft.marginals(model, sampler=dft.MCSat(), sweeps=10, seed=7).run["sampler"]
    'mcsat'
    """

    temperature: float = 0.5

    name = "mcsat"
    scan = "none"
    kinds = ("graph", "logic")
    single_site = conditionals = False  # a slice has no full conditionals
    visits_once = warms_up = True

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ModelError(f"the temperature of MC-SAT must be positive, got {self.temperature}")

    def alone(self, model: FactorGraph) -> np.ndarray:
        """No variable moves by itself only."""
        return model.free[:0]

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        from definetti.samplers.graph.mcsat import build

        return build(model, slots, self.temperature)

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        from definetti.samplers.graph.lanes import Orders, words

        return Orders("fixed", sites, words(seed, (4,)))  # only their number counts

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        from definetti.samplers.logic.mcsat import MCSatSampling

        return MCSatSampling(asked, self.temperature, plan)


# --- a factor graph for the kernel -----------------------------------------------------------------------------------


class Graph(NamedTuple):
    """A factor of several variables has a record at each of them: its number, its place in `shapes`, its variables."""

    start: np.ndarray  # int64[n + 1]: where a variable's records start
    records: np.ndarray  # uint32
    shapes: np.ndarray  # int64, by table: width, place of its weights, then what a step of each variable adds to it
    weights: np.ndarray  # float64: entries of tables, the largest 1; 0 is impossible
    own: np.ndarray  # float64, by literal: weights of the factors of one variable alone
    literal: np.ndarray  # int64[n + 1]: where a variable's literals start
    free: np.ndarray  # int32
    cell: np.ndarray  # int64, by literal: place of its statistic; 0 belongs to none


class State(NamedTuple):
    x: np.ndarray  # uint8[n]: the current state
    y: np.ndarray  # uint8[n]: the next one
    left: np.ndarray  # uint16[n]: how many values are open
    open: np.ndarray  # uint8, by literal
    members: np.ndarray  # int64: variables: a queue for propagation, then a component
    place: np.ndarray  # int64[n]: their places in it; -1 for those in none yet
    room: np.ndarray  # int64[2 ROOM]: places of entries; solutions of a small component
    active: np.ndarray  # int64[capacity]: the records of a component's factors
    levels: np.ndarray  # float64[capacity]: their levels
    starts: np.ndarray  # int64[n + 1]: by place: where its factors start in `touching`
    touching: np.ndarray  # int32
    bad: np.ndarray  # int32[2, capacity]: violated factors, and where each stands among them
    last: np.ndarray  # int64[capacity]: the place of a factor's last variable
    leaves: np.ndarray  # int64[n], by place: the last place that its factors have
    field: np.ndarray  # int64[n], by place: the first bit of its value in the keys of nodes
    front: np.ndarray  # int64[64]: places of the variables in the keys of a layer
    keys: np.ndarray  # int64[nodes] of a decision diagram
    counts: np.ndarray  # float64[nodes]: solutions behind a node
    found: np.ndarray  # int64[nodes]: where in `table`
    edges: np.ndarray  # int64[nodes + 1]: where a node's edges start
    to: np.ndarray  # int64, by edge: the node it leads to
    value: np.ndarray  # int64, by edge
    table: np.ndarray  # int64: nodes of the layer under way, by key; -1 for none
    clock: np.ndarray  # int64[8]
    streams: np.ndarray  # uint64[5]: xoshiro256++, then the key of the slices
    sums: np.ndarray  # float64[3, cells]: counts of a sample under way, of the batch, sum of squares


def graph_of(model: FactorGraph, cell: np.ndarray) -> Graph:
    """The kernel's arrays; `cell` is the place of each literal's statistic, 0 for none."""
    if (most := int(model.cards[model.free].max(initial=0))) > MOST_VALUES:
        raise TooLarge("the number of values of one variable", most, MOST_VALUES, "use the Gibbs sampler")
    shapes, place = _shapes(model)
    start, records = _records(model, place)
    return Graph(
        start,
        records,
        shapes,
        _weights(model.tables, model.table_start),
        _weights(_own(model), model.literal_start),
        np.ascontiguousarray(model.literal_start),
        model.free.astype(np.int32),
        np.ascontiguousarray(cell, dtype=np.int64),
    )


def _weights(logs: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Of logarithms in tables that begin at `start`: the largest of each table becomes 1."""
    if not len(logs):
        return np.zeros(0)
    largest = np.maximum.reduceat(logs, start[:-1])
    shift = np.repeat(np.where(np.isfinite(largest), largest, 0.0), np.diff(start))
    return np.where(np.isneginf(logs), 0.0, np.maximum(np.exp(logs - shift), TINY))


def _own(model: FactorGraph) -> np.ndarray:
    """By literal: the sum of the logarithms of the factors of one variable alone."""
    own = np.zeros(int(model.literal_start[-1]))
    for alike in model.by_shape:
        if alike.arity == 1:
            np.add.at(own, model.literal_start[alike.scopes] + np.arange(alike.size), model.entries(alike))
    return own


def _shapes(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """Width, place of the weights and strides of every table in use, and where each table's begin."""
    place, parts, size = np.zeros(len(model.table_start) - 1, dtype=np.int64), [np.zeros(0, np.int64)], 0
    for table, factor in zip(*np.unique(model.table_of, return_index=True), strict=True):
        strides = model.strides[model.scope_start[factor] : model.scope_start[factor + 1]]
        parts.append(np.array([len(strides), model.table_start[table], *strides], dtype=np.int64))
        place[table] = size
        size += len(parts[-1])
    return np.concatenate(parts), place


def _records(model: FactorGraph, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel reads at each variable, in one stream: number, shape and variables of each of its factors."""
    widths = model.arity
    blocks = [
        (w, j, np.flatnonzero(widths == w).astype(np.int32))
        for w in np.unique(widths[widths > 1]).tolist()
        for j in range(w)
    ]
    start = np.zeros(model.n + 1, dtype=np.int64)
    for w, j, factor in blocks:
        start[1:] += (2 + w) * np.bincount(model.scope[model.scope_start[factor] + j], minlength=model.n)
    np.cumsum(start, out=start)
    records, used = np.zeros(int(start[-1]), dtype=np.uint32), start[:-1].copy()
    for w, j, factor in blocks:
        owner = model.scope[model.scope_start[factor] + j]
        order = np.argsort(owner, kind="stable").astype(np.int32)
        factor, owner = factor[order], owner[order]
        counts = np.bincount(owner, minlength=model.n)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        at = used[owner] + rank * (2 + w)
        records[at] = factor
        records[at + 1] = place[model.table_of[factor]]
        for k in range(w):
            records[at + 2 + k] = model.scope[model.scope_start[factor] + k]
        used += (2 + w) * counts
    return start, records


def state_of(model: FactorGraph, x: np.ndarray, streams: np.ndarray, statistics: int) -> State:
    """A chain at a legal state; `streams` are five words."""
    from definetti.samplers.kernels.graph.mcsat import NODES, PLACES, ROOM

    n, literals = model.n, int(model.literal_start[-1])
    widths = model.arity
    widest = np.sort(widths[widths > 1])[-MOST_ACTIVE:]  # what a component can hold at most
    capacity, touching = max(1, len(widest)), max(1, int(widest.sum()))
    return State(
        x.astype(np.uint16),
        x.astype(np.uint16),
        np.ones(n, np.uint16),
        np.zeros(literals, np.uint8),
        np.zeros(max(literals, 1), np.int64),
        np.full(n, -1, np.int64),
        np.zeros(2 * ROOM, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(n + 1, np.int64),
        np.zeros(touching, np.int32),
        np.zeros((2, capacity), np.int32),
        np.zeros(capacity, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(64, np.int64),
        np.zeros(NODES, np.int64),
        np.zeros(NODES),
        np.zeros(NODES, np.int64),
        np.zeros(NODES + 1, np.int64),
        np.zeros(2 * NODES, np.int64),
        np.zeros(2 * NODES, np.int64),
        np.full(PLACES, -1, np.int64),
        np.zeros(8, np.int64),
        streams,
        np.zeros((3, 1 + statistics)),
    )


def approximate_share(clocks: Iterable[np.ndarray]) -> float:
    """The share of samples with a component that was not drawn uniformly from its solutions."""
    from definetti.samplers.kernels.graph.mcsat import ROUGH, SAMPLE

    seen = np.array([np.zeros(8, np.int64), *clocks])
    return int(seen[:, ROUGH].sum()) / max(1, int(seen[:, SAMPLE].sum()))


def doubts(clocks: Iterable[np.ndarray]) -> list[Notice]:
    """Where components were too large to be drawn exactly, and where no solution was found for them."""
    from definetti.samplers.kernels.graph.mcsat import FAILED, LARGEST, WALKED

    seen = np.array([np.zeros(8, np.int64), *clocks])
    walked, failed = int(seen[:, WALKED].sum()), int(seen[:, FAILED].sum())
    if not walked:
        return []
    largest = int(seen[:, LARGEST].max())
    text = (
        f"{100 * approximate_share(seen):.3g} % of MC-SAT's samples have a part (up to {largest} variables) with too "
        "many solutions to count. SampleSAT's choice among these is only nearly uniform: the numbers may be off by "
        "more than their errors"
    )
    out = [Notice("approximate", text)]
    if 2 * failed > walked:
        text = f"{failed} of {walked} times SampleSAT found no solution and the variables stayed as they were"
        out.append(Notice("not-mixed", text))
    return out
