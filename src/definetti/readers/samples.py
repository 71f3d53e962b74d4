"""Draws that another program made, as CSV or as an object that names its variables.

In a CSV file a row is a draw and a column a variable, with a column `chain` where there are several chains. The header
names the variables in any order; without a header the columns are the model's variables in its order. Columns of
observed variables may be missing. The usual file holds only integers and is read by numpy; others field by field.

Tables (pandas), labelled arrays (xarray, ArviZ), mappings and structured arrays are read by their names in the same
way: what names a variable is used, what does not match the model is refused, and the order of columns and dimensions
has no meaning.
"""

from __future__ import annotations

import csv
import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from definetti.errors import ModelError, ParseError, TooLarge, UnknownName, suggestion
from definetti.files import read_text, require_file
from definetti.model.graph.factors import FREE, FactorGraph

CHAIN = "chain"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, SyntaxError, NotImplementedError,
              RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError)  # fmt: skip
MOST_ATOMS = 1_000_000  # of Markov logic: columns of a table


def atoms_of(model: Any) -> FactorGraph:
    """The ground atoms of a Markov logic network as binary variables without factors, so that tables of draws are read
    as those of a factor graph; a factor graph as it is."""
    if model.kind == "graph":
        return model
    if model.atom_count > MOST_ATOMS:
        raise TooLarge("a table of draws", model.atom_count, MOST_ATOMS, "sample with definetti itself", unit="columns")
    from definetti.model.logic.text import atom_text

    names, values = [], []
    for name in model.predicates:
        codes = model.knowledge.codes(name).ravel()
        values.append(np.where(codes > 1, FREE, codes))
        names += [atom_text(model, name, at) for at in np.ndindex(*model.shape(name))]
    none = np.zeros(0, np.int32)
    return FactorGraph.from_arrays(
        np.full(len(names), 2, np.int32), np.zeros(1, np.int64), none, none.astype(np.int64), [],
        names=tuple(names), evidence=np.concatenate([none, *values]).astype(np.int32),
    )  # fmt: skip


def read_samples(path: str | Path, model: Any) -> np.ndarray:
    """int32[chains, draws, variables], the variables in the model's order; of Markov logic all ground atoms."""
    model = atoms_of(model)
    if Path(path).suffix == ".npz":
        return read_packed(path, model)
    text = read_text(path)
    first = next(_records(text, path), (1, []))[1]
    if not any(field.strip() for field in first):
        raise ParseError("no draws: the first line is empty", path=path, line=1)
    fields = [field.strip() for field in first]
    named = _is_header(fields, model, path)
    columns = _columns(fields, model, path) if named else _unnamed(fields, model, path)
    chain = fields.index(CHAIN) if CHAIN in fields and CHAIN not in model.names else None
    found = _from_integers(text, named, len(fields), columns, chain, model)
    values, chains = found or _from_texts(_rows(text, named, fields, path), columns, chain, model, path)
    _agree(values, model, path)
    return _by_chain(values, chains, str(path))


def read_packed(path: str | Path, model: FactorGraph) -> np.ndarray:
    """uint8[chains, draws, variables] from an archive that `definetti sample` wrote."""
    require_file(path)
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = [str(name) for name in archive["names"]]
            packed = archive.get("bits")
            values = archive["values"] if packed is None else np.unpackbits(packed, axis=-1)[..., : len(names)]
    except UNREADABLE as error:
        raise ParseError(
            f"this is no archive of draws, as `definetti sample` writes them: {error}", path=path
        ) from None
    if names != list(getattr(model, "names", ())):
        raise ParseError("the draws are of other variables than the model has", path=path)
    if values.ndim != 3 or values.shape[2] != len(names) or values.dtype != np.uint8 or (values >= model.cards).any():
        raise ParseError("the draws are not values of the variables, draws by chains by variables", path=path)
    _agree(values.reshape(-1, len(names)), model, path)
    return values.transpose(1, 0, 2)


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


