"""The syntax of .mln texts: from characters to raw statements that still know where they stand.

The grammar is `mln.lark`; this file runs it, decides where newlines end a line, and says in words what was expected.
Meaning (which predicate, which sort, which constant) comes after, in `meaning.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, v_args
from lark.exceptions import UnexpectedToken

from definetti.errors import ParseError
from definetti.model.graph.factors import LARGEST_LOG
from definetti.model.logic.text import unescaped
from definetti.model.queries import foreign_sign

DEEPEST = 200  # nesting of a formula: the walks over formulas are recursive

BINARY = frozenset({"IFF", "IMPLIES", "OR", "AND"})
OPENING, CLOSING = frozenset({"LPAR", "LBRACE"}), frozenset({"RPAR", "RBRACE"})


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


@dataclass(slots=True)
class Raw:
    """A formula as written. `parts` are formulas (connectives, quantifiers) or terms (atoms, equalities)."""

    kind: str  # atom, equal, unequal, not, and, or, implies, iff, exist, forall
    parts: list[Any]
    token: Token
    start: int
    stop: int
    depth: int = 1
    grouped: bool = False
    starred: Token | None = None
    variables: list[Token] = field(default_factory=list)
    binders: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Include:
    name: str
    token: Token


@dataclass(slots=True)
class SortLine:
    token: Token
    items: list[Token]


@dataclass(slots=True)
class FormulaLine:
    weight: float | None
    formula: Raw
    period: Token | None


Statement = Include | SortLine | FormulaLine


class Misplaced(Exception):
    """An error found while a rule is reduced; `parse` knows the text and turns it into a ParseError."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message, self.token = message, token


# --- from tokens to raw statements ------------------------------------------------------------------------------------


def unquote(token: Token) -> str:
    """The name that a quoted word stands for."""
    return unescaped(str(token)[1:-1])


def constant_name(token: Token) -> str:
    """The constant that a word in a list of constants names."""
    if token.type == "STRING":
        return unquote(token)
    if token.type == "NUMBER" and not str(token).isdecimal():
        raise Misplaced(f'{token} is no name for a constant; quote it: "{token}"', token)
    if token.type == "NAME" and not token[0].isupper():
        raise Misplaced(f'a constant starts with an upper-case letter; quote it: "{token}"', token)
    return str(token)


def _combine(kind: str, parts: list[Raw], token: Token, start: int, stop: int) -> Raw:
    depth = 1 + max(part.depth for part in parts)
    if depth > DEEPEST:
        raise Misplaced(f"the formula is nested more than {DEEPEST} deep; split it", token)
    return Raw(kind, parts, token, start, stop, depth)


def _chain(kind: str, left: Raw, op: Token, right: Raw) -> Raw:
    """a ^ b ^ c is one conjunction of three, unless brackets say otherwise."""
    if left.kind == kind and not left.grouped:
        left.parts.append(right)
        left.stop, left.depth = right.stop, max(left.depth, 1 + right.depth)
        if left.depth > DEEPEST:
            raise Misplaced(f"the formula is nested more than {DEEPEST} deep; split it", op)
        return left
    return _combine(kind, [left, right], op, left.start, right.stop)


