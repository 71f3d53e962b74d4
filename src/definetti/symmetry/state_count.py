"""How many orbits of assignments a group has, by Burnside's lemma: the mean over the group of the number of assignments
that an element leaves fixed.

All assignments of the free variables count, whether hard factors allow them or not. Numbers are exact integers, or
logarithms of estimates: a model has more states than any float can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from definetti import show

MOST_ELEMENTS = 20_000  # of a group that is listed
SAMPLES = 2_000
SAMPLED_WORK = 20_000_000  # points looked at by all samples together


@dataclass(frozen=True)
class StateCount:
    """The number of states and of their orbits.

    Attributes
    ----------
    states : int
        Assignments of the free variables.
    orbits : int or None
        Exact; None where it is estimated.
    log10_orbits : float
        The logarithm of the exact number, or of the estimate.
    relative_error : float
        The standard error of an estimate, divided by it; 0 if exact.
    method : str
        "classes", "burnside", "monte-carlo", or "none" without symmetries.
    """

    states: int
    orbits: int | None
    log10_orbits: float
    relative_error: float
    method: str

    @property
    def text(self) -> str:
        """The number of orbits in a few characters, with its error."""
        if self.orbits is not None:
            return show.large(self.orbits)
        power = math.floor(self.log10_orbits)
        return f"{10 ** (self.log10_orbits - power):.3g}e+{power} ± {100 * self.relative_error:.2g} %"

    def __mul__(self, other: StateCount) -> StateCount:
        """Of independent parts."""
        exact = None if self.orbits is None or other.orbits is None else self.orbits * other.orbits
        error = math.hypot(self.relative_error, other.relative_error)
        method = max(self.method, other.method, key=("none", "classes", "burnside", "monte-carlo").index)
        return StateCount(self.states * other.states, exact, self.log10_orbits + other.log10_orbits, error, method)


def exactly(states: int, orbits: int, method: str) -> StateCount:
    return StateCount(states, orbits, log10(orbits), 0.0, method)


def log10(number: int) -> float:
    """Of an integer of any size."""
    shift = max(0, number.bit_length() - 1000)
    return math.log10(number >> shift) + shift * math.log10(2)


def multisets(kinds: int, members: int) -> int:
    """The orbits of the symmetric group of `members` things, each of which is of one of `kinds`."""
    return math.comb(members + kinds - 1, members)


def elements(generators: Iterable[np.ndarray], degree: int) -> Iterator[np.ndarray]:
    """Every element of a small group, the identity first."""
    steps, one = list(generators), np.arange(degree)
    seen, waiting = {one.tobytes()}, [one]
    while waiting:
        now = waiting.pop()
        yield now
        for step in steps:
            other = step[now]
            if other.tobytes() not in seen:
                seen.add(other.tobytes())
                waiting.append(other)


def burnside(states: int, listed: Iterable[np.ndarray], fixed: Callable[[np.ndarray], int]) -> StateCount:
    total = order = 0
    for element in listed:
        total, order = total + fixed(element), order + 1
    return exactly(states, total // order, "burnside")


def estimated(
    states: int, drawn: Iterator[np.ndarray], fixed: Callable[[np.ndarray], int], order: int | None, work: int
) -> StateCount:
    """Fixed states averaged over random elements. The identity, which fixes most, is counted exactly where the order is
    known; elements that fix nearly as much and are nearly as rare may be missed."""
    samples = max(50, min(SAMPLES, SAMPLED_WORK // max(work, 1)))
    found = [(element, fixed(element)) for element in islice(drawn, samples)]
    one = np.arange(len(found[0][0]))
    others = [count for element, count in found if order is None or not np.array_equal(element, one)]
    top = max([1, *others])
    shares = np.array([count / top if count * 10**300 > top else 0.0 for count in others] or [0.0])
    mean, error = float(shares.mean()), float(shares.std(ddof=1) / math.sqrt(len(shares))) if len(shares) > 1 else 0.0
    parts = [log10(top) + math.log10(mean)] if mean > 0 else []
    relative = error / mean if mean > 0 else 0.0
    if order is not None and order > 1:
        parts = [p + math.log10(1.0 - 1.0 / order) for p in parts]
        sure = log10(states) - log10(order)
        whole = _sum10([*parts, sure])
        relative = relative * 10 ** (parts[0] - whole) if parts else 0.0
        return StateCount(states, None, whole, relative, "monte-carlo")
    return StateCount(states, None, _sum10(parts), relative, "monte-carlo")


def _sum10(logs: list[float]) -> float:
    top = max(logs)
    return top + math.log10(sum(10 ** (x - top) for x in logs))
