"""`definetti compare RUN REFERENCE`: how far two saved answers are apart, in probability and in standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from definetti import show
from definetti.cli.options import FILE, prints
from definetti.cli.output import say, say_json

FURTHEST = 5  # rows of the table in a terminal


@click.command("compare")
@click.argument("first", metavar="RUN", type=FILE)
@click.argument("second", metavar="REFERENCE", type=FILE)
@prints
def command(first: Path, second: Path, as_json: bool, quiet: bool) -> int:
    """Differences and z-scores between two saved answers.

    RUN and REFERENCE are files that -o wrote.
    """
    from definetti.model.compare import compare
    from definetti.store import read_result

    facts = compare(read_result(first), read_result(second)).to_json()
    if as_json:
        say_json({"run": str(first), "reference": str(second), **facts})
    else:
        say(comparison_table(facts))
    return 0


def comparison_table(facts: Mapping[str, Any]) -> str:
    """The figures of the whole, then the rows that are furthest apart."""
    whole = [(key.replace("_", " "), _text(value)) for key, value in facts.items() if not isinstance(value, list)]
    rows = sorted(facts.get("rows") or [], key=_distance, reverse=True)
    if not rows:
        return show.pairs(whole)
    cells = [[_text(value) for value in row.values()] for row in rows[:FURTHEST]]
    more = len(rows) - FURTHEST
    rest = f"\n… and {show.count(more)} more; --json shows them" if more > 0 else ""
    return show.pairs(whole) + "\n\n" + show.table([key.replace("_", " ") for key in rows[0]], cells) + rest


def _distance(row: Mapping[str, Any]) -> float:
    """|z|, the largest where a variable has several values."""
    values = row.get("z")
    return max((abs(z) for z in (values if isinstance(values, list) else [values]) if z is not None), default=0.0)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return show.count(value) if isinstance(value, int) else show.number(value)
