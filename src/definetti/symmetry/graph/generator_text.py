"""Generators as people write them: cycle notation over variables or literals, files of it, or arrays.

`(X0 X1)(X2 X3)` moves variables and keeps values; `(X0=0 X0=1)` moves literals. A name may contain brackets, as in
`(Smokes(Anna) Smokes(Bob))`. One generator per line; `#` starts a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from definetti import show
from definetti.errors import ParseError, SymmetryError, UnknownName
from definetti.groups import Generator, PermutationGroup, from_cycles, sparse
from definetti.model.graph.factors import FactorGraph


def read_generators(model: FactorGraph, given: Any) -> list[Generator]:
    """Sparse generators on literals from text, a path, a `PermutationGroup`, or a sequence of texts and arrays."""
    if isinstance(given, PermutationGroup):
        if given.degree != model.literal_start[-1]:
            raise SymmetryError(
                f"the group acts on {given.degree} points, the model has {model.literal_start[-1]} literals"
            )
        return list(given.generators)
    if isinstance(given, str) and not given.lstrip().startswith(("(", "#")) and "\n" not in given:
        given = Path(given)
    if isinstance(given, Path):
        return parse_cycles(model, _text(given), given)
    if isinstance(given, str):
        return parse_cycles(model, given)
    out: list[Generator] = []
    if not isinstance(given, Iterable) or isinstance(given, bytes | type):
        raise SymmetryError(f"generators are texts such as '(X0 X1)', arrays, or a path, got {show.brief(given)}")
    for number, one in enumerate(given):
        out += parse_cycles(model, one) if isinstance(one, str) else [_from_array(model, one, number)]
    return out


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name, bytes that are no UTF-8
        raise ParseError(f"the generators cannot be read: {error}", path=path) from error


def _from_array(model: FactorGraph, given: Any, number: int) -> Generator:
    array = np.asarray(given)
    literals = int(model.literal_start[-1])
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) not in (model.n, literals):
        raise SymmetryError(
            f"generator {number} must be an array of {model.n} integers (variables) or {literals} (literals), "
            f"got shape {array.shape} of {array.dtype}"
        )
    if not np.array_equal(np.sort(array), np.arange(len(array))):
        raise SymmetryError(f"generator {number} is no permutation of 0 to {len(array) - 1}")
    if len(array) == literals:
        return sparse(array)
    unlike = np.flatnonzero(model.cards[array] != model.cards)
    if len(unlike):
        i, j = int(unlike[0]), int(array[unlike[0]])
        raise SymmetryError(f"generator {number} takes {model.names[i]} to {model.names[j]}: {_counts(model, i, j)}")
    start = model.literal_start
    shift = np.repeat(start[array] - start[:-1], model.cards)
    return sparse(np.arange(literals) + shift)


def _counts(model: FactorGraph, i: int, j: int) -> str:
    return f"they have {model.cards[i]} and {model.cards[j]} values"


# --- text --------------------------------------------------------------------------------------------------------


def parse_cycles(model: FactorGraph, text: str, path: Path | None = None) -> list[Generator]:
    """One generator per line."""
    out = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = re.sub(r"(^|\s)#.*", "", line)
        if content.strip():
            out.append(_Line(model, content, number, path).generator())
    return out


class _Line:
    """One line of cycle notation, with the place of every token for messages."""

    def __init__(self, model: FactorGraph, text: str, number: int, path: Path | None) -> None:
        self.model, self.text, self.number, self.path = model, text, number, path
        self.seen: set[int] = set()

    def error(self, message: str, at: int) -> ParseError:
        return ParseError(message, path=self.path, line=self.number, column=at + 1, source=self.text)

    def generator(self) -> Generator:
        cycles: list[list[int]] = []
        for tokens in self._cycles():
            cycles += self._resolve(tokens)
        return from_cycles(cycles)

    def _cycles(self) -> Iterable[list[tuple[str, int]]]:
        """The tokens of each cycle with their places."""
        at = 0
        while (at := self._skip(at, "")) < len(self.text):
            if self.text[at] != "(":
                raise self.error("expected '(' to open a cycle", at)
            opened, tokens = at, []
            at = self._skip(at + 1, ",")
            while at < len(self.text) and self.text[at] != ")":
                end = self._token_end(at)
                tokens.append((re.sub(r"\s", "", self.text[at:end]), at))
                at = self._skip(end, ",")
            if at == len(self.text):
                raise self.error("this cycle is never closed by ')'", opened)
            at += 1
            yield tokens

    def _skip(self, at: int, more: str) -> int:
        while at < len(self.text) and (self.text[at].isspace() or self.text[at] in more):
            at += 1
        return at

    def _token_end(self, at: int) -> int:
        """Where a name ends: at a space, comma or bracket that it did not open itself."""
        depth, opened = 0, at
        while at < len(self.text):
            letter = self.text[at]
            if depth == 0 and (letter.isspace() or letter in ",)"):
                return at
            depth += (letter == "(") - (letter == ")")
            at += 1
        if depth:
            raise self.error("this name has a bracket that is never closed", opened)
        return at

    def _resolve(self, tokens: Sequence[tuple[str, int]]) -> list[list[int]]:
        """The cycle over literals: one cycle, or one per value for a cycle of variables."""
        points = [(*self._point(token, at), at) for token, at in tokens]
        start = self.model.literal_start
        rows: list[list[int]] = []
        for variable, value, at in points:
            first = points[0]
            if (value is None) != (first[1] is None):
                raise self.error("a cycle moves either variables or literals, not both", at)
            if value is None and self.model.cards[variable] != self.model.cards[first[0]]:
                names = f"{self.model.names[first[0]]} and {self.model.names[variable]}"
                raise self.error(f"{names} cannot change places: {_counts(self.model, first[0], variable)}", at)
            values = range(self.model.cards[variable]) if value is None else [value]
            literals = [int(start[variable]) + v for v in values]
            if not self.seen.isdisjoint(literals):
                raise self.error(f"{self.model.names[variable]} is moved twice in one generator", at)
            self.seen.update(literals)
            rows.append(literals)
        return [list(cycle) for cycle in zip(*rows, strict=True)]

    def _point(self, token: str, at: int) -> tuple[int, int | None]:
        """(variable, None) or (variable, value)."""
        name, equals, value = token.rpartition("=")
        try:
            return self.model.index(token), None
        except UnknownName as error:
            unknown = error
        if equals:
            try:
                return (i := self.model.index(name)), self.model.value(i, value)
            except UnknownName as error:
                unknown = error
        raise UnknownName(str(self.error(str(unknown), at)))
