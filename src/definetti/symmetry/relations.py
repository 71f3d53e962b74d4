"""What a renaming of constants must preserve, as coloured relations: evidence, weights, constants named in formulas.

A permutation of the constants (sort by sort) is a symmetry of the model if it maps each relation onto itself, colours
included. Formulas without constants and with one weight are preserved by every renaming, so nothing is grounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from definetti.model import logic
from definetti.model.logic import Constant, Formula, MarkovLogic, Predicate, Variable, WeightedFormula

UNKNOWN = 2  #: the code of an atom that no evidence decides; 0 and 1 are its observed values


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of constants, each with a colour `codes`; tuples that are not listed have the common colour `default`."""

    name: str
    sorts: tuple[str, ...]
    tuples: np.ndarray  # int32[m, arity], no row twice
    codes: np.ndarray  # int32[m], never `default`
    default: int = -1


def relations(model: MarkovLogic) -> tuple[Relation, ...]:
    """All that a renaming must preserve."""
    found = [*evidence_relations(model).values(), *formula_relations(model)]
    return tuple(r for r in found if len(r.tuples) and r.sorts)


# --- evidence ------------------------------------------------------------------------------------------------


def evidence_relations(model: MarkovLogic) -> dict[str, Relation]:
    """The evidence of each predicate: 0, 1 or UNKNOWN, without what says nothing beyond the default."""
    return {name: _evidence(model, predicate) for name, predicate in model.predicates.items()}


def _evidence(model: MarkovLogic, predicate: Predicate) -> Relation:
    arity = len(predicate.sorts)
    known = model.evidence.get(predicate.name)
    tuples = _shaped(None if known is None else known.tuples, arity)
    codes = np.zeros(0, np.int32) if known is None else known.values.astype(np.int32)
    default = UNKNOWN
    if predicate.name in model.closed:
        default = 0
        doubt = _shaped(model.unknown.get(predicate.name), arity)
        tuples = np.concatenate([tuples[codes == 1], doubt])
        codes = np.repeat(np.array([1, UNKNOWN], np.int32), [len(tuples) - len(doubt), len(doubt)])
    if predicate.exclusive:
        shape = model.shape(predicate.name)
        if all(shape[place] == 1 for place in predicate.exclusive):  # a single value is the true one
            return Relation(predicate.name, predicate.sorts, tuples[:0], codes[:0], 1)
        tuples, codes = _decide_blocks(model, predicate, tuples, codes, default)
    return Relation(predicate.name, predicate.sorts, tuples, codes, default)


def _shaped(tuples: np.ndarray | None, arity: int) -> np.ndarray:
    return np.zeros((0, arity), np.int32) if tuples is None else np.asarray(tuples, np.int32).reshape(len(tuples), arity)


def block_keys(predicate: Predicate, shape: tuple[int, ...], tuples: np.ndarray) -> np.ndarray:
    """The number of the `!` block each row lies in: its arguments outside the exclusive places."""
    key = np.zeros(len(tuples), dtype=np.int64)
    for place in range(len(predicate.sorts)):
        if place not in predicate.exclusive:
            key = key * shape[place] + tuples[:, place]
    return key


def _decide_blocks(
    model: MarkovLogic, predicate: Predicate, tuples: np.ndarray, codes: np.ndarray, default: int
) -> tuple[np.ndarray, np.ndarray]:
    """One true value decides its block: then the rest says nothing. One value left over is true."""
    shape = model.shape(predicate.name)
    width = int(np.prod([shape[place] for place in predicate.exclusive], dtype=np.int64))
    keys, block = np.unique(block_keys(predicate, shape, tuples), return_inverse=True)
    decided = np.zeros(len(keys), bool)
    decided[block[codes == 1]] = True
    says = (codes == 1) | ~decided[block]
    if default == 0:
        left = np.bincount(block[codes == UNKNOWN], minlength=len(keys))
    else:
        left = width - np.bincount(block[codes == 0], minlength=len(keys))
    for b in np.flatnonzero(~decided & (left == 1)):
        inside = block == b
        last = tuples[inside & (codes == UNKNOWN)] if default == 0 else _missing(predicate, shape, tuples[inside])
        says &= ~inside
        tuples, codes = np.concatenate([tuples, last]), np.concatenate([codes, np.ones(len(last), np.int32)])
        says, block = np.concatenate([says, np.ones(len(last), bool)]), np.concatenate([block, np.full(len(last), -1)])
    return tuples[says], codes[says]


