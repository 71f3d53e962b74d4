"""Two answers side by side: the numbers by hand, and verdicts that can be wrong in neither direction."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from definetti.errors import ModelError, Notice
from definetti.model.compare import compare
from definetti.model.graph.factors import factor_graph
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Variables
from definetti.solvers.exact import exact


def test_numbers_by_hand() -> None:
    a = {"x": Estimate(0.3, 0.01), "y": Estimate([0.2, 0.3, 0.5], [0.02, 0.02, 0.02]), "only": Estimate(0.1)}
    b = {"x": Estimate(0.25, 0.0), "y": Estimate([0.2, 0.25, 0.55], [0.0, 0.02, 0.0]), "other": Estimate(0.9)}
    result = compare(a, b)
    assert result.names == ("x", "y")
    kl_x = 0.3 * math.log(0.3 / 0.25) + 0.7 * math.log(0.7 / 0.75)
    kl_y = 0.3 * math.log(0.3 / 0.25) + 0.5 * math.log(0.5 / 0.55)
    assert result.kl_ab == pytest.approx((kl_x + kl_y) / 2)
    back = 0.25 * math.log(0.25 / 0.3) + 0.75 * math.log(0.75 / 0.7)
    back += 0.25 * math.log(0.25 / 0.3) + 0.55 * math.log(0.55 / 0.5)
    assert result.kl_ba == pytest.approx(back / 2)
    assert result.mse == pytest.approx((0.0025 + (0 + 0.0025 + 0.0025) / 3) / 2)
    assert abs(result.largest.difference) == pytest.approx(0.05)
    assert result.strongest is not None and result.strongest.name == "x"
    assert result.strongest.z == pytest.approx(5.0)
    y = result.rows[1]
    assert y.z == pytest.approx(-2.5) and y.tests == 3
    assert result.threshold == pytest.approx(NormalDist().inv_cdf(1 - 1e-4 / 8), rel=1e-6)
    assert not result.agrees and "differ" in result.verdict and "1 in 10,000" in result.verdict


def test_zero_in_a_denominator_is_floored() -> None:
    result = compare({"x": Estimate(0.5, 0.1)}, {"x": Estimate(0.0, 0.0)})
    assert result.kl_ab == pytest.approx(0.5 * math.log(0.5 / 1e-9) + 0.5 * math.log(0.5))
    assert result.kl_ba == pytest.approx(math.log(2))


def test_exact_against_exact() -> None:
    same = compare({"x": Estimate(0.5)}, {"x": Estimate(0.5 + 1e-12)})
    assert same.agrees and same.strongest is not None and same.strongest.z == 0
    different = compare({"x": Estimate(0.5)}, {"x": Estimate(0.5 + 1e-6)})
    assert not different.agrees and "without error" in different.verdict
    assert different.to_json()["largest_z"] == {"name": "x", "z": None}
    assert "∞" in repr(different)
    json.dumps(different.to_json(), allow_nan=False)


def test_answers_without_error_bars() -> None:
    judged = compare({"x": Estimate(0.5, 0.1)}, {"x": Estimate(0.6, None)})
    assert judged.agrees and judged.rows[0].z == pytest.approx(-1)
    for first in (Estimate(0.5, None), Estimate(0.5, 0.0)):
        unjudged = compare({"x": first}, {"x": Estimate(0.6, None)})
        assert not unjudged.agrees and unjudged.strongest is None and "not judged" in unjudged.verdict


def test_nothing_in_common() -> None:
    with pytest.raises(ModelError, match="none of the 1 names"):
        compare({"x": Estimate(0.5)}, {"y": Estimate(0.5)})
    with pytest.raises(ModelError, match="2 values in the first answer and 3"):
        compare({"x": Estimate(0.5)}, {"x": Estimate([0.2, 0.3, 0.5])})


def sampled(model, row_of: list[int], rows: list[tuple[str, int, float, float]]) -> Marginals:
    members = Variables(model.names, np.array(row_of), model.evidence, model.cards, model.index)
    return Marginals(tuple(OrbitRow(name, size, p, e) for name, size, p, e in rows), members)


def test_an_orbit_is_one_comparison_but_counts_its_variables() -> None:
    model = factor_graph([2] * 5, [((i,), np.array([1.0, 3.0])) for i in range(4)]).condition({4: 1})
    truth = exact(model, ["X0", "X0 ^ X1"])
    rows = [("X0", 3, 0.76, 0.005), ("X3", 1, 0.75, 0.005)]
    answer = sampled(model, [0, 0, 0, 1, -1], rows)
    result = answer.compare(truth)
    assert result.names == ("X0", "X1", "X2", "X3")  # X4 is observed in both
    assert result.mse == pytest.approx(3 * 0.01**2 / 4)
    folded = compare(answer, answer)
    assert len(folded.rows) == 2 and [row.variables for row in folded.rows] == [3, 1] and folded.agrees
    assert compare(truth, truth).names == ("X0", "X0 ^ X1", "X1", "X2", "X3")
    other = exact(model.condition({3: 0}))
    assert "X3" in compare(answer, other).names  # observed in one of them only
    assert max(compare(truth, other).rows, key=lambda row: abs(row.difference)).name == "X3"


def test_false_alarms_are_rare_and_real_differences_are_found() -> None:
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(200):
        noise = rng.normal(size=100)
        a = {f"X{i}": Estimate(0.5 + 0.01 * float(noise[i]), 0.01) for i in range(100)}
        alarms += not compare(a, {name: Estimate(0.5) for name in a}).agrees
        shifted = {name: Estimate(0.5 + 0.1 * (name == "X7")) for name in a}
        assert not compare(a, shifted).agrees
    assert alarms == 0  # expected: 200 × 1e-4


def test_repr_shows_the_worst_ten() -> None:
    a = {f"X{i}": Estimate(0.5 + i / 1000, 0.01) for i in range(20)}
    text = repr(compare(a, {name: Estimate(0.5, 0.01) for name in a}))
    assert "X19" in text and "X10" in text and "X9 " not in text and "KL" in text
    assert len(compare(a, a).to_json()["worst"]) == 10


def test_few_degrees_of_freedom_make_a_difference_less_unlikely() -> None:
    """t = 6 with 3 degrees of freedom is a normal 2.6; with an exact partner or with one of many degrees it counts
    alike."""
    wide = Estimate(0.6, 0.1 / 6, half_width=0.1 / 6 * 3.182446305)
    for partner in (Estimate(0.5, 0.0), Estimate(0.5, None), Estimate(0.5, 1e-9)):
        z = compare({"x": wide}, {"x": partner}).rows[0].z
        assert z is not None and z == pytest.approx(2.6045, abs=0.01)
        assert compare({"x": partner}, {"x": wide}).rows[0].z == pytest.approx(-z)
    assert compare({"x": Estimate(0.6, 0.1 / 6)}, {"x": Estimate(0.5, 0.0)}).rows[0].z == pytest.approx(6.0)


def test_a_verdict_on_two_saved_runs_knows_their_degrees_of_freedom(tmp_path) -> None:
    import definetti as dft
    from definetti.store.loading import load
    from definetti.store.writing import save

    model = factor_graph({"a": 2, "b": 2}, [(("a", "b"), [[3.0, 1.0], [1.0, 2.0]])])
    paths = []
    for seed in (1, 2):
        run = dft.marginals(model, chains=4, sweeps=400, seed=seed, estimator="orbit")
        paths.append(save(run, tmp_path / f"{seed}.json"))
    a, b = (load(path) for path in paths)
    e = next(iter(a.values()))
    assert isinstance(e.half_width, float) and isinstance(e.mcse, float) and e.half_width > 1.97 * e.mcse
    assert compare(a, b).agrees


def test_averages_over_saved_orbits_are_over_variables(tmp_path: Path) -> None:
    """A .json has one row per orbit: an orbit of 3 weighs three times one of 1, whichever file has it, and a variable
    that was asked for by name is not counted twice."""
    import definetti as dft
    from definetti.store.loading import load
    from definetti.store.writing import save

    weights, other = [[3.0, 1.0], [1.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]]
    names = {"hub": 2, "a": 2, "b": 2, "c": 2}
    one, two = (factor_graph(names, [(("hub", name), table) for name in "abc"]) for table in (weights, other))
    whole = exact(one).compare(exact(two))
    for queries in ([], ["b", "c"], ["a"], ["a", "b", "c"]):
        paths = [
            save(exact(model, queries, symmetries=dft.symmetries(model)), tmp_path / f"{k}.json")
            for k, model in enumerate((one, two))
        ]
        found = compare(*(load(path) for path in paths))
        for figure in ("kl_ab", "kl_ba", "mse"):
            assert getattr(found, figure) == pytest.approx(getattr(whole, figure), rel=1e-12)


def test_an_answer_that_is_not_trusted_says_so_when_compared() -> None:
    """Numbers that look perfect agree with the truth, and still carry their warning."""
    model = factor_graph({"a": 2, "b": 2}, [(("a", "b"), [[0.0, 1.0], [1.0, 0.0]])])
    truth = exact(model)
    stuck = replace(truth, notices=(Notice("frozen", "nothing moved"), Notice("note", "harmless")))
    for found in (stuck.compare(truth), truth.compare(stuck)):
        assert found.agrees and "NOT TRUSTED: frozen" in repr(found) and "nothing moved" in repr(found)
        assert [w["kind"] for w in found.to_json()["warnings"]] == ["frozen"]
    assert "TRUSTED" not in repr(truth.compare(truth))


def test_answers_with_errors_are_never_said_to_have_none() -> None:
    """A difference of 1,000 errors: the chance of Student's t is below any float, and the score stays finite."""
    sampled = {"X0": Estimate(0.5, 1e-4, 1.0, 500.0, half_width=1.96e-4 * 1.005)}
    found = compare(sampled, {"X0": Estimate(0.4)})
    assert not found.agrees and "both without error" not in found.verdict
    assert found.rows[0].z is not None and np.isfinite(found.rows[0].z)


