"""Plain text tables and numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from definetti import show


def test_table_aligns_the_first_column_left_and_the_others_right() -> None:
    assert show.table(["name", "n"], [["a", "1"], ["longer", "1,000"]]).splitlines() == [
        "name        n",
        "──────  ─────",
        "a           1",
        "longer  1,000",
    ]


def test_table_without_rows_keeps_its_head() -> None:
    assert show.table(["name", "n"], []).splitlines() == ["name  n", "────  ─"]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.5, 0.0003, "0.50000"),
        (0.123456789, 0.02, "0.123"),
        (0.25, 0.0, "0.250000"),
        (0.25, None, "0.250000"),
        (0.25, math.nan, "0.250000"),
        (None, None, "–"),
        ([0.25, 0.75], [0.01, None], "[0.250 0.750000]"),
    ],
)
def test_probability_shows_the_digits_that_its_error_leaves(value: object, error: object, text: str) -> None:
    assert show.probability(value, error) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"), [(12.3456, "12.35"), (None, "–"), (math.nan, "–"), (math.inf, "–"), ([1.0, None], "[1 –]")]
)
def test_number(value: object, text: str) -> None:
    assert show.number(value) == text  # type: ignore[arg-type]


def test_large_integers() -> None:
    assert show.large(16) == "16"
    assert show.large(math.factorial(30)) == "2.652e+32"
    assert show.large(-math.factorial(30)) == "-2.652e+32"
    assert show.large(10**5000) == "1.000e+5000"
    assert show.large(-(98765 * 10**5000 - 1)) == "-9.876e+5004"
    assert show.large(math.factorial(100_000)) == "2.824e+456573"


@given(st.integers(0, 60_000), st.integers(0, 10**30), st.booleans())
def test_digits_are_all_the_digits(power: int, rest: int, negative: bool) -> None:
    value = 10**power + rest % 10 ** min(power, 31)
    text = show.digits(-value if negative else value)
    want = "1" + str(rest % 10 ** min(power, 31)).zfill(power) if power else "1"
    assert text == ("-" if negative else "") + want


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0003, "0.3 ms"), (0.0991, "99 ms"), (0.0997, "0.0997 s"), (1.254, "1.25 s"), (200, "3 min 20 s")],
)
def test_seconds(value: float, text: str) -> None:
    assert show.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(12, "12 B"), (3.2e6, "3.2 MB"), (5e15, "5,000 TB")])
def test_size(value: float, text: str) -> None:
    assert show.size(value) == text