def _is_header(fields: Sequence[str], model: FactorGraph, path: str | Path) -> bool:
    """Whether the first line names the columns. Names may be whole numbers, and so are values."""
    if not all(_is_integer(field) for field in fields):
        return True
    known = set(fields) <= set(model.names) and {model.names[i] for i in model.free} <= set(fields)
    counted = 2 < len(fields) == model.n and set(fields) == {str(k) for k in range(model.n)}  # by pandas
    if not (known or counted) or len(set(fields)) < len(fields):
        return False
    try:
        for i, field in enumerate(fields if len(fields) == model.n else ()):
            model.value(i, field)
    except UnknownName:  # it cannot be a draw
        return True
    if len(fields) < model.n:
        return True
    cure = "a column `chain` if it is a header, or a header if it is a draw"
    cure = f"add {cure}" if known else f"name the columns, such as {', '.join(model.names[:3])}, in a header"
    raise ParseError(f"the first line is a header or a draw, its numbers are both; {cure}", path=path, line=1)


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
    text: str, named: bool, width: int, columns: dict[int, int], chain: int | None, model: FactorGraph
) -> Found | None:
    """The quick way; None where the file is not what it should be, so that the slow way finds the place."""
    body = text.partition("\n")[2] if named else text
    if not body.strip():
        return None  # numpy warns where we raise
    try:
        cells = np.loadtxt(io.StringIO(body), dtype=np.int64, delimiter=",", comments=None, quotechar='"', ndmin=2)
    except (ValueError, OverflowError):
        return None
    if cells.shape[1] != width:
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


def _by_chain(values: np.ndarray, chains: Sequence[object] | None, path: str) -> np.ndarray:
    """Rows of one label, in their order, are a chain."""
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


# --- objects with names ------------------------------------------------------------------------------------------


UNLABELLED = "x"  # an array of a posterior with this name has the model's variables in their order


def from_labels(source: Any, model: FactorGraph) -> np.ndarray | None:
    """[chains, draws, variables] (or [draws, variables]) of an object that names its variables; None where it does
    not, so that it is an array in the model's order."""
    if hasattr(source, "posterior"):  # ArviZ
        source = source.posterior
    elif hasattr(source, "groups") and hasattr(source, "to_netcdf"):
        groups: Any = source.groups() if callable(source.groups) else source.groups
        has = ", ".join(str(group).strip("/") for group in groups if group != "/") or "none"
        raise ModelError(f"samples are the group 'posterior' of an ArviZ object; its groups are {has}")
    if hasattr(source, "data_vars"):
        return _from_dataset({str(name): source[name] for name in source.data_vars}, model)
    if hasattr(source, "dims") and hasattr(source, "coords"):
        return _from_labelled_array(source, model)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return _from_table(source, model)
    if hasattr(source, "column_names") and hasattr(source, "column"):  # PyArrow
        return _from_columns(source.column_names, source.columns, model)
    if isinstance(source, Mapping):
        return _from_names({str(name): array for name, array in _aligned(source).items()}, model)
    names = getattr(getattr(source, "dtype", None), "names", None)
    return _from_names({name: source[name] for name in names}, model) if names else None


