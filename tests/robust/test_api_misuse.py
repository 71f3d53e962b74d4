"""From Python: what is given wrongly is told as one of our errors; nothing runs for ever or gives a wrong number."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from small_models import ising_ring

import definetti as dft

RING = ising_ring(4, field=0.3)


@pytest.mark.parametrize("option", ["chains", "sweeps", "workers", "burn_in", "seed"])
@pytest.mark.parametrize("value", [1.5, -1, "3", [2]])
def test_counts_are_whole_numbers(option: str, value: Any) -> None:
    """A warm-up of 1.5 sweeps never ended."""
    with pytest.raises(dft.ModelError, match=f"{option} is a whole number"):
        dft.marginals(RING, **{option: value})


def test_any_integer_type_is_a_count() -> None:
    runs = [dft.marginals(RING, sweeps=kind(6), chains=kind(3), seed=kind(7)) for kind in (int, np.uint16)]
    assert runs[0]["X0"].probability == runs[1]["X0"].probability
    assert dft.marginals(RING, sweeps=5, chains=True, seed=1).run["chains"] == 1


@pytest.mark.parametrize("value", ["x", float("nan"), 0, -1])
def test_times_and_widths_are_positive_numbers(value: Any) -> None:
    for option in ("seconds", "until", "time_limit"):
        with pytest.raises(dft.ModelError, match=option):
            dft.marginals(RING, **{option: value})


def test_one_query_needs_no_list() -> None:
    assert dft.exact(RING, "X0=1 ^ X1=1").queries.keys() == {"X0=1 ^ X1=1"}
    assert dft.marginals(RING, "X0", sweeps=5, seed=1).queries.keys() == {"X0"}


def test_a_path_is_no_model() -> None:
    for verb in (dft.exact, dft.symmetries):
        with pytest.raises(dft.ModelError, match="dft.read"):
            verb("model.uai")  # type: ignore[arg-type]


def test_samples_need_chains() -> None:
    with pytest.raises(dft.ModelError, match=r"got shape \(0, 5, 4\)"):
        dft.marginals(np.zeros((0, 5, 4), dtype=int), model=RING)


def test_the_density_of_what_is_no_state() -> None:
    for state in ([-1, 1, 1, 1], [2, 0, 0, 0], [0, 0, 0]):  # spins were read from the end of the tables
        with pytest.raises(dft.ModelError, match="a state has"):
            RING.log_density(np.array(state))


def test_names_are_texts() -> None:
    """A number in a scope is a position: {1: 2, 0: 3} would be read as the variables 0 and 1."""
    with pytest.raises(dft.ModelError, match="text"):
        dft.factor_graph({1: 2, 0: 3}, [([0, 1], np.ones((2, 3)))])  # type: ignore[dict-item]


def test_too_many_values_are_refused_before_memory_is_taken() -> None:
    with pytest.raises(dft.TooLarge, match="values of all variables together"):
        dft.factor_graph([2_000_000_000], [])


def test_weights_whose_sums_would_not_be_finite() -> None:
    """Three of these add up to infinity: an ordinary model was called unsatisfiable."""
    with pytest.raises(dft.ModelError, match="logarithm beyond"):
        dft.factor_graph([2], [([0], [0.0, 1e308])] * 3, log=True)
    assert dft.exact(dft.factor_graph([2], [([0], [-np.inf, 1e99])] * 3, log=True))["X0"].probability == 1.0


# --- what people try first, answered with the cure ---------------------------------------------------------------


PAIR = dft.factor_graph([2, 2], [([0, 1], [[1, 2], [2, 1]])])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dft.marginals(PAIR, sampler=dft.Gibbs), r"give a value of it: dft.Gibbs\(\)"),
        (lambda: dft.marginals(PAIR, sampler=3), r"or a value such as dft.Gibbs\(\)"),
        (lambda: dft.marginals(PAIR, sampler="gibs"), "did you mean gibbs"),
        (lambda: dft.marginals(PAIR, progress=3), "progress is True, or a function"),
        (lambda: dft.marginals("file.uai"), r"dft.marginals\(dft.read\('file.uai'\)\)"),
        (lambda: dft.marginals("file.csv", model=PAIR), "not the path of a file"),
        (lambda: dft.count_distribution(PAIR, "X0"), "of a Markov logic network, and this is a FactorGraph"),
        (lambda: dft.count_distribution(PAIR), "of a Markov logic network, and this is a FactorGraph"),
        (lambda: dft.count_distribution(dft.markov_logic("P(a)", domain={"a": 2})), "name the predicate .* P"),
        (lambda: dft.exact(PAIR, 3), "a query is a text.* got 3"),
        (lambda: dft.marginals(PAIR, ["X0", 3]), "a query is a text.* got 3"),
        (lambda: dft.quotient(PAIR, queries=[None]), "a query is a text.* got None"),
        (lambda: PAIR.condition([("X0", 1)]), "evidence is a mapping"),
        (lambda: dft.markov_logic("P(a)", domain={"a": 2}).condition("P(A1)"), "evidence is a mapping"),
        (lambda: dft.exact(PAIR).compare(3), "compared with another.* got 3"),
        (lambda: dft.report(PAIR, "page.html"), "a report is of an answer.* FactorGraph"),
        (lambda: dft.marginals(PAIR, ["x0"]), "did you mean X0"),
        (lambda: dft.exact(PAIR, ["X0 & X1"]), r"a conjunction is written \^"),
        (lambda: dft.exact(PAIR, ["X0 and X1"]), r"a conjunction is written \^"),
        (lambda: dft.exact(PAIR, ["X0 || X1"]), "a disjunction is written v"),
        (lambda: dft.exact(PAIR, ["~X0"]), "a negation is written !"),
        (lambda: dft.markov_logic("P(a)\n1 P(x) && P(y)"), r"a conjunction is written \^"),
        (lambda: dft.markov_logic("P(a)\n1 P(x) || P(y)"), "a disjunction is written v"),
        (lambda: dft.markov_logic("P(a)\n1 P(x) or P(y)"), "a disjunction is written v"),
        (lambda: dft.markov_logic("// nothing\n"), "no predicate is declared"),
    ],
)
def test_first_attempts(call, message: str) -> None:
    with pytest.raises(dft.DefinettiError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dft.marginals, "got the class FactorGraph"),
        (dft.exact, "got the class FactorGraph"),
        (dft.symmetries, "got the class FactorGraph"),
        (dft.sample, "got the class FactorGraph"),
        (dft.quotient, "got the class FactorGraph"),
        (lambda of: dft.write(of, "x.uai"), "got the class FactorGraph"),
        (lambda of: dft.marginals(np.zeros((1, 4, 2), int), model=of), "got the class FactorGraph"),
        (lambda of: dft.marginals(PAIR, symmetries=dft.GraphSymmetries), "a group that dft.symmetries gave"),
        (lambda of: dft.write(dft.exact(PAIR), "x.json"), "save writes answers"),
        (lambda of: dft.Tempering(dft.Gibbs), r"such as dft.Gibbs\(\)"),
        (lambda of: dft.Tempering("gibbs"), r"such as dft.Gibbs\(\)"),
    ],
)
def test_classes_and_nouns_of_another_kind(call, message: str) -> None:
    with pytest.raises(dft.ModelError, match=message):
        call(dft.FactorGraph)


@pytest.mark.parametrize("levels", [0, 1.0, (1,), ("a", 1.0), (0.0, 0.5), (0.0, float("nan"), 1.0), (0.5, 0.5, 1.0)])
def test_levels_of_a_ladder(levels) -> None:
    with pytest.raises(dft.ModelError, match="rise to 1"):
        dft.Tempering(levels=levels)


@pytest.mark.parametrize(
    "option",
    [
        *({"domain": value} for value in ([5], 5, "t=5", {5: 5})),
        *({name: value} for name in ("open_world", "closed_world") for value in (3, [3], None, True)),
        *({"dialect": value} for value in (3, None)),
        *({"default_weight": value} for value in ("x", [1], True)),
        {"evidence": 3},
    ],
    ids=str,
)
def test_options_of_a_theory_of_another_type(option: dict) -> None:
    with pytest.raises(dft.ModelError):
        dft.markov_logic("P(t)\n1 P(x)", **({"domain": {"t": 2}} | option))


def test_one_predicate_may_be_named_without_a_list() -> None:
    """A text was read letter by letter."""
    assert dft.markov_logic("Smokes(t)\n1 Smokes(x)", domain={"t": 2}, closed_world="Smokes").closed == {"Smokes"}


def test_progress_as_a_switch(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = dft.marginals(PAIR, sweeps=10, seed=1, progress=False)
    assert not capsys.readouterr().err
    shown = dft.marginals(PAIR, sweeps=10, seed=1, progress=True)
    assert shown["X0"] == quiet["X0"]


def test_a_bar_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every report reaches the bar, with its numbers in words."""
    rich = pytest.importorskip("rich.progress")
    drawn: list[dict] = []
    monkeypatch.setattr(rich.Progress, "update", lambda self, task, **fields: drawn.append(fields))
    dft.marginals(PAIR, sweeps=10, seed=1, progress=True)
    assert drawn and drawn[-1]["total"] == 10 and drawn[-1]["note"].startswith("10/10")


