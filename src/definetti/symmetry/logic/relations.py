"""What a renaming of constants must preserve, as coloured relations: evidence, weights, constants named in
formulas.

A permutation of the constants (sort by sort) is a symmetry of the model if it maps each relation onto itself,
colours included. Formulas without constants and with one weight are preserved by every renaming, so nothing is
grounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from definetti.integer_rows import distinct
from definetti.model.logic import theory
from definetti.model.logic.evidence import Relation
from definetti.model.logic.formulas import parts, rebuild
from definetti.model.logic.theory import Constant, Formula, MarkovLogic, Term, Variable, WeightedFormula


def relations(model: MarkovLogic) -> tuple[Relation, ...]:
    """All that a renaming must preserve."""
    found = [*model.knowledge.relations.values(), *formula_relations(model)]
    return tuple(r for r in found if len(r.tuples) and r.sorts)


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

    def term(t: Term) -> Term:
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


def rename(formula: Formula, term: Callable[[Term], Term]) -> Formula:
    """The formula with `term` applied to each of its terms, quantified names included."""
    match formula:
        case theory.Atom(predicate, args):
            return theory.Atom(predicate, tuple(term(a) for a in args))
        case theory.Equal(left, right):
            return theory.Equal(term(left), term(right))
        case theory.Exist(names, body) | theory.Forall(names, body):
            bound = [term(Variable(name)) for name in names]
            return type(formula)(tuple(v.name for v in bound if isinstance(v, Variable)), rename(body, term))
    return rebuild(formula, tuple(rename(part, term) for part in parts(formula)))


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
    unique, inverse, _ = distinct(tuples)
    if len(unique) == len(tuples):
        merged = np.empty(len(unique), np.int64)
        merged[inverse] = codes
        return unique, merged
    gathered: Mapping[int, list[int]] = defaultdict(list)
    for row, code in zip(inverse.tolist(), codes.tolist(), strict=True):
        gathered[row].append(code)
    names: dict[tuple[int, ...], int] = {}
    return unique, np.array([names.setdefault(tuple(sorted(gathered[r])), len(names)) for r in range(len(unique))])
