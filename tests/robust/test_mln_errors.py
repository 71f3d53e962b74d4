"""Mistakes in .mln and .db texts: one error of ours, with file, line, column, a caret, and the cure."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from definetti.errors import DefinettiError, ModelError, ParseError, TooLarge, UnknownName
from definetti.model.logic.ground import ground
from definetti.model.logic.text import format_mln
from definetti.readers.logic.mln import read_mln, read_mln_text

HEAD = "p = {A, B}\nq = {C}\nP(p)\nR(p,p)\nS(p,q)\n"  # five lines

MISTAKES = [
    # text of line 6, column, words of the message
    ("1 Pp(x)", 3, "no predicate is called Pp; did you mean P"),
    ("1 smokes(x)", 3, "no predicate is called smokes; known are P, R, S"),
    ("1 P(x,y)", 3, r"P\(p\) has 1 arguments, here are 2"),
    ("1 P", 3, r"P\(p\) has 1 arguments, here are 0"),
    ("1 S(x,y) ^ P(y)", 14, "y stands for a q at line 6, column 7 and cannot stand for a p here"),
    ("1 S(x,y) ^ x = y", 14, "x is a p and y is a q"),
    ("1 P(C)", 5, "sort p has no constant 'C'"),
    ("1 S(x,Cc)", 7, "did you mean C"),
    ("1 x = Zoe ^ P(x)", 7, "sort p has no constant 'Zoe'"),
    ("1 Zoe = A", 3, "no sort has the constant Zoe"),
    ("1 P(x).", 7, "a weight and a period together"),
    ("R(p,p)", 1, "predicate R is already declared in <text>, line 4; a formula needs a weight"),
    ("p = {Anna}", 1, "sort p is already declared in <text>, line 1"),
    ("1 x = y", 3, "x stands in no predicate"),
    ("1 P(x) ^ z != y", 10, "z stands in no predicate"),
    ("1 EXIST z P(x)", 9, "z stands in no predicate"),
    ("1 EXIST A P(A)", 9, "A is a constant"),
    ("1 EXIST x,x P(x)", 11, "names a variable twice"),
    ("1 EXIST x P(+x)", 13, r"\+ belongs before a free variable"),
    ("1 P(+A)", 5, r"\+ belongs before a variable"),
    ("1 P(x!)", 6, "! after an argument belongs into a predicate's declaration"),
    ("1 P(x", 6, "the text ends too early.*is still open"),
    ("1 P(x))", 7, r"expected .*the end of the line, not '\)'"),
    ("1 P(x) Q(x)", 8, "expected a connective"),
    ("1 ^ P(x)", 3, "expected"),
    ("1 P(x) P(v)", 8, "expected a connective"),
    ("1 v = x ^ P(x)", 3, "v alone is the connective"),
    ("1 P(x) => ", 10, "the text ends too early"),
    ("1 P(1x)", 5, "quote names that start with a digit"),
    ("1 P(-1)", 5, 'quote it: "-1"'),
    ('1 P("A)', 5, "never closed"),
    ("1 P(x) /* never", 8, "comment is never closed"),
    ("1 P(x) ; P(y)", 8, "has no meaning"),
    ("inf P(x)", 5, "a weight is a finite number"),
    ("1e400 P(x)", 1, "not finite; write a hard formula"),
    ("-1e308 P(x)", 1, "not finite; write a hard formula"),  # was unsatisfiable: the sum over two groundings is -inf
    ("log(0) P(x)", 5, "log needs a positive number"),
    ("r = {}", 1, "has no constants"),
    ("r = {A, A}", 9, "listed twice"),
    ("r = {1,...}", 8, "a range has the form"),
    ("r = {5,...,1}", 12, "ends at 1, before it starts"),
    ("r = {1,...,99999999999}", 12, "a range may hold"),
    ('#include "x.mln"', 10, "a model given as text cannot include files"),
    ("#define x", 1, "unknown directive"),
    ("1 " + "!" * 300 + "P(x)", None, "nested more than 200 deep"),
    ("1 " + "(!" * 5000 + "P(x)" + ")" * 5000, None, "nested more than 200 deep"),
    ("1 " + "P(x) => " * 5000 + "P(x)", None, "nested more than 200 deep"),
    ("1 " + "P(x) <=> " * 5000 + "P(x)", None, "nested more than 200 deep"),
    ("1 " + "EXIST y " * 5000 + "P(y)", None, "nested more than 200 deep"),
    ("1 " + " ^ ".join(["*P(x)"] * 11), None, "more than 10 atoms with"),
]


@pytest.mark.parametrize(("text", "column", "words"), MISTAKES)
def test_mistakes_point_at_their_place(text: str, column: int | None, words: str) -> None:
    with pytest.raises(ParseError, match=words) as caught:
        read_mln_text(HEAD + text + "\n")
    error = caught.value
    assert error.line == 6 and (column is None or error.column == column)
    last = str(error).splitlines()[-1]
    assert last.strip() == "^"
    if column is not None:
        assert last.index("^") == 4 + column - 1


def test_long_chains_are_no_nesting() -> None:
    model = read_mln_text(HEAD + "1 " + " ^ ".join(["P(x)"] * 5000))
    assert read_mln_text(format_mln(model)).formulas[0].body == model.formulas[0].body


DEEP = [
    "!" * 190 + "P(x)",
    "(" * 5000 + "P(x)" + ")" * 5000,
    "(!" * 190 + "P(x)" + ")" * 190,
    "P(x) => " * 190 + "P(x)",
    "P(x) <=> " * 190 + "P(x)",
    "".join(f"EXIST y{i} P(y{i}) ^ " for i in range(90)) + "P(x)",
    "(P(x) ^ !" * 60 + "P(x)" + ")" * 60,
]


@pytest.mark.parametrize("text", DEEP)
@pytest.mark.parametrize("weights", ["formula", "alchemy"])
def test_allowed_nesting_goes_all_the_way(text: str, weights: str) -> None:
    """Reading, printing, splitting and grounding are recursive: what may be read must not overflow them."""
    try:
        model = read_mln_text(HEAD + "1 " + text, weights=weights)
    except TooLarge:  # clauses may be too many
        assert weights == "alchemy"
        return
    if weights == "formula":
        assert read_mln_text(format_mln(model)).formulas[0].body == model.formulas[0].body
    with contextlib.suppress(TooLarge):
        ground(model)


EVIDENCE = [
    ("P(A)\nPp(A)", 2, 1, "no predicate is called Pp; did you mean P"),
    ("P(A)\n!P(A)", 2, 2, r"contradicting evidence: P\(A\) is false here and true in .*line 1"),
    ("?P(A)\nP(A)", 2, 1, "true here and unknown in .*line 1"),
    ("P(A,B)", 1, 1, "has 1 arguments, here are 2"),
    ("P(A)\nP(A,B)", 2, 1, "has 1 arguments, here are 2"),
    ("P(Zoe)", 1, 3, "sort p has no constant 'Zoe'"),
    ("  R(A, Zoe)", 1, 8, "sort p has no constant 'Zoe'"),
    ("P(a)", 1, 3, "sort p has no constant 'a'; did you mean A"),
    ("P(A) P(B)", 1, 6, "expected the end of the line, not 'P'"),
    ("P(A).", 1, 5, "expected the end of the line"),
    ("P(A", 1, 4, r"expected ',' or '\)', not the end"),
    ("P(", 1, 3, "expected a name"),
    ("!", 1, 2, "expected a name"),
    ("!!P(A)", 1, 2, "expected a name"),
    ("0.5 P(A)", 1, 1, "soft evidence"),
    ("P(A)\n/* open", 2, 1, "never closed"),
    ("P(A) $", 1, 6, "has no meaning"),
    ("\n\nP(A) /* open", 3, 6, "must end on its line"),
]


@pytest.mark.parametrize(("text", "line", "column", "words"), EVIDENCE)
def test_mistakes_in_evidence(tmp_path: Path, text: str, line: int, column: int, words: str) -> None:
    (tmp_path / "m.mln").write_text(HEAD)
    (tmp_path / "e.db").write_text(text)
    with pytest.raises(ParseError, match=words) as caught:
        read_mln(tmp_path / "m.mln", tmp_path / "e.db")
    assert (caught.value.path, caught.value.line, caught.value.column) == (tmp_path / "e.db", line, column)


def test_unknown_names_are_unknown_names() -> None:
    for text in ("1 Nope(x)", "1 P(Zoe)"):
        with pytest.raises(UnknownName):
            read_mln_text(HEAD + text)
    wrong: list[dict[str, Any]] = [{"closed_world": ["Pp"]}, {"open_world": ["Pp"]}, {"domain": {"pp": 3}}]
    for options in wrong:
        with pytest.raises(UnknownName, match="did you mean"):
            read_mln_text(HEAD, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"closed_world": ["P"], "open_world": ["P"]}, "open and closed at once"),
        ({"domain": {"p": 1}}, "2 are named"),
        ({"domain": {"p": 0}}, "at least 1"),
        ({"domain": {"p": 2.5}}, "at least 1"),
        ({"domain": {"p": 10**12}}, "too large: the domain of p"),
        ({"weights": "other"}, "'formula' or 'alchemy'"),
        ({"evidence": {"P(A)": "yes"}}, "True, False or None"),
        ({"evidence": {"!P(A)": True}}, "is no atom"),
        ({"evidence": {"": True}}, "is no atom"),
        ({"evidence": {"P(A)\nP(B)": True}}, "is no atom"),
    ],
)
def test_wrong_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinettiError, match=words):
        read_mln_text(HEAD, **options)


def test_a_sort_without_constants_names_the_cure() -> None:
    with pytest.raises(ModelError, match="--domain person=100"):
        read_mln_text("Smokes(person)\n1 Smokes(x)\n")


@pytest.mark.parametrize(
    ("evidence", "closed", "words"),
    [
        ({"T(A,Y)": True, "T(A,X)": True}, (), r"<evidence>:2:1: .*in T\(A,!\) more than one atom is true"),
        ({"T(A,X)": False, "T(A,Y)": False}, (), r"<evidence>:2:2: .*in T\(A,!\) no atom can be true"),
        ({"T(A,X)": True}, ("T",), r"gives T\(B,!\) no value"),
        ({"W(A)": False}, ("W",), r"gives W\(!\) no value"),
    ],
)
def test_blocks_have_one_value(evidence: dict[str, Any], closed: tuple[str, ...], words: str) -> None:
    with pytest.raises(DefinettiError, match=words):
        read_mln_text("p = {A, B, C}\nt = {X, Y}\nT(p, t!)\nW(p!)\n", evidence, closed_world=closed)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="there is no such file"):
        read_mln(tmp_path / "none.mln")
    with pytest.raises(ParseError, match="this is a directory"):
        read_mln(tmp_path)
    (tmp_path / "latin.mln").write_bytes(b"// \xe9\xff\n")
    with pytest.raises(ParseError, match="not UTF-8"):
        read_mln(tmp_path / "latin.mln")
    (tmp_path / "m.mln").write_text(HEAD)
    with pytest.raises(ParseError, match="there is no such file"):
        read_mln(tmp_path / "m.mln", [tmp_path / "none.db"])


def test_includes_stay_in_the_folder(tmp_path: Path) -> None:
    outside, inside = tmp_path / "secret.mln", tmp_path / "model"
    inside.mkdir()
    outside.write_text("p = {A}\n")
    (inside / "link.mln").symlink_to(outside)
    (inside / "sub").symlink_to(tmp_path)
    for name in ("../secret.mln", str(outside), "sub/secret.mln", "link.mln", "x/../../secret.mln", "C:\\\\x.mln", ""):
        (inside / "m.mln").write_text(f'\n#include "{name}"\n')
        with pytest.raises(ParseError, match="folder") as caught:
            read_mln(inside / "m.mln")
        assert (caught.value.line, caught.value.column) == (2, 10)
    (inside / "m.mln").write_text('#include "nothing.mln"\n')
    with pytest.raises(ParseError, match="there is no file"):
        read_mln(inside / "m.mln")


def test_includes_never_go_in_circles(tmp_path: Path) -> None:
    (tmp_path / "a.mln").write_text('#include "b.mln"\n')
    (tmp_path / "b.mln").write_text('#include "a.mln"\n')
    with pytest.raises(ParseError, match="includes itself"):
        read_mln(tmp_path / "a.mln")


def test_errors_name_the_included_file(tmp_path: Path) -> None:
    (tmp_path / "a.mln").write_text('#include "b.mln"\n')
    (tmp_path / "b.mln").write_text("\n1 P(x)\n")
    with pytest.raises(ParseError) as caught:
        read_mln(tmp_path / "a.mln")
    assert (Path(str(caught.value.path)).name, caught.value.line) == ("b.mln", 2)
