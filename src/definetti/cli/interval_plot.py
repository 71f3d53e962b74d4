"""`--plot`: 95 % intervals as lines of characters, drawn by rich, in the colours and the width of the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from definetti import show

if TYPE_CHECKING:
    from rich.console import Console

    from definetti.model.marginals import Estimate, OrbitRow

ROWS = 40
RARE = 0.02  # below this, or as far from 1, a linear axis shows nothing
NARROWEST, PIPED = 20, 100  # columns
TICKS = (1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1 - 1e-4, 1 - 1e-6)


def draw(answers: Sequence[tuple[str, int, Estimate | OrbitRow]]) -> None:
    """To stdout. Variables with more than two values are drawn by each value."""
    from rich.console import Console

    from definetti.model.marginals import Count

    answers = [one for one in answers if not isinstance(one[2], Count)]  # these have another axis
    lines = [line for name, _, answer in answers[:ROWS] for line in intervals(name, answer)][:ROWS]
    if not lines:
        return
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PIPED)
    plot(console, lines)
    more = len(answers) - ROWS
    console.print(f"… and {show.count(more)} more\n" if more > 0 else "", style="dim")


def intervals(name: str, answer: Estimate | OrbitRow) -> list[tuple[str, float, float, float]]:
    """(label, probability, low, high) of a number, or of every value of a variable with several."""
    from definetti.model.marginals import OrbitRow

    low, high = (answer.estimate() if isinstance(answer, OrbitRow) else answer).interval
    if not isinstance(answer.probability, list):
        return [(name, answer.probability, float(low), float(high))]
    several = zip(answer.probability, low, high, strict=True)  # type: ignore[arg-type]
    return [(f"{name}={v}", p, float(a), float(b)) for v, (p, a, b) in enumerate(several)]


def plot(console: Console, lines: Sequence[tuple[str, float, float, float]]) -> None:
    from rich.text import Text

    logit = any(0 < p < RARE or 1 - RARE < p < 1 for _, p, _, _ in lines)
    names = min(max(len(name) for name, *_ in lines), 28)
    room = max(console.width - names - 3, NARROWEST)
    axis = Axis(logit, [x for _, *ends in lines for x in ends], room)
    for name, p, low, high in lines:
        a, at, b = axis.column(low), axis.column(p), axis.column(high)
        text = Text(f"{show.printable(show.shortened(name, names)):{names}}  ")
        text.append(" " * a)
        text.append("─" * (at - a), style="cyan")
        text.append("●", style="bold cyan")
        text.append("─" * (b - at), style="cyan")
        console.print(text, no_wrap=True, overflow="crop")
    console.print(Text(" " * (names + 2) + axis.labels(), style="dim"), no_wrap=True, overflow="crop")
    kind = "logit" if logit else "linear"
    console.print(Text(f"{'':{names}}  95 % intervals, {kind} axis", style="dim"), no_wrap=True)


class Axis:
    """From probabilities to columns."""

    def __init__(self, logit: bool, values: Sequence[float], room: int) -> None:
        self.logit, self.room = logit, room
        inner = [x for x in values if not logit or 1e-12 < x < 1 - 1e-12]
        low, high = min(inner, default=0.25), max(inner, default=0.75)
        if not logit:
            margin = 0.05 * (high - low) or 0.05
            low, high = max(low - margin, 0.0), min(high + margin, 1.0)
        self.low, self.high = self._scale(low), self._scale(high)
        if self.high - self.low < 1e-12:
            self.low, self.high = self.low - 1.0, self.high + 1.0

    def _scale(self, p: float) -> float:
        if not self.logit:
            return p
        p = min(max(p, 1e-12), 1 - 1e-12)
        return math.log(p / (1 - p))

    def column(self, p: float) -> int:
        share = (self._scale(p) - self.low) / (self.high - self.low)
        return round(min(max(share, 0.0), 1.0) * (self.room - 1))

    def labels(self) -> str:
        """Ticks that have room, below their columns."""
        if self.logit:
            ticks = [p for p in TICKS if self.low <= self._scale(p) <= self.high]
        else:
            step = 10.0 ** math.floor(math.log10(self.high - self.low))
            step = next(s for s in (step / 5, step / 2, step, 2 * step) if (self.high - self.low) / s <= 7 or s > step)
            ticks = [k * step for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        line = ""
        for p in ticks:
            text = "╵" + f"{p:.10g}"
            at = self.column(p)
            if at >= len(line) + (1 if line else 0) and at + len(text) <= self.room:
                line = line.ljust(at) + text
        return line
