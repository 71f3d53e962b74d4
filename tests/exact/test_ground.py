"""Grounding is exact: the ground model gives every state the weight that the formulas' meaning gives it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mln_oracle import all_atoms, ground_marginals, log_weight, oracle_marginals

from definetti.errors import TooLarge, Unsatisfiable
from definetti.model.logic.atom_literals import atom_literal, layout
from definetti.model.logic.formulas import atoms, equalities, free_variables, holds, quantified
from definetti.model.logic.ground import ground, ground_event, ground_size
from definetti.model.logic.text import atom_name, format_mln
from definetti.model.logic.theory import (
    And,
    Atom,
    Constant,
    Equal,
    Evidence,
    Exist,
    Forall,
    Formula,
    Iff,
    Implies,
    MarkovLogic,
    Not,
    Or,
    Predicate,
    Sort,
    Variable,
    WeightedFormula,
)
from definetti.readers.logic.mln import read_mln_text
from definetti.readers.logic.queries import parse_query

SORTS = {"a": Sort("a", ("A1", "A2")), "b": Sort("b", ("B1", "B2", "odd name"))}
PREDICATES = {
    "P": Predicate("P", ("a",)),
    "R": Predicate("R", ("a", "a")),
    "S": Predicate("S", ("a", "b")),
    "T": Predicate("T", ("a", "b", "a")),
    "One": Predicate("One", ("a", "b"), (1,)),
    "Rain": Predicate("Rain", ()),
}
VARIABLES = {"x": "a", "y": "a", "z": "b"}  # free
BOUND = {"s": "a", "t": "b"}  # by quantifiers


def _term(sort: str, names: dict[str, str]) -> st.SearchStrategy:
    variables = [Variable(name) for name, of in names.items() if of == sort]
    constants = [Constant(sort, i) for i in range(SORTS[sort].size)]
    return st.sampled_from(variables) | st.sampled_from(constants) if variables else st.sampled_from(constants)


@st.composite
def literals(draw: st.DrawFn, names: dict[str, str]) -> Formula:
    if draw(st.integers(0, 6)) == 0:
        return Equal(draw(_term("a", names)), draw(_term("a", names)))
    predicate = PREDICATES[draw(st.sampled_from(list(PREDICATES)))]
    return Atom(predicate.name, tuple(draw(_term(sort, names)) for sort in predicate.sorts))


@st.composite
def formulas(draw: st.DrawFn, names: dict[str, str], depth: int = 3, unused: tuple[str, ...] = ("s", "t")) -> Formula:
    kind = (
        draw(st.sampled_from(["atom", "atom", "not", "and", "or", "implies", "iff", "exist", "forall"]))
        if depth
        else "atom"
    )
    if kind in ("exist", "forall") and unused:
        name, rest = unused[0], unused[1:]
        body = draw(formulas({**names, name: BOUND[name]}, depth - 1, rest))
        return (Exist if kind == "exist" else Forall)((name,), body)
    if kind == "not":
        return Not(draw(formulas(names, depth - 1, unused)))
    if kind in ("and", "or", "implies", "iff"):
        half = (unused[:1], unused[1:])  # the same variable is never bound twice
        left, right = (draw(formulas(names, depth - 1, half[k])) for k in (0, 1))
        match kind:
            case "and":
                return And((left, right))
            case "or":
                return Or((left, right))
        return Implies(left, right) if kind == "implies" else Iff(left, right)
    return draw(literals(names))


@st.composite
def theories(draw: st.DrawFn) -> MarkovLogic:
    found = []
    for _ in range(draw(st.integers(1, 3))):
        body = draw(formulas(VARIABLES))
        free = free_variables(body)
        sorts = {name: (VARIABLES | BOUND)[name] for name in (*free, *quantified(body))}
        weight = draw(st.sampled_from([0.5, -1.25, 2.0]))
        plus = free[:1] if draw(st.booleans()) else ()
        if plus:
            weight = weight * np.arange(1.0, 1 + SORTS[sorts[plus[0]]].size)
        found.append(WeightedFormula(body, weight, sorts, free, plus))
    return MarkovLogic(SORTS, PREDICATES, tuple(found))


@settings(derandomize=True, deadline=None, max_examples=80)
@given(theories(), st.integers(0, 2**32 - 1))
def test_random_theories(model: MarkovLogic, seed: int) -> None:
    """Two sorts, arities 0 to 3, nested quantifiers, `!`, `+`, equalities, constants: log densities of states."""
    graph, boxes, rng = ground(model), layout(model), np.random.default_rng(seed)
    rows = rng.integers(0, graph.cards, size=(6, graph.n))
    want = []
    for row in rows:
        state = {}
        for name, index in all_atoms(model):
            variable, value = boxes[name].literal(index)
            state[name, index] = bool(row[variable] == value)
        want.append(log_weight(model, state))
    assert graph.log_density(rows) == pytest.approx(want, abs=1e-12)


def can_be_written(formula: WeightedFormula) -> bool:
    """In text a variable gets its sort from an atom, and two constants are compared at once."""
    placed = {term for atom in atoms(formula.body) for term in atom.args}
    return placed >= {Variable(name) for name in formula.sorts} and not any(
        isinstance(e.left, Constant) and isinstance(e.right, Constant) for e in equalities(formula.body)
    )


@settings(derandomize=True, deadline=None, max_examples=40)
@given(theories())
def test_printed_model_reads_back(model: MarkovLogic) -> None:
    assume(all(can_be_written(formula) for formula in model.formulas))
    again = read_mln_text(format_mln(model))
    assert again.sorts == model.sorts and again.predicates == model.predicates
    if not any(formula.plus for formula in model.formulas):
        assert [f.body for f in again.formulas] == [f.body for f in model.formulas]
        assert [f.weight for f in again.formulas] == [f.weight for f in model.formulas]
        assert [set(f.free) for f in again.formulas] == [set(f.free) for f in model.formulas]


TEXT = """
p = {A, B}
topic = {X, Y, Z}
Q(p)
R(p,p)
Topic(p, topic!)
0.7 R(x,y) ^ R(y,x) => Q(x)
-0.4 EXIST y (R(x,y) ^ x != y)
0.9 Topic(x,t) ^ Topic(y,t) ^ x != y
R(x,x) => EXIST y (R(x,y) ^ Q(y)).
"""


@pytest.mark.parametrize(
    ("evidence", "closed"),
    [
        ({}, ()),
        ({"Q(A)": True, "R(A,B)": False}, ()),
        ({"Topic(A,X)": True}, ()),
        ({"Topic(A,X)": False}, ()),
        ({"Topic(A,X)": False, "Topic(A,Z)": False}, ()),
        ({"R(A,A)": True, "R(B,A)": None}, ("R",)),
        ({"Topic(A,X)": None, "Topic(A,Y)": None, "Topic(B,Z)": True}, ("Topic",)),
    ],
)
def test_evidence_and_worlds(evidence: dict[str, bool | None], closed: tuple[str, ...]) -> None:
    """Open and closed world, true, false and unknown, blocks with some values ruled out: all marginals."""
    model = read_mln_text(TEXT, evidence, closed_world=closed)
    graph, boxes = ground(model), layout(model)
    p = ground_marginals(graph)
    for (name, index), want in oracle_marginals(model).items():
        variable, value = boxes[name].literal(index)
        assert p[variable][value] == pytest.approx(want, abs=1e-12), (name, index)


def test_names_and_blocks() -> None:
    model = read_mln_text(TEXT, {"Topic(A,X)": False})
    graph = ground(model)
    assert graph.names[:6] == ("Q(A)", "Q(B)", "R(A,A)", "R(A,B)", "R(B,A)", "R(B,B)")
    assert graph.names[6:] == ("Topic(A,!)", "Topic(B,!)")
    assert graph.value_names[7] == ("X", "Y", "Z")
    atom = Atom("Topic", (Constant("p", 1), Constant("topic", 2)))
    assert atom_literal(layout(model), atom) == (7, 2)


def test_every_atom_lies_where_its_name_is() -> None:
    graph = ground(MarkovLogic(SORTS, PREDICATES, ()))
    boxes = layout(MarkovLogic(SORTS, PREDICATES, ()))
    for name, predicate in PREDICATES.items():
        for index in np.ndindex(*(SORTS[sort].size for sort in predicate.sorts)):
            words = [SORTS[sort].constants[i] for sort, i in zip(predicate.sorts, index, strict=True)]
            variable, value = boxes[name].literal(index)
            if predicate.exclusive:
                assert graph.names[variable] == f"One({words[0]},!)" and graph.value_names[variable][value] == words[1]
            else:
                assert (graph.names[variable], value) == (atom_name(name, words), 1)


def test_one_true_atom_decides_its_block() -> None:
    """Evidence made by hand need not list the false atoms of a block."""
    known = {"One": Evidence(np.array([[0, 1]], np.int32), np.array([1], np.int8))}
    graph = ground(MarkovLogic(SORTS, PREDICATES, (), known))
    assert graph.evidence[graph.index("One(A1,!)")] == 1 and graph.evidence[graph.index("One(A2,!)")] == -1


def test_coincident_atoms_have_reduced_tables() -> None:
    """R(x,y) ^ R(y,z) => R(x,z): with x = y or y = z it says nothing and drops out; with x = z ≠ y it stays."""
    model = read_mln_text("p = {A, B, C}\nR(p,p)\n1 R(x,y) ^ R(y,z) => R(x,z)\n")
    graph = ground(model)
    widths = np.bincount(np.diff(graph.scope_start))
    assert widths.tolist() == [0, 0, 0, 6 + 6]  # all different: 6; x = z ≠ y: R(x,y), R(y,x), R(x,x): 6
    assert graph.log_constant == 27 - 12


@pytest.mark.parametrize(
    "text",
    ["R(A,B)", "Topic(A,X)", "Topic(A,X) v Topic(A,Z) ^ Topic(B,Y)", "R(A,B) <=> !R(B,A)", "R(A,A) ^ !R(A,A)", "A = A"],
)
def test_queries_as_events(text: str) -> None:
    """The states that an event holds are those in which the formula holds."""
    model = read_mln_text(TEXT)
    formula = parse_query(model, text).formula
    boxes, graph = layout(model), ground(model)
    variables, satisfying = ground_event(boxes, formula)
    rows = {tuple(row) for row in satisfying.tolist()}
    for values in np.ndindex(*(int(graph.cards[i]) for i in variables)):
        state = dict(zip(variables, values, strict=True))

        def truth(name: str, index: tuple[int, ...], state: dict[int, int] = state) -> bool:
            variable, value = boxes[name].literal(index)
            return state[variable] == value

        assert (values in rows) == holds(formula, {}, truth, {})


def test_transitivity_at_fifty(cpu_limit) -> None:
    model = read_mln_text("R(p,p)\n1 R(x,y) ^ R(y,z) => R(x,z)\n", domain={"p": 50})
    with cpu_limit(5):
        graph = ground(model)
    assert graph.factor_count == 50 * 49 * 48 + 50 * 49


def test_refuses_what_is_too_large() -> None:
    model = read_mln_text("R(p,p)\n1 R(x,y) ^ R(y,z) => R(x,z)\n", domain={"p": 10_000})
    assert ground_size(model).factors == 10**12
    with pytest.raises(TooLarge, match="sample without grounding"):
        ground(model)
    with pytest.raises(TooLarge, match="EXIST y R"):
        ground(read_mln_text("R(p,p)\n1 EXIST y R(x,y)\n", domain={"p": 100}))
    with pytest.raises(TooLarge, match="written out"):
        ground(read_mln_text("R(p,p)\n1 EXIST x,y R(x,y)\n", domain={"p": 1000}))
    with pytest.raises(TooLarge, match="clauses"):
        read_mln_text("P(p)\nQ(p)\n1 EXIST x (P(x) ^ Q(x))\n", domain={"p": 2000}, weights="alchemy")
    many = " ^ ".join(f"P(x{i})" for i in range(100))
    with pytest.raises(TooLarge, match="ground formulas"):
        ground(read_mln_text(f"P(p)\n1 {many}\n", domain={"p": 100_000}))
    assert ground(read_mln_text("R(p,p)\nFORALL x,y (R(x,y) => R(y,x)).\n", domain={"p": 100})).factor_count == 9900


def test_hard_contradiction() -> None:
    with pytest.raises(Unsatisfiable, match="line 3"):
        ground(read_mln_text("p = {A}\nQ(p)\nQ(x) ^ x != x.\n"))


def test_the_oracle_itself() -> None:
    x, y = Variable("x"), Variable("y")
    likes = {("R", (0, 1))}
    formula = Exist(("y",), And((Atom("R", (x, y)), Not(Equal(x, y)))))
    assert holds(formula, {"x": 0}, lambda p, i: (p, i) in likes, {"y": 2})
    assert not holds(formula, {"x": 1}, lambda p, i: (p, i) in likes, {"y": 2})
    assert holds(Forall(("y",), Implies(Atom("R", (y, y)), Atom("R", (x, y)))), {"x": 1}, lambda p, i: False, {"y": 2})
