"""Relational kernels as plain Python: the text of the template, of the runtime and of the generator, uncompiled.

Slow, and open to tests that put a chooser in place of the draw.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.kernels import relational, rng
from definetti.samplers.logic import engine
from definetti.samplers.logic.data import Chain
from definetti.samplers.logic.starts import first_state

MARK = "# --- text ---\n"  # what stands above is for the compiled kernel alone
HEADER = """
import math

import numpy as np


def helper(function):
    return function


entry = part = lowered = helper


def popcount(x):
    return int(x).bit_count()


def lowest(x):
    return (int(x) & -int(x)).bit_length() - 1


def peek(array, index):
    return array[index]


def cell(table, row, column):
    return table[row, column]


def test(words, index, bit):
    return words[index] >> np.uint64(bit & 63) & np.uint64(1)


def toggle(words, index, bit):
    words[index] ^= np.uint64(1) << np.uint64(bit & 63)


"""


def plain_kernel(text: str) -> ModuleType:
    """What `load_kernel` makes of a kernel's text, uncompiled."""
    assert relational.__file__ is not None
    runtime = Path(relational.__file__).read_text(encoding="utf-8")
    whole = "\n\n".join([HEADER, *(part.split(MARK)[1] for part in (runtime, text))])
    module = ModuleType("definetti_relational_plain")
    module.__dict__.update(next_word=rng.next_word.py_func, unit=rng.unit.py_func)
    exec(compile(whole, "<relational kernel>", "exec"), module.__dict__)
    return module


def plain_model(
    model: MarkovLogic, orbits: Mapping[str, AtomOrbits], *, short: int = engine.SHORT_ROW, **options: Any
) -> engine.Relational:
    """`compile_model` without compiling. Rows of at most `short` words have their number of words in the text."""
    with patch.object(engine, "load_kernel", plain_kernel), patch.object(engine, "SHORT_ROW", short):
        return engine.compile_model(model, orbits, **options)


def planted_model(model: MarkovLogic, pattern: str, new: str) -> engine.Relational:
    """`plain_model` with a bug: `new` for what a pattern matches in the generated updates."""

    def kernel(text: str) -> ModuleType:
        fixed, marker, updates = text.partition("def update_0")
        changed, places = re.subn(pattern, new, updates)
        assert places, f"nothing of the generated text matches {pattern!r}: give the mutant its new place"
        return plain_kernel(fixed + marker + changed)

    with patch.object(engine, "load_kernel", kernel):
        return engine.compile_model(model, {})


def start(r: engine.Relational, seed: int, chain: int = 0, atoms: Mapping[str, np.ndarray] | None = None) -> Chain:
    return first_state(r, seed, chain, atoms)
