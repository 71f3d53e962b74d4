"""The generator's Boolean expressions: folding changes no truth value."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from definetti.samplers.codegen.expressions import (
    And,
    Argument,
    Constant,
    Equal,
    Exists,
    Expr,
    Leaf,
    Literal,
    Or,
    Read,
    Slot,
    Variable,
    Xor,
    assign,
    conjuncts,
    equality,
    leaves,
    negate,
    possible,
    rebuild,
    variables_of,
    without,
)

LEAVES: list[Leaf] = [Read(0, (Variable(0),)), Read(0, (Argument(0),)), Equal(Argument(0), Variable(1)), Read(1, ())]
WORLDS = [dict(zip(LEAVES, values, strict=True)) for values in itertools.product((False, True), repeat=len(LEAVES))]


def bodies() -> st.SearchStrategy[Expr]:
    literals = st.builds(Literal, st.sampled_from(LEAVES), st.booleans())
    return st.recursive(
        st.one_of(st.builds(Constant, st.booleans()), literals),
        lambda inner: st.one_of(
            st.builds(Xor, inner, inner),
            *(st.lists(inner, max_size=3).map(lambda parts, kind=kind: kind(tuple(parts))) for kind in (And, Or)),
        ),
        max_leaves=12,
    )


def truth(e: Expr, world: dict[Leaf, bool]) -> bool:
    match e:
        case Constant(value):
            return value
        case Literal(leaf, sign):
            return world[leaf] == sign
        case And(parts):
            return all(truth(p, world) for p in parts)
        case Or(parts):
            return any(truth(p, world) for p in parts)
        case Xor(left, right):
            return truth(left, world) != truth(right, world)


def folded(e: Expr) -> Expr:
    return rebuild(e, Literal)


@given(bodies())
def test_folding_and_negation_keep_the_truth(e):
    lean, opposite = folded(e), negate(e)
    assert folded(lean) == lean and set(leaves(lean)) <= set(leaves(e))
    for world in WORLDS:
        assert truth(lean, world) == truth(e, world) == (not truth(opposite, world))


@given(bodies(), st.sets(st.sampled_from(LEAVES)))
def test_what_is_possible_covers_what_is_true(e, known):
    e = folded(e)
    bound = possible(e, lambda leaf: leaf in known)
    assert set(leaves(bound)) <= known
    for world in WORLDS:
        values = {leaf: world[leaf] for leaf in known}
        assert truth(assign(e, values), world) == truth(e, world) <= truth(bound, world)


@given(bodies())
def test_conjuncts_that_are_true_can_be_left_out(e):
    e = folded(e)
    parts = frozenset(conjuncts(e)[::2])
    for world in WORLDS:
        if all(truth(p, world) for p in parts):
            assert truth(without(e, parts), world) == truth(e, world)


def test_terms_are_ordered_and_apart():
    terms = [Variable(1), Slot(0), Argument(2), Variable(0), Argument(0)]
    assert [str(t) for t in sorted(terms)] == ["a0", "a2", "k0", "v0", "v1"]
    assert Variable(0) != Argument(0) and equality(Variable(0), Argument(0)) == equality(Argument(0), Variable(0))
    assert equality(Slot(1), Slot(1)) == Constant(True)
    inner = And((Literal(Read(0, (Variable(0), Variable(1)))), equality(Variable(1), Argument(0))))
    assert variables_of(Exists((1,), inner)) == {0}
