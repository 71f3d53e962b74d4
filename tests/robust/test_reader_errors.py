"""Malformed files: an error that names file, line, column and what was expected; never another exception."""

from __future__ import annotations

import re
from pathlib import Path

import dimod
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definetti.errors import DefinettiError, ModelError, ParseError, TooLarge
from definetti.model.graph.factors import factor_graph
from definetti.readers.graph.adapters import adapt
from definetti.readers.graph.fg import read_fg
from definetti.readers.graph.uai import read_evid, read_uai
from definetti.readers.reading import read

UAI = "MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 4.0 2.4\n 1.0 0.0\n\n6\n 1 2 3\n 4 5 6\n"
FG = "# two factors\n2\n\n2\n7 3\n2 3\n3\n0 1.5\n1 2\n5 8\n\n1\n3\n3\n1\n2 1\n"
MODEL = factor_graph([2, 2, 3], [((0, 1), [1, 2, 3, 4])])


def expect(read_file, path: Path, text: str | bytes, line: int, column: int, words: str) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ParseError) as caught:
        read_file(path)
    error = caught.value
    assert (error.path, error.line, error.column) == (path, line, column), str(error)
    assert re.search(words, error.message), error.message
    assert str(error).startswith(f"{path}:{line}:{column}: ")
    if error.source is not None:
        shown, caret = str(error).splitlines()[-2:]
        assert error.source.startswith(shown[4:])
        assert len(caret) == 4 + column


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        (UAI, "", 1, 1, "expected MARKOV or BAYES, but the file ends"),
        (UAI, " \n\n ", 1, 1, "expected MARKOV or BAYES, but the file ends"),
        ("MARKOV", "MARKOW", 1, 1, "expected MARKOV or BAYES, found 'MARKOW'"),
        ("MARKOV\n3", "MARKOV\nthree", 2, 1, "expected the number of variables, found 'three'"),
        ("MARKOV\n3", "MARKOV\n-3", 2, 1, "expected the number of variables, found '-3'"),
        ("MARKOV\n3", "MARKOV\n3.0", 2, 1, "expected the number of variables, found '3.0'"),
        (
            "MARKOV\n3",
            "MARKOV\n99999999999999",
            14,
            7,
            "the numbers of values of 99999999999999 variables, but the file",
        ),
        ("2 2 3", "2 0 3", 3, 3, r"expected the number of values of X1 \(1 or more\), found '0'"),
        ("2 2 3", "2 2 -3", 3, 5, "expected the number of values of X2 .*, found '-3'"),
        ("2 2 3", "2 2 99999999999999999999", 3, 5, "expected the number of values of X2 .*, found '9999"),
        ("2 2 3", "2 2_0 3", 3, 3, "expected the number of values of X1 .*, found '2_0'"),
        ("3\n2\n2 0", "3\nx\n2 0", 4, 1, "expected the number of factors, found 'x'"),
        ("2 0 1", "-2 0 1", 5, 1, "expected the number of variables of factor 0, found '-2'"),
        ("2 0 1", "4 0 1", 5, 1, "factor 0 cannot be over 4 variables: the model has 3"),
        ("2 1 2", "2 1 3", 6, 5, "expected a variable from 0 to 2 in factor 1, found '3'"),
        ("2 1 2", "2 -1 2", 6, 3, "expected a variable from 0 to 2 in factor 1, found '-1'"),
        ("2 1 2", "2 1 1", 6, 5, "factor 1 has the variable 1 twice"),
        ("2 1 2", "2 1 1e0", 6, 5, "expected a variable from 0 to 2 in factor 1, found '1e0'"),
        ("\n4\n", "\n5\n", 8, 1, r"expected the table size of factor 0 \(2 × 2 = 4\), found '5'"),
        (
            "\n6\n",
            "\n1000000000000\n",
            12,
            1,
            r"expected the table size of factor 1 \(2 × 3 = 6\), found '1000000000000'",
        ),
        ("1.0 0.0", "1.0", 13, 2, "factor 1 .*found '1'; the table of factor 0 may have too few or too many"),
        (
            "1.0 0.0",
            "1.0 0.0 0.5",
            10,
            10,
            "expected the table size of factor 1 .*, found '0.5'; the table of factor 0",
        ),
        (
            "2.4",
            "-2.4",
            9,
            6,
            "a finite number that is not negative, entry 2 of 4 in the table of factor 0, found '-2.4'",
        ),
        ("2.4", "nan", 9, 6, "a finite number that is not negative, entry 2 of 4 .*, found 'nan'"),
        ("2.4", "inf", 9, 6, "a finite number .*, found 'inf'"),
        ("2.4", "1e999", 9, 6, "a finite number .*, found '1e999'"),
        ("2.4", "1e-999", 9, 6, "'1e-999' is too small for a double"),
        ("2.4", "2,4", 9, 6, "expected a number, entry 2 of 4 in the table of factor 0, found '2,4'"),
        ("2.4", "2_4", 9, 6, "expected a number, entry 2 of 4 .*, found '2_4'"),
        ("2.4", "0x1", 9, 6, "expected a number, entry 2 of 4 .*, found '0x1'"),
        ("2.4", "\t é", 9, 8, "expected a number, entry 2 of 4 .*, found 'é'"),
        ("4 5 6", "é 5 x", 14, 2, "entry 4 of 6 in the table of factor 1, found 'é'"),
        ("4 5 6", "4 5", 14, 5, "expected 6 entries in the table of factor 1, but the file ends here"),
        ("4 5 6", "4 5 6 7", 14, 8, "expected the end of the file after the tables of 2 factors, found '7'"),
        ("\n6\n 1 2 3\n 4 5 6\n", "", 10, 9, "expected the table size of factor 1 .*, but the file ends here"),
        (UAI[UAI.index("1 2\n\n") :], "", 6, 2, "expected the 2 variables of factor 1, but the file ends here"),
        (UAI[UAI.index("2 1 2") :], "", 5, 6, "expected the number of variables of factor 1, but the file ends here"),
        (" 1 2 3\n 4 5 6", " 0 0 -0\n 0.0 0e3 0", 13, 2, "the table of factor 1 is all zeros"),
    ],
)
def test_malformed_uai(tmp_path, old: str, new: str, line: int, column: int, words: str) -> None:
    assert UAI.count(old) >= 1
    expect(read_uai, tmp_path / "m.uai", UAI.replace(old, new, 1), line, column, words)


