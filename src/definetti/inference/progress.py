"""The progress line on stderr: what the engine reports, drawn by rich."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from definetti import show
from definetti.errors import ModelError

REDRAW = 0.2  # seconds between two pictures of the bar in a notebook

if TYPE_CHECKING:
    from definetti.samplers.protocol import Progress


@contextmanager
def reports(progress: bool | Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None] | None]:
    """What a run reports to: nothing, a function of the caller, or (True) a line that is drawn."""
    check_progress(progress)
    if not isinstance(progress, bool):
        yield progress
        return
    with progress_line(progress) as draw:
        yield draw


def check_progress(progress: object) -> None:
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ModelError(f"progress is True, or a function that takes a dft.Progress; got {progress!r}")


@contextmanager
def progress_line(shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A callable that draws a report, or None where nobody watches."""
    if not shown:
        yield None
        return
    if in_notebook():
        with notebook_line() as drawn:
            yield drawn
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    flexible = BarColumn(bar_width=None)  # it takes what the words leave: in 80 columns all of them are seen
    columns = (TextColumn("{task.description}"), flexible, TextColumn("{task.fields[note]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task("setting up", total=None, note="")

        def draw(report: Progress) -> None:
            bar.update(task, description=report.phase, completed=report.done, total=report.total, note=note(report))

        yield draw


def in_notebook() -> bool:
    """Whether the code runs in Jupyter, where cells show HTML and nothing is a terminal."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def notebook_line() -> Iterator[Callable[[Progress], None] | None]:
    """A bar below the cell that is drawn anew a few times in a second, and goes away at the end."""
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    handle, last = display(HTML("starting"), display_id=True), 0.0

    def draw(report: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < REDRAW:
            return
        last = time.monotonic()
        size = f' value="{report.done}" max="{report.total}"' if report.total else ""
        handle.update(HTML(f"{report.phase} <progress{size}></progress> {note(report)}"))

    try:
        yield draw
    finally:
        handle.update(HTML(""))


def note(report: Progress) -> str:
    """`1,200/2,000 · 310 M updates/s · worst ±0.0004 · 3.2 s · 2.1 s to go`: a 95 % half-width. For the last 60 columns
    of a narrow terminal."""
    done = show.count(report.done) + (f"/{show.count(report.total)}" if report.total else "")
    parts = [done]
    if report.rate:
        parts.append(f"{show.number(report.rate / 1e6, 3)} M updates/s")
    if report.worst is not None:
        parts.append(f"worst ±{show.number(report.worst, 2)}")
    parts.append(show.seconds(report.seconds))
    if report.left is not None:
        parts.append(f"{show.seconds(report.left)} to go")
    return " · ".join(parts)