def _missing(predicate: Predicate, shape: tuple[int, ...], rows: np.ndarray) -> np.ndarray:
    """The one tuple of a block that is not among its rows."""
    seen = {tuple(row) for row in rows[:, list(predicate.exclusive)].tolist()}
    for values in product(*(range(shape[place]) for place in predicate.exclusive)):
        if values not in seen:
            row = rows[:1].copy()
            row[0, list(predicate.exclusive)] = values
            return row
    return rows[:0]


# --- formulas ------------------------------------------------------------------------------------------------


def formula_relations(model: MarkovLogic) -> Iterator[Relation]:
    """Formulas alike but for their constants and weights are rows of one relation: constants, `+` values → weights."""
    groups: dict[Any, list[tuple[tuple[Constant, ...], WeightedFormula]]] = defaultdict(list)
    for formula in model.formulas:
        constants, shape = formula_shape(formula)
        if constants or formula.plus:
            groups[shape].append((constants, formula))
    for number, members in enumerate(groups.values()):
        yield _weights(f"formula {number}", members)


def formula_shape(formula: WeightedFormula) -> tuple[tuple[Constant, ...], Any]:
    """The constants in order of first occurrence, and the formula with variables and constants numbered instead."""
    constants: dict[Constant, int] = {}
    variables: dict[str, int] = {}

    def term(t: logic.Term) -> logic.Term:
        if isinstance(t, Variable):
            return Variable(f"v{variables.setdefault(t.name, len(variables))}")
        return Constant(t.sort, constants.setdefault(t, len(constants)))

    body = rename(formula.body, term)
    kind = (
        body,
        tuple((n, formula.sorts[v]) for v, n in variables.items()),
        tuple(variables.get(v, (v, formula.sorts[v])) for v in sorted(formula.free)),
        tuple(variables.get(v, v) for v in formula.plus),
    )
    return tuple(constants), kind


def rename(formula: Formula, term: Any) -> Formula:
    """The formula with `term` applied to each of its terms."""
    match formula:
        case logic.Truth():
            return formula
        case logic.Atom(predicate, args):
            return logic.Atom(predicate, tuple(term(a) for a in args))
        case logic.Equal(left, right):
            return logic.Equal(term(left), term(right))
        case logic.Not(part):
            return logic.Not(rename(part, term))
        case logic.And(parts):
            return logic.And(tuple(rename(p, term) for p in parts))
        case logic.Or(parts):
            return logic.Or(tuple(rename(p, term) for p in parts))
        case logic.Implies(left, right):
            return logic.Implies(rename(left, term), rename(right, term))
        case logic.Iff(left, right):
            return logic.Iff(rename(left, term), rename(right, term))
        case logic.Exist(names, body) | logic.Forall(names, body):
            bound = tuple(term(Variable(n)).name for n in names)
            return type(formula)(bound, rename(body, term))
    raise AssertionError(formula)


def _weights(name: str, members: list[tuple[tuple[Constant, ...], WeightedFormula]]) -> Relation:
    """The relation of one shape. A colour is the sorted tuple of the weights that a row carries."""
    constants, first = members[0]
    sorts = tuple(c.sort for c in constants) + tuple(first.sorts[v] for v in first.plus)
    rows, weights = [], []
    for fixed, formula in members:
        array = np.asarray(np.inf if formula.weight is None else formula.weight, dtype=float)
        grid = np.indices(array.shape, dtype=np.int32).reshape(array.ndim, array.size).T
        head = np.broadcast_to(np.array([c.index for c in fixed], np.int32), (len(grid), len(fixed)))
        rows.append(np.concatenate([head, grid], axis=1))
        weights.append(array.reshape(-1))
    tuples, weight = np.concatenate(rows), np.concatenate(weights)
    _, codes = np.unique(weight, return_inverse=True)
    tuples, codes = _merge_rows(tuples, codes.astype(np.int64))
    if not constants:  # every tuple is listed: the most frequent weight needs no rows
        common = int(np.bincount(codes).argmax())
        tuples, codes = tuples[codes != common], codes[codes != common]
        return Relation(name, sorts, tuples, codes.astype(np.int32), common)
    return Relation(name, sorts, tuples, codes.astype(np.int32))


def _merge_rows(tuples: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that occur several times become one, coloured by all their codes."""
    unique, inverse = np.unique(tuples, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    if len(unique) == len(tuples):
        merged = np.empty(len(unique), np.int64)
        merged[inverse] = codes
        return unique, merged
    gathered: Mapping[int, list[int]] = defaultdict(list)
    for row, code in zip(inverse.tolist(), codes.tolist(), strict=True):
        gathered[row].append(code)
    names: dict[tuple[int, ...], int] = {}
    return unique, np.array([names.setdefault(tuple(sorted(gathered[r])), len(names)) for r in range(len(unique))])