def test_uai_of_enormous_scopes_takes_no_memory(tmp_path) -> None:
    n = 5000
    text = f"MARKOV\n{n}\n{'1000000000 ' * n}\n1\n{n} {' '.join(map(str, range(n)))}\n\n8\n1 1"
    expect(read_uai, tmp_path / "m.uai", text, 7, 1, "expected the table size of factor 0, found '8'")
    text = "MARKOV 40 " + "2 " * 40 + "1 40 " + " ".join(map(str, range(40))) + f"\n{2**40}\n1 1"
    expect(read_uai, tmp_path / "m.uai", text, 3, 4, f"expected {2**40} entries in the table of factor 0, but the file")


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "words"),
    [
        (FG, "# nothing\n", 1, 1, "expected the number of factors, but the file ends"),
        ("\n2\n\n", "\nx\n\n", 2, 1, "expected the number of factors, found 'x'"),
        ("7 3\n", "7 -3\n", 5, 3, "expected a variable's label in factor 0, found '-3'"),
        ("7 3\n", "7 7\n", 5, 3, "factor 0 has the variable 7 twice"),
        ("2 3\n3\n0", "2 0\n3\n0", 6, 3, r"expected the number of values of X3 \(1 or more\), found '0'"),
        (
            "1\n3\n3\n",
            "1\n3\n4\n",
            14,
            1,
            r"expected the number of values of X3 \(it has 3 in an earlier factor\), found '4'",
        ),
        ("2 3\n3\n", "2 3\n7\n", 7, 1, "expected at most 6 entries in factor 0, the size of its table, found '7'"),
        ("2 3\n3\n", "2 3\n0\n", 7, 1, "the table of factor 0 is all zeros"),
        ("0 1.5\n1 2\n5 8", "0 0\n1 0\n5 0", 7, 1, "the table of factor 0 is all zeros"),
        ("5 8", "6 8", 10, 1, "expected a place from 0 to 5 in the table of factor 0, found '6'"),
        ("5 8", "-1 8", 10, 1, "expected a place from 0 to 5 in the table of factor 0, found '-1'"),
        ("5 8", "1 8", 10, 1, "the place 1 in the table of factor 0 is given twice"),
        ("5 8", "5 -8", 10, 3, "a finite number that is not negative, an entry of factor 0, found '-8'"),
        ("5 8", "5 nan", 10, 3, "a finite number .*, found 'nan'"),
        ("5 8", "5 eight", 10, 3, "expected a number, an entry of factor 0, found 'eight'"),
        ("1 2\n", "1 2 # a comment with 9\n", 0, 0, ""),
        ("\n1\n2 1\n", "\n2\n2 1\n", 16, 4, "expected 2 pairs of place and value in factor 1, but the file ends"),
        ("\n2 1\n", "\n2 1 # end\n5\n", 17, 1, "expected the end of the file after 2 factors, found '5'"),
        ("\n1\n3\n3\n1\n2 1\n", "", 10, 4, "expected the number of variables of factor 1, but the file ends"),
        ("\n3\n3\n1\n2 1\n", "\n3", 13, 2, "expected 1 labels.* of factor 1, but the file ends"),
    ],
)
def test_malformed_fg(tmp_path, old: str, new: str, line: int, column: int, words: str) -> None:
    assert FG.count(old) >= 1
    text = FG.replace(old, new, 1)
    if line:
        expect(read_fg, tmp_path / "m.fg", text, line, column, words)
    else:  # a control: this change is legal
        (tmp_path / "m.fg").write_text(text)
        assert read_fg(tmp_path / "m.fg").n == 2


