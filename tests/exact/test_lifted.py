"""Lifted counting against enumeration from the definition, against published counts, and against itself."""

# ruff: noqa: E501 - planted bugs stand in one line each

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, log

import logic_worlds as lw
import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from logic_worlds import at
from planted import planted
from small_theories import evidence_theory, two_variable_theory

from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.logic.theory import And, Exist, Iff, Implies, MarkovLogic, Not, Or, Predicate
from definetti.solvers.exact import exact
from definetti.solvers.lifted import count_vectors, counting, polynomials, supercells
from definetti.solvers.lifted.count_vectors import count_positive
from definetti.solvers.lifted.counting import count_worlds, lift
from definetti.solvers.lifted.polynomials import count_polynomial
from definetti.solvers.lifted.supercells import Problem, Unit, find_blocks
from definetti.solvers.lifted.theory import NotLiftable

ASTHMA = (
    Predicate("Smokes", ("person",)),
    Predicate("Cancer", ("person",)),
    Predicate("Asthma", ("person",)),
    Predicate("Friends", ("person", "person")),
)
ASTHMA_FORMULAS = (
    (None, Or((Not(at("Asthma", "x")), Not(at("Smokes", "x"))))),
    (None, Or((Not(at("Asthma", "x")), Not(at("Friends", "x", "y")), Not(at("Smokes", "y"))))),
    (None, Or((Not(at("Smokes", "x")), at("Cancer", "x")))),
)
R = Predicate("R", ("a", "a"))


def asthma(n: int, known: dict | None = None) -> MarkovLogic:
    return lw.network({"person": n}, ASTHMA, ASTHMA_FORMULAS, known)


def atom_text(model: MarkovLogic, name: str, constants: tuple[int, ...]) -> str:
    words = [model.sorts[s].constants[c] for s, c in zip(model.predicates[name].sorts, constants, strict=True)]
    return f"{name}({','.join(words)})" if words else name


def agrees(model: MarkovLogic, method: str = "lifted") -> str:
    """Every atom and log Z against the sum over all worlds; says what happened."""
    _, state, weight = lw.worlds(model)
    try:
        found = exact(model, method=method)
    except Unsatisfiable:
        assert weight.max() == -np.inf
        return "impossible"
    except ModelError as refusal:
        assert "cannot be counted lifted" in str(refusal)
        return "refused"
    log_z = weight.max() + log(np.exp(weight - weight.max()).sum())
    assert found.log_z == pytest.approx(log_z, rel=1e-9, abs=1e-9)
    p = np.exp(weight - log_z)
    for (name, constants), true in state.items():
        value = found[atom_text(model, name, constants)].probability
        assert value == pytest.approx(float(p[true].sum()), rel=1e-9, abs=1e-9), (name, constants)
    return "counted"


def two_sorts_that_meet() -> MarkovLogic:
    predicates = (Predicate("P", ("a",)), Predicate("U", ("b",)))
    formulas = [(0.7, And((at("P", "x"), at("U", "u")))), (0.3, at("P", "x")), (-0.4, at("U", "u"))]
    return lw.network({"a": 3, "b": 2}, predicates, [*formulas, (0.2, And((at("P", "x"), at("P", "y"))))])


def test_two_sorts_that_meet() -> None:
    assert agrees(two_sorts_that_meet()) == "counted"


