"""Relational kernels as plain Python (`definetti.lumping.logic_branches`), with other settings or planted bugs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from definetti.lumping.logic_branches import plain_kernel
from definetti.model.logic.atom_orbits import AtomOrbits
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.logic import engine
from definetti.samplers.logic.starts import first_state
from definetti.samplers.logic.tensors.data import Chain


def plain_model(
    model: MarkovLogic, orbits: Mapping[str, AtomOrbits], *, short: int = engine.SHORT_ROW, **options: Any
) -> engine.Relational:
    """`compile_model` without compiling. Rows of at most `short` words have their number of words in the text."""
    with patch.object(engine, "SHORT_ROW", short):
        return engine.compile_model(model, orbits, load=plain_kernel, **options)


def planted_model(
    model: MarkovLogic, pattern: str, new: str, orbits: Mapping[str, AtomOrbits] | None = None
) -> engine.Relational:
    """`plain_model` with a bug: `new` for what a pattern matches in the generated updates."""

    def kernel(text: str) -> ModuleType:
        fixed, marker, updates = text.partition("def update_0")
        changed, places = re.subn(pattern, new, updates)
        assert places, f"nothing of the generated text matches {pattern!r}: give the mutant its new place"
        return plain_kernel(fixed + marker + changed)

    return engine.compile_model(model, orbits or {}, load=kernel)


def start(r: engine.Relational, seed: int, chain: int = 0, atoms: Mapping[str, np.ndarray] | None = None) -> Chain:
    return first_state(r, seed, chain, atoms)
