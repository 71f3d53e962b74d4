"""`definetti sample MODEL -o draws.npz`: the states themselves, written while the chains run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from definetti import show
from definetti.cli.options import SamplerName, Source, Word, destination, max_memory, prints, reads_model, symmetry
from definetti.cli.output import say, say_json
from definetti.samplers import registry
from definetti.samplers.gibbs import SCANS

COUNT = click.IntRange(min=1)
SUFFIXES = (".npz", ".csv", ".parquet")


@click.command("sample")
@reads_model
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    callback=destination(SUFFIXES, "parquet", "pyarrow"),
    help="Where to: .npz (eight values in a byte), .csv or .parquet.",
)
@click.option("--sampler", type=SamplerName(), default="auto", show_default=True, help=registry.help_text())
@click.option("--scan", type=Word(SCANS), default="symmetric", show_default=True, help="The order of a sweep.")
@click.option("--chains", type=COUNT, metavar="N", help="Chains.  [default: 64 on factor graphs, 8 on Markov logic]")
@click.option("--draws", type=COUNT, default=1000, show_default=True, metavar="N", help="Draws of each chain.")
@click.option("--every", type=COUNT, default=1, show_default=True, metavar="K", help="Sweeps between two draws.")
@click.option("--burn-in", type=click.IntRange(min=0), metavar="N", help="Sweeps dropped.  [default: detected]")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Same seed, same draws.  [default: fresh]")
@click.option("--workers", type=COUNT, metavar="N", help="Threads.  [default: all cores]")
@symmetry
@max_memory
@prints
def command(
    source: Source,
    output: Path | None,
    kind: str,
    generators: Path | None,
    time_limit: float,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> int:
    """States of all chains after every K sweeps, written while the chains run.

    `definetti marginals MODEL --samples draws.npz` averages the draws over orbits.
    """
    model, _ = source.read()
    if output is None:
        raise click.UsageError(f"-o says where the draws go: a file ending in one of {', '.join(SUFFIXES)}")
    from definetti.cli.commands.marginals import chosen_symmetries
    from definetti.inference.draws.sample import sample

    group = chosen_symmetries(model, kind, generators, time_limit)
    draws = sample(model, symmetries=group, time_limit=time_limit, **settings)
    began = time.perf_counter()
    draws.save(output)
    seconds = time.perf_counter() - began
    values = draws.chains * draws.draws * draws.variables
    if as_json:
        facts = {"chains": draws.chains, "draws": draws.draws, "every": draws.every, "variables": draws.variables}
        how = {"sampler": draws.sampler, "scan": draws.scan, "seed": draws.seed}
        say_json({"file": str(output), **facts, **how, "values": values, "seconds": seconds})
    else:
        rate = show.number(values / seconds / 1e6, 3)
        what = f"{show.count(draws.chains)} chains × {show.count(draws.draws)} draws of {show.count(draws.variables)}"
        say(f"{output}: {what} variables by {draws.sampler}, {rate} M values per second\nseed {draws.seed}")
    return 0
