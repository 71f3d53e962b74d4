"""Queries that are counted: how many tuples of constants satisfy a formula, over the orbit of the constants it names.

A query's constants have become variables, each confined to a class of constants and all of equal sort distinct: the
tuples are then the orbit of the query's constants under a product of symmetric groups on the classes. Classes are atoms
of hidden, wholly known predicates, so that the generator of the kernel needs no word about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.errors import ModelError, TooLarge
from definetti.model.logic import theory
from definetti.model.logic.formulas import parts
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
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

MOST_TUPLES = 100_000_000  # that are looked at in a state, where it is not done on bits
MOST_LISTED = 1 << 23  # tuples of which those are listed that states decide
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


States = Any  # of some chains
Sees = Callable[[States], np.ndarray]  # bool[…, chains], from states


def counter(query: Query, truth: Callable[[Atom, tuple[Any, ...]], Sees]) -> Callable[[States], np.ndarray]:
    """A function from the states of some chains to int64[chains]: how many tuples of different members satisfy a query.

    `truth(atom, constants)` gives a function from states to truth values, the constants being numbers or arrays that
    broadcast; chains are the last axis of what it returns. Every variable, quantified ones too, has an axis of its own.
    """
    names = list(query.sorts)
    members = [np.flatnonzero(query.members[name]) for name in names]
    depth = len(names) + _nesting(query.body)
    if (size := grid_size(query)) > MOST_TUPLES:
        cure = "ask for a formula with fewer variables"
        raise TooLarge("the tuples that a query looks at in every state", size, MOST_TUPLES, cure)

    def along(values: np.ndarray, axis: int) -> np.ndarray:
        return values.reshape([-1 if k == axis else 1 for k in range(depth)])

    bound = {name: along(m, axis) for axis, (name, m) in enumerate(zip(names, members, strict=True))}
    apart = [
        bound[a] != bound[b]
        for i, a in enumerate(names)
        for b in names[:i]
        if query.sorts[a] == query.sorts[b] and not query.loose & {a, b}
    ]
    body = _Tree(truth, along, query.inner).function(query.body, bound, len(names))
    shape = (*(len(m) for m in members), *([1] * (depth - len(names))))

    def count(states: States) -> np.ndarray:
        found = body(states)
        for different in apart:
            found = found & different[..., None]
        found = np.broadcast_to(found, (*shape, found.shape[-1]))
        return found.sum(axis=tuple(range(depth)), dtype=np.int64)

    return count


def listed_counter(
    query: Query, truth: Callable[[Atom, tuple[Any, ...]], Sees], known: Callable[[Atom, tuple[Any, ...]], np.ndarray]
) -> tuple[Callable[[States], np.ndarray], int] | None:
    """The same function where evidence decides most tuples, and how many it looks at: those that states decide.

    `known(atom, constants)` is 1 or 0 of known atoms, -1 of others. None where the body has quantifiers, or where more
    than half of the tuples are to be looked at: then `counter` does it.
    """
    names, size = list(query.sorts), grid_size(query)
    if not names or _nesting(query.body) or size > MOST_LISTED:
        return None
    grid = np.meshgrid(*(np.flatnonzero(query.members[name]) for name in names), indexing="ij")
    bound = {name: values.ravel() for name, values in zip(names, grid, strict=True)}
    different = np.ones(size, bool)
    for i, a in enumerate(names):
        for b in names[:i]:
            if query.sorts[a] == query.sorts[b] and not query.loose & {a, b}:
                different &= bound[a] != bound[b]
    can, cannot = (np.broadcast_to(some, size) & different for some in _possible(query.body, bound, known))
    always, look = int((can & ~cannot).sum()), np.flatnonzero(can & cannot)
    if 2 * len(look) > size:
        return None
    bound = {name: values[look] for name, values in bound.items()}
    body = _Tree(truth, lambda values, _: values, {}).function(query.body, bound, 1)

    def count(states: States) -> np.ndarray:
        found = body(states)
        return always + np.broadcast_to(found, (len(look), found.shape[-1])).sum(axis=0, dtype=np.int64)

    return count, len(look)


def _possible(
    body: Formula, bound: Mapping[str, np.ndarray], known: Callable[[Atom, tuple[Any, ...]], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Whether a formula can be true, and whether it can be false, as far as known atoms tell (Kleene's logic)."""

    def value(term: Any) -> Any:
        return bound[term.name] if isinstance(term, Variable) else term.index

    match body:
        case Atom():
            code = np.asarray(known(body, tuple(value(term) for term in body.args)))
            return code != 0, code != 1
        case Equal(left, right):
            apart = isinstance(left, Constant) and isinstance(right, Constant) and left.sort != right.sort
            same = np.asarray(False if apart else value(left) == value(right))
            return same, ~same
        case theory.Truth(truth):
            return np.asarray(truth), np.asarray(not truth)
    inner = [_possible(part, bound, known) for part in parts(body)]
    match body:
        case Not():
            return inner[0][1], inner[0][0]
        case Implies():
            return inner[0][1] | inner[1][0], inner[0][0] & inner[1][1]
        case Iff():
            (a, b), (c, d) = inner
            return a & c | b & d, a & d | b & c
    able, unable = (np.broadcast_arrays(*some) for some in zip(*inner, strict=True))
    both = isinstance(body, And)
    return (np.all if both else np.any)(able, axis=0), (np.any if both else np.all)(unable, axis=0)


