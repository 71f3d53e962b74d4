"""Twins: variables that can change places while everything else stays, found by hashing before any search.

Literal (i, v) has as signature its unary value and, for each factor over i, the slice of the table at v together with
the other variables. Variables that share no factor are twins exactly if they have the same signatures, perhaps in
another order of the values; two values of one variable with the same signature ("tied") can change places too. Both are
kept by every automorphism, so the model with one variable per class and one value per tie, coloured by the
multiplicities, has the rest of the group: order = its order · Π members! · (Π ties!)^members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from definetti.groups import Generator
from definetti.integer_rows import mix
from definetti.model.graph.factors import FactorGraph, SameShape

_TAG = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True, eq=False)
class Twins:
    """Classes of free variables. Slot s of variable i is slots[literal_start[i] + s]; slots of twins match."""

    class_of: np.ndarray  # int64[n], -1 for observed variables
    start: np.ndarray  # int64[C + 1] into members
    members: np.ndarray  # int64: the variables, class by class, ascending
    slots: np.ndarray  # int64[L]
    slot_of: np.ndarray  # int64[L]: inverse of slots, within the variable
    ties: np.ndarray  # int64[L]: at the literal of the first slot of a tie its multiplicity, 0 at the others
    literal_start: np.ndarray
    cards: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.start)

    @property
    def representatives(self) -> np.ndarray:
        return self.members[self.start[:-1]]

    @property
    def order(self) -> int:
        total = 1
        tied = np.searchsorted(self.literal_start, np.flatnonzero(self.ties > 1), side="right") - 1
        for c in np.union1d(np.flatnonzero(self.sizes > 1), self.class_of[tied]).tolist():
            size, i = int(self.sizes[c]), int(self.members[self.start[c]])
            ties = self.ties[self.literal_start[i] : self.literal_start[i + 1]]
            total *= math.factorial(size) * math.prod(math.factorial(t) for t in ties.tolist() if t > 1) ** size
        return total

    def generators(self) -> list[Generator]:
        """Swaps of neighbouring members, and of tied values in each class's first member."""
        out = self._value_swaps()
        first = np.flatnonzero(self.class_of[self.members[:-1]] == self.class_of[self.members[1:]])
        a, b = self.members[first], self.members[first + 1]
        for card in np.unique(self.cards[a]).tolist():
            rows = self.cards[a] == card
            here = self.slots[self.literal_start[a[rows]][:, None] + np.arange(card)]
            there = self.slots[self.literal_start[b[rows]][:, None] + np.arange(card)]
            out += _swaps(here, there)
        return out

    def _value_swaps(self) -> list[Generator]:
        literals = np.flatnonzero(self.ties > 1)
        variable = np.searchsorted(self.literal_start, literals, side="right") - 1
        kept = self.representatives[self.class_of[variable]] == variable
        literals, variable = literals[kept], variable[kept]
        here = [np.empty(0, dtype=np.int64)]
        for t in range(1, int(self.ties.max(initial=1))):
            rows = self.ties[literals] > t
            here.append(self.literal_start[variable[rows]] + self.slot_of[literals[rows]] + t - 1)
        place = np.concatenate(here)
        return _swaps(self.slots[place][:, None], self.slots[place + 1][:, None])

    def extend(self, points: np.ndarray, images: np.ndarray) -> Generator:
        """A permutation of kept literals carried to every member and tied value."""
        at = np.searchsorted(self.literal_start, points, side="right") - 1
        to = np.searchsorted(self.literal_start, images, side="right") - 1
        ties, sizes = self.ties[points], self.sizes[self.class_of[at]]
        copies = ties * sizes
        row = np.repeat(np.arange(len(points)), copies)
        copy = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
        member, tie = np.divmod(copy, ties[row])
        source = self._literal(self.class_of[at[row]], member, self.slot_of[points[row]] + tie)
        target = self._literal(self.class_of[to[row]], member, self.slot_of[images[row]] + tie)
        order = np.argsort(source)
        source, target = source[order], target[order]
        moved = source != target
        return source[moved], target[moved]

    def _literal(self, classes: np.ndarray, member: np.ndarray, slot: np.ndarray) -> np.ndarray:
        return self.slots[self.literal_start[self.members[self.start[classes] + member]] + slot]


