"""The query language over factor graphs: a variable, or an event given by a Boolean formula over several variables.

    X3                      the variable, with all its values (two values: P(value 1))
    X1=0 ^ X7=2             a conjunction of any number of literals
    !Rain v (Wet => Sun=1)  any formula; a bare name of a variable with two values means that it has value 1
    X1=0 | X3=1             a formula given another

Operators bind in the falling order `!`, `^`, `v`, `=>`, `<=>`; `=>` groups to the right. A name is a word with brackets
attached, such as `Friends(Anna,Bob)` or `X[1,2]`; any other name, or a variable called v, is written in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from definetti.errors import ParseError, TooLarge, UnknownName
from definetti.model.graph.factors import FactorGraph

MOST_TUPLES = 100_000
MOST_PARTIAL = 1_000_000  # assignments looked at while searching for those that make a formula true

BINDS = {"!": 5, "^": 4, "v": 3, "=>": 2, "<=>": 1}
SYMBOL = re.compile(r"<=>|=>|!=|[!^=()]")
WORD = re.compile(r"-?[^\W]+(?:[.:\-][^\W]+)*")  # -1 is a value of a spin


#: Signs of other languages, the longer ones first, and what is written here.
FOREIGN = {
    "&&": ("a conjunction", "^"), "&": ("a conjunction", "^"), "∧": ("a conjunction", "^"),
    "||": ("a disjunction", "v"), "|": ("a disjunction", "v"), "∨": ("a disjunction", "v"),
    "~": ("a negation", "!"), "¬": ("a negation", "!"), "and": ("a conjunction", "^"), "or": ("a disjunction", "v"),
    "not": ("a negation", "!"), "->": ("an implication", "=>"), "<->": ("an equivalence", "<=>"),
}  # fmt: skip


def foreign_sign(text: str) -> str | None:
    """How to write what starts here with a sign or word of another language."""
    for sign, (what, ours) in FOREIGN.items():
        after = text[len(sign) : len(sign) + 1]
        if text[: len(sign)].lower() == sign and not (sign.isalpha() and (after.isalnum() or after in ("_", "("))):
            return f"{what} is written {ours}" + (", as in A v B" if ours == "v" else "")
    return None


@dataclass(frozen=True, eq=False)
class Query:
    """What was asked. An event holds the tuples of values of `variables` that make it true, each once."""

    text: str
    variables: tuple[int, ...]
    kind: str  # "variable" or "event"
    satisfying: np.ndarray  # int32[s, k]; empty for a variable
    given: Query | None = None  # the condition of `A | B`; the query itself is then A ∧ B

    def __repr__(self) -> str:
        return f"Query({self.text!r}, {self.kind} over {len(self.variables)})"


def parse_query(text: str, model: FactorGraph) -> Query:
    """Read a query; `ParseError` and `UnknownName` show the place in its text."""
    whole = text.strip()
    if whole in model._index:
        return Query(text, (model.index(whole),), "variable", np.empty((0, 1), dtype=np.int32))
    tokens = _tokens(text)
    bars = [k for k, token in enumerate(tokens) if token.kind == "|" and not _open_brackets(tokens[:k])]
    if len(bars) == 1:
        return _conditional(text, tokens, bars[0], model)
    program = _postfix(tokens, text, model)
    if len(program) == 1 and isinstance(program[0], Literal) and program[0].bare and whole[:1] != "(":
        return Query(text, (program[0].variable,), "variable", np.empty((0, 1), dtype=np.int32))
    return _event(text, program, model)


def unconditional(queries: Sequence[Query]) -> list[Query]:
    """The queries, each `A | B` as A ∧ B and B."""
    return [part for query in queries for part in ((query,) if query.given is None else (query, query.given))]


def _open_brackets(tokens: Sequence[Token]) -> int:
    return sum((token.kind == "(") - (token.kind == ")") for token in tokens)


def _conditional(text: str, tokens: list[Token], bar: int, model: FactorGraph) -> Query:
    end = Token("end", "", tokens[bar].column)
    left = _postfix([*tokens[:bar], end], text, model)
    right = _postfix(tokens[bar + 1 :], text, model)
    condition = _event(f"{text} (the condition)", right, model)
    return replace(_event(text, [*left, *right, "^"], model), given=condition)


def _event(text: str, program: list[Literal | str], model: FactorGraph) -> Query:
    found = [step for step in program if isinstance(step, Literal)]
    for literal in found:
        if literal.bare and model.cards[literal.variable] > 2:
            name, card = model.names[literal.variable], model.cards[literal.variable]
            _refuse(f"{name} has {card} values: say which, as in {name}=0", text, literal.column)
    variables = tuple(dict.fromkeys(literal.variable for literal in found))
    if all(isinstance(step, Literal) or step == "^" for step in program):
        rows = _conjunction(found, variables)
    else:
        rows = _search(program, variables, model, text)
    rows.flags.writeable = False
    return Query(text, variables, "event", rows)


# --- words ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Literal:
    """Variable = value; `bare` where only the name was written."""

    variable: int
    value: int
    bare: bool
    column: int


@dataclass(frozen=True)
class Token:
    kind: str  # "name", or the operator itself, or "end"
    text: str
    column: int


def _refuse(message: str, text: str, column: int) -> NoReturn:
    raise ParseError(message, path="query", column=column, source=text)


def _unknown(error: UnknownName, text: str, column: int) -> NoReturn:
    raise UnknownName(str(ParseError(str(error), path="query", column=column, source=text))) from None


def _tokens(text: str) -> list[Token]:
    out, place = [], 0
    while place < len(text):
        if text[place].isspace():
            place += 1
        elif text[place] == '"':
            end = text.find('"', place + 1)
            if end < 0:
                _refuse("this quotation mark is never closed", text, place + 1)
            out.append(Token("name", text[place + 1 : end], place + 1))
            place = end + 1
        elif text[place] == "|" and text[place : place + 2] != "||":
            out.append(Token("|", "|", place + 1))
            place += 1
        elif symbol := SYMBOL.match(text, place):
            out.append(Token(symbol[0], symbol[0], place + 1))
            place = symbol.end()
        elif word := WORD.match(text, place):
            end = word.end() if word[0] == "v" else _bracket_end(text, word.end())
            out.append(Token("v" if word[0] == "v" else "name", text[place:end], place + 1))
            place = end
        else:
            cure = foreign_sign(text[place:]) or "put unusual names into double quotes"
            _refuse(f"unexpected {text[place]!r}; {cure}", text, place + 1)
    return [*out, Token("end", "", len(text) + 1)]


def _bracket_end(text: str, place: int) -> int:
    """Where the brackets attached to a word end."""
    while place < len(text) and text[place] in "([":
        start, depth = place, 0
        while True:
            if place == len(text):
                _refuse("this bracket is never closed", text, start + 1)
            depth += (text[place] in "([") - (text[place] in ")]")
            place += 1
            if depth == 0:
                break
    return place


# --- formulas, as programs in postfix form (no recursion: a query may be long) ---------------------------------


def _postfix(tokens: list[Token], text: str, model: FactorGraph) -> list[Literal | str]:
    if len(tokens) == 1 and not text.strip():
        _refuse("an empty query; name a variable, as in X0, or an event, as in X1=0 ^ X7=2", text, 1)
    program: list[Literal | str] = []
    waiting: list[Token] = []
    place, operand = 0, True  # whether an operand must come next
    while (token := tokens[place]).kind != "end":
        if operand and token.kind == "name":
            place = _literal(tokens, place, text, model, program)
            operand = False
            continue
        if operand and token.kind in ("!", "("):
            waiting.append(token)
        elif not operand and token.kind == ")":
            while waiting and waiting[-1].kind != "(":
                program.append(waiting.pop().kind)
            if not waiting:
                _refuse("no bracket is open here", text, token.column)
            waiting.pop()
        elif not operand and token.kind in BINDS and token.kind != "!":
            mine = BINDS[token.kind] + (token.kind == "=>")  # equal operators: => waits, the others go first
            while waiting and waiting[-1].kind != "(" and BINDS[waiting[-1].kind] >= mine:
                program.append(waiting.pop().kind)
            waiting.append(token)
            operand = True
        else:
            cure = foreign_sign(text[token.column - 1 :])
            _refuse(
                f"expected {_wanted(operand)}, found {token.text!r}" + (f"; {cure}" if cure else ""), text, token.column
            )
        place += 1
    if operand:
        _refuse(f"expected {_wanted(operand)}, but the query ends", text, token.column)
    while waiting:
        if waiting[-1].kind == "(":
            _refuse("this bracket is never closed", text, waiting[-1].column)
        program.append(waiting.pop().kind)
    return program


def _wanted(operand: bool) -> str:
    return "a variable" if operand else "an operator (^, v, =>, <=>)"


def _literal(tokens: list[Token], place: int, text: str, model: FactorGraph, program: list[Literal | str]) -> int:
    """Append `name`, `name=value` or `name!=value`; the place after it."""
    token = tokens[place]
    name = token.text if token.text in model._index else re.sub(r"\s+", "", token.text)
    try:
        variable = model.index(name)
    except UnknownName as error:
        if cure := foreign_sign(text[token.column - 1 :]):  # `not X0`
            _refuse(f"no variable is named {name!r}; {cure}", text, token.column)
        _unknown(error, text, token.column)
    if tokens[place + 1].kind not in ("=", "!="):
        program.append(Literal(variable, 1, True, token.column))
        return place + 1
    value = tokens[place + 2]
    if value.kind not in ("name", "v"):
        doubled = "; one = is enough" if value.kind == "=" else ""
        _refuse(f"expected a value of {name}{doubled}", text, value.column)
    try:
        program.append(Literal(variable, model.value(variable, value.text), False, token.column))
    except UnknownName as error:
        _unknown(error, text, value.column)
    if tokens[place + 1].kind == "!=":
        program.append("!")
    return place + 3


# --- the tuples that make an event true ------------------------------------------------------------------------


def _conjunction(found: list[Literal], variables: tuple[int, ...]) -> np.ndarray:
    values: dict[int, int] = {}
    for literal in found:
        if values.setdefault(literal.variable, literal.value) != literal.value:
            return np.empty((0, len(variables)), dtype=np.int32)
    return np.array([[values[i] for i in variables]], dtype=np.int32)


def _search(program: list[Literal | str], variables: tuple[int, ...], model: FactorGraph, text: str) -> np.ndarray:
    """Assign one variable after the other, dropping what already makes the formula false (Kleene's three values)."""
    rows = np.zeros((1, 0), dtype=np.int32)
    column = {variable: j for j, variable in enumerate(variables)}
    for variable in variables:
        card = int(model.cards[variable])
        if len(rows) * card > MOST_PARTIAL:
            _too_many(text, len(rows) * card, at_least=True)
        values = np.tile(np.arange(card, dtype=np.int32), len(rows))
        rows = np.column_stack([np.repeat(rows, card, axis=0), values])
        rows = rows[_possible(program, rows, column)]
    if len(rows) > MOST_TUPLES:
        _too_many(text, len(rows))
    return rows


def _too_many(text: str, count: int, at_least: bool = False) -> NoReturn:
    what = f"the list for the query {text[:60]!r}"
    cure = "ask about fewer variables, or about a conjunction of literals"
    raise TooLarge(what, count, MOST_TUPLES, cure, unit="combinations of values", at_least=at_least)


def _possible(program: list[Literal | str], rows: np.ndarray, column: dict[int, int]) -> np.ndarray:
    """Which partial assignments leave the formula able to be true."""
    stack: list[tuple[np.ndarray | bool, np.ndarray | bool]] = []  # (can be true, can be false)
    for step in program:
        if isinstance(step, Literal):
            j = column[step.variable]
            equal = rows[:, j] == step.value if j < rows.shape[1] else None
            stack.append((True, True) if equal is None else (equal, ~equal))
        elif step == "!":
            true, false = stack.pop()
            stack.append((false, true))
        else:
            (t2, f2), (t1, f1) = stack.pop(), stack.pop()
            if step == "^":
                stack.append((t1 & t2, f1 | f2))
            elif step == "v":
                stack.append((t1 | t2, f1 & f2))
            elif step == "=>":
                stack.append((f1 | t2, t1 & f2))
            else:
                stack.append(((t1 & t2) | (f1 & f2), (t1 & f2) | (f1 & t2)))
    return np.broadcast_to(np.asarray(stack[0][0]), (len(rows),))
