"""What a figure consists of, and how much work it may be.

A figure's file has CAPTION (of the paper), SECONDS (about how many CPU seconds `measure` takes, in full and quick) and
three functions: `measure` makes numbers, `draw` a picture of them, `judge` the verdicts. The last two see the numbers
alone, so that a finished figure can be drawn and judged again from its file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

Row = dict[str, Any]  # one point of a curve, one line of the CSV


@dataclass(frozen=True)
class Effort:
    """How much is measured: runs of each curve, and what lengths of runs are multiplied by."""

    name: str
    runs: int
    length: float

    @property
    def quick(self) -> bool:
        return self.name == "quick"


FULL = Effort("full", runs=10, length=1.0)
QUICK = Effort("quick", runs=4, length=0.15)


@dataclass(frozen=True)
class Measured:
    """The numbers of a figure: every point, and what is to be said about the model once."""

    rows: list[Row]
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether the numbers bear it out.

    `paper`: whether the claim is the paper's, in its words. Where it cannot hold as it stands, `expected` is the
    statement that can, and `note` says why.
    """

    figure: str
    claim: str
    expected: str
    measured: str
    held: bool
    paper: bool = False
    note: str = ""


class FigureFile(Protocol):
    """A module of `figures/`."""

    CAPTION: str
    SECONDS: tuple[float, float]

    def measure(self, effort: Effort) -> Measured: ...

    def draw(self, measured: Measured) -> Any: ...

    def judge(self, measured: Measured) -> list[Verdict]: ...
