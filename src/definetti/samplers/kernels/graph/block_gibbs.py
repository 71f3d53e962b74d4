"""Joint draws of blocks by elimination on a join tree: from the leaves to the root every cluster's rows are weighed,
given the variables outside the block, and summed out; from the root to the leaves one row of each cluster is drawn.

Sums stay logarithms, so that nothing underflows and impossible rows need no care. A block of one variable is a tree of
one cluster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import lane_uniform

# As in `mcsat.py`: each level of calls is compiled once more, so few are left, and references are not counted.
helper = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inlined = njit(inline="always", error_model="numpy", _nrt=False)


class Joint(NamedTuple):
    """A compiled model. Block b has the clusters start[b] : start[b + 1], children before parents, the root last.

    Rows and groups of rows are numbered through all clusters. Places named `…_at` are less by the number of the
    cluster's first row (for `reach_at`: the parent's), so that they are added to a row's number.
    """

    block_of: np.ndarray  # int64[n]: -1 for observed variables
    start: np.ndarray  # int64[B + 1]
    group: np.ndarray  # int64[C + 1]: cluster c has the groups group[c] : group[c + 1]
    row: np.ndarray  # int64[G + 1]: group g has the rows row[g] : row[g + 1]
    parent: np.ndarray  # int64[C]: -1 for a root
    reach_at: np.ndarray  # int64[C]
    reach: np.ndarray  # int64: the group of a cluster that goes with a row of its parent
    own: np.ndarray  # int64[C + 1]: the variables that are given their values, and folded, with cluster c
    variable: np.ndarray  # int32
    slot: np.ndarray  # int64 beside `variable`: the slot of value 0
    value_at: np.ndarray  # int64 beside `variable`
    value: np.ndarray  # uint8
    touch: np.ndarray  # int64[C + 1]: the factors that are weighed with cluster c
    first: np.ndarray  # int64 by factor: the table's first entry
    offset_at: np.ndarray  # int64 by factor
    offset: np.ndarray  # int32: what the values of a row add to the entry
    outside: np.ndarray  # int64 by factor, one more: the variables outside the block
    other: np.ndarray  # int32
    stride: np.ndarray  # int64 beside `other`
    log: np.ndarray  # float64: by entry, -inf where impossible


class Work(NamedTuple):
    """What drawing one block in all lanes needs on the way, numbered from the block's first row, group and cluster."""

    weight: np.ndarray  # float64[rows, lanes]: first log weights, then weights within a group, then probabilities
    total: np.ndarray  # float64[groups, lanes]: the sum of a group's weights
    message: np.ndarray  # float64[groups, lanes]: the logarithm of its sum, then its probability
    chosen: np.ndarray  # int64[clusters, lanes]: the row drawn, as numbered through all clusters
    entry: np.ndarray  # int64[lanes]: of a factor's table
    done: np.ndarray  # bool by block


@helper
def add_offsets(offset, offset_at, stride, value, value_at, begin, end):
    """For the i-th variable that some factor has in a block: what its value in each of the rows adds to the entry."""
    for i in range(stride.shape[0]):
        for r in range(begin[i], end[i]):
            offset[offset_at[i] + r] += stride[i] * value[value_at[i] + r]


@helper
def pick(weight, begin, end, total, streams, lane):
    """The one line that draws: a row by its weight."""
    target = lane_uniform(streams, lane) * total
    for r in range(begin, end):
        target -= weight[r, lane]
        if target < 0.0 and weight[r, lane] > 0.0:
            return r
    for r in range(end - 1, begin - 1, -1):  # rounding
        if weight[r, lane] > 0.0:
            return r
    return -1


@helper
def fill(array, begin, end, value):
    """Rows of an array. (A slice would take numba seconds to compile.)"""
    for r in range(begin, end):
        for lane in range(array.shape[1]):
            array[r, lane] = value


@inlined
def weigh(model, c, row, state, work):
    """The log weight of a cluster's rows by its factors, given the variables outside the block."""
    begin, end = model.row[model.group[c]], model.row[model.group[c + 1]]
    fill(work.weight, begin - row, end - row, 0.0)
    for m in range(model.touch[c], model.touch[c + 1]):
        for lane in range(state.shape[1]):
            work.entry[lane] = model.first[m]
        for p in range(model.outside[m], model.outside[m + 1]):
            for lane in range(state.shape[1]):
                work.entry[lane] += model.stride[p] * state[model.other[p], lane]
        for r in range(begin, end):
            more = model.offset[model.offset_at[m] + r]
            for lane in range(state.shape[1]):
                work.weight[r - row, lane] += model.log[work.entry[lane] + more]


