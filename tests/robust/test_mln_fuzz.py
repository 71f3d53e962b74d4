"""Mutilated texts: the reader raises only our errors, and names that look like Python code are only names."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definetti.errors import DefinettiError
from definetti.model.logic.ground import ground
from definetti.model.logic.text import atom_name, format_db, format_mln
from definetti.model.logic.theory import MarkovLogic, Predicate, Sort
from definetti.readers.logic.mln import read_mln, read_mln_text
from definetti.readers.logic.queries import parse_query
from definetti.solvers.exact import exact

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = """person = {Anna, Bob, "two words"}
n = {1,...,3}
Smokes(person)
Friends(person, person)
Age(person, n!)
Rain
1.5 Smokes(x) => !Rain v x = Anna // comment
-0.3 *Smokes(x) ^ Age(x,+k) /* more */
log(0.3) EXIST y (Friends(x,y) ^ x != y)
Friends(x,y) => FORALL z Friends(y,z).
"""
EVIDENCE = 'Smokes(Anna)\n!Smokes(Bob)\n?Friends(Anna, "two words") // so\n/* a\nb */\nAge(Bob,2)\nRain\n'
PIECES = [
    "(", ")", "{", "}", "!", "?", "^", "v", "=>", "<=>", "=", "!=", ".", "...", ",", "+", "*", '"', "\\", "/*", "*/",
    "//", "\n", " ", "#include", "EXIST", "FORALL", "x", "Anna", "Smokes", "1", "-1e9", "log(", "\0", "\r", "é", "²",
    "\u2028", "٣",
]  # fmt: skip


@st.composite
def mutilated(draw: st.DrawFn, text: str) -> str:
    """A text with pieces cut out, put in and doubled."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        to = draw(st.integers(at, min(len(text), at + 12)))
        put = draw(st.sampled_from(PIECES) | st.text(max_size=3) | st.just(text[at:to] * 2))
        text = text[:at] + put + text[to:]
    return text


@settings(derandomize=True, deadline=None, max_examples=250)
@given(mutilated(MODEL), st.sampled_from(["formula", "alchemy"]))
def test_mutilated_models(text: str, weights: str) -> None:
    try:
        model = read_mln_text(text, weights=weights)
    except DefinettiError:
        return  # refused, as it should be
    again = read_mln_text(format_mln(model))
    assert again.sorts == model.sorts and again.predicates == model.predicates


@settings(derandomize=True, deadline=None, max_examples=250)
@given(mutilated(EVIDENCE))
def test_mutilated_evidence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    (folder / "fuzz.mln").write_text(MODEL)
    (folder / "fuzz.db").write_text(text, encoding="utf-8", errors="replace")
    try:
        model = read_mln(folder / "fuzz.mln", folder / "fuzz.db")
    except DefinettiError:
        return  # refused, as it should be
    (folder / "again.db").write_text(format_db(model), encoding="utf-8")
    assert format_db(read_mln(folder / "fuzz.mln", folder / "again.db")) == format_db(model)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(mutilated('Friends(Anna,"two words") ^ !Smokes(Bob) => Rain v Anna = Bob'))
def test_mutilated_queries(text: str) -> None:
    model = read_mln_text(MODEL)
    with contextlib.suppress(DefinettiError):
        parse_query(model, text)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    with contextlib.suppress(DefinettiError):
        read_mln_text(text)
    with contextlib.suppress(DefinettiError):
        read_mln_text(MODEL, {text: True})


@settings(derandomize=True, deadline=None, max_examples=100)
@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=4, unique=True))
def test_any_constant_can_be_quoted(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    """Every name survives being printed and read back, in the model and in the evidence."""
    names = [name for name in names if not any("\ud800" <= c <= "\udfff" for c in name)] or ["A"]
    model = MarkovLogic({"p": Sort("p", tuple(names))}, {"P": Predicate("P", ("p",))}, ())
    again = read_mln_text(format_mln(model))
    assert again.sorts["p"].constants == tuple(names)
    file = tmp_path_factory.getbasetemp() / "names.db"
    file.write_text("".join(atom_name("P", [name]) + "\n" for name in names), encoding="utf-8", newline="")
    (tmp_path_factory.getbasetemp() / "names.mln").write_text(format_mln(model), encoding="utf-8", newline="")
    read = read_mln(tmp_path_factory.getbasetemp() / "names.mln", file)
    assert read.evidence["P"].values.sum() == len(names)


def test_words_of_the_language_are_names_in_quotes() -> None:
    names = ("FORALL", "Exist", "EXISTS", "TRUE", "V", "LOG", "v")
    model = MarkovLogic({"p": Sort("p", names)}, {"P": Predicate("P", ("p",))}, ())
    assert read_mln_text(format_mln(model)).sorts["p"].constants == names


def test_variables_in_equalities_alone_are_spelled_out() -> None:
    """Clauses may leave a variable in no predicate; a file cannot say its sort."""
    text = "p = {A, B, C}\nP(p)\n0.7 P(x) => x = A ^ P(B)\n(P(x) ^ P(y)) v x = A ^ y = B.\n"
    model = read_mln_text(text, weights="alchemy")
    again = read_mln_text(format_mln(model))
    one, two = exact(model), exact(again)
    assert two.log_z == pytest.approx(one.log_z, abs=1e-9)
    assert [two[name].probability for name in two.members] == pytest.approx([one[n].probability for n in two.members])


def test_names_like_code_are_names(tmp_path: Path) -> None:
    text = """__import__(exec)
exec = {"__import__('os').system('touch harm')", None, True}
eval(exec, exec)
lambda(exec)
1 __import__(x) ^ eval(x, None) => lambda(x)
0.5 eval(class, "__import__('os').system('touch harm')")
"""
    model = read_mln_text(text, {"lambda(None)": True})
    graph = ground(model)
    assert graph.n == 3 + 9 + 3
    assert not Path("harm").exists()
    assert parse_query(model, "__import__(True) ^ lambda(None)")


WORDS = [
    r"P(x)",
    r"R(x,y)",
    r"f(x)",
    r"f(f(x))",
    r"=",
    r"!=",
    r"<",
    r"+",
    r"-",
    r"*",
    r"/",
    r"%",
    r"(",
    r")",
    r"[",
    r"]",
    r"v",
    r"^",
    r"=>",
    r"|",
    r"&",
    r"~",
    r"->",
    r"<->",
    r"EXIST",
    r"\forall",
    r"#",
    r"{",
    r"}",
    r":",
    r"?x",
    r"1",
    r"2.5",
    r"log(2)",
    r"logx(0)",
    r"-float('inf')",
    r".",
    r"!",
    r"A",
    r"b",
    r"'",
    r'"q"',
    r"++",
    r"t'",
    r"#P",
    r"#{x:",
    r"é",
    r"1e999",
    r"//",
    r"/*",
    r"...",
    r"succ(x)",
    r"i+1",
    "\n",
    "\x00",
    "EXIST x",
]


@pytest.mark.parametrize("place", ["line", "query", "evidence"])
def test_words_in_any_order(place: str) -> None:
    """Sentences of the language's words: read, or refused with an error of ours."""
    import random

    rng, head = random.Random(5), "p = {A, b, 3, 4}\nP(p)\nR(p,p)\np f(p)\n"
    model = read_mln_text(head)
    for _ in range(300):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9)))
        with contextlib.suppress(DefinettiError):
            if place == "line":
                read_mln_text(head + text + "\n")
            elif place == "query":
                parse_query(model, text)
            else:
                read_mln_text(head, text + "\nP(A)")
