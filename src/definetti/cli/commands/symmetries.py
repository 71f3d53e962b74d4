"""`definetti symmetries MODEL`: the group's order, its generators, the orbits of the variables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from definetti import show
from definetti.cli.options import Source, prints, reads_model, symmetry
from definetti.cli.output import ROWS, say, say_json, warn

if TYPE_CHECKING:
    from definetti.symmetry.state_count import StateCount

MOST_ORBITS = 10_000


@click.command("symmetries")
@reads_model
@symmetry
@click.option("--states", is_flag=True, help="Count the orbits of assignments too, beside the assignments.")
@prints
def command(
    source: Source, kind: str, generators: Path | None, time_limit: float, states: bool, as_json: bool, quiet: bool
) -> int:
    """Order, generators and orbits of a model's symmetries.

    \b
    Examples:
      definetti symmetries examples/grid.uai
      definetti symmetries examples/smokers-transitive.mln --domain person=1000
    """
    model, _ = source.read()
    group = find_symmetries(model, kind, generators, time_limit)
    orbits = sorted(group.orbits, key=lambda row: -row.size)
    count = group.count_states() if states else None
    if as_json:
        say_json(symmetries_json(group, orbits) | ({} if count is None else {"assignments": states_json(count)}))
    else:
        warn(group.notices)
        say(symmetries_table(group, orbits, count))
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


def states_json(count: StateCount) -> dict[str, Any]:
    """Numbers of any size are decimal strings."""
    return {
        "states": show.digits(count.states),
        "orbits": None if count.orbits is None else show.digits(count.orbits),
        "log10_orbits": count.log10_orbits,
        "relative_error": count.relative_error,
        "method": count.method,
    }


def states_rows(count: StateCount) -> list[tuple[str, str]]:
    how = {"classes": "class counts", "burnside": "Burnside's lemma", "monte-carlo": "random elements"}
    return [
        ("assignments", show.large(count.states)),
        ("their orbits", f"{count.text} ({how.get(count.method, 'exact')})"),
    ]


def symmetries_table(group: Any, orbits: list[Any], count: StateCount | None) -> str:
    facts = show.pairs(
        [
            ("kind", group.kind),
            ("order", "not known" if group.order is None else show.large(group.order)),
            ("generators", show.count(group.generator_count)),
            ("orbits", f"{show.count(len(orbits))} of {show.count(sum(row.size for row in orbits))} variables"),
            *([] if count is None else states_rows(count)),
            ("seconds", show.number(group.seconds, 3)),
        ]
    )
    rows = [[row.representative, show.count(row.size)] for row in orbits[:ROWS]]
    more = len(orbits) - ROWS
    rest = f"\n… and {show.count(more)} more; --json shows them" if more > 0 else ""
    return facts + "\n\n" + show.table(["orbit of", "size"], rows) + rest
