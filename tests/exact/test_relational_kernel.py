"""The generated relational kernel against brute force over the formulas: conditionals, sweeps, scans, cache."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from definetti.samplers.kernels.relational_known import pack
from definetti.samplers.kernels.relational_state import put_atoms
from definetti.samplers.relational import Relational, blank, compile_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
import relational_theories as th


def world_of(r: Relational, chain) -> th.World:
    return {(p, *at): bool(v) for p in r.model.predicates for at, v in np.ndenumerate(r.atoms(chain, p))}


def put_world(r: Relational, chain, world: th.World) -> None:
    for p, name in enumerate(r.model.predicates):
        tensor = np.zeros(r.model.shape(name), dtype=bool)
        for at in np.ndindex(tensor.shape):
            tensor[at] = world[(name, *at)]
        put_atoms(r.written, r.data, chain, p, tensor.shape, pack(tensor))


def conditionals(r: Relational, world: th.World) -> dict[tuple, float | None]:
    """Every atom's conditional as the plain kernel computes it, the state staying as it is."""
    chain = blank(r)
    found: dict[tuple, float | None] = {}
    names = list(r.model.predicates)
    put_world(r, chain, world)
    d, c = r.data, chain
    for p, name in enumerate(names):
        for at in np.ndindex(r.model.shape(name)):
            c.coords[: len(at), 0] = at
            value = world[(name, *at)]
            r.kernel.draw = lambda uniform, chance, value=value: value
            with np.errstate(over="ignore"):
                failed = r.kernel.update(
                    d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance, c.fields,
                    p, 1, 0,
                )  # fmt: skip
            found[(name, *at)] = None if failed >= 0 else float(c.chance[0])
    assert world_of(r, chain) == world
    return found


def assert_conditionals(model, bits: int) -> None:
    r = compile_model(model, {}, plain=True)
    atoms = th.atoms_of(model)
    world = {a: bool(bits >> i & 1) for i, a in enumerate(atoms)}
    for a, found in conditionals(r, world).items():
        expected = th.conditional(model, world, a)
        if expected is None or found is None:
            assert expected == found, a
        else:
            assert abs(found - expected) < 1e-12, (a, found, expected)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(th.theories(), st.integers(0, 2**60))
def test_conditionals_of_random_theories(model, bits):
    assert_conditionals(model, bits)
