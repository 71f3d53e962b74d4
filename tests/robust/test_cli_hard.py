"""Hard constraints on the command line: exit codes, kinds of warnings, and errors that name what clashes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hard_models import hard_grid

from definetti.cli.main import run
from definetti.constraints.graph.connectivity import single_moves_connect
from definetti.constraints.graph.contract import contract
from definetti.model.graph.factors import factor_graph
from definetti.readers.reading import read
from definetti.readers.writing import write

EDGE = "X0=1 ^ X1=0 v X0=0 ^ X1=1"


@pytest.fixture
def grid(tmp_path: Path) -> Any:
    def make(side: int) -> str:
        path = tmp_path / f"grid{side}.uai"
        write(hard_grid(side, side), path)
        return str(path)

    return make


def ask(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = run([*words, "--json"])
    return code, json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("side", [6, 7])
def test_plain_gibbs_fails_where_it_is_frozen(grid: Any, side: int, capfd: pytest.CaptureFixture[str]) -> None:
    code, got = ask(capfd, "marginals", grid(side), "--sampler", "gibbs", "--sweeps", "50", "--seed", "1")
    assert code == 1 and "frozen" in {w["kind"] for w in got["warnings"]}


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_frozen_run_is_compared_with_its_warning(
    grid: Any, suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """On an even grid symmetry makes its numbers perfect."""
    frozen, truth = str(tmp_path / f"frozen{suffix}"), str(tmp_path / f"exact{suffix}")
    words = ["--sampler", "gibbs", "--sweeps", "50", "--seed", "1", "-o", frozen]
    assert ask(capfd, "marginals", grid(4), *words)[0] == 1
    assert ask(capfd, "exact", grid(4), "-o", truth)[0] == 0
    code, got = ask(capfd, "compare", frozen, truth)
    assert code == 1 and got["agrees"] and "frozen" in {w["kind"] for w in got["warnings"]}
    assert run(["compare", frozen, truth]) == 1 and "warning (frozen)" in capfd.readouterr().err
    assert ask(capfd, "compare", truth, truth)[0] == 0


@pytest.mark.parametrize("sampler", ["auto", "swendsen-wang", "blocks"])
@pytest.mark.parametrize("side", [6, 7])
def test_moves_that_cross_solve_it(grid: Any, side: int, sampler: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--sampler", sampler, "--sweeps", "100", "--seed", "1", "--query", EDGE, "--query", "X0"]
    code, got = ask(capfd, "marginals", grid(side), *words, "--symmetries", "none")
    assert code == 0, got["warnings"]
    assert got["queries"][EDGE]["probability"] == 1.0 and got["queries"][EDGE]["mcse"] == 0.0
    assert abs(got["queries"]["X0"]["probability"] - 0.5) <= 5 * got["queries"]["X0"]["mcse"]
    assert sum(row["size"] for row in got["orbits"]) == side**2


def test_auto_crosses_on_a_long_ring(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Three colours round a ring: single moves cannot change how often it winds, and the legal states are 2^150."""
    path, ring = tmp_path / "ring.uai", [([i, (i + 1) % 150], 1.0 - np.eye(3)) for i in range(150)]
    write(factor_graph([3] * 150, [*ring, ([0], [1.0, 2.0, 3.0]), ([75], [3.0, 1.0, 1.0])]), path)
    queries = ["--query", "X1=0", "--query", "X0=1 ^ X1=2", "--query", "X75=0 ^ X76=1"]
    code, got = ask(capfd, "marginals", str(path), "--sweeps", "100", "--seed", "1", *queries)
    assert code == 0 and got["run"]["sampler"] == "blocks" and got["warnings"] == []
    truth = ask(capfd, "exact", str(path), *queries)[1]["queries"]
    for text in queries[1::2]:
        found = got["queries"][text]
        assert abs(found["probability"] - truth[text]["probability"]) < 5 * found["mcse"] < 0.05


def test_tempering_reports_its_ladder(grid: Any, capfd: pytest.CaptureFixture[str]) -> None:
    code, got = ask(capfd, "marginals", grid(2), "--sampler", "tempering", "--sweeps", "300", "--seed", "1")
    assert code == 0 and len(got["run"]["tempering"]["swap_rates"]) == len(got["run"]["tempering"]["levels"]) - 1
    assert run(["marginals", grid(2), "--sampler", "tempering", "--sweeps", "300", "--seed", "1"]) == 0
    assert f"a ladder of {len(got['run']['tempering']['levels'])} levels" in capfd.readouterr().out