def test_intervals_and_vectors() -> None:
    three = dft.factor_graph([3, 2], [([0], [1.0, 1.0, 2.0])])
    p = dft.exact(three)
    assert p["X0"].array.tolist() == [0.25, 0.25, 0.5] and p["X1"].array.tolist() == [0.5, 0.5]
    low, high = p["X0"].interval
    assert low.tolist() == high.tolist() == [0.25, 0.25, 0.5]
    assert p["X1"].interval == (0.5, 0.5)
    assert dft.Estimate(0.25, 0.1, half_width=0.3).interval == pytest.approx((0.0, 0.55))
    assert dft.Estimate(0.25, 0.1).interval == pytest.approx((0.25 - 0.196, 0.25 + 0.196), abs=1e-4)
    assert dft.Estimate(0.25, None).interval == (0.0, 1.0)  # nothing is known of the error
    low, high = dft.Estimate([0.9, 0.1], [0.1, None], half_width=[0.2, None]).interval  # type: ignore[list-item]
    assert low.tolist() == pytest.approx([0.7, 0.0]) and high.tolist() == pytest.approx([1.0, 1.0])


BASE: dict[str, Any] = {
    "cards": [2, 3], "scope_start": [0, 2, 3], "scope": [0, 1, 0], "table_of": [0, 1],
    "tables": [np.eye(2, 3), [0.0, -np.inf]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"cards": [2, 0]}, "has 0 values"),
        ({"cards": [2.5, 3]}, "cards is an array of whole numbers"),
        ({"cards": [2, 2**32 + 3]}, "beyond 2147483647"),
        ({"scope": [0, 5, 0]}, "variable 5, but there are 2"),
        ({"scope": [0, -1, 0]}, "variable -1, but there are 2"),
        ({"scope": [1, 1, 0]}, "factor 0 names X1 twice"),
        ({"scope_start": [0, 2]}, "need 3 starts"),
        ({"scope_start": [0, 2, 4]}, "ascending from 0 to 3"),
        ({"scope_start": [0, 4, 3]}, "ascending from 0 to 3"),
        ({"table_of": [0, 2]}, "table 2, but there are 2"),
        ({"tables": [np.eye(3, 2), [0, 0]]}, r"factor 0 needs a table of shape \(2, 3\), got \(3, 2\)"),
        ({"tables": [np.eye(2, 3), [0, 0, 0]]}, r"factor 1 needs a table of shape \(2,\), got \(3,\)"),
        ({"tables": [np.eye(2, 3), [0, np.nan]]}, "factor 1 has the logarithm nan"),
        ({"tables": [np.eye(2, 3), [0, np.inf]]}, "factor 1 has the logarithm inf"),
        ({"tables": [1e200 * np.eye(2, 3), [0, 0]]}, r"factor 0 has the logarithm 1e\+200"),
        ({"tables": [np.eye(2, 3), [0, -1e308]]}, r"factor 1 has the logarithm -1e\+308"),
        ({"tables": [np.eye(2, 3), ["a", "b"]]}, "table 1 is not an array of real numbers"),
        ({"names": ["a", "a"]}, "as many different names"),
        ({"names": ["a", 1]}, "is a text"),
        ({"evidence": [-1, 3]}, "evidence of X1 is 3"),
        ({"evidence": [-1]}, "has 1 entries"),
        ({"log_constant": np.nan}, "constant"),
        ({"value_names": {0: ("no", "no")}}, "names as there are"),
        ({"value_names": {"a": ("no", "yes")}}, "by its number, got 'a'"),
        ({"value_names": {0: 3}}, "by its number, got 0: 3"),
        ({"value_names": {0: ([], [])}}, "by its number, got 0"),
        ({"value_names": [1]}, "value_names is a mapping"),
        ({"value_names": np.zeros(2)}, "value_names is a mapping"),
        ({"names": 3}, "names are a list of texts, got 3"),
        ({"log_constant": "a"}, "log_constant is not"),
        ({"log_constant": [1.0, 2.0]}, "log_constant is a number"),
        ({"tables": None}, "tables are a list of arrays, got None"),
        ({"tables": [np.eye(2, 3), [1j, 0]]}, "table 1 is not an array of real numbers"),
        ({"cards": [2, [3]]}, "cards is an array of whole numbers"),
    ],
)
def test_arrays_that_do_not_fit_each_other_are_refused(wrong: dict[str, Any], what: str) -> None:
    """NaN and 1e308 gave answers, or "no state"; the others an IndexError somewhere downstream, or another model."""
    with pytest.raises(dft.ModelError, match=what):
        dft.FactorGraph.from_arrays(**(BASE | wrong))


