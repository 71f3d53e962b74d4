"""Misuse of the command line: one message on stderr, nothing on stdout, exit code 2, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from definetti.cli.main import COMMANDS, run

GRID = str(Path(__file__).resolve().parents[2] / "examples" / "grid.uai")


def refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """Run, check that it was refused as the contract says, give the message."""
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("definetti: ") and "Traceback" not in err and "a bug in definetti" not in err
    return err


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "--nonsense" in refused([command, "--nonsense"], capfd)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "doctor"])
def test_missing_arguments(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert "Missing argument" in refused([command], capfd)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "doctor"])
def test_a_file_that_is_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".nowhere.uai.old").write_text("")
    words = ["nowhere.json", "nowhere.json"] if command == "compare" else ["nowhere.uai"]
    words += ["-o", "draws.npz"] if command == "sample" else []
    message = refused([command, *words], capfd)
    assert "nowhere" in message and ".old" not in message  # hidden files are not suggested
    assert [path.name for path in tmp_path.iterdir()] == [".nowhere.uai.old"]  # and nothing is left behind


@pytest.mark.parametrize("command", ["info", "symmetries", "marginals", "exact"])
def test_a_broken_file_shows_its_place(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.uai"
    path.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 oops 4\n")
    message = refused([command, str(path), "--json"], capfd)
    assert f"{path}:7:5" in message and "oops" in message and "^" in message


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sweeps", "0"], "--sweeps"),
        (["--sweeps", "-3"], "--sweeps"),
        (["--sweeps", "many"], "--sweeps"),
        (["--chains", "0"], "--chains"),
        (["--workers", "0"], "--workers"),
        (["--seed", "-1"], "--seed"),
        (["--burn-in", "-1"], "--burn-in"),
        (["--seconds", "nan"], "positive"),
        (["--seconds", "0"], "positive"),
        (["--seconds", "inf"], "positive"),
        (["--until", "-1"], "positive"),
        (["--time-limit", "0"], "positive"),
        (["--estimator", "best"], "--estimator"),
        (["--sampler", "best"], "best"),
        (["--scan", "sideways"], "--scan"),
        (["--symmetries", "all"], "--symmetries"),
        (["--weights", "heavy"], "--weights"),
        (["--domain", "person"], "person=100"),
        (["--domain", "person=0"], "person=100"),
        (["--domain", "person=ten"], "person=100"),
        (["--domain", "person=3"], "domain"),
        (["--closed-world", "P"], "closed_world"),
        (["--sweeps", "10", "--seconds", "1"], "--sweeps and --seconds"),
        (["--until", "0.1", "--sweeps", "1"], "--sweeps and --until"),
        (["--symmetries", "none", "--generators", "g.txt"], "--generators"),
        (["--symmetries", "renaming"], "renaming"),
        (["--samples", "nowhere.csv"], "nowhere.csv"),
        (["--samples", "s.csv", "--chains", "4"], "--chains"),
        (["--samples", "s.csv", "--sampler", "gibbs", "--scan", "fixed"], "--sampler, --scan"),
        (["--generators", "nowhere.txt"], "nowhere.txt"),
        (["--evidence", "nowhere.evid"], "nowhere.evid"),
        (["--query", "X999"], "X999"),
        (["--query", "X0=7"], "7"),
        (["--query", "X0 ^"], "X0 ^"),
        (["--query", ""], "query"),
        (["-o", "result.txt"], ".json"),
        (["-o", "nowhere/result.json"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_options(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(["marginals", GRID, "--json", *words], capfd)
    assert list(tmp_path.iterdir()) == []


def test_the_destination_is_checked_before_the_model_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.uai" not in refused(["exact", "nowhere.uai", "-o", str(tmp_path)], capfd)


def test_a_result_does_not_overwrite_the_draws(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    draws = tmp_path / "draws.csv"
    draws.write_text("0,1\n")
    assert "overwrite" in refused(["marginals", GRID, "--samples", str(draws), "-o", str(draws)], capfd)
    assert draws.read_text() == "0,1\n"


def test_too_large_for_an_exact_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str], cpu_limit) -> None:
    n = 60  # one factor over pairs of a complete graph: elimination needs 2^59
    pairs = [(i, j) for i in range(n) for j in range(i)]
    lines = ["MARKOV", str(n), " ".join(["2"] * n), str(len(pairs)), *[f"2 {i} {j}" for i, j in pairs]]
    path = tmp_path / "large.uai"
    path.write_text("\n".join([*lines, *["4 1 2 2 1.5"] * len(pairs)]))
    with cpu_limit(20):
        assert "too large" in refused(["exact", str(path)], capfd)


def test_without_arguments_there_is_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "Commands:" in err and "marginals" in err


def test_version_and_help_are_no_errors(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out.startswith("definetti, version ")
    assert run(["marginals", "-h"]) == 0
    assert "--until" in capfd.readouterr().out


# --- streams -----------------------------------------------------------------------------------------------------


def definetti(*words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "definetti", *words], text=True, **options)  # type: ignore[call-overload]


def test_a_reader_that_goes_away_is_no_failure() -> None:
    read, write = os.pipe()
    os.close(read)
    process = definetti("info", GRID, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one() -> None:
    with open("/dev/full", "w") as full:
        process = definetti("info", GRID, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and err.count("\n") == 1 and "space" in err


@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor before the program starts")
@pytest.mark.parametrize("descriptors", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_streams_that_are_closed_cost_nothing(descriptors: tuple[int, ...], tmp_path: Path) -> None:
    """It was a bug in definetti: None has no isatty."""
    answer = tmp_path / "answer.json"

    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    words = ("marginals", GRID, "--sweeps", "200", "--seed", "1", "-o", str(answer))
    process = definetti(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=close)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "bug" not in err and bool(out) == (1 not in descriptors)
    assert json.loads(answer.read_text())["orbits"]


@pytest.mark.parametrize("command", [["compare", GRID, GRID], ["report", GRID]])
def test_a_model_in_place_of_an_answer_is_called_one(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert "this is a model; an answer is what" in refused(command, capfd)


def test_a_terminal_without_unicode_gets_its_answer() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = definetti("info", GRID, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and err == "" and "144 ? 2" in out


def test_help_is_quick(cpu_limit) -> None:
    with cpu_limit(5 * 0.6):  # about 0.13 s each
        for _ in range(5):
            assert definetti("--help", stdout=subprocess.DEVNULL).wait(timeout=60) == 0


def test_the_nearest_name_is_suggested(capfd: pytest.CaptureFixture[str]) -> None:
    assert "did you mean marginals?" in refused(["marginal", GRID], capfd)
    assert "there is no such file; did you mean grid.uai?" in refused(["info", GRID.replace("grid", "gird")], capfd)
    assert "did you mean grid.uai" in refused(["info", GRID.replace("uai", "uia")], capfd)
    assert "did you mean X0?" in refused(["exact", GRID, "--query", "x0"], capfd)
    assert "a conjunction is written ^" in refused(["exact", GRID, "--query", "X0 & X1"], capfd)


def test_evidence_that_is_cut_off(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`1 0` announces a value of variable 0; only on two lines is it a sample without evidence."""
    (tmp_path / "cut.evid").write_text("1 0\n")
    assert "expected the value of variable 0" in refused(
        ["info", GRID, "--evidence", str(tmp_path / "cut.evid")], capfd
    )
    (tmp_path / "none.evid").write_text("1\n0\n")
    assert run(["info", GRID, "--evidence", str(tmp_path / "none.evid")]) == 0


def test_a_binary_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.mln").write_bytes(b"P(a)\n1 P(x)\xff\xfe\x00")
    assert "m.mln:2:7: the file is not UTF-8 text (byte 0xff); save it as" in refused(
        ["info", str(tmp_path / "m.mln")], capfd
    )
