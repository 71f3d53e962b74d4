"""Evidence with numbers for constants: sorted, without repetition, contradictions refused, `!` blocks completed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from definetti.errors import ModelError
from definetti.model.logic.text import atom_name, block_name
from definetti.model.logic.theory import Evidence, Predicate, Sort
from definetti.readers.logic.db import FALSE, TRUE, UNKNOWN, Facts
from definetti.readers.logic.meaning import UnknownPlace, suggestion


def number_facts(
    facts: Mapping[str, Facts], sorts: Mapping[str, Sort], closed: frozenset[str]
) -> tuple[dict[str, Evidence], dict[str, np.ndarray]]:
    """The evidence of each predicate, and the rows left open (`?`) in closed predicates."""
    evidence: dict[str, Evidence] = {}
    unknown: dict[str, np.ndarray] = {}
    for name, known in facts.items():
        rows = _numbered(known, sorts)
        tuples, values = _distinct(known, rows, sorts)
        open_rows = values == UNKNOWN
        if name in closed and open_rows.any():
            unknown[name] = _frozen(tuples[open_rows], np.int32)
        tuples, values = tuples[~open_rows], values[~open_rows]
        if known.predicate.exclusive:
            tuples, values = _complete_blocks(known, rows, tuples, values, sorts, closed=name in closed)
        if len(values):
            evidence[name] = Evidence(_frozen(tuples, np.int32), _frozen(values, np.int8))
    return evidence, unknown


def _frozen(array: np.ndarray, dtype: type) -> np.ndarray:
    out = np.array(array, dtype=dtype, order="C")
    out.flags.writeable = False
    return out


def _numbered(known: Facts, sorts: Mapping[str, Sort]) -> np.ndarray:
    """int32[rows, arity]: constants by their number in the sort of their place."""
    names, arity, rows = known.names, len(known.predicate.sorts), len(known.args)
    out = np.empty((rows, arity), dtype=np.int32)
    for place, sort_name in enumerate(known.predicate.sorts):
        sort, index = sorts[sort_name], sorts[sort_name].numbers
        column = names[place::arity]
        try:
            out[:, place] = np.fromiter(map(index.__getitem__, column), np.int32, rows)
        except KeyError:
            row = next(i for i, constant in enumerate(column) if constant not in index)
            close = suggestion(column[row], index) if sort.size <= 1000 else ""
            message = f"sort {sort.name} has no constant {column[row]!r}{close}"
            raise known.error(message, row, place, UnknownPlace) from None
    return out


def _keys(tuples: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """One number per row, in lexicographic order."""
    if tuples.shape[1] and prod(shape) < 2**62:
        return np.asarray(np.ravel_multi_index(tuple(tuples.T), shape))
    return np.unique(tuples, axis=0, return_inverse=True)[1].ravel()


def _distinct(known: Facts, tuples: np.ndarray, sorts: Mapping[str, Sort]) -> tuple[np.ndarray, np.ndarray]:
    """Rows sorted and once each; an atom with two different values is an error that names both lines."""
    shape = tuple(sorts[sort].size for sort in known.predicate.sorts)
    values = np.array(known.signs, dtype=np.int8)
    keys = _keys(tuples, shape)
    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    clash = np.flatnonzero(same & (values[order[1:]] != values[order[:-1]]))
    if len(clash):
        first, second = (int(order[clash[0] + k]) for k in (0, 1))
        source, line = known.place(first)
        spoken = {TRUE: "true", FALSE: "false", UNKNOWN: "unknown"}
        name = atom_name(known.predicate.name, _words(known.predicate, tuples[first], sorts))
        message = (
            f"contradicting evidence: {name} is {spoken[values[second]]} here "
            f"and {spoken[values[first]]} in {source.path}, line {line}"
        )
        raise known.error(message, second)
    keep = order[np.concatenate([[True], ~same])] if len(order) else order
    return tuples[keep], values[keep]


def _words(predicate: Predicate, row: Sequence[int] | np.ndarray, sorts: Mapping[str, Sort]) -> list[str]:
    return [sorts[sort].constants[i] for sort, i in zip(predicate.sorts, row, strict=True)]


def _complete_blocks(
    known: Facts, all_rows: np.ndarray, tuples: np.ndarray, values: np.ndarray, sorts: Mapping[str, Sort], closed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A true atom makes the others of its block false; in an open predicate the last one left becomes true. (What is
    not stated in a closed predicate is false, or left open: `model/logic/evidence.py` decides such blocks.)"""
    predicate = known.predicate
    shape = tuple(sorts[sort].size for sort in predicate.sorts)
    outer = [k for k in range(len(shape)) if k not in predicate.exclusive]
    inner_size = prod(shape[k] for k in predicate.exclusive)
    blocks: dict[tuple[int, ...], dict[tuple[int, ...], int]] = {}
    for row, value in zip(tuples.tolist(), values.tolist(), strict=True):
        block = blocks.setdefault(tuple(row[k] for k in outer), {})
        block[tuple(row[k] for k in predicate.exclusive)] = value
    rows: list[tuple[tuple[int, ...], int]] = []
    for place, block in blocks.items():
        true = [inner for inner, value in block.items() if value == TRUE]
        missing = inner_size - len(block)
        if len(true) > 1 or (not true and missing == 0):
            members = [_place(place, inner, outer, predicate.exclusive) for inner in true or block]
            what = "more than one atom is true" if true else "no atom can be true"
            name = block_name(predicate, _words(predicate, members[0], sorts))
            last = max(int(np.flatnonzero((all_rows == member).all(axis=1))[0]) for member in members)
            raise known.error(f"contradicting evidence: in {name} {what}, exactly one must be", last)
        if true or (missing == 1 and not closed):
            for inner in np.ndindex(*(shape[k] for k in predicate.exclusive)):
                block.setdefault(inner, FALSE if true else TRUE)
        rows += [(_place(place, inner, outer, predicate.exclusive), value) for inner, value in block.items()]
    rows.sort()
    return np.array([r for r, _ in rows], np.int32).reshape(-1, len(shape)), np.array([v for _, v in rows], np.int8)


def _place(
    outer_values: tuple[int, ...], inner_values: tuple[int, ...], outer: list[int], inner: tuple[int, ...]
) -> tuple[int, ...]:
    found = dict(zip(outer, outer_values, strict=True)) | dict(zip(inner, inner_values, strict=True))
    return tuple(found[k] for k in range(len(found)))


def check_closed_blocks(
    predicate: Predicate, known: Evidence | None, unknown: np.ndarray | None, sorts: Mapping[str, Sort]
) -> None:
    """A closed `!` predicate needs, in every block, a true atom or one that is left open."""
    outer = [k for k in range(len(predicate.sorts)) if k not in predicate.exclusive]
    possible = np.zeros(tuple(sorts[predicate.sorts[k]].size for k in outer), dtype=bool)
    true = known.tuples[known.values == TRUE] if known is not None else np.empty((0, len(predicate.sorts)), int)
    for rows in (true, unknown):
        if rows is not None and len(rows):
            possible[tuple(rows[:, outer].T)] = True
    if not possible.all():
        first = np.argwhere(~possible)[0]
        row = np.zeros(len(predicate.sorts), dtype=int)
        row[outer] = first
        name = block_name(predicate, _words(predicate, row, sorts))
        raise ModelError(
            f"{predicate.name} is closed, but the evidence gives {name} no value; state one, or leave it open"
        )
