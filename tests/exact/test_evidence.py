"""What is known of an atom is decided in one place: against all legal completions of its `!` block, and as every
caller reports it."""

from __future__ import annotations

from itertools import product
from math import log10, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definetti.constraints.logic.legal_states import legal
from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.inference.logic.question import logic_question
from definetti.model.facts import markov_logic_facts
from definetti.model.graph.factors import FREE
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.evidence import UNKNOWN, row_keys
from definetti.model.logic.ground import ground
from definetti.model.logic.text import atom_text
from definetti.model.logic.theory import Evidence, MarkovLogic, Predicate, Sort
from definetti.model.marginals import Estimate
from definetti.readers.logic.mln import read_mln_text
from definetti.samplers.logic.tensors.known_bits import known_of, unpack
from definetti.solvers.exact import exact
from definetti.symmetry.logic.members import AtomMembers
from definetti.symmetry.logic.renaming import renaming

PREDICATES = (
    Predicate("N", ()),
    Predicate("P", ("a",)),
    Predicate("R", ("a", "b")),
    Predicate("T", ("a",), (0,)),
    Predicate("Q", ("a", "b"), (1,)),
    Predicate("F", ("b", "b"), (0,)),
    Predicate("U", ("a", "b"), (0, 1)),
)
Atom = tuple[str, tuple[int, ...]]


