"""Inputs that once made a reader raise something foreign, and a few fresh mutations of each format."""

from __future__ import annotations

from pathlib import Path
from random import Random

import fuzzing
import pytest

NAMES = ["uai", "evid", "fg", "csv", "npz", "generators", "json", "result", "mar", "dft", "mln", "db", "query",
         "graph-query"]  # fmt: skip
FEW = {"mln": 40, "db": 40, "dft": 60, "query": 60}  # these take longer


def test_every_reader_is_here() -> None:
    assert list(fuzzing.readers()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_hostile_input(name: str, tmp_path: Path) -> None:
    """Only errors of ours come out; a tenth at least is accepted, else the mutations would only try the first lines."""
    reader, rng = fuzzing.readers()[name], Random(name)
    path, some = tmp_path / f"input{reader.suffix}", FEW.get(name, 300)
    for content in [file.read_bytes() for file in fuzzing.kept(name)]:
        fuzzing.accepts(reader, content, path)
    accepted = sum(fuzzing.accepts(reader, fuzzing.mutated(name, reader, rng), path) for _ in range(some))
    assert accepted >= some // 10
