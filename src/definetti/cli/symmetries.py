"""`definetti symmetries MODEL`: the group's order, its generators, the orbits of the variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from definetti import show
from definetti.cli.options import Source, prints, reads_model, symmetry
from definetti.cli.output import ROWS, say, say_json, warn

MOST_ORBITS = 10_000


@click.command("symmetries")
@reads_model
@symmetry
@prints
def command(source: Source, kind: str, generators: Path | None, time_limit: float, as_json: bool, quiet: bool) -> int:
    """Order, generators and orbits of a model's symmetries."""
    model, _ = source.read()
    group = find_symmetries(model, kind, generators, time_limit)
    orbits = sorted(group.orbits, key=lambda row: -row.size)
    if as_json:
        say_json(symmetries_json(group, orbits))
    else:
        warn(group.notices)
        say(symmetries_table(group, orbits))
    return 0


def find_symmetries(model: Any, kind: str, generators: Path | None, time_limit: float) -> Any:
    """The group that the options ask for; given generators are checked against the model."""
    if generators is not None and kind != "auto":
        raise click.UsageError(f"--generators gives the group, so --symmetries {kind} cannot apply")
    from definetti.symmetry.find import symmetries

    return symmetries(model, kind=kind, generators=generators, time_limit=time_limit)


def symmetries_json(group: Any, orbits: list[Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "order": None if group.order is None else show.digits(group.order),
        "generators": group.generator_count,
        "orbit_count": len(orbits),
        "orbits": [{"representative": row.representative, "size": int(row.size)} for row in orbits[:MOST_ORBITS]],
        "seconds": group.seconds,
        "kind": group.kind,
        "warnings": [{"kind": n.kind, "message": n.message} for n in group.notices],
    }
    return out


def symmetries_table(group: Any, orbits: list[Any]) -> str:
    facts = show.pairs(
        [
            ("kind", group.kind),
            ("order", "not known" if group.order is None else show.large(group.order)),
            ("generators", show.count(group.generator_count)),
            ("orbits", f"{show.count(len(orbits))} of {show.count(sum(row.size for row in orbits))} variables"),
            ("seconds", show.number(group.seconds, 3)),
        ]
    )
    rows = [[row.representative, show.count(row.size)] for row in orbits[:ROWS]]
    more = len(orbits) - ROWS
    rest = f"\n… and {show.count(more)} more; --json shows them" if more > 0 else ""
    return facts + "\n\n" + show.table(["orbit of", "size"], rows) + rest
