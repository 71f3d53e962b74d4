"""Facts of evidence files with numbers for constants: contradictions, `!` blocks, values of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from definetti.errors import suggestion
from definetti.model.logic.change import (
    SPOKEN,
    TRUE,
    UNKNOWN,
    Contradiction,
    NoValue,
    complete_blocks,
    distinct_rows,
    read_only,
)
from definetti.model.logic.text import atom_name, block_name
from definetti.model.logic.theory import Evidence, Predicate, Sort
from definetti.readers.logic.db import Facts
from definetti.readers.logic.meaning import UnknownPlace


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
            unknown[name] = read_only(tuples[open_rows], np.int32)
        tuples, values = tuples[~open_rows], values[~open_rows]
        if known.predicate.exclusive:
            tuples, values = _completed(known, rows, tuples, values, sorts, closed=name in closed)
        if len(values):
            evidence[name] = Evidence(read_only(tuples, np.int32), read_only(values, np.int8))
    return evidence, unknown


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
            message = f"sort {sort.name} has no constant {column[row]!r}{suggestion(column[row], index)}"
            raise known.error(message, row, place, UnknownPlace) from None
    return out


def _distinct(known: Facts, tuples: np.ndarray, sorts: Mapping[str, Sort]) -> tuple[np.ndarray, np.ndarray]:
    """Rows sorted and once each; an atom with two different values is an error that names both lines."""
    values = np.array(known.signs, dtype=np.int8)
    try:
        keep = distinct_rows(tuples, values, _shape(known.predicate, sorts))
    except Contradiction as clash:
        source, line = known.place(clash.first)
        name = atom_name(known.predicate.name, _names(known.predicate, tuples[clash.first], sorts))
        message = (
            f"contradicting evidence: {name} is {SPOKEN[int(values[clash.second])]} here "
            f"and {SPOKEN[int(values[clash.first])]} in {source.path}, line {line}"
        )
        raise known.error(message, clash.second) from None
    return tuples[keep], values[keep]


def _completed(
    known: Facts, all_rows: np.ndarray, tuples: np.ndarray, values: np.ndarray, sorts: Mapping[str, Sort], closed: bool
) -> tuple[np.ndarray, np.ndarray]:
    """With what the `!` blocks imply; a block without a value, or with two, is an error at its last line."""
    predicate = known.predicate
    try:
        return complete_blocks(predicate, _shape(predicate, sorts), tuples, values, closed)
    except NoValue as clash:
        name = block_name(predicate, _names(predicate, clash.rows[0], sorts))
        last = max(int(np.flatnonzero((all_rows == row).all(axis=1))[0]) for row in clash.rows)
        raise known.error(f"contradicting evidence: in {name} {clash.why}, exactly one must be", last) from None


def _shape(predicate: Predicate, sorts: Mapping[str, Sort]) -> tuple[int, ...]:
    return tuple(sorts[sort].size for sort in predicate.sorts)


def _names(predicate: Predicate, row: Sequence[int] | np.ndarray, sorts: Mapping[str, Sort]) -> list[str]:
    return [sorts[sort].constants[i] for sort, i in zip(predicate.sorts, row, strict=True)]


def function_values(known: Facts, sorts: Mapping[str, Sort]) -> int:
    """Of a function: at how many arguments it is known. Two values at one are an error that names both lines."""
    rows = _numbered(known, sorts)
    order = np.lexsort(rows.T[::-1])
    order = order[np.array(known.signs)[order] == TRUE]
    same = (rows[order[1:], :-1] == rows[order[:-1], :-1]).all(axis=1)
    clash = np.flatnonzero(same & (rows[order[1:], -1] != rows[order[:-1], -1]))
    if len(clash):
        first, second = sorted(int(order[clash[0] + k]) for k in (0, 1))
        source, line = known.place(first)
        name = atom_name(known.predicate.name, _names(known.predicate, rows[second], sorts)[:-1])
        raise known.error(f"contradicting evidence: {name} has another value in {source.path}, line {line}", second)
    return len(order) - int(same.sum())
