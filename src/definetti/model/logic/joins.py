"""Which groundings of a formula evidence leaves open: a join over the listed atoms of closed predicates.

In `Wrote(a,p) ^ Topic(p,t) => Expert(a,t)` with Wrote closed, a grounding matters only where Wrote(a,p) is true or left
open; elsewhere the formula is true whatever the other atoms are. Such an atom *selects*. The join of all selecting
atoms lists the groundings that are left, usually a few per fact, and the others are one constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from definetti.errors import TooLarge
from definetti.model.logic.evidence import UNKNOWN, row_keys
from definetti.model.logic.formulas import atoms, parts, quantified, rebuild
from definetti.model.logic.theory import And, Atom, Constant, Formula, Iff, Implies, MarkovLogic, Not, Or, Truth

MOST_ROWS = 50_000_000  # of one join


@dataclass(frozen=True)
class Selection:
    """Atoms of closed predicates; where one of them is false, the formula is `value` whatever the others are."""

    atoms: tuple[Atom, ...]
    value: bool


def selection(model: MarkovLogic, body: Formula) -> Selection | None:
    """The selecting atoms of a formula, if it has any."""
    bound = set(quantified(body))
    found: list[Atom] = []
    value: bool | None = None
    for atom in dict.fromkeys(atoms(body)):
        if not _is_sparse(model, atom.predicate) or any(getattr(term, "name", None) in bound for term in atom.args):
            continue
        left = assume_false(body, atom)
        if isinstance(left, Truth) and value in (None, left.value):
            value = left.value
            found.append(atom)
    return None if value is None else Selection(tuple(found), value)


def _is_sparse(model: MarkovLogic, predicate: str) -> bool:
    return (
        predicate in model.closed
        and bool(model.predicates[predicate].sorts)
        and not model.predicates[predicate].exclusive
    )


def assume_false(formula: Formula, atom: Atom) -> Formula:
    """The formula with an atom false, as far as connectives decide it."""
    if formula == atom:
        return Truth(False)
    inner = tuple(assume_false(part, atom) for part in parts(formula))
    match formula:
        case Not() if isinstance(inner[0], Truth):
            return Truth(not inner[0].value)
        case And() | Or():
            strong = isinstance(formula, Or)
            if Truth(strong) in inner:
                return Truth(strong)
            kept = tuple(part for part in inner if part != Truth(not strong))
            return type(formula)(kept) if kept else Truth(not strong)
        case Implies():
            if inner[0] == Truth(False) or inner[1] == Truth(True):
                return Truth(True)
        case Iff() if isinstance(inner[0], Truth) and isinstance(inner[1], Truth):
            return Truth(inner[0].value == inner[1].value)
    return rebuild(formula, inner) if inner else formula


@dataclass(frozen=True, eq=False)
class Join:
    """Rows of constants for the variables `names`; all other variables are free to range over their sorts."""

    names: tuple[str, ...]
    rows: np.ndarray  # int32[m, len(names)]


def join(model: MarkovLogic, selecting: Iterable[Atom], most: int = MOST_ROWS) -> Join:
    """All values of the atoms' variables for which none of the atoms is known to be false."""
    tables = sorted((_table(model, atom) for atom in selecting), key=lambda table: len(table.rows))
    if not tables:
        return Join((), np.zeros((1, 0), np.int32))
    out = tables.pop(0)
    while tables:
        shared = [k for k, table in enumerate(tables) if set(table.names) & set(out.names)] or [0]
        out = _joined(out, tables.pop(shared[0]), most)
    return out


def _table(model: MarkovLogic, atom: Atom) -> Join:
    """The listed rows of an atom's predicate at its constants and repeated variables."""
    relation = model.knowledge.relation(atom.predicate)
    rows = relation.tuples[(relation.codes == 1) | (relation.codes == UNKNOWN)]
    names: dict[str, int] = {}
    for place, term in enumerate(atom.args):
        if isinstance(term, Constant):
            rows = rows[rows[:, place] == term.index]
        elif term.name in names:
            rows = rows[rows[:, place] == rows[:, names[term.name]]]
        else:
            names[term.name] = place
    return Join(tuple(names), np.ascontiguousarray(rows[:, list(names.values())]))


def _joined(left: Join, right: Join, most: int) -> Join:
    shared = [name for name in right.names if name in left.names]
    mine, theirs = [left.names.index(n) for n in shared], [right.names.index(n) for n in shared]
    columns = np.concatenate([left.rows[:, mine], right.rows[:, theirs]])
    shape = (columns.max(axis=0) + 1).tolist() if len(columns) else [1] * len(shared)
    keys = row_keys(shape, columns)
    left_key, right_key = keys[: len(left.rows)], keys[len(left.rows) :]
    order = np.argsort(right_key, kind="stable")
    first = np.searchsorted(right_key[order], left_key, side="left")
    count = np.searchsorted(right_key[order], left_key, side="right") - first
    total = int(count.sum())
    if total > most:
        raise TooLarge("the groundings that the evidence leaves", total, most, "close more predicates", unit="rows")
    repeated = np.repeat(np.arange(len(left.rows)), count)
    offsets = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    matched = order[np.repeat(first, count) + offsets]
    more = [k for k, name in enumerate(right.names) if name not in left.names]
    rows = np.concatenate([left.rows[repeated], right.rows[matched][:, more]], axis=1)
    return Join((*left.names, *(right.names[k] for k in more)), rows)


def remaining(model: MarkovLogic, body: Formula, free: Sequence[str], sorts: Mapping[str, str]) -> int:
    """How many groundings a formula has that evidence leaves open."""
    sizes = {name: model.sorts[sorts[name]].size for name in free}
    chosen = selection(model, body)
    if chosen is None:
        return prod(sizes.values())
    made = join(model, chosen.atoms)
    return len(made.rows) * prod(size for name, size in sizes.items() if name not in made.names)


def groundings(made: Join, free: Sequence[str], shape: Sequence[int]) -> np.ndarray:
    """int64: the number of each grounding that a join leaves, in the order of all groundings, ascending."""
    strides = np.concatenate([np.cumprod(np.array(shape[::-1], np.int64))[::-1][1:], [1]]) if shape else np.ones(0, int)
    stride = dict(zip(free, strides.tolist(), strict=True))
    size = dict(zip(free, shape, strict=True))
    out = np.zeros(len(made.rows), np.int64)
    for k, name in enumerate(made.names):
        out += made.rows[:, k].astype(np.int64) * stride[name]
    for name in free:
        if name not in made.names:
            out = (out[:, None] + np.arange(size[name], dtype=np.int64) * stride[name]).ravel()
    return np.sort(out)
