"""Reading: each format and library gives the model it describes, shown by the density of every state."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from definetti.errors import ModelError, UnknownName
from definetti.model.graph.factors import CHUNK, FREE, FactorGraph, factor_graph
from definetti.readers.graph.fg import read_fg
from definetti.readers.graph.uai import read_evid, read_uai
from definetti.readers.reading import read
from definetti.readers.writing import write

UAI = """MARKOV
3
2 2 3
2
2 0 1
2 1 2

4
 4.000 2.400
 1.000 0.000

6
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.000
"""
FACTORS = [((0, 1), [[4, 2.4], [1, 0]]), ((1, 2), [[2.25, 3.25, 3.75], [0, 0, 10]])]


def states(model: FactorGraph) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, model.cards.tolist()))), dtype=np.int64).reshape(-1, model.n)


def same(a: FactorGraph, b: FactorGraph) -> bool:
    return (
        a.names == b.names
        and (a.cards == b.cards).all()
        and bool(np.allclose(a.log_density(states(a)), b.log_density(states(a)), rtol=1e-13, atol=1e-13))
    )


@st.composite
def models(draw: st.DrawFn) -> FactorGraph:
    cards = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    factors = []
    for _ in range(draw(st.integers(0, 4))):
        scope = draw(st.lists(st.integers(0, len(cards) - 1), unique=True, max_size=3))
        shape = [cards[i] for i in scope]
        weight = st.one_of(st.just(0.0), st.floats(1e-3, 1e3))
        flat = draw(st.lists(weight, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        flat[0] = flat[0] or 1.0  # a table of zeros is refused
        factors.append((scope, np.array(flat).reshape(shape)))
    return factor_graph(cards, factors)


# --- the density itself --------------------------------------------------------------------------------------


def slow_log_density(model: FactorGraph, state: np.ndarray) -> float:
    total = model.log_constant
    for k in range(model.factor_count):
        total += model.table(k)[tuple(state[model.variables(k)])]
    seen = model.evidence != FREE
    return float(total) if (state[seen] == model.evidence[seen]).all() else -np.inf


@settings(max_examples=60)
@given(models(), st.booleans())
def test_log_density_is_the_sum_of_the_tables(model: FactorGraph, observed: bool) -> None:
    if observed:
        model = model.condition({0: int(model.cards[0]) - 1})
    everything = states(model)
    expected = np.array([slow_log_density(model, state) for state in everything])
    np.testing.assert_allclose(model.log_density(everything), expected, rtol=1e-13, atol=1e-13)
    assert model.log_density(everything[0]) == model.log_density(everything)[0]
    assert model.log_density(everything[None, :, None]).shape == (1, len(everything), 1)


def test_log_density_in_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = factor_graph([2, 3, 2], [([], 7.0), *FACTORS[:0], ([2, 0, 1], np.arange(1, 13)), ([1], [1, 2, 3])])
    whole = model.log_density(states(model))
    assert len(whole) * len(model.scope) < CHUNK
    monkeypatch.setattr("definetti.model.graph.factors.CHUNK", 5 * len(model.scope))  # chunks of 5, 5 and 2
    assert (model.log_density(states(model)) == whole).all()
    assert model.log_density(np.empty((0, 3), dtype=int)).shape == (0,)


# --- .uai ----------------------------------------------------------------------------------------------------


def test_uai_last_variable_is_fastest(tmp_path) -> None:
    (tmp_path / "m.uai").write_text(UAI)
    model = read(tmp_path / "m.uai")
    assert isinstance(model, FactorGraph)
    assert model.names == ("X0", "X1", "X2")
    assert same(model, factor_graph([2, 2, 3], FACTORS))
    assert np.exp(model.log_density(np.array([0, 1, 2]))) == pytest.approx(24.0)
    assert np.exp(model.log_density(np.array([1, 0, 1]))) == pytest.approx(3.25)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: " ".join(text.split()),
        lambda text: "\n".join(text.split()),
        lambda text: "\r\n\t ".join(text.split()) + "\f\v\r\n",
        lambda text: "\r".join(text.split()),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("MARKOV", "BAYES"),
        lambda text: text.replace("MARKOV", "Markov"),
        lambda text: (
            text.replace("2.400", "+2.4E+00").replace("10.000", "1000e-2").replace("0.0000 0.0000", "-0 .0E-7")
        ),
        lambda text: text.replace("3\n", "+3\n", 1),
    ],
)
def test_uai_spelt_otherwise_is_the_same(tmp_path, change) -> None:
    (tmp_path / "a.uai").write_text(UAI)
    (tmp_path / "b.UAI").write_bytes(change(UAI).encode())
    assert same(read(tmp_path / "a.uai"), read(str(tmp_path / "b.UAI")))


def test_uai_equal_tables_are_stored_once_and_shapes_kept_apart(tmp_path) -> None:
    text = "MARKOV 3 2 2 4 4  2 0 1  1 2  2 1 0  0   4 1 2 3 4  4 1 2 3 4  4 1 2 3 4  1 5"
    (tmp_path / "m.uai").write_text(text)
    model = read_uai(tmp_path / "m.uai")
    assert model.factor_count == 4
    assert model.table_of.tolist() == [0, 1, 0, 2]
    assert model.shape(3) == ()
    assert np.exp(model.log_density(np.array([0, 1, 3]))) == pytest.approx(2 * 4 * 3 * 5)


@settings(max_examples=60)
@given(models())
def test_uai_round_trip(tmp_path_factory, model: FactorGraph) -> None:
    path = tmp_path_factory.mktemp("round") / "m.uai"
    write(model, path)
    again = read_uai(path)
    assert same(model, again)
    assert again.scope.tolist() == model.scope.tolist()
    write(again, path.with_name("n.uai"))
    assert [p.name for p in sorted(path.parent.iterdir())] == ["m.uai", "n.uai"]  # nothing half-written is left


def test_uai_round_trip_keeps_constants_and_extreme_weights(tmp_path) -> None:
    far = [-2000.0, -1900.0]  # one table, used twice
    factors = [([0, 1], [[1000.0, 0.0], [-np.inf, 300.0]]), ([1], far), ([0], far)]
    model = factor_graph([2, 2], factors, log=True)
    model = FactorGraph(**{**model.__dict__, "log_constant": 2500.0})
    write(model, tmp_path / "m.uai")
    assert np.allclose(read_uai(tmp_path / "m.uai").log_density(states(model)), model.log_density(states(model)))
    wide = factor_graph([2], [([0], [0.0, -2000.0])], log=True)
    with pytest.raises(ModelError, match=r"factor 0 .* exp\(2000\)"):
        write(wide, tmp_path / "wide.uai")
    assert not (tmp_path / "wide.uai").exists()


def test_uai_writes_evidence_beside_it(tmp_path) -> None:
    model = factor_graph([2, 2, 3], FACTORS).condition({"X2": 2, "X0": 1})
    with pytest.raises(ModelError, match="evidence"):
        write(model, tmp_path / "m.uai")
    write(model, tmp_path / "m.uai", evidence=tmp_path / "m.evid")
    again = read(tmp_path / "m.uai", tmp_path / "m.evid")
    assert same(model, again)
    assert again.evidence.tolist() == [1, -1, 2]


# --- evidence ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("2 1 0 2 1", [-1, 0, 1]),  # no count of samples
        ("2\n1 0\n2 1\n", [-1, 0, 1]),
        ("1\n2 1 0 2 1\n", [-1, 0, 1]),  # one sample
        ("1 2 1 0 2 1", [-1, 0, 1]),
        ("1 2 1", [-1, -1, 1]),
        ("1\n1 2 1", [-1, -1, 1]),
        ("1 1 2 1", [-1, -1, 1]),
        ("1\n2 1", [-1, -1, 1]),
        ("0", [-1, -1, -1]),
        ("1\n0\n", [-1, -1, -1]),
        ("2 1 0 1 0", [-1, 0, -1]),  # said twice, without contradiction
    ],
)
def test_evidence_forms(tmp_path, text: str, evidence: list[int]) -> None:
    (tmp_path / "m.uai.evid").write_text(text)
    model = factor_graph([2, 2, 3], FACTORS)
    assert read_evid(tmp_path / "m.uai.evid", model).evidence.tolist() == evidence


def test_evidence_by_names(tmp_path) -> None:
    (tmp_path / "m.uai").write_text(UAI)
    model = read(tmp_path / "m.uai", {"X1": 1, "X2": "2"})
    assert isinstance(model, FactorGraph)
    assert model.evidence.tolist() == [-1, 1, 2]
    assert read(model) is model
    for wrong in ({"X1": 0.7}, {"X1": None}, {None: 1}, {"X1": 2}, {"X1": -1}, [1, 2], 5):
        with pytest.raises((ModelError, UnknownName)):
            read(tmp_path / "m.uai", wrong)  # type: ignore[arg-type]


# --- .fg -----------------------------------------------------------------------------------------------------

FG = """# a comment
2