@pytest.mark.parametrize(
    "bar", [Estimate(0.5, 1e-320), Estimate(0.5, 0.0, half_width=1e-12), Estimate(0.5, None, half_width=1e-3)]
)
def test_an_error_next_to_nothing_is_an_error(bar: Estimate) -> None:
    for found in (compare({"x": bar}, {"x": Estimate(0.4)}), compare({"x": Estimate(0.4)}, {"x": bar})):
        assert not found.agrees and "without error" not in found.verdict
        assert found.rows[0].z is not None and np.isfinite(found.rows[0].z)


def test_a_run_too_short_for_errors_is_not_exact(tmp_path: Path) -> None:
    """Another program's numbers count as exact beside an error; those of a run of one sweep count for nothing."""
    import definetti as dft
    from definetti.store.loading import load
    from definetti.store.writing import save

    model = factor_graph({"a": 2, "b": 2}, [(("a", "b"), [[3.0, 1.0], [1.0, 2.0]])])
    short = dft.marginals(model, chains=1, sweeps=1, seed=1)
    assert short["a"].mcse is None
    path = save(short, tmp_path / "short.csv")
    precise = {name: Estimate(0.4, 1e-6) for name in "ab"}
    for answer in (short, load(path)):
        for found in (compare(answer, precise), compare(precise, answer), compare(answer, exact(model))):
            assert found.strongest is None and found.verdict == "not judged: a run was too short to know its errors"
    assert not compare({"a": Estimate(1.0, None)}, precise).agrees
