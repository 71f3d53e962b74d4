"""Models of other libraries: each adapter gives the distribution that the library means, state by state."""

from __future__ import annotations

import itertools
import subprocess
import sys

import dimod
import networkx
import numpy as np
import pytest

from definetti.errors import ModelError, UnknownName
from definetti.model.graph.factors import FactorGraph, factor_graph
from definetti.readers.graph.adapters import adapt
from definetti.readers.reading import read

FACTORS = [((0, 1), [[4, 2.4], [1, 0]]), ((1, 2), [[2.25, 3.25, 3.75], [0, 0, 10]])]


def states(model: FactorGraph) -> np.ndarray:
    return np.array(list(itertools.product(*map(range, model.cards.tolist()))), dtype=np.int64).reshape(-1, model.n)


def same(a: FactorGraph, b: FactorGraph) -> bool:
    return (
        a.names == b.names
        and (a.cards == b.cards).all()
        and bool(np.allclose(a.log_density(states(a)), b.log_density(states(a)), rtol=1e-13, atol=1e-13))
    )


def energies(bqm, model: FactorGraph, levels: tuple[int, int]) -> np.ndarray:
    rows = states(model)
    return np.array([bqm.energy(dict(zip(bqm.variables, (levels[v] for v in row), strict=True))) for row in rows])


def test_dimod_spin_and_binary() -> None:
    bqm = dimod.BinaryQuadraticModel(
        {"b": 0.5, "a": -1.0, 3: 0.0}, {("b", "a"): 0.7, ("a", 3): -0.7, (3, "b"): 0.0}, 0.25, "SPIN"
    )
    spin, binary = adapt(bqm, beta=2.0), adapt(bqm.change_vartype("BINARY", inplace=False), beta=2.0)
    assert spin.names == binary.names == ("b", "a", "3")
    assert spin.value_names == dict.fromkeys(range(3), ("-1", "1"))
    assert not binary.value_names
    assert spin.factor_count == 4  # zeros make no factor
    expected = -2.0 * energies(bqm, spin, (-1, 1))
    np.testing.assert_allclose(spin.log_density(states(spin)), expected, atol=1e-12)
    np.testing.assert_allclose(binary.log_density(states(spin)), expected, atol=1e-12)
    assert spin.condition({"a": "-1", "b": "1"}).evidence.tolist() == [1, 0, -1]
    assert spin.condition({"a": -1, "b": 1}).evidence.tolist() == [1, 0, -1]  # a number is a name here
    with pytest.raises(UnknownName, match=r"no value '0'; its values are -1, 1"):
        spin.condition({"a": 0})


def test_a_variable_that_is_named_by_a_number_is_not_one_by_position() -> None:
    """Nodes 2, 0, 1 in this order: evidence on 2 was read as evidence on node 1, the third."""
    model = read(networkx.Graph([(2, 0), (0, 1)]), coupling=0.5)
    assert model.names == ("2", "0", "1")
    for key in (2, "2", np.int64(2)):
        assert model.condition({key: 1}).evidence.tolist() == [1, -1, -1]
    with pytest.raises(UnknownName, match="no variable is named '3'"):
        model.condition({3: 1})
    tens = factor_graph([2, 2], [((0, 1), [[1, 2], [3, 4]])], names=["10", "x"])
    with pytest.raises(UnknownName, match="no variable is named '0'"):
        tens.condition({0: 1})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_dimod_number_types(dtype) -> None:
    bqm = dimod.BinaryQuadraticModel({0: 0.5, 1: 0.0}, {(0, 1): -0.25}, 1.0, "BINARY", dtype=dtype)
    model = read(bqm)
    assert isinstance(model, FactorGraph)
    np.testing.assert_allclose(model.log_density(states(model)), -energies(bqm, model, (0, 1)))


def test_networkx_fields_and_couplings() -> None:
    graph = networkx.Graph()
    graph.add_node("a", field=0.3)
    graph.add_edge("a", "b", coupling=0.5)
    graph.add_edge("b", "c")
    graph.add_edge("c", "c", coupling=0.125)
    model = read(graph, {"a": "1"}, coupling=-0.75)
    assert isinstance(model, FactorGraph)
    a, b, c = (2 * states(model) - 1).T
    expected = 0.3 * a + 0.5 * a * b - 0.75 * b * c + 0.125
    np.testing.assert_allclose(model.log_density(states(model)), np.where(a == 1, expected, -np.inf))
    with pytest.raises(ModelError, match=r"\('b', 'c'\).*coupling=0\.5"):
        read(graph)
    with pytest.raises(ModelError, match="to_undirected"):
        read(networkx.DiGraph(graph))
    graph.edges["b", "c"]["coupling"] = "strong"
    with pytest.raises(ModelError, match="strong"):
        read(graph)


