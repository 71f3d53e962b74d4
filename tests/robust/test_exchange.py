"""Answers in the formats of other programs and libraries, and the schema of the JSON that everything else reads."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import definetti as dft
from definetti.cli.interval_plot import draw
from definetti.cli.main import run
from definetti.pages.charts import _intervals
from definetti.store.loading import load_document

EXAMPLES = Path(__file__).parents[2] / "examples"
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "result.schema.json").read_text())
GRID, TOWN = str(EXAMPLES / "grid.uai"), [str(EXAMPLES / "smokers.mln"), "--evidence", str(EXAMPLES / "town.db")]
RING = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
MIXED = dft.factor_graph(
    {"a": 2, "b": 3, "c": 2}, [(["a", "b"], [[1, 2, 3], [3, 1, 1]]), (["b", "c"], np.ones((3, 2)))]
)


@pytest.mark.parametrize(
    "words",
    [
        [
            "marginals",
            GRID,
            "--sampler",
            "gibbs",
            "--sweeps",
            "60",
            "--seed",
            "1",
            "--query",
            "X0",
            "--query",
            "X0=1 ^ X1=1",
        ],
        ["marginals", GRID, "--sampler", "gibbs", "--sweeps", "1", "--seed", "1", "--chains", "1"],
        ["exact", GRID, "--query", "X3"],
        ["exact", *TOWN, "--query", "Cancer(Carl)"],
        ["exact", *TOWN, "--closed-world", "Friends"],
    ],
)
def test_real_outputs_and_files_follow_the_schema(
    words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer.json"
    assert run([*words, "--json", "-o", str(file)]) in (0, 1)
    printed = json.loads(capfd.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(printed, SCHEMA)
    written = json.loads(file.read_text())
    jsonschema.validate(written, SCHEMA)
    assert "page" not in printed and written.pop("page")["versions"]["definetti"] == dft.__version__
    assert written == printed


def test_the_schema_refuses_what_the_contract_forbids() -> None:
    good = dft.exact(RING).to_dict() | {"run": {}}
    for bad in ({"trusted": "yes"}, {"orbits": [{"representative": "X0"}]}, {"extra": 1}, {"run": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good | bad, SCHEMA)


def test_several_values_follow_the_schema(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dft.write(MIXED, tmp_path / "mixed.uai")
    assert run(["exact", str(tmp_path / "mixed.uai"), "--json"]) == 0
    jsonschema.validate(json.loads(capfd.readouterr().out), SCHEMA)


def test_tables_have_every_variable_and_value() -> None:
    p = dft.exact(MIXED, ["a", "b=1 ^ c=1"])
    table, other = p.to_pandas(), p.to_polars()
    assert list(table["variable"]) == ["a", "b=1 ^ c=1", "a", "b", "b", "b", "c"] == other["variable"].to_list()
    assert table["value"].isna().tolist() == [True, True, True, False, False, False, True]
    assert table.loc[3:5, "probability"].sum() == pytest.approx(1.0)
    assert other["probability"].to_list() == table["probability"].tolist()
    assert other.schema["orbit_size"].is_integer() and table["orbit_size"].dtype == "int64"
    assert p.to_dict()["orbit_count"] == len(p.orbits)


def test_a_doubtful_table_says_so() -> None:
    p = dft.marginals(RING, sampler="gibbs", sweeps=2, chains=1, seed=1)
    assert not p.trusted and not p.to_pandas()["trusted"].any() and "few-samples" in set(p.to_polars()["warnings"])


def test_mar_files_read_back(tmp_path: Path) -> None:
    model = MIXED.condition({"c": 1})
    p = dft.exact(model)
    text = dft.save(p, tmp_path / "p.MAR").read_text()
    assert text.split()[:2] == ["MAR", "3"]
    back = dft.load(tmp_path / "p.MAR")
    assert back["X2"].probability == 1.0  # the evidence
    assert back["X1"].probability == pytest.approx(p["b"].probability, abs=1e-9)
    assert dft.exact(dft.factor_graph([1, 2], [([0, 1], [[1, 3]])])).members  # one value
    town = dft.exact(dft.read(TOWN[0], evidence=TOWN[2]))
    with pytest.raises(dft.ModelError, match="factor graph"):
        dft.save(town, tmp_path / "town.MAR")


def test_alchemy_results_read_back(tmp_path: Path) -> None:
    p = dft.exact(dft.read(TOWN[0], evidence=TOWN[2]))
    back = dft.load(dft.save(p, tmp_path / "town.result"))
    assert back["Smokes(Anna)"].probability == 1.0 and len(back) == 24
    assert p.compare(back).largest.difference == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(dft.ModelError, match="true and false only"):
        dft.save(dft.exact(MIXED), tmp_path / "mixed.result")
    with pytest.raises(dft.ModelError, match="a formula"):
        dft.save(dft.exact(RING, ["X0=1 ^ X1=1"]), tmp_path / "ring.result")


def test_the_command_line_writes_other_formats(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("out.MAR", "out.result"):
        assert run(["exact", GRID, "-o", str(tmp_path / name)]) == 0
    assert run(["compare", str(tmp_path / "out.MAR"), str(tmp_path / "out.result")]) == 0
    assert run(["exact", GRID, "-o", str(tmp_path / "out.txt")]) == 2
    assert ".MAR" in capfd.readouterr().err


def test_draws_go_to_arviz_and_come_back() -> None:
    draws = dft.sample(RING, sampler="gibbs", chains=4, draws=25, seed=3)
    data = draws.to_arviz()
    assert type(data).__name__ == ("DataTree" if sys.version_info >= (3, 12) else "InferenceData")
    posterior = data["posterior"]["x"]
    assert posterior.dims == ("chain", "draw", "variable") and posterior.shape == (4, 25, 4)
    assert posterior.sel(variable="X2").values.tolist() == draws.array()[:, :, 2].tolist()
    assert (dft.from_arviz(data, RING) == draws.array()).all()
    group = dft.symmetries(RING)
    one, two = (dft.marginals(given, model=RING, symmetries=group) for given in (data, draws.array()))
    assert one["X0"].probability == two["X0"].probability
    with pytest.raises(dft.ModelError):
        dft.from_arviz(data, dft.read(TOWN[0]))


def test_every_file_is_a_document(tmp_path: Path) -> None:
    """What pages and comparisons are made of: the same keys from every format."""
    p = dft.exact(RING)
    for name in ("p.json", "p.csv", "p.parquet", "p.MAR", "p.result"):
        content = load_document(dft.save(p, tmp_path / name))
        assert {"queries", "orbits", "orbit_count", "trusted", "run", "warnings"} <= content.keys()
        assert content["orbits"][0]["probability"] == pytest.approx(p["X0"].probability, abs=1e-9)


def test_counts_are_exchanged_and_not_drawn_as_probabilities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A count has a mean above 1: files hold it, pages say it, axes of probabilities leave it out."""
    model = dft.markov_logic("Heads(coin)\n0.5 Heads(x)", domain={"coin": 5})
    p = dft.exact(model, ["#Heads", "Heads(Coin1)"])
    for name in ("p.json", "p.csv", "p.parquet"):
        found = dft.load(dft.save(p, tmp_path / name))
        assert found["#Heads"].probability == pytest.approx(p["#Heads"].mean) and "Count" in repr(found["#Heads"])
        assert dft.report(tmp_path / name, tmp_path / "p.html").exists()
    with pytest.raises(dft.ModelError, match="is a count: write .json or .csv"):
        dft.save(p, tmp_path / "p.result")
    assert {row["name"] for row in _intervals(p)} == {"Heads(Coin1)"}
    draw([(name, one.orbit_size, one) for name, one in p.queries.items()])
    shown = capsys.readouterr().out
    assert "Heads(Coin1)" in shown and "#Heads" not in shown
