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


def assert_conditionals(model, bits: int, short: int = 4) -> None:
    r = compile_model(model, {}, plain=True, short=short)
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


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(th.theories(hard=True), st.integers(0, 2**60))
def test_conditionals_with_hard_formulas(model, bits):
    assert_conditionals(model, bits)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(th.theories(), st.integers(0, 2**60))
def test_conditionals_with_the_number_of_words_as_data(model, bits):
    assert_conditionals(model, bits, short=0)


def random_state(model, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    tensors = {p: np.asarray(rng.random(model.shape(p)) < 0.3) for p in model.predicates}
    for p, predicate in model.predicates.items():
        if predicate.exclusive == (1,):
            chosen = rng.integers(model.shape(p)[1], size=model.shape(p)[0])
            tensors[p] = np.arange(model.shape(p)[1])[None, :] == chosen[:, None]
    return tensors


def chances(r: Relational, tensors: dict[str, np.ndarray], name: str, at: tuple[int, ...]) -> np.ndarray:
    """What the kernel says of one site: P(true), or the conditionals of a block's values."""
    chain = blank(r)
    for p, q in enumerate(r.model.predicates):
        put_atoms(r.written, r.data, chain, p, r.model.shape(q), pack(tensors[q]))
    chain.coords[: len(at), 0] = at
    d, c, p = r.data, chain, list(r.model.predicates).index(name)
    with np.errstate(over="ignore"):
        failed = r.kernel.update(
            d.numbers, d.indices, d.reals, d.words, c.bits, c.coords, c.uniform, c.value, c.chance, c.fields, p, 1, 0
        )
    assert failed < 0
    predicate = r.model.predicates[name]
    values = int(np.prod([r.model.shape(name)[j] for j in predicate.exclusive]))
    return c.chance[: values if predicate.exclusive else 1].copy()


def expected_chances(model, tensors: dict[str, np.ndarray], name: str, at: tuple[int, ...]) -> np.ndarray:
    if model.predicates[name].exclusive:
        fields = []
        for v in range(model.shape(name)[1]):
            changed = tensors[name].copy()
            changed[at[0]] = np.arange(changed.shape[1]) == v
            fields.append(th.dense_log_density(model, {**tensors, name: changed}))
        e = np.exp(np.array(fields) - max(fields))
        return e / e.sum()
    fields = []
    for v in (False, True):
        changed = tensors[name].copy()
        changed[at] = v
        fields.append(th.dense_log_density(model, {**tensors, name: changed}))
    return np.array([1 / (1 + np.exp(fields[0] - fields[1]))])


def sites_to_try(n: int) -> list[tuple[str, tuple[int, ...]]]:
    a, b = n // 3, n - 2
    return [
        ("s", (0,)), ("s", (n - 1,)), ("s", (a,)), ("e", (a, b)), ("e", (b, b)), ("e", (0, 0)), ("e", (n - 1, 0)), ("e", (b, 0)),
        ("t", (a, b, b)), ("t", (b, a, a)), ("t", (b, b, b)), ("t", (a, b, 0)), ("of", (b, 0)), ("of", (0, 0)), ("flag", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(("n", "short"), [(2, 4), (3, 0), (5, 4), (17, 0), (17, 4)])
def test_every_structure_against_broadcasting(n, short):
    model = th.zoo(n)
    r = compile_model(model, {}, plain=True, short=short)
    for seed in range(2):
        tensors = random_state(model, seed)
        for name, at in sites_to_try(n):
            found = chances(r, tensors, name, at)
            np.testing.assert_allclose(found, expected_chances(model, tensors, name, at), atol=1e-9, err_msg=f"{name}{at}")


def long_rows(n: int):
    """The structures whose state fits with several words per row: no ternary predicate, at most three variables."""
    model = th.zoo(n)
    kept = [f for f in model.formulas if len(f.sorts) <= 3 and all(p != "t" for p, _ in atoms_in(f.body))]
    predicates = {k: v for k, v in model.predicates.items() if k != "t"}
    return type(model)(model.sorts, predicates, tuple(kept))


def atoms_in(f) -> list[tuple]:
    if isinstance(f, th.Atom):
        return [(f.predicate, f.args)]
    parts = getattr(f, "parts", None) or [getattr(f, k) for k in ("part", "left", "right", "body") if hasattr(f, k)]
    return [a for p in parts if not isinstance(p, (th.Variable, th.Constant)) for a in atoms_in(p)]


@pytest.mark.parametrize(("n", "short"), [(64, 4), (70, 4), (130, 4), (130, 0), (128, 0)])
def test_rows_of_several_words(n, short):
    model = long_rows(n)
    r = compile_model(model, {}, plain=True, short=short)
    tensors = random_state(model, n)
    for name, at in sites_to_try(n):
        if name != "t":
            found = chances(r, tensors, name, at)
            np.testing.assert_allclose(found, expected_chances(model, tensors, name, at), atol=1e-9, err_msg=f"{name}{at}")
