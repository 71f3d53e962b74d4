"""Figures that take longer than a build: kept in docs/measured by `benchmarks/run.py --record`, shown from there.

A line `%% generate measured FILE` becomes a table of all rows of docs/measured/FILE.json, `%% generate measured FILE
PART` of one part, with the command, the date and the machine below; `%% generate peers …` the tables of the peers. In a
sentence, `` {measured}`FILE :: ROW` `` is the value of a row with its unit, `` {measured}`FILE :: ROW :: FIELD` ``
another field of it, and a format may follow: `` {measured}`FILE :: ROW :: value .1f` `` (no unit then).
`` {constant}`constraints/sat.MOST_CONFLICTS` `` is a constant of the sources.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))  # last: it has a run.py, too

from recorded import FOLDER, Part, read, said  # noqa: E402 # pyright: ignore[reportMissingImports]

INLINE = re.compile(r"(?<!` )\{measured\}`([^`]+)`")  # a second backtick before it quotes it
CONSTANT = re.compile(r"(?<!` )\{constant\}`([\w/]+)\.(\w+)`")
USED = re.compile(r"^%% generate (?:measured )?(\w+)|\{measured\}`(\w+) ::", re.MULTILINE)


def measured(words: str) -> str:
    """Parts of the same shape as one table, with where they come from below; `+ total` adds a row of sums."""
    name, *wanted = words.replace("+ total", "").split(maxsplit=1)
    parts = [part for key, part in read(name).items() if not wanted or key == wanted[0].strip()]
    shapes: dict[tuple[str, ...], list[Part]] = {}
    for part in parts:
        shapes.setdefault(tuple(key for key in part["rows"][0] if key != "more"), []).append(part)
    return "\n\n".join(
        f"{table([row for part in some for row in part['rows']], '+ total' in words)}\n\nMeasured by "
        + " Also ".join(dict.fromkeys(said(part) for part in some))
        for some in shapes.values()
    )


def table(rows: list[dict[str, Any]], total: bool = False) -> str:
    """Rows of a benchmark (`measuring.Row`), or any records with the same fields."""
    if {"name", "value", "unit"} <= set(rows[0]):
        heads = ["figure", "value", "remarks"] if any(row.get("note") for row in rows) else ["figure", "value"]
        cells = [[row["name"], quantity(row["value"], row["unit"]), row.get("note", "")][: len(heads)] for row in rows]
    else:
        heads, cells = list(rows[0]), [[number(row.get(key)) for key in rows[0]] for row in rows]
    if total:
        sums = [sum(row[key] for row in rows) if isinstance(rows[0][key], int) else "" for key in rows[0]]
        cells.append([f"**{number(each)}**" if each != "" else "" for each in sums])
        cells[-1][0] = "**all**"
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *map(_escaped, cells)])


def inline(words: str) -> str:
    """One number of a file."""
    name, key, *rest = (word.strip() for word in words.split("::"))
    rows = [row for part in read(name).values() for row in part["rows"] if key in row.values()]
    found = [{**row, **(row.get("more") or {})} for row in rows]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows of docs/measured/{name}.json are called {key!r}")
    field, _, form = (rest or ["value"])[0].partition(" ")
    if field not in found[0]:
        raise ValueError(f"{key!r} in docs/measured/{name}.json has no {field!r}: {', '.join(found[0])}")
    value = found[0][field]
    if form:
        return format(value, form)
    return quantity(value, found[0].get("unit") or "") if field == "value" else number(value)


def quantity(value: Any, unit: str) -> str:
    return f"{number(value)} {unit}".strip()


def number(value: Any) -> str:
    """Three significant digits; text as it is."""
    if value is None or value == "":
        return "–"
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def peers(what: str) -> str:
    """The tables beside the peers: `short`, `sections`, or the list of `versions`."""
    from peers import table  # pyright: ignore[reportMissingImports]

    return getattr(table, what)(read("peers"))


def constant(module: str, name: str) -> str:
    """The value of a constant in src/definetti: powers of two as such."""
    text = (ROOT / "src" / "definetti" / f"{module}.py").read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            if isinstance(node.value, ast.BinOp):
                base, power = ast.unparse(node.value.left), ast.unparse(node.value.right)
                if (base, type(node.value.op)) in (("1", ast.LShift), ("2", ast.Pow)):
                    return f"{2 ** int(power):,}" if int(power) <= 16 else f"2^{power}"
            return f"{ast.literal_eval(node.value):,}"
    raise ValueError(f"{module}.py has no constant {name}")


def replaced(text: str) -> str:
    """The inline numbers of a page."""
    text = INLINE.sub(lambda found: inline(found.group(1)), text)
    return CONSTANT.sub(lambda found: constant(found.group(1), found.group(2)), text)


def files_of(text: str) -> list[Path]:
    """The files of docs/measured that a page shows figures of."""
    names = {name for pair in USED.findall(text) for name in pair if name}
    return sorted(FOLDER / f"{name}.json" for name in names if (FOLDER / f"{name}.json").exists())


def _escaped(cells: list[str]) -> list[str]:
    return [cell.replace("|", r"\|").replace("<", r"\<") for cell in cells]


GENERATORS: Mapping[str, Any] = {"measured": measured, "peers": peers}
