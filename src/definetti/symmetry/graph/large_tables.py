"""Tables of many variables by the roles of their axes: nodes for what can change places, not for each entry.

A table over twenty variables has a million entries, too many nodes for a search. If it depends on little more than how
many of its variables have each value, it shows in the coloured graph by two kinds of nodes: for each role and value
one, joined to these literals of all variables in that role, and for each value one, joined to the former. Values that
can change places at all axes at once have the same colour. What the nodes do not show is sought apart: flips of two
values at a time, as a parity has them, are the solutions of linear equations modulo 2 (`flips`).

A search through such nodes may miss what changes the values of some axes only, or turns axes in a cycle. So only tables
that are too large for nodes of their own entries are shown in this way, and only if few roles describe them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, permutations, product

import numpy as np

from definetti.groups import Generator
from definetti.model.graph.factors import FactorGraph, SameShape

TRIES = 24  # orders of similar axes that are compared to find a table's normal form
MOST_ENTRIES = 1 << 13  # other than the most frequent one: a search takes seconds
FEWEST_AXES = 8
AXES_PER_ROLE = 2  # on average, at least

Token = tuple[tuple[int, ...], bytes]


@dataclass(frozen=True, eq=False)
class Roles:
    """A table up to the order of its axes and values. Place p of axis a stands for the value `values[a][p]`."""

    token: tuple[Token, bytes]
    role: list[int]  # of each axis; axes with one role can change places
    values: list[list[int]]  # of each axis
    kinds: list[int]  # of each place; those of one kind can change places at all axes at once
    pairs: list[int]  # of each axis: any two of one number ≥ 0 can be flipped together (no places of a kind then)


@dataclass(frozen=True, eq=False)
class Large:
    """Factors of one shape whose tables are shown by roles."""

    alike: SameShape
    roles: dict[int, Roles]  # by the number of the table

    @property
    def cost(self) -> int:
        """Nodes that they take at most."""
        shape = self.alike.shape
        nodes = {t: max(shape) * (max(roles.role) + 2) for t, roles in self.roles.items()}
        return sum(nodes[t] for t in self.alike.tables.tolist())


def split(model: FactorGraph) -> tuple[list[SameShape], list[Large]]:
    """All factors by shape: those whose tables show their entries, and those that show their roles."""
    small, large = [], []
    for alike in model.by_shape:
        if alike.arity < FEWEST_AXES or alike.size <= MOST_ENTRIES:
            small.append(alike)
            continue
        tables = ((t, model.log_values(t, alike.shape)) for t in np.unique(alike.tables).tolist())
        roles = {t: found for t, table in tables if (found := roles_of(table)) is not None}
        if not roles:
            small.append(alike)
            continue
        by_roles = np.isin(alike.tables, list(roles))
        large.append(Large(alike.take(by_roles), roles))
        if not by_roles.all():
            small.append(alike.take(~by_roles))
    return small, large


def roles_of(table: np.ndarray) -> Roles | None:
    """None where the entries themselves are few, or the roles many."""
    found, codes, uses = np.unique(table, return_inverse=True, return_counts=True)
    if table.size - int(uses.max()) <= MOST_ENTRIES:
        return None
    codes = codes.reshape(table.shape).astype(np.min_scalar_type(len(found)))
    values, level = _ordered_values(codes)
    for axis, order in enumerate(values):
        codes = codes.take(order, axis)
    for axis in _turned_axes(codes, level):
        codes, values[axis] = np.flip(codes, axis), values[axis][::-1]
    codes = np.ascontiguousarray(codes)
    token, role = normal_form(codes)
    if (max(role) + 1) * AXES_PER_ROLE > table.ndim:
        return None
    pairs = _flipped_together(codes, level)
    kinds = list(range(max(table.shape)))
    if max(pairs) < 0 and len(set(table.shape)) == 1:
        kinds = _interchangeable_values(codes)
    return Roles((token, found.tobytes()), role, values, kinds, pairs)


def _ordered_values(table: np.ndarray) -> tuple[list[list[int]], list[bool]]:
    """For each axis its values in the order of the entries they occur with, and whether these do not differ."""
    orders, level = [], []
    for axis in range(table.ndim):
        keys = [row.tobytes() for row in _sorted_slices(table, axis)]
        orders.append(sorted(range(len(keys)), key=keys.__getitem__))
        level.append(len(set(keys)) == 1)
    return orders, level


def _turned_axes(table: np.ndarray, level: list[bool]) -> Iterator[int]:
    """Axes of two values, equally frequent, that play the role of an earlier one once their values change places."""
    two = [a for a in range(table.ndim) if table.shape[a] == 2 and level[a]]
    seen: list[int] = []
    for axis in two:
        for other in seen:
            if _interchangeable(table, other, axis):
                break
            if np.array_equal(table, np.flip(table.swapaxes(other, axis), (other, axis))):
                yield axis
                break
        else:
            seen.append(axis)


def _flipped_together(table: np.ndarray, level: list[bool]) -> list[int]:
    """A number for each axis: the table stays if any two axes of one number are flipped; -1 for those that are alone"""
    number, classes = [-1] * table.ndim, 0
    left = [a for a in range(table.ndim) if table.shape[a] == 2 and level[a]]
    while left:
        with_first = [a for a in left[1:] if np.array_equal(table, np.flip(table, (left[0], a)))]
        if with_first:
            for axis in (left[0], *with_first):
                number[axis] = classes
            classes += 1
        left = [a for a in left[1:] if a not in with_first]
    return number


def _interchangeable_values(table: np.ndarray) -> list[int]:
    """For each value the first one that it can change places with, at all axes at once."""
    kinds: list[int] = []
    for value in range(table.shape[0]):
        order = list(range(table.shape[0]))
        kind = value
        for other in sorted(set(kinds)):
            swapped = [value if v == other else other if v == value else v for v in order]
            if np.array_equal(table, table[np.ix_(*[swapped] * table.ndim)]):
                kind = other
                break
        kinds.append(kind)
    return kinds


# --- a table up to the order of its axes -----------------------------------------------------------------------------


def _sorted_slices(table: np.ndarray, axis: int) -> np.ndarray:
    return np.sort(np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1), axis=1)


def normal_form(table: np.ndarray) -> tuple[Token, list[int]]:
    """A table up to the order of its axes, and the role of each axis (roles of equal tokens correspond)."""
    alike: dict[tuple[int, bytes], list[int]] = {}
    for axis in range(table.ndim):
        alike.setdefault((table.shape[axis], _sorted_slices(table, axis).tobytes()), []).append(axis)
    groups = [alike[key] for key in sorted(alike)]
    if math.prod(math.factorial(len(group)) for group in groups) <= TRIES:
        orders = [list(chain(*choice)) for choice in product(*(permutations(group) for group in groups))]
    else:
        orders = [list(chain(*groups))]
    turned = [(table.transpose(order), order) for order in orders]
    best, order = min(turned, key=lambda pair: pair[0].tobytes())
    role_at: list[int] = []
    for place in range(table.ndim):
        same = (p for p in range(place) if _interchangeable(best, p, place))
        role_at.append(next((role_at[p] for p in same), max(role_at, default=-1) + 1))
    role = [0] * table.ndim
    for place, axis in enumerate(order):
        role[axis] = role_at[place]
    return (best.shape, best.tobytes()), role


def _interchangeable(table: np.ndarray, a: int, b: int) -> bool:
    return table.shape[a] == table.shape[b] and np.array_equal(table, table.swapaxes(a, b))


# --- nodes -----------------------------------------------------------------------------------------------------------


def role_nodes(
    model: FactorGraph, large: Large, node: np.ndarray, first: int, palette: dict[tuple[Token, bytes], int]
) -> tuple[np.ndarray, np.ndarray]:
    """(colours int64[count, 3], edges) of these factors; `node` of each literal, -1 for those that are left out.

    A colour is (token, role + 1 or 0 for a value's node, its kind or 0).
    """
    colours: list[tuple[int, int, int]] = []
    edges: list[tuple[int, int]] = []
    for scope, table in zip(large.alike.scopes.tolist(), large.alike.tables.tolist(), strict=True):
        start = model.literal_start[scope]
        if any((node[s : s + card] < 0).all() for s, card in zip(start.tolist(), large.alike.shape, strict=True)):
            continue  # over a variable that another one stands for: it says nothing new
        roles = large.roles[table]
        token = palette.setdefault(roles.token, len(palette))
        of_value, of_role = first + len(colours), first + len(colours) + len(roles.kinds)
        colours += [(token, 0, kind) for kind in roles.kinds]
        for role in range(max(roles.role) + 1):
            colours += [(token, role + 1, 0)] * len(roles.kinds)
            at = of_role + role * len(roles.kinds)
            edges += [(of_value + place, at + place) for place in range(len(roles.kinds))]
        for axis, role in enumerate(roles.role):
            literals = node[start[axis] + np.array(roles.values[axis])].tolist()
            at = of_role + role * len(roles.kinds)
            edges += [(at + place, literal) for place, literal in enumerate(literals) if literal >= 0]
    return np.array(colours, dtype=np.int64).reshape(-1, 3), np.array(edges, dtype=np.int64).reshape(-1, 2)


# --- flips -----------------------------------------------------------------------------------------------------------


def flips(model: FactorGraph, small: list[SameShape], large: list[Large]) -> list[Generator]:
    """Flips of sets of variables that occur in large tables alone, as many as are independent.

    A set is flipped if it has an even number of the axes of each class of each table: equations modulo 2. None of these
    flips is among what the nodes show, which keeps the places of these variables' values.
    """
    if not any(max(roles.pairs) >= 0 for part in large for roles in part.roles.values()):
        return []
    fixed = np.zeros(model.n, dtype=bool)
    for alike in small:
        fixed[alike.scopes] = True
    rows: list[list[int]] = []
    for part in large:
        for scope, table in zip(part.alike.scopes, part.alike.tables.tolist(), strict=True):
            pairs = np.array(part.roles[table].pairs)
            fixed[scope[pairs < 0]] = True
            rows += [scope[pairs == number].tolist() for number in range(int(pairs.max()) + 1)]
    movable = sorted({i for row in rows for i in row if not fixed[i]})
    place = {variable: k for k, variable in enumerate(movable)}
    equations = [sum(1 << place[i] for i in row if i in place) for row in rows]
    return [_flip(model, np.array([movable[k] for k in chosen])) for chosen in _solutions(equations, len(movable))]


def _solutions(equations: list[int], count: int) -> Iterator[list[int]]:
    """A basis of the subsets of 0 … count - 1 that meet each equation's set in an even number. Sets are integers."""
    pivots: dict[int, int] = {}  # by its leading bit the reduced equation, free of all other leading bits
    for equation in equations:
        for bit, other in pivots.items():
            if equation >> bit & 1:
                equation ^= other
        if equation:
            lead = equation.bit_length() - 1
            pivots = {bit: other ^ equation if other >> lead & 1 else other for bit, other in pivots.items()}
            pivots[lead] = equation
    for free in range(count):
        if free not in pivots:
            yield sorted([free, *(bit for bit, other in pivots.items() if other >> free & 1)])


def _flip(model: FactorGraph, variables: np.ndarray) -> Generator:
    first = model.literal_start[variables]
    return np.stack([first, first + 1], axis=1).ravel(), np.stack([first + 1, first], axis=1).ravel()
