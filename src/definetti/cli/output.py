"""What commands print: one JSON object or tables on stdout, warnings on stderr, and the file that `-o` names."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from definetti import __version__, show
from definetti.memory import peak_memory

if TYPE_CHECKING:
    from definetti.errors import Notice, NotSaved
    from definetti.model.marginals import Estimate, Marginals, OrbitRow

ROWS = 20  # of a table in a terminal; JSON and `-o` have the others
RUN = (
    "model", "sampler", "estimator", "scan", "symmetries", "world", "chains", "sweeps", "burn_in", "updates",
    "seconds", "workers", "seed", "peak_memory_mb", "version",
)  # fmt: skip
SECONDS = ("read", "symmetries", "compile", "sample")


def say(text: str, colour: str | None = None) -> None:
    """To stdout, in bold colour where one is given, without anything that a terminal would obey. A reader that has gone
    away (`| head`) is no failure; a full disk is."""
    try:
        print(show.printable(text) if colour is None else styled(show.printable(text), colour), flush=True)
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError:
        silence(sys.stdout)
        raise


def silence(stream: TextIO) -> None:
    """What is still in the buffer goes nowhere, else the interpreter trips over it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say_json(value: Mapping[str, Any]) -> None:
    say(json.dumps(value, allow_nan=False))


def warn(notices: Sequence[Notice]) -> None:
    """The messages, and last which command says more about them."""
    for notice in notices:
        print(show.printable(f"warning ({notice.kind}): {notice.message}"), file=sys.stderr)
    if notices:
        print(f"more: definetti explain {' '.join(sorted({n.kind for n in notices}))}", file=sys.stderr)


# --- marginals ---------------------------------------------------------------------------------------------------


def complete(
    result: Marginals, path: Path, model: Any, read_seconds: float | None, command: str | None = None
) -> Marginals:
    """Add to the run what only the command line knows; a key that does not apply to this run is null."""
    from definetti.readers.reading import language

    run: dict[str, Any] = dict.fromkeys(RUN) | language(model) | dict(result.run)
    run["model"] = str(path)
    run["seconds"] = dict.fromkeys(SECONDS) | dict(run["seconds"] or {}) | {"read": read_seconds}
    run["peak_memory_mb"] = run["peak_memory_mb"] or peak_memory_mb()
    run["version"] = __version__
    run["command"] = command or command_line(run["seed"])
    return replace(result, run=run)


def command_line(seed: int | None) -> str:
    """What was typed, with the seed that a fresh run drew: it gives the same numbers again."""
    words = ["definetti", *sys.argv[1:]]
    if seed is not None and not any(word == "--seed" or word.startswith("--seed=") for word in words):
        words += ["--seed", str(seed)]
    return shlex.join(words)


def peak_memory_mb() -> float | None:
    peak = peak_memory()
    return None if peak is None else round(peak / 1e6, 1)


def saved(run: Callable[[], Marginals]) -> tuple[Marginals, NotSaved | None]:
    """The answer of a run, and why its file could not be written: to be raised when the answer has been printed."""
    from definetti.errors import NotSaved

    try:
        return run(), None
    except NotSaved as error:
        return error.result, error


def answer(
    result: Marginals, *, as_json: bool, output: Path | None, footer: Callable[[Marginals], str], plot: bool = False
) -> int:
    """Print the answer, write it where `-o` says, and give the exit code."""
    try:
        if as_json:
            say_json(result.to_json())
        else:
            warn(result.notices)
            say_answer(result, footer, plot)
    finally:  # a broken terminal does not cost the file
        if output is not None:
            from definetti.store.writing import save

            save(result, output)
    if result.interrupted:
        return 130
    return 0 if result.trusted else 1


