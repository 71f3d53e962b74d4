"""The syntax of .mln texts: from characters to raw statements that still know where they stand.

The grammar is `mln.lark`; this file runs it, decides where newlines end a line, and says in words what was expected.
Meaning (which predicate, which sort, which constant) comes after, in `meaning.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, v_args
from lark.exceptions import UnexpectedToken

from definetti.errors import ParseError
from definetti.model.checked_input import LARGEST_LOG
from definetti.model.logic.text import unescaped
from definetti.model.queries import foreign_sign
from definetti.readers.logic.dialects import refused
from definetti.readers.logic.raw import (
    Directive,
    FormulaLine,
    FunctionLine,
    Include,
    Misplaced,
    Raw,
    RawQuery,
    RawTerm,
    SortLine,
    Source,
    Statement,
)
from definetti.readers.logic.weights import BadWeight, evaluate

DEEPEST = 200  # nesting of a formula: the walks over formulas are recursive

BINARY = frozenset({"IFF", "IMPLIES", "OR", "AND"})
JOINS = {"v": "or", "|": "or", "^": "and", "&": "and"}
COMPARES = {"=": "equal", "!=": "unequal", "=/=": "unequal", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
OPENING, CLOSING = frozenset({"LPAR", "LBRACE", "LSQB"}), frozenset({"RPAR", "RBRACE", "RSQB"})
BEFORE_OPERAND = BINARY | {"LPAR", "COMMA", "PLUS", "NOT", "EQUAL", "UNEQUAL", "EXIST", "FORALL", "LSQB"}
SWAPPED = {"OR": "AND", "AND": "OR"}  # pracmln: `v` binds tighter than `^`


#: What may always follow a term, and is left out of lists of what was expected.
ARITHMETIC = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "PLUSPLUS", "LESS", "MORE", "AT_MOST", "AT_LEAST"})


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

    def query(self, formula: Raw, bar: Token | None, condition: Raw | None) -> RawQuery:
        return RawQuery(formula, condition)

    def count_atoms(self, word: Token) -> RawQuery:
        return RawQuery(None, count=word)

    def count_tuples(self, hash_: Token, variables: list[Token], formula: Raw) -> RawQuery:
        return RawQuery(formula, count=hash_, variables=variables)

    def include(self, _: Token, name: Token) -> Include:
        return Include(unquote(name), name)

    def directive(self, word: Token) -> Directive:
        return Directive(word)

    def function(self, sort: Token, name: Token, *rest: Token) -> FunctionLine:
        return FunctionLine(sort, name, [token for token in rest if token.type == "NAME"])

    def sort(self, name: Token, *items: Token | None) -> SortLine:
        return SortLine(name, [item for item in items if item is not None])

    def line(self, weight: float | None, formula: Raw, period: Token | None) -> FormulaLine:
        return FormulaLine(weight, formula, period)

    def weight(self, sign: Token, number: Token | None = None, _: Token | None = None) -> float:
        if sign is not None and sign.type == "WEIGHT":
            return _expression(sign)
        assert number is not None
        value = -float(number) if sign == "-" else float(number)
        if not abs(value) < LARGEST_LOG:
            cure = "write a hard formula, with a period at its end"
            raise Misplaced(f"the weight {number}, summed over groundings, is not finite; {cure}", sign or number)
        return value

    def equivalence(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _combine("iff", [left, right], op, left.start, right.stop)

    def implication(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _combine("implies", [left, right], op, left.start, right.stop)

    def disjunction(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _chain(JOINS[str(op)], left, op, right)

    def conjunction(self, left: Raw, op: Token, right: Raw) -> Raw:
        return _chain(JOINS[str(op)], left, op, right)

    def negation(self, op: Token, part: Raw) -> Raw:
        return _combine("not", [part], op, _start(op), part.stop)

    def quantified(self, word: Token, variables: list[Token], body: Raw) -> Raw:
        kind = "exist" if word.lstrip("\\")[0] in "eE" else "forall"
        raw = _combine(kind, [body], word, _start(word), body.stop)
        raw.variables = variables
        return raw

    def variables(self, *names: Token) -> list[Token]:
        return list(names)

    def group(self, left: Token, formula: Raw, right: Token) -> Raw:
        formula.start, formula.stop, formula.grouped = _start(left), _stop(right), True
        return formula

    def indivisible(self, left: Token, formula: Raw, right: Token) -> Raw:
        formula = self.group(left, formula, right)
        formula.indivisible = True
        return formula

    def starred(self, star: Token, atom: Raw) -> Raw:
        atom.starred, atom.start = star, _start(star)
        return atom

    def atom(self, name: Token | Raw) -> Raw:
        return name if isinstance(name, Raw) else Raw("atom", [], name, _start(name), _stop(name))

    def application(self, name: Token, *rest: Any) -> Raw:
        terms = [term for term in rest if isinstance(term, RawTerm)]
        return Raw("atom", terms, name, _start(name), _stop(rest[-1]))

    def comparison(self, left: RawTerm, op: Token, right: RawTerm) -> Raw:
        return Raw(COMPARES[str(op)], [left, right], op, _start(left.token), _end(right))

    def compares(self, op: Token) -> Token:
        return op

    def argument(self, plus: Token | None, term: RawTerm, mark: Token | None) -> RawTerm:
        if mark is not None and mark.type == "QUESTION":
            raise Misplaced("`?` after an argument, at most one value, is not supported; `!` means exactly one", mark)
        term.plus, term.bang = plus, mark
        return term

    def applied(self, call: Raw) -> RawTerm:
        return _call(str(call.token), call.parts, call.token)

    def arithmetic(self, left: RawTerm, op: Token, right: RawTerm) -> RawTerm:
        return _call(str(op), [left, right], op)

    def successor(self, term: RawTerm, op: Token) -> RawTerm:
        return _call("+", [term, RawTerm("1", True, op)], op)

    def number(self, minus: Token | None, token: Token) -> RawTerm:
        if minus is not None:
            raise Misplaced(f'-{token} is no name for a constant; quote it: "-{token}"', minus)
        return RawTerm(constant_name(token), True, token)

    def term(self, token: Token) -> RawTerm:
        if token.type == "QUERY_NAME":
            return RawTerm(str(token)[1:], False, token)
        if token.type == "NAME" and not token[0].isupper():
            return RawTerm(str(token), False, token)
        return RawTerm(constant_name(token), True, token)


@v_args(inline=True)
class _Narrow(_Build):  # pyright: ignore[reportGeneralTypeIssues]
    """pracmln: a quantifier reaches over the next formula only."""

    def quantified(self, word: Token, variables: list[Token], body: Raw) -> Raw:
        outer: list[Raw] = []
        while body.kind in ("and", "or", "implies", "iff") and not body.grouped:
            outer.append(body)
            body = body.parts[0]
        found = super().quantified(word, variables, body)
        for raw in reversed(outer):
            raw.parts[0], raw.start = found, found.start
            raw.depth = 1 + max(part.depth for part in raw.parts)
            found = raw
        return found


def _call(function: str, parts: list[RawTerm], token: Token) -> RawTerm:
    for part in parts:
        if part.plus is not None or part.bang is not None:
            raise Misplaced("an argument of a function has no + and no !", part.plus or part.bang or token)
    term = RawTerm(str(token), False, token, function=function, parts=parts)
    if term_depth(term) > DEEPEST:
        raise Misplaced(f"the term is nested more than {DEEPEST} deep", token)
    return term


def term_depth(term: RawTerm) -> int:
    """How deep functions and operators are nested; without recursion."""
    level, deepest = [term], 0
    while level:
        deepest += 1
        if deepest > DEEPEST + 1:
            return deepest
        level = [part for one in level for part in one.parts]
    return deepest


def _end(term: RawTerm) -> int:
    """Where a term ends in the text."""
    while term.parts:
        term = term.parts[-1]
    return _stop(term.token)


def _expression(token: Token) -> float:
    """The value of a weight expression. Infinite ones are hard formulas."""
    try:
        value = evaluate(str(token))
    except BadWeight as error:
        place = Token("WEIGHT", str(token), line=token.line, column=(token.column or 1) + error.at)
        raise Misplaced(error.message, place) from None
    if LARGEST_LOG <= abs(value) < float("inf"):
        raise Misplaced(f"the weight {token}, summed over groundings, is not finite; write a hard formula", token)
    return value


def _start(token: Token) -> int:
    return token.start_pos or 0


def _stop(token: Token) -> int:
    return token.end_pos or 0


# --- running the grammar ----------------------------------------------------------------------------------------------


class _Newlines:
    """Keeps a newline only where it ends a line: not inside brackets, not beside a binary connective. In a model `|` is
    a disjunction; in pracmln's language conjunction and disjunction change places."""

    always_accept = ()

    def __init__(self, start: str, dialect: str) -> None:
        self.bar = "OR" if start == "file" else "BAR"
        self.types = SWAPPED if dialect == "pracmln" else {}

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        open_brackets, previous, waiting = 0, "", None
        for token in stream:
            if token.type == "_NL":
                if open_brackets == 0 and previous not in BINARY:
                    waiting = waiting or token
                continue
            if token.type == "OR" and previous in BEFORE_OPERAND:
                token.type = "NAME"  # a variable called v
            goes_on = token.type in BINARY  # a line that starts with `|` is a cardinality of RockIt's
            if token.type == "BAR":
                token.type = self.bar
            token.type = self.types.get(token.type, token.type)
            if waiting is not None and not goes_on:
                yield waiting
            waiting, previous = None, token.type
            open_brackets += (token.type in OPENING) - (token.type in CLOSING)
            yield token
        if waiting is not None:
            yield waiting