def test_fg_of_an_enormous_table_is_refused_before_memory_is_taken(tmp_path) -> None:
    path = tmp_path / "m.fg"
    path.write_text("1\n\n3\n0 1 2\n100000 100000 100000\n1\n0 1\n")
    with pytest.raises(TooLarge) as caught:
        read_fg(path)
    assert caught.value.size == 1e15


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, r"the number of observed variables \(0 if there are none\), but the file ends"),
        ("x", 1, 1, "the number of observed variables .*, found 'x'"),
        ("-1 0 0", 1, 1, "the number of observed variables .*, found '-1'"),
        ("2 1 0\n3 1", 2, 1, r"expected one of the model's 3 variables \(X0 to X2\), found '3'"),
        ("2 1 0\n-2 1", 2, 1, "expected a variable, found '-2'"),
        ("1 1 2", 1, 5, r"expected a value of X1 \(0 to 1\), found '2'"),
        ("1\n1 1 -1", 2, 5, r"expected a value of X1 \(0 to 1\), found '-1'"),
        ("1 1 yes", 1, 5, r"expected a value of X1 \(0 to 1\), found 'yes'"),
        ("2 1 0\n1 1", 2, 3, "contradicting evidence on X1: 0 and 1"),
        ("2 1 0 2", 1, 8, r"expected 2 pairs .* \(4 numbers, there are 3\), but the file ends"),
        ("1 1 0 2 1", 1, 7, "expected the end of the file after 1 pairs .*, found '2'"),
        ("1\n2 1 0\n", 2, 6, r"expected 2 pairs .* \(4 numbers, there are 2\), but the file ends"),
        ("1\n1 1 0 2", 2, 7, "expected the end of the file after 1 pairs .*, found '2'"),
        ("99999999999999999999 1 0", 1, 25, "pairs .*, but the file ends"),
        ("2\n1 1 0\n1 1 1\n", 1, 1, "2 samples .*own file"),
        ("3\n1 1 0\n0\n2 0 1 2 2\n", 1, 1, "3 samples .*own file"),
        ("2\n1 1 0\n0\n", 1, 1, "2 samples .*own file"),  # also two pairs (1, 1) and (0, 0): the layout decides
    ],
)
def test_malformed_evidence(tmp_path, text: str, line: int, column: int, words: str) -> None:
    expect(lambda path: read_evid(path, MODEL), tmp_path / "m.evid", text, line, column, words)


def test_evidence_against_what_is_observed_already(tmp_path) -> None:
    model = MODEL.condition({"X1": 1})
    expect(
        lambda p: read_evid(p, model), tmp_path / "m.evid", "1\n1 1 0", 2, 5, "contradicting evidence on X1: 1 and 0"
    )


def test_files_that_are_no_text(tmp_path) -> None:
    expect(
        read,
        tmp_path / "m.uai",
        UAI.replace("2.4", "2\u00b74").encode("latin-1"),
        9,
        7,
        "not UTF-8 .* save it as UTF-8",
    )
    expect(read, tmp_path / "m.uai", UAI.encode("utf-16"), 1, 1, "not UTF-8 .* save it as UTF-8")
    expect(read, tmp_path / "m.uai", b"\x1f\x8b\x08\x00" * 9, 1, 2, "not UTF-8 .*decompress")
    expect(read, tmp_path / "m.uai", b"MARKOV\n3\x00", 2, 1, "the number of variables")


