"""`definetti experiment NAME`: the paper's figures, measured, drawn and judged."""

from __future__ import annotations

from pathlib import Path

import click

from definetti.cli.options import Word
from definetti.cli.output import say
from definetti.experiments.run import FIGURES, run_figures


@click.command("experiment")
@click.argument("name", type=Word(("all", *FIGURES)), metavar="NAME")
@click.option(
    "-o", "out", type=click.Path(file_okay=False, path_type=Path), required=True, metavar="OUT",
    help="The folder for data, pictures, index.html, README.md and verdicts.json.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer and shorter runs: everything in under five minutes on two cores.")
def command(name: str, out: Path, quick: bool) -> int:
    """Reruns the figures of the paper behind this program: data, pictures, and verdicts computed from the data.

    NAME is a figure, such as fig2b, or all of them. A figure that OUT holds already is kept if it was
    made with the same parameters, so that a run that was interrupted goes on where it stopped.

    Exit code 1: a claim was not borne out.
    """

    def report(line: str) -> None:
        click.echo(line, err=True)

    verdicts = run_figures(FIGURES if name == "all" else [name], out, quick, report)
    shown = [v for v in verdicts if name in ("all", v.figure)]
    for verdict in shown:
        mark = "held    " if verdict.held else "NOT HELD"
        say(f"{mark}  {verdict.figure:6} {verdict.measured}   [{verdict.expected}]")
    held = sum(v.held for v in shown)
    say(f"{held} of {len(shown)} verdicts held; {out / 'index.html'}")
    return 0 if held == len(shown) else 1
