"""Samples that name their variables are read by name, whatever the order, and refused where they do not match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import definetti as dft
from definetti.errors import ModelError, ParseError
from definetti.inference.draws.samples import as_array
from definetti.readers.samples import read_samples

MODEL = dft.factor_graph({"A": 2, "B": 3, "C": 2}, [])
STATES = np.array([[[0, 2, 1], [1, 0, 0], [1, 1, 1]], [[0, 0, 1], [1, 2, 0], [0, 1, 0]]])  # chain, draw, variable


class Table:
    """What a pandas DataFrame looks like from outside."""

    def __init__(self, columns: dict, index=None) -> None:
        self._columns, self.columns, self.index = columns, list(columns), index

    def __getitem__(self, name):
        return self._columns[name]

    def to_numpy(self) -> np.ndarray:
        return np.stack(list(self._columns.values()), axis=1)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.to_numpy()


class Array:
    """What an xarray DataArray looks like from outside."""

    def __init__(self, values, dims, coords=None) -> None:
        self.values, self.dims, self.coords = np.asarray(values), tuple(dims), dict(coords or {})

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.values


class Dataset(dict):
    @property
    def data_vars(self) -> list[str]:
        return list(self)


def frame(columns: dict):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(columns)


@pytest.mark.parametrize("made", [Table, frame])
def test_tables(made) -> None:
    one = STATES[0]
    columns = {"C": one[:, 2], "A": one[:, 0], "B": one[:, 1]}
    assert as_array(made(columns), MODEL).tolist() == [one.tolist()]
    flat = STATES.reshape(6, 3)
    named = {name: flat[:, i] for i, name in enumerate("ABC")}
    several = {"chain": [1, 1, 1, 0, 0, 0], **named, "draw": [0, 1, 2] * 2}
    assert as_array(made(several), MODEL).tolist() == STATES.tolist()
    assert as_array(made(dict(enumerate(one.T))), MODEL).tolist() == [one.tolist()]  # numbers are no names
    numbered = replace(MODEL, names=("2", "1", "0"))
    assert as_array(made(dict(enumerate(one.T))), numbered).tolist() == [one[:, ::-1].tolist()]
    seen = MODEL.condition({"B": 1})
    assert as_array(made({"C": one[:, 2], "A": one[:, 0]}), seen)[0, :, 1].tolist() == [1, 1, 1]
    for wrong, message in (
        ({"A": one[:, 0], "B": one[:, 1]}, "no variable 'C'"),
        ({**columns, "D": one[:, 0]}, "name 'D', which is no variable"),
        ({**columns, "_weight": one[:, 0]}, "have weights"),
        ({**columns, "A": np.array([0, 1, 7])}, "A has no value '7'; its values are 0 to 1"),
        ({**columns, "A": np.array([0, 0.5, 1])}, "A is 0.5"),
        ({**columns, "A": np.array(["x", "y", "y"])}, "A has no value 'x'"),
    ):
        with pytest.raises(ModelError, match=message):
            as_array(made(wrong), MODEL)


@pytest.mark.parametrize("made", [Table, frame])
def test_values_by_name(made) -> None:
    """pgmpy's samplers return the names of states."""
    named = replace(MODEL, value_names={0: ("yes", "no"), 1: ("1", "2", "3")})
    table = made(
        {"B": np.array([3, 1, 2]), "A": np.array(["no", "yes", "no"], dtype=object), "C": np.array([True] * 3)}
    )
    assert as_array(table, named).tolist() == [[[1, 2, 1], [0, 0, 1], [1, 1, 1]]]


def test_chains_in_the_index() -> None:
    pandas = pytest.importorskip("pandas")
    index = pandas.MultiIndex.from_product([[0, 1], [0, 1, 2]], names=["chain", "draw"])
    table = pandas.DataFrame(STATES.reshape(6, 3)[:, ::-1], columns=list("CBA"), index=index)
    assert as_array(table, MODEL).tolist() == STATES.tolist()


def xarray_of(values, dims, coords=None):
    return pytest.importorskip("xarray").DataArray(values, dims=dims, coords=coords or {})


