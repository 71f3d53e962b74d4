"""The symmetry to look at: a small factor graph with its orbits, or the atoms of Markov logic by their constants.

What is too large to be drawn node by node is drawn class by class, and what is too large for that is left to the
table of orbits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.symmetry.logic.members import AtomMembers

MOST_NODES, MOST_EDGES = 400, 3000
MOST_CONSTANTS = 40  # of a sort, drawn one by one
MOST_CLASSES = 40
MOST_SLICES, MOST_CELLS = 24, 4000  # of a predicate of three arguments or more
MOST_NAMED = 8  # members of a class
TRUE, FALSE, APART = -1, -2, -3  # cells that are in no orbit: observed, or not numbered

Places = Mapping[int, int]  # a row's number → its place among the rows, largest first


def model_of(members: Any) -> Any:
    """The model that the members are of, None where they do not say."""
    return getattr(members, "model", None)


def picture(answers: Marginals) -> dict[str, Any]:
    """{"kind": "graph" | "logic" | "none", …}; orbits are numbered by their place, largest first."""
    order = sorted(range(len(answers.orbits)), key=lambda k: -answers.orbits[k].size)
    places = {row: place for place, row in enumerate(order)}
    members, model = answers.members, model_of(answers.members)
    if model is None:
        return _none("the answer does not know its model")
    if isinstance(members, Variables):
        return _graph(model, members, places)
    return _logic(model, members, places)


def group_answers(group: Any) -> Marginals:
    """The rows of a group as an answer that says nothing of probabilities: what a picture needs."""
    rows = [OrbitRow(orbit.representative, orbit.size, 0.0) for orbit in group.orbits]
    if group.model.kind == "logic":
        from definetti.symmetry.logic.members import AtomMembers

        return Marginals(rows, AtomMembers(group))
    model = group.model
    return Marginals(rows, Variables(model.names, group.row_of, model.evidence, model.cards, model.index))


def _none(why: str) -> dict[str, Any]:
    return {"kind": "none", "why": why}


# --- factor graphs ---------------------------------------------------------------------------------------------------


def _graph(model: FactorGraph, members: Variables, places: Places) -> dict[str, Any]:
    wide = np.flatnonzero(model.arity > 2)
    nodes = model.n + len(wide)
    if not nodes:
        return _none("there are no variables")
    if nodes > MOST_NODES:
        return _none(f"{show.count(model.n)} variables are too many to draw; the table has their orbits")
    edges = sorted(_edges(model, wide))
    if len(edges) > MOST_EDGES:
        return _none(f"{show.count(len(edges))} edges are too many to draw; the table has the orbits")
    place = _layout(nodes, edges)
    named = [
        {"name": name, "row": places[row] if row >= 0 else int(TRUE)}
        | ({} if row >= 0 else {"value": int(members.evidence[i])})
        for i, (name, row) in enumerate(zip(model.names, members.row_of.tolist(), strict=True))
    ]
    factors: list[dict[str, Any]] = [{"name": None, "row": int(APART)} for _ in wide]
    for node, (x, y) in zip(named + factors, place.tolist(), strict=True):
        node |= {"x": round(x, 4), "y": round(y, 4)}
    return {"kind": "graph", "nodes": named + factors, "edges": edges}


def _edges(model: FactorGraph, wide: np.ndarray) -> set[tuple[int, int]]:
    """Variables that share a factor of two; wider factors are nodes of their own."""
    edges: set[tuple[int, int]] = set()
    for factor in np.flatnonzero(model.arity == 2).tolist():
        a, b = sorted(model.variables(factor).tolist())
        edges.add((a, b))
    for k, factor in enumerate(wide.tolist()):
        edges.update((i, model.n + k) for i in model.variables(factor).tolist())
    return edges


def _layout(nodes: int, edges: list[tuple[int, int]]) -> np.ndarray:
    """float64[nodes, 2] in [0, 1], by Kamada and Kawai from a circle: the same each time."""
    import igraph

    if not edges:
        side = int(np.ceil(np.sqrt(nodes)))
        return np.stack([np.arange(nodes) % side, np.arange(nodes) // side], axis=1) / max(side - 1, 1)
    graph = igraph.Graph(nodes, edges)
    at = np.array(graph.layout_kamada_kawai(seed=graph.layout_circle().coords).coords)
    centred = at - at.mean(axis=0)
    turned = min((centred @ _turn(angle) for angle in np.radians(np.arange(0, 180, 3))), key=_room)
    low, span = turned.min(axis=0), np.ptp(turned, axis=0)
    return (turned - low) / max(float(span.max()), 1e-9)


def _turn(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _room(points: np.ndarray) -> tuple[float, float]:
    """A grid stands straight in the smallest box, and the longer side lies flat."""
    wide, high = np.ptp(points, axis=0)
    return round(float(wide * high), 6), float(high)


# --- Markov logic ----------------------------------------------------------------------------------------------------


def _logic(model: MarkovLogic, members: Any, places: Places) -> dict[str, Any]:
    one_by_one = all(sort.size <= MOST_CONSTANTS for sort in model.sorts.values())
    classes = _classes(members, model) if hasattr(members, "symmetries") else {}
    if not one_by_one and (not classes or any(len(found) > MOST_CLASSES for found in classes.values())):
        return _none("the constants are of too many classes to draw; the table has the orbits")
    drawn = {name: [[c] for c in range(sort.size)] for name, sort in model.sorts.items()} if one_by_one else classes
    grids = {name: _grids(model, members, places, name, drawn, not one_by_one) for name in model.predicates}
    predicates = [grid for some in grids.values() for grid in some]
    left_out = [name for name, some in grids.items() if not some]
    sorts = [
        {"name": name, "size": sort.size, "classes": [_class(model, name, part) for part in classes.get(name, [])]}
        for name, sort in model.sorts.items()
    ]
    level = "constants" if one_by_one else "classes"
    return {"kind": "logic", "level": level, "sorts": sorts, "predicates": predicates, "left_out": left_out}


def _classes(members: AtomMembers, model: MarkovLogic) -> dict[str, list[list[int]]]:
    """For every sort its constants by class, as lists."""
    out = {}
    for name in model.sorts:
        of = members.symmetries.fine.of_sort(name)
        order = np.argsort(of, kind="stable")
        ends = np.cumsum(np.bincount(of))[:-1] if len(of) else []
        out[name] = [part.tolist() for part in np.split(order, ends)]
    return out


def _class(model: MarkovLogic, sort: str, part: list[int]) -> dict[str, Any]:
    names = [model.sorts[sort].constants[c] for c in part[:MOST_NAMED]]
    return {"size": len(part), "members": names, "evidence": _known(model, sort, part[0])}


def _known(model: MarkovLogic, sort: str, constant: int) -> list[str]:
    """What is known of a constant: its unary atoms, and how many others name it."""
    out = []
    for name, predicate in model.predicates.items():
        if predicate.sorts == (sort,):
            value = model.knowledge.value(name, (constant,))
            if value is not None and name in model.evidence:
                out.append(name if value else f"¬{name}")
        elif sort in predicate.sorts and name in model.evidence:
            at = [k for k, s in enumerate(predicate.sorts) if s == sort]
            count = int((model.evidence[name].tuples[:, at] == constant).any(axis=1).sum())
            out += [f"{show.count(count)} × {name}"] if count else []
    return out


def _grids(
    model: MarkovLogic, members: Any, places: Places, name: str, drawn: dict[str, list[list[int]]], by_class: bool
) -> list[dict[str, Any]]:
    """The cells of a predicate: a row for the first argument, a column for the second, a grid for each choice of the
    others. Nothing where that is too much."""
    sorts = model.predicates[name].sorts
    others = [drawn[sort] for sort in sorts[2:]]
    slices = prod(len(parts) for parts in others)
    if others and (slices > MOST_SLICES or slices * len(drawn[sorts[0]]) * len(drawn[sorts[1]]) > MOST_CELLS):
        return []
    return [_grid(model, members, places, name, drawn, by_class, rest) for rest in product(*others)]


def _grid(
    model: MarkovLogic,
    members: Any,
    places: Places,
    name: str,
    drawn: dict[str, list[list[int]]],
    by_class: bool,
    rest: Sequence[list[int]],
) -> dict[str, Any]:
    """One grid. Where classes are drawn, a cell stands for atoms of different constants, and beside that of a class
    with itself (`diagonal`, of two arguments) those of one constant twice."""
    from definetti.model.logic.text import atom_text

    sorts = model.predicates[name].sorts
    parts = [drawn[sort] for sort in sorts[:2]] + [[[0]]] * (2 - len(sorts))
    same = by_class and len(sorts) == 2 and sorts[0] == sorts[1]

    def cell(*chosen: list[int]) -> int | None:
        constants: list[int] = []
        for place, part in enumerate(chosen[: len(sorts)]):
            taken = [constants[j] for j in range(place) if sorts[j] == sorts[place]] if by_class else []
            left = [c for c in part[: len(sorts)] if c not in taken]
            if not left:
                return None
            constants.append(left[0])
        return _place(members, places, atom_text(model, name, tuple(constants)))

    cells = [[cell(first, second, *rest) for second in parts[1]] for first in parts[0]]
    diagonal = [_place(members, places, atom_text(model, name, (p[0], p[0]))) for p in parts[0]] if same else []
    labels = [[_label(model, sort, part) for part in drawn[sort]] for sort in sorts[:2]]
    fixed = [_label(model, sort, part) for sort, part in zip(sorts[2:], rest, strict=True)]
    return {"name": name, "sorts": [*sorts[:2], *fixed], "labels": labels, "cells": cells, "diagonal": diagonal}


def _label(model: MarkovLogic, sort: str, part: list[int]) -> str:
    name = model.sorts[sort].constants[part[0]]
    return name if len(part) == 1 else f"{name} +{show.count(len(part) - 1)}"


def _place(members: Any, places: Places, atom: str) -> int:
    from definetti.errors import TooLarge

    try:
        found = members.find(atom)
    except TooLarge:
        return APART
    if isinstance(found, Estimate):
        return TRUE if found.probability == 1.0 else FALSE if found.probability == 0.0 else APART
    return places[found]
