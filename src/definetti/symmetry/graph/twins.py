"""Twins: variables that can change places while everything else stays, found by hashing before any search.

Literal (i, v) has as signature its unary value and, for each factor over i, the slice of the table at v together with
the other variables. Variables that share no factor are twins exactly if they have the same signatures, perhaps in
another order of the values; two values of one variable with the same signature ("tied") can change places too. Both are
kept by every automorphism, so the model with one variable per class and one value per tie, coloured by the
multiplicities, has the rest of the group: order = its order · Π members! · (Π ties!)^members.

Variables that share a factor are twins too where the same pair table joins all of them, as in a complete graph: they
have the same signatures once each is joined to itself as well. Such classes (`closed`) are sought for symmetric tables
with one value off the diagonal, which two colours describe.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from definetti.groups import Generator
from definetti.integer_rows import first_and_number, mix
from definetti.model.graph.factors import FactorGraph, SameShape

_TAG = np.uint64(0xD1B54A32D192ED03)
CLIQUE = 8  # members of a closed class at least; smaller ones are left to the search
MOST_TABLES = 16  # of one shape that closed classes are sought for, the most frequent ones
FEW_VALUES = 4


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
    inside: np.ndarray  # int64[L]: in closed classes each literal's place in the table that joins them, else 0

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
            total *= factorial(size) * math.prod(math.factorial(t) for t in ties.tolist() if t > 1) ** size
        return total

    def proof(self) -> list[Generator]:
        """Few generators of the same group: of each class a swap and the cycle of all members."""
        start, size = self.start[:-1], self.sizes
        first = np.flatnonzero(size > 1)
        swaps = self._member_swaps(start[first])
        long = np.flatnonzero(size > 2)
        if not len(long):
            return self._value_swaps() + swaps
        classes = np.repeat(long, size[long])
        place = np.arange(len(classes)) - np.repeat(np.cumsum(size[long]) - size[long], size[long])
        here = self.members[start[classes] + place]
        there = self.members[start[classes] + (place + 1) % size[classes]]
        width = self.cards[here].astype(np.int64)
        row = np.repeat(np.arange(len(here)), width)
        slot = np.arange(len(row)) - np.repeat(np.cumsum(width) - width, width)
        points, images = (self.slots[self.literal_start[x[row]] + slot] for x in (here, there))
        order = np.argsort(points)
        return [*self._value_swaps(), *swaps, (points[order], images[order])]

    def generators(self) -> list[Generator]:
        """Swaps of neighbouring members, and of tied values in each class's first member."""
        same = self.class_of[self.members[:-1]] == self.class_of[self.members[1:]]
        return self._value_swaps() + self._member_swaps(np.flatnonzero(same))

    def _member_swaps(self, first: np.ndarray) -> list[Generator]:
        """The members at these places with those that follow them."""
        out: list[Generator] = []
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


def factorial(n: int) -> int:
    if n < 10_000:
        return math.factorial(n)
    from flint import fmpz

    return int(fmpz.fac_ui(n))  # pyright: ignore[reportArgumentType]: its stub lacks @staticmethod


def twins(model: FactorGraph, over: str) -> Twins:
    start = model.literal_start
    total, numbers = _signatures(model, over)
    signature = mix(total + mix(model.cards[model.variable_of]))
    inside = np.zeros(start[-1], dtype=np.int64)
    for card, tables in _joining(model).items():
        _close(model, card, tables, total, numbers, signature, inside)
    slots, slot_of = np.arange(start[-1]), np.empty(start[-1], dtype=np.int64)
    ties = np.zeros(start[-1], dtype=np.int64)
    for literals in _by_card(model, model.free):
        card = literals.shape[1]
        order = np.argsort(signature[literals], axis=1, kind="stable")
        turned = np.take_along_axis(literals, order, 1)
        slots[literals] = turned
        slot_of[turned] = np.arange(card)
        ties[turned] = _tie_sizes(signature[turned])
    key = _keys(model, signature, model.free)
    class_of = np.full(model.n, -1, dtype=np.int64)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    class_of[model.free] = np.argsort(np.argsort(first))[which.ravel()]  # numbered by smallest member
    members = model.free[np.argsort(class_of[model.free], kind="stable")].astype(np.int64)
    bounds = np.searchsorted(class_of[members], np.arange(len(first) + 1))
    return Twins(class_of, bounds, members, slots, slot_of, ties, start, model.cards, inside)


def _by_card(model: FactorGraph, variables: np.ndarray) -> Iterator[np.ndarray]:
    """int64[m, card]: the literals of the variables that have so many values."""
    for card in np.unique(model.cards[variables]).tolist():
        rows = variables[model.cards[variables] == card]
        yield model.literal_start[rows][:, None] + np.arange(card)


def _keys(model: FactorGraph, signature: np.ndarray, variables: np.ndarray) -> np.ndarray:
    """uint64 per variable: a hash of its literals' signatures, in any order."""
    key = np.zeros(model.n, dtype=np.uint64)
    for literals in _by_card(model, variables):
        key[model.variable_of[literals[:, 0]]] = mix(signature[literals] ^ _TAG).sum(axis=1, dtype=np.uint64)
    return key[variables]