def test_long_lines_show_the_place(tmp_path) -> None:
    text = "MARKOV 1 2 1 1 0 2 1" + " " * 100_000 + "x" * 500
    path = tmp_path / "m.uai"
    path.write_text(text)
    with pytest.raises(ParseError) as caught:
        read(path)
    assert caught.value.column == 100_021
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.uai", "no such file"),
        ("none.fg", "no such file"),
        ("none.mln", "no such file"),
        ("none.xyz", "no such file"),
        ("folder.uai", "directory"),
        ("folder", "directory"),
        ("text.txt", r"ends in one of \.uai, \.fg, \.mln"),
        ("plain", r"ends in one of \.uai, \.fg, \.mln"),
        ("m.evid", "evidence; give the model first"),
        ("m.uai.gz", "compressed; decompress"),
        ("nul\0.uai", "cannot be read"),
        ("nul\0", "cannot be read|no such file"),
        ("long" * 100 + ".uai", "cannot be read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name: str, words: str) -> None:
    (tmp_path / "folder.uai").mkdir()
    (tmp_path / "folder").mkdir()
    for made in ("text.txt", "plain", "m.evid", "m.uai.gz"):
        (tmp_path / made).write_text("1")
    with pytest.raises(ParseError, match=words) as caught:
        read(tmp_path / name)
    assert caught.value.path == tmp_path / name


def test_options_of_the_wrong_kind(tmp_path) -> None:
    path = tmp_path / "m.uai"
    path.write_text(UAI)
    for options in ({"domain": {"person": 3}}, {"open_world": ["P"]}, {"closed_world": ["P"]}, {"weights": "alchemy"}):
        with pytest.raises(ModelError, match=f"{next(iter(options))} .*Markov logic"):
            read(path, **options)  # type: ignore[arg-type]
        with pytest.raises(ModelError, match="Markov logic"):
            read(MODEL, **options)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"beta .*dimod"):
        read(path, beta=2.0)
    with pytest.raises(ParseError, match="no such file"):
        read(path, tmp_path / "none.evid")


@pytest.mark.parametrize("source", [None, 3, b"m.uai", {"a": 1}, object(), [1, 2], (1, 2), read])
def test_objects_that_are_no_models(source) -> None:
    with pytest.raises(ModelError, match=rf"cannot read a model from a \w*.*{type(source).__name__}.*\.uai.*networkx"):
        read(source)


def test_adapter_options() -> None:
    bqm = dimod.BinaryQuadraticModel({"a": 1.0}, {}, 0.0, "SPIN")
    with pytest.raises(ModelError, match="takes beta, not coupling"):
        adapt(bqm, coupling=1.0)
    with pytest.raises(ModelError, match="beta is 'hot'"):
        adapt(bqm, beta="hot")
    with pytest.raises(ModelError, match="not finite"):
        adapt(dimod.BinaryQuadraticModel({"a": float("inf")}, {}, 0.0, "SPIN"))
    with pytest.raises(ModelError, match="both written '1'"):
        adapt(dimod.BinaryQuadraticModel({"1": 1.0, 1: 1.0}, {}, 0.0, "SPIN"))


# --- fuzz: a valid file with anything done to it is read or refused ------------------------------------------

PIECES = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "-1",
        "4",
        "1e9",
        "99999999999999999999",
        "nan",
        "-inf",
        "1e-400",
        "x",
        "1_0",
        "#",
        "+",
        "MARKOV",
        "é",
    ]
)


@st.composite
def mutated(draw: st.DrawFn, original: str) -> bytes:
    words = re.split(r"(\s+)", original)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(words) - 1))
        what = draw(st.sampled_from(["replace", "delete", "insert", "truncate", "swap"]))
        if what == "replace":
            words[at] = draw(PIECES)
        elif what == "delete":
            del words[at : at + draw(st.integers(1, 3))]
            words = words or [""]
        elif what == "insert":
            words.insert(at, f" {draw(PIECES)} ")
        elif what == "truncate":
            words = [*words[:at], ""]
        else:
            other = draw(st.integers(0, len(words) - 1))
            words[at], words[other] = words[other], words[at]
    raw = bytearray("".join(words).encode())
    for _ in range(draw(st.integers(0, 2))):
        raw.insert(draw(st.integers(0, len(raw))), draw(st.integers(0, 255)))
    return bytes(raw)


def read_or_refuse(read_file, path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    try:
        read_file(path)
    except ParseError as error:
        assert error.line is not None and error.column is not None
        lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n" if b"\n" in raw else b"\r")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    except DefinettiError:
        pass


@settings(max_examples=200)
@given(mutated(UAI))
def test_fuzz_uai(tmp_path_factory, raw: bytes) -> None:
    read_or_refuse(read_uai, tmp_path_factory.getbasetemp() / "fuzz.uai", raw)


@settings(max_examples=200)
@given(mutated(FG))
def test_fuzz_fg(tmp_path_factory, raw: bytes) -> None:
    read_or_refuse(read_fg, tmp_path_factory.getbasetemp() / "fuzz.fg", raw)


@settings(max_examples=200)
@given(st.one_of(mutated("1\n2 0 1\n2 2\n"), mutated("2\n1 1 0\n0\n"), mutated("2 0 1 2 2")))
def test_fuzz_evid(tmp_path_factory, raw: bytes) -> None:
    read_or_refuse(lambda path: read_evid(path, MODEL), tmp_path_factory.getbasetemp() / "fuzz.evid", raw)