@pytest.mark.parametrize("made", [Array, xarray_of])
def test_labelled_arrays(made) -> None:
    labels = {"variable": ["C", "A", "B"]}
    shuffled = STATES[:, :, [2, 0, 1]]
    for values, dims in (
        (shuffled, ("chain", "draw", "variable")),
        (np.moveaxis(shuffled, 2, 0), ("variable", "chain", "draw")),
        (np.swapaxes(shuffled, 0, 1), ("draw", "chain", "variable")),
    ):
        assert as_array(made(values, dims, labels), MODEL).tolist() == STATES.tolist()
    assert as_array(made(np.swapaxes(STATES, 0, 1), ("draw", "chain", "v")), MODEL).tolist() == STATES.tolist()
    assert as_array(made(shuffled[0], ("draw", "variable"), labels), MODEL).tolist() == [STATES[0].tolist()]
    assert as_array(made(STATES, ("dim_0", "dim_1", "dim_2")), MODEL).tolist() == STATES.tolist()
    for values, dims, coords, message in (
        (STATES, ("chain", "draw", "variable"), {"variable": ["A", "B", "D"]}, "name 'D', which is no variable"),
        (STATES, ("chain", "draw", "variable"), {"variable": ["A", "B", "B"]}, "two variables .* called 'B'"),
        (STATES, ("row", "draw", "variable"), labels, "the dimensions of samples are chain, draw"),
        (STATES, ("chain", "step", "variable"), labels, "these are chain, step, variable"),
    ):
        with pytest.raises(ModelError, match=message):
            as_array(made(values, dims, coords), MODEL)


def test_posteriors() -> None:
    each = {name: Array(np.swapaxes(STATES[:, :, i], 0, 1), ("draw", "chain")) for i, name in enumerate("ABC")}
    unrelated = Array(np.zeros((2, 3, 3), dtype=int), ("chain", "draw", "w_dim_0"), {"w_dim_0": [0, 1, 2]})
    labelled = Array(STATES[:, :, ::-1], ("chain", "draw", "v"), {"v": ["C", "B", "A"]})
    plain = Array(STATES, ("chain", "draw", "x_dim_0"), {"x_dim_0": [0, 1, 2]})
    for posterior in (Dataset(each), Dataset(w=unrelated, **each), Dataset(w=unrelated, x=labelled), Dataset(x=plain)):
        assert as_array(SimpleNamespace(posterior=posterior), MODEL).tolist() == STATES.tolist()
        assert as_array(posterior, MODEL).tolist() == STATES.tolist()
    for alone in (unrelated, Array(STATES, ("chain", "draw", "theta_dim_0"))):
        with pytest.raises(ModelError, match="'theta' does not say which variable"):
            as_array(SimpleNamespace(posterior=Dataset(theta=alone)), MODEL)
    for posterior in (Dataset(w=unrelated, x=plain), Dataset(w=unrelated, A=each["A"])):
        with pytest.raises(ModelError, match="the posterior has no"):
            as_array(SimpleNamespace(posterior=posterior), MODEL)


def test_an_arviz_object_without_a_posterior_is_refused() -> None:
    """Method of an InferenceData, property of a DataTree."""
    for groups in (lambda: ["prior", "log_likelihood"], ("/", "/prior", "/log_likelihood")):
        other = SimpleNamespace(groups=groups, to_netcdf=None)
        with pytest.raises(ModelError, match="'posterior' of an ArviZ object; its groups are prior, log_likelihood$"):
            as_array(other, MODEL)


