"""What is known of each ground atom: the one interpreter of evidence, closed worlds and exactly-one (`!`) blocks.

An atom is true or false where the evidence says so. In a closed predicate every other atom is false, except those that
the evidence leaves open (`?P(A)`); in an open predicate every other atom is unknown. Then one rule for each `!` block:

- a value that is true makes all others false;
- a block with exactly one possible value left has that value;
- a block with no possible value, or with two true ones, is `Unsatisfiable`.

Hard formulas force more atoms (`constraints/logic/forced_atoms.py`); these enter as evidence.

`Relation` is the sparse form: rows of constants with a code, and a default for the rest. Rows that say nothing beyond
the default, or beyond what a true value of their block implies, are left out, so that two ways of stating the same
evidence give the same relation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from definetti.errors import Unsatisfiable
from definetti.model.logic.theory import MarkovLogic, Predicate

UNKNOWN = 2  #: the code of an atom whose value is not known; 0 and 1 are known values


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of constants, each with a colour `codes`; tuples that are not listed have the common colour `default`."""

    name: str
    sorts: tuple[str, ...]
    tuples: np.ndarray  # int32[m, arity], no row twice
    codes: np.ndarray  # int32[m], never `default`
    default: int = -1


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of the ground atoms of `model`. Use `model.knowledge`, which keeps what was worked out."""

    model: MarkovLogic
    _relations: dict[str, Relation] = field(default_factory=dict, repr=False)
    _rows: dict[str, _Rows] = field(default_factory=dict, repr=False)

    def stated(self, predicate: str) -> Relation:
        """What the evidence and a closed world say of each atom by itself, without the rule for `!` blocks.

        The clauses for a solver need this form: they state the rule themselves, and name what clashes.
        """
        declared = self.model.predicates[predicate]
        evidence, doubt = self.model.evidence.get(predicate), self.model.unknown.get(predicate)
        tuples = _shaped(None if evidence is None else evidence.tuples, len(declared.sorts))
        codes = np.zeros(0, np.int32) if evidence is None else evidence.values.astype(np.int32)
        if predicate not in self.model.closed:
            return Relation(predicate, declared.sorts, tuples, codes, UNKNOWN)
        free = _shaped(doubt, len(declared.sorts))
        if len(tuples) and len(free):  # evidence decides an atom that is also said to be unknown
            shape = self.model.shape(predicate)
            free = free[~np.isin(row_keys(shape, free), row_keys(shape, tuples))]
        true = tuples[codes == 1]
        both = np.repeat(np.array([1, UNKNOWN], np.int32), [len(true), len(free)])
        return Relation(predicate, declared.sorts, np.concatenate([true, free]), both, 0)

    def relation(self, predicate: str) -> Relation:
        """All that is known of a predicate's atoms, in sparse form. In a `!` block the row of a true value stands for
        the whole block: the other values are false and not listed."""
        if predicate not in self._relations:
            found, declared = self.stated(predicate), self.model.predicates[predicate]
            self._relations[predicate] = _with_blocks(self.model, declared, found) if declared.exclusive else found
        return self._relations[predicate]

    @cached_property
    def relations(self) -> Mapping[str, Relation]:
        """`relation` of every predicate."""
        return {name: self.relation(name) for name in self.model.predicates}

    def value(self, predicate: str, constants: Sequence[int]) -> int | None:
        """The value of an atom, 0 or 1, or None where it is free."""
        relation, shape = self.relation(predicate), self.model.shape(predicate)
        if predicate not in self._rows:
            self._rows[predicate] = _Rows.of(self.model.predicates[predicate], shape, relation)
        code = self._rows[predicate].code(tuple(int(c) for c in constants), relation.default)
        return None if code == UNKNOWN else code

    def codes(self, predicate: str) -> np.ndarray:
        """int8, of the predicate's shape: 0, 1 or `UNKNOWN` for each atom. For predicates that fit into memory."""
        relation, declared = self.relation(predicate), self.model.predicates[predicate]
        out = np.full(self.model.shape(predicate), relation.default, dtype=np.int8)
        true = relation.tuples[relation.codes == 1]
        if declared.exclusive and len(true):
            outer = _outer(declared)
            out.transpose([*outer, *declared.exclusive])[tuple(true[:, outer].T)] = 0
        out.reshape(-1)[row_keys(out.shape, relation.tuples)] = relation.codes
        return out

    def mask(self, predicate: str) -> np.ndarray:
        """bool, of the predicate's shape: which atoms are known."""
        return self.codes(predicate) != UNKNOWN

    def free_count(self, predicate: str) -> int:
        """The number of atoms that are not known: an exact integer, whatever its size."""
        relation, declared = self.relation(predicate), self.model.predicates[predicate]
        listed = np.bincount(relation.codes, minlength=3)
        if relation.default != UNKNOWN:
            return int(listed[UNKNOWN])
        shape = self.model.shape(predicate)
        width = prod(shape[k] for k in declared.exclusive)  # a true value decides its block; 1 without blocks
        return prod(shape) - int(listed[0]) - int(listed[1]) * width

    @property
    def free_total(self) -> int:
        """The number of all atoms that are not known."""
        return sum(self.free_count(name) for name in self.model.predicates)

    def occurs(self, predicate: str, value: int) -> bool:
        """Whether some atom of a predicate is known to have this value."""
        relation, declared = self.relation(predicate), self.model.predicates[predicate]
        size = prod(self.model.shape(predicate))
        if (relation.codes == value).any() or (relation.default == value and len(relation.codes) < size):
            return True
        width = prod(self.model.shape(predicate)[k] for k in declared.exclusive)
        return value == 0 and width > 1 and bool((relation.codes == 1).any())