def _swaps(here: np.ndarray, there: np.ndarray) -> list[Generator]:
    """One generator per row: here[r] and there[r] change places."""
    points, images = np.concatenate([here, there], axis=1), np.concatenate([there, here], axis=1)
    order = np.argsort(points, axis=1)
    points, images = np.take_along_axis(points, order, 1), np.take_along_axis(images, order, 1)
    return list(zip(points, images, strict=True))


def twins(model: FactorGraph, over: str) -> Twins:
    start = model.literal_start
    signature = _signatures(model, over)
    slots, slot_of = np.arange(start[-1]), np.empty(start[-1], dtype=np.int64)
    ties = np.zeros(start[-1], dtype=np.int64)
    key = np.zeros(model.n, dtype=np.uint64)
    for card in np.unique(model.cards[model.free]).tolist():
        rows = model.free[model.cards[model.free] == card].astype(np.int64)
        literals = start[rows][:, None] + np.arange(card)
        order = np.argsort(signature[literals], axis=1, kind="stable")
        literals = np.take_along_axis(literals, order, 1)
        values = signature[literals]
        slots[start[rows][:, None] + np.arange(card)] = literals
        slot_of[literals] = np.arange(card)
        ties[literals] = _tie_sizes(values)
        key[rows] = mix(values ^ _TAG).sum(axis=1, dtype=np.uint64)
    class_of = np.full(model.n, -1, dtype=np.int64)
    _, first, which = np.unique(key[model.free], return_index=True, return_inverse=True)
    class_of[model.free] = np.argsort(np.argsort(first))[which.ravel()]  # numbered by smallest member
    members = model.free[np.argsort(class_of[model.free], kind="stable")].astype(np.int64)
    bounds = np.searchsorted(class_of[members], np.arange(len(first) + 1))
    return Twins(class_of, bounds, members, slots, slot_of, ties, start, model.cards)


def _tie_sizes(values: np.ndarray) -> np.ndarray:
    """Of rows in ascending order: at the first of equal entries how many they are, 0 at the others."""
    first = np.ones(values.shape, dtype=bool)
    first[:, 1:] = values[:, 1:] != values[:, :-1]
    out = np.zeros(values.shape, dtype=np.int64)
    place = np.flatnonzero(first.ravel())
    out.ravel()[place] = np.diff(np.append(place, values.size))
    return out


def _signatures(model: FactorGraph, over: str) -> np.ndarray:
    """uint64[L]: the signature of each literal; over variables the value itself is a part of it."""
    values = np.arange(len(model.variable_of)) - model.literal_start[model.variable_of]
    signature = mix(values) if over == "variables" else np.zeros(len(values), dtype=np.uint64)
    numbers: dict[bytes, int] = {}
    for alike in model.by_shape:
        for axis in range(alike.arity):
            slices, others = _slices(model, alike, axis, numbers)
            term = mix(slices ^ others[:, None])
            literal = model.literal_start[alike.scopes[:, axis]][:, None] + np.arange(alike.shape[axis])
            np.add.at(signature, literal.ravel(), term.ravel())
    return mix(signature + mix(model.cards[model.variable_of]))


def _slices(
    model: FactorGraph, alike: SameShape, axis: int, numbers: dict[bytes, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of each factor's slices along `axis` (uint64[m, card], other axes by variable), and of the others."""
    rest = [a for a in range(alike.arity) if a != axis]
    others = alike.scopes[:, rest]
    order = np.argsort(others, axis=1)
    if alike.arity <= 2:
        tables, which = np.unique(alike.tables, return_inverse=True)
        kinds = np.zeros((len(tables), len(rest)), dtype=np.int64)
    else:
        both = np.concatenate([alike.tables[:, None], order], axis=1)
        combined, which = np.unique(both, axis=0, return_inverse=True)
        tables, kinds = combined[:, 0], combined[:, 1:]
    number = np.empty((len(tables), alike.shape[axis]), dtype=np.int64)
    for row, (table, kind) in enumerate(zip(tables.tolist(), kinds.tolist(), strict=True)):
        turned = model.log_values(table, alike.shape).transpose([axis, *(rest[a] for a in kind)])
        for v in range(alike.shape[axis]):
            piece = repr(turned.shape[1:]).encode() + turned[v].tobytes()
            number[row, v] = numbers.setdefault(piece, len(numbers))
    return mix(number)[which.ravel()] * np.uint64(3), mix(others).sum(axis=1, dtype=np.uint64)
