"""`definetti quotient MODEL`: a sampler as a Markov chain on listed states, and its quotient by the symmetries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from definetti import show
from definetti.cli.options import Positive, SamplerName, Source, Word, destination, prints, reads_model, symmetry
from definetti.cli.output import ROWS, say, say_json, warn
from definetti.samplers.gibbs import SCANS

if TYPE_CHECKING:
    from definetti.lumping.quotient import QuotientChain

FIGURES = (".svg", ".png", ".html", ".json")


@click.command("quotient")
@reads_model
@click.option("--query", "queries", multiple=True, metavar="Q", help="A variable, an atom, or X1=0 ^ X7=2.")
@click.option("--epsilon", type=Positive(), default=0.01, show_default=True, help="Distance of the mixing times.")
@click.option(
    "--sampler",
    type=SamplerName(),
    default="gibbs",
    show_default=True,
    help="gibbs, blocks or swendsen-wang; the branches of others cannot be listed.",
)
@click.option(
    "--scan",
    type=Word(SCANS),
    default="random",
    show_default=True,
    help="random: a step is one update; symmetric, fixed: a sweep.",
)
@click.option(
    "--draws", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N",
    help="Mean squared errors are those of N draws.",
)  # fmt: skip
@click.option(
    "-o", "output", type=click.Path(path_type=Path), callback=destination(FIGURES, "report", "altair", "vl_convert"),
    help="Also draw the chains, .svg, .png or .html; or write .json.",
)  # fmt: skip
@symmetry
@prints
def command(
    source: Source,
    queries: tuple[str, ...],
    output: Path | None,
    kind: str,
    generators: Path | None,
    time_limit: float,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> int:
    """The exact transition matrix of a small model, its quotient by symmetry, gaps and mixing times.

    Here --symmetries auto means permutations of constants (Markov logic) or of literals (factor graphs); renaming adds
    the free permutations of pendant and isolated atoms.
    """
    model, _ = source.read()
    if not settings["epsilon"] < 1:
        raise click.BadParameter("it is a distance between 0 and 1", param_hint="--epsilon")
    from definetti.cli.commands.symmetries import find_symmetries
    from definetti.lumping.quotient import quotient

    group = kind if generators is None else find_symmetries(model, kind, generators, time_limit)
    found = quotient(model, queries, symmetries=group, time_limit=time_limit, **settings)
    try:
        if as_json:
            say_json(found.to_json())
        else:
            warn(found.notices)
            say(quotient_table(found))
    finally:
        if output is not None:
            write(found, output)
    return 1 if any(notice.kind == "divided" for notice in found.notices) else 0


def write(found: QuotientChain, output: Path) -> None:
    if output.suffix == ".json":
        import json

        from definetti.files import write_atomically

        write_atomically(output, json.dumps(found.to_json(), allow_nan=False))
        return
    from definetti.pages.quotient_figure import quotient_figure
    from definetti.pages.style import save_chart

    save_chart(quotient_figure(found), output)


def quotient_table(found: QuotientChain) -> str:
    unit = f"{found.transitions.step}s"
    facts = show.pairs(
        [
            ("chain", f"{found.sampler.name}, {found.sampler.scan} scan; a step is one {found.transitions.step}"),
            ("states", show.count(found.states)),
            ("orbits", f"{show.count(found.orbits)} under {found.source.group.kind} symmetries"),
            ("lumpable", f"{'yes' if found.lumpable else 'NO'}, largest violation {found.lumpability.ordinary:.2g}"),
            ("reversible", f"{yes(found.reversible)}, quotient {yes(found.quotient.reversible)}"),
            ("spectral gap", f"{found.gap:.6g}, quotient {found.quotient_gap:.6g}"),
            (f"τ({found.epsilon:g})", f"{mixing(found.tau, found.tau_bounds)} {unit}"),
            (f"τ′({found.epsilon:g})", f"{mixing(found.quotient_tau, found.quotient_tau_bounds)} {unit}, quotient"),
        ]
    )
    if not found.queries:
        return facts
    rows = [
        [text, f"{e.probability:.6f}", *ratio(e.variance), *ratio(e.chain_variance), *ratio(e.worst_mse)[:2]]
        for text, e in list(found.queries.items())[:ROWS]
    ]
    heads = ["query", "probability", "draw: standard", "orbit", "ratio", "chain: standard", "orbit", "ratio",
             "MSE: standard", "orbit"]  # fmt: skip
    note = (
        f"variance of one independent draw and per {found.transitions.step} of the chain; mean squared error of "
        f"{show.count(found.draws)} draws after {found.burn_in} {unit} from the worst start"
    )
    return f"{facts}\n\n{show.table(heads, rows)}\n{note}"


def yes(fact: bool) -> str:
    return "yes" if fact else "no"


def mixing(tau: int | None, bounds: tuple[float, float] | None) -> str:
    if tau is not None:
        return show.count(tau)
    return "not known" if bounds is None else f"between {show.count(bounds[0])} and {show.count(bounds[1])}"


def ratio(pair: tuple[float, float] | None) -> list[str]:
    if pair is None:
        return ["–", "–", "–"]
    return [show.number(pair[0], 3), show.number(pair[1], 3), show.number(pair[0] / pair[1], 3) if pair[1] else "–"]
