"""Runs figures and keeps what is finished: a figure whose files are there and were made with the same parameters is
not run again."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from definetti import __version__
from definetti.experiments.figure import FULL, QUICK, Effort, FigureFile, Measured, Verdict
from definetti.files import write_atomically
from definetti.memory import available_cores

FIGURES = (
    "fig1",
    "fig2a",
    "fig2b",
    "fig2c",
    "fig2d",
    "fig2e",
    "fig2f",
    "fig3a",
    "fig3b",
    "fig3c",
    "fig3d",
    "joint",
    "cost",
)
Say = Callable[[str], None]


def figure_file(name: str) -> FigureFile:
    """The module of a figure."""
    return cast("FigureFile", import_module(f"definetti.experiments.figures.{name}"))


def parameters(effort: Effort) -> dict[str, Any]:
    """What a finished figure must have been made with to be kept."""
    return {**_sources(), **asdict(effort)}


@cache
def _sources() -> dict[str, str]:
    """The version, and a hash of this folder's sources: numbers that other code has kept may lack what a figure draws
    and judges now."""
    made = blake2b(digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        made.update(file.read_bytes())
    return {"version": __version__, "code": made.hexdigest()}


def is_finished(name: str, out: Path, effort: Effort) -> bool:
    try:
        kept = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        return kept["parameters"] == parameters(effort) and (out / f"{name}.csv").is_file()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def planned_seconds(names: Sequence[str], out: Path, effort: Effort) -> float:
    """About how many CPU seconds the figures that are not finished take."""
    return sum(figure_file(n).SECONDS[effort.quick] for n in names if not is_finished(n, out, effort))


def run_figures(names: Sequence[str], out: Path, quick: bool, say: Say, workers: int | None = None) -> list[Verdict]:
    """Measures, draws and judges; the verdicts of all figures that `out` holds.

    Figures are measured side by side, as many as there are cores, each in a process of its own; times are CPU seconds.
    """

    effort = QUICK if quick else FULL
    out.mkdir(parents=True, exist_ok=True)
    workers = workers or available_cores()
    say(_estimate(planned_seconds(names, out, effort), workers, out))
    missing = [name for name in names if not is_finished(name, out, effort)]
    for name in (name for name in names if name not in missing):
        say(f"{name}: finished before, kept")
    own = [name for name in missing if not hasattr(figure_file(name), "SHARES")]
    if len(own) > 1 and workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            jobs = {pool.submit(measure_figure, name, out, effort): name for name in _longest_first(own, effort)}
            for job in as_completed(jobs):
                job.result()
                say(f"{jobs[job]}: measured")
    for name in (name for name in missing if not is_finished(name, out, effort)):
        measure_figure(name, out, effort)
        say(f"{name}: measured")
    for name in names:
        _picture(name, out)
    return collect(out, say)


def _estimate(seconds: float, workers: int, out: Path) -> str:
    wall = seconds / max(1, workers)
    return f"about {_minutes(wall)} on {workers} cores, plus compiling; results in {out}"


def _longest_first(names: Sequence[str], effort: Effort) -> list[str]:
    return sorted(names, key=lambda name: -figure_file(name).SECONDS[effort.quick])


def measure_figure(name: str, out: Path, effort: Effort) -> None:
    """Measures one figure and keeps its numbers."""
    began = time.process_time()
    measured = _measure(name, out, effort)
    _keep(name, out, effort, measured, time.process_time() - began)


def _measure(name: str, out: Path, effort: Effort) -> Measured:
    """The numbers of a figure, or of the figure whose runs it shares."""
    shared = getattr(figure_file(name), "SHARES", None)
    if shared is not None and is_finished(shared, out, effort):
        return load(shared, out)[0]
    return figure_file(name).measure(effort)


def collect(out: Path, say: Say) -> list[Verdict]:
    """verdicts.json and the pages, from the figures that are there, but for those that other code has made."""
    from definetti.experiments.page import write_pages

    verdicts = []
    for name in (name for name in FIGURES if (out / f"{name}.json").is_file()):
        if any(is_finished(name, out, effort) for effort in (QUICK, FULL)):
            verdicts += figure_file(name).judge(load(name, out)[0])
        else:
            say(f"{name}: left out, it was made by another version: definetti experiment {name} makes it again")
    rows = [_as_json(verdict) for verdict in verdicts]
    write_atomically(out / "verdicts.json", json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    write_pages(out, verdicts)
    return verdicts


def load(name: str, out: Path) -> tuple[Measured, dict[str, Any]]:
    """The numbers of a finished figure, and what it was made with."""
    kept = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    with (out / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]
    return Measured(rows, kept["facts"]), kept


def _keep(name: str, out: Path, effort: Effort, measured: Measured, seconds: float) -> None:
    """The CSV first: without the other file the figure is not finished."""
    fields = list(dict.fromkeys(key for row in measured.rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(measured.rows)
    write_atomically(out / f"{name}.csv", text.getvalue())
    made = {"parameters": parameters(effort), "cpu_seconds": round(seconds, 1), "facts": measured.facts}
    write_atomically(out / f"{name}.json", json.dumps(made, indent=1, ensure_ascii=False) + "\n")


def _picture(name: str, out: Path) -> None:
    from definetti.pages.style import save_chart

    chart = figure_file(name).draw(load(name, out)[0])
    for suffix in (".svg", ".png"):
        save_chart(chart, out / f"{name}{suffix}")


def _as_json(verdict: Verdict) -> dict[str, Any]:
    made = {key: value for key, value in asdict(verdict).items() if key != "paper"}
    return {**made, "held": bool(verdict.held), "source": "paper" if verdict.paper else "definetti"}


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
