"""`definetti compare RUN REFERENCE`: how far two saved answers are apart, in probability and in standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from definetti import show
from definetti.cli.options import FILE, prints
from definetti.cli.output import say, say_json, warn

if TYPE_CHECKING:
    from definetti.model.compare import Comparison

FURTHEST = 5  # rows of the table in a terminal


@click.command("compare")
@click.argument("first", metavar="RUN", type=FILE)
@click.argument("second", metavar="REFERENCE", type=FILE)
@prints
def command(first: Path, second: Path, as_json: bool, quiet: bool) -> int:
    """Differences and z-scores between two saved answers.

    RUN and REFERENCE are files that -o wrote, or result files of Alchemy or in the UAI's MAR format. Exit code 1 if
    they disagree beyond their error bars, or if one of them carries a warning that it is not to be trusted.

    \b
    Examples:
      definetti compare run.json truth.json
    """
    from definetti.model.compare import compare
    from definetti.store.loading import load

    one, two = load(first), load(second)
    comparison = compare(one, two)
    alone = {"run": [name for name in one if name not in two], "reference": [name for name in two if name not in one]}
    if as_json:
        counts = {f"only_{which}": len(names) for which, names in alone.items()}
        say_json({"run": str(first), "reference": str(second), **comparison.to_json(), **counts})
    else:
        warn(comparison.notices)
        by_orbit = not {".json", ".dft"}.isdisjoint((first.suffix, second.suffix))
        say(comparison_table(comparison, left_out(alone, by_orbit)))
    judged = comparison.strongest is not None
    return 1 if comparison.notices or (judged and not comparison.agrees) else 0


def left_out(alone: Mapping[str, list[str]], by_orbit: bool) -> str:
    """Names that one file has alone, and why that may be."""
    parts = [
        f"{show.count(len(names))} of the {which} alone, {names[0]} among them"
        for which, names in alone.items()
        if names
    ]
    cure = " (a .json has one row per orbit; -o FILE.csv has every variable)" if by_orbit else ""
    return "; ".join(parts) + cure if parts else ""


def comparison_table(comparison: Comparison, not_compared: str = "") -> str:
    """The figures of the whole, then the rows that are furthest apart."""
    largest = comparison.largest
    whole = [
        ("compared", show.count(len(comparison.names))),
        *([("not compared", not_compared)] if not_compared else []),
        ("KL(run‖reference)", show.number(comparison.kl_ab)),
        ("KL(reference‖run)", show.number(comparison.kl_ba)),
        ("mse", show.number(comparison.mse)),
        ("largest difference", f"{show.number(abs(largest.difference))} at {largest.name}"),
        ("verdict", comparison.verdict),
    ]
    rows = [
        [
            row.name,
            show.count(row.variables),
            show.number(row.a),
            show.number(row.b),
            show.number(row.difference),
            show.number(row.z),
        ]
        for row in comparison.worst[:FURTHEST]
    ]
    more = len(comparison.rows) - len(rows)
    rest = f"\n… and {show.count(more)} more rows, closer than these" if more > 0 else ""
    return (
        show.pairs(whole)
        + "\n\n"
        + show.table(["name", "variables", "run", "reference", "difference", "z"], rows)
        + rest
    )
