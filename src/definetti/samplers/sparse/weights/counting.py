"""The log density of a state that is given as lists of true atoms: the normal form, summed over matches by joins.

A monomial's matches begin with the true atoms of its first pair; each further pair is a loop over a list where one of
its constants is known, and a test where both are. Atoms are taken in pieces, so that no array is much longer than
`PIECE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from definetti.samplers.sparse.normal_form import Monomial

PIECE = 1 << 20  # matches at once, about


class Atoms:
    """The true pairs of a predicate, by first and by second argument."""

    def __init__(self, pairs: np.ndarray, shape: tuple[int, ...]) -> None:
        rows = np.asarray(pairs, np.int64).reshape(-1, 2)
        self.columns = shape[1]
        self.keys = np.sort(rows[:, 0] * shape[1] + rows[:, 1])
        self.rows = np.stack([self.keys // shape[1], self.keys % shape[1]], axis=1)
        back = self.rows[np.argsort(self.rows[:, 1], kind="stable")]
        self.lists = (_index(self.rows, 0, shape[0]), _index(back, 1, shape[1]))

    def holds(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        wanted = x * self.columns + y
        at = np.searchsorted(self.keys, wanted)
        return (at < len(self.keys)) & (self.keys[np.minimum(at, len(self.keys) - 1)] == wanted)


def _index(rows: np.ndarray, side: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(starts of the lists, their members) of rows that are sorted by one argument."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows[:, side], minlength=size))]), rows[:, 1 - side]


def log_density(r: Any, state: Any) -> float:
    """Up to the constant that the normal form leaves out. `r`: an engine, or what has its `model` and `plan`; `state`
    has `bits` and `pairs` by predicate."""
    names, total = list(r.model.predicates), 0.0
    atoms = {p: Atoms(state.pairs[names[p]], r.model.shape(names[p])) for p in range(len(names))
             if len(r.plan.sorts[p]) == 2}  # fmt: skip
    bits = {p: np.asarray(state.bits[names[p]], np.int64) for p in r.plan.position if p < len(names)}
    for p, found in atoms.items():  # whether there is an atom
        for side, (start, _) in enumerate(found.lists):
            bits[len(names) + 2 * p + side] = (np.diff(start) > 0).astype(np.int64)
    for m in r.plan.monomials:
        if not m.hard:
            own = tuple(bits[p] for p, _ in m.bits)  # of a monomial without pairs: bits of one constant
            total += _matched(m, atoms, bits) if m.pairs else float(m.table[own].sum())
    return total


def _matched(m: Monomial, atoms: Mapping[int, Atoms], bits: Mapping[int, np.ndarray]) -> float:
    p, first, second = m.pairs[0]
    rows, total, begin = atoms[p].rows, 0.0, 0
    if not len(rows):
        return 0.0
    longest = max(int(np.diff(start).max(initial=1)) for a in atoms.values() for start, _ in a.lists)
    step = max(1, PIECE // max(longest if len(m.sorts) > 2 else 1, 1))
    while begin < len(rows):
        part = rows[begin : begin + step]  # of a symmetric predicate both R(x,y) and R(y,x)
        begin += step
        total += _joined(m, {first: part[:, 0], second: part[:, 1]}, atoms, bits)
    return total


def _joined(
    m: Monomial, place: dict[int, np.ndarray], atoms: Mapping[int, Atoms], bits: Mapping[int, np.ndarray]
) -> float:
    left = list(m.pairs[1:])
    while left:
        ready = next((pair for pair in left if pair[1] in place and pair[2] in place), None)
        pair = ready or next(pair for pair in left if pair[1] in place or pair[2] in place)
        left.remove(pair)
        p, x, y = pair
        if ready:
            keep = atoms[p].holds(place[x], place[y])
            place = {v: values[keep] for v, values in place.items()}
            continue
        known, new, side = (x, y, 0) if x in place else (y, x, 1)
        start, members = atoms[p].lists[side]
        count = start[place[known] + 1] - start[place[known]]
        at = np.repeat(np.arange(len(count)), count)
        offset = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
        found = members[start[place[known]][at] + offset]
        place = {v: values[at] for v, values in place.items()} | {new: found}
        apart = np.ones(len(found), bool)
        for v, values in place.items():
            if v != new and m.sorts[v] == m.sorts[new]:
                apart &= values != found
        place = {v: values[apart] for v, values in place.items()}
    if not m.bits:
        return float(m.table) * len(next(iter(place.values())))
    return float(m.table[tuple(bits[p][place[v]] for p, v in m.bits)].sum())
