"""The generated relational kernel against brute force over the formulas: the conditional of every atom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import relational_theories as th
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_kernels import plain_model, start
from relational_worlds import chances, expected_chances, put_world, random_state, world_of

from definetti.samplers.logic.engine import Relational, advance, blank


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
    r = plain_model(model, {}, short=short)
    atoms = th.atoms_of(model)
    world = {a: bool(bits >> i & 1) for i, a in enumerate(atoms)}
    for a, found in conditionals(r, world).items():
        expected = th.conditional(model, world, a)
        if expected is None or found is None:
            assert expected == found, a
        else:
            assert abs(found - expected) < 1e-12, (a, found, expected)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(th.theories(), st.integers(0, 2**60))
def test_conditionals_of_random_theories(model, bits):
    assert_conditionals(model, bits)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(th.theories(hard=True), st.integers(0, 2**60))
def test_conditionals_with_hard_formulas(model, bits):
    assert_conditionals(model, bits)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(th.theories(), st.integers(0, 2**60))
def test_conditionals_with_the_number_of_words_as_data(model, bits):
    assert_conditionals(model, bits, short=0)


def sites_to_try(n: int) -> list[tuple[str, tuple[int, ...]]]:
    a, b = n // 3, n - 2
    return [
        *(("s", at) for at in [(0,), (n - 1,), (a,)]),
        *(("e", at) for at in [(a, b), (b, b), (0, 0), (n - 1, 0), (b, 0)]),
        *(("t", at) for at in [(a, b, b), (b, a, a), (b, b, b), (a, b, 0)]),
        *(("of", at) for at in [(b, 0), (0, 0)]),
        ("flag", ()),
    ]


@pytest.mark.parametrize(("n", "short"), [(2, 4), (3, 0), (5, 4), (17, 0), (17, 4)])
def test_every_structure_against_broadcasting(n, short):
    model = th.zoo(n)
    r = plain_model(model, {}, short=short)
    for seed in range(2):
        tensors = random_state(model, seed)
        for name, at in sites_to_try(n):
            found = chances(r, tensors, name, at)
            expected = expected_chances(model, tensors, name, at)
            np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=f"{name}{at}")


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
    r = plain_model(model, {}, short=short)
    tensors = random_state(model, n)
    for name, at in sites_to_try(n):
        if name != "t":
            found = chances(r, tensors, name, at)
            expected = expected_chances(model, tensors, name, at)
            np.testing.assert_allclose(found, expected, atol=1e-9, err_msg=f"{name}{at}")


def test_formulas_that_differ_in_constants_are_one_shape():
    rng = np.random.default_rng(0)
    base = th.smokers(9)
    pairs = [tuple(th.Constant("person", int(k)) for k in rng.integers(9, size=2)) for _ in range(200)]
    rules = [
        th.rule(th.Implies(th.Atom("friends", (a, b)), th.Atom("smokes", (a,))), float(rng.normal()), "person", "")
        for a, b in pairs
        if a != b
    ]
    model = replace(base, formulas=(*base.formulas, *rules))
    assert_conditionals(model, 0x5A5A_1234_9876_F0F0)
    r = plain_model(model, {})
    assert len(r.theory.shapes) == len(base.formulas) + 1
    fewer = plain_model(replace(base, formulas=(*base.formulas, *rules[:3])), {})
    assert fewer.written.text == r.written.text


def test_sorts_without_constants_and_models_without_sorts():
    empty = th.smokers(0)
    r = plain_model(empty, {})
    assert r.free_sites == 0
    chain = start(r, 1)
    advance(r, chain, 10, 2)
    assert chain.clock[0] == 2
    flag = th.Predicate("flag", ())
    model = th.MarkovLogic({}, {"flag": flag}, (th.rule(th.Atom("flag", ()), 0.8, "person", ""),))
    assert_conditionals(model, 1)
