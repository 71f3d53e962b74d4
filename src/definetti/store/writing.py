"""Writes an answer to a file in the format that its suffix names: .json, .csv, .parquet, .result or .MAR.

A `.json` is the object of the command line's `--json` with every orbit; `.csv` and `.parquet` have one row per query
and one per variable (the column `kind` says which), and one per value for variables with more than two. An answer
that failed a diagnostic has a further column that says which, beside every number; where the model has names for
values, another one has these. Files appear whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from definetti import __version__, show
from definetti.errors import ModelError
from definetti.files import ANSWER_SUFFIXES, as_path, write_atomically
from definetti.model.marginals import FIELDS, Estimate, Marginals, Variables, numbers_of

COLUMNS = ("kind", "variable", "value", "probability", "mcse", "half_width", "rhat", "ess", "orbit_size", "trusted")
WARNINGS = "warnings"  # a further column where a diagnostic failed: numbers go nowhere without their warning
VALUE_NAME = "value_name"  # a further column where the model has names for values: `value` counts them from 0


def save(marginals: Marginals, path: str | Path) -> Path:
    """Write an answer in the format that the suffix names. The file appears whole or not at all.

    Parameters
    ----------
    marginals : Marginals
        The answer.
    path : path
        A .json (every orbit and query), .csv or .parquet file (every variable and query); for other programs .result
        (Alchemy: atoms with their probabilities) or .MAR (UAI: every variable of a factor graph).

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ModelError
        For another suffix, or a place that cannot be written to.

    Examples
    --------
    >>> import tempfile, definetti as dft
    >>> p = dft.exact(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(dft.save(p, f"{folder}/p.csv").read_text().splitlines()[0])
    kind,variable,value,probability,mcse,half_width,rhat,ess,orbit_size,trusted
    """
    if not isinstance(marginals, Marginals):
        raise ModelError(f"save writes an answer (write writes models), got {show.brief(marginals)}")
    path = as_path(path, "the place of an answer")
    check_suffix(path)
    if path.suffix == ".json":
        write_atomically(path, _json_text(document(marginals)))
    elif path.suffix == ".csv":
        write_csv(marginals, path)
    elif path.suffix == ".parquet":
        write_parquet(marginals, path)
    else:
        write_atomically(path, (mar_text if path.suffix in (".MAR", ".mar") else alchemy_text)(marginals))
    return path


def document(marginals: Marginals) -> dict[str, Any]:
    """The object of the JSON contract with every orbit, and under the key `page` what a page shows beside it: the
    model, its symmetry as a picture, and how the run converged."""
    from definetti.model.facts import evidence, facts, formulas
    from definetti.symmetry.picture import model_of, picture

    model = model_of(marginals.members)
    page = {
        "model": None if model is None else facts(model),
        "formulas": [] if model is None else formulas(model),
        "evidence": [] if model is None else evidence(model),
        "symmetry": picture(marginals),
        "versions": _versions(),
        "convergence": None if marginals.trace is None else marginals.trace.to_json(),
    }
    return marginals.to_json(None) | {"page": page}


def _versions() -> dict[str, str]:
    import platform

    import numpy

    return {"definetti": __version__, "python": platform.python_version(), "numpy": numpy.__version__}


def _json_text(content: dict[str, Any]) -> str:
    """Lines that can be read, but for the page's numbers: those are on one line."""
    page = content.pop("page")
    text = json.dumps(content, allow_nan=False, indent=1)
    return text[:-2] + ',\n "page": ' + json.dumps(page, allow_nan=False, separators=(",", ":")) + "\n}\n"


def check_suffix(path: str | Path) -> None:
    """Refuse before the work instead of after it."""
    path = Path(path)
    if path.suffix not in ANSWER_SUFFIXES:
        raise ModelError(f"cannot write {path.name}: the suffix must be one of {', '.join(ANSWER_SUFFIXES)}")
    if path.suffix == ".parquet":
        pyarrow_modules()


def write_csv(marginals: Marginals, path: str | Path) -> None:
    """The `COLUMNS`; empty where there is no number."""
    text, at = io.StringIO(), COLUMNS.index("trusted")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_columns(marginals))
    writer.writerows([*row[:at], str(row[at]).lower(), *row[at + 1 :]] for row in _rows(marginals))
    write_atomically(path, text.getvalue())


