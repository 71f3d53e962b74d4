"""What commands print: one JSON object or tables on stdout, warnings on stderr, and the file that `-o` names."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from definetti import __version__, show
from definetti.memory import peak_memory

if TYPE_CHECKING:
    from definetti.errors import Notice
    from definetti.model.marginals import Marginals

ROWS = 20  # of a table in a terminal; JSON and `-o` have the others
RUN = (
    "model", "sampler", "estimator", "scan", "symmetries", "world", "chains", "sweeps", "burn_in", "updates",
    "seconds", "workers", "seed", "peak_memory_mb", "version",
)  # fmt: skip
SECONDS = ("read", "symmetries", "compile", "sample")


def say(text: str) -> None:
    """To stdout. A reader that has gone away (`| head`) is no failure; a full disk is."""
    try:
        print(text, flush=True)
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
    for notice in notices:
        print(f"warning ({notice.kind}): {notice.message}", file=sys.stderr)


# --- marginals ---------------------------------------------------------------------------------------------------


def complete(result: Marginals, path: Path, closed: Sequence[str], read_seconds: float) -> Marginals:
    """Add to the run what only the command line knows; a key that does not apply to this run is null."""
    run: dict[str, Any] = dict.fromkeys(RUN) | dict(result.run)
    run["model"] = str(path)
    run["world"] = run["world"] or (f"closed: {','.join(closed)}" if closed else "open")
    run["seconds"] = dict.fromkeys(SECONDS) | dict(run["seconds"] or {}) | {"read": read_seconds}
    run["peak_memory_mb"] = run["peak_memory_mb"] or peak_memory_mb()
    run["version"] = __version__
    return replace(result, run=run)


def peak_memory_mb() -> float | None:
    peak = peak_memory()
    return None if peak is None else round(peak / 1e6, 1)


def answer(result: Marginals, *, as_json: bool, output: Path | None, footer: Callable[[Marginals], str]) -> int:
    """Print the answer, write it where `-o` says, and give the exit code."""
    try:
        if as_json:
            say_json(result.to_json())
        else:
            warn(result.notices)
            say("\n".join([marginals_table(result), footer(result), *world(result.run)]))
    finally:  # a broken terminal does not cost the file
        if output is not None:
            from definetti.store import save

            save(result, output)
    if result.interrupted:
        return 130
    return 0 if result.trusted else 1


def world(run: Mapping[str, Any]) -> list[str]:
    """What became of atoms that the evidence does not name; of Markov logic alone."""
    if not str(run["model"]).endswith(".mln"):
        return []
    kind, _, closed = run["world"].partition(": ")
    return [f"{kind} world: {closed.replace(',', ', ')} false where the evidence is silent" if closed else "open world"]


def marginals_table(result: Marginals) -> str:
    """The queries if any were asked, else the orbits, largest first."""
    mark = "INTERRUPTED: this is what there is so far\n\n" if result.interrupted else ""
    if result.queries:
        head, answers = "query", [(text, e.orbit_size, e) for text, e in result.queries.items()]
    else:
        ordered = sorted(result.orbits, key=lambda row: -row.size)
        head, answers = "orbit of", [(row.representative, row.size, row) for row in ordered]
    from definetti.model.marginals import width

    rows = [
        [name, show.count(size), show.probability(a.probability, width(a)), show.number(width(a), 2)]
        + ([] if result.method else [show.number(a.rhat), show.number(a.ess, 3)])
        for name, size, a in answers[:ROWS]
    ]
    heads = [head, "size", "probability", "± 95 %"] + ([] if result.method else ["R-hat", "ess"])
    more = len(answers) - ROWS
    rest = f"\n… and {show.count(more)} more; --json and -o show them" if more > 0 else ""
    return mark + show.table(heads, rows) + rest + "\n"
