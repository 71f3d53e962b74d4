"""Files of other programs: what is read means what it means there, and the rest is refused by its name, with the place
and what to write instead. A text that is read as something else would be the worst."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import definetti as dft
from definetti.errors import ParseError

HEAD = "p = {A,B}\nP(p)\nQ(p)\nR(p,p)\nZ\n"


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("1 P(x), Q(x) => R(x,x)", 7, "a conjunction is written ^"),
        ("1 P(x) AND Q(x)", 8, "a conjunction is written ^"),
        ("1 NOT P(x)", 7, "a negation is written !"),
        ("1 P(x) <- Q(x)", 11, "Body => Head"),
        ("1.5: P(x)", 4, "a weight is one number"),
        ("1,5 P(x)", 2, "a weight is one number"),
        ("1/3 P(x)", 2, "a weight is one number"),
        ("-inf P(x)", 2, "with a period at its end"),
        ("inf P(x)", 5, "with a period at its end"),
        ("# a comment", 1, "a comment begins with //"),
        ("-- a comment", 2, "a comment begins with //"),
        ("q = 5", 1, "--domain"),
        ("1 P(Cup.n.01)", 8, "is quoted"),
        ("1 R(x,y), [x != y] => P(x)", 9, "conditions in brackets"),
        ("1 R(x,y) ^ x <> y", 15, "write x != y"),
        ("**W(p)", 2, "Tuffy's **"),
        ("@1.5 P(x)", 1, "Tuffy's marks"),
        ('[Label] "a" 1 P(x)', 9, "labels of formulas"),
        ("1 count(R(a,m)|m) >= 4", 15, "count constraints"),
        ("count(P(x)) = 2.", 1, "count constraints"),
        ("W(p who, p whom)", 5, "names of arguments"),
        ("1 x = y", 3, "its sort is unknown"),
        ("*P(p)", 2, "predicate P is already declared in <text>, line 2"),
        ("1 R v Z", 3, "has 2 arguments, here are 0"),
    ],
)
def test_refused_by_name_with_place_and_cure(line: str, column: int, words: str) -> None:
    with pytest.raises(ParseError) as caught:
        dft.markov_logic(f"{HEAD}{line}\n1 P(x)\n")
    assert words in str(caught.value) and (caught.value.line, caught.value.column) == (6, column)


def test_linked_in_functions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.mln").write_text('#include "max.cpp"\nP(p)\n')
    with pytest.raises(ParseError, match="linked-in functions") as caught:
        dft.read(tmp_path / "m.mln")
    assert (caught.value.line, caught.value.column) == (1, 10)


def test_pracmln_versions_differ() -> None:
    """Older ones read P ^ Q v S as P ^ (Q v S), newer ones as (P ^ Q) v S, where `?` marks variables."""
    head = "p = {a,b}\nP(p)\nQ(p)\n"
    for line in (
        "P(?x) ^ Q(?x) v P(b)",
        "P(?x) v Q(?x) ^ P(b)",
        "!(P(?x) v Q(?x) ^ P(b))",
        "P(b) => P(?x) ^ Q(a) v Q(b)",
    ):
        with pytest.raises(ParseError, match="put brackets around one"):
            dft.markov_logic(f"{head}1 {line}\n")
    one = dft.markov_logic(f"{head}1 (P(?x) ^ Q(?x)) v P(b)\n1 P(?x) ^ Q(a) => Q(b) v P(b)\n")
    two = dft.markov_logic(f"{head}1 P(x) ^ Q(x) v P(b)\n1 P(x) ^ Q(a) => Q(b) v P(b)\n")
    assert [f.body for f in one.formulas] == [f.body for f in two.formulas]


def test_no_word_is_a_constant_and_a_variable_in_one_formula() -> None:
    head = "p = {anna, Bob}\nq = {x1, X2}\nP(p)\nQ(q)\n"
    with pytest.raises(ParseError, match="x1 is a constant of sort q here and a variable elsewhere") as caught:
        dft.markov_logic(head + "1 P(x1) ^ Q(x1)\n")
    assert (caught.value.line, caught.value.column) == (5, 13)
    quoted = dft.markov_logic(head + '1 P(x1) ^ Q("x1")\n').formulas[0]
    assert quoted.free == ("x1",) and quoted.sorts == {"x1": "p"}


def test_equality_gives_a_sort() -> None:
    """As in Alchemy: what is equal to a person is a person; a listed constant stays one."""
    head = "p = {anna, Bob}\nP(p)\n0.3 P(x)\n"
    same = [
        ("1 x = y ^ P(x)", "1 P(x) ^ P(y) ^ x = y"),
        ("1 x = y ^ y = z ^ P(z)", "1 P(x) ^ P(y) ^ x = y ^ y = z ^ P(z)"),
        ("1 x != anna ^ P(x)", '1 x != "anna" ^ P(x)'),
        ("1 P(x) ^ anna = x", '1 P("anna")'),
    ]
    for one, other in same:
        first, second = (dft.exact(dft.markov_logic(head + text), ["P(anna)", "P(Bob)"]) for text in (one, other))
        for atom in ("P(anna)", "P(Bob)"):
            assert first[atom].probability == pytest.approx(second[atom].probability, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "weight"),
    [("-2.E1", -20.0), ("2.5e-1", 0.25), ("1E2", 100.0), (".5", 0.5), ("5.", 5.0), ("+3", 3.0), ("- 1.5", -1.5),
     ("log(0.3 / 0.6)", -math.log(2)), ("-float('inf')", None), ("log(2)/log(4)", 0.5)],
)  # fmt: skip
def test_weights(text: str, weight: float | None) -> None:
    (formula,) = dft.markov_logic(f"p = {{A}}\nP(p)\n{text} P(x)\n").formulas
    assert formula.weight == (None if weight is None else pytest.approx(weight))


# --- lists of constants in evidence files -----------------------------------------------------------------------------


def test_lists_in_evidence_hold_constants_only() -> None:
    """Comments and dots are none."""
    text = 'p = {Anna,  // the first\n  /* none, of these */ "B }c", eve-2, 7,\n Zoë }  // the end\nP(Anna)\n'
    model = dft.markov_logic("P(p)\n1 P(x)\n", text)
    assert sorted(model.sorts["p"].constants) == sorted(["Anna", "B }c", "eve-2", "7", "Zoë"])
    counted = dft.markov_logic("P(p)\n1 P(x)\n", "p = { 1 , ... , 4 }\nP(2)\n")
    assert counted.sorts["p"].constants == ("1", "2", "3", "4")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("p = {1,...,3,7}", (1, 8), "a range has the form"),
        ("p = {1,2,...,5}", (1, 10), "a range has the form"),
        ("p = {A, B(c)}", (1, 9), "quote it"),
        ("p = {A,\n x=y}", (2, 2), "quote it"),
        ("p = {A, /* b\n c */ D}", (1, 9), "must end on its line"),
        ("p = {A} P(A)", (1, 8), "a line of its own"),
        ("p = {A,\n B", (1, 5), "never closed"),
        ("P(A) = 0.5", (1, 1), "soft evidence"),
        ("P(A) = True", (1, 1), "said by a sign"),
    ],
)
def test_wrong_lists_and_values(text: str, place: tuple[int, int], words: str) -> None:
    with pytest.raises(ParseError, match=words) as caught:
        dft.markov_logic("P(p)\n1 P(x)\n", text)
    assert (caught.value.line, caught.value.column) == place