def test_networkx_parallel_edges_add_up() -> None:
    graph = networkx.MultiGraph([(0, 1), (0, 1)])
    one, two = networkx.Graph([(0, 1)]), adapt(graph, coupling=0.25)
    assert same(two, adapt(one, coupling=0.5))


def test_lists() -> None:
    assert same(adapt(FACTORS), factor_graph([2, 2, 3], FACTORS))
    by_name = adapt([(("u", "v"), FACTORS[0][1]), (("v", "w"), FACTORS[1][1]), ((), 3.0)])
    assert same(by_name, factor_graph({"u": 2, "v": 2, "w": 3}, [*FACTORS, ((), 3.0)]))
    for wrong in (
        [(("u",), [1, 2]), (("u",), [1, 2, 3])],
        [(("u", "v"), [1, 2])],
        [("uv", [[1, 2], [3, 4]])],
        [((1,), [1, 2])],
        [((0, "v"), [[1, 2], [3, 4]])],
        [(("u",), ["x", "y"])],
        [(("u",), [-1, 2])],
    ):
        with pytest.raises(ModelError):
            adapt(wrong)


class Table:
    """What a pgmpy factor or conditional table looks like from outside."""

    def __init__(self, variables, values, state_names=None) -> None:
        self.variables, self.values = variables, np.array(values, dtype=float)
        self.cardinality, self.state_names = np.array(self.values.shape), state_names or {}


class Network:
    def __init__(self, nodes, factors) -> None:
        self.nodes, self._factors = nodes, factors

    def get_factors(self):
        return self._factors


def test_networks_of_tables() -> None:
    named = {"a": ["no", "yes"]}
    tables = [Table(["b", "a"], [[1, 2], [3, 4], [5, 6]], named), Table(["a"], [1, 9], named)]
    model = adapt(Network(["a", "b"], tables))
    assert same(model, factor_graph({"a": 2, "b": 3}, [(("b", "a"), tables[0].values), (("a",), [1, 9])]))
    assert model.value_names == {0: ("no", "yes")}
    with pytest.raises(ModelError, match="'c' has no table"):
        adapt(Network(["a", "b", "c"], tables))
    with pytest.raises(ModelError, match="no node"):
        adapt(Network(["a"], tables))
    with pytest.raises(ModelError, match="2 values in one table and 3"):
        adapt(Network(["a", "b"], [*tables, Table(["a"], [1, 2, 3])]))
    with pytest.raises(ModelError, match="the same state_names"):
        adapt(Network(["a", "b"], [*tables, Table(["a"], [1, 2], {"a": ["yes", "no"]})]))
    with pytest.raises(ModelError, match="not a discrete table"):
        adapt(Network(["a"], ["gaussian"]))


def test_pgmpy_bayesian_network() -> None:
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    network = DiscreteBayesianNetwork([("rain", "wet"), ("hose", "wet")])
    names = {"rain": ["no", "yes"], "hose": ["off", "low", "high"], "wet": ["dry", "wet"]}
    wet = [[0.9, 0.5, 0.4, 0.3, 0.2, 0.1], [0.1, 0.5, 0.6, 0.7, 0.8, 0.9]]
    network.add_cpds(
        TabularCPD("rain", 2, [[0.8], [0.2]], state_names={"rain": names["rain"]}),
        TabularCPD("hose", 3, [[0.5], [0.3], [0.2]], state_names={"hose": names["hose"]}),
        TabularCPD("wet", 2, wet, ["rain", "hose"], [2, 3], state_names=names),
    )
    model = adapt(network)
    assert set(model.names) == {"rain", "wet", "hose"}
    assert {model.names[i]: list(labels) for i, labels in model.value_names.items()} == names
    assert np.exp(model.log_density(states(model))).sum() == pytest.approx(1.0)
    state = np.zeros(3, dtype=int)
    for name, value in {"rain": "yes", "hose": "low", "wet": "dry"}.items():
        state[model.index(name)] = model.value(model.index(name), value)
    assert np.exp(model.log_density(state)) == pytest.approx(0.2 * 0.3 * 0.2)


def test_pgmpy_markov_network() -> None:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork([("a", "b"), ("b", "c")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [4, 2.4, 1, 0]))
    network.add_factors(DiscreteFactor(["b", "c"], [2, 3], [2.25, 3.25, 3.75, 0, 0, 10]))
    expected = factor_graph([2, 2, 3], FACTORS, names=["a", "b", "c"])
    assert same(adapt(network), expected)
    graph = adapt(network.to_factor_graph())
    order = [expected.index(name) for name in graph.names]
    assert np.allclose(graph.log_density(states(expected)[:, order]), expected.log_density(states(expected)))


def test_reading_imports_no_other_library() -> None:
    others = {"dimod", "networkx", "pgmpy", "lark", "numba", "scipy"}
    code = f"import sys, definetti.readers.reading; print(sorted({others!r} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
