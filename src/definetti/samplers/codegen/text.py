"""What statements are written with: lines and their depth, numbers looked up at run time, scopes and sinks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from definetti.samplers.codegen.expressions import Expr, Leaf


@dataclass
class Layout:
    """Numbers the things that generated code looks up at run time, in order of first use: sizes, offsets."""

    numbers: dict[tuple, int] = field(default_factory=dict)

    def number(self, key: tuple) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def orientations(self, predicate: int) -> list[tuple[int, ...]]:
        """The axes along which the bits of a predicate are kept, as far as text has been written."""
        return [key[2] for key in self.numbers if key[0] == "o" and key[1] == predicate]


@dataclass
class Text:
    """Lines of source with their depth, and fresh names."""

    lines: list[str] = field(default_factory=list)
    depth: int = 1
    count: int = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    @contextmanager
    def inside(self, header: str = "") -> Iterator[None]:
        """A block; whatever depth is opened inside ends with it."""
        depth = self.depth
        if header:
            self.add(header)
            self.depth += 1
        yield
        self.depth = depth


@dataclass(frozen=True)
class Word:
    """The word axis: variable `variable`, and the name of the word index once its loop is open."""

    variable: int
    index: str = ""


@dataclass(frozen=True)
class Scope:
    """What is known at a point of the text: bound variables, and names of scalar bits (0 or 1) by leaf."""

    bound: frozenset[int]
    bits: dict[Leaf, str]
    sorts: tuple[int, ...]
    word: Word | None = None

    def decided(self, leaf: Leaf) -> bool:
        return leaf in self.bits


class Sink:
    """What is done with the goals where all variables are bound; `Count` adds up, `Any` stops at the first."""

    stop: str = ""
    plus: frozenset[int] = frozenset()
    before: str = ""
    after: str = ""


@dataclass
class Count(Sink):
    """Adds the number of true bits of each goal to the variable it names ("z+": add to z, "z-": subtract).

    `before` and `after` are put around the innermost loops in which all `plus` variables are bound. What is counted
    stands for `times` as much.
    """

    plus: frozenset[int] = frozenset()
    before: str = ""
    after: str = ""
    times: int = 1

    def take(self, goal: str, value: str, sign: str = "+") -> str:
        value = value if self.times == 1 else f"{self.times} * {value}"
        if goal[-1] in "+-":
            sign = "+" if goal[-1] == sign else "-"
        return f"{goal.rstrip('+-')} {sign}= {value}"


@dataclass
class Any(Sink):
    """Whether some value makes the goal true: of one bit (`reduce`), or in each bit of the open word."""

    name: str = ""
    stop: str = ""


Goals = list[tuple[str, Expr]]
