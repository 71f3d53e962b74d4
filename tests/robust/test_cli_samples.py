"""Draws in CSV: what they become as an array, and what is said of files that are wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definetti.errors import DefinettiError, ModelError, ParseError
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.readers.samples import read_samples


@pytest.fixture
def model() -> FactorGraph:
    return factor_graph({"A": 2, "B": 3, "C": 2}, [])


def write(folder: Path, text: str) -> Path:
    path = folder / "draws.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_header_columns_are_in_the_models_order(tmp_path: Path, model: FactorGraph) -> None:
    got = read_samples(write(tmp_path, "0,2,0\n1,0,0\n"), model)
    assert got.tolist() == [[[0, 2, 0], [1, 0, 0]]]


def test_header_may_name_the_columns_in_any_order(tmp_path: Path, model: FactorGraph) -> None:
    got = read_samples(write(tmp_path, "C,A,B\n1,0,2\n0,1,0\n"), model)
    assert got.tolist() == [[[0, 2, 1], [1, 0, 0]]]


@pytest.mark.parametrize("labels", [("3", "0"), ("east", "west")])
def test_rows_of_one_chain_label_are_a_chain(tmp_path: Path, model: FactorGraph, labels: tuple[str, str]) -> None:
    a, b = labels
    text = f"chain,A,B,C\n{a},0,2,1\n{b},1,1,1\n{a},1,0,0\n{b},0,0,0\n"
    got = read_samples(write(tmp_path, text), model)
    assert got.tolist() == [[[0, 2, 1], [1, 0, 0]], [[1, 1, 1], [0, 0, 0]]]


def test_a_variable_may_be_named_chain(tmp_path: Path) -> None:
    model = factor_graph({"chain": 2, "B": 2}, [])
    assert read_samples(write(tmp_path, "chain,B\n0,1\n1,1\n"), model).tolist() == [[[0, 1], [1, 1]]]


def test_values_by_name_and_spins(tmp_path: Path, model: FactorGraph) -> None:
    named = replace(model, value_names={0: ("no", "yes"), 2: ("-1", "1")})
    assert read_samples(write(tmp_path, "A,B,C\nyes,2,-1\nno,0,1\n"), named).tolist() == [[[1, 2, 0], [0, 0, 1]]]
    spins = replace(model, value_names={2: ("-1", "1")})
    assert read_samples(write(tmp_path, "0,1,-1\n0,1,1\n"), spins).tolist() == [[[0, 1, 0], [0, 1, 1]]]


def test_observed_variables_need_no_column(tmp_path: Path, model: FactorGraph) -> None:
    got = read_samples(write(tmp_path, "A,C\n0,1\n"), model.condition({"B": 2}))
    assert got.tolist() == [[[0, 2, 1]]]


def test_byte_order_mark_blank_lines_and_quotes(tmp_path: Path, model: FactorGraph) -> None:
    text = '\ufeff"A","B","C"\r\n0,"2",1\r\n\r\n1,0,0\r\n'
    assert read_samples(write(tmp_path, text), model).tolist() == [[[0, 2, 1], [1, 0, 0]]]


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, None, "no draws"),
        ("A,B,C\n", 1, None, "no draws"),
        ("A,B,D\n0,0,0\n", 1, 5, "'D'"),
        ("A,B,B\n0,0,0\n", 1, 5, "two columns"),
        ("A,B\n0,0\n", 1, None, "no column for C"),
        ("0,0\n", 1, None, "2 columns"),
        ("A,B,C\n0,0,0\n0,0\n", 3, None, "2 fields, expected 3"),
        ("A,B,C\n0,0,0\n0,3,0\n", 3, 3, "no value '3'"),
        ("A,B,C\n0,0,0\n0,,0\n", 3, 3, "no value ''"),
        ("A,B,C\n0,0,0\n0,1.5,0\n", 3, 3, "no value '1.5'"),
        ("A,B,C\n0,0,0\n0,nan,0\n", 3, 3, "no value 'nan'"),
        ("0,0,0\n0,99999999999999999999,0\n", 2, 3, "no value"),
        ("chain,A,B,C\n0,0,0,0\n0,0,0,0\n1,0,0,0\n", None, None, "chain 0 has 2 draws, chain 1 has 1"),
    ],
)
def test_errors_say_where(
    tmp_path: Path, model: FactorGraph, text: str, line: int | None, column: int | None, says: str
) -> None:
    with pytest.raises(ParseError) as caught:
        read_samples(write(tmp_path, text), model)
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_draws_that_contradict_the_evidence(tmp_path: Path, model: FactorGraph) -> None:
    with pytest.raises(ModelError, match="draw 2 has B=1, but the evidence is B=2"):
        read_samples(write(tmp_path, "0,2,0\n0,1,0\n"), model.condition({"B": 2}))


def test_a_field_without_end(tmp_path: Path, model: FactorGraph) -> None:
    with pytest.raises(ParseError, match="field"):
        read_samples(write(tmp_path, 'A,B,C\n0,0,"' + "x" * 200_000), model)


def test_binary_file(tmp_path: Path, model: FactorGraph) -> None:
    path = tmp_path / "draws.csv"
    path.write_bytes(b"\x80\x81\x82")
    with pytest.raises(ParseError, match="UTF-8"):
        read_samples(path, model)


@given(st.text(alphabet='ABC,012 \n\r"-chain\x00é', max_size=60))
def test_any_text_is_an_array_or_our_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    model = factor_graph({"A": 2, "B": 3, "C": 2}, [])
    path = write(tmp_path_factory.mktemp("fuzz"), text)
    try:
        got = read_samples(path, model)
    except DefinettiError:
        pass
    else:
        assert got.ndim == 3 and got.shape[2] == 3 and (got >= 0).all() and (got < model.cards).all()


def test_a_large_file_is_read_at_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    draws = rng.integers(0, 2, size=(5000, 100))
    path = tmp_path / "draws.csv"
    np.savetxt(path, draws, fmt="%d", delimiter=",")
    assert (read_samples(path, factor_graph([2] * 100, []))[0] == draws).all()
