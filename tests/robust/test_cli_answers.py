"""The commands on small models: the JSON contract, exit codes, and that each option changes what it says it changes."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from definetti.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
GRID = str(ROOT / "examples" / "grid.uai")
CORNER = str(ROOT / "examples" / "grid.evid")

#: A path of three binary variables, X0 – X1 – X2, equal neighbours weigh 3, the value 1 of an end weighs 2.
PATH = "MARKOV 3 2 2 2 4 2 0 1 2 1 2 1 0 1 2 4 3 1 1 3 4 3 1 1 3 2 1 2 2 1 2"
#: Three values: X0 has weights 1, 2, 3; X1 is like it, and equal values weigh 5.
VALUES = "MARKOV 2 3 3 3 1 0 1 1 2 0 1 3 1 2 3 3 1 2 3 9 5 1 1 1 5 1 1 1 5"

QUERY_KEYS = {"probability", "mcse", "half_width", "rhat", "ess", "orbit_size"}
ORBIT_KEYS = {"representative", "size", "probability", "mcse", "half_width", "rhat", "ess"}
RUN_KEYS = {
    "model", "sampler", "estimator", "scan", "symmetries", "world", "chains", "sweeps", "burn_in", "updates",
    "seconds", "workers", "seed", "peak_memory_mb", "version",
}  # fmt: skip
SECONDS_KEYS = {"read", "symmetries", "compile", "sample"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "path.uai"
    file.write_text(PATH)
    return str(file)


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Any:
    """Run a command with --json; its object. Stdout holds nothing else, stderr nothing at all."""

    def ask(*words: str, code: int = 0) -> dict[str, Any]:
        assert run([*words, "--json"]) == code, capfd.readouterr().err
        out, err = capfd.readouterr()
        assert err == "" and out.count("\n") == 1
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))

    return ask


def path_weights() -> dict[tuple[int, int, int], int]:
    return {
        (a, b, c): (3 if a == b else 1) * (3 if b == c else 1) * 2 ** (a + c)
        for a in range(2)
        for b in range(2)
        for c in range(2)
    }


def path_marginals() -> list[float]:
    weights = path_weights()
    total = sum(weights.values())
    return [sum(w for state, w in weights.items() if state[i]) / total for i in range(3)]


# --- info and symmetries -----------------------------------------------------------------------------------------


def test_info(ask: Any) -> None:
    facts = ask("info", GRID)
    assert facts["kind"] == "FactorGraph" and facts["variables"] == 144 and facts["factors"] == 408
    assert facts["values"] == {"2": 144} and facts["arity"] == {"1": 144, "2": 264} and facts["tables"] == 2
    assert facts["evidence"] == 0 and math.isclose(facts["log10_states"], 144 * math.log10(2))
    assert ask("info", GRID, "--evidence", CORNER)["evidence"] == 1


def test_info_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["info", GRID]) == 0
    assert "states     10^43\n" in capfd.readouterr().out


def test_symmetries(ask: Any) -> None:
    group = ask("symmetries", GRID)
    assert {"order", "generators", "orbit_count", "orbits", "seconds"} <= set(group)
    assert group["order"] == "8" and group["orbit_count"] == len(group["orbits"]) == 21
    sizes = [row["size"] for row in group["orbits"]]
    assert sum(sizes) == 144 and sizes == sorted(sizes, reverse=True)
    assert group["generators"] >= 2 and group["seconds"] >= 0


def test_evidence_breaks_symmetries(ask: Any) -> None:
    assert ask("symmetries", GRID, "--evidence", CORNER)["order"] == "2"  # only the reflection that fixes the corner


def test_literals_have_the_value_flip_and_variables_do_not(ask: Any, tmp_path: Path) -> None:
    pair = tmp_path / "pair.uai"
    pair.write_text("MARKOV 2 2 2 1 2 0 1 4 3 1 1 3")
    assert ask("symmetries", str(pair))["order"] == "4"
    assert ask("symmetries", str(pair), "--symmetries", "literals")["order"] == "4"
    assert ask("symmetries", str(pair), "--symmetries", "variables")["order"] == "2"


def test_given_generators(ask: Any, path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "generators.txt"
    file.write_text("# the two ends\n(X0 X2)\n")
    assert ask("symmetries", path, "--generators", str(file))["order"] == "2"
    got = ask("marginals", path, "--generators", str(file), "--sweeps", "300", "--seed", "3")
    assert [row["size"] for row in got["orbits"]] == [2, 1]
    file.write_text("(X0 X1)\n")
    assert run(["marginals", path, "--generators", str(file)]) == 2
    assert "no symmetry" in capfd.readouterr().err


def test_symmetries_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["symmetries", GRID]) == 0
    out, err = capfd.readouterr()
    assert "21 of 144 variables" in out and "and 1 more" in out and err == ""


# --- exact -------------------------------------------------------------------------------------------------------


def test_exact(ask: Any, path: str) -> None:
    got = ask("exact", path, "--query", "X0", "--query", "X0=1 ^ X2=1")
    assert set(got) == {"queries", "orbits", "orbit_count", "trusted", "run", "warnings", "log_z", "method"}
    assert set(got["run"]) >= RUN_KEYS and set(got["run"]["seconds"]) >= SECONDS_KEYS
    assert list(got["queries"]) == ["X0", "X0=1 ^ X2=1"]
    assert math.isclose(got["queries"]["X0"]["probability"], path_marginals()[0])
    assert math.isclose(got["log_z"], math.log(sum(path_weights().values())))
    for answer in got["queries"].values():
        assert set(answer) == QUERY_KEYS
        assert answer["mcse"] == 0 and answer["rhat"] is None and answer["ess"] is None


def test_exact_with_more_than_two_values(ask: Any, tmp_path: Path) -> None:
    file = tmp_path / "values.uai"
    file.write_text(VALUES)
    table = np.outer([1, 2, 3], [1, 2, 3]) * np.where(np.eye(3) == 1, 5, 1)
    got = ask("exact", str(file), "--query", "X0", "--query", "X0=1 ^ X1=2")
    assert np.allclose(got["queries"]["X0"]["probability"], table.sum(axis=1) / table.sum(), atol=1e-12)
    assert got["queries"]["X0"]["mcse"] == [0, 0, 0]
    assert math.isclose(got["queries"]["X0=1 ^ X1=2"]["probability"], table[1, 2] / table.sum())
    assert math.isclose(got["log_z"], math.log(table.sum()))


def test_evidence_is_certain(ask: Any) -> None:
    for command in (["exact"], ["marginals", "--sweeps", "200", "--seed", "1"]):
        got = ask(*command, GRID, "--evidence", CORNER, "--query", "X0")["queries"]["X0"]
        assert (got["probability"], got["mcse"], got["orbit_size"]) == (1, 0, 1)


def test_exact_as_text(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["exact", path, "--query", "X0"]) == 0
    out, err = capfd.readouterr()
    assert f"{path_marginals()[0]:.6f}" in out and "log Z" in out and err == ""


# --- marginals ---------------------------------------------------------------------------------------------------


def test_marginals_are_exact_where_that_is_cheap(ask: Any, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    got = ask("marginals", path, "--seed", "7", "--until", "0.01", "--query", "X0", "--query", "X1=1 ^ X2=1")
    assert set(got) == {"queries", "orbits", "orbit_count", "trusted", "run", "warnings"}
    assert set(got["run"]) >= RUN_KEYS and set(got["run"]["seconds"]) >= SECONDS_KEYS
    assert got["run"]["sampler"] == "exact" and got["run"]["method"] in METHODS and got["warnings"] == []
    answer = got["queries"]["X0"]
    assert set(answer) == QUERY_KEYS and abs(answer["probability"] - path_marginals()[0]) < 1e-12
    assert (answer["mcse"], answer["half_width"], answer["rhat"], answer["ess"]) == (0.0, 0.0, None, None)
    assert run(["marginals", path]) == 0 and "exact by " in capfd.readouterr().out
    for words in (["--chains", "4"], ["--estimator", "auto"], ["--scan", "symmetric"], ["--burn-in", "3"]):
        assert ask("marginals", path, *words)["run"]["sampler"] == "gibbs"


METHODS = ["eliminate", "enumerate", "orbits"]


@pytest.mark.parametrize("method", METHODS)
def test_exact_by_method(ask: Any, path: str, method: str) -> None:
    got = ask("exact", path, "--method", method, "--query", "X0")
    assert got["method"] == method and abs(got["queries"]["X0"]["probability"] - path_marginals()[0]) < 1e-12
    assert run(["exact", path, "--method", "lifted"]) == 2


def test_marginals(ask: Any, path: str) -> None:
    got = ask("marginals", path, "--sampler", "gibbs", "--seed", "7", "--query", "X0", "--query", "X1")
    assert set(got) == {"queries", "orbits", "orbit_count", "trusted", "run", "warnings"}
    assert set(got["run"]) >= RUN_KEYS and set(got["run"]["seconds"]) >= SECONDS_KEYS
    assert got["orbit_count"] == len(got["orbits"]) == 2 and got["orbits"][0]["size"] == 2
    assert all(set(row) == ORBIT_KEYS for row in got["orbits"])
    for name, truth in zip(("X0", "X1"), path_marginals(), strict=False):
        answer = got["queries"][name]
        assert set(answer) == QUERY_KEYS
        assert 0 < answer["mcse"] < 0.01 and abs(answer["probability"] - truth) < 5 * answer["mcse"]
    assert got["queries"]["X0"]["orbit_size"] == 2
    run_ = got["run"]
    assert (run_["chains"], run_["sweeps"], run_["seed"], run_["scan"]) == (64, 2000, 7, "symmetric")
    assert run_["updates"] == 64 * 3 * (2000 + run_["burn_in"]) and run_["model"] == path


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["--chains", "5"], "chains", 5),
        (["--sweeps", "333"], "sweeps", 333),
        (["--burn-in", "17"], "burn_in", 17),
        (["--seed", "99"], "seed", 99),
        (["--scan", "random"], "scan", "random"),
        (["--scan", "fixed"], "scan", "fixed"),
        (["--workers", "1"], "workers", 1),
        (["--sampler", "gibbs"], "sampler", "gibbs"),
        (["--estimator", "standard"], "estimator", "standard"),
        (["--estimator", "orbit"], "estimator", "orbit"),
        (["--estimator", "conditional"], "estimator", "conditional"),
        (["--symmetries", "none"], "symmetries", "none"),
        (["--symmetries", "variables"], "symmetries", "variables"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_change_the_run(ask: Any, path: str, words: list[str], key: str, value: object) -> None:
    base = ["--sweeps", "300"] if "--sweeps" not in words else []
    seed = ["--seed", "3"] if "--seed" not in words else []
    plain = ask("marginals", path, "--sweeps", "300", "--seed", "3")
    got = ask("marginals", path, *base, *seed, *words)
    assert got["run"][key] == value
    if key not in ("workers", "sampler", "symmetries"):
        assert got["orbits"] != plain["orbits"] or key == "estimator"
    if key in ("workers", "sampler"):
        assert got["orbits"] == plain["orbits"]  # one seed, the same bits


def test_without_symmetries_every_variable_is_alone(ask: Any, path: str) -> None:
    got = ask("marginals", path, "--symmetries", "none", "--sweeps", "300", "--seed", "3")
    assert [row["size"] for row in got["orbits"]] == [1, 1, 1]


def test_estimators_differ_on_the_same_draws(ask: Any, path: str) -> None:
    words = ["marginals", path, "--sweeps", "300", "--seed", "3", "--query", "X0", "--estimator"]
    found = {e: ask(*words, e)["queries"]["X0"]["probability"] for e in ("standard", "orbit", "conditional")}
    assert len(set(found.values())) == 3


def test_a_fresh_seed_is_told_and_repeats_the_run(ask: Any, path: str) -> None:
    first = ask("marginals", path, "--sweeps", "300")
    second = ask("marginals", path, "--sweeps", "300")
    assert first["run"]["seed"] != second["run"]["seed"] and first["orbits"] != second["orbits"]
    again = ask("marginals", path, "--sweeps", "300", "--seed", str(first["run"]["seed"]))
    assert again["orbits"] == first["orbits"]


def test_until(ask: Any, path: str) -> None:
    got = ask("marginals", path, "--sampler", "gibbs", "--until", "0.0005", "--seed", "3")
    assert all(1.96 * row["mcse"] <= 0.0005 * 1.001 for row in got["orbits"])
    assert (
        ask("marginals", path, "--sampler", "gibbs", "--until", "0.02", "--seed", "3")["run"]["updates"]
        < got["run"]["updates"]
    )


def test_seconds_bound_the_whole_command(ask: Any) -> None:
    got = ask(
        "marginals", GRID, "--sampler", "gibbs", "--seconds", "0.001", "--seed", "3", code=1
    )  # setting up takes longer
    assert {"time-limit", "few-samples"} <= {w["kind"] for w in got["warnings"]}
    assert got["run"]["sweeps"] > 0 and got["run"]["seconds"]["sample"] > 0


def test_too_few_sweeps_are_an_answer_that_is_doubted(ask: Any, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    got = ask("marginals", path, "--sweeps", "1", "--chains", "1", "--seed", "3", code=1)
    assert "few-samples" in {w["kind"] for w in got["warnings"]}
    assert all(row["mcse"] is None for row in got["orbits"])
    assert run(["marginals", path, "--sweeps", "1", "--chains", "1", "--seed", "3"]) == 1
    out, err = capfd.readouterr()
    assert "warning (few-samples)" in err and "probability" in out


def test_marginals_as_text(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["marginals", path, "--sweeps", "500", "--seed", "3"]) == 0
    out, err = capfd.readouterr()
    assert err == ""  # no terminal, no progress
    assert "64 chains × 500 sweeps" in out and "seed 3" in out and "orbit of" in out


# --- draws of another sampler ------------------------------------------------------------------------------------


def test_samples(ask: Any, path: str, tmp_path: Path) -> None:
    draws = np.random.default_rng(11).integers(0, 2, size=(400, 3))
    file = tmp_path / "draws.csv"
    np.savetxt(file, draws, fmt="%d", delimiter=",", header="X0,X1,X2", comments="")
    mean = draws.mean(axis=0)
    queries = [word for i in range(3) for word in ("--query", f"X{i}")]
    words = ["marginals", path, "--samples", str(file), *queries, "--estimator"]
    standard = ask(*words, "standard", code=1)["queries"]  # biased: these are no draws from the model
    orbit = ask(*words, "orbit", code=1)["queries"]
    assert np.allclose([standard[f"X{i}"]["probability"] for i in range(3)], mean, atol=1e-12)
    ends = (mean[0] + mean[2]) / 2
    assert np.allclose([orbit[f"X{i}"]["probability"] for i in range(3)], [ends, mean[1], ends], atol=1e-12)


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".csv", ".parquet"])
def test_results_are_written_and_read_back(ask: Any, path: str, tmp_path: Path, suffix: str) -> None:
    sampled, truth = str(tmp_path / f"sampled{suffix}"), str(tmp_path / f"exact{suffix}")
    ask("marginals", path, "--sweeps", "500", "--seed", "3", "-o", sampled)
    ask("exact", path, "-o", truth)
    comparison = ask("compare", sampled, truth)
    assert 0 < comparison["mse"] < 1e-3 and 0 < abs(comparison["largest_z"]["z"]) < 5
    assert ask("compare", truth, truth)["mse"] == 0


def test_the_written_json_is_the_printed_one(ask: Any, path: str, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    got = ask("exact", path, "--query", "X0", "-o", str(file))
    written = json.loads(file.read_text())
    assert "page" not in got and written.pop("page")  # for pages, in files alone
    assert written == got
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("out")] == ["out.json"]


def test_csv_has_a_row_per_variable(ask: Any, tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    ask("exact", GRID, "-o", str(file))
    assert len(file.read_text().splitlines()) == 1 + 144


def test_compare_as_text(ask: Any, path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sampled, truth = str(tmp_path / "sampled.json"), str(tmp_path / "exact.json")
    ask("marginals", path, "--sweeps", "500", "--seed", "3", "-o", sampled)
    ask("exact", path, "-o", truth)
    assert run(["compare", sampled, truth]) == 0
    out = capfd.readouterr().out
    assert "mse" in out and "z" in out


def test_compare_says_what_it_left_out(ask: Any, path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """X0 and X2 are one orbit: a .json has X0 alone, a file of another program both."""
    sampled, other = str(tmp_path / "sampled.json"), tmp_path / "other.results"
    ask("marginals", path, "--sweeps", "500", "--seed", "3", "-o", sampled)
    other.write_text("X0 0.7027\nX2 0.7027\n")
    got = ask("compare", sampled, str(other))
    assert (got["compared"], got["only_run"], got["only_reference"]) == (1, 1, 1)
    assert run(["compare", sampled, str(other)]) == 0
    assert "1 of the run alone, X1 among them; 1 of the reference alone, X2 among them" in capfd.readouterr().out
    assert run(["compare", sampled, sampled]) == 0
    assert "not compared" not in capfd.readouterr().out


def test_until_shows_the_half_width_it_reached(ask: Any, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    got = ask("marginals", path, "--sampler", "gibbs", "--until", "0.01", "--seed", "3")
    assert got["run"]["until"] == 0.01 and 0 < got["run"]["half_width"] <= 0.01
    assert run(["marginals", path, "--sampler", "gibbs", "--until", "0.01", "--seed", "3"]) == 0
    assert "asked for ±0.01" in capfd.readouterr().out


def test_doctor(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["cores"] >= 1 and facts["versions"]["numba"] and facts["problems"] == []


# --- a person at a terminal --------------------------------------------------------------------------------------


def interrupt(after: float, *words: str) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "definetti", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_interrupted_with_what_there_is() -> None:
    words = ("marginals", GRID, "--sampler", "gibbs", "--seconds", "300", "--seed", "3", "--json")
    for after in (3, 6, 12, 24):  # until it is past loading and compiling
        done = interrupt(after, *words)
        assert done.returncode == 130 and "Traceback" not in done.stderr
        if done.stdout:
            break
    got = json.loads(done.stdout)
    assert got["interrupted"] is True and got["orbit_count"] == 21
    assert got["run"]["seconds"]["sample"] > 0


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
@pytest.mark.parametrize("words", [("--burn-in", "1000000000"), ()])
def test_interrupted_before_there_is_an_answer(words: tuple[str, ...], tmp_path: Path) -> None:
    """While it warms up (which here never ends), or while it compiles into an empty cache."""
    environment = os.environ if words else os.environ | {"DEFINETTI_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "definetti",
            "marginals",
            str(ROOT / "examples" / "smokers.mln"),
            "--sampler",
            "gibbs",
            "--sweeps",
            "9",
            "--domain",
            "person=20",
            *words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    if words:
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=8)
    else:
        while process.poll() is None and not any(
            tmp_path.rglob("*.py")
        ):  # the kernel's source is there: compiling begins
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    process.kill()
    assert (process.returncode, out) == (130, "")
    assert err.strip() in ("definetti: interrupted: no answer yet", "")  # nobody was there to say it yet


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_interrupted_inside_the_compiler() -> None:
    """No exception is raised through LLVM's frames, which may crash: the process ends at once."""
    text = (
        "import os, signal\nfrom numba.core.compiler_lock import global_compiler_lock\n"
        "from definetti.cli import main\nsignal.signal(signal.SIGINT, main._interrupt)\n"
        "try:\n    with global_compiler_lock:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt:\n    print('raised')\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "definetti: interrupted: no answer yet\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pty")
@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_drawn_for_a_terminal_only(quiet: bool) -> None:
    import pty

    leader, follower = pty.openpty()
    words = ["marginals", GRID, "--sampler", "gibbs", "--until", "0.0002", "--seed", "3", "--json"]
    words += ["--quiet"] if quiet else []
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, "-m", "definetti", *words], stdout=subprocess.PIPE, stderr=follower, text=True, env=environment
    )
    os.close(follower)
    drawn = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        drawn += part
    out, _ = process.communicate(timeout=60)
    os.close(leader)
    assert process.returncode == 0 and json.loads(out)["orbit_count"] == 21
    for words_drawn in ("updates/s", "worst ±", " to go"):  # all of it fits into 80 columns
        assert (words_drawn.encode() in drawn) is not quiet
    assert not quiet or drawn == b""


def test_ctrl_c_before_the_command_line_is_loaded_says_so(monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    """It was silent."""
    from definetti import __main__ as entry

    class Loading:
        @property
        def main(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "definetti.cli.main", Loading())
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130 and capfd.readouterr().err == "definetti: interrupted: no answer yet\n"