def _shaped(tuples: np.ndarray | None, arity: int) -> np.ndarray:
    if tuples is None:
        return np.zeros((0, arity), np.int32)
    return np.asarray(tuples, np.int32).reshape(len(tuples), arity)


def _outer(predicate: Predicate) -> list[int]:
    """The places without `!`: the block of an atom is given by its constants there."""
    return [k for k in range(len(predicate.sorts)) if k not in predicate.exclusive]


def row_keys(shape: Sequence[int], tuples: np.ndarray) -> np.ndarray:
    """One integer for each row, in lexicographic order; Python's integers where 64 bits do not hold them."""
    kind = np.int64 if prod(shape) < 1 << 62 else object
    key = np.zeros(len(tuples), dtype=kind)
    for size, column in zip(shape, tuples.T, strict=True):
        key = key * size + column.astype(kind)
    return key


@dataclass(frozen=True, eq=False)
class _Rows:
    """A relation's rows by sorted keys, and the keys of the `!` blocks that a true value decides."""

    shape: tuple[int, ...]
    outer: list[int] | None  # None for a predicate without `!`
    keys: np.ndarray
    codes: np.ndarray
    decided: np.ndarray

    @classmethod
    def of(cls, predicate: Predicate, shape: tuple[int, ...], relation: Relation) -> _Rows:
        keys = row_keys(shape, relation.tuples)
        order = np.argsort(keys, kind="stable")
        outer = _outer(predicate) if predicate.exclusive else None
        decided = keys[:0]
        if outer is not None:
            true = relation.tuples[relation.codes == 1]
            decided = np.sort(row_keys([shape[k] for k in outer], true[:, outer]))
        return cls(shape, outer, keys[order], relation.codes[order], decided)

    def code(self, constants: tuple[int, ...], default: int) -> int:
        place = _place(self.keys, self.shape, constants)
        if place >= 0:
            return int(self.codes[place])
        if self.outer is not None and len(self.decided):
            shape, block = [self.shape[k] for k in self.outer], [constants[k] for k in self.outer]
            return 0 if _place(self.decided, shape, block) >= 0 else default
        return default


def _place(keys: np.ndarray, shape: Sequence[int], constants: Sequence[int]) -> int:
    """Where a row is among sorted keys, or -1."""
    key = 0
    for size, constant in zip(shape, constants, strict=True):
        key = key * size + constant
    place = int(np.searchsorted(keys, key))  # pyright: ignore[reportCallIssue, reportArgumentType]
    return place if place < len(keys) and keys[place] == key else -1


def _with_blocks(model: MarkovLogic, predicate: Predicate, stated: Relation) -> Relation:
    """The rule for `!` blocks."""
    shape, outer, inner = model.shape(predicate.name), _outer(predicate), list(predicate.exclusive)
    width, count = prod(shape[k] for k in inner), prod(shape[k] for k in outer)
    tuples, codes = stated.tuples, stated.codes
    blocks, block = np.unique(row_keys([shape[k] for k in outer], tuples[:, outer]), return_inverse=True)
    listed = np.stack([np.bincount(block[codes == code], minlength=len(blocks)) for code in (0, 1, UNKNOWN)])
    left = width - listed[0] if stated.default == UNKNOWN else listed[1] + listed[2]
    rest = count - len(blocks)  # blocks without rows: all their values have the default
    empty = int((left == 0).sum()) + (rest if width == 0 or stated.default == 0 else 0)
    several = int((listed[1] > 1).sum())
    if empty or several:
        raise Unsatisfiable(_clash(predicate, empty, several))
    if width == 1:  # a single value is the true one
        return Relation(predicate.name, predicate.sorts, tuples[:0], codes[:0], 1)
    decided = listed[1] == 1
    last = ~decided & (left == 1)
    kept = (codes == 1) | ~(decided | last)[block]
    if stated.default == 0:
        inferred = tuples[(codes == UNKNOWN) & last[block]]
    else:
        inferred = _missing(shape, inner, tuples, np.where(last[block], block, -1))
    ones = np.ones(len(inferred), np.int32)
    return Relation(
        predicate.name,
        predicate.sorts,
        np.concatenate([tuples[kept], inferred]),
        np.concatenate([codes[kept], ones]),
        stated.default,
    )


def _missing(shape: Sequence[int], inner: list[int], tuples: np.ndarray, block: np.ndarray) -> np.ndarray:
    """The tuple that is not listed in each block (block < 0: leave out) in which exactly one is not."""
    sizes = [shape[k] for k in inner]
    rows, block = tuples[block >= 0], block[block >= 0]
    _, first, block = np.unique(block, return_index=True, return_inverse=True)
    listed = np.bincount(block, weights=row_keys(sizes, rows[:, inner]).astype(float), minlength=len(first))
    width = prod(sizes)
    value = width * (width - 1) // 2 - listed.astype(np.int64)
    found = rows[first].copy()
    found[:, inner] = np.stack(np.unravel_index(value, sizes), 1)
    return found


def _clash(predicate: Predicate, empty: int, several: int) -> str:
    parts = [f"{empty} without a possible value"] if empty else []
    parts += [f"{several} with several true ones"] if several else []
    name = predicate.name
    return (
        f"the `!` of {name} asks for exactly one true value in each block, the evidence leaves {' and '.join(parts)}; "
        f"correct the evidence, or don't close {name}"
    )