2
7 3     # labels
2 3
5
0 1.5
1 2
2 0.25
# inside
3 4
5 8e-1

1
3
3
3
0 1
2 3
1 2
"""


def test_fg_first_variable_is_fastest(tmp_path) -> None:
    (tmp_path / "m.fg").write_text(FG)
    model = read(tmp_path / "m.fg")
    pair = [[1.5, 0.25, 0.0], [2.0, 4.0, 0.8]]  # pair[x7][x3] is at the place x7 + 2 · x3
    assert same(model, factor_graph({"X3": 3, "X7": 2}, [(("X7", "X3"), pair), (("X3",), [1, 2, 3])]))


def test_fg_evidence_goes_by_label(tmp_path) -> None:
    (tmp_path / "m.fg").write_text(FG)
    (tmp_path / "m.evid").write_text("1 7 1")
    model = read(tmp_path / "m.fg", tmp_path / "m.evid")
    assert isinstance(model, FactorGraph)
    assert dict(zip(model.names, model.evidence.tolist(), strict=True)) == {"X3": -1, "X7": 1}


@settings(max_examples=40)
@given(models())
def test_fg_equals_uai(tmp_path_factory, model: FactorGraph) -> None:
    path = tmp_path_factory.mktemp("fg") / "m.fg"
    blocks = [str(model.factor_count)]
    for k in range(model.factor_count):
        weights = np.exp(model.table(k)).ravel(order="F")
        rows = [f"{i} {w!r}" for i, w in enumerate(weights.tolist()) if w]
        heads = [model.variables(k), model.shape(k)]
        blocks.append("\n".join([str(len(heads[0])), *(" ".join(map(str, h)) for h in heads), str(len(rows)), *rows]))
    path.write_text("\n\n".join(blocks))
    read_back = read_fg(path)
    used = [i for i in range(model.n) if i in set(model.scope.tolist())]  # .fg knows variables by their factors
    assert read_back.names == tuple(model.names[i] for i in used)
    full = states(model)
    assert np.allclose(read_back.log_density(full[:, used]), model.log_density(full), rtol=1e-13, atol=1e-13)
