"""Generators that a user gives: notations that are understood, and mistakes that are named with their place."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from cycles import format_cycles
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from definetti.errors import DefinettiError, ParseError, SymmetryError, UnknownName
from definetti.groups import PermutationGroup, dense, from_cycles
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.symmetry.find import symmetries
from definetti.symmetry.graph.generator_text import parse_cycles
from definetti.symmetry.graph.group import find, given

ISING = np.array([[0.3, -0.3], [-0.3, 0.3]])


def ring(n: int, field: bool = False, names: list[str] | None = None) -> FactorGraph:
    factors: list = [((i, (i + 1) % n), ISING) for i in range(n)]
    factors += [((0,), [-1.0, 1.0])] if field else []
    return factor_graph([2] * n, factors, log=True, names=names)


TURN, FLIP = "(X0 X1 X2 X3 X4)", "".join(f"(X{i}=0 X{i}=1)" for i in range(5))


# --- what is understood ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generators", "order"),
    [
        (TURN, 5),
        ("(X1 X4)(X2 X3)", 2),
        (FLIP, 2),
        (f"{TURN}\n\n# a comment\n  {FLIP}  # another\n(X1 X4)(X2 X3)", 20),
        ([TURN, FLIP], 10),
        ("(X0, X1, X2, X3, X4)", 5),
        ("()", 1),
        ("# nothing", 1),
        ([[1, 2, 3, 4, 0]], 5),
        (np.array([[1, 2, 3, 4, 0], [0, 4, 3, 2, 1]]), 10),
        ([np.arange(10) ^ 1], 2),
        ([TURN, np.arange(10) ^ 1], 10),
        (PermutationGroup(10, (from_cycles([[k, k + 1] for k in range(0, 10, 2)]),)), 2),
        ([], 1),
    ],
)
def test_notations(generators, order: int) -> None:
    found = given(ring(5), generators)
    assert found.order == order
    assert found.kind == "given"


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ring.txt"
    path.write_text(f"# the turn\n{TURN}\n{FLIP}\n", encoding="utf-8")
    assert given(ring(5), path).order == given(ring(5), str(path)).order == 10
    assert symmetries(ring(5), generators=path).order == 10


def test_names_with_brackets_and_named_values() -> None:
    names = ["Friends(Anna,Bob)", "Friends(Bob,Anna)", "Smokes(Anna)"]
    model = factor_graph([2] * 3, [((0, 2), ISING), ((1, 2), ISING)], log=True, names=names)
    assert given(model, "(Friends(Anna,Bob) Friends(Bob, Anna))").order == 2
    flips = "".join(f"({name}=0 {name}=1)" for name in names)
    assert given(model, flips).order == 2


def test_a_name_with_an_equals_sign_is_a_variable_first() -> None:
    model = factor_graph([2] * 3, [], log=True, names=["a", "a=1", "a=0"])
    assert given(model, "(a=1 a=0)").orbit_of("a=0") == ["a=1", "a=0"]


def test_all_permutations_of_many_variables() -> None:
    n = 120
    model = factor_graph([2] * n, [((i,), [0.0, 1.0]) for i in range(n)], log=True)
    names = [f"X{i}" for i in range(n)]
    found = given(model, [f"({' '.join(names)})", "(X0 X1)"])
    assert found.order == math.factorial(n)
    assert len(found.orbits) == 1


def test_format_and_parse_round_trip() -> None:
    model = ring(5)
    for generator in find(model).group.generators:
        text = format_cycles(model, generator)
        (back,) = parse_cycles(model, text)
        assert np.array_equal(dense(back, 10), dense(generator, 10))
    (turn,) = parse_cycles(model, TURN)
    assert format_cycles(model, turn) == TURN
    (flip,) = parse_cycles(model, FLIP)
    assert format_cycles(model, flip) == FLIP


# --- what is no symmetry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        (
            "(X0 X1)",
            r"generator 1 of 1 .* takes the factor over \(X\d, X\d\) to \(X\d, X\d\), where there is no factor",
        ),
        (f"{TURN}\n(X0 X2)", "generator 2 of 2"),
        ("(X0=0 X0=1)", r"it changes the table of the factor over \(X0, X1\)"),
        ("(X0=0 X1=1)", "takes the values of X[01] to different variables"),
    ],
)
def test_the_factor_that_breaks_is_named(generators: str, message: str) -> None:
    with pytest.raises(SymmetryError, match=message):
        given(ring(5), generators)


def test_a_field_breaks_the_turn() -> None:
    with pytest.raises(SymmetryError, match=r"takes the factor over \(X0\) to \(X1\), where there is no factor"):
        given(ring(5, field=True), TURN)
    assert given(ring(5, field=True), "(X1 X4)(X2 X3)").order == 2


def test_a_table_that_differs_a_little() -> None:
    model = factor_graph([2] * 3, [((0, 1), ISING), ((1, 2), ISING * (1 + 1e-15))], log=True)
    with pytest.raises(SymmetryError, match=r"\(X0, X1\) to the factor over \(X1, X2\), whose table differs"):
        given(model, "(X0 X2)")


def test_an_observed_variable_cannot_move() -> None:
    model = factor_graph([2] * 3, [((1,), [0.0, 1.0])], log=True).condition({0: 1})
    with pytest.raises(SymmetryError, match="it moves X0, which is observed"):
        given(model, "(X0 X2)")


def test_different_numbers_of_values() -> None:
    model = factor_graph([2, 3], [], log=True)
    with pytest.raises(ParseError, match="X0 and X1 cannot change places: they have 2 and 3 values"):
        given(model, "(X0 X1)")
    with pytest.raises(SymmetryError, match="they have 2 and 3 values"):
        given(model, [[1, 0]])
    with pytest.raises(SymmetryError, match="it takes X0 to X1, with 2 and 3 values"):
        given(model, [[2, 3, 0, 1, 4]])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([0, 1, 2], "must be an array of 5 integers"),
        ([0.0, 1, 2, 3, 4], "float64"),
        ([0, 1, 2, 3, 3], "no permutation of 0 to 4"),
        ([1, 2, 3, 4, 5], "no permutation of 0 to 4"),
    ],
)
def test_wrong_arrays(array: list, message: str) -> None:
    with pytest.raises(SymmetryError, match=message):
        given(ring(5), [array])


def test_a_group_on_other_points() -> None:
    with pytest.raises(SymmetryError, match="acts on 3 points, the model has 10 literals"):
        given(ring(5), PermutationGroup(3))


# --- text that cannot be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "line", "column"),
    [
        ("(X0 X1", ParseError, 1, 1),
        ("X0 X1)", ParseError, 1, 1),
        ("(X0 X1) X2", ParseError, 1, 9),
        ("# first\n(X0 X1)(X2 X0)", ParseError, 2, 12),
        ("(X0 X0)", ParseError, 1, 5),
        ("(X0 X1=1)", ParseError, 1, 5),
        ("(X0 X1(a", ParseError, 1, 5),
        ("(X0 X9)", UnknownName, 1, 5),
        ("(X0=0 X0=2)", UnknownName, 1, 7),
        ("(X0=0 X7=1)", UnknownName, 1, 7),
    ],
)
def test_mistakes_in_text_have_a_place(tmp_path: Path, text: str, error: type, line: int, column: int) -> None:
    path = tmp_path / "generators.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error) as caught:
        given(ring(5), path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}:{column}: ")
    assert message.splitlines()[-1] == "    " + " " * (column - 1) + "^"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="cannot be read"):
        given(ring(5), tmp_path / "none.txt")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParseError, match="cannot be read"):
        given(ring(5), tmp_path / "bytes")


@settings(max_examples=300)
@drawn(st.text(alphabet="()X01234= ,#\n", max_size=30))
def test_any_text_is_a_group_or_a_named_mistake(text: str) -> None:
    try:
        found = given(ring(3), [text])
    except DefinettiError as error:
        assert str(error)
    else:
        assert found.order in (1, 2, 3, 6, 12)
