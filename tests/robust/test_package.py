"""The package as a user gets it: what the wheel holds, what importing it costs, which names it gives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import definetti
from definetti.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("numba", "scipy", "igraph", "lark", "rich", "numpy")


def loaded_by(code: str) -> set[str]:
    """Which heavy modules a fresh interpreter has loaded after running `code`."""
    probe = f"{code}\nimport sys\nprint('LOADED', *[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_the_suite_runs_against_what_it_says() -> None:
    """`make test` installs the wheel and says so; then nothing may come from the source tree."""
    home = Path(str(definetti.__file__)).parent
    installed = home.parent.name == "site-packages" and home.is_relative_to(sys.prefix)
    assert installed == ("DEFINETTI_INSTALLED" in os.environ)
    if installed:
        assert version("definetti") == definetti.__version__


def test_every_file_of_the_source_is_in_the_package() -> None:
    source = ROOT / "src" / "definetti"
    wanted = {p.relative_to(source) for p in source.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert {p for p in wanted if not Path(str(files("definetti") / str(p))).is_file()} == set()
    assert Path("py.typed") in wanted


def test_import_loads_nothing_heavy() -> None:
    assert loaded_by("import definetti; dir(definetti)") == set()


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_nothing_heavy(command: str) -> None:
    words = [command, "--help"] if command else ["--help"]
    assert loaded_by(f"from definetti.cli.main import run; assert run({words!r}) == 0") == set()


def test_an_interrupt_while_loading_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    path = os.pathsep.join([str(tmp_path), str(Path(definetti.__file__).parents[1])])
    command = [sys.executable, "-m", "definetti", "info", "model.uai"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "definetti: interrupted: no answer yet\n")


@pytest.mark.parametrize("name", definetti.__all__)
def test_public_names_are_there_and_stay_what_they_are(name: str) -> None:
    value = getattr(definetti, name)
    assert name in dir(definetti)
    assert getattr(definetti, name) is value
    if callable(value):
        assert value.__name__ == name  # a function or a noun, not a module of that name


def test_unknown_public_name() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        definetti.nonsense  # noqa: B018


def test_constraints_pin_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    pin_text = re.compile(r'[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+(; python_version (<|>=) "3\.\d+")?')
    assert pins and all(pin_text.fullmatch(pin) for pin in pins)


def test_citation_has_the_version() -> None:
    assert f"\nversion: {definetti.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_bundled_grid_is_what_its_generator_writes() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "make_grid.py"), "12", "12", "0.4", "0.5"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / "examples" / "grid.uai").read_text()


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_university_has_a_hundred_formulas_of_sixty_shapes(seed: str, tmp_path: Path) -> None:
    from definetti.readers.reading import read
    from definetti.samplers.codegen.shapes import shapes_of

    command = [sys.executable, str(ROOT / "examples" / "make_university.py"), seed]
    written = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert written[0] == written[1]
    (tmp_path / "university.mln").write_text(written[0], encoding="utf-8")
    sizes = {"person": 60, "course": 30, "paper": 60, "project": 10}
    model: Any = read(tmp_path / "university.mln", domain=sizes)
    assert len(model.formulas) == 100 and len(shapes_of(model, model.formulas)[0]) == 60
    assert max(len(formula.free) for formula in model.formulas) == 5
