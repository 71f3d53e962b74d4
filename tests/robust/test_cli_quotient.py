"""`definetti quotient` and `symmetries --states`: what they print, draw and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from definetti.cli.main import run

FIELDS = {
    "states", "orbits", "lumpability_violation", "gap", "quotient_gap", "epsilon", "tau", "quotient_tau", "reversible",
}  # fmt: skip


def test_one_json_object_with_the_promised_fields(examples: Path, capsys: Any) -> None:
    words = ["quotient", str(examples / "two-smokers.mln"), "--query", "smokes(A)", "--epsilon", "0.05", "--json"]
    assert run(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() >= FIELDS
    assert (found["states"], found["orbits"], found["epsilon"], found["reversible"]) == (16, 10, 0.05, True)
    assert found["tau"] == found["quotient_tau"] > 0 and found["gap"] == pytest.approx(0.205358, abs=1e-6)
    assert list(found["queries"]) == ["smokes(A)"]
    assert len(found["bias"]["burn_in"]) == len(found["bias"]["bound"]) == len(found["bias"]["orbit"]["smokes(A)"])


def test_a_table_for_people(examples: Path, capsys: Any) -> None:
    assert run(["quotient", str(examples / "two-smokers.mln")]) == 0
    told = capsys.readouterr().out
    assert "states        16" in told and "orbits        10" in told and "τ′(0.01)      24 updates" in told


def test_the_figure_in_three_formats(examples: Path, tmp_path: Path, capsys: Any) -> None:
    for suffix in (".svg", ".png", ".html"):
        out = tmp_path / f"figure{suffix}"
        assert run(["quotient", str(examples / "two-smokers.mln"), "-o", str(out), "--quiet"]) == 0
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg") and "16 states" in text and "10 orbits" in text
    assert all(f">{state:04b}<" in text for state in range(16))
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "figure.html").read_text(encoding="utf-8")
    assert "vega" in page and 'src="http' not in page and 'href="http' not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sampler", "mcsat"], "branches cannot be listed; use gibbs, blocks or swendsen-wang"),
        (["--epsilon", "2"], "between 0 and 1"),
        (["--epsilon", "nan"], "not a positive number"),
        (["-o", "figure.pdf"], "must end in one of .svg, .png, .html, .json"),
        (["--query", "smokes(C)"], "C"),
        (["--domain", "person=40"], "needs about 10^24 states, the limit is 65,536; observe some variables"),
    ],
)
def test_refusals_are_one_message(words: list[str], message: str, examples: Path, capsys: Any) -> None:
    assert run(["quotient", str(examples / "two-smokers.mln"), *words]) == 2
    told = capsys.readouterr()
    assert not told.out and message in told.err


def test_too_many_states_are_refused_with_size_and_cure(examples: Path, capsys: Any) -> None:
    assert run(["quotient", str(examples / "grid.uai")]) == 2
    assert "the list of states needs about 10^43 states, the limit is 65,536" in capsys.readouterr().err


def test_a_chain_that_never_mixes_is_told_by_the_exit_code(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "tied.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 0 0 1\n")
    assert run(["quotient", str(path), "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert found["states"] == 2 and found["tau"] is None and found["warnings"][0]["kind"] == "divided"


def test_orbits_of_assignments_are_counted(examples: Path, capsys: Any) -> None:
    assert run(["symmetries", str(examples / "smokers.mln"), "--domain", "person=3", "--states", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["assignments"]
    assert found == {
        "states": str(2**15), "orbits": "5728", "log10_orbits": found["log10_orbits"], "relative_error": 0.0,
        "method": "burnside",
    }  # fmt: skip
    assert run(["symmetries", str(examples / "grid.uai"), "--states", "--time-limit", "600"]) == 0
    assert "their orbits  2.787e+42 (Burnside's lemma)" in capsys.readouterr().out