def test_arrow_tables() -> None:
    arrow = pytest.importorskip("pyarrow")
    flat = STATES.reshape(6, 3)
    columns = {"C": flat[:, 2], "A": flat[:, 0], "B": flat[:, 1]}
    for table in (arrow.table(columns), arrow.RecordBatch.from_pydict(columns)):
        assert as_array(table, MODEL).tolist() == [flat.tolist()]
    assert as_array(arrow.table({"chain": [1, 1, 1, 0, 0, 0], **columns}), MODEL).tolist() == STATES.tolist()
    for wrong, message in (
        ({"A": [0, None]}, "A is nan"),
        ({"A": [0, 1], "D": [0, 1]}, "name 'D', which is no variable"),
    ):
        with pytest.raises(ModelError, match=message):
            as_array(arrow.table({"B": [0, 1], "C": [0, 1], **wrong}), MODEL)
    with pytest.raises(ModelError, match="two columns are called 'A'"):
        as_array(arrow.Table.from_arrays([arrow.array([0, 1])] * 4, names=["A", "B", "C", "A"]), MODEL)


def test_mappings_structured_and_masked_arrays() -> None:
    assert (
        as_array({"C": STATES[:, :, 2], "B": STATES[:, :, 1], "A": STATES[:, :, 0]}, MODEL).tolist() == STATES.tolist()
    )
    rows = [tuple(row) for row in STATES[0][:, ::-1].tolist()]
    structured = np.array(rows, dtype=[("C", int), ("B", int), ("A", int)])
    assert as_array(structured, MODEL).tolist() == [STATES[0].tolist()]
    assert as_array(np.ma.masked_array(STATES, mask=False), MODEL).tolist() == STATES.tolist()
    with pytest.raises(ModelError, match="masked"):
        as_array(np.ma.masked_array(STATES, mask=STATES == 2), MODEL)
    with pytest.raises(ModelError, match="different shapes"):
        as_array({"A": STATES[:, :, 0], "B": STATES[:, :2, 1], "C": STATES[:, :, 2]}, MODEL)


def test_mappings_of_labelled_arrays() -> None:
    """A DataArray says which of its axes are the chains, a Series which row is which draw."""
    square = np.concatenate([STATES, STATES[:1]])  # three chains of three draws: shapes say nothing
    each = {
        name: Array(square[:, :, i] if i else square[:, :, i].T, ("chain", "draw") if i else ("draw", "chain"))
        for i, name in enumerate("ABC")
    }
    assert as_array(each, MODEL).tolist() == square.tolist()
    pandas = pytest.importorskip("pandas")
    columns = {name: pandas.Series(STATES[0, :, i]) for i, name in enumerate("ABC")}
    assert as_array(columns, MODEL).tolist() == [STATES[0].tolist()]
    shuffled = columns | {"B": columns["B"].iloc[[2, 0, 1]]}
    with pytest.raises(ModelError, match="rows of 'B' have other labels than those of 'A'"):
        as_array(shuffled, MODEL)


def test_headers_that_are_numbers(tmp_path: Path) -> None:
    model = replace(MODEL, names=("2", "0", "1"))
    path = tmp_path / "draws.csv"
    path.write_text("0,1,2\n2,1,0\n0,0,1\n")
    assert read_samples(path, model).tolist() == [[[0, 2, 1], [1, 0, 0]]]
    path.write_text("chain,0,1,2\n5,2,1,0\n5,0,0,1\n")
    assert read_samples(path, model).tolist() == [[[0, 2, 1], [1, 0, 0]]]
    small = replace(dft.factor_graph([2, 2], []), names=("1", "0"))
    path.write_text("0,1\n1,1\n")
    with pytest.raises(ParseError, match="a header or a draw"):
        read_samples(path, small)
    path.write_text("1,1\n0,1\n")
    assert read_samples(path, small).tolist() == [[[1, 1], [0, 1]]]
    for first in ("0,1,2", "2,0,1"):  # columns numbered by pandas, of a model that has names
        path.write_text(f"{first}\n0,1,1\n")
        with pytest.raises(ParseError, match="a header or a draw.*name the columns, such as X0, X1, X2, in a header"):
            read_samples(path, dft.factor_graph([3, 3, 3], []))
        with pytest.raises(ParseError, match="no variable is named '[02]'"):
            read_samples(path, dft.factor_graph([2, 2, 2], []))
    path.write_text("0,2,2\n0,1,1\n")
    assert read_samples(path, dft.factor_graph([3, 3, 3], [])).tolist() == [[[0, 2, 2], [0, 1, 1]]]
