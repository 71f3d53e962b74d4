"""Queries that are counted: how many tuples of constants satisfy a formula, over the orbit of the constants it names.

A query's constants have become variables, each confined to a class of constants and all of equal sort distinct: the
tuples are then the orbit of the query's constants under a product of symmetric groups on the classes. Classes are atoms
of hidden, wholly known predicates, so that the generator of the kernel needs no word about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Formula,
    MarkovLogic,
    Not,
    Predicate,
    Sort,
    Variable,
    WeightedFormula,
)
from definetti.samplers.codegen.shapes import Instances, Shape, shape_of

HIDDEN = "\0class"  # no name of a file holds this character


@dataclass(frozen=True, eq=False)
class Query:
    """A formula over variables: `sorts` names each variable's sort, `members` the constants it may be (a mask)."""

    body: Formula
    sorts: dict[str, str]
    members: dict[str, np.ndarray]  # bool[size of the sort]


def confined(model: MarkovLogic, queries: Sequence[Query]) -> tuple[MarkovLogic, list[WeightedFormula]]:
    """The model with hidden class predicates, and the queries as formulas that speak of them."""
    classes: dict[tuple[str, bytes], int] = {}
    rules = []
    for query in queries:
        for name, sort in query.sorts.items():
            if query.members[name].shape != (model.sorts[sort].size,):
                raise ModelError(f"the members of {name} are not a mask over the {model.sorts[sort].size} of {sort}")
        parts: list[Formula] = [query.body]
        names = list(query.sorts)
        for i, name in enumerate(names):
            sort = query.sorts[name]
            key = (sort, np.asarray(query.members[name], dtype=bool).tobytes())
            number = classes.setdefault(key, len(classes))
            parts.append(Atom(HIDDEN + sort, (Constant(HIDDEN, number), Variable(name))))
            parts += [Not(Equal(Variable(x), Variable(name))) for x in names[:i] if query.sorts[x] == sort]
        rules.append(WeightedFormula(And(tuple(parts)), 0.0, query.sorts, tuple(names)))
    sorts, predicates, evidence = dict(model.sorts), dict(model.predicates), dict(model.evidence)
    sorts[HIDDEN] = Sort(HIDDEN, tuple(str(i) for i in range(len(classes))))
    for sort in {sort for sort, _ in classes}:
        masks = {k: np.frombuffer(mask, bool) for (s, mask), k in classes.items() if s == sort}
        rows = [(k, c) for k, mask in masks.items() for c in np.flatnonzero(mask)]
        tuples = np.array(sorted(rows), dtype=np.int32).reshape(len(rows), 2)
        predicates[HIDDEN + sort] = Predicate(HIDDEN + sort, (HIDDEN, sort))
        evidence[HIDDEN + sort] = Evidence(tuples, np.ones(len(rows), dtype=np.int8))
    hidden = frozenset(name for name in predicates if name.startswith(HIDDEN))
    wider = replace(model, sorts=sorts, predicates=predicates, evidence=evidence, closed=model.closed | hidden)
    return wider, rules


def observed_of(
    model: MarkovLogic, rules: Sequence[WeightedFormula]
) -> tuple[tuple[Shape, ...], tuple[Instances, ...], np.ndarray]:
    """(shapes, instances, place of each query among the kernel's counts)."""
    sort_number = {name: i for i, name in enumerate(model.sorts)}
    predicates = {name: i for i, name in enumerate(model.predicates)}
    groups: dict[Shape, dict[tuple[int, ...], int]] = {}
    where = []
    for rule in rules:
        shape, constants = shape_of(rule, sort_number, predicates)
        group = groups.setdefault(shape, {})
        where.append((shape, group.setdefault(constants, len(group))))
    starts = dict(zip(groups, np.cumsum([0, *(len(g) for g in groups.values())]), strict=False))
    instances = tuple(
        Instances(np.array(list(g), dtype=np.int32).reshape(len(g), len(s.slots)), np.zeros(len(g)))
        for s, g in groups.items()
    )
    return tuple(groups), instances, np.array([starts[s] + k for s, k in where], dtype=np.int64)
