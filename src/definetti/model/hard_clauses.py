"""The hard formulas of a Markov logic network as ground clauses: what a satisfiability solver reads. Soft formulas
are not grounded.

Every atom is one Boolean variable, numbered from 1 over the predicates' boxes; `!` blocks get their exactly-one
clauses. The size is counted before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from definetti.errors import TooLarge
from definetti.model.formulas import free_variables
from definetti.model.logic import Atom, Constant, Equal, Formula, MarkovLogic, Not, Or, Truth, WeightedFormula
from definetti.model.normal_forms import clauses, hard_parts, negation_normal, sizes_of, written_out, written_size

MOST_LITERALS = 12_000_000  #: of all clauses; more is left to the repair without grounding
CURE = "use fewer constants, or give a start"


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which Boolean variable an atom is: `start[predicate]` + its place in the predicate's box."""

    model: MarkovLogic
    start: Mapping[str, int]
    count: int

    def of(self, predicate: str, tuples: np.ndarray) -> np.ndarray:
        flat = np.zeros(len(tuples), dtype=np.int64)
        for size, column in zip(self.model.shape(predicate), tuples.T, strict=True):
            flat = flat * size + column
        return self.start[predicate] + flat

    def atom(self, variable: int) -> tuple[str, tuple[int, ...]]:
        """The atom of a variable."""
        name = max((n for n in self.start if self.start[n] <= variable), key=lambda n: self.start[n])
        place = np.unravel_index(variable - self.start[name], self.model.shape(name)) if self.model.shape(name) else ()
        return name, tuple(int(i) for i in place)


def numbering(model: MarkovLogic) -> Numbering:
    start, used = {}, 1
    for name in model.predicates:
        size = prod(model.shape(name))
        if size:
            start[name] = used
            used += size
    return Numbering(model, start, used - 1)


@dataclass(frozen=True, eq=False)
class HardClauses:
    """Ground clauses by the hard formula they come from (by its place in the model; -1: the `!` of predicates)."""

    numbering: Numbering
    groups: tuple[tuple[int, np.ndarray], ...]  # (formula, int64[m, width]): literals as signed numbers


def hard_size(model: MarkovLogic) -> int:
    """Literals of all ground clauses, about (exact for clauses without equalities)."""
    total = 0
    for formula in model.formulas:
        for piece in hard_parts(formula) if formula.hard else ():
            sizes = {name: model.sorts[sort].size for name, sort in piece.sorts.items()}
            total += prod(sizes[v] for v in free_variables(piece.body)) * written_size(piece.body, sizes)
    for predicate in model.predicates.values():
        if predicate.exclusive:
            values = prod(model.shape(predicate.name)[j] for j in predicate.exclusive)
            total += prod(model.shape(predicate.name)) * (1 + values)
    return total


def hard_clauses(model: MarkovLogic, most: int = MOST_LITERALS) -> HardClauses:
    size = hard_size(model)
    if size > most:
        raise TooLarge("the number of literals of the ground hard formulas", size, most, CURE)
    numbers = numbering(model)
    groups: list[tuple[int, np.ndarray]] = []
    for k, formula in enumerate(model.formulas):
        if formula.hard:
            for template in clause_templates(model, formula):
                rows = _ground(numbers, formula, template)
                if rows is not None:
                    groups.append((k, rows))
    for name, predicate in model.predicates.items():
        if predicate.exclusive and name in numbers.start:
            groups += [(-1, rows) for rows in _exactly_one(numbers, name)]
    return HardClauses(numbers, tuple(groups))


def clause_templates(model: MarkovLogic, formula: WeightedFormula) -> list[tuple[Formula, ...]]:
    """The clauses of a hard formula with variables, quantifiers written out, as tuples of literals."""
    found: list[tuple[Formula, ...]] = []
    for piece in hard_parts(formula):
        body = written_out(negation_normal(piece.body), sizes_of(piece, model.sorts))
        for clause in clauses(body):
            found.append(clause.parts if isinstance(clause, Or) else (clause,))
    return list(dict.fromkeys(found))


def _ground(numbers: Numbering, formula: WeightedFormula, template: Sequence[Formula]) -> np.ndarray | None:
    """All groundings of one clause; those that an equality makes true are left out."""
    model = numbers.model
    names = list(dict.fromkeys(v for literal in template for v in free_variables(literal)))
    shape = tuple(model.sorts[formula.sorts[name]].size for name in names)
    if not prod(shape):
        return None
    grid = dict(zip(names, np.indices(shape).reshape(len(shape), -1), strict=True)) if shape else {}
    count = prod(shape)
    kept = np.ones(count, dtype=bool)
    columns: list[np.ndarray] = []
    for literal in template:
        positive, inner = not isinstance(literal, Not), literal.part if isinstance(literal, Not) else literal
        if isinstance(inner, Truth):
            if inner.value == positive:
                return None
        elif isinstance(inner, Equal):
            same = _column(inner.left, grid, count) == _column(inner.right, grid, count)
            kept &= same != positive
        else:
            assert isinstance(inner, Atom)
            rows = (
                np.stack([_column(t, grid, count) for t in inner.args], 1) if inner.args else np.zeros((count, 0), int)
            )
            columns.append(numbers.of(inner.predicate, rows) * (1 if positive else -1))
    if not columns:
        return np.zeros((int(kept.any()), 0), dtype=np.int64) if kept.any() else None
    return np.stack(columns, 1)[kept]


def _column(term: object, grid: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    if isinstance(term, Constant):
        return np.full(count, term.index, dtype=np.int64)
    return grid[term.name]  # pyright: ignore[reportAttributeAccessIssue]


def _exactly_one(numbers: Numbering, name: str) -> list[np.ndarray]:
    predicate, shape = numbers.model.predicates[name], numbers.model.shape(name)
    order = [j for j in range(len(shape)) if j not in predicate.exclusive] + list(predicate.exclusive)
    values = prod(shape[j] for j in predicate.exclusive)
    table = (numbers.start[name] + np.arange(prod(shape)).reshape(shape)).transpose(order).reshape(-1, values)
    first, second = np.triu_indices(values, 1)
    return [table, -np.stack([table[:, first].ravel(), table[:, second].ravel()], 1)]


def evidence_literals(model: MarkovLogic, numbers: Numbering) -> np.ndarray:
    """Every known atom as a signed number."""
    found = [np.zeros(0, np.int64)]
    for name in numbers.start:
        known = model.evidence.get(name)
        if name in model.closed:
            values = np.full(prod(model.shape(name)), -1, dtype=np.int64)
            if name in model.unknown:
                values[numbers.of(name, model.unknown[name].astype(np.int64)) - numbers.start[name]] = 0
            if known is not None:
                values[numbers.of(name, known.tuples.astype(np.int64)) - numbers.start[name]] = (
                    2 * known.values.astype(int) - 1
                )
            at = np.flatnonzero(values)
            found.append((numbers.start[name] + at) * values[at])
        elif known is not None and len(known.tuples):
            found.append(numbers.of(name, known.tuples.astype(np.int64)) * (2 * known.values.astype(np.int64) - 1))
    return np.concatenate(found)