class Bytes:
    def __fspath__(self) -> bytes:
        return b"a.uai"


def test_no_path_is_made_of_bytes() -> None:
    """They ended in TypeError."""
    for act in (dft.read, dft.load, dft.resume):
        with pytest.raises(dft.ModelError, match="is the path of a file"):
            act(cast(Any, Bytes()))


@pytest.mark.parametrize(
    ("suffix", "act"),
    [
        (".uai", dft.write),
        (".json", lambda model, path: dft.save(dft.exact(model), path)),
        (".html", lambda model, path: dft.report(dft.exact(model), path)),
        (".dft", lambda model, path: dft.marginals(model, sampler="gibbs", sweeps=5, checkpoint=path)),
    ],
)
def test_no_path_has_a_null_character(suffix: str, act: Callable[[Any, str], object], tmp_path: Path) -> None:
    with pytest.raises(dft.ModelError, match="cannot write .* null"):
        act(dft.factor_graph([2], [([0], [1, 2])]), str(tmp_path / f"a\0{suffix}"))


def test_tables_are_flat_or_have_their_axes() -> None:
    flat = dft.FactorGraph.from_arrays(**(BASE | {"tables": [np.eye(2, 3).ravel(), [0.0, -np.inf]]}))
    empty = dft.FactorGraph.from_arrays([2], [0, 0], [], [0], [np.array(1.5)])
    assert dft.exact(flat)["X1"].probability == dft.exact(dft.FactorGraph.from_arrays(**BASE))["X1"].probability
    assert empty.log_density([0]) == 1.5


