"""Compiled code on disk: shared by processes, apart for every version of the sources, and nobody else's business."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import definetti
from definetti.samplers.kernels.compiling import _NamedByKey, code_folder, private, sources_hash

PACKAGE = Path(definetti.__file__).parent


def python(code: str, cache: Path, package: Path = PACKAGE, **environment: str) -> str:
    path = os.pathsep.join([str(package.parent), *environment.pop("PYTHONPATH", "").split(os.pathsep)])
    variables = {**os.environ, "DEFINETTI_CACHE_DIR": str(cache), "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


DRAW = """
import numpy as np
from definetti.samplers.kernels.graph import tempering
stream = np.arange(1, 5, dtype=np.uint64)
chances = [tempering.happens(0.5, stream) for _ in range(64)]
hits = sum(tempering.happens.stats.cache_hits.values())
print(sum(chances), hits)
"""


def test_processes_share_compiled_code(tmp_path):
    first, second = (python(DRAW, tmp_path / "cache").split() for _ in range(2))
    assert first == [second[0], "0"] and second[1] == "1"
    (folder,) = (tmp_path / "cache").iterdir()
    assert folder.name == f"kernels-{sources_hash()}" and folder.stat().st_mode & 0o777 == 0o700


def test_an_edited_helper_is_never_stale(tmp_path):
    package = tmp_path / "copy" / "definetti"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = python(DRAW, tmp_path / "cache", package).split()
    rng = package / "samplers" / "kernels" / "rng.py"
    text = rng.read_text(encoding="utf-8")
    rng.write_text(text.replace("float(word >> U(11)) * UNIT", "0.75 + float(word >> U(11)) * UNIT * 0.1"))
    assert rng.read_text(encoding="utf-8") != text
    after = python(DRAW, tmp_path / "cache", package).split()
    assert before[0] != "0" and after == ["0", "0"]  # nothing below 1/2 is drawn any more
    rng.write_text(text)
    assert python(DRAW, tmp_path / "cache", package).split() == [before[0], "1"]
    template = package / "samplers" / "codegen" / "templates" / "sweep.py"
    template.write_text(template.read_text(encoding="utf-8") + "# edited\n")
    python(DRAW, tmp_path / "cache", package)
    assert len(list((tmp_path / "cache").iterdir())) == 3


OTHER = """
import json
from numba import config
before = config.CACHE_DIR
import other
other.twice(2)
if WITH:
    import definetti.samplers.kernels.graph.tempering, definetti.samplers.codegen.cache
import late
late.thrice(2)
print(json.dumps([before, config.CACHE_DIR, other.twice._cache.cache_path, late.thrice._cache.cache_path]))
"""


@pytest.mark.parametrize("named", [False, True])
def test_the_cache_of_other_libraries_is_where_it_would_have_been(tmp_path, named):
    library = tmp_path / "library"
    library.mkdir()
    for name, function in (("other", "twice"), ("late", "thrice")):
        text = f"from numba import njit\n@njit(cache=True)\ndef {function}(x): return 2 * x\n"
        (library / f"{name}.py").write_text(text)
    environment = {"PYTHONPATH": str(library)} | ({"NUMBA_CACHE_DIR": str(tmp_path / "numba")} if named else {})
    alone, beside = (
        json.loads(python(OTHER.replace("WITH", flag), tmp_path / "cache", **environment)) for flag in ("False", "True")
    )
    assert alone == beside and alone[0] == alone[1] == (str(tmp_path / "numba") if named else "")
    assert not [path for path in (tmp_path / "cache").rglob("*") if "thrice" in path.name or "twice" in path.name]


def test_locators_named_in_the_environment_are_for_others(tmp_path):
    found = python(DRAW, tmp_path / "cache", NUMBA_CACHE_LOCATOR_CLASSES="InTreeCacheLocator")
    assert found.split()[1] == "0" and list((tmp_path / "cache").rglob("*.nbi"))


def test_the_folder_is_private(tmp_path):
    folder = tmp_path / "kernels"
    assert private(folder) and folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert not private(folder)
    (tmp_path / "file").write_text("")
    assert not private(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path)
    assert not private(tmp_path / "link")


def test_a_folder_that_others_may_write_in_is_not_used(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    code = "from definetti.samplers.kernels.compiling import code_folder; print(code_folder())"
    found = Path(python(code, open_to_all).strip())
    assert not found.is_relative_to(open_to_all) and found.is_dir()
    found.rmdir()
    assert code_folder().is_dir()


def test_versions_that_are_compiled_at_the_same_time_are_not_mistaken(tmp_path, monkeypatch):
    """Two processes that both find an empty index: one's version may be lost, never run in place of the other's."""
    one, other = (_NamedByKey(str(tmp_path), "kernel", "stamp") for _ in range(2))
    monkeypatch.setattr(other, "_load_index", dict)
    one.save("float64", "code for float64")
    other.save("int64", "code for int64")
    found = _NamedByKey(str(tmp_path), "kernel", "stamp")
    assert found.load("int64") == "code for int64" and found.load("float64") in (None, "code for float64")
    one.save("float64", "code for float64")
    assert found.load("float64") == "code for float64" and found.load("int64") == "code for int64"


def test_a_full_disk_does_not_cost_the_run(tmp_path):
    kept = _NamedByKey(str(tmp_path), "kernel", "stamp")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        kept.save("float64", "code for float64" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert kept.load("float64") is None and not list(tmp_path.iterdir())
    kept.save("float64", "code for float64")
    assert kept.load("float64") == "code for float64"
