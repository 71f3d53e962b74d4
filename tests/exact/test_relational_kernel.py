"""The generated relational kernel against brute force over the formulas: the conditional of every atom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import small_theories as th
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_kernels import plain_model, planted_model, start
from relational_worlds import World, atoms_of, chances, conditional, expected_chances, put_world, random_state, world_of

from definetti.samplers.logic.engine import Relational, advance, blank


def conditionals(r: Relational, world: World) -> dict[tuple, float | None]:
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
                    d.level, c.tilt, c.tally, p, 1, 0,
                )  # fmt: skip
            found[(name, *at)] = None if failed >= 0 else float(c.chance[0])
    assert world_of(r, chain) == world
    return found


def assert_conditionals(model, bits: int, short: int = 4) -> None:
    r = plain_model(model, {}, short=short)
    atoms = atoms_of(model)
    world = {a: bool(bits >> i & 1) for i, a in enumerate(atoms)}
    for a, found in conditionals(r, world).items():
        expected = conditional(model, world, a)
        if expected is None or found is None:
            assert expected == found, a
        else:
            assert abs(found - expected) < 1e-12, (a, found, expected)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(th.kernel_theories(), st.integers(0, 2**60))
def test_conditionals_of_random_theories(model, bits):
    assert_conditionals(model, bits)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(th.kernel_theories(hard=True), st.integers(0, 2**60))
def test_conditionals_with_hard_formulas(model, bits):
    assert_conditionals(model, bits)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(th.kernel_theories(), st.integers(0, 2**60))
def test_conditionals_with_the_number_of_words_as_data(model, bits):
    assert_conditionals(model, bits, short=0)


# The generated text is changed, from the first update on: (pattern, what takes its place).
MUTANTS = {
    "groundings that are lost count as won": (r"(\bc\d+) -= ", r"\1 += "),
    "the atom's own bit is not set": (r"\| \(ONE << U\((a\d+)\)\)", "| ZERO"),
    "bits past the last constant count": (r" & tail_\d+\b", ""),
    "a quantifier looks at one constant": (r"if (q\d+) == FULL: break", "break"),
    "arguments the wrong way round": (r"test\(bits, (\w+) \+ (a\d), (a\d)\)", r"test(bits, \1 + \3, \2)"),
    "equal arguments are not noticed": (r"U\((a\d) == (\w+)\)", "ZERO"),
    "the first weight of many for all": (r"peek\(reals, (\w+) \+ j\)", r"peek(reals, \1)"),
    "one bit of a word is looked at": (r"(b\d+) &= (b\d+) - ONE", r"\1 = ZERO"),
}  # fmt: skip


def largest_error(r: Relational, model) -> float:
    """Of the conditionals of a few sites of the model with every structure."""
    error = 0.0
    for seed in range(3):
        tensors = random_state(model, seed)
        for name, at in sites_to_try(model.shape("s")[0]):
            found = chances(r, tensors, name, at)
            error = max(error, float(np.abs(found - expected_chances(model, tensors, name, at)).max()))
    return error


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    model = th.zoo(5)
    assert largest_error(plain_model(model, {}), model) < 1e-9
    try:
        error = largest_error(planted_model(model, *MUTANTS[name]), model)
    except (AssertionError, IndexError):  # no value is possible, or a place outside its array
        error = 1.0
    assert error > 1e-4


@pytest.mark.parametrize("change", [(r"\by1 \+= ", "y0 += "), (r"\by0 \+= ", "y0 += 0 * ")])
def test_a_planted_bug_in_hard_formulas_is_seen(change: tuple[str, str]) -> None:
    """What makes an atom impossible counts for the other value, or not at all."""
    model = th.smokers(3, hard=True)
    world = {a: a in (("friends", 0, 1), ("friends", 1, 2), ("friends", 0, 2)) for a in atoms_of(model)}
    found = conditionals(planted_model(model, *change), world)
    assert any(found[a] != conditional(model, world, a) for a in world if a[0] == "friends")


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