# (module, old text, new text)
MUTANTS = {
    "a constant is paired with itself": (count_vectors, "(self.totals[g][:, u] - 1) // 2", "self.totals[g][:, u] // 2"),
    "pairs with itself in a joint table": (count_vectors, "(u.size * (u.size - 1))", "(u.size * u.size)"),
    "cells that differ are counted together": (supercells, "g == h and new == other) is None", "g == h and new == other) == 7"),
    "groups that meet are counted apart": (counting, "any(x != 1 for x", "all(x != x for x"),
    "a constant is paired with itself, polynomials": (polynomials, "counts[a] * (counts[a] - 1) // 2", "counts[a] * counts[a] // 2"),
    "no multinomials": (polynomials, "+ fact[k].times(-1)", ""),
    "each part alone": (counting, "sum((p.z for p in parts[1:]), parts[0].z)", "parts[0].z"),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_seen(name: str) -> None:
    """By enumeration of all worlds, or by the other way to count."""
    with planted(*MUTANTS[name]), pytest.raises((AssertionError, ArithmeticError, ValueError, IndexError)):
        agrees(two_sorts_that_meet())
        for seed in range(40):
            agrees(two_variable_theory(seed))
            if (problem := problem_of(seed)).units:
                ways_agree(problem)


# --- random theories -----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_theories(seed: int) -> None:
    agrees(two_variable_theory(seed))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_random_theories_with_much_evidence(seed: int) -> None:
    agrees(evidence_theory(seed, hard=True))


def test_most_random_theories_are_counted() -> None:
    """Else the two tests above say little."""
    outcomes = [agrees(two_variable_theory(seed)) for seed in range(25)]
    assert outcomes.count("counted") >= 15


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_says_nothing_changes_nothing(seed: int) -> None:
    """Formulas permuted, one split in two halves of its weight, a vacuous one added."""
    model = two_variable_theory(seed)
    rng = np.random.default_rng(seed)
    given_ = [(f.weight, f.body, f.plus) for f in model.formulas]
    changed = []
    for k in rng.permutation(len(given_)):
        weight, body, plus = given_[k]
        changed += [(weight, body, plus)] * 2 if weight is None else [(weight / 2, body, plus)] * 2
    predicate = next(iter(model.predicates.values()))
    atom = at(predicate.name, *(f"v{k}" for k in range(len(predicate.sorts))))
    changed.append((None, Or((atom, Not(atom))), ()))
    sizes = {s.name: s.size for s in model.sorts.values()}
    known = {
        n: list(zip(map(tuple, e.tuples.tolist()), e.values.tolist(), strict=True)) for n, e in model.evidence.items()
    }
    other = lw.network(sizes, list(model.predicates.values()), changed, known)
    try:
        one, two = exact(model, method="lifted"), exact(other, method="lifted")
    except (ModelError, Unsatisfiable):
        reject()
    assert one.log_z == pytest.approx(two.log_z, rel=1e-9, abs=1e-9)
    for name in one.members:
        assert one[name].probability == pytest.approx(two[name].probability, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_polynomials_and_count_vectors_agree(seed: int) -> None:
    problem = problem_of(seed)
    assume(problem.units)
    ways_agree(problem)


def problem_of(seed: int) -> Problem:
    """One group of constants with different fields: weights of cells and of pairs of cells, a few impossible."""
    from flint import arb

    rng = np.random.default_rng(seed)
    cells = int(rng.integers(2, 4))
    table = np.array([[arb(1)] * cells for _ in range(cells)], dtype=object)
    for a in range(cells):
        for b in range(a, cells):
            table[a, b] = table[b, a] = arb(0) if rng.random() < 0.1 else arb(float(np.exp(rng.normal())))
    units = []
    for _ in range(int(rng.integers(1, 5))):
        field = np.array([arb(0) if rng.random() < 0.1 else arb(float(np.exp(rng.normal()))) for _ in range(cells)])
        possible = np.array([x != 0 for x in field])
        if possible.any():
            units.append(Unit(0, int(rng.integers(1, 5)), field, possible))
    return Problem(tuple(units), (cells,), {(0, 0): table})


def ways_agree(problem: Problem) -> None:
    """Z, singles and pairs by sums over vectors of counts and by polynomials."""
    one, two = count_positive(problem, find_blocks(problem)), count_polynomial(problem)
    assert float(one.z) == pytest.approx(float(two.z), rel=1e-12)
    units = problem.units if float(one.z) != 0 else ()
    for i, u in enumerate(units):
        assert one.single[i] == pytest.approx(two.single[i], rel=1e-11, abs=1e-14)
        for j in range(i, len(units)):
            if i != j or u.size > 1:
                assert one.joint(i, j) == pytest.approx(two.joint(i, j), rel=1e-11, abs=1e-14)
                assert two.joint(i, j) == pytest.approx(two.joint(j, i).T)


# --- numbers of others ---------------------------------------------------------------------------------------

GOLDEN = {
    2: (0.0672195515, 0.1058374928, 0.0095372574),
    3: (0.0668586338, 0.1057584870, 0.0095393223),
    4: (0.0664989197, 0.1056797446, 0.0095413819),
    6: (0.0657831205, 0.1055230544, 0.0095454856),
    10: (0.0643661551, 0.1052128770, None),
    50: (0.0513120843, 0.1023553075, None),
    100: (0.0379213197, 0.0994240349, None),
}


@pytest.mark.parametrize("n", GOLDEN)
def test_friends_and_smokers(n: int) -> None:
    found = exact(lw.smokers(n), ["Smokes(P0)", "Cancer(P1)", "Friends(P0,P1)"])
    assert found.method is not None and found.method.startswith("lifted counting")
    for answer, wanted in zip(found.queries.values(), GOLDEN[n], strict=True):
        assert wanted is None or answer.probability == pytest.approx(wanted, abs=1e-9 if n < 10 else 6e-11)


def test_asthma_is_counted_in_integers() -> None:
    assert count_worlds(asthma(3)) == 50_944
    for n in (2, 5, 30):
        total = sum(
            comb(n, a) * comb(n - a, s) * 2 ** (n * n - a * s + n - s) for a in range(n + 1) for s in range(n - a + 1)
        )
        assert count_worlds(asthma(n)) == total
    found = exact(asthma(3))
    wanted = {
        "Asthma(P0)": 0.3869346734,
        "Smokes(P0)": 0.1507537688,
        "Cancer(P0)": 0.5753768844,
        "Friends(P0,P1)": 0.4824120603,
    }
    for name, p in wanted.items():
        assert found[name].probability == pytest.approx(p, abs=1e-10)


def test_published_weighted_counts() -> None:
    """∀x,y ¬Sm(x) ∨ ¬Fr(x,y) ∨ Sm(y), weight of Fr (4, 1)."""
    predicates = (Predicate("Sm", ("a",)), Predicate("Fr", ("a", "a")))
    clause = (None, Or((Not(at("Sm", "x")), Not(at("Fr", "x", "y")), at("Sm", "y"))))
    for n, count in {3: 4_375_000, 4: 316_406_250_000, 5: 601_196_289_062_500_000}.items():
        assert count_worlds(lw.network({"a": n}, predicates, [clause]), {"Fr": (4, 1)}) == count


def test_no_isolated_nodes() -> None:
    """∀x ∃y R(x,y) without symmetry: (2^n − 1)^n; with symmetry and without loops: A006129."""
    some = (None, Exist(("y",), at("R", "x", "y")))
    for n in (1, 2, 5, 40):
        assert count_worlds(lw.network({"a": n}, (R,), [some])) == (2**n - 1) ** n
    graph = [some, (None, Iff(at("R", "x", "y"), at("R", "y", "x"))), (None, Not(at("R", "x", "x")))]
    counts = [count_worlds(lw.network({"a": n}, (R,), graph)) for n in range(1, 9)]
    assert counts == [0, 1, 4, 41, 768, 27449, 1887284, 252522481]


# --- arithmetic ----------------------------------------------------------------------------------------------


def test_doubles_would_fail_where_signs_cancel() -> None:
    """Sparse graphs in which nobody is alone: Σ_k (-1)^k C(n,k) (1+w)^C(n-k,2) cancels by 45 digits."""
    n, weight = 30, -8.0
    graph = [
        (None, Exist(("y",), at("R", "x", "y"))),
        (None, Iff(at("R", "x", "y"), at("R", "y", "x"))),
        (None, Not(at("R", "x", "x"))),
        (weight / 2, at("R", "x", "y")),
    ]
    found = lift(lw.network({"a": n}, (R,), graph))
    w = Fraction(exp(weight))
    right = sum((-1) ** k * comb(n, k) * (1 + w) ** comb(n - k, 2) for k in range(n + 1))
    doubles = sum((-1.0) ** k * comb(n, k) * (1 + exp(weight)) ** comb(n - k, 2) for k in range(n + 1))
    assert found.log_z == pytest.approx(log(right), rel=1e-10)
    assert abs(doubles - float(right)) > 1e6 * float(right)


def test_digits_are_kept_at_any_size() -> None:
    """Ten thousand people with couplings of a few thousandths: log terms of 1e8, marginals good to 1e-10."""
    from flint import arb, ctx

    n, field, coupling = 10_000, -1.0, 1e-4
    predicates = (Predicate("P", ("a",)),)
    model = lw.network({"a": n}, predicates, [(field, at("P", "x")), (coupling, And((at("P", "x"), at("P", "y"))))])
    found = exact(model, ["P(A0)"])
    before, ctx.prec = ctx.prec, 200
    try:
        top, total, first = arb(field), arb(0), arb(0)
        term = arb(1)
        for k in range(n + 1):
            total, first = total + term, first + term * k
            term = term * (n - k) / (k + 1) * (top + arb(coupling) * (2 * k + 1)).exp()
        right = float((first / total / n).mid())
    finally:
        ctx.prec = before
    assert found["P(A0)"].probability == pytest.approx(right, rel=1e-10)


# --- evidence ------------------------------------------------------------------------------------------------


def test_paper_evidence_against_more_and_more_of_it() -> None:
    """P(Smokes(q)) by two counts with one more atom observed: Z(true) / Z, at fifty people."""
    known = lw.paper_evidence(50, 2, seed=3)
    for make in (lw.smokers, asthma):
        model = make(50, known)
        people = [p for (p,), _ in known["Smokes"]]
        q = next(p for p in range(50) if p not in people)
        more = make(50, known | {"Smokes": [*known["Smokes"], ((q,), 1)]})
        whole, part = lift(model), lift(more)
        assert exact(model)[f"Smokes(P{q})"].probability == pytest.approx(exp(part.log_z - whole.log_z), rel=1e-8)
        friend = make(50, known | {"Friends": [*known["Friends"], ((q, q + 1), 1)]})
        p = exact(model)[f"Friends(P{q},P{q + 1})"].probability
        assert p == pytest.approx(exp(lift(friend).log_z - whole.log_z), rel=1e-8)


def test_a_field_on_every_person() -> None:
    weights = np.random.default_rng(0).normal(size=7)
    formulas = [(weights, at("Smokes", "x"), ("x",)), *lw.SMOKERS_FORMULAS[3:]]
    model = lw.network({"person": 7}, lw.SMOKERS, formulas)
    found = exact(model)
    assert found.log_z is not None
    for i in range(7):
        fixed = lw.network({"person": 7}, lw.SMOKERS, formulas, {"Smokes": [((i,), 1)]})
        assert found[f"Smokes(P{i})"].probability == pytest.approx(exp(lift(fixed).log_z - found.log_z), rel=1e-9)


# --- queries and refusals ------------------------------------------------------------------------------------


def test_queries_about_two_and_more_constants() -> None:
    model = lw.smokers(3, {"Friends": [((0, 1), 1)]})
    texts = ["Smokes(P0) ^ Smokes(P1)", "Friends(P1,P2) ^ !Smokes(P1)", "Smokes(P0) v Smokes(P1) v Friends(P2,P1)",
             "Friends(P0,P1) ^ Cancer(P2)", "Friends(P2,P2) => Smokes(P2)"]  # fmt: skip
    one, two = exact(model, texts, method="lifted"), exact(model, texts, method="enumerate")
    for text in texts:
        assert one[text].probability == pytest.approx(two[text].probability, rel=1e-9)


def test_refusals_name_the_reason_and_the_sizes() -> None:
    with pytest.raises(TooLarge, match=r"three variables in formula 6; 10\^782 states"):
        exact(lw.smokers(50, transitivity=True))
    with pytest.raises(ModelError, match="three variables in formula 6"):
        exact(lw.smokers(3, transitivity=True), method="lifted")
    assert exact(lw.smokers(3, transitivity=True)).method == "eliminate"
    with pytest.raises(Unsatisfiable):
        exact(lw.network({"a": 3}, (R,), [(None, And((at("R", "x", "y"), Not(at("R", "y", "x")))))]))
    rng = np.random.default_rng(0)
    rows = [((i, j), int(rng.integers(2))) for i in range(60) for j in range(60) if rng.random() < 0.5]
    with pytest.raises(TooLarge, match=r"lifted counting needs .* ways of the constants that binary evidence is about"):
        exact(lw.smokers(60, {"Friends": rows}), method="lifted")


def test_three_variables_are_fine_where_scopes_allow_it() -> None:
    """∃z may be pushed inside."""
    body = Implies(at("R", "x", "y"), Exist(("z",), And((at("R", "x", "x"), at("R", "z", "z")))))
    model = lw.network({"a": 2}, (R,), [(0.7, body)])
    assert agrees(model) == "counted"
    with pytest.raises(NotLiftable, match="under a quantifier"):
        lift(lw.network({"a": 2}, (R,), [(0.7, Exist(("z",), And((at("R", "x", "z"), at("R", "z", "y")))))]))
