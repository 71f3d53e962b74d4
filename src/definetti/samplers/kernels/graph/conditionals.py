"""Full conditionals at given states, in a pass that draws nothing: by how much the values that are there differ from
what the conditionals expect.

For draws from the model, the indicator of a value less its full conditional has mean 0, whatever drew them. Beside it
stands what its variance would be if sites were independent of each other. The last place of the sums is for all sites
together: the conditional of the value that is there, less its mean, the sum of the squared conditionals. It has mean 0
as well, and sees wrong weights that no frequency shows, where a symmetry makes all values equally probable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit
from definetti.samplers.kernels.graph.tables import PAIRS, add_rows, exponentiate, find_rows, multiply_rows

NEARLY_ONE = 1.0 - 1e-12  # a conditional that leaves no choice


class Places(NamedTuple):
    """Where the values of sites are counted: literal a of the sites adds weight[k] at place[k], start[a] ≤ k <
    start[a + 1]."""

    site: np.ndarray  # int32: the variables that are looked at
    literal: np.ndarray  # int64[n + 1]: where the literals of a variable start
    start: np.ndarray  # int64[literals + 1]
    place: np.ndarray  # int64
    weight: np.ndarray  # float64


class Sources(NamedTuple):
    """A variable whose values are those of several others of another model: bit c of mask[first[k] + v] says whether
    value c goes with value v of variable[k], start[i] ≤ k < start[i + 1]. Without a mask it is that variable."""

    start: np.ndarray  # int64[n + 1]
    variable: np.ndarray  # int64
    first: np.ndarray  # int64; -1: the same values
    mask: np.ndarray  # uint64


@njit(nogil=True, cache=True)
def carry_values(sources, state, out):
    """out[i, lane]: values of merged variables from state[variable, lane]."""
    for i in range(out.shape[0]):
        low, high = sources.start[i], sources.start[i + 1]
        for lane in range(out.shape[1]):
            if low == high:
                out[i, lane] = 0
            elif sources.first[low] < 0:
                out[i, lane] = state[sources.variable[low], lane]
            else:
                left = ~np.uint64(0)
                for k in range(low, high):
                    left &= sources.mask[sources.first[k] + np.int64(state[sources.variable[k], lane])]
                value = 0
                while value < 63 and (left >> np.uint64(value)) & np.uint64(1) == 0:
                    value += 1
                out[i, lane] = value


@njit(nogil=True, cache=True, error_model="numpy")
def weigh_values(model, state, i, place, product):
    """product[value, lane]: the full conditional of a variable, not normalised."""
    card = model.card[i]
    product[: -(-card // 4) * 4] = 0.0 if model.deep[i] else 1.0
    for lo in range(model.pair_start[i], model.pair_start[i + 1], PAIRS):
        hi = min(lo + PAIRS, model.pair_start[i + 1])
        find_rows(state, model.near, model.further, lo, hi, place)
        if model.deep[i]:
            add_rows(product, card, model.logs, place, hi - lo)
        else:
            multiply_rows(product, card, model.weights, place, hi - lo)
    if model.deep[i]:
        exponentiate(product, card)


@njit(nogil=True, cache=True, error_model="numpy")
def normalise(product, card, value, score, spread):
    """Makes probabilities of weights, -1 where they leave no choice, and scores all sites together in the last place:
    the probability of the value that is there, less its mean."""
    last = score.shape[0] - 1
    for lane in range(value.shape[0]):
        total, largest = 0.0, 0.0
        for v in range(card):
            total += product[v, lane]
            largest = max(largest, product[v, lane])
        sure = not total > 0.0 or largest >= NEARLY_ONE * total
        square, cube = 0.0, 0.0
        for v in range(card):
            p = product[v, lane] / total
            product[v, lane] = -1.0 if sure else p
            square += p * p
            cube += p * p * p
        if not sure:
            score[last, lane] += product[value[lane], lane] - square
            spread[last, lane] += cube - square * square


@njit(nogil=True, cache=True, error_model="numpy")
def add_differences(model, places, state, place, product, score, spread):
    """Adds to score[place, lane] the indicators less the conditionals of all sites, and to spread[place, lane] what
    their variances are."""
    for m in range(places.site.shape[0]):
        i = places.site[m]
        weigh_values(model, state, i, place, product)
        normalise(product, model.card[i], state[i], score, spread)
        for a in range(places.literal[i], places.literal[i + 1]):
            v = a - places.literal[i]
            for k in range(places.start[a], places.start[a + 1]):
                at, weight = places.place[k], places.weight[k]
                for lane in range(state.shape[1]):
                    p = product[v, lane]
                    if p >= 0.0:
                        score[at, lane] += weight * ((state[i, lane] == v) - p)
                        spread[at, lane] += weight * weight * p * (1.0 - p)