def write_parquet(marginals: Marginals, path: str | Path) -> None:
    """The columns of the CSV; needs pyarrow."""
    pyarrow, parquet = pyarrow_modules()
    heads = _columns(marginals)
    columns = list(zip(*_rows(marginals), strict=True)) or [()] * len(heads)
    text, numbers = pyarrow.string(), [pyarrow.float64()] * len(FIELDS)
    types = [text, text, pyarrow.int32(), *numbers, pyarrow.int64(), pyarrow.bool_(), text, text]
    arrays = [pyarrow.array(column, type=kind) for column, kind in zip(columns, types[: len(heads)], strict=True)]
    table = pyarrow.table(dict(zip(heads, arrays, strict=True)))
    sink = io.BytesIO()
    parquet.write_table(table, sink)
    write_atomically(path, sink.getvalue())


# --- formats of other programs: numbers without error bars -----------------------------------------------------------


def alchemy_text(marginals: Marginals) -> str:
    """Lines `Smokes(Anna) 0.066`: the queries if any were asked, else every atom."""
    named = marginals.queries.items() if marginals.queries else marginals.variables()
    return "".join(f"{_atom_only(name)} {_two_valued(name, answer):.10g}\n" for name, answer in named)


def _atom_only(name: str) -> str:
    if name.startswith("#") or any(character.isspace() for character in name):
        what = f"{name!r} is a {'count' if name.startswith('#') else 'formula'}"
        raise ModelError(f"Alchemy's result format has one atom in a line; {what}: write .json or .csv")
    return name


def _two_valued(name: str, answer: Estimate) -> float:
    if isinstance(answer.probability, list):
        values = len(answer.probability)
        raise ModelError(f"Alchemy's result format has true and false only; {name} has {values} values: write .MAR")
    return answer.probability


def mar_text(marginals: Marginals) -> str:
    """`MAR`, the number of variables, then each one's number of values and their probabilities, in the model's
    order."""
    if not isinstance(marginals.members, Variables):
        raise ModelError("the format MAR numbers the variables of a factor graph; write .result, .json or .csv")
    parts = [str(len(marginals.members))]
    for (_, answer), card in zip(marginals.variables(), marginals.members.cards.tolist(), strict=True):
        values = answer.array.tolist()[:card] if card > 1 else [1.0]
        parts.append(" ".join([str(card), *(f"{p:.10g}" for p in values)]))
    return "MAR\n" + " ".join(parts) + "\n"


# --- tables ----------------------------------------------------------------------------------------------------------


def table_columns(marginals: Marginals) -> dict[str, list[Any]]:
    """The columns of the CSV, each as a list: one entry per query, then one per variable (and value)."""
    heads = _columns(marginals)
    columns = zip(*_rows(marginals), strict=True)
    return {head: list(column) for head, column in zip(heads, columns, strict=True)} or {head: [] for head in heads}


def _columns(marginals: Marginals) -> tuple[str, ...]:
    doubt = () if marginals.trusted else (WARNINGS,)
    return (*COLUMNS, *doubt, *((VALUE_NAME,) if _value_names(marginals) else ()))


def _value_names(marginals: Marginals) -> dict[str, tuple[str, ...]]:
    """The names of a variable's values, for those that have any."""
    model = getattr(marginals.members, "model", None)
    if getattr(model, "kind", None) != "graph":
        return {}
    return {model.names[i]: names for i, names in model.value_names.items()}  # type: ignore[union-attr]


def _rows(marginals: Marginals) -> Iterator[tuple[Any, ...]]:
    """Queries first, as the terminal shows them. The probability of a variable with two values is that of value 1."""
    kinds = " ".join(sorted({notice.kind for notice in marginals.notices if notice.fails}))
    doubt, named = (False, kinds) if kinds else (True,), _value_names(marginals)
    asked = (("query", text, estimate) for text, estimate in marginals.queries.items())
    every = (("variable", name, estimate) for name, estimate in marginals.variables())
    for kind, name, estimate in chain(asked, every):
        numbers, names = numbers_of(estimate).values(), named.get(name)
        values = range(len(estimate.probability)) if isinstance(estimate.probability, list) else (None,)
        for value in values:
            called = () if not named else ("" if names is None else names[1 if value is None else value],)
            here = (number if value is None else _at(number, value) for number in numbers)
            yield kind, name, value, *here, estimate.orbit_size, *doubt, *called


def _at(value: Any, place: int) -> Any:
    return value[place] if isinstance(value, list) else value


def pyarrow_modules() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ModelError("Parquet files need pyarrow: install definetti[parquet], or use .csv") from None
    return pyarrow, pyarrow.parquet


# --- reading -------------------------------------------------------------------------------------------------