def say_answer(result: Marginals, footer: Callable[[Marginals], str], plot: bool) -> None:
    """The table, how it came about, and last, where the eye rests, whether to trust it."""
    say(marginals_table(result, terminal_width()))
    if result.formulas:
        say(formulas_table(result))
    if plot:
        from definetti.cli.interval_plot import draw

        draw(shown_answers(result)[1])
    verdict = result.verdict
    say("\n".join([footer(result), *world(result.run)]))
    say(verdict.line, "green" if verdict.trusted else "red")


def terminal_width() -> int | None:
    """Columns of the terminal that stdout is; None where it is a file or a pipe, which have room for everything."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def styled(text: str, colour: str) -> str:
    """Bold and coloured on a terminal, plain in a pipe or where NO_COLOR is set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    import click

    return click.style(text, fg=colour, bold=True)


def world(run: Mapping[str, Any]) -> list[str]:
    """What became of atoms that the evidence does not name; of Markov logic alone."""
    if not str(run["model"]).endswith(".mln"):
        return []
    kind, _, closed = run["world"].partition(": ")
    text = f"{kind} world: {closed.replace(',', ', ')} false where the evidence is silent" if closed else "open world"
    return [f"{text}; dialect {run.get('dialect', 'alchemy')}"]


def shown_answers(result: Marginals) -> tuple[str, list[tuple[str, int, Estimate | OrbitRow]]]:
    """The queries if any were asked, else the orbits, largest first; with the head of their column."""
    if result.queries:
        return "query", [(text, e.orbit_size, e) for text, e in result.queries.items()]
    return "orbit of", [(row.representative, row.size, row) for row in sorted(result.orbits, key=lambda row: -row.size)]


def shown_number(answer: Any) -> str:
    """A probability; of a count its mean and standard deviation."""
    from definetti.model.marginals import Count, width

    if isinstance(answer, Count):
        spread = "" if answer.std is None else f" (sd {show.number(answer.std, 4)})"
        return f"{show.number(answer.mean, 6)}{spread}"
    return "–" if answer.probability != answer.probability else show.probability(answer.probability, width(answer))


def formulas_table(result: Marginals) -> str:
    """Expected true groundings, the first rows."""
    rows = [
        [show.shortened(r["formula"], 60), "hard" if r["weight"] is None else show.number(r["weight"], 6),
         show.large(r["groundings"]), show.number(r["expected"], 8), show.number(r["half_width"], 3)]
        for r in result.formulas[:ROWS]
    ]  # fmt: skip
    return show.table(["formula", "weight", "groundings", "expected true", "± 95 %"], rows) + "\n"


def marginals_table(result: Marginals, columns: int | None = None) -> str:
    """Names, sizes, probabilities and half-widths; of sampled ones R-hat, the effective number of draws, and the gain:
    by how much the error is smaller than that of as many independent draws, as a factor on their number."""
    from definetti.model.marginals import width

    mark = "INTERRUPTED: this is what there is so far\n\n" if result.interrupted else ""
    head, answers = shown_answers(result)
    exact, draws = result.method is not None, (result.run.get("chains") or 0) * (result.run.get("sweeps") or 0)
    rows = [
        [name, show.count(size), shown_number(a), show.half_width(width(a), not exact)]
        + ([] if exact else [show.number(a.rhat), show.effective(a.ess, draws), show.gain(a.ess, draws)])
        for name, size, a in answers[:ROWS]
    ]
    counts = any(getattr(a, "distribution", None) is not None for _, _, a in answers[:ROWS])
    number = "probability or mean" if counts else "probability"
    heads = [head, "size", number, "± 95 %"] + ([] if exact else ["R-hat", "eff. draws", "gain"])
    more = len(answers) - ROWS
    rest = f"\n… and {show.count(more)} more; --json and -o show them" if more > 0 else ""
    if not exact and any(row[-1] for row in rows):
        rest += f"\ngain ×k: the error is as small as that of k times {show.count(draws)} independent draws"
    elif not exact:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return mark + show.table(heads, rows, width=columns) + rest + "\n"
