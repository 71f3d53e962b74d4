"""Which constants lifted counting counts together, and which it conditions on, cell by cell.

A group is a set of roles whose members meet everybody in the same way: its constants are counted, each with its
own field. Binary evidence makes roles differ; if the few constants that it is about are gone through
("conditioned", 2^k ways), it turns into fields on the others and one group is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, factorial, prod
from typing import Any

import numpy as np

from definetti.errors import TooLarge
from definetti.solvers.lifted.cells import text
from definetti.solvers.lifted.scene import Scene, raised
from definetti.solvers.lifted.supercells import Problem, Unit, count_vectors

MOST_WAYS = 1 << 14
MOST_STEPS = 40
MOST_GROUPS = 12  #: that a problem too large by its groups alone has at least
MOST_COST = 10**8


@dataclass(frozen=True, eq=False)
class Plan:
    """Conditioned classes, and units of exchangeable constants in groups."""

    conditioned: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]  # roles
    units: tuple[tuple[int, ...], ...]  # classes
    group_of: tuple[int, ...]  # of each unit
    unit_of: dict[int, int]  # class → unit
    ways: int  # of the conditioned constants


@dataclass(frozen=True, eq=False)
class Way:
    """One choice of cells for the conditioned: how many of each class in each merged cell, and the weight of that."""

    counts: dict[int, np.ndarray]
    constant: Any
    problem: Problem | None


def make_plan(scene: Scene) -> Plan:
    """The cheapest of: conditioning on nobody, on the constant with the most special pairs, on the next one, …"""
    roles = sorted({int(scene.known.role_of[c]) for c in scene.active})
    by_role = {r: [c for c in scene.active if scene.known.role_of[c] == r] for r in roles}
    size = {r: sum(scene.size(c) for c in some) for r, some in by_role.items()}
    left, gone, best = list(roles), [], None
    for _ in range(MOST_STEPS):
        groups = _groups(scene, left, size)
        ways = prod(_ways(scene, c) for r in gone for c in by_role[r])
        cost = ways * prod(_group_cost(scene, group, by_role) for group in groups)
        if best is None or cost < best[0]:
            best = (cost, list(gone), groups, ways)
        special = _most_special(scene, left, size)
        if special is None or ways > MOST_WAYS or not all(scene.clear(c) for c in by_role[special]):
            break
        left.remove(special)
        gone.append(special)
    assert best is not None
    cost, gone, groups, ways = best
    if ways > MOST_WAYS or (len(groups) > MOST_GROUPS and cost > MOST_COST):
        raise too_many(max(ways, cost))
    return _with_units(scene, gone, groups, by_role, ways)


def too_many(ways: int) -> TooLarge:
    unit = "ways of the constants that binary evidence is about"
    cure = "sample instead, or leave out evidence on atoms of two constants"
    return TooLarge("lifted counting", ways, MOST_WAYS, cure, unit=unit)


def _ways(scene: Scene, c: int) -> int:
    cells = len(scene.allowed(c))
    return comb(scene.size(c) + cells - 1, cells - 1)


def _group_cost(scene: Scene, group: Sequence[int], by_role: dict[int, list[int]]) -> int:
    classes = [c for r in group for c in by_role[r]]
    cells = len({m for c in classes for m in scene.allowed(c)})
    return comb(sum(scene.size(c) for c in classes) + cells - 1, cells - 1)


def _square(scene: Scene, roles: list[int], size: dict[int, int]) -> np.ndarray:
    """The tables between roles; a single constant's own entry is the commonest of its sort, so that it may join."""
    square = scene.table[np.ix_(roles, roles)].astype(np.int64)
    sorts = np.array([scene.known.roles.sort[r] for r in roles])
    for k, r in enumerate(roles):
        if size[r] == 1:
            others = square[k, (sorts == sorts[k]) & (np.arange(len(roles)) != k)]
            others = others[others >= 0]
            square[k, k] = np.bincount(others).argmax() if len(others) else -1
    for sort in np.unique(sorts):  # one choice for all single constants of a sort
        mine = [k for k, r in enumerate(roles) if sorts[k] == sort]
        single = [k for k in mine if size[roles[k]] == 1]
        inside = square[np.ix_(mine, mine)]
        values = inside[inside >= 0]
        if single and len(values):
            square[single, single] = np.bincount(values).argmax()
    return square


def _groups(scene: Scene, roles: list[int], size: dict[int, int]) -> list[tuple[int, ...]]:
    square = _square(scene, roles, size)
    found: dict[tuple, list[int]] = {}
    for k, r in enumerate(roles):
        found.setdefault((scene.known.roles.sort[r], square[k].tobytes()), []).append(r)
    return [tuple(group) for group in found.values()]


