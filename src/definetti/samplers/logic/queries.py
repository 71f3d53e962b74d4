"""Queries that are counted: how many tuples of constants satisfy a formula, over the orbit of the constants it names.

A query's constants have become variables, each confined to a class of constants and all of equal sort distinct: the
tuples are then the orbit of the query's constants under a product of symmetric groups on the classes. Classes are atoms
of hidden, wholly known predicates, so that the generator of the kernel needs no word about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.formulas import atoms, equalities
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
from definetti.samplers.logic.mirrored import indicator_counts
from definetti.samplers.logic.tensors.known_bits import Turns

if TYPE_CHECKING:
    from definetti.symmetry.logic.renaming import RenamingSymmetries

HIDDEN = "\0class"  # no name of a file holds this character


@dataclass(frozen=True, eq=False)
class Query:
    """A formula over variables: `sorts` names each variable's sort, `members` the constants it may be (a mask)."""

    body: Formula
    sorts: dict[str, str]
    members: dict[str, np.ndarray]  # bool[size of the sort]
    loose: frozenset[str] = frozenset()  # variables that range over their whole sort, equal to others or not
    inner: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # quantified variables: sort and its size


@dataclass(frozen=True, eq=False)
class QueryCells:
    """The counted queries that make up one asked formula: its F is the sum of their counts divided by `size`."""

    places: tuple[int, ...]
    size: int


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run on a Markov logic network is to count: the orbits of the group's atoms, then formulas."""

    group: RenamingSymmetries
    late: Callable[[], Mapping[str, np.ndarray]]  # atoms to be drawn after the others: tensors as large as the model
    counted: tuple[Query, ...]  # formulas with their constants let loose, one per cell of an orbit
    cells: tuple[QueryCells, ...]  # which of `counted` make up each formula that is asked for
    turns: Turns = ()  # predicates that change places in a sweep, as the group asks for that the question is about
    series: tuple[int, ...] = ()  # of `counted`, those whose count is kept after every sweep

    @property
    def sizes(self) -> np.ndarray:
        """int64[K]: how many indicators each statistic is the mean of."""
        orbits = indicator_counts(self.group.mirror, self.group.sizes)
        return np.concatenate([orbits, [q.size for q in self.cells]]).astype(np.int64)

    def joint(self, seen: np.ndarray) -> np.ndarray:
        """float64[…, formulas] from counts […, counted]: the means over the orbits of the formulas."""
        means = [sum((seen[..., p] for p in q.places), np.zeros(seen.shape[:-1])) / q.size for q in self.cells]
        return np.stack(means, axis=-1) if means else np.zeros((*seen.shape[:-1], 0))


def satisfied(query: Query, holds: Callable[[Atom, tuple[Any, ...]], Any]) -> int:
    """How many tuples of different members satisfy a query; `holds(atom, constants)` gives truth values, the constants
    being numbers or arrays of them."""
    from definetti.model.logic.ground import evaluate

    names, body = list(query.sorts), query.body
    if query.inner:
        from definetti.model.logic.normal_forms import written_out

        body = written_out(body, query.inner)
    members = [np.flatnonzero(query.members[name]) for name in names]
    grid = dict(zip(names, np.ix_(*members), strict=True)) if names else {}

    def value(term: Any) -> Any:
        return grid[term.name] if isinstance(term, Variable) else term.index

    truth: dict[Formula, Any] = {a: holds(a, tuple(value(t) for t in a.args)) for a in atoms(body)}
    for e in equalities(body):
        apart = isinstance(e.left, Constant) and isinstance(e.right, Constant) and e.left.sort != e.right.sort
        truth[e] = False if apart else value(e.left) == value(e.right)
    found = np.broadcast_to(np.asarray(evaluate(body, truth)), tuple(len(m) for m in members))
    for i, a in enumerate(names):
        for b in names[:i]:
            if query.sorts[a] == query.sorts[b] and not query.loose & {a, b}:
                found = found & (grid[a] != grid[b])
    return int(found.sum())


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
            if name in query.loose:
                continue
            key = (sort, np.asarray(query.members[name], dtype=bool).tobytes())
            number = classes.setdefault(key, len(classes))
            parts.append(Atom(HIDDEN + sort, (Constant(HIDDEN, number), Variable(name))))
            parts += [
                Not(Equal(Variable(x), Variable(name)))
                for x in names[:i]
                if query.sorts[x] == sort and x not in query.loose
            ]
        sorts = query.sorts | {name: sort for name, (sort, _) in query.inner.items()}
        rules.append(WeightedFormula(And(tuple(parts)), 0.0, sorts, tuple(names)))
    all_sorts, predicates, evidence = dict(model.sorts), dict(model.predicates), dict(model.evidence)
    all_sorts[HIDDEN] = Sort(HIDDEN, tuple(str(i) for i in range(len(classes))))
    for sort in {sort for sort, _ in classes}:
        masks = {k: np.frombuffer(mask, bool) for (s, mask), k in classes.items() if s == sort}
        rows = [(k, c) for k, mask in masks.items() for c in np.flatnonzero(mask)]
        tuples = np.array(sorted(rows), dtype=np.int32).reshape(len(rows), 2)
        predicates[HIDDEN + sort] = Predicate(HIDDEN + sort, (HIDDEN, sort))
        evidence[HIDDEN + sort] = Evidence(tuples, np.ones(len(rows), dtype=np.int8))
    hidden = frozenset(name for name in predicates if name.startswith(HIDDEN))
    wider = replace(model, sorts=all_sorts, predicates=predicates, evidence=evidence, closed=model.closed | hidden)
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