def _joining(model: FactorGraph) -> dict[int, list[np.ndarray]]:
    """By the number of values the pair tables that may join a clique: symmetric, with one value off the diagonal.

    With each come those where few values have other names: a clique may be joined by different ones of them.
    """
    found: dict[int, list[np.ndarray]] = {}
    for alike in model.by_shape:
        card = alike.shape[0] if alike.arity == 2 else 0
        if card < 2 or alike.shape[1] != card:
            continue
        uses = np.bincount(alike.tables)
        tables: dict[bytes, np.ndarray] = {}
        for number in np.argsort(-uses, kind="stable")[:MOST_TABLES].tolist():
            table = model.log_values(number, alike.shape) if uses[number] else np.zeros((0, 0))
            off = table[~np.eye(len(table), dtype=bool)]
            if len(off) and (off == off[0]).all():
                orders = permutations(range(card)) if card <= FEW_VALUES else [tuple(range(card))]
                turned = (np.ascontiguousarray(table[np.ix_(order, order)]) for order in orders)
                tables |= {x.tobytes(): x for x in turned}
        if tables:
            found[card] = list(tables.values())
    return found


def _close(
    model: FactorGraph,
    card: int,
    tables: list[np.ndarray],
    total: np.ndarray,
    numbers: dict[bytes, int],
    signature: np.ndarray,
    inside: np.ndarray,
) -> None:
    """Give variables that are joined to one another the signatures that they have when joined to themselves too."""
    free = model.free[model.cards[model.free] == card]
    literals = model.literal_start[free][:, None] + np.arange(card)
    closed = np.empty((len(tables), len(free), card), dtype=np.uint64)
    for t, table in enumerate(tables):
        number = [numbers.setdefault(_piece(row), len(numbers)) for row in table]
        itself = mix((mix(np.array(number)) * np.uint64(3))[None, :] ^ mix(free)[:, None])
        closed[t] = mix(total[literals] + itself + mix(np.array([card])))
    key = mix(closed ^ _TAG).sum(axis=2, dtype=np.uint64)
    _, which, count = np.unique(key, return_inverse=True, return_counts=True)
    often = count[which.reshape(key.shape)]
    best = often.argmax(axis=0)
    joined = np.flatnonzero(often.max(axis=0) >= CLIQUE)
    signature[literals[joined]] = closed[best[joined], joined]
    places = np.array([np.stack([np.diag(table), np.full(card, table[0, 1])], axis=1) for table in tables])
    place = np.unique(places.reshape(-1, 2), axis=0, return_inverse=True)[1].reshape(len(tables), card) + 1
    inside[literals[joined]] = place[best[joined]] + int(inside.max(initial=0))


def _tie_sizes(values: np.ndarray) -> np.ndarray:
    """Of rows in ascending order: at the first of equal entries how many they are, 0 at the others."""
    first = np.ones(values.shape, dtype=bool)
    first[:, 1:] = values[:, 1:] != values[:, :-1]
    out = np.zeros(values.shape, dtype=np.int64)
    place = np.flatnonzero(first.ravel())
    out.ravel()[place] = np.diff(np.append(place, values.size))
    return out


def _signatures(model: FactorGraph, over: str) -> tuple[np.ndarray, dict[bytes, int]]:
    """uint64[L]: sums of what each literal takes part in (over variables also its value), and numbers of slices."""
    values = np.arange(len(model.variable_of)) - model.literal_start[model.variable_of]
    signature = mix(values) if over == "variables" else np.zeros(len(values), dtype=np.uint64)
    numbers: dict[bytes, int] = {}
    for alike in model.by_shape:
        for axis in range(alike.arity):
            slices, others = _slices(model, alike, axis, numbers)
            term = mix(slices ^ others[:, None])
            literal = model.literal_start[alike.scopes[:, axis]][:, None] + np.arange(alike.shape[axis])
            np.add.at(signature, literal.ravel(), term.ravel())
    return signature, numbers


def _slices(
    model: FactorGraph, alike: SameShape, axis: int, numbers: dict[bytes, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of each factor's slices along `axis` (uint64[m, card], other axes by variable), and of the others."""
    rest = [a for a in range(alike.arity) if a != axis]
    others = alike.scopes[:, rest]
    if alike.arity <= 2:
        first, which = first_and_number(alike.tables)
        tables = alike.tables[first]
        kinds = np.zeros((len(tables), len(rest)), dtype=np.int64)
    else:
        both = np.concatenate([alike.tables[:, None], np.argsort(others, axis=1)], axis=1)
        combined, which = np.unique(both, axis=0, return_inverse=True)
        tables, kinds = combined[:, 0], combined[:, 1:]
    number = np.empty((len(tables), alike.shape[axis]), dtype=np.int64)
    for row, (table, kind) in enumerate(zip(tables.tolist(), kinds.tolist(), strict=True)):
        turned = model.log_values(table, alike.shape).transpose([axis, *(rest[a] for a in kind)])
        for v in range(alike.shape[axis]):
            number[row, v] = numbers.setdefault(_piece(turned[v]), len(numbers))
    return mix(number)[which.ravel()] * np.uint64(3), mix(others).sum(axis=1, dtype=np.uint64)


def _piece(part: np.ndarray) -> bytes:
    return repr(part.shape).encode() + part.tobytes()
