"""`definetti marginals MODEL`: sample, average over orbits, and print each number with its error bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from definetti import show
from definetti.cli.options import (
    FILE,
    Positive,
    SamplerName,
    Source,
    Word,
    answers_in,
    dask,
    max_memory,
    prints,
    reads_model,
    symmetry,
    together,
)
from definetti.cli.output import answer, command_line, complete, saved
from definetti.estimators import ESTIMATORS
from definetti.estimators import help_text as estimator_help
from definetti.files import ANSWER_SUFFIXES
from definetti.inference.progress import progress_line
from definetti.samplers import registry
from definetti.samplers.gibbs import SCANS

if TYPE_CHECKING:
    from definetti.model.marginals import Marginals

COUNT = click.IntRange(min=1)
RUN = ".dft"  # a file that keeps the run, not only its answer

sampling = together(
    click.option("--samples", type=FILE, help="Use draws that another program made: CSV, a row per draw."),
    click.option(
        "--sampler",
        type=SamplerName(),
        default="auto",
        show_default=True,
        help=registry.help_text(),
    ),
    click.option(
        "--estimator",
        type=Word(list(ESTIMATORS)),
        default="auto",
        show_default=True,
        help=estimator_help(),
    ),
    click.option(
        "--scan",
        type=Word(SCANS),
        default="symmetric",
        show_default=True,
        help="The order in which a sweep visits the variables.",
    ),
    click.option(
        "--chains",
        type=COUNT,
        metavar="N",
        help="Independent chains.  [default: 64 on factor graphs, 8 on Markov logic]",
    ),
    click.option("--sweeps", type=COUNT, metavar="N", help="Kept sweeps of each chain.  [default: 2000]"),
    click.option("--seconds", type=Positive(), metavar="S", help="Sample for so long instead."),
    click.option(
        "--until",
        type=Positive(),
        metavar="E",
        help="Sample until no 95 % half-width is above E instead; at most for --seconds, or 600 s.",
    ),
    click.option(
        "--burn-in",
        type=click.IntRange(min=0),
        metavar="N",
        help="Sweeps dropped at the start.  [default: decided by the run]",
    ),
    click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Same seed, same numbers.  [default: fresh]"),
    click.option("--workers", type=COUNT, metavar="N", help="Threads.  [default: all cores]"),
)

#: What has no meaning when the draws are already made.
NOT_WITH_SAMPLES = ("dask", "sampler", "scan", "chains", "sweeps", "seconds", "until", "workers")


@click.command("marginals")
@reads_model
@answers_in((*ANSWER_SUFFIXES, RUN), " A .dft file keeps the run itself: resume continues it after whatever ended it.")
@sampling
@symmetry
@dask
@click.option("--plot", is_flag=True, help="Draw the 95 % intervals in the terminal.")
@max_memory
@prints
@click.pass_context
def command(
    context: click.Context,
    source: Source,
    queries: tuple[str, ...],
    output: Path | None,
    samples: Path | None,
    kind: str,
    generators: Path | None,
    time_limit: float,
    dask: str | None,
    plot: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> int:
    """Marginals with error bars, averaged over symmetries.

    Exact where that is about a second's work, by a count of operations. Naming a sampler, --estimator, --scan,
    --chains, --sweeps, --burn-in or --samples asks for sampling.

    \b
    Examples:
      definetti marginals examples/grid.uai --query X0 --plot
      definetti marginals examples/smokers.mln --evidence examples/town.db --until 0.001
      definetti marginals examples/grid.uai --sweeps 500 --seed 7 -o run.json
      definetti marginals examples/smokers.mln --evidence examples/town.db --seconds 86400 -o run.dft
    """
    check(context, samples, output)
    began = time.perf_counter()
    model, read_seconds = source.read()  # before the engine is loaded: a wrong file is reported at once
    from definetti.inference.marginals import marginals

    if samples is not None:
        from definetti.readers.samples import read_samples

        draws: dict[str, Any] = {"model": model}
        subject: Any = read_samples(samples, model)
        left_out = (*NOT_WITH_SAMPLES, "world", "formulas")
        settings = {key: value for key, value in settings.items() if key not in left_out}
    else:
        draws, subject = {}, model
        for name in ("estimator", "scan"):  # a default asks for nothing: `auto` may answer exactly
            if context.get_parameter_source(name) is ParameterSource.DEFAULT:
                settings[name] = None
        if settings.get("seconds") is not None:  # they bound the whole command
            settings["seconds"] = max(settings["seconds"] - (time.perf_counter() - began), 1e-3)
        if output is not None and output.suffix == RUN:
            words = {"model": str(source.path), "command": command_line(None)}
            draws, output = {"checkpoint": output, "label": words}, None
    with progress_line(not quiet and sys.stderr.isatty()) as progress, workers_of(dask) as executor:
        group = chosen_symmetries(model, kind, generators, time_limit)
        more = {"executor": executor, "symmetries": group, "time_limit": time_limit, "progress": progress}
        result, unsaved = saved(lambda: marginals(subject, queries, **draws, **more, **settings))
    result = complete(result, source.path, model, read_seconds)
    code = answer(result, as_json=as_json, output=output, footer=footer, plot=plot)
    if unsaved is not None:
        raise unsaved
    return code


def workers_of(address: str | None) -> AbstractContextManager[Any]:
    """The executor of a Dask cluster, or None: threads of this process."""
    if address is None:
        return nullcontext()
    from definetti.inference.remote import executor_at

    return executor_at(address)


def check(context: click.Context, samples: Path | None, output: Path | None) -> None:
    """Options that contradict each other."""
    given = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    lengths = [f"--{name}" for name in ("sweeps", "seconds", "until") if name in given]
    if len(lengths) > 1 and "sweeps" in given:  # --seconds beside --until is the most it may take
        raise click.UsageError(f"{' and '.join(lengths)} exclude each other", context)
    if samples is None:
        return
    if output is not None and output.suffix == RUN:
        raise click.UsageError("with --samples the draws are already made: there is no run to keep in a .dft", context)
    clash = [f"--{name}" for name in NOT_WITH_SAMPLES if name in given]
    if clash:
        raise click.UsageError(f"with --samples the draws are already made: {', '.join(clash)} cannot apply", context)
    if output is not None and output.exists() and samples.exists() and output.samefile(samples):
        raise click.UsageError("-o would overwrite the file that --samples names", context)


def chosen_symmetries(model: Any, kind: str, generators: Path | None, time_limit: float) -> Any:
    """None, the word auto (found while sampling is prepared), or the group that was asked for."""
    if generators is None and kind in ("auto", "none"):
        return "auto" if kind == "auto" else None
    from definetti.cli.commands.symmetries import find_symmetries

    return find_symmetries(model, kind, generators, time_limit)


def footer(result: Marginals) -> str:
    """How the numbers came about, and the seed that gives them again."""
    run = result.run
    if result.method is not None:
        from definetti.cli.commands.exact import footer as exact_footer

        return exact_footer(result)
    seconds = run["seconds"]
    how = [
        f"estimator {run['estimator']}",
        f"symmetries {run['symmetries']}",
        f"{show.count(len(result.orbits))} orbits",
    ]
    if run["chains"] and run["sweeps"]:
        what = f"{show.count(run['chains'])} chains × {show.count(run['sweeps'])} sweeps"
        what += f" after {show.count(run['burn_in'])} of warm-up" if run["burn_in"] else ""
        how.insert(0, f"{what} by {run['sampler']}" if run["sampler"] else what)
    lines = [", ".join(how), *exchanged(run), *reached(run), *gained(run)]
    if found := run.get("log_z"):
        error = "" if found["half_width"] is None else f" ± {show.number(found['half_width'], 2)}"
        how = f"thermodynamic integration over {found['levels']} levels"
        lines.append(f"log Z = {found['value']:.8g}{error} by {how}")
    if run["updates"] and seconds["sample"]:
        rate = show.number(run["updates"] / seconds["sample"] / 1e6, 3)
        lines.append(f"{show.count(run['updates'])} updates, {rate} M per second")
    if run["seed"] is not None:
        lines.append(f"seed {run['seed']}")
    lines.append(", ".join(f"{phase} {show.seconds(s)}" for phase, s in seconds.items() if s is not None))
    return "\n".join(lines)


def exchanged(run: Mapping[str, Any]) -> list[str]:
    """Of parallel tempering: the ladder, and how often neighbours on it exchange states."""
    if not (ladder := run.get("tempering")):
        return []
    low, high = (show.number(rate, 2) for rate in (min(ladder["swap_rates"]), max(ladder["swap_rates"])))
    levels = len(ladder["levels"])
    return [f"a ladder of {levels} levels, neighbours exchange states in {low} to {high} of the attempts"]


def reached(run: Mapping[str, Any]) -> list[str]:
    """The half-width at the end, beside the one that was asked for."""
    if run.get("until") is None:
        return []
    half = "unknown" if run["half_width"] is None else f"±{show.number(run['half_width'], 2)}"
    return [f"largest 95 % half-width {half}, asked for ±{show.number(run['until'], 2)}"]


def gained(run: Mapping[str, Any]) -> list[str]:
    """Which estimators `auto` chose, and what they gain over the standard one."""
    lines = []
    if run["estimator"] == "auto" and run.get("choices"):
        lines.append("chosen: " + ", ".join(f"{name} for {show.count(n)}" for name, n in run["choices"].items()))
    if gain := run.get("gain"):
        low, high = gain["mean"] / gain["factor"] ** 2, gain["mean"] * gain["factor"] ** 2
        span = f"{show.number(low, 2)} to {show.number(high, 2)} with 95 %"
        lines.append(f"variance of standard ÷ this: {show.number(gain['mean'], 3)} on average ({span})")
    return lines