@cache
def _grammar(start: str = "file", dialect: str = "alchemy") -> Lark:
    text = Path(__file__).with_name("mln.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        lexer="basic",
        start=["file", "query"],
        transformer=_Narrow() if dialect == "pracmln" else _Build(),
        postlex=_Newlines(start, dialect),
        maybe_placeholders=True,
    )


def parse(source: Source, start: str = "file", dialect: str = "alchemy") -> Any:
    """The statements of a text (`start="file"`) or one `RawQuery` (`start="query"`)."""
    text = source.text if source.text.endswith("\n") else source.text + "\n"
    try:
        return _grammar(start, "pracmln" if dialect == "pracmln" else "alchemy").parse(text, start=start)
    except Misplaced as error:
        other = refused(source.lines[(error.token.line or 1) - 1])
        raise source.error_at(other or error.message, error.token) from None
    except UnexpectedInput as error:
        raise _in_words(source, text, error) from None


def _in_words(source: Source, text: str, error: UnexpectedInput) -> ParseError:
    """What the grammar met and what it expected, without its own vocabulary."""
    if isinstance(error, UnexpectedCharacters):
        other = refused(source.lines[error.line - 1])
        return source.error(other or _bad_character(text, error.pos_in_stream or 0), error.line, error.column)
    if isinstance(error, UnexpectedEOF) or not isinstance(error, UnexpectedToken) or error.token.type == "$END":
        lines = source.text.rstrip().split("\n")
        return source.error("the text ends too early" + _open_bracket(text, None), len(lines), len(lines[-1]) + 1)
    token: Token = error.token
    if text.startswith("/*", _start(token) - 1):
        return source.error("this comment is never closed: */ is missing", token.line or 1, (token.column or 2) - 1)
    if other := refused(source.lines[(token.line or 1) - 1]):
        return source.error_at(other, token)
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
        return 'unknown directive; #include "file" is one'
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
    """How to write what was probably meant."""
    before = text[: _start(token)].rsplit("\n", 1)[-1]
    words = before.lower().split()
    if not {str(token).lower(), *words}.isdisjoint({"inf", "infinity", "nan"}) and len(words) < 2:
        return "; a weight is a finite number: write a hard formula, with a period at its end"
    if cure := foreign_sign(text[_start(token) :]):
        return f"; {cure}"
    if token.type == "OR":
        return "; v alone is the connective 'or' and cannot be a name"
    if words[-1:] == ["not"]:
        return "; a negation is written !"
    if before.rstrip().endswith("<-"):
        return "; an implication is written Body => Head"
    if (not words and token.type in ("HASH", "PERCENT")) or (words == ["-"] and token.type == "MINUS"):
        return "; a comment begins with //"
    if re.fullmatch(r"[-+]?[\d.]+", before.strip()) and token.type in ("SLASH", "STAR", "PLUS", "COMMA", "COLON"):
        return "; a weight is one number, as in 1.5, or an expression with log(…), and no sign follows it"
    is_open = bool(_open_bracket(text, token))
    if token.type == "COMMA" and not is_open:
        return "; a conjunction is written ^"
    if token.type in ("PERIOD", "COLON", "SLASH") and is_open and before[-1:].isalnum():
        return '; a name with such a sign in it is quoted: "cup.n.01"'
    return ""