def _aligned(arrays: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Arrays with labels of their own stand in one order: chain before draw, and rows that have the same labels."""
    labels = {name: list(array.index) for name, array in arrays.items() if hasattr(array, "iloc")}  # Series
    first = next(iter(labels), None)
    for name, rows in labels.items():
        if rows != labels[first]:
            raise ModelError(f"the rows of {name!r} have other labels than those of {first!r}; put them in one order")
    return {name: _in_order(array)[0] if hasattr(array, "dims") else array for name, array in arrays.items()}


def _from_table(table: Any, model: FactorGraph) -> np.ndarray | None:
    """A DataFrame. Columns that are only numbered have no names."""
    columns, index = list(table.columns), cast("Any", getattr(table, "index", None))
    if columns == list(range(len(columns))) and not {str(column) for column in columns} & set(model.names):
        return None
    chains = index.get_level_values(CHAIN) if CHAIN in (getattr(index, "names", None) or ()) else None
    return _from_columns([str(column) for column in columns], [table[column] for column in columns], model, chains)


def _from_columns(names: Sequence[str], columns: Sequence[Any], model: FactorGraph, chains: Any = None) -> np.ndarray:
    """A column for each variable, perhaps with the number of the chain and of the draw."""
    arrays = dict(zip(names, columns, strict=True))
    chains = arrays.pop(CHAIN, chains) if CHAIN not in model.names else chains
    if "draw" not in model.names:
        arrays.pop("draw", None)  # ArviZ numbers them
    if "_weight" in arrays and "_weight" not in model.names:
        raise ModelError("these samples have weights (a column '_weight'), which are not used; draw them without")
    if len(set(names)) < len(names):
        raise ModelError(f"two columns are called {max(names, key=names.count)!r}")
    found = _from_names(arrays, model)
    return found if chains is None else _by_chain(found, np.asarray(chains).tolist(), "the samples")


def _from_labelled_array(array: Any, model: FactorGraph) -> np.ndarray | None:
    """A DataArray: the dimensions `chain` and `draw` in any place, and one whose labels name the variables."""
    values, labels = _in_order(array)
    if labels is None or _only_numbered(labels, model):
        return values
    if len(set(labels)) < len(labels):
        raise ModelError(f"two variables of the samples are called {max(labels, key=labels.count)!r}")
    return _from_names({label: values[..., k] for k, label in enumerate(labels)}, model)


def _only_numbered(labels: Sequence[str], model: FactorGraph) -> bool:
    return list(labels) == [str(k) for k in range(len(labels))] and not set(labels) & set(model.names)


def _in_order(array: Any) -> tuple[np.ndarray, list[str] | None]:
    """The axes chain, draw, variables, as far as they are there; and the labels of the last."""
    dims, values = [str(dim) for dim in getattr(array, "dims", ())], _unmasked(getattr(array, "values", array))
    if not dims or all(dim.startswith("dim_") for dim in dims):
        return values, None
    first = [dim for dim in (CHAIN, "draw") if dim in dims]
    others = [dim for dim in dims if dim not in first]
    if "draw" not in dims or len(others) > 1:
        expected = "chain, draw and one for the variables"
        raise ModelError(f"the dimensions of samples are {expected}; these are {', '.join(dims)}")
    values = np.transpose(values, [dims.index(dim) for dim in (*first, *others)])
    labels = (
        [str(label) for label in np.asarray(array.coords[others[0]]).tolist()]
        if others and others[0] in array.coords
        else None
    )
    return values, labels


def _from_dataset(arrays: dict[str, Any], model: FactorGraph) -> np.ndarray | None:
    """An array for each variable; else the one whose labels are the variables; else the only one there is, if it has
    labels or the name that unlabelled states have (`x`): another parameter may have as many columns by chance."""
    free = {model.names[i] for i in model.free}
    single = {name: _in_order(array)[0] for name, array in arrays.items() if name in model.names}
    if free <= set(single) and all(array.ndim <= 2 for array in single.values()):
        return _from_names(single, model)
    whole = {name: array for name, array in arrays.items() if np.ndim(getattr(array, "values", array)) == 3}
    labelled = [array for array in whole.values() if free <= set(_in_order(array)[1] or ())]
    if len(labelled) == 1:
        return _from_labelled_array(labelled[0], model)
    if len(arrays) == len(whole) == 1:
        ((name, array),) = whole.items()
        labels = _in_order(array)[1]
        if name == UNLABELLED or not (labels is None or _only_numbered(labels, model)):
            return _from_labelled_array(array, model)
        said = f"the posterior's {name!r} does not say which variable each of its columns is"
        raise ModelError(f"{said}; label its last dimension with their names, or call it {UNLABELLED!r}")
    missing = next((name for name in model.names if name in free and name not in single), model.names[0])
    raise ModelError(f"the posterior has no {missing!r}; it has {', '.join(list(arrays)[:5])}")


def _from_names(arrays: Mapping[str, Any], model: FactorGraph) -> np.ndarray:
    """[…, variables] from an array […] of values for each name."""
    unknown = next((name for name in arrays if name not in model.names), None)
    if unknown is not None:
        raise ModelError(f"the samples name {unknown!r}, which is no variable{suggestion(unknown, model.names)}")
    missing = [model.names[i] for i in model.free if model.names[i] not in arrays]
    if missing:
        raise ModelError(f"the samples have no variable {missing[0]!r}; they have {', '.join(list(arrays)[:5])}")
    shapes = {np.shape(array) for array in arrays.values()}
    if len(shapes) > 1:
        raise ModelError(f"the arrays of samples have different shapes: {', '.join(map(str, sorted(shapes)))}")
    shape = shapes.pop() if shapes else (1,)
    observed = {i: np.full(shape, value) for i, value in enumerate(model.evidence.tolist())}
    columns = [
        _numbers(model, i, arrays[name]) if name in arrays else observed[i] for i, name in enumerate(model.names)
    ]
    return np.stack(columns, axis=-1)


def _numbers(model: FactorGraph, variable: int, values: Any) -> np.ndarray:
    """The numbers of a variable's values, which may be given by name (see `FactorGraph.value`)."""
    array = _unmasked(values)
    seen = dict.fromkeys(array.ravel().tolist())
    try:
        numbers = {value: model.value(variable, _whole(value)) for value in seen}
    except (UnknownName, ModelError) as error:
        raise ModelError(f"in the samples: {error}") from None
    return np.array([numbers[value] for value in array.ravel().tolist()], dtype=np.int64).reshape(array.shape)


def _whole(value: Any) -> Any:
    """A whole number that another program keeps as 1.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unmasked(values: Any) -> np.ndarray:
    if np.ma.is_masked(values):
        raise ModelError("some samples are masked; every draw needs a value of every variable")
    return np.asarray(values)