@v_args(inline=True)
class _Build(Transformer[Token, Any]):
    def file(self, *statements: Statement) -> list[Statement]:
        return list(statements)

    def query(self, formula: Raw) -> Raw:
        return formula

    def include(self, name: Token) -> Include:
        return Include(unquote(name), name)

    def sort(self, name: Token, *items: Token | None) -> SortLine:
        return SortLine(name, [item for item in items if item is not None])

    def line(self, weight: float | None, formula: Raw, period: Token | None) -> FormulaLine:
        return FormulaLine(weight, formula, period)

    def weight(self, first: Token, *rest: Token) -> float:
        import math

        if first.type == "NUMBER":
            value = float(first)
        else:
            number = float(rest[1])
            if not 0 < number < math.inf:
                raise Misplaced(f"log needs a positive number, not {rest[1]}", rest[1])
            value = -math.log(number) if first.startswith("-") else math.log(number)
        if not abs(value) < LARGEST_LOG:
            cure = "write a hard formula, with a period at its end"
            raise Misplaced(f"the weight {first}, summed over groundings, is not finite; {cure}", first)
        return value

    def equivalence(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _combine("iff", [left, right], op, left.start, right.stop)

    def implication(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _combine("implies", [left, right], op, left.start, right.stop)

    def disjunction(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _chain("or", left, op, right)

    def conjunction(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _chain("and", left, op, right)

    def negation(self, op: Token, part: Raw) -> Raw:
        return _combine("not", [part], op, _start(op), part.stop)

    def quantified(self, word: Token, variables: list[Token], body: Raw) -> Raw:
        raw = _combine("exist" if word[0] in "eE" else "forall", [body], word, _start(word), body.stop)
        raw.variables = variables
        return raw

    def variables(self, *names: Token) -> list[Token]:
        return list(names)

    def group(self, left: Token, formula: Raw, right: Token) -> Raw:
        formula.start, formula.stop, formula.grouped = _start(left), _stop(right), True
        return formula

    def starred(self, star: Token, atom: Raw) -> Raw:
        atom.starred, atom.start = star, _start(star)
        return atom

    def atom(self, name: Token, *rest: Any) -> Raw:
        terms = [term for term in rest if isinstance(term, RawTerm)]
        return Raw("atom", terms, name, _start(name), _stop(rest[-1] if rest else name))

    def equality(self, left: RawTerm, op: Token, right: RawTerm) -> Raw:
        kind = "equal" if op.type == "EQUAL" else "unequal"
        return Raw(kind, [left, right], op, _start(left.token), _stop(right.token))

    def argument(self, plus: Token | None, term: RawTerm, bang: Token | None) -> RawTerm:
        term.plus, term.bang = plus, bang
        return term

    def term(self, token: Token) -> RawTerm:
        if token.type == "NAME" and not token[0].isupper():
            return RawTerm(str(token), False, token)
        return RawTerm(constant_name(token), True, token)


def _start(token: Token) -> int:
    return token.start_pos or 0


def _stop(token: Token) -> int:
    return token.end_pos or 0


# --- running the grammar ----------------------------------------------------------------------------------------------


class _Newlines:
    """Keeps a newline only where it ends a line: not inside brackets, not beside a binary connective."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        open_brackets, previous, waiting = 0, "", None
        for token in stream:
            if token.type == "_NL":
                if open_brackets == 0 and previous not in BINARY:
                    waiting = waiting or token
                continue
            if waiting is not None and token.type not in BINARY:
                yield waiting
            waiting, previous = None, token.type
            open_brackets += (token.type in OPENING) - (token.type in CLOSING)
            yield token
        if waiting is not None:
            yield waiting


@cache
def _grammar() -> Lark:
    text = Path(__file__).with_name("mln.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="basic",
        start=["file", "query"],
        transformer=_Build(),
        postlex=_Newlines(),
        maybe_placeholders=True,
    )


def parse(source: Source, start: str = "file") -> Any:
    """The statements of a text (`start="file"`) or the one formula of a query (`start="query"`)."""
    text = source.text if source.text.endswith("\n") else source.text + "\n"
    try:
        return _grammar().parse(text, start=start)
    except Misplaced as error:
        raise source.error_at(error.message, error.token) from None
    except UnexpectedInput as error:
        raise _in_words(source, text, error) from None


def _in_words(source: Source, text: str, error: UnexpectedInput) -> ParseError:
    """What the grammar met and what it expected, without its own vocabulary."""
    if isinstance(error, UnexpectedCharacters):
        return source.error(_bad_character(text, error.pos_in_stream or 0), error.line, error.column)
    if isinstance(error, UnexpectedEOF) or not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        lines = source.text.rstrip().split("\n")
        return source.error("the text ends too early" + _open_bracket(text, None), len(lines), len(lines[-1]) + 1)
    token: Token = error.token
    met = "the end of the line" if token.type == "_NL" else f"{str(token)!r}"
    expected = expectation(set(error.accepts or error.expected))
    hint = _hint(token, text) or _open_bracket(text, token)
    return source.error_at(f"expected {expected}, not {met}{hint}", token)


def _bad_character(text: str, position: int) -> str:
    character = text[position]
    if text.startswith("/*", position):
        return "this comment is never closed: */ is missing"
    if character == '"':
        return "this quoted name is never closed on its line"
    if character.isdecimal() or character in "+-":
        return "this is neither a number nor a name; quote names that start with a digit"
    if character == "#":
        return 'unknown directive; the only one is #include "file"'
    cure = foreign_sign(text[position:])
    return f"the character {character!r} has no meaning here" + (f"; {cure}" if cure else "")


def _open_bracket(text: str, until: Token | None) -> str:
    """A bracket that is still open where the error shows is the likely cause."""
    stack: list[Token] = []
    try:
        for token in _grammar().lex(text):
            if until is not None and _start(token) >= _start(until):
                break
            if token.type in OPENING:
                stack.append(token)
            elif token.type in CLOSING and stack:
                stack.pop()
    except UnexpectedInput:
        return ""
    return f" ({str(stack[-1])!r} of line {stack[-1].line}, column {stack[-1].column} is still open)" if stack else ""


def _hint(token: Token, text: str) -> str:
    before = text[: _start(token)].rsplit("\n", 1)[-1]
    if before.strip().lower() in ("inf", "infinity", "nan"):
        return "; a weight is a finite number: write a hard formula, with a period at its end"
    if token.type == "NAME" and re.fullmatch(r"\s*[^\W\d]\w*\s+", before):
        return "; functions are not known: write `person Mother(person)` as the predicate Mother(person, person!)"
    if cure := foreign_sign(text[_start(token) :]):
        return f"; {cure}"
    if token.type == "OR":
        return "; v alone is the connective 'or' and cannot be a name"
    return ""


def expectation(expected: set[str]) -> str:
    """Names of terminals as words."""
    words: list[str] = []
    if {"NOT", "LPAR", "NAME"} <= expected and "EXIST" in expected:
        words.append("a formula")
        expected = expected - {"NOT", "LPAR", "NAME", "STRING", "STAR", "FORALL", "EXIST", "NUMBER"}
    if expected >= BINARY:
        words.append("a connective (^ v => <=>)")
        expected = expected - BINARY
    plain = {
        "_NL": "the end of the line", "$END": "the end of the text", "PERIOD": "a period", "NAME": "a name",
        "NUMBER": "a number", "STRING": "a quoted name", "LPAR": "'('", "RPAR": "')'", "RBRACE": "'}'",
        "LBRACE": "'{'", "COMMA": "','", "EQUAL": "'='", "UNEQUAL": "'!='", "NOT": "'!'", "PLUS": "'+'",
        "STAR": "'*'", "ELLIPSIS": "'...'", "LOG": "log(…)", "SORT": "a sort", "__ANON_0": "#include",
        "OR": "'v'", "AND": "'^'", "IMPLIES": "'=>'", "IFF": "'<=>'", "FORALL": "FORALL", "EXIST": "EXIST",
    }  # fmt: skip
    words += sorted({plain.get(name, name.lower()) for name in expected})
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
