"""Predicates of one shape share their functions: compiling a row loop takes seconds, and the parts R(·,·,k) of a
relation differ in nothing but numbers, such as those of their lists, bits and coefficients.

The text of each binary predicate is written by itself. Where texts are equal but for numbers, the first stands for all;
its numbers that differ become data, `own` of the predicate's `SystemData`. The draws are the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from definetti.samplers.sparse.text.joins import NUMBER, Writer

FUNCTION = re.compile(r"([a-z_]+_)$")  # before its number
BY_PREDICATE = ("chance_", "reclass_", "site_")  # functions that have the number of a predicate, not of its system
BY_SYSTEM = ("class_key_", "row_", "ahead_")  # those that others call
CALLED = re.compile(rf"(?<![a-z_])({'|'.join((*BY_PREDICATE, *BY_SYSTEM))})(\d+)")
HEAD = re.compile(r"^(def .*:)$", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Shapes:
    """Which systems share their functions.

    Attributes
    ----------
    first : tuple of int
        Of each system the one whose functions it uses.
    texts : tuple of str
        The functions of those that are first.
    own : tuple of array
        int64: of each system the numbers that these functions read.
    predicates : tuple of int
        Of each system.
    """

    first: tuple[int, ...]
    texts: tuple[str, ...]
    own: tuple[np.ndarray, ...]
    predicates: tuple[int, ...]

    def groups(self, systems: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Some systems by the one that is first."""
        for first in dict.fromkeys(self.first[r] for r in systems):
            yield first, [r for r in systems if self.first[r] == first]

    def text_of(self, first: int) -> str:
        return self.texts[sorted(set(self.first)).index(first)]

    def renamed(self, text: str) -> str:
        """With the functions that are shared."""

        def new(found: re.Match[str]) -> str:
            name, number = found[1], int(found[2])
            r = system_of(name, number, self.predicates)
            if r is not None:
                number = self.predicates[self.first[r]] if name in BY_PREDICATE else self.first[r]
            return f"{name}{number}"

        return CALLED.sub(new, text)


def shared(texts: Sequence[str], predicates: Sequence[int]) -> Shapes:
    """`texts`: the functions of each system; `predicates`: of each."""
    parts = [NUMBER.split(text) for text in texts]
    alike: dict[tuple[str, ...], list[int]] = {}
    for r, part in enumerate(parts):
        alike.setdefault(tuple(part[::2]), []).append(r)
    groups = list(alike.values())
    while True:  # functions that are called have to be shared, too
        first = {r: group[0] for group in groups for r in group}
        found = [group for group in groups if consistent([parts[r] for r in group], first, predicates)]
        if len(found) == len(groups):
            break
        groups = [*found, *([r] for group in groups if group not in found for r in group)]
    made, own = [], dict.fromkeys(range(len(texts)), np.zeros(0, np.int64))
    for group in sorted(groups):
        numbers, text = with_data([parts[r] for r in group])
        own |= {r: np.ascontiguousarray(numbers[:, k]) for k, r in enumerate(group)}
        made.append(text)
    shapes = Shapes(tuple(first[r] for r in sorted(first)), (), tuple(own.values()), tuple(predicates))
    return replace(shapes, texts=tuple(map(shapes.renamed, made)))


def system_of(name: str, number: int, predicates: Sequence[int]) -> int | None:
    """Whose function it is; None: no system's."""
    if name not in BY_PREDICATE:
        return number
    return predicates.index(number) if number in predicates else None


def in_name(before: str) -> bool:
    """Whether a number behind this text belongs to a name."""
    return before[-1:].isalpha() or before[-1:] == "_"


def consistent(parts: Sequence[list[str]], first: Mapping[int, int], predicates: Sequence[int]) -> bool:
    """Whether functions that the texts of a group name in one place are those of one group."""
    for at in range(1, len(parts[0]), 2):
        numbers = {int(part[at]) for part in parts}
        if len(numbers) > 1 and in_name(parts[0][at - 1]):
            found = FUNCTION.search(parts[0][at - 1])
            if found is None:
                return False
            called = [system_of(found[1], n, predicates) for n in sorted(numbers)]
            if None in called or len({first[r] for r in called if r is not None}) > 1:
                return False
    return True


def with_data(parts: Sequence[list[str]]) -> tuple[np.ndarray, str]:
    """int64[numbers, texts]: what differs, and the first text, in which it is read."""
    columns: dict[tuple[int, ...], int] = {}
    text = list(parts[0])
    for at in range(1, len(text), 2):
        numbers = tuple(int(part[at]) for part in parts)
        if len(set(numbers)) > 1 and not in_name(text[at - 1]):
            text[at] = f"own{columns.setdefault(numbers, len(columns))}"
    functions = HEAD.split("".join(text))
    for k in range(2, len(functions), 2):
        read = sorted({int(n) for n in re.findall(r"\bown(\d+)\b", functions[k])})
        functions[k] = "".join(f"\n    own{n} = s.own[{n}]" for n in read) + functions[k]
    return np.array(list(columns), np.int64).reshape(-1, len(parts)), "".join(functions)


def write_calls(
    w: Writer, shapes: Shapes, kinds: Sequence[int], systems: Sequence[int], call: Callable[[int, str], str]
) -> None:
    """By the kind of an entry what is done with its system. Systems of one shape have one call: functions are compiled
    into their callers."""
    for first, group in shapes.groups(systems):
        c = "c" if "c.systems" in shapes.text_of(first) else "lists_of(c)"
        w.put(1, f"if {' or '.join(f'kind == {kinds[r]}' for r in group)}:")
        if len(group) == 1:
            w.put(2, call(first, f"{c}, c.systems[{group[0]}]"))
            continue
        w.put(2, f"r = I({group[0]})")
        for r in group[1:]:
            w.put(2, f"if kind == {kinds[r]}:")
            w.put(3, f"r = I({r})")
        w.put(2, call(first, f"{c}, c.systems[r]"))
