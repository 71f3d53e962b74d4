"""`definetti report RUN… -o page.html`: one page about a saved answer, complete in itself."""

from __future__ import annotations

from pathlib import Path

import click

from definetti import show
from definetti.cli.options import FILE, destination, quiet
from definetti.cli.output import say


@click.command("report")
@click.argument("runs", metavar="RUN...", type=FILE, nargs=-1, required=True)
@click.option("--exact", "truth", type=FILE, metavar="TRUTH", help="The exact answer, or another one to compare with.")
@click.option(
    "-o", "output", type=FILE, callback=destination((".html",), "report"), help="The page.  [default: RUN.html, here]"
)
@quiet
def command(runs: tuple[Path, ...], truth: Path | None, output: Path | None, quiet: bool) -> int:
    """One HTML page about a saved answer: verdict, marginals, symmetry, convergence.

    RUN is a file that -o wrote: .json has everything, .csv and .parquet have the numbers alone. Further RUNs are
    compared with the first. The page works from a file, without a network.

    \b
    Examples:
      definetti marginals examples/grid.uai --seed 7 -o run.json
      definetti exact examples/grid.uai -o truth.json
      definetti report run.json --exact truth.json -o page.html
    """
    from definetti.pages.report import report

    output = output or Path(runs[0].stem + ".html")
    report(runs[0], output, exact=truth, others=runs[1:])
    if not quiet:
        say(f"{output}, {show.size(output.stat().st_size)}")
    return 0
