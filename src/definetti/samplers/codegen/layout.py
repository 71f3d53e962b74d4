"""What generated code looks up at run time: sizes and offsets by name, and their places in the array `numbers`.

Text is written with names alone; a function begins by looking up those that it uses. The bits of a predicate are kept
in several orientations, each with its words along one argument (or along the diagonal of several).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Number:
    """An entry of the array `numbers`: the local variable it has in a generated function, and a comment on it."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Bits(Number):
    """Where an orientation of a predicate begins in the array `bits`; with `live`, the sites that could have moved."""

    predicate: int
    axis: tuple[int, ...]
    live: bool = False


@dataclass(frozen=True)
class Tail:
    """The mask of a row's last word."""

    name: str
    meaning: str
    sort: int


Local = Number | Tail


def tail(sort: int) -> Tail:
    return Tail(f"tail_{sort}", f"mask of the last word of sort {sort}", sort)


def size(sort: int) -> Number:
    return Number(f"size_{sort}", f"constants of sort {sort}")


def width(sort: int) -> Number:
    return Number(f"width_{sort}", f"words of a row over sort {sort}")


def orientation(predicate: int, axis: tuple[int, ...]) -> Bits:
    along = f" along argument {', '.join(map(str, axis))}" if axis else ""
    return Bits(
        "_".join(map(str, ("bits", predicate, *axis))), f"rows of predicate {predicate}{along}", predicate, axis
    )


def live(predicate: int, axis: tuple[int, ...]) -> Bits:
    return Bits(f"live_{predicate}", f"sites of predicate {predicate} that could have moved", predicate, axis, True)


def barred(predicate: int) -> Number:
    return Number(f"barred_{predicate}", f"mask of the values that predicate {predicate} cannot have, or -1")


def weight(shape: int) -> Number:
    return Number(f"weight_{_label(shape)}", f"weights of {_meaning(shape)}")


def instances(shape: int) -> Number:
    return Number(f"instances_{_label(shape)}", f"instances of {_meaning(shape)}")


def constants(shape: int) -> Number:
    return Number(f"constants_{_label(shape)}", f"constants of the instances of {_meaning(shape)}")


def seen(shape: int) -> Number:
    return Number(f"seen_{_label(shape)}", f"counts of {_meaning(shape)}")


def pointer(place: tuple[int, int, int]) -> Number:
    return Number(f"pointer_{_at(place)}", f"where the instances at {_where(place)} begin, by the atom's constants")


def listed(place: tuple[int, int, int]) -> Number:
    return Number(f"list_{_at(place)}", f"instances at {_where(place)}, by the atom's constants")


def key_step(place: tuple[int, int, int], argument: int) -> Number:
    return Number(f"step_{_at(place)}_{argument}", f"what argument {argument} adds per constant at {_where(place)}")


def table(predicate: int) -> Number:
    return Number(f"table_{predicate}", f"conditionals of predicate {predicate} by counts, or -1")


def lowest_count(predicate: int, shape: int) -> Number:
    return Number(f"lowest_{predicate}_{shape}", f"least count of {_meaning(shape)} for predicate {predicate}")


def table_step(predicate: int, shape: int) -> Number:
    return Number(f"stride_{predicate}_{shape}", f"stride of {_meaning(shape)} in table {predicate}")


def _label(shape: int) -> str:
    """Queries have the numbers -1, -2, … where formulas have 0, 1, …"""
    return str(shape) if shape >= 0 else f"q{-1 - shape}"


def _meaning(shape: int) -> str:
    return f"shape {shape}" if shape >= 0 else f"query {-1 - shape}"


def _at(place: tuple[int, int, int]) -> str:
    """A place is (shape, predicate, occurrence)."""
    return "_".join(map(str, place))


def _where(place: tuple[int, int, int]) -> str:
    return f"occurrence {place[2]} of predicate {place[1]} in shape {place[0]}"


@dataclass(frozen=True)
class Layout:
    """All numbers of a kernel in the order of their places, the orientations first."""

    numbers: tuple[Number, ...]
    beside: tuple[Bits, ...] = ()  # orientations that a chain does not keep: made when its state is counted

    @cached_property
    def place(self) -> dict[Number, int]:
        return {number: k for k, number in enumerate(self.numbers)}

    @property
    def bits(self) -> tuple[Bits, ...]:
        """The orientations that a chain keeps."""
        return tuple(x for x in self.numbers if isinstance(x, Bits) and x not in self.beside)

    def orientations(self, predicate: int) -> list[Bits]:
        """Everywhere the bits of a predicate are kept."""
        return [x for x in self.bits if x.predicate == predicate and not x.live]

    def look_up(self, x: Local) -> str:
        """The line that gives a local variable its value."""
        source = f"peek(numbers, {self.place[x]})" if isinstance(x, Number) else f"peek(words, {x.sort})"
        return f"{x.name} = {source}  # {x.meaning}"


def layout_of(bits: Iterable[Bits], used: Iterable[Local]) -> Layout:
    """The orientations that a chain keeps, then the other numbers in order of first use."""
    kept = tuple(bits)
    numbers = tuple(dict.fromkeys([*kept, *(x for x in used if isinstance(x, Number))]))
    return Layout(numbers, tuple(x for x in numbers if isinstance(x, Bits) and x not in kept))