@st.composite
def models(draw: st.DrawFn) -> MarkovLogic:
    """Every predicate closed or open, with random evidence and random `?`: also such as no reader lets through."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sorts = {name: Sort(name, tuple(f"{name.upper()}{i}" for i in range(rng.integers(1, 4)))) for name in "ab"}
    chosen = [p for p in PREDICATES if rng.random() < 0.6] or [PREDICATES[4]]
    evidence, unknown, closed = {}, {}, set()
    for predicate in chosen:
        shape = tuple(sorts[s].size for s in predicate.sorts)
        rows = np.array(list(np.ndindex(shape)), np.int32).reshape(prod(shape), len(shape))
        stated = rng.random(len(rows)) < rng.choice([0.0, 0.2, 0.6])
        values = rng.random(len(rows)) < (0.15 if predicate.exclusive else 0.5)
        if rng.random() < 0.8:
            evidence[predicate.name] = Evidence(rows[stated], values[stated].astype(np.int8))
        if rng.random() < 0.5:
            closed.add(predicate.name)
            unknown[predicate.name] = rows[rng.random(len(rows)) < rng.choice([0.3, 0.8])]
    return MarkovLogic(sorts, {p.name: p for p in chosen}, (), evidence, frozenset(closed), unknown)


def all_atoms(model: MarkovLogic) -> list[Atom]:
    return [(name, row) for name in model.predicates for row in np.ndindex(model.shape(name))]


def by_itself(model: MarkovLogic, atom: Atom) -> set[int]:
    """The values of an atom that its evidence allows, whatever else is true."""
    name, row = atom
    known = model.evidence.get(name)
    stated = {} if known is None else dict(zip(map(tuple, known.tuples.tolist()), known.values.tolist(), strict=True))
    if row in stated:
        return {int(stated[row])}
    doubt = {tuple(r) for r in model.unknown.get(name, np.zeros((0, len(row)), int)).tolist()}
    return {0} if name in model.closed and row not in doubt else {0, 1}


def completions(model: MarkovLogic) -> dict[Atom, set[int]]:
    """Atom → its values in all legal completions of its block; empty where there is none."""
    found: dict[Atom, set[int]] = {}
    blocks: dict[tuple, list[Atom]] = {}
    for name, row in all_atoms(model):
        inner = model.predicates[name].exclusive
        key = (name, *(c for k, c in enumerate(row) if k not in inner)) if inner else (name, row)
        blocks.setdefault(key, []).append((name, row))
    for members in blocks.values():
        legal_ones = [
            state
            for state in product(*(by_itself(model, atom) for atom in members))
            if not model.predicates[members[0][0]].exclusive or sum(state) == 1
        ]
        for k, atom in enumerate(members):
            found[atom] = {state[k] for state in legal_ones}
    return found


@given(models())
def test_known_is_what_all_legal_completions_agree_on(model: MarkovLogic) -> None:
    truth = completions(model)
    if not all(truth.values()):
        for name, predicate in model.predicates.items():
            if not all(values for (other, _), values in truth.items() if other == name):
                for ask in (model.knowledge.relation, model.knowledge.codes, model.knowledge.free_count):
                    with pytest.raises(Unsatisfiable, match=f"`!` of {name}"):
                        ask(name)
                with pytest.raises(Unsatisfiable):
                    known_of(model, predicate)
        for fails in (ground, renaming, exact):
            with pytest.raises(Unsatisfiable):
                fails(model)
        return
    value = {atom: values.copy().pop() if len(values) == 1 else None for atom, values in truth.items()}
    for atom, expected in value.items():
        assert model.knowledge.value(*atom) == expected
    for name, predicate in model.predicates.items():
        shape = model.shape(name)
        codes = np.array([UNKNOWN if (v := value[name, row]) is None else v for row in np.ndindex(shape)])
        codes = codes.reshape(shape)
        assert np.array_equal(model.knowledge.codes(name), codes)
        assert np.array_equal(model.knowledge.mask(name), codes != UNKNOWN)
        assert model.knowledge.free_count(name) == (codes == UNKNOWN).sum()
        assert [model.knowledge.occurs(name, v) for v in (0, 1)] == [bool((codes == v).any()) for v in (0, 1)]
        bits = known_of(model, predicate)
        if bits.mask is None or bits.truth is None:
            assert (codes == UNKNOWN).all()
        else:
            assert np.array_equal(unpack(bits.mask, shape), codes != UNKNOWN)
            assert np.array_equal(unpack(bits.truth, shape), codes == 1)
        sites = (codes == UNKNOWN).any(axis=predicate.exclusive) if predicate.exclusive else codes == UNKNOWN
        assert bits.free == sites.sum()
    _ground_model_agrees(model, truth)
    free = sum(v is None for v in value.values())
    assert markov_logic_facts(model)["log10_states_at_most"] == pytest.approx(free * log10(2))
    members = AtomMembers(group := renaming(model))
    for (name, row), expected in value.items():
        assert (group.orbit_number(name, row) < 0) == (expected is not None)
        found = members.find(atom_text(model, name, row))
        assert isinstance(found, int) if expected is None else isinstance(found, Estimate)
        if isinstance(found, Estimate):
            assert found.probability == expected


def _ground_model_agrees(model: MarkovLogic, truth: dict[Atom, set[int]]) -> None:
    graph, boxes = ground(model), layout(model)
    possible = [np.arange(card) == seen if seen != FREE else np.ones(card, bool)
                for card, seen in zip(graph.cards.tolist(), graph.evidence.tolist(), strict=True)]  # fmt: skip
    for k in range(graph.factor_count):
        (variable,) = graph.scope[graph.scope_start[k] : graph.scope_start[k + 1]]
        start = graph.table_start[graph.table_of[k]]
        possible[variable] &= graph.tables[start : start + graph.cards[variable]] == 0.0
    for (name, row), values in truth.items():
        variable, value = boxes[name].literal(row)
        allowed = possible[variable]
        may_be_false = bool(np.delete(allowed, value).any())
        assert {1} & values == ({1} if allowed[value] else set())
        assert {0} & values == ({0} if may_be_false else set())


@given(models())
def test_a_solver_allows_the_same(model: MarkovLogic) -> None:
    truth = completions(model)
    found = legal(model)
    if not all(truth.values()):
        assert found.satisfiable() is False
        return
    for (name, row), values in truth.items():
        assert {v for v in (0, 1) if found.possible(name, row, bool(v))} == values


def test_keys_of_rows_beyond_64_bits() -> None:
    shape = (1 << 31, 1 << 31, 1 << 31)
    rows = np.array([[2, 1, 0], [2, 0, 5], [1, 7, 7]], np.int64)
    assert np.argsort(row_keys(shape, rows)).tolist() == [2, 1, 0]


BLOCKS = "node = {A, B}\nkind = {K, L, M}\nQ(node, kind!)\nS(node)\n1 S(x) ^ Q(x,K)\n"


def test_the_last_open_value_of_a_closed_block_is_true_everywhere() -> None:
    """One `?` left in a block: the API, queries and files all say that it is true."""
    import definetti as dft

    model = read_mln_text(BLOCKS, {"Q(A,K)": None, "Q(B,L)": True}, closed_world=["Q"])
    assert exact(model)["Q(A,K)"].probability == 1.0
    found = dft.marginals(model, queries=["Q(A,K)", "Q(A,L)"], sweeps=20, chains=2, seed=0)
    assert [found[q].probability for q in ("Q(A,K)", "Q(A,L)", "Q(B,L)", "Q(B,K)")] == [1.0, 0.0, 1.0, 0.0]
    assert not [n for n in found.notices if n.fails]


@pytest.mark.parametrize("kinds", ["K,L", "K,L,M"])
def test_a_closed_block_without_an_open_value_is_refused_whatever_its_size(kinds: str) -> None:
    text = "node = {A}\nkind = {" + kinds + "}\nQ(node, kind!)\n1 Q(x,K)\n"
    with pytest.raises(ModelError, match="no value"):
        read_mln_text(text, {"Q(A,K)": False}, closed_world=["Q"])
    model = read_mln_text(text, {"Q(A,K)": False, "Q(A,L)": None}, closed_world=["Q"])
    assert exact(model)["Q(A,L)"].probability == 1.0


def test_an_atom_without_a_number_is_asked_for_as_a_query() -> None:
    """A predicate with too many kinds of atoms to number: the look-up says so, a query is counted by itself."""
    model = read_mln_text("a = {A, B}\nS(a)\nR(a, a)\n1 S(x) ^ R(x,y)\n", {"S(A)": True})
    group = renaming(model, most_cells=3)
    assert "R" not in group.atom_orbits
    assert AtomMembers(group).find("S(A)") == Estimate(1.0)
    with pytest.raises(TooLarge, match=r"ask for R\(A,B\) as a query"):
        AtomMembers(group).find("R(A,B)")
    question = logic_question(group, ["R(A,B)", "S(B)"], "orbit")
    assert list(question.cells) == ["R(A,B)"]
