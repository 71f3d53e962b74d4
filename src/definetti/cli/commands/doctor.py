"""`definetti doctor`: versions, the cache folder, cores — what to look at first when something is slow or missing."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from typing import Any

import click

from definetti import __version__, show
from definetti.cli.options import prints
from definetti.cli.output import say, say_json

NEEDED = ("numpy", "numba", "scipy", "igraph", "lark", "click", "rich", "platformdirs")
EXTRAS = ("pyarrow", "altair", "vl-convert-python", "arviz", "pandas", "polars", "dimod", "pgmpy", "networkx")


@click.command("doctor")
@prints
def command(as_json: bool, quiet: bool) -> int:
    """Versions, cache folder and cores; compiles and runs a kernel.

    Exits with 1 if something is missing or fails.

    \b
    Examples:
      definetti doctor
    """
    facts = examine()
    if as_json:
        say_json(facts)
    else:
        rows = [
            (key.replace("_", " "), str(value)) for key, value in facts.items() if not isinstance(value, (dict, list))
        ]
        rows += [(name, number or "not installed") for name, number in facts["versions"].items()]
        say(show.pairs(rows))
        say("\n".join(["", *facts["problems"]]) if facts["problems"] else "\nall is well")
    return 1 if facts["problems"] else 0


def examine() -> dict[str, Any]:
    versions = {name: _version(name) for name in NEEDED + EXTRAS}
    problems = [f"{name} is missing: pip install {name}" for name in NEEDED if versions[name] is None]
    folder = _cache_folder()
    if folder is not None and not _writable(folder):
        problems.append(
            f"the cache folder {folder} cannot be written to: compiled kernels will be made anew in every run"
        )
    kernel = None if problems else _kernel(problems)
    return {
        "definetti": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cache_folder": folder,
        "kernel": kernel,
        "versions": versions,
        "problems": problems,
    }


def _kernel(problems: list[str]) -> str:
    """Samples a model of two variables by compiled code and looks at the answer; what went wrong is a problem."""
    import time

    began = time.perf_counter()
    try:
        from definetti.inference.marginals import marginals
        from definetti.model.graph.factors import factor_graph

        pair = factor_graph([2, 2], [([0, 1], [[3.0, 1.0], [1.0, 2.0]])])
        found = marginals(pair, sampler="gibbs", estimator="orbit", sweeps=200, seed=1)["X0"].array[1]
    except Exception as error:  # whatever it is, the reader wants to know
        problems.append(f"a kernel could not be compiled and run: {type(error).__name__}: {error}")
        problems.append("try an empty cache folder, and the versions of numba and numpy that definetti was made with")
        return "failed"
    if abs(found - 3 / 7) > 0.05:
        problems.append(f"a compiled kernel gives wrong numbers: {found:.4f} instead of {3 / 7:.4f}")
    return f"compiled and ran in {show.seconds(time.perf_counter() - began)}"


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _cache_folder() -> str | None:
    try:
        from platformdirs import user_cache_dir
    except ImportError:
        return None
    return user_cache_dir("definetti")


def _writable(folder: str) -> bool:
    """The folder itself, or the nearest one above it that exists, where it would be made."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
