"""What a Markov logic text means: precedence, quantifiers, operators, worlds, and the two readings of a weight."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import lark
import numpy as np
import pytest
from mln_oracle import all_atoms, ground_marginals, oracle_marginals

from definetti.errors import DefinettiError
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.ground import ground
from definetti.model.logic.text import format_db, format_formula, format_mln
from definetti.model.logic.theory import Atom, Constant, MarkovLogic, Not, Truth
from definetti.readers.logic import syntax as mln_syntax
from definetti.readers.logic.mln import natural, read_mln, read_mln_text
from definetti.readers.logic.queries import groundings, parse_queries, parse_query

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "p = {A, B}\nP(p)\nQ(p)\nR(p,p)\nRain\nvote(p)\n"


def body(text: str) -> str:
    """A formula with the brackets that its structure needs, and only those."""
    model = read_mln_text(HEAD + "1 " + text)
    return format_formula(model.formulas[0].body, model.sorts)


def marginal(text: str, atom: str, evidence: dict[str, bool | None] | None = None, **options) -> float:
    """P(atom) twice: by the oracle, which never grounds, and through the ground model."""
    model = read_mln_text(text, evidence, **options)
    formula = parse_query(model, atom).formula
    assert isinstance(formula, Atom)
    index = tuple(term.index for term in formula.args if isinstance(term, Constant))
    variable, value = layout(model)[formula.predicate].literal(index)
    found = oracle_marginals(model)[formula.predicate, index]
    assert ground_marginals(ground(model))[variable][value] == pytest.approx(found, abs=1e-12)
    return found


def sigmoid(w: float) -> float:
    return 1 / (1 + math.exp(-w))


# --- reading ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("P(x) v Q(x) ^ Rain", "P(x) v (Q(x) ^ Rain)"),
        ("!P(x) ^ Q(x)", "(!P(x)) ^ Q(x)"),
        ("P(x) => Q(x) v Rain", "P(x) => (Q(x) v Rain)"),
        ("P(x) <=> Q(x) => Rain", "P(x) <=> (Q(x) => Rain)"),
        ("P(x) => Q(x) => Rain", "P(x) => (Q(x) => Rain)"),
        ("P(x) ^ EXIST y R(x,y) v Q(y)", "P(x) ^ (EXIST y (R(x,y) v Q(y)))"),
        ("EXIST y R(x,y) => Q(x)", "EXIST y (R(x,y) => Q(x))"),
        ("(EXIST y R(x,y)) => Q(x)", "((EXIST y R(x,y)) => Q(x))"),
        ("!EXIST y R(x,y) ^ Q(x)", "!(EXIST y (R(x,y) ^ Q(x)))"),
        ("forall y,z (R(y,z) ^ P(x))", "FORALL y,z (R(y,z) ^ P(x))"),
        ("ExIsT y R(x,y)", "EXIST y R(x,y)"),
        ("EXISTS y R(x,y)", "EXIST y R(x,y)"),
        ("vote(x) v vote(y)", "(vote(x)) v (vote(y))"),
        ("x = A v x != y ^ R(x,y)", "(x = A) v ((x != y) ^ R(x,y))"),
        ("!x = y ^ R(x,y)", "(x != y) ^ R(x,y)"),
        ('P("A") ^ Q(x)', "P(A) ^ Q(x)"),
        ("P(x)\n  ^ Q(x) v\n Rain", "(P(x) ^ Q(x)) v Rain"),
        ("R(x, // first\n /* then */ y)", "R(x,y)"),
    ],
)
def test_precedence(text: str, meaning: str) -> None:
    assert body(text) == body(meaning)
    bracketed = read_mln_text(HEAD + "1 " + meaning).formulas[0].body
    assert read_mln_text(HEAD + "1 " + text).formulas[0].body == bracketed


def test_precedence_can_fail() -> None:
    assert body("P(x) v Q(x) ^ Rain") != body("(P(x) v Q(x)) ^ Rain")


def test_quantifiers_never_shadow() -> None:
    model = read_mln_text(HEAD + "1 P(x) ^ (EXIST x Q(x)) ^ (EXIST x,x1 R(x,x1))")
    formula = model.formulas[0]
    assert formula.free == ("x",)
    assert format_formula(formula.body, model.sorts) == "P(x) ^ (EXIST x2 Q(x2)) ^ (EXIST x3,x1 R(x3,x1))"


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("1.5", 1.5),
        ("-2", -2),
        ("+3e-1", 0.3),
        (".5", 0.5),
        ("2.", 2),
        ("log(0.3)", math.log(0.3)),
        ("-log( 4 )", -math.log(4)),
    ],
)
def test_weights(text: str, weight: float) -> None:
    assert read_mln_text(f"{HEAD}{text} P(x)").formulas[0].weight == pytest.approx(weight, rel=1e-15)


def test_any_order_and_numbers() -> None:
    model = read_mln_text(
        "1 Near(x, 3) => Far(x,B)\nFar(n, place)\nx = 1.\nNear(n,n)\nn = {1, ..., 4}\n".replace("x = 1.\n", "")
    )
    assert model.sorts["n"].constants == ("1", "2", "3", "4")
    assert model.sorts["place"].constants == ("B",)


def test_a_name_may_stand_in_several_sorts() -> None:
    model = read_mln_text(
        "person = {Washington, Anna}\ncity = {Rome, Washington}\nLives(person, city)\n1 Lives(Washington, Washington)\n"
    )
    assert model.formulas[0].body == Atom("Lives", (Constant("person", 0), Constant("city", 1)))


def test_constants_come_from_formulas_and_evidence() -> None:
    model = read_mln_text("Likes(p, q)\n1 Likes(P10, x)\n", {"Likes(P9,Z)": True, 'Likes("two words",A)': False})
    assert model.sorts["p"].constants == ("P9", "P10", "two words")
    assert model.sorts["q"].constants == ("A", "Z")
    assert 'Likes("two words",A)' in format_db(model)


def test_domains() -> None:
    text = "Smokes(person)\n1 Smokes(x)\n"
    assert read_mln_text(text, domain={"person": 3}).sorts["person"].constants == ("Person1", "Person2", "Person3")
    filled = read_mln_text("person = {Zoe, Anna}\n" + text, domain={"person": 4}).sorts["person"]
    assert filled.constants == ("Zoe", "Anna", "Person1", "Person2")
    open_sort = read_mln_text(text, {"Smokes(Person2)": True}, domain={"person": 11}).sorts["person"]
    assert open_sort.constants == tuple(f"Person{i}" for i in range(1, 12))


def test_star_and_plus() -> None:
    model = read_mln_text(HEAD + "0.5 *P(x) ^ *Q(x)\n2 R(+x,y) ^ P(+y)\n")
    shown = [format_formula(formula.body, model.sorts) for formula in model.formulas[:4]]
    assert shown == ["P(x) ^ Q(x)", "!P(x) ^ Q(x)", "P(x) ^ !Q(x)", "!P(x) ^ !Q(x)"]
    assert model.formulas[4].plus == ("x", "y")
    assert np.array_equal(np.asarray(model.formulas[4].weight), np.full((2, 2), 2.0))


def test_truth_and_constants_compared() -> None:
    assert read_mln_text(HEAD + "1 A = B").formulas[0].body == Truth(False)
    assert read_mln_text(HEAD + "1 A != B").formulas[0].body == Not(Truth(False))
    assert read_mln_text(HEAD + "1 true").formulas[0].body == Truth(True)


def test_includes(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "sorts.mln").write_text('p = {A}\n#include "more.mln"\n')
    (tmp_path / "parts" / "more.mln").write_text("P(p)\n")
    (tmp_path / "model.mln").write_text('#include "parts/sorts.mln"\n1 P(x)\n')
    assert read_mln(tmp_path / "model.mln").atom_count == 1


# --- two readings of a weight -----------------------------------------------------------------------------------------


def test_whole_formulas_count() -> None:
    text = "p = {A}\nP(p)\nQ(p)\n2 P(x) <=> Q(x)\n"
    assert marginal(text, "P(A)", {"Q(A)": True}) == pytest.approx(sigmoid(2), abs=1e-12)  # .881
    assert marginal(text, "P(A)", {"Q(A)": True}, weights="alchemy") == pytest.approx(sigmoid(1), abs=1e-12)  # .731


def test_hard_conjunction_has_probability_one() -> None:
    text = "p = {A}\nH(p)\nS(p)\nH(i) ^ S(i).\n"
    assert marginal(text, "H(A)") == 1
    assert marginal(text, "H(A)", weights="alchemy") == 1


def test_alchemy_splits_over_clauses() -> None:
    text = "p = {A}\nP(p)\nQ(p)\nS(p)\n3 P(x) ^ Q(x) ^ S(x)\n"
    assert marginal(text, "P(A)", weights="alchemy") == pytest.approx(sigmoid(1), abs=1e-12)
    assert marginal(text, "P(A)") == pytest.approx((4 - 1 + math.e**3) / (8 - 1 + math.e**3), abs=1e-12)
    negative = text.replace("3 ", "-3 ")
    assert marginal(negative, "P(A)", weights="alchemy") == pytest.approx(sigmoid(-1), abs=1e-12)


@pytest.mark.parametrize(
    ("formula", "same"),
    [
        ("1.2 FORALL x P(x)", "1.2 P(x)"),
        ("1.2 EXIST x P(x)", "1.2 P(A) v P(B)"),
        ("2 P(x) ^ Q(y)", "1 P(x)\n1 Q(y)"),
        ("2 !(P(x) v Q(x))", "1 !P(x)\n1 !Q(x)"),
        ("1 P(x) => Q(x)", "1 !P(x) v Q(x)"),
        ("4 P(x) ^ Q(x) v R(x,x) ^ R(x,x)", "2 P(x) v R(x,x)\n2 Q(x) v R(x,x)"),
        ("2 P(+x) ^ Rain", "1 P(x)\n2 Rain"),
        ("1 P(x) v !P(x)", "0 P(x)"),
    ],
)
def test_alchemy_normal_form(formula: str, same: str) -> None:
    split = ground(read_mln_text(HEAD + formula, weights="alchemy"))
    plain = ground(read_mln_text(HEAD + same))
    for one, other in zip(ground_marginals(split), ground_marginals(plain), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_forall_is_part_of_the_formula() -> None:
    """1.2 FORALL x P(x) is one statement about everybody, true in one state of four."""
    w = math.exp(1.2)
    assert marginal("p = {A, B}\nP(p)\n1.2 FORALL x P(x)\n", "P(A)") == pytest.approx((1 + w) / (3 + w), abs=1e-12)


def test_exist_reaches_right() -> None:
    text = "p = {A, B}\nP(p)\nR(p,p)\n0.8 P(x) => EXIST y R(x,y) ^ !P(y)\n"
    other = "p = {A, B}\nP(p)\nR(p,p)\n0.8 P(x) => ((R(x,A) ^ !P(A)) v (R(x,B) ^ !P(B)))\n"
    assert marginal(text, "P(A)") == pytest.approx(marginal(other, "P(A)"), abs=1e-12)


# --- worlds -----------------------------------------------------------------------------------------------------------


def test_open_world_unless_closed() -> None:
    text = "p = {A, B}\nP(p)\n1 P(x)\n"
    assert marginal(text, "P(B)", {"P(A)": True}) == pytest.approx(sigmoid(1))
    assert marginal(text, "P(B)", {"P(A)": True}, closed_world=["P"]) == 0
    assert marginal(text, "P(B)", {"P(A)": True, "P(B)": None}, closed_world=["P"]) == pytest.approx(sigmoid(1))
    assert marginal(text, "P(B)", {"P(A)": True}, open_world=["P"]) == pytest.approx(sigmoid(1))


def test_evidence_of_blocks_is_completed() -> None:
    model = read_mln_text(
        "t = {X, Y, Z}\nTopic(p, t!)\n1 Topic(x,X)\n", {"Topic(P,Y)": True, "Topic(Q,X)": False, "Topic(Q,Z)": False}
    )
    assert format_db(model).split() == [
        "!Topic(P,X)",
        "Topic(P,Y)",
        "!Topic(P,Z)",
        "!Topic(Q,X)",
        "Topic(Q,Y)",
        "!Topic(Q,Z)",
    ]


def test_evidence_files(tmp_path: Path) -> None:
    (tmp_path / "m.mln").write_text("Likes(p, p)\nRain\n1 Likes(x,y)\n")
    (tmp_path / "one.db").write_text(
        '\ufeff// a comment\n\nLikes( A , B )  // spaces\r\n/* more\n lines */\nRain\n!Likes("a, b",A)\n'
    )
    (tmp_path / "two.db").write_text("?Likes(B,B)\nLikes(A,B)\n")
    model = read_mln(tmp_path / "m.mln", [tmp_path / "one.db", tmp_path / "two.db"])
    assert format_db(model) == 'Likes(A,B)\n!Likes("a, b",A)\nRain\n'
    assert model.sorts["p"].constants == ("A", "B", "a, b")


def test_a_large_evidence_file(tmp_path: Path, cpu_limit) -> None:
    (tmp_path / "m.mln").write_text("Likes(p, p)\n1 Likes(x,y)\n")
    (tmp_path / "big.db").write_text("".join(f"Likes(P{i % 300}, P{i // 300})\n" for i in range(90_000)))
    with cpu_limit(2):
        model = read_mln(tmp_path / "m.mln", tmp_path / "big.db")
    assert model.evidence["Likes"].tuples.shape == (90_000, 2)
    assert (np.diff(np.ravel_multi_index(tuple(model.evidence["Likes"].tuples.T), (300, 300))) == 1).all()


# --- queries ----------------------------------------------------------------------------------------------------------


def test_queries() -> None:
    model = read_mln_text(HEAD + "1 P(x)\n")
    assert list(parse_queries(model, ["P", "R(A,y)", "R(x,x)", "Rain"])) == [
        "P(A)",
        "P(B)",
        "R(A,A)",
        "R(A,B)",
        "R(B,B)",
        "Rain",
    ]
    one = parse_query(model, " P( A )  ^ !Q(B)")
    assert not one.predicate and [key for key, _ in groundings(model, one)] == [" P( A )  ^ !Q(B)"]
    assert format_formula(one.formula, model.sorts) == "P(A) ^ !Q(B)"
    for bad in ["P(C)", "Nope", "*P(A)", "P(+x)", "P(A", "", "1 P(A)", "P(A).", "P(A) |", "#Nope"]:
        with pytest.raises(DefinettiError, match="<query>:1:"):
            parse_query(model, bad)


# --- examples ---------------------------------------------------------------------------------------------------------

CASES = {
    "smokers.mln": ("town.db", {}),
    "smokers-transitive.mln": ("town.db", {}),
    "asthma-hard.mln": (None, {"domain": {"person": 2}}),
    "asthma-soft.mln": (None, {"domain": {"person": 2}}),
    "citations.mln": ("citations.db", {"closed_world": ["Wrote"]}),
    "graph.mln": (None, {"domain": {"node": 3}}),
    "two-smokers.mln": (None, {}),
}


def same_structure(one: MarkovLogic, other: MarkovLogic) -> None:
    assert one.sorts == other.sorts and one.predicates == other.predicates and one.closed == other.closed
    for f, g in zip(one.formulas, other.formulas, strict=True):
        assert (f.body, f.free, f.plus, dict(f.sorts)) == (g.body, g.free, g.plus, dict(g.sorts))
        assert np.array_equal(np.asarray(f.weight), np.asarray(g.weight))
    assert format_db(one) == format_db(other)


@pytest.mark.parametrize("name", CASES)
def test_examples(name: str, tmp_path: Path) -> None:
    """Each example reads, prints, reads back as the same model, and can be enumerated."""
    database, options = CASES[name]
    model = read_mln(EXAMPLES / name, EXAMPLES / database if database else None, **options)
    (tmp_path / "again.mln").write_text(format_mln(model))
    (tmp_path / "again.db").write_text(format_db(model))
    worlds = {key: value for key, value in options.items() if key != "domain"}
    same_structure(model, read_mln(tmp_path / "again.mln", tmp_path / "again.db", **worlds))
    graph = ground(model)
    for p in ground_marginals(graph):
        assert p.sum() == pytest.approx(1) and (p >= 0).all()
    if model.atom_count <= 12:
        found = oracle_marginals(model)
        boxes = layout(model)
        for atom in all_atoms(model):
            variable, value = boxes[atom[0]].literal(atom[1])
            assert ground_marginals(graph)[variable][value] == pytest.approx(found[atom], abs=1e-12)


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.mln")} == set(CASES)


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    """Lark resolves shift/reduce conflicts silently; a grammar that people read should have none to resolve."""
    text = (Path(mln_syntax.__file__).with_name("mln.lark")).read_text(encoding="utf-8")
    level = lark.logger.level
    lark.logger.setLevel(logging.DEBUG)
    lark.logger.propagate = True
    try:
        with caplog.at_level(logging.DEBUG):
            lark.Lark(text, parser="lalr", lexer="basic", start=["file", "query"], debug=True)
            assert "conflict" not in caplog.text.lower()
            lark.Lark('start: start "+" start | "x"', parser="lalr", debug=True)
            assert "conflict" in caplog.text.lower()  # the check can fail
    finally:
        lark.logger.setLevel(level)


@pytest.mark.parametrize("named", [(), ("Person7",), ("Anna", "Person10", "Zoe"), ("Person2x", "Person", "Person99")])
def test_constants_made_by_number_stand_in_natural_order(named: tuple[str, ...]) -> None:
    """Few names among many are put in their places, without a key for every constant."""
    text = "P(person)\n" + "".join(f"1 P({name})\n" for name in named)
    made = read_mln_text(text, domain={"person": 300}).sorts["person"].constants
    assert len(set(made)) == 300 and set(named) <= set(made)
    assert list(made) == sorted(made, key=natural)
