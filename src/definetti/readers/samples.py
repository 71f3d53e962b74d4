"""Draws that another program made, as CSV: a row per draw, a column per variable, and `chain` where there are several.

The header names the variables in any order; without a header the columns are the model's variables in its order.
Columns of observed variables may be missing. The usual file holds only integers and is read by numpy; others field by
field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from definetti.errors import ModelError, ParseError, UnknownName
from definetti.files import read_text
from definetti.model.graph.factors import FREE, FactorGraph

CHAIN = "chain"


def read_samples(path: str | Path, model: FactorGraph) -> np.ndarray:
    """int32[chains, draws, variables], the variables in the model's order."""
    if not isinstance(model, FactorGraph):
        raise ModelError(f"draws in CSV belong to a factor graph; {path} was given for a {type(model).__name__}")
    text = read_text(path)
    first = next(_records(text, path), (1, []))[1]
    if not any(field.strip() for field in first):
        raise ParseError("no draws: the first line is empty", path=path, line=1)
    fields = [field.strip() for field in first]
    named = not all(_is_integer(field) for field in fields)
    columns = _columns(fields, model, path) if named else _unnamed(fields, model, path)
    chain = fields.index(CHAIN) if CHAIN in fields and CHAIN not in model.names else None
    found = _from_integers(text, named, columns, chain, model)
    values, chains = found or _from_texts(_rows(text, named, fields, path), columns, chain, model, path)
    _agree(values, model, path)
    return _by_chain(values, chains, path)


def _records(text: str, path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each record."""
    reader = csv.reader(io.StringIO(text))
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ParseError(str(error), path=path, line=reader.line_num) from None


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()


# --- columns -------------------------------------------------------------------------------------------------


def _columns(fields: Sequence[str], model: FactorGraph, path: str | Path) -> dict[int, int]:
    """Variable → column, from the header."""
    columns: dict[int, int] = {}
    for column, name in enumerate(fields):
        if name == CHAIN and name not in model.names:
            continue
        try:
            variable = model.index(name)
        except UnknownName as error:
            raise _error_at(fields, column, str(error), path, 1) from None
        if variable in columns:
            raise _error_at(fields, column, f"{name} has two columns", path, 1)
        columns[variable] = column
    missing = [model.names[i] for i in model.free if int(i) not in columns]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ParseError(f"no column for {', '.join(missing[:3])}{more}", path=path, line=1)
    return columns


def _error_at(row: Sequence[str], column: int, message: str, path: str | Path, line: int) -> ParseError:
    place = sum(len(field) + 1 for field in row[:column]) + 1
    return ParseError(message, path=path, line=line, column=place, source=",".join(row))


def _unnamed(fields: Sequence[str], model: FactorGraph, path: str | Path) -> dict[int, int]:
    if len(fields) != model.n:
        raise ParseError(
            f"{len(fields)} columns, but the model has {model.n} variables; a header can name them",
            path=path,
            line=1,
        )
    return {i: i for i in range(model.n)}


# --- values --------------------------------------------------------------------------------------------------

Found = tuple[np.ndarray, list[object] | None]  # values[draws, variables] and the chain of each draw


def _from_integers(
    text: str, named: bool, columns: dict[int, int], chain: int | None, model: FactorGraph
) -> Found | None:
    """The quick way; None where the file is not what it should be, so that the slow way finds the place."""
    body = text.partition("\n")[2] if named else text
    if not body.strip():
        return None  # numpy warns where we raise
    try:
        cells = np.loadtxt(io.StringIO(body), dtype=np.int64, delimiter=",", comments=None, quotechar='"', ndmin=2)
    except (ValueError, OverflowError):
        return None
    if cells.shape[1] != len(columns) + (chain is not None):
        return None
    values = _start(model, len(cells))
    for variable, column in columns.items():
        seen, place = np.unique(cells[:, column], return_inverse=True)
        try:
            numbers = np.array([model.value(variable, str(value)) for value in seen], dtype=np.int32)
        except UnknownName:
            return None
        values[:, variable] = numbers[place]
    return values, None if chain is None else cells[:, chain].tolist()


def _from_texts(
    rows: list[tuple[int, list[str]]],
    columns: dict[int, int],
    chain: int | None,
    model: FactorGraph,
    path: str | Path,
) -> Found:
    values = _start(model, len(rows))
    known: dict[tuple[int, str], int] = {}
    for draw, (line, row) in enumerate(rows):
        for variable, column in columns.items():
            key = (variable, row[column])
            if key not in known:
                try:
                    known[key] = model.value(*key)
                except UnknownName as error:
                    raise _error_at(row, column, str(error), path, line) from None
            values[draw, variable] = known[key]
    return values, None if chain is None else [row[chain] for _, row in rows]


def _rows(text: str, named: bool, fields: Sequence[str], path: str | Path) -> list[tuple[int, list[str]]]:
    """Every row with its line number, checked for its length."""
    rows = []
    for number, (line, row) in enumerate(_records(text, path)):
        if (named and number == 0) or not row:
            continue
        if len(row) != len(fields):
            raise ParseError(f"{len(row)} fields, expected {len(fields)}", path=path, line=line)
        rows.append((line, [field.strip() for field in row]))
    if not rows:
        raise ParseError("no draws below the header", path=path, line=1)
    return rows


def _start(model: FactorGraph, draws: int) -> np.ndarray:
    """Observed variables have their value; the columns overwrite the others."""
    return np.repeat(np.where(model.evidence == FREE, 0, model.evidence)[None, :].astype(np.int32), draws, axis=0)


def _agree(values: np.ndarray, model: FactorGraph, path: str | Path) -> None:
    """Draws of another model, without the evidence, must not pass for draws of this one."""
    clash = (values != model.evidence) & (model.evidence != FREE)
    if clash.any():
        draw, variable = np.argwhere(clash)[0]
        name, seen = model.names[variable], model.evidence[variable]
        raise ModelError(
            f"{path}: draw {draw + 1} has {name}={values[draw, variable]}, but the evidence is {name}={seen}"
        )


# --- chains --------------------------------------------------------------------------------------------------


def _by_chain(values: np.ndarray, chains: Sequence[object] | None, path: str | Path) -> np.ndarray:
    """Rows of one label, in the order of the file, are a chain."""
    if chains is None:
        return values[None]
    members: dict[object, list[int]] = {}
    for draw, label in enumerate(chains):
        members.setdefault(label, []).append(draw)
    lengths = {label: len(draws) for label, draws in members.items()}
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        raise ParseError(
            f"chains must be equally long: chain {long} has {lengths[long]} draws, chain {short} has {lengths[short]}",
            path=path,
        )
    return np.stack([values[draws] for draws in members.values()])
