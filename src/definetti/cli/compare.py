"""`definetti compare A B`: how far two saved answers are from each other, in probability and in standard errors."""

from __future__ import annotations

from pathlib import Path

import click

from definetti import show
from definetti.cli.options import FILE, prints
from definetti.cli.output import ROWS, say, say_json


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

    comparison = compare(read_result(first), read_result(second))
    raise NotImplementedError