@helper
def normalise(weight, begin, end, g, total, message):
    """Turn the log weights of a group's rows into weights, the largest 1; their sum, and its logarithm."""
    fill(message, g, g + 1, -np.inf)
    fill(total, g, g + 1, 0.0)
    for r in range(begin, end):
        for lane in range(weight.shape[1]):
            message[g, lane] = max(message[g, lane], weight[r, lane])
    for r in range(begin, end):
        for lane in range(weight.shape[1]):
            weight[r, lane] = np.exp(weight[r, lane] - message[g, lane]) if message[g, lane] > -np.inf else 0.0
            total[g, lane] += weight[r, lane]
    for lane in range(weight.shape[1]):
        if total[g, lane] > 1.0:
            message[g, lane] += np.log(total[g, lane])


@inlined
def sum_out(model, c, row, group, work):
    """Normalise a cluster's groups, and add their sums to the parent's rows."""
    for g in range(model.group[c], model.group[c + 1]):
        normalise(work.weight, model.row[g] - row, model.row[g + 1] - row, g - group, work.total, work.message)
    up = model.parent[c]
    if up >= 0:
        for r in range(model.row[model.group[up]], model.row[model.group[up + 1]]):
            g = model.reach[model.reach_at[c] + r]
            for lane in range(work.weight.shape[1]):
                work.weight[r - row, lane] += work.message[g - group, lane]


@inlined
def draw_cluster(model, c, first, row, group, state, streams, work):
    """Draw a row among those that go with the parent's, and give the cluster's own variables their values."""
    up = model.parent[c]
    for lane in range(state.shape[1]):
        g = model.group[c] if up < 0 else model.reach[model.reach_at[c] + work.chosen[up - first, lane]]
        begin, end = model.row[g] - row, model.row[g + 1] - row
        r = row + pick(work.weight, begin, end, work.total[g - group, lane], streams, lane)
        work.chosen[c - first, lane] = r
        for j in range(model.own[c], model.own[c + 1]):
            state[model.variable[j], lane] = model.value[model.value_at[j] + r]


@inlined
def fold_cluster(model, c, row, group, work, conditional):
    """The probability of every row given all variables outside the block, added up by values."""
    up, first, last = model.parent[c], model.group[c], model.group[c + 1]
    fill(work.message, first - group, last - group, 1.0 if up < 0 else 0.0)
    if up >= 0:
        for r in range(model.row[model.group[up]], model.row[model.group[up + 1]]):
            g = model.reach[model.reach_at[c] + r]
            for lane in range(work.entry.shape[0]):
                work.message[g - group, lane] += work.weight[r - row, lane]
    for g in range(first, last):
        for lane in range(work.entry.shape[0]):
            if work.message[g - group, lane] > 0.0:  # else its weights may all be 0
                work.message[g - group, lane] /= work.total[g - group, lane]
        for r in range(model.row[g] - row, model.row[g + 1] - row):
            for lane in range(work.entry.shape[0]):
                work.weight[r, lane] *= work.message[g - group, lane]
    for j in range(model.own[c], model.own[c + 1]):
        for r in range(model.row[first], model.row[last]):
            slot = model.slot[j] + model.value[model.value_at[j] + r]
            for lane in range(work.entry.shape[0]):
                conditional[slot, lane] += work.weight[r - row, lane]


@inlined
def draw_block(model, b, state, streams, work, conditional, folded):
    """Draw a block in all lanes; false if in one of them every row is impossible."""
    begin, end = model.start[b], model.start[b + 1]
    group = model.group[begin]
    row = model.row[group]
    for c in range(begin, end):
        weigh(model, c, row, state, work)
    for c in range(begin, end):
        sum_out(model, c, row, group, work)
    for lane in range(state.shape[1]):
        if work.total[model.group[end - 1] - group, lane] <= 0.0:
            return False
    for c in range(end - 1, begin - 1, -1):
        draw_cluster(model, c, begin, row, group, state, streams, work)
    if folded == 2:
        for c in range(end - 1, begin - 1, -1):
            fold_cluster(model, c, row, group, work, conditional)
    return True


@helper
def run_sweeps(model, state, orders, streams, work, sums, cards, folded):
    """One sweep per row of `orders`: a block is drawn when its first variable comes. -1, or a block that is stuck."""
    final, conditional, visits = sums
    for s in range(orders.shape[0]):
        for b in range(work.done.shape[0]):
            work.done[b] = False
        for q in range(orders.shape[1]):
            b = model.block_of[orders[s, q]]
            if not work.done[b]:
                work.done[b] = True
                if not draw_block(model, b, state, streams, work, conditional, folded):
                    return b
        if folded:
            for j in range(model.variable.shape[0]):
                for lane in range(state.shape[1]):
                    final[model.slot[j] + state[model.variable[j], lane], lane] += 1.0
                if folded == 2:
                    for v in range(cards[model.variable[j]]):
                        visits[model.slot[j] + v] += 1
    return -1
