"""Answers read back: our own files, and the tables and .MAR files of other programs."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from definetti.errors import FAILURES, DefinettiError, ModelError, Notice, ParseError
from definetti.files import as_path, read_text
from definetti.model.marginals import FIELDS, Count, Estimate, Saved, fields
from definetti.store.writing import COLUMNS, VALUE_NAME, WARNINGS, pyarrow_modules


def load(path: str | Path) -> Saved:
    """An answer from a file that `save` wrote, a UAI .MAR file, or an Alchemy result file.

    A .json gives its queries, and each orbit under the name of its representative; so does the .dft file of a run,
    finished or not. Files of other programs carry no error bars: their mcse is None.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Saved
        A mapping from names to estimates, with the diagnostics that failed.

    Raises
    ------
    ParseError
        For a file that is none of these, with its place.

    Examples
    --------
    >>> import tempfile, definetti as dft
    >>> p = dft.exact(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     p.compare(dft.load(dft.save(p, f"{folder}/p.json"))).agrees
    True
    """
    path = as_path(path, "an answer")
    if path.suffix in (".json", ".dft"):
        return saved_answers(load_document(path))
    if path.suffix == ".parquet":
        return _from_parquet(path)
    text = read_text(path)
    if path.suffix == ".csv":
        found = _from_csv(text, path)
    else:
        first = text.split(maxsplit=1)[:1]
        if first in (["MARKOV"], ["BAYES"]) or path.suffix in (".mln", ".fg"):
            raise ParseError("this is a model; an answer is what marginals and exact save", path=path)
        read = _from_mar if first == ["MAR"] else _from_alchemy
        found = Saved(read(text, path))
    if not found:
        raise ParseError("no results in this file", path=path)
    return found


def load_document(path: str | Path) -> dict[str, Any]:
    """The object of the JSON contract from any file that `load` reads, with what pages need under the key `page` where
    the file has it. Every command that takes a RUN reads it here."""
    path = Path(path)
    if path.suffix == ".dft":
        from definetti.inference.saving.resume import so_far

        content = so_far(path)
    elif path.suffix != ".json":
        return _as_document(load(path), path)
    else:
        content = _parsed(read_text(path), path)
    try:
        if not saved_answers(content):
            raise ParseError("no results in this file", path=path)
        counts = {"orbit_count": len(content["orbits"]), "run": {}, "warnings": []}
        return counts | content
    except KeyError as error:
        what = f"{error} is missing among its queries and orbits"
        raise ParseError(f"not a result written by definetti: {what}", path=path) from None
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise ParseError("not a result written by definetti: expected its keys queries and orbits", path=path) from None


def _as_document(found: Saved, path: Path) -> dict[str, Any]:
    """A table of variables as a document: each of them is a row. Counts can only have been asked for."""
    counts = {name: one for name, one in found.items() if isinstance(one, Count)}
    rows = [{"representative": name, "size": 1} | fields(one) for name, one in found.items() if name not in counts]
    return {
        "queries": {name: fields(one) | {"orbit_size": one.orbit_size} for name, one in counts.items()},
        "orbits": rows,
        "orbit_count": len(rows),
        "trusted": not any(notice.fails for notice in found.notices),
        "run": {"model": path.name},
        "warnings": [{"kind": notice.kind, "message": notice.message} for notice in found.notices],
    }


def _parsed(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.splitlines()
        source = lines[error.lineno - 1] if error.lineno <= len(lines) else None
        raise ParseError(error.msg, path=path, line=error.lineno, column=error.colno, source=source) from None
    except RecursionError:
        raise ParseError("nested too deeply", path=path) from None
    except ValueError:  # Python's limit
        raise ParseError("a number has thousands of digits", path=path) from None


def saved_answers(content: Mapping[str, Any]) -> Saved:
    """The answers of a document, by name."""
    orbits = {row["representative"]: _estimate(row, row["size"]) for row in content["orbits"]}
    asked = {name: _answer(row, row["orbit_size"]) for name, row in content["queries"].items()}
    notices = tuple(Notice(str(row["kind"]), str(row["message"])) for row in content.get("warnings") or ())
    return Saved(orbits | asked, _covered(orbits, asked), notices)


def _covered(orbits: Mapping[str, Estimate], asked: Mapping[str, Estimate]) -> dict[str, int]:
    """Variables that the name of an orbit stands for: its size, without those that were also asked for by name."""
    by_name = Counter(repr(estimate) for name, estimate in asked.items() if name not in orbits)
    return {name: max(1, row.orbit_size - by_name[repr(row)]) for name, row in orbits.items()}


def _answer(row: Mapping[str, Any], size: Any) -> Estimate:
    """A query's answer: a count, a probability, or one that is not known (of a condition that was never met)."""
    if "mean" not in row:
        return Estimate(math.nan, None, orbit_size=int(size)) if row["probability"] is None else _estimate(row, size)
    mean, std, mcse, half, rhat, ess = (_checked(row[key]) for key in ("mean", "std", *FIELDS[1:]))
    if mean is None or isinstance(mean, list):
        raise ValueError
    rows = tuple(dict(one) for one in row["distribution"])
    return Count(mean, mcse, rhat, ess, int(size), half_width=half, std=std, distribution=rows)


def _estimate(row: Mapping[str, Any], size: Any) -> Estimate:
    probability, *rest = (_checked(row[field]) for field in FIELDS)
    values = probability if isinstance(probability, list) else [probability]
    if not all(p is not None and 0 <= p <= 1 for p in values):
        raise ValueError
    return _made(probability, *rest, size=size)


def _made(probability: Any, mcse: Any, half_width: Any, rhat: Any, ess: Any, size: Any) -> Estimate:
    """Half-widths equal to the errors are those of an answer without error, or without error bars."""
    width = None if half_width == mcse else half_width
    return Estimate(probability, mcse, rhat, ess, orbit_size=int(size), half_width=width)


def _checked(value: Any) -> Any:
    if isinstance(value, list):
        return [_checked(v) for v in value]
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError
    return float(value)


def _from_csv(text: str, path: Path) -> Saved:
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        head = next(reader, [])
        more = head[len(COLUMNS) :]
        if tuple(head[: len(COLUMNS)]) != COLUMNS or more not in ([], [WARNINGS], [VALUE_NAME], [WARNINGS, VALUE_NAME]):
            raise ParseError(f"expected the columns {','.join(COLUMNS)}", path=path, line=1)
        rows, doubts, last = [], set(), COLUMNS.index("trusted")
        for row in reader:
            if len(row) != len(head):
                message = f"expected {len(head)} fields, found {len(row)}"
                raise ParseError(message, path=path, line=reader.line_num)
            doubts.update(row[len(COLUMNS) : len(COLUMNS) + (WARNINGS in more)])
            try:
                value, *numbers = (None if field == "" else _checked(float(field)) for field in row[2:last])
                most = math.inf if row[0] == "query" and row[1].startswith("#") else 1.0  # a count has a mean
                if numbers[0] is None or not 0 <= numbers[0] <= most or numbers[-1] is None:
                    raise ValueError
                rows.append((row[0], row[1], value, *numbers))
            except ValueError:
                message = "expected numbers, with a probability between 0 and 1"
                raise ParseError(message, path=path, line=reader.line_num, column=1, source=",".join(row)) from None
    except csv.Error as error:
        raise ParseError(str(error), path=path, line=reader.line_num) from None
    return Saved(_from_rows(rows), notices=_said(doubts))


def _said(doubts: Iterable[str]) -> tuple[Notice, ...]:
    """The warnings of a table, which has their kinds alone."""
    kinds = sorted({kind for doubt in doubts for kind in doubt.split()} & FAILURES)
    return tuple(Notice(kind, "its numbers were saved with this warning") for kind in kinds)


def _from_parquet(path: Path) -> Saved:
    _, parquet = pyarrow_modules()
    try:
        doubtful = WARNINGS in parquet.read_schema(path).names
        table = parquet.read_table(path, columns=[*COLUMNS, *[WARNINGS] * doubtful]).to_pydict()
    except DefinettiError:
        raise
    except Exception as error:  # pyarrow has errors of its own kinds
        raise ModelError(f"cannot read {path}: {error}") from None
    rows = zip(*(table[column] for column in COLUMNS[:-1]), strict=True)
    return Saved(_from_rows(rows), notices=_said(str(doubt) for doubt in table.get(WARNINGS, ())))


def _from_rows(rows: Iterable[tuple[Any, ...]]) -> dict[str, Estimate]:
    """Rows with a value belong together, one list per variable. A query that is a variable has its answer."""
    found: dict[str, Estimate] = {}
    several: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for kind, name, value, *numbers, size in rows:
        if value is None and kind == "query" and name.startswith("#"):
            mean, mcse, half, rhat, ess = numbers
            found[name] = Count(mean, mcse, rhat, ess, int(size), half_width=half)
        elif value is None:
            found[name] = _made(*numbers, size=size)
        else:
            several.setdefault((kind, name), []).append((value, *numbers, size))
            found.setdefault(name, Estimate(0.0))  # keeps the place
    for (_, name), parts in several.items():
        values, *lists, sizes = (list(column) for column in zip(*sorted(parts, key=lambda part: part[0]), strict=True))
        if values != list(range(len(values))):
            raise ModelError(f"{name} needs one row for each of its values 0, 1, …; found {values}")
        found[name] = _made(*lists, size=sizes[0])
    return found


def _from_alchemy(text: str, path: Path) -> dict[str, Estimate]:
    """Lines `Smokes(Anna) 0.066`."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        *front, last = line.rsplit(maxsplit=1)
        name = "".join("".join(front).split())
        try:
            probability = float(last)
        except ValueError:
            probability = math.nan
        if not name or not 0 <= probability <= 1:
            column = len(line.rstrip()) - len(last) + 1
            message = "expected a ground atom and a probability, as in Smokes(Anna) 0.066"
            raise ParseError(message, path=path, line=number, column=column, source=line)
        found[name] = Estimate(probability, None)
    return found


def _from_mar(text: str, path: Path) -> dict[str, Estimate]:
    """`MAR`, possibly the number of evidence sets (1), the number of variables, then each one's number of values and
    their probabilities."""
    words = text.split()[1:]
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise ParseError(f"expected numbers after MAR: {error}", path=path) from None
    for start in (0, 1):
        marginals = _mar_blocks(numbers[start:])
        if marginals is not None:
            return {f"X{i}": Estimate(m[1] if len(m) == 2 else m, None) for i, m in enumerate(marginals)}
    raise ParseError("the numbers after MAR are not the marginals of as many variables as it says", path=path)


def _mar_blocks(numbers: list[float]) -> list[list[float]] | None:
    if not numbers or not numbers[0].is_integer():
        return None
    place, out = 1, []
    while place < len(numbers):
        card = numbers[place]
        block = numbers[place + 1 : place + 1 + int(card)] if card.is_integer() and card >= 1 else []
        if not block or len(block) != card or not all(0 <= p <= 1 for p in block) or abs(sum(block) - 1) > 1e-3:
            return None
        out.append(block)
        place += 1 + len(block)
    return out if len(out) == numbers[0] else None