def expectation(expected: set[str]) -> str:
    """Names of terminals as words."""
    words: list[str] = []
    if {"NOT", "LPAR", "NAME"} <= expected and "EXIST" in expected:
        words.append("a formula")
        expected = expected - {
            "NOT", "LPAR", "LSQB", "NAME", "QUERY_NAME", "STRING", "STAR", "FORALL", "EXIST", "NUMBER", "MINUS",
        }  # fmt: skip
    if expected >= BINARY:
        words.append("a connective (^ v => <=>)")
        expected = expected - BINARY
    plain = {
        "_NL": "the end of the line", "$END": "the end of the text", "PERIOD": "a period", "NAME": "a name",
        "NUMBER": "a number", "STRING": "a quoted name", "LPAR": "'('", "RPAR": "')'", "RBRACE": "'}'",
        "LBRACE": "'{'", "COMMA": "','", "EQUAL": "'='", "UNEQUAL": "'!='", "NOT": "'!'", "PLUS": "'+'",
        "STAR": "'*'", "ELLIPSIS": "'...'", "WEIGHT": "a weight", "SORT": "a sort", "INCLUDE": "#include",
        "DIRECTIVE": "a directive", "COLON": "':'", "BAR": "'|'", "LSQB": "'['", "RSQB": "']'", "MINUS": "'-'",
        "HASH": "'#'", "QUERY_NAME": "a variable", "QUESTION": "'?'",
        "OR": "'v'", "AND": "'^'", "IMPLIES": "'=>'", "IFF": "'<=>'", "FORALL": "FORALL", "EXIST": "EXIST",
    }  # fmt: skip
    expected = expected - ARITHMETIC if expected - ARITHMETIC else expected
    words += sorted({plain.get(name, name.lower()) for name in expected})
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
