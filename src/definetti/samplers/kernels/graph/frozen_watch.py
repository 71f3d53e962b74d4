"""Which variables can move: given all others, more than one value is possible. Looks at hard factors alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.samplers.kernels.compiling import njit


class HardParts(NamedTuple):
    """The hard factors; entry = first[k] + the sum of stride · value over the scope."""

    touch_start: np.ndarray  # int64[n + 1]
    touch: np.ndarray  # int64: places in `scope` of each variable
    factor: np.ndarray  # int64 beside `scope`: the factor's number
    start: np.ndarray  # int64[F + 1]
    scope: np.ndarray  # int32
    stride: np.ndarray  # int64
    first: np.ndarray  # int64[F]
    possible: np.ndarray  # bool: by entry
    cards: np.ndarray  # int64[n]


@njit(nogil=True, cache=True)
def is_possible(parts, state, mask, i, value, lane):
    """Whether the variable could have this value, all others as they are."""
    for t in range(parts.touch_start[i], parts.touch_start[i + 1]):
        place = parts.touch[t]
        k = parts.factor[place]
        entry = parts.first[k] + parts.stride[place] * value
        for p in range(parts.start[k], parts.start[k + 1]):
            if p != place:
                entry += parts.stride[p] * (state[parts.scope[p], lane] & mask)
        if not parts.possible[entry]:
            return False
    return True


@njit(nogil=True, cache=True)
def can_move(parts, state, mask, i, lanes):
    """Whether the variable has a second possible value in some lane."""
    for lane in range(lanes):
        now = state[i, lane] & mask
        for value in range(parts.cards[i]):
            if value != now and is_possible(parts, state, mask, i, value, lane):
                return True
    return False


@njit(nogil=True, cache=True)
def still_stuck(parts, state, mask, began, lanes, waiting, count):
    """Keep of waiting[:count] the variables that cannot move and never did (`began`: the starts); how many are left."""
    left = 0
    for w in range(count):
        i = waiting[w]
        moved = False
        for lane in range(lanes):
            moved |= (state[i, lane] & mask) != began[i, lane]
        if not moved and not can_move(parts, state, mask, i, lanes):
            waiting[left] = i
            left += 1
    return left


@njit(nogil=True, cache=True)
def first_broken(parts, state, mask, lanes):
    """The first hard factor that some lane's state violates, or -1."""
    for k in range(parts.first.shape[0]):
        for lane in range(lanes):
            entry = parts.first[k]
            for p in range(parts.start[k], parts.start[k + 1]):
                entry += parts.stride[p] * (state[parts.scope[p], lane] & mask)
            if not parts.possible[entry]:
                return k
    return -1