@pytest.mark.parametrize("sampler", ["tempering", "blocks"])
def test_samplers_of_factor_graphs_ground_markov_logic(
    examples: Path, sampler: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tempering has levels of the never-grounded model; block Gibbs grounds it, and says so."""
    model = [str(examples / "asthma-hard.mln"), "--domain", "person=3", "--query", "Smokes(Person1)"]
    code, got = ask(capfd, "marginals", *model, "--sampler", sampler, "--sweeps", "400", "--seed", "1")
    assert code == 0 and got["run"]["sampler"] == sampler
    grounded = [w["message"] for w in got["warnings"]]
    assert len(grounded) == (sampler == "blocks") and all("18 variables, 15 ground formulas" in w for w in grounded)
    found, truth = got["queries"]["Smokes(Person1)"], ask(capfd, "exact", *model)[1]["queries"]["Smokes(Person1)"]
    assert abs(found["probability"] - truth["probability"]) < 4 * found["mcse"] < 0.03


@pytest.mark.parametrize("command", ["marginals", "exact"])
def test_a_clash_is_named(grid: Any, command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    evidence = tmp_path / "clash.evid"
    evidence.write_text("2 0 1 1 1\n")
    assert run([command, grid(3), "--evidence", str(evidence)]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "the factor over (X0, X1) and the evidence X0=1, X1=1 contradict each other" in err


@pytest.mark.parametrize("size", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_an_unsatisfiable_theory_is_told(
    size: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], cpu_limit
) -> None:
    order = tmp_path / "order.mln"
    order.write_text("Less(n,n)\nLess(x,y) ^ Less(y,z) => Less(x,z).\n!Less(x,x).\nEXIST y Less(x,y).\n0.1 Less(x,y)\n")
    with cpu_limit(30):
        assert run(["marginals", str(order), "--domain", f"n={size}"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("(line ") == 3 and "EXIST y Less(x,y)  (line 4)" in err


@pytest.mark.parametrize("size", [40, pytest.param(100, marks=pytest.mark.slow)])
def test_as_many_pigeons_as_holes_can_be_sampled(size: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pigeons = tmp_path / "pigeons.mln"
    pigeons.write_text("In(pigeon,hole)\nEXIST h In(p,h).\nIn(p,h) ^ In(q,h) => p = q.\n")
    words = [
        "--domain",
        f"pigeon={size},hole={size}",
        "--sampler",
        "gibbs",
        "--sweeps",
        "20",
        "--chains",
        "2",
        "--seed",
        "1",
    ]
    code, got = ask(capfd, "marginals", str(pigeons), *words)
    assert code == 1 and "frozen" in {w["kind"] for w in got["warnings"]}  # no single move is legal, and it says so
    assert [row["probability"] for row in got["orbits"]] == pytest.approx([1 / size])


def test_a_search_that_does_not_end_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str], cpu_limit) -> None:
    """More pigeons than holes, as factors; and two to a hole, which cutting witnesses short does not refute."""
    graph, theory = tmp_path / "pigeons.uai", tmp_path / "pigeons.mln"
    other = np.ones((12, 12)) - np.eye(12)
    write(factor_graph([12] * 13, [([i, j], other) for i in range(13) for j in range(i)]), graph)
    rule = "In(p,h) ^ In(q,h) ^ In(r,h) => p = q v p = r v q = r."
    theory.write_text(f"pigeon={{1,...,25}}\nhole={{1,...,12}}\nIn(pigeon,hole)\nEXIST h In(p,h).\n{rule}\n")
    for path, told in ((graph, "had no answer after 100,000 conflicts"), (theory, "a solver does not decide")):
        with cpu_limit(60):
            assert run(["marginals", str(path), "--seed", "1"]) == 2
        out, err = capfd.readouterr()
        assert out == "" and told in err


def test_unknown_sampler(grid: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["marginals", grid(2), "--sampler", "magic"]) == 2
    assert "auto, gibbs, blocks, swendsen-wang, tempering" in capfd.readouterr().err


def test_auto_reaches_every_state_of_every_example(examples: Path) -> None:
    found = sorted([*examples.glob("*.uai"), *examples.glob("*.fg")])
    assert found
    for path in found:
        assert single_moves_connect(contract(read(path)).core) is True  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "words",
    [
        ["exact"],
        ["marginals", "--symmetries", "variables"],
        ["marginals", "--sampler", "blocks"],
        ["marginals", "--sampler", "mcsat"],
    ],
)
@pytest.mark.parametrize("clash", ["S(x) => F(x,y).\n!F(x,y) v !S(y).\n", "F(x,y) v F(y,x).\n!F(A,B).\n!F(B,A).\n"])
def test_a_clash_is_told_in_formulas_by_every_command(
    words: list[str], clash: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    theory, evidence = tmp_path / "clash.mln", tmp_path / "clash.db"
    theory.write_text("S(p)\nF(p,p)\n" + clash)
    evidence.write_text("S(A)\nS(B)\n")
    command, *options = words
    assert run([command, str(theory), "--evidence", str(evidence), "--domain", "p=4", *options]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "these hard formulas" in err
    assert clash.splitlines()[-1].removesuffix(".") in err and "(line" in err
