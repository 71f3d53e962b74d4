"""Result files: what is written is read back, and what cannot be read says where."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definetti.errors import DefinettiError, ModelError, Notice, ParseError
from definetti.model.graph.factors import factor_graph
from definetti.model.marginals import Estimate, Marginals
from definetti.solvers.exact import exact
from definetti.store.loading import load
from definetti.store.writing import save


@pytest.fixture
def answer() -> Marginals:
    cards = {"Friends(Anna,Bob)": 2, 'odd "name"': 3, "seen": 2, "seen3": 3}
    model = factor_graph(cards, [((0, 1), np.arange(1, 7))]).condition({"seen": 1, "seen3": 2})
    return exact(model, ["Friends(Anna,Bob)", 'Friends(Anna,Bob) ^ "seen"'])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_hold_every_variable(answer: Marginals, suffix: str, tmp_path: Path) -> None:
    path = save(answer, tmp_path / f"out{suffix}")
    back = load(path)
    assert dict(back) == dict(answer.variables()) | dict(answer.queries)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing half-written is left


def test_csv_as_text(answer: Marginals, tmp_path: Path) -> None:
    lines = save(answer, tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "kind,variable,value,probability,mcse,half_width,rhat,ess,orbit_size,trusted"
    assert lines[1].startswith('query,"Friends(Anna,Bob)",,0.714285714285714')
    assert lines[1].endswith(",0.0,0.0,,,1,true")
    assert lines[2].startswith('query,"Friends(Anna,Bob) ^ ""seen""",,0.714285714285714')
    assert lines[3] == lines[1].replace("query", "variable")
    assert lines[4].startswith('variable,"odd ""name""",0,0.238095238095')
    assert len(lines) == 1 + 2 + 1 + 3 + 1 + 3


def test_json(answer: Marginals, tmp_path: Path) -> None:
    path = save(answer, tmp_path / "out.json")
    written = json.loads(path.read_text())
    assert written.pop("page")["symmetry"]["kind"] == "graph"  # for pages, in files alone
    assert written == answer.to_json()
    back = load(path)
    assert set(back) == {"Friends(Anna,Bob)", 'Friends(Anna,Bob) ^ "seen"', 'odd "name"'}
    assert all(back[name] == answer[name] for name in back)
    assert answer.compare(back).agrees


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_numbers_are_not_saved_without_their_warnings(answer: Marginals, suffix: str, tmp_path: Path) -> None:
    doubt = (Notice("note", "harmless"), Notice("frozen", "x"), Notice("divided", "y"))
    path = save(replace(answer, notices=doubt), tmp_path / f"out{suffix}")
    back = load(path)
    assert {notice.kind for notice in back.notices if notice.fails} == {"frozen", "divided"}
    assert load(save(answer, tmp_path / f"fine{suffix}")).notices == ()
    if suffix == ".csv":
        head, *lines = path.read_text().splitlines()
        assert head.endswith(",trusted,warnings") and all(line.endswith(",false,divided frozen") for line in lines)


def test_an_old_file_survives_a_failed_write(answer: Marginals, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot write"):
        save(answer, tmp_path / "missing" / "out.json")
    with pytest.raises(ModelError, match=r"\.json, \.csv, \.parquet"):
        save(answer, tmp_path / "out.txt")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ModelError, match="cannot write"):
        save(answer, tmp_path / "folder.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.csv"]


def test_parquet_names_its_extra(answer: Marginals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModelError, match=r"definetti\[parquet\]"):
        save(answer, tmp_path / "out.parquet")


def test_alchemy(tmp_path: Path) -> None:
    path = tmp_path / "out.result"
    path.write_text("Smokes(Anna) 0.066\n\nFriends(Anna, Bob)\t4.9995e-05\n")
    assert load(path) == {"Smokes(Anna)": Estimate(0.066, None), "Friends(Anna,Bob)": Estimate(4.9995e-05, None)}


@pytest.mark.parametrize("text", ["MAR\n2 2 .25 .75 3 .2 .3 .5\n", "MAR\n1\n2 2 .25 .75\n3 .2 .3 .5"])
def test_uai(text: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.uai.MAR"
    path.write_text(text)
    assert load(path) == {"X0": Estimate(0.75, None), "X1": Estimate([0.2, 0.3, 0.5], None)}


HEAD = "kind,variable,value,probability,mcse,half_width,rhat,ess,orbit_size,trusted\n"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"queries": {', "a.json:1:14"),
        ("a.json", "[1, 2]", "queries and orbits"),
        ("a.json", '{"queries": {"x": {"probability": NaN}}, "orbits": []}', "queries and orbits"),
        ("a.json", '{"queries": {}, "orbits": []}', "no results"),
        ("a.json", "[" * 100_000, "a.json"),
        ("a.csv", "name,p\n", "a.csv:1: expected the columns kind,variable,value"),
        ("a.csv", HEAD + "variable,x,,0.5\n", "a.csv:2: expected 10 fields, found 4"),
        ("a.csv", HEAD + "variable,x,,1.5,0,0,,,1,true\n", "a.csv:2:1: expected numbers"),
        ("a.csv", HEAD + "variable,x,,0.5,0,0,,,inf,true\n", "a.csv:2:1: expected numbers"),
        ("a.csv", HEAD + "variable,x,1,0.5,0,0,,,1,true\n", "one row for each of its values"),
        ("a.csv", HEAD, "no results"),
        ("a.result", "Smokes(Anna)\n", "a.result:1:1: expected a ground atom"),
        ("a.result", "Smokes(Anna) 0.5\nSmokes(Bob) 7\n", "a.result:2:13"),
        ("a.MAR", "MAR 2 2 .5 .5", "as many variables as it says"),
        ("a.MAR", "MAR x", "expected numbers"),
    ],
)
def test_mistakes(name: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((ParseError, ModelError)) as caught:
        load(tmp_path / name)
    assert says in str(caught.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="there is no such file"):
        load(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    for name in ("bad.csv", "bad.parquet", "none.parquet"):
        with pytest.raises((ParseError, ModelError)):
            load(tmp_path / name)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["a.json", "a.csv", "a.result", "MAR"]), st.text(alphabet='{}[]",:0.1e-MAR x\n\t', max_size=30))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_text(HEAD + text if name == "a.csv" else f"MAR {text}" if name == "MAR" else text)
    with contextlib.suppress(DefinettiError):
        assert all(isinstance(e, Estimate) for e in load(path).values())


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_half_widths_and_trust_are_saved(answer: Marginals, suffix: str, tmp_path: Path) -> None:
    """One row of a sampled answer: its half-width is not its error times 1.96 when chains are few."""
    row = replace(answer.orbits[0], mcse=0.01, half_width=0.0318)
    made = replace(answer, orbits=[row, *answer.orbits[1:]], queries={}, method=None)
    path = save(made, tmp_path / f"out{suffix}")
    assert load(path)[row.representative].half_width == 0.0318
    if suffix == ".csv":
        assert all(line.endswith(",true") for line in path.read_text().splitlines()[1:])
    elif suffix == ".json":
        assert json.loads(path.read_text())["trusted"] is True