WRONG = (None, 3, -1, "zzz", "", float("nan"), 1.5, [1, "a", None], [], {1: 2}, Path, object(), b"x", 1j, {1})


def calls(folder: Path) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """A right call of each function; one argument after the other is replaced by what it is not."""
    graph = dft.factor_graph([2, 2], [([0, 1], [[1, 2], [3, 4]])])
    logic = dft.markov_logic("P(p)\nQ(p)\n1 P(x) ^ Q(x)", domain={"p": 2})
    answer = dft.exact(graph)
    dft.save(answer, folder / "a.json")
    (folder / "m.mln").write_text("P(p)\n1 P(A)\n")
    few: dict[str, Any] = {"sampler": "gibbs", "sweeps": 20, "chains": 2, "seed": 1}
    dft.marginals(graph, **few, checkpoint=folder / "r.dft")
    return {
        "factor_graph": (([2, 2], [([0, 1], [[1, 2], [3, 4]])]), {}),
        "markov_logic": (("P(p)\n1 P(A)",), {}),
        "read": ((folder / "m.mln",), {}),
        "write": ((graph, folder / "o.uai"), {}),
        "symmetries": ((graph,), {}),
        "exact": ((logic,), {}),
        "count_distribution": ((logic, "P"), {}),
        "marginals": ((graph,), few),
        "resume": ((folder / "r.dft",), {}),
        "quotient": ((graph,), {}),
        "ground": ((logic,), {}),
        "save": ((answer, folder / "b.json"), {}),
        "load": ((folder / "a.json",), {}),
        "report": ((answer, folder / "p.html"), {}),
    }


APART = {"progress", "seconds", "executor"}  # a class may be called with reports; a run of a day; see below


@pytest.mark.parametrize("name", ["factor_graph", "markov_logic", "read", "write", "symmetries", "exact",
                                  "count_distribution", "marginals", "resume", "quotient", "ground", "save", "load",
                                  "report"])  # fmt: skip
def test_no_argument_of_a_wrong_type_ends_in_a_foreign_error(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    given, more = calls(tmp_path)[name]
    function = getattr(dft, name)
    for place, parameter in enumerate(inspect.signature(function).parameters):
        for wrong in () if parameter in APART else WRONG:
            arguments = (*given[:place], wrong, *given[place + 1 :]) if place < len(given) else given
            try:
                function(*arguments, **(more if place < len(given) else {**more, parameter: wrong}))
            except dft.DefinettiError as error:
                assert len(str(error)) > 8, parameter
            except Exception as error:
                raise AssertionError(f"{name}({parameter}={wrong!r})") from error


@pytest.mark.parametrize("wrong", [3, "threads", Path, object()])
def test_an_executor_is_one(wrong: Any) -> None:
    graph = dft.factor_graph([2, 2], [([0, 1], [[1, 2], [3, 4]])])
    with pytest.raises(dft.ModelError, match="an executor has a method submit"):
        dft.marginals(graph, sampler="gibbs", sweeps=20, executor=wrong)


def test_single_ones_need_no_list(tmp_path: Path) -> None:
    graph = dft.factor_graph({"rain": 2}, [("rain", [4, 1])])
    answer = dft.exact(graph)
    assert answer["rain"].probability == pytest.approx(0.2)
    page = dft.report(answer, tmp_path / "p.html", others=dft.save(answer, tmp_path / "b.json"))
    assert "b.json" in page.read_text()
