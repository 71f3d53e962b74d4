"""Nothing that a terminal obeys gets from a file to the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from definetti.cli.main import run

EVIL = "\x1b[2J\x1b]0;title\x07\u202eevil\x9b31m"


def obeyed(text: str) -> list[str]:
    return [c for c in text if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0" or c in "\u202e\u2066"]


@pytest.mark.parametrize("command", ["marginals", "exact", "info", "symmetries"])
def test_names_from_a_model(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mln"
    path.write_text(f'thing = {{"{EVIL}", A}}\nP(thing)\n0.5 P("{EVIL}")\n1 P(x)\n')
    plot = ["--plot"] if command == "marginals" else []
    run([command, str(path), *plot])
    out = capsys.readouterr()
    assert not obeyed(out.out + out.err)
    assert command == "info" or "\\x1b" in out.out  # shown, not left out


def test_names_in_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.uai"
    path.write_text(f"MARKOV\n1\n{EVIL}\n")
    assert run(["info", str(path)]) == 2
    assert run(["info", str(tmp_path / f"{EVIL}.uai")]) == 2
    assert run(["marginals", "examples/grid.uai", "--query", EVIL]) == 2
    assert run([EVIL]) == 2
    assert not obeyed(capsys.readouterr().err)
