"""Ground clauses of the hard formulas of a Markov logic network, for a satisfiability solver.

Soft formulas are not grounded. Every atom is one Boolean variable, numbered from 1 over the predicates' boxes, Tseitin
variables (`tseitin.py`) last; `!` blocks get their exactly-one clauses. The size is counted before anything is built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from definetti.constraints.logic.tseitin import ENDLESS, is_disjunction, with_definitions
from definetti.errors import TooLarge
from definetti.integer_rows import distinct
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.formulas import free_variables, parts, quantified, terms, with_body
from definetti.model.logic.joins import groundings, join, remaining, selection
from definetti.model.logic.normal_forms import clauses, hard_parts, negation_normal, sizes_of, written_out
from definetti.model.logic.theory import (
    Atom,
    Constant,
    Equal,
    Exist,
    Forall,
    Formula,
    MarkovLogic,
    Not,
    Or,
    Truth,
    WeightedFormula,
)

MOST_LITERALS = 12_000_000  #: of all clauses; more is left to the repair without grounding
SIGN = np.array([-1, 1, 0])  #: of a literal, by what is known of its atom: false, true, unknown
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
class Choices:
    """Clauses that ask for witnesses: an existential formula, or a value of each `!` block, written out."""

    formula: int
    rows: np.ndarray
    cells: tuple[tuple[str, np.ndarray], ...]  # of each universal variable: its sort, its constant in each row
    columns: tuple[tuple[Constant, ...], ...]  # the constants in each column's literal, witnesses among them
    asked: Mapping[str, int]  # sort → how many witnesses a row asks for at most


@dataclass(frozen=True, eq=False)
class HardClauses:
    """Ground clauses by the hard formula they come from (by its place in the model; -1: the `!` of predicates)."""

    numbering: Numbering
    groups: tuple[tuple[int, np.ndarray], ...]  # (formula, int64[m, width]): literals as signed numbers
    choices: tuple[Choices, ...]  # those of the groups that ask for witnesses


def hard_size(model: MarkovLogic) -> int:
    """Literals of all ground clauses, about: equalities leave some of the clauses out."""
    try:
        pieces = with_definitions(model)[1]
    except TooLarge:  # a formula with too many clauses
        return ENDLESS
    total = 0
    for _, piece in pieces:
        sizes = {name: model.sorts[sort].size for name, sort in piece.sorts.items()}
        left = remaining(model, piece.body, free_variables(piece.body), piece.sorts)
        total += left * _literal_count(piece.body, sizes)
    for predicate in model.predicates.values():
        if predicate.exclusive:
            values = prod(model.shape(predicate.name)[j] for j in predicate.exclusive)
            total += prod(model.shape(predicate.name)) * (1 + values)
    return total


def _literal_count(formula: Formula, sizes: Mapping[str, int]) -> int:
    """The number of atoms once quantifiers are written out."""
    if isinstance(formula, Exist | Forall):
        return prod(sizes[name] for name in formula.variables) * _literal_count(formula.body, sizes)
    return isinstance(formula, Atom) + sum(_literal_count(part, sizes) for part in parts(formula))


def hard_clauses(model: MarkovLogic, most: int = MOST_LITERALS) -> HardClauses:
    size = hard_size(model)
    if size > most:
        raise TooLarge("the number of literals of the ground hard formulas", size, most, CURE)
    defined, pieces = with_definitions(model)
    numbers = numbering(defined)
    groups: list[tuple[int, np.ndarray]] = []
    choices: list[Choices] = []
    for k, piece in pieces:
        asked = Counter(piece.sorts[name] for name in quantified(piece.body)) if is_disjunction(piece.body) else {}
        for template in _templates(defined, piece):
            rows, cells = _ground(numbers, piece, template)
            if rows is not None and not asked:
                groups.append((k, _once(rows)))
            elif rows is not None:
                groups.append((k, rows))
                columns = [tuple(t for t in terms(x) if isinstance(t, Constant)) for x in template if _speaks(x)]
                choices.append(Choices(k, rows, cells, tuple(columns), asked))
    for name, predicate in model.predicates.items():
        if predicate.exclusive and name in numbers.start:
            choices.append(_some_value(numbers, name))
            groups += [(-1, choices[-1].rows), (-1, _no_two_values(choices[-1].rows))]
    return HardClauses(numbers, tuple(groups), tuple(choices))


def clause_templates(model: MarkovLogic, formula: WeightedFormula) -> list[tuple[Formula, ...]]:
    """The clauses of a hard formula with variables, quantifiers written out, as tuples of literals."""
    found: list[tuple[Formula, ...]] = []
    for piece in hard_parts(formula):
        found += _templates(model, with_body(piece, negation_normal(piece.body)))
    return list(dict.fromkeys(found))


def _templates(model: MarkovLogic, piece: WeightedFormula) -> list[tuple[Formula, ...]]:
    found = clauses(written_out(piece.body, sizes_of(piece, model.sorts)))
    return [clause.parts if isinstance(clause, Or) else (clause,) for clause in found]


def _speaks(literal: Formula) -> bool:
    """Whether a literal is of an atom."""
    return isinstance(literal.part if isinstance(literal, Not) else literal, Atom)


def _ground(
    numbers: Numbering, formula: WeightedFormula, template: Sequence[Formula]
) -> tuple[np.ndarray | None, tuple[tuple[str, np.ndarray], ...]]:
    """All groundings of one clause, and the constants of its variables; those that an equality makes true are left
    out."""
    model = numbers.model
    names = list(dict.fromkeys(v for literal in template for v in free_variables(literal)))
    shape = tuple(model.sorts[formula.sorts[name]].size for name in names)
    if not prod(shape):
        return None, ()
    count, grid = _grid(model, names, shape, template)
    if not count:
        return None, ()
    kept = np.ones(count, dtype=bool)
    columns: list[np.ndarray] = []
    for literal in template:
        positive, inner = not isinstance(literal, Not), literal.part if isinstance(literal, Not) else literal
        if isinstance(inner, Truth):
            if inner.value == positive:
                return None, ()
        elif isinstance(inner, Equal):
            same = _column(inner.left, grid, count) == _column(inner.right, grid, count)
            kept &= same != positive
        else:
            assert isinstance(inner, Atom)
            rows = (
                np.stack([_column(t, grid, count) for t in inner.args], 1) if inner.args else np.zeros((count, 0), int)
            )
            columns.append(numbers.of(inner.predicate, rows) * (1 if positive else -1))
    cells = tuple((formula.sorts[name], values[kept]) for name, values in grid.items())
    if not columns:
        return (np.zeros((1, 0), dtype=np.int64) if kept.any() else None), ()
    return np.stack(columns, 1)[kept], cells


def _grid(
    model: MarkovLogic, names: Sequence[str], shape: tuple[int, ...], template: Sequence[Formula]
) -> tuple[int, dict[str, np.ndarray]]:
    """The constants of a clause's variables in all groundings, without those that closed evidence makes true."""
    false = [x.part for x in template if isinstance(x, Not) and isinstance(x.part, Atom)]
    chosen = selection(model, Or(tuple(Not(atom) for atom in false))) if false and shape else None
    if chosen is None:
        return prod(shape), dict(zip(names, np.indices(shape).reshape(len(shape), -1), strict=True)) if shape else {}
    rows = groundings(join(model, chosen.atoms), names, shape)
    return len(rows), dict(zip(names, np.unravel_index(rows, shape), strict=True))


