"""Swendsen–Wang: neighbours that agree are bonded at random, and each cluster of bonded variables is drawn as one.

The weight of a pair is e^c if satisfied, e^-c if not: a satisfied pair is bonded with probability 1 - e^-2c (1 where
the other way is impossible). Given the bonds a cluster has two states, as it is and all flipped; their odds are those
of its fields. One lane at a time: clusters differ from chain to chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.rng import lane_uniform


class Clusters(NamedTuple):
    """A compiled model: pairs of sites with their bonds, and the sites' fields."""

    site: np.ndarray  # int32[m]: the free variables
    left: np.ndarray  # int32[E]: places in `site`
    right: np.ndarray  # int32[E]
    differ: np.ndarray  # uint8[E]: 1 if the pair is satisfied by different values
    bond: np.ndarray  # float64[E]: the probability that a satisfied pair is bonded
    field: np.ndarray  # float64[m]: log weight of value 1 against value 0
    first: np.ndarray  # int64[m]: the slot of value 0


class Scratch(NamedTuple):
    root: np.ndarray  # int32[m]: union-find
    pull: np.ndarray  # float64[m]: of a cluster, log weight as it is against flipped
    keep: np.ndarray  # float64[m]: of a cluster, the probability to stay as it is
    flips: np.ndarray  # uint8[m]


@njit(nogil=True, cache=True)
def happens(probability, streams, lane):
    """The one line that draws."""
    return lane_uniform(streams, lane) < probability


@njit(nogil=True, cache=True)
def find(root, i):
    while root[i] != i:
        root[i] = root[root[i]]
        i = root[i]
    return i


@njit(nogil=True, cache=True)
def join_bonded(model, state, lane, streams, root):
    """Draw the bonds and join what they connect."""
    site, left, right, differ, bond, _, _ = model
    for k in range(site.shape[0]):
        root[k] = k
    for e in range(left.shape[0]):
        a, b = left[e], right[e]
        satisfied = (state[site[a], lane] ^ state[site[b], lane]) == differ[e]
        if satisfied and (bond[e] >= 1.0 or happens(bond[e], streams, lane)):
            a, b = find(root, a), find(root, b)
            if a < b:
                root[b] = a
            else:
                root[a] = b


@njit(nogil=True, cache=True)
def draw_clusters(model, state, lane, streams, scratch):
    """Each cluster stays or flips, by the odds of its fields."""
    site, field = model.site, model.field
    root, pull, keep, flips = scratch
    pull[:] = 0.0
    for k in range(site.shape[0]):
        root[k] = find(root, k)
        pull[root[k]] += field[k] if state[site[k], lane] else -field[k]
    for k in range(site.shape[0]):
        if root[k] == k:
            keep[k] = 1.0 / (1.0 + np.exp(-pull[k])) if pull[k] > -700.0 else 0.0
            flips[k] = 0 if happens(keep[k], streams, lane) else 1


@njit(nogil=True, cache=True)
def step_lane(model, state, lane, streams, scratch, sums, folded):
    """One update of all variables of one chain; F and G are those of this update."""
    site, first = model.site, model.first
    root, _, keep, flips = scratch
    final, conditional, _ = sums
    join_bonded(model, state, lane, streams, root)
    draw_clusters(model, state, lane, streams, scratch)
    for k in range(site.shape[0]):
        before = state[site[k], lane]
        now = before ^ flips[root[k]]
        state[site[k], lane] = now
        if folded:
            final[first[k] + now, lane] += 1.0
        if folded == 2:
            conditional[first[k] + before, lane] += keep[root[k]]
            conditional[first[k] + 1 - before, lane] += 1.0 - keep[root[k]]


@njit(nogil=True, cache=True)
def run_steps(model, state, steps, streams, scratch, sums, folded):
    """So many updates of every lane; `folded`: 0 nothing (warm-up), 1 F only, 2 F and G."""
    for _ in range(steps):
        for lane in range(state.shape[1]):
            step_lane(model, state, lane, streams, scratch, sums, folded)
        if folded == 2:
            for k in range(model.first.shape[0]):
                sums.visits[model.first[k]] += 1
                sums.visits[model.first[k] + 1] += 1
