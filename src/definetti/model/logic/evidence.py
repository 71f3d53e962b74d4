"""What evidence says of each predicate, as a coloured relation: rows of constants with a code, and a default for
the rest.

Closed predicates have the default 0, others UNKNOWN; rows that say nothing beyond the default or beyond what a true
value of their `!` block implies are left out, so that two ways of stating the same evidence give the same relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from definetti.model.logic.theory import MarkovLogic, Predicate

UNKNOWN = 2  #: the code of an atom that no evidence decides; 0 and 1 are its observed values


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of constants, each with a colour `codes`; tuples that are not listed have the common colour `default`."""

    name: str
    sorts: tuple[str, ...]
    tuples: np.ndarray  # int32[m, arity], no row twice
    codes: np.ndarray  # int32[m], never `default`
    default: int = -1


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
    return (
        np.zeros((0, arity), np.int32) if tuples is None else np.asarray(tuples, np.int32).reshape(len(tuples), arity)
    )


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