def satisfied(query: Query, holds: Callable[[Atom, tuple[Any, ...]], Any]) -> int:
    """How many tuples satisfy a query in one state; `holds(atom, constants)` gives truth values."""
    return int(counter(query, lambda atom, at: lambda _: np.asarray(holds(atom, at))[..., None])(None)[0])


def grid_size(query: Query) -> int:
    """How many truth values are looked at together in one state."""
    return prod(int(query.members[name].sum()) for name in query.sorts) * _largest(query.body, query.inner)


def _nesting(body: Formula) -> int:
    inner = max((_nesting(part) for part in parts(body)), default=0)
    return inner + len(body.variables) if isinstance(body, Exist | Forall) else inner


def _largest(body: Formula, sorts: Mapping[str, tuple[str, int]]) -> int:
    """The most values that quantified variables have together."""
    inner = max((_largest(part, sorts) for part in parts(body)), default=1)
    return inner * prod(sorts[n][1] for n in body.variables) if isinstance(body, Exist | Forall) else inner


def _joined(body: Formula, inner: list[np.ndarray]) -> np.ndarray:
    """The truth of a connective from that of its parts."""
    match body:
        case Not():
            return ~inner[0]
        case Implies():
            return ~inner[0] | inner[1]
        case Iff():
            return inner[0] == inner[1]
    total = np.array([body.value if isinstance(body, theory.Truth) else isinstance(body, And)])
    for part in inner:
        total = total & part if isinstance(body, And) else total | part
    return total


@dataclass(frozen=True)
class _Tree:
    """Formulas as functions from states to truth values over axes of constants."""

    truth: Callable[[Atom, tuple[Any, ...]], Sees]
    along: Callable[[np.ndarray, int], np.ndarray]
    sorts: Mapping[str, tuple[str, int]]

    def function(self, body: Formula, bound: Mapping[str, np.ndarray], axes: int) -> Sees:
        def value(term: Any) -> Any:
            return bound[term.name] if isinstance(term, Variable) else term.index

        match body:
            case Atom():
                return self.truth(body, tuple(value(term) for term in body.args))
            case Equal(left, right):
                apart = isinstance(left, Constant) and isinstance(right, Constant) and left.sort != right.sort
                same = np.asarray(False if apart else value(left) == value(right))[..., None]
                return lambda _: same
            case Exist() | Forall():
                return self._quantified(body, bound, axes)
        inner = [self.function(part, bound, axes) for part in parts(body)]
        return lambda states: _joined(body, [part(states) for part in inner])

    def _quantified(self, body: Exist | Forall, bound: Mapping[str, np.ndarray], axes: int) -> Sees:
        sizes = [self.sorts[name][1] for name in body.variables]
        own = tuple(range(axes, axes + len(sizes)))
        new = {n: self.along(np.arange(s), k) for n, s, k in zip(body.variables, sizes, own, strict=True)}
        inner = self.function(body.body, {**bound, **new}, axes + len(sizes))
        over, empty = (np.any if isinstance(body, Exist) else np.all), 0 in sizes
        depth = new[body.variables[0]].ndim

        def reduced(states: States) -> np.ndarray:
            found = inner(states)
            found = found.reshape([1] * (depth + 1 - found.ndim) + list(found.shape))
            return np.full_like(found, not isinstance(body, Exist)) if empty else over(found, axis=own, keepdims=True)

        return reduced


def confined(model: MarkovLogic, queries: Sequence[Query]) -> tuple[MarkovLogic, list[WeightedFormula]]:
    """The model with hidden class predicates, and the queries as formulas that speak of them."""
    classes: dict[tuple[str, bytes], int] = {}
    rules = []
    for query in queries:
        for name, sort in query.sorts.items():
            if query.members[name].shape != (model.sorts[sort].size,):
                raise ModelError(f"the members of {name} are not a mask over the {model.sorts[sort].size} of {sort}")
        said: list[Formula] = [query.body]
        names = list(query.sorts)
        for i, name in enumerate(names):
            sort = query.sorts[name]
            if name in query.loose:
                continue
            key = (sort, np.asarray(query.members[name], dtype=bool).tobytes())
            number = classes.setdefault(key, len(classes))
            said.append(Atom(HIDDEN + sort, (Constant(HIDDEN, number), Variable(name))))
            said += [
                Not(Equal(Variable(x), Variable(name)))
                for x in names[:i]
                if query.sorts[x] == sort and x not in query.loose
            ]
        sorts = query.sorts | {name: sort for name, (sort, _) in query.inner.items()}
        rules.append(WeightedFormula(And(tuple(said)), 0.0, sorts, tuple(names)))
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
