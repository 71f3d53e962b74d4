"""The how-to of the experiments runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_code_of_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), flags=re.DOTALL)
    scope: dict = {}
    exec(compile(code, str(DOCUMENT), "exec"), scope)
    symmetry, default = scope["verdicts"]
    assert symmetry.held and default.held, (symmetry.measured, default.measured)
    assert scope["chart"].to_dict()["hconcat"]
