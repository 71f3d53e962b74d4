"""The how-to of the experiments runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(
        r"```{run} python\n(?::[^\n]*\n)*(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    scope: dict = {}
    exec(compile(code, str(DOCUMENT), "exec"), scope)
    symmetry, default = scope["verdicts"]
    assert symmetry.held and default.held, (symmetry.measured, default.measured)
    assert scope["chart"].to_dict()["hconcat"]
    assert (tmp_path / "mine.svg").exists()
