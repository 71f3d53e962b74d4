"""Conditions, quantifiers, patterns, counts and formulas: exact against all states, sampled against exact."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import definetti as dft
from definetti.errors import ModelError, ParseError
from definetti.model.logic.formulas import holds
from definetti.model.logic.ground import ground
from definetti.readers.logic.queries import parse_query

TEXT = "person = {A,B,C}\nS(person)\nF(person,person)\n0.5 S(x)\n1.1 F(x,y) ^ S(x) => S(y)\n-0.7 F(x,+y)\n"
EVIDENCE = "F(A,B)\n!F(C,C)"
QUERIES = [
    "S(A) | S(B)",
    "EXIST x (S(x) ^ F(A,x))",
    "FORALL x S(x)",
    "F(x,y) ^ S(x)",
    "S(x) | F(x,A)",
    "S(y) | EXIST x F(x,y)",
]
COUNTS = ["#S", "#F", "#{x,y: F(x,y) ^ S(x)}", "#{x: EXIST y F(x,y)}", "#{x: F(A,x)}"]


@pytest.fixture(scope="module")
def model() -> dft.MarkovLogic:
    return dft.markov_logic(TEXT, EVIDENCE)


def by_states(model: dft.MarkovLogic, text: str) -> tuple[float, dict[int, float]]:
    """P, or the mean and the distribution of a count, by going through all states."""
    query, graph = parse_query(model, text), ground(model)
    free = graph.free
    states = np.tile(np.maximum(graph.evidence, 0), (2 ** len(free), 1))
    states[:, free] = np.array(list(product((0, 1), repeat=len(free))))
    weight = np.exp(graph.log_density(states))
    weight /= weight.sum()
    index = {name: i for i, name in enumerate(graph.names)}
    sizes = {name: model.sorts[sort].size for name, sort in query.sorts.items()}
    ranges = [range(model.sorts[sort].size) for _, sort in query.free]
    above = np.zeros(len(states))
    below = np.zeros(len(states))
    for row, state in enumerate(states):

        def truth(name: str, at: tuple[int, ...], state=state) -> bool:
            words = ",".join(model.sorts["person"].constants[i] for i in at)
            return bool(state[index[f"{name}({words})"]])

        for values in product(*ranges):
            binding = dict(zip((name for name, _ in query.free), values, strict=True))
            given = query.condition is None or holds(query.condition, binding, truth, sizes)
            above[row] += given and holds(query.formula, binding, truth, sizes)
            below[row] += given
    if query.count:
        return float(weight @ above), {int(k): float(weight[above == k].sum()) for k in np.unique(above)}
    return float(weight @ above / (weight @ below)), {}


@pytest.mark.parametrize("method", ["auto", "eliminate"])
def test_exact_answers_are_those_of_all_states(model: dft.MarkovLogic, method: str) -> None:
    found = dft.exact(model, [*QUERIES, *COUNTS], method=method)
    for text in QUERIES:
        assert found[text].probability == pytest.approx(by_states(model, text)[0], abs=1e-12)
    for text in COUNTS:
        mean, shares = by_states(model, text)
        count = found[text]
        assert count.mean == pytest.approx(mean, abs=1e-12)
        assert count.std == pytest.approx(sum((k - mean) ** 2 * p for k, p in shares.items()) ** 0.5, abs=1e-9)
        assert {r["value"]: pytest.approx(r["probability"], abs=1e-12) for r in count.distribution} == shares


GROUNDED = {
    "gibbs-literals": {"sampler": "gibbs", "symmetries": "literals"},
    "gibbs-standard": {"sampler": "gibbs", "symmetries": "variables", "estimator": "standard"},
    "mcsat-literals": {"sampler": "mcsat", "symmetries": "literals"},
    "tempering-literals": {"sampler": "tempering", "symmetries": "literals"},
    "blocks": {"sampler": "blocks"},
}


@pytest.mark.parametrize(
    "how", [name if name.startswith("gibbs") else pytest.param(name, marks=pytest.mark.slow) for name in GROUNDED]
)
def test_answers_of_a_ground_model_agree(model: dft.MarkovLogic, how: str) -> None:
    texts = ["S(A)", *QUERIES, "F(A,B) ^ S(A)", *COUNTS]
    asked = dft.exact(model, texts)
    found = dft.marginals(model, texts, sweeps=300, seed=5, **GROUNDED[how])
    assert list(found.queries) == texts
    for text in texts:
        assert abs(found[text].probability - asked[text].probability) < 5 * found[text].mcse, text
    for text in COUNTS:
        truth = {r["value"]: r["probability"] for r in asked[text].distribution}
        for row in found[text].distribution:
            assert abs(row["probability"] - truth[row["value"]]) < 3.5 * row["half_width"] + 1e-3
        assert found[text].std == pytest.approx(asked[text].std, rel=0.15)


@pytest.mark.parametrize("symmetries", ["auto", "literals"])
def test_ratios_and_counts_of_a_mixture_of_modes(symmetries: str) -> None:
    """Nearly all P are false, or, once in a dozen states, nearly all are true."""
    text = "P(p)\nQ(p)\n0.13 P(x) <=> P(y)\n0.12 P(x)\n0.7 P(x) => Q(x)\n"
    model = dft.markov_logic(text, domain={"p": 16})
    texts = ["P(x) | Q(x)", "#P", "EXIST x (P(x) ^ !Q(x))"]
    asked = dft.exact(model, texts)
    found = dft.marginals(model, texts, symmetries=symmetries, sweeps=200, seed=3)
    assert len(found.run["regions"]) == 2
    for query in texts:
        assert abs(found[query].probability - asked[query].probability) < 4 * found[query].mcse, query
    assert found["#P"].std == pytest.approx(asked["#P"].std, rel=0.1)
    truth = {row["value"]: row["probability"] for row in asked["#P"].distribution}
    assert sum(row["probability"] for row in found["#P"].distribution) == pytest.approx(1)
    for row in found["#P"].distribution:
        assert abs(row["probability"] - truth[row["value"]]) < 3 * row["half_width"] + 1e-3


TIED = "p = {A,B,C}\nc = {R,G}\nS(p)\nT(p)\nK(p,c!)\nS(x) <=> T(x).\n0.7 S(x)\n0.4 K(x,R) ^ S(x)\n"


def test_formulas_are_counted_through_what_hard_formulas_tie() -> None:
    """`auto` samples the core of the ground model, where T is S."""
    model = dft.markov_logic(TIED, "S(C)")
    texts = ["T(A) | K(A,R)", "EXIST x (T(x) ^ K(x,G))", "#{x: T(x) ^ K(x,R)}", "T(C) ^ FORALL x (S(x) <=> T(x))"]
    asked = dft.exact(model, texts)
    found = dft.marginals(model, texts, sweeps=300, seed=2, symmetries="literals")
    for text in texts[:3]:
        assert abs(found[text].probability - asked[text].probability) < 5 * found[text].mcse, text
    assert found[texts[3]].probability == 1.0 and [row["value"] for row in found[texts[2]].distribution] == [0, 1, 2, 3]


@pytest.mark.parametrize("conditional", ["X0=0 | X1=1", "X0 | X2=2 v X1", "X0=1 ^ X1=1 | !X1", "X2=0 | X0"])
def test_conditions_on_factor_graphs(conditional: str) -> None:
    rng = np.random.default_rng(4)
    model = dft.factor_graph([2, 2, 3], [([0, 1], rng.random((2, 2))), ([1, 2], rng.random((2, 3)) + 0.2)])
    states = np.array(list(product(range(2), range(2), range(3))))
    weight = np.exp(model.log_density(states))
    a, b, c = states.T
    holds = {
        "X0=0 | X1=1": (a == 0, b == 1), "X0 | X2=2 v X1": (a == 1, (c == 2) | (b == 1)),
        "X0=1 ^ X1=1 | !X1": ((a == 1) & (b == 1), b == 0), "X2=0 | X0": (c == 0, a == 1),
    }  # fmt: skip
    above, below = holds[conditional]
    truth = weight[above & below].sum() / weight[below].sum()
    exact = dft.exact(model, [conditional, "X1"])
    assert exact[conditional].probability == pytest.approx(truth, abs=1e-12) and list(exact.queries) == [
        conditional,
        "X1",
    ]
    found = dft.marginals(model, [conditional, "X1"], sampler="gibbs", sweeps=400, seed=1)
    assert list(found.queries) == [conditional, "X1"]
    assert abs(found[conditional].probability - truth) <= 4 * found[conditional].mcse


def test_what_a_factor_graph_refuses() -> None:
    model = dft.factor_graph([2, 2, 3], [([0, 1], np.ones((2, 2)))])
    with pytest.raises(ParseError, match="a disjunction is written v"):
        dft.exact(model, "X0 ^ (X1 | X2=0)")
    with pytest.raises(ParseError, match="a disjunction is written v"):
        dft.exact(model, "X0 | X1 | X2=0")
    with pytest.raises(ParseError, match="the query ends"):
        dft.exact(model, "X0 |")
    with pytest.raises(ParseError, match="the query ends"):
        dft.exact(model, "| X0")
    with pytest.raises(ParseError, match="X2 has 3 values"):
        dft.exact(model, "X2 | X0")
    with pytest.raises(ModelError, match="never true"):
        dft.exact(model, "X0 | X1 ^ !X1")


@pytest.mark.parametrize(
    "sampler", ["gibbs", "lifted", *(pytest.param(name, marks=pytest.mark.slow) for name in ("mcsat", "tempering"))]
)
def test_sampled_answers_agree(model: dft.MarkovLogic, sampler: str) -> None:
    asked, seen = dft.exact(model, [*QUERIES, *COUNTS]), model
    if sampler == "lifted":  # without +
        seen = dft.markov_logic(TEXT.replace("+", ""), EVIDENCE)
        asked = dft.exact(seen, [*QUERIES, *COUNTS])
    found = dft.marginals(seen, [*QUERIES, *COUNTS], sampler=sampler, sweeps=600, seed=5)
    for text in [*QUERIES, *COUNTS]:
        assert abs(found[text].probability - asked[text].probability) < 5 * found[text].mcse, text
    for text in COUNTS:
        truth = {r["value"]: r["probability"] for r in asked[text].distribution}
        for row in found[text].distribution:
            assert abs(row["probability"] - truth[row["value"]]) < 3.5 * row["half_width"] + 1e-3
        assert found[text].std == pytest.approx(asked[text].std, rel=0.15)
        assert sum(row["probability"] for row in found[text].distribution) == pytest.approx(1)


def test_both_sides_of_a_condition_use_the_same_orbit() -> None:
    symmetric = dft.markov_logic(TEXT.replace("+", "").replace("{A,B,C}", "{A,B,C,D,E}"))
    found = dft.marginals(symmetric, ["S(A) | F(B,A)"], sampler="gibbs", sweeps=300, seed=1)["S(A) | F(B,A)"]
    assert found.orbit_size == 20 and found.estimator == "ratio"
    known = dft.markov_logic(TEXT.replace("+", ""), "S(A)\n!F(B,B)")
    for group in ("auto", "literals"):  # one side knows S(A), the other does not speak of it
        sure = dft.marginals(known, ["S(A) | S(B)"], sampler="gibbs", symmetries=group, sweeps=60, seed=1)
        assert sure["S(A) | S(B)"].probability == 1.0


def test_formulas(model: dft.MarkovLogic) -> None:
    exact = dft.exact(model, formulas=True)
    assert not exact.queries
    rows = exact.formulas
    assert [row["groundings"] for row in rows] == [3, 9, 3, 3, 3]  # one row per weight
    assert rows[0]["expected"] == pytest.approx(3 * exact["S(A)"].probability + 3 * sum(
        exact[f"S({c})"].probability - exact["S(A)"].probability for c in "BC") / 3, abs=1e-9)  # fmt: skip
    found = dft.marginals(model, formulas=True, sampler="gibbs", sweeps=500, seed=3).formulas
    for one, other in zip(found, rows, strict=True):
        assert abs(one["expected"] - other["expected"]) <= 5 * one["mcse"] + 1e-9
    with pytest.raises(ModelError, match="a factor graph has none"):
        dft.exact(dft.factor_graph([2], []), formulas=True)


def test_warnings_name_the_formula_that_they_speak_of() -> None:
    """Its key in the answer was printed, which began with a zero byte."""
    model = dft.markov_logic("a = {A,B,C}\nP(a!)\nQ(a)\n1 P(x) ^ Q(x)\nP(x) => Q(x).")
    found = dft.marginals(model, "Q(A)", sampler="gibbs", sweeps=60, seed=1, formulas=True)
    assert list(found.queries) == ["Q(A)"] and found.formulas[0]["expected"] == pytest.approx(1.0)
    said = " ".join(notice.message for notice in found.notices)
    assert "formula 1: P(x) ^ Q(x)" in said and "\0" not in said
    named = dft.markov_logic("formula(p)\n1 formula(x)", domain={"p": 2})
    assert list(dft.exact(named, "formula (P1)", formulas=True).queries) == ["formula (P1)"]


def test_a_condition_that_is_never_met() -> None:
    model = dft.markov_logic("p = {A,B}\nP(p)\nQ(p)\n!Q(x) v P(x).\n0.1 P(x)\n", "!Q(A)")
    with pytest.raises(ModelError, match="never true"):
        dft.exact(model, "P(A) | Q(A)")
    found = dft.marginals(model, "P(A) | Q(A)", sampler="gibbs", sweeps=50, seed=1)
    assert np.isnan(found["P(A) | Q(A)"].probability) and not found.trusted
    assert found.to_json()["queries"]["P(A) | Q(A)"]["probability"] is None


def test_counts_keep_their_json(tmp_path, model: dft.MarkovLogic) -> None:
    import json
    from pathlib import Path

    import jsonschema

    found = dft.marginals(
        model, ["#S", "S(A) | S(B)", "#{x,y: F(x,y)}"], sampler="gibbs", sweeps=100, seed=1, formulas=True
    )
    body = json.loads(json.dumps(found.to_json()))
    schema = json.loads((Path(__file__).parents[2] / "docs" / "result.schema.json").read_text())
    for part in ("queries", "formulas"):
        jsonschema.validate(body[part], {**schema["properties"][part], "$defs": schema["$defs"]})
    assert set(body["queries"]["#S"]) == {
        "mean", "std", "mcse", "half_width", "rhat", "ess", "distribution", "orbit_size"}  # fmt: skip
    for name in ("a.json", "a.csv"):
        dft.save(found, tmp_path / name)
    again = dft.load(tmp_path / "a.json")
    assert again["#S"].mean == found["#S"].mean and again["#S"].distribution == found["#S"].distribution


def test_large_counts_are_gathered() -> None:
    model = dft.markov_logic("F(p,p)\n0.1 F(x,y)\n", domain={"p": 60})
    rows = dft.marginals(model, "#F", sampler="gibbs", sweeps=200, seed=1)["#F"].distribution
    assert len(rows) <= 100 and all(row["to"] - row["value"] == rows[0]["to"] - rows[0]["value"] for row in rows)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S(x) | S(y) | S(z)", "expected"),
        ("#", "expected|no predicate|unknown"),
        ("#T", "no predicate is called T"),
        ("#{x: S(y)}", "x does not occur"),
        ("#{x: F(x,y)}", "y is neither counted nor quantified"),
        ("#{x,x: S(x)}", "names a variable twice"),
        ("#{X: S(X)}", "no constant 'X'"),
        ("#{: S(A)}", "expected"),
        ("#{x S(x)}", "expected"),
        ("#{x: S(x)", "expected|ends too early"),
        ("EXIST x S(y) ^", "ends too early|expected"),
        ("*S(A)", r"\* has no meaning"),
        ("S(+x)", r"\+ has no meaning"),
        ("EXIST z S(A)", "z stands in no predicate"),
        ("S(x+1)", "arithmetic with variables is not known in a query"),
        ("(" * 300 + "!S(A)" + ")" * 300 + " | " + "!" * 300 + "S(A)", "nested more than 200 deep"),
    ],
)
def test_mistakes_in_queries(model: dft.MarkovLogic, text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        dft.exact(model, text)


def test_names_like_code_in_queries() -> None:
    model = dft.markov_logic('p = {"__import__(\'os\')", "\\"; drop"}\nP(p)\n0.3 P(x)\n')
    for text in ('P("__import__(\'os\')") | P("\\"; drop")', "#P", "#{x: P(x)}"):
        found = dft.marginals(model, text, sampler="gibbs", sweeps=50, seed=1)
        assert text in found.queries


def test_a_quotient_takes_events_alone() -> None:
    graph = dft.factor_graph([2, 2], [([0, 1], [[1, 2], [3, 1]])])
    with pytest.raises(ModelError, match="both sides of the condition"):
        dft.quotient(graph, "X0 | X1")
    with pytest.raises(ModelError, match="formula over constants"):
        dft.quotient(dft.markov_logic("p={A,B}\nS(p)\n0.5 S(x)\n"), "S(A) | S(B)")


def test_a_count_takes_no_condition(model: dft.MarkovLogic) -> None:
    with pytest.raises(ParseError, match="a count takes no condition"):
        dft.exact(model, "#S | S(A)")
