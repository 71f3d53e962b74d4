"""`definetti exact MODEL`: the same answer without sampling, where the model is small enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from definetti import show
from definetti.cli.options import Source, answers, max_memory, prints, reads_model
from definetti.cli.output import answer, complete

METHODS = ("auto", "lifted", "eliminate", "enumerate", "orbits")

if TYPE_CHECKING:
    from definetti.model.marginals import Marginals


@click.command("exact")
@reads_model
@answers
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="auto",
    show_default=True,
    help="auto: the cheapest that fits; lifted: counting over classes of constants (Markov logic); eliminate: variable "
    "elimination; enumerate: every state; orbits: one state of each orbit.",
)
@max_memory
@prints
def command(
    source: Source,
    world: str,
    queries: tuple[str, ...],
    formulas: bool,
    output: Path | None,
    method: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Exact marginals and log Z of a small model.

    A model that needs more memory than is available is refused before it is taken.

    \b
    Examples:
      definetti exact examples/grid.uai --query "X0=1 ^ X1=1" -o truth.json
      definetti exact examples/smokers.mln --domain person=1000
    """
    model, read_seconds = source.read()
    from definetti.solvers.exact import exact

    found = exact(model, queries, method=method, world=world, formulas=formulas)
    result = complete(found, source.path, model, read_seconds)
    return answer(result, as_json=as_json, output=output, footer=footer)


def footer(result: Marginals) -> str:
    log_z = "–" if result.log_z is None else f"{result.log_z:.10g}"
    return f"exact by {result.method}, log Z = {log_z}, {show.count(len(result.members))} variables"
