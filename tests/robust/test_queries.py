"""The query language: what it reads, and what it says about what it cannot read."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definetti.errors import DefinettiError, ParseError, TooLarge, UnknownName
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.model.queries import parse_query

CARDS = {"X0": 2, "X1": 2, "X2": 3, "Friends(Anna,Bob)": 2, "P[1,(2)]": 2, "v": 2, "odd name": 2, "one": 1}
MODEL = factor_graph(CARDS, [])


def rows(text: str, model: FactorGraph = MODEL) -> set[tuple[int, ...]]:
    query = parse_query(text, model)
    assert query.kind == "event" and query.text == text
    assert query.satisfying.dtype == np.int32 and query.satisfying.shape[1] == len(query.variables)
    found = [tuple(int(v) for v in row) for row in query.satisfying]
    assert len(set(found)) == len(found)
    return set(found)


@pytest.mark.parametrize(
    ("text", "number"),
    [("X2", 2), (" X0 ", 0), ("Friends(Anna,Bob)", 3), ("Friends( Anna, Bob )", 3), ('"odd name"', 6), ("v", 5)],
)
def test_a_variable(text: str, number: int) -> None:
    query = parse_query(text, MODEL)
    assert query.kind == "variable" and query.variables == (number,)


def test_conjunctions() -> None:
    query = parse_query("X1=0 ^ X2=2 ^ Friends(Anna,Bob)", MODEL)
    assert query.variables == (1, 2, 3)
    assert query.kind == "event" and query.satisfying.tolist() == [[0, 2, 1]]
    assert rows("X1=0^X1=0") == {(0,)}
    assert rows("X1=0 ^ X1=1") == set()
    assert rows("!X0 ^ X1") == {(0, 1)}
    assert rows("X2=2") == {(2,)}
    assert rows("(X1)") == {(1,)}
    assert rows("one=0") == {(0,)} and rows("one ^ X0") == {(1, 1)} and rows("!one ^ X0") == {(0, 1)}


def test_a_spin_has_the_value_minus_one() -> None:
    spins = replace(MODEL, value_names={0: ("-1", "1"), 1: ("-1", "1")})
    assert rows("X0=-1 ^ X1=1", spins) == {(0, 1)}
    assert rows("X0!=-1 v X1 = -1", spins) == rows('X0!="-1" v X1="-1"', spins)


def test_formulas() -> None:
    assert rows("!X0") == {(0,)}
    assert rows("!!X0") == {(1,)}
    assert rows("X0 v !X0") == {(0,), (1,)}
    assert rows("X2!=1") == {(0,), (2,)}
    assert rows("X0 v(X1)") == {(0, 1), (1, 0), (1, 1)}
    assert rows('"v" v X1') == {(0, 1), (1, 0), (1, 1)}
    assert rows("P[1,(2)]=0 => X2=1") == {(0, 1), (1, 0), (1, 1), (1, 2)}
    assert rows("X0 => X1 => X0") == {(0, 0), (0, 1), (1, 0), (1, 1)}  # to the right
    assert rows("(X0 => X1) => X0") == {(1, 0), (1, 1)}
    assert rows("X0 <=> X1") == {(0, 0), (1, 1)}


NAMES = ["a", "b", "c", "d"]
BINDS = {"^": 4, "v": 3, "=>": 2, "<=>": 1}


def test_precedence_and_meaning_against_python() -> None:
    model = factor_graph(dict.fromkeys(NAMES, 2), [])
    truth = {
        "^": lambda p, q: p and q,
        "v": lambda p, q: p or q,
        "=>": lambda p, q: not p or q,
        "<=>": lambda p, q: p == q,
    }
    for one, two, three in itertools.product(BINDS, repeat=3):
        text = f"a {one} !b {two} c {three} d"

        def value(parts: list, ops: list[str]) -> bool:
            if not ops:
                return parts[0]
            lowest = min(BINDS[op] for op in ops)
            places = [j for j, op in enumerate(ops) if BINDS[op] == lowest]
            j = places[0] if ops[places[0]] == "=>" else places[-1]
            return bool(truth[ops[j]](value(parts[: j + 1], ops[:j]), value(parts[j + 1 :], ops[j + 1 :])))

        states = itertools.product([0, 1], repeat=4)
        expected = {s for s in states if value([bool(s[0]), not s[1], bool(s[2]), bool(s[3])], [one, two, three])}
        assert rows(text, model) == expected, text


def test_named_values() -> None:
    model = replace(factor_graph({"sky": 3, "wet": 2}, []), value_names={0: ("blue", "grey", "dark-grey")})
    assert rows("sky=grey", model) == {(1,)}
    assert rows("sky=dark-grey ^ wet", model) == {(2, 1)}
    with pytest.raises(UnknownName, match="blue, grey, dark-grey"):
        parse_query("sky=green", model)


@pytest.mark.parametrize(
    ("text", "column", "error", "says"),
    [
        ("", 1, ParseError, "empty query"),
        ("X0 ^", 5, ParseError, "the query ends"),
        ("X0 X1", 4, ParseError, "expected an operator"),
        ("^ X0", 1, ParseError, "expected a variable"),
        ("(X0 ^ X1", 1, ParseError, "never closed"),
        ("X0)", 3, ParseError, "no bracket is open"),
        ("X0 ^ Friends(Anna", 13, ParseError, "never closed"),
        ('X0 ^ "odd', 6, ParseError, "never closed"),
        ("X0 & X1", 4, ParseError, "unexpected '&'"),
        ("X1=", 4, ParseError, "expected a value of X1"),
        ("X0 ^ X1=^", 9, ParseError, "expected a value of X1"),
        ("X2 ^ X0", 1, ParseError, "X2 has 3 values"),
        ("X0 v X9", 6, UnknownName, "no variable is named 'X9'"),
        ("X0 ^ X1=7", 9, UnknownName, "its values are 0 to 1"),
        ("X0 ! X1", 4, ParseError, "expected an operator"),
    ],
)
def test_mistakes_show_their_place(text: str, column: int, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        parse_query(text, MODEL)
    lines = str(caught.value).split("\n")
    assert lines[0].startswith(f"query:{column}: ") and says in lines[0]
    assert lines[2].index("^") - 4 == column - 1


def test_many_variables() -> None:
    n = 3000
    model = factor_graph([2] * n, [])
    query = parse_query(" ^ ".join(f"X{i}={i % 2}" for i in range(n)), model)
    assert query.satisfying.shape == (1, n)
    assert rows(" ^ ".join(f"!X{i}" for i in range(40)), model) == {(0,) * 40}
    with pytest.raises(TooLarge) as caught:
        parse_query(" v ".join(f"X{i}" for i in range(40)), model)
    assert caught.value.limit == 100_000
    deep = "(" * 5000 + "X0" + ")" * 5000
    assert rows(deep, model) == {(1,)}
    assert rows("!" * 5000 + "X0", model) == {(1,)}


PIECES = ["X0", "X2", "v", "^", "!", "=", "=>", "<", ">", "(", ")", '"', " ", "1", "é", "[", "]", ",", "\n"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    with contextlib.suppress(DefinettiError):
        parse_query("".join(pieces), MODEL)


@pytest.mark.parametrize(
    ("text", "cure"),
    [("not X0", "a negation is written !"), ("X0 == 1", "one = is enough"), ("X0 and X1", "a conjunction is written")],
)
def test_other_languages(text: str, cure: str) -> None:
    with pytest.raises(ParseError, match=cure):
        parse_query(text, MODEL)
