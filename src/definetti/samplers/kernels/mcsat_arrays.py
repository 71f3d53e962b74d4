"""What the kernel of MC-SAT is given: a factor graph, and a chain with its scratch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
