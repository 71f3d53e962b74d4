"""What the grammar of .mln texts makes: statements, formulas and terms that still know where they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lark import Token

from definetti.errors import ParseError


@dataclass(frozen=True)
class Source:
    """A text and where it came from, so that an error can point into it."""

    path: str | Path
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def error(self, message: str, line: int, column: int, kind: type[ParseError] = ParseError) -> ParseError:
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return kind(message, path=self.path, line=line, column=column, source=shown)

    def error_at(self, message: str, token: Token, kind: type[ParseError] = ParseError) -> ParseError:
        return self.error(message, token.line or 1, token.column or 1, kind)


@dataclass(slots=True)
class RawTerm:
    """A word in a term's place. `meaning.py` fills in the sort of a constant and the binder of a variable."""

    text: str
    constant: bool
    token: Token
    plus: Token | None = None
    bang: Token | None = None
    sort: str | None = None
    binder: Any = None
    function: str | None = None  # a declared function or an operator, with `parts` as its arguments
    parts: list[RawTerm] = field(default_factory=list)


@dataclass(slots=True)
class Raw:
    """A formula as written. `parts` are formulas (connectives, quantifiers) or terms (atoms, comparisons)."""

    kind: str  # atom, equal, unequal, less, …, not, and, or, implies, iff, exist, forall
    parts: list[Any]
    token: Token
    start: int
    stop: int
    depth: int = 1
    grouped: bool = False
    starred: Token | None = None
    variables: list[Token] = field(default_factory=list)
    binders: list[Any] = field(default_factory=list)
    indivisible: bool = False  # [F]
    guards: list[Any] = field(default_factory=list)  # of a quantifier: the terms that stand under it


@dataclass(slots=True)
class Include:
    name: str
    token: Token


@dataclass(slots=True)
class SortLine:
    token: Token
    items: list[Token]


@dataclass(slots=True)
class FunctionLine:
    """`person Mother(person)`: the sort of the values, the name, the sorts of the arguments."""

    sort: Token
    token: Token
    arguments: list[Token]


@dataclass(slots=True)
class Directive:
    token: Token


@dataclass(slots=True)
class FormulaLine:
    weight: float | None
    formula: Raw
    period: Token | None


@dataclass(slots=True)
class RawQuery:
    """`formula`, given `condition`; of a count its variables, or the predicate whose atoms are counted."""

    formula: Raw | None
    condition: Raw | None = None
    count: Token | None = None
    variables: list[Token] = field(default_factory=list)


Statement = Include | SortLine | FunctionLine | Directive | FormulaLine


class Misplaced(Exception):
    """An error found while a rule is reduced; `parse` knows the text and turns it into a ParseError."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message, self.token = message, token