def _once(rows: np.ndarray) -> np.ndarray:
    """Pairs once: `P(x) ^ P(y) => x = y` says everything twice."""
    return distinct(np.sort(rows, axis=1))[0] if rows.shape[1] == 2 else rows


def _column(term: object, grid: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    if isinstance(term, Constant):
        return np.full(count, term.index, dtype=np.int64)
    return grid[term.name]  # pyright: ignore[reportAttributeAccessIssue]


def _some_value(numbers: Numbering, name: str) -> Choices:
    """A row for each `!` block: one of its atoms is true."""
    predicate, shape = numbers.model.predicates[name], numbers.model.shape(name)
    outer = [j for j in range(len(shape)) if j not in predicate.exclusive]
    inner = list(predicate.exclusive)
    table = (numbers.start[name] + np.arange(prod(shape)).reshape(shape)).transpose(outer + inner)
    cells = np.indices([shape[j] for j in outer]).reshape(len(outer), prod(shape[j] for j in outer))
    values = [[Constant(predicate.sorts[j], c) for c in range(shape[j])] for j in inner]
    return Choices(
        -1,
        table.reshape(-1, prod(shape[j] for j in inner)),
        tuple((predicate.sorts[j], cell) for j, cell in zip(outer, cells, strict=True)),
        tuple(product(*values)),
        Counter(predicate.sorts[j] for j in inner),
    )


def _no_two_values(table: np.ndarray) -> np.ndarray:
    first, second = np.triu_indices(table.shape[1], 1)
    return -np.stack([table[:, first].ravel(), table[:, second].ravel()], 1)


def evidence_literals(model: MarkovLogic, numbers: Numbering) -> np.ndarray:
    """Every atom whose value the evidence or a closed world states, as a signed number."""
    found = [np.zeros(0, np.int64)]
    for name in (name for name in numbers.start if name in model.predicates):
        stated = model.knowledge.stated(name)
        variables, signs = numbers.of(name, stated.tuples.astype(np.int64)), SIGN[stated.codes]
        if stated.default != UNKNOWN:
            values = np.full(prod(model.shape(name)), SIGN[stated.default])
            values[variables - numbers.start[name]] = signs
            variables = numbers.start[name] + np.flatnonzero(values)
            signs = values[values != 0]
        found.append(variables * signs)
    return np.concatenate(found)