def _most_special(scene: Scene, roles: list[int], size: dict[int, int]) -> int | None:
    """The role that differs from the commonest table for most others; None if none does."""
    if len(roles) < 2:
        return None
    square = _square(scene, roles, size)
    sorts = np.array([scene.known.roles.sort[r] for r in roles])
    score = np.zeros(len(roles))
    for sort in np.unique(sorts):
        columns = np.flatnonzero(sorts == sort)
        block = square[:, columns]
        for mine in np.unique(sorts):
            rows = np.flatnonzero(sorts == mine)
            values = block[rows]
            common = np.bincount(values[values >= 0]).argmax() if (values >= 0).any() else -1
            weight = np.array([size[roles[c]] for c in columns])
            score[rows] += ((values != common) & (values >= 0)) @ weight
    return roles[int(score.argmax())] if score.max() > 0 else None


def _with_units(scene: Scene, gone: list[int], groups: list, by_role: dict[int, list[int]], ways: int) -> Plan:
    units: dict[tuple, list[int]] = {}
    for g, group in enumerate(groups):
        for r in group:
            towards = tuple(scene.table[r, gone].tolist())
            for c in by_role[r]:
                scale = scale_of(scene, scene.fields[c])
                ratio = tuple(text(x / scale) for x in scene.fields[c])
                units.setdefault((g, ratio, scene.masks[c].tobytes(), towards), []).append(c)
    return Plan(
        tuple(c for r in gone for c in by_role[r]),
        tuple(groups),
        tuple(tuple(some) for some in units.values()),
        tuple(key[0] for key in units),
        {c: k for k, some in enumerate(units.values()) for c in some},
        ways,
    )


# --- the ways ------------------------------------------------------------------------------------------------


def ways_of(scene: Scene, plan: Plan) -> Iterator[Way]:
    choices = []
    for c in plan.conditioned:
        inside = scene.allowed(c)
        rows = np.zeros((_ways(scene, c), len(scene.fields[c])), np.int64)
        rows[:, inside] = count_vectors(scene.size(c), len(inside))
        choices.append(rows)
    tables = _group_tables(scene, plan)
    cells = tuple(scene.reduced.counts[scene.known.roles.sort[group[0]]] for group in plan.groups)
    for chosen in product(*choices):
        counts = dict(zip(plan.conditioned, chosen, strict=True))
        constant = _conditioned_weight(scene, counts)
        units = []
        for k, classes in enumerate(plan.units):
            more, lead = field_of(scene, classes[0], counts), classes[0]
            field = scene.fields[lead] * more
            for c in classes:
                constant = constant * scale_of(scene, scene.fields[c] * more) ** scene.size(c)
            possible = scene.masks[lead] & np.array([x != 0 for x in more * np.ones(len(field), dtype=object)])
            field = field / scale_of(scene, field)
            units.append(Unit(plan.group_of[k], sum(map(scene.size, classes)), field, possible))
        if all(u.possible.any() for u in units) and constant != 0:
            yield Way(counts, constant, Problem(tuple(units), cells, tables) if units else None)


def scale_of(scene: Scene, field: np.ndarray) -> Any:
    """What a class's field is divided by: its first entry that is not zero; with signs it is left as it is."""
    if scene.known.theory.signed:
        return 1
    return next((x for x in field if x != 0), 1)


def _group_tables(scene: Scene, plan: Plan) -> dict[tuple[int, int], np.ndarray]:
    tables = {}
    for g, group in enumerate(plan.groups):
        for h, other in enumerate(plan.groups):
            meet = ((r, s) for r in group for s in other if scene.table[r, s] >= 0 and (r != s or _many(scene, r)))
            pair = next(meet, None)
            if pair is not None:
                tables[g, h] = scene.reduced.tables[int(scene.table[pair])]
    return tables


def _many(scene: Scene, role: int) -> bool:
    """Whether a role has two active constants."""
    return sum(scene.size(c) for c in scene.active if scene.known.role_of[c] == role) > 1


def _conditioned_weight(scene: Scene, counts: dict[int, np.ndarray]) -> Any:
    constant = scene.constant
    listed = list(counts.items())
    for i, (c, k) in enumerate(listed):
        constant = constant * (factorial(scene.size(c)) // prod(factorial(x) for x in k.tolist()))
        for m in np.flatnonzero(k).tolist():
            constant = constant * scene.fields[c][m] ** int(k[m])
        for d, n in listed[i:]:
            number = scene.table_between(c, d)
            if number < 0 or scene.reduced.trivial[number]:
                continue
            table = scene.reduced.tables[number]
            for a in np.flatnonzero(k).tolist():
                for b in np.flatnonzero(n).tolist():
                    if c != d:
                        pairs = int(k[a] * n[b])
                    else:
                        pairs = int(k[a] * (k[a] - 1) // 2) if a == b else int(k[a] * k[b]) * (a < b)
                    if pairs:
                        constant = constant * table[a, b] ** pairs
    return constant


def field_of(scene: Scene, c: int, counts: dict[int, np.ndarray]) -> Any:
    """What the conditioned contribute to the field of a class."""
    factor: Any = 1
    for d, k in counts.items():
        number = scene.table_between(c, d)
        if number >= 0 and not scene.reduced.trivial[number]:
            for b in np.flatnonzero(k).tolist():
                factor = factor * raised(scene.reduced.tables[number][:, b], int(k[b]))
    return factor
