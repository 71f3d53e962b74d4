"""What a run loads: neither the engines of the other kind of model, nor those it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MOST = 90  # of our modules, packages included
SCRIPT = """
import json, sys
from definetti.cli.main import run
try:
    run(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
OTHER_LIBRARIES = ("lark",)
LOGIC = ("readers.logic", "samplers.codegen", "samplers.logic", "solvers.lifted", "symmetry.logic", "constraints.logic")
CLIMBED = tuple(  # ground models of small theories are climbed in tables, and their hard factors kept
    f"definetti.{name}" for name in ("constraints.graph", "samplers.graph.lanes", "samplers.graph.sampling",
                                     "samplers.graph.starts", "samplers.graph.tables")
)  # fmt: skip
GRAPH = ("samplers.graph", "inference.graph", "solvers.graph", "constraints.graph")


def loaded(*words: str) -> list[str]:
    """The modules at the end of a command."""
    made = subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=True)
    return json.loads(made.stderr.splitlines()[-1])


def of_rooms(modules: list[str], rooms: tuple[str, ...]) -> list[str]:
    return [m for m in modules if any((m + ".").startswith(f"definetti.{room}.") for room in rooms)]


def test_a_run_on_a_factor_graph_loads_nothing_of_markov_logic() -> None:
    modules = loaded("marginals", str(EXAMPLES / "grid.uai"), "--sweeps", "10", "--seed", "1", "--quiet")
    assert not [m for m in OTHER_LIBRARIES if m in modules]
    assert not of_rooms(modules, (*LOGIC, "inference.logic"))
    assert of_rooms(modules, ("samplers.graph.fields",))
    unused = ("block_gibbs", "swendsen_wang", "mcsat", "frozen_watch", "tempering")  # the survey runs on tables
    assert not of_rooms(modules, tuple(f"samplers.graph.{name}" for name in unused))
    ours = [m for m in modules if m.partition(".")[0] == "definetti"]
    assert len(ours) <= MOST, ours


def test_a_run_on_markov_logic_loads_no_engine_of_factor_graphs() -> None:
    files = [str(EXAMPLES / "smokers.mln"), "--evidence", str(EXAMPLES / "town.db")]
    modules = loaded("marginals", *files, "--sweeps", "10", "--seed", "1", "--quiet")
    assert of_rooms(modules, ("samplers.codegen",)) and of_rooms(modules, ("inference.logic",))
    assert not [m for m in of_rooms(modules, GRAPH) if not m.startswith(CLIMBED) and m != "definetti.samplers.graph"]


@pytest.mark.parametrize("words", [("--help",), ("marginals", "--help")])
def test_help_loads_no_library(words: tuple[str, ...]) -> None:
    modules = loaded(*words)
    assert not {"numpy", "numba", "scipy", "igraph", "lark"} & set(modules)
