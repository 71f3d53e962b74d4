"""Models of other Python libraries as factor graphs, recognised by what they can do: none of the libraries is imported.

pgmpy Markov and Bayesian networks · dimod binary and discrete quadratic models · networkx graphs of spins · lists of
(scope, table).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from definetti.errors import ModelError
from definetti.model.checked_input import LARGEST_LOG
from definetti.model.graph.factors import FactorGraph, factor_graph

SPINS = ("-1", "1")  # the values 0 and 1 of a spin
ACCEPTED = (
    "a path to a .uai, .fg or .mln file, a FactorGraph or MarkovLogic, a pgmpy Markov or Bayesian network, "
    "a dimod BinaryQuadraticModel or DiscreteQuadraticModel, an undirected networkx graph, or a list of (scope, table)"
)


@dataclass(frozen=True)
class Adapter:
    fits: Callable[[Any], bool]
    convert: Callable[..., FactorGraph]
    options: tuple[str, ...] = ()


def adapt(source: Any, **options: Any) -> FactorGraph:
    """A factor graph from another library's model. Options: `beta` (dimod), `coupling` (networkx)."""
    if isinstance(source, FactorGraph):
        return source
    for adapter in ADAPTERS:
        if adapter.fits(source):
            foreign = [name for name in options if name not in adapter.options]
            if foreign:
                takes = ", ".join(adapter.options) or "no options"
                raise ModelError(f"a {_type(source)} takes {takes}, not {', '.join(foreign)}")
            return adapter.convert(source, **options)
    raise ModelError(f"cannot read a model from a {_type(source)}; accepted are {ACCEPTED}")


def _type(source: Any) -> str:
    kind = type(source)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda source: all(hasattr(source, name) for name in names)


# --- pgmpy ---------------------------------------------------------------------------------------------------


def from_pgmpy_bayes(network: Any) -> FactorGraph:
    """A Bayesian network: each conditional table is a factor."""
    if hasattr(network, "get_interface_nodes"):
        raise ModelError("a dynamic Bayesian network has no fixed number of variables; unroll it first")
    return _from_tables(network.nodes, network.get_cpds())


def from_pgmpy_markov(network: Any) -> FactorGraph:
    """A Markov network, or a pgmpy factor graph."""
    factors = network.get_factors()
    nodes = list(network.nodes)
    if hasattr(network, "get_variable_nodes"):  # the nodes of a factor graph are variables and factors
        variables = {variable for factor in factors for variable in factor.variables}
        nodes = [node for node in nodes if node in variables]
    return _from_tables(nodes, factors)


def _from_tables(nodes: Iterable[Hashable], parts: Sequence[Any]) -> FactorGraph:
    cards: dict[Hashable, int] = {}
    states: dict[Hashable, tuple[str, ...]] = {}
    for part in parts:
        if not _has("variables", "cardinality", "values")(part):
            raise ModelError(f"{part!r} is not a discrete table; only discrete networks can be read")
        for variable, card in zip(part.variables, part.cardinality, strict=True):
            if cards.setdefault(variable, int(card)) != card:
                raise ModelError(f"{variable!r} has {cards[variable]} values in one table and {card} in another")
            _note_states(variable, int(card), (getattr(part, "state_names", None) or {}).get(variable), states)
    order = list(nodes)
    for node in order:
        if node not in cards:
            raise ModelError(f"{node!r} has no table, so its number of values is unknown; add a factor or CPD for it")
    names = _names(order)
    index = {node: i for i, node in enumerate(order)}
    unknown = next((v for v in cards if v not in index), None)
    if unknown is not None:
        raise ModelError(f"a table is over {unknown!r}, which is no node of the network")
    factors = [([index[v] for v in part.variables], np.asarray(part.values, dtype=np.float64)) for part in parts]
    model = factor_graph([cards[node] for node in order], factors, names=names)
    return replace(model, value_names={index[node]: labels for node, labels in states.items()})


def _note_states(variable: Hashable, card: int, states: Sequence[Any] | None, known: dict[Hashable, Any]) -> None:
    """Remember the names of a variable's values; numbers in their place (pgmpy's default) are no names."""
    if states is None or list(states) == list(range(card)):
        return
    labels = tuple(str(state) for state in states)
    if len(set(labels)) != card:
        raise ModelError(f"{variable!r} needs {card} different names for its values, got {labels}")
    if known.setdefault(variable, labels) != labels:
        both = f"{known[variable]} in one table and {labels} in another"
        raise ModelError(f"the values of {variable!r} are {both}; give all tables the same state_names in one order")


# --- quadratic models ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quadratic:
    """Log weight = constant + Σ field[i] u_i + Σ coupling[e] u_row[e] u_col[e], each u_i one of two `levels`."""

    names: Sequence[str]
    field: np.ndarray
    row: np.ndarray
    col: np.ndarray
    coupling: np.ndarray
    constant: float
    levels: tuple[float, float]


def from_dimod(bqm: Any, beta: float = 1.0) -> FactorGraph:
    """The Boltzmann distribution exp(-beta · energy) of a binary quadratic model, spin or binary."""
    beta = _number(beta, "beta")
    vectors = bqm.to_numpy_vectors(sort_labels=False, return_labels=True)
    spin = bqm.vartype.name == "SPIN"
    quadratic = vectors.quadratic
    return _from_quadratic(
        Quadratic(
            names=_names(vectors.labels),
            field=-beta * np.asarray(vectors.linear_biases, dtype=np.float64),
            row=np.asarray(quadratic.row_indices, dtype=np.int64),
            col=np.asarray(quadratic.col_indices, dtype=np.int64),
            coupling=-beta * np.asarray(quadratic.biases, dtype=np.float64),
            constant=-beta * float(vectors.offset),
            levels=(-1.0, 1.0) if spin else (0.0, 1.0),
        )
    )


def from_dimod_discrete(dqm: Any, beta: float = 1.0) -> FactorGraph:
    """The Boltzmann distribution exp(-beta · energy) of a discrete quadratic model: a factor per variable and pair."""
    beta = _number(beta, "beta")
    labels = list(dqm.variables)
    index = {label: i for i, label in enumerate(labels)}
    cards = np.array([dqm.num_cases(label) for label in labels], dtype=np.int32)
    scopes: list[tuple[int, ...]] = []
    tables: list[np.ndarray] = []
    for i, label in enumerate(labels):
        biases = np.asarray(dqm.get_linear(label), dtype=np.float64)
        if biases.any():
            scopes.append((i,))
            tables.append(-beta * biases)
    for u in labels:
        for v in dqm.adj[u]:
            i, j = index[u], index[v]
            if i < j:
                table = np.zeros((cards[i], cards[j]))
                for (a, b), bias in dqm.get_quadratic(u, v).items():
                    table[a, b] = -beta * bias
                scopes.append((i, j))
                tables.append(table)
    if not all(np.isfinite(table).all() for table in tables):
        raise ModelError("a bias of the discrete quadratic model is not a finite number")
    return FactorGraph.from_arrays(
        cards,
        np.concatenate([[0], np.cumsum([len(scope) for scope in scopes])]).astype(np.int64),
        np.array([i for scope in scopes for i in scope], dtype=np.int32),
        np.arange(len(tables), dtype=np.int64),
        tables,
        names=_names(labels),
        log_constant=-beta * float(getattr(dqm, "offset", 0.0)),
    )


def from_networkx(graph: Any, coupling: float | None = None) -> FactorGraph:
    """Spins on an undirected graph: log weight = Σ `field` s_i + Σ `coupling` s_i s_j, from node and edge attributes.

    A node without `field` has 0, an edge without `coupling` has the argument's value.
    """
    if graph.is_directed():
        raise ModelError("a directed graph is no model of couplings; give graph.to_undirected()")
    nodes = list(graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    field = [_number(f, f"the field of {node!r}") for node, f in graph.nodes(data="field", default=0.0)]
    edges = list(graph.edges(data="coupling", default=coupling))
    missing = next(((u, v) for u, v, value in edges if value is None), None)
    if missing is not None:
        raise ModelError(f"the edge {missing} has no attribute 'coupling'; set it, or give one for all: coupling=0.5")
    values = np.array([_number(value, f"the coupling of {(u, v)}") for u, v, value in edges], dtype=np.float64)
    row = np.array([index[u] for u, _, _ in edges], dtype=np.int64)
    col = np.array([index[v] for _, v, _ in edges], dtype=np.int64)
    loop = row == col  # s_i s_i = 1
    return _from_quadratic(
        Quadratic(
            _names(nodes),
            np.array(field, dtype=np.float64),
            row[~loop],
            col[~loop],
            values[~loop],
            float(values[loop].sum()),
            (-1.0, 1.0),
        )
    )


def _from_quadratic(q: Quadratic) -> FactorGraph:
    """One table per different number; terms that are 0 make no factor."""
    for numbers, what in ((q.field, "field"), (q.coupling, "coupling"), (np.array([q.constant]), "offset")):
        if not (np.abs(numbers) < LARGEST_LOG).all():
            raise ModelError(f"a {what} is not finite, or beyond ±{LARGEST_LOG:g}")
    n, levels = len(q.names), np.array(q.levels)
    own, pair = np.flatnonzero(q.field), np.flatnonzero(q.coupling)
    fields, field_of = np.unique(q.field[own], return_inverse=True)
    couplings, coupling_of = np.unique(q.coupling[pair], return_inverse=True)
    scope = np.concatenate([own, np.stack([q.row[pair], q.col[pair]], axis=1).ravel()])
    model = FactorGraph.from_arrays(
        np.full(n, 2),
        np.concatenate([np.arange(len(own)), len(own) + 2 * np.arange(len(pair) + 1)]),
        scope,
        np.concatenate([field_of, len(fields) + coupling_of]),
        [*(f * levels for f in fields), *(c * np.outer(levels, levels) for c in couplings)],
        names=q.names,
        log_constant=q.constant,
    )
    return replace(model, value_names=dict.fromkeys(range(n), SPINS)) if q.levels[0] < 0 else model


# --- lists ---------------------------------------------------------------------------------------------------


def from_list(factors: Sequence[tuple[Sequence[int | str], Any]]) -> FactorGraph:
    """From (scope, table) pairs alone: tables with one axis per variable say how many values there are.

    Variables are names, in the order of their first occurrence, or the numbers 0, 1, …
    """
    cards: dict[int | str, int] = {}
    for k, (scope, table) in enumerate(factors):
        shape = np.shape(table)
        if isinstance(scope, str) or len(shape) != len(scope):
            raise ModelError(f"factor {k}: a list of {len(shape)} variables is needed beside a table of shape {shape}")
        for variable, card in zip(scope, shape, strict=True):
            if cards.setdefault(variable, card) != card:
                raise ModelError(f"variable {variable!r} has {cards[variable]} values, but {card} in factor {k}")
    if all(isinstance(variable, str) for variable in cards):
        return factor_graph({str(name): card for name, card in cards.items()}, factors)
    if set(cards) != set(range(len(cards))):
        raise ModelError("variables must be all names or the numbers 0, 1, … without a gap; or use factor_graph")
    return factor_graph([cards[i] for i in range(len(cards))], factors)


def _is_list(source: Any) -> bool:
    return isinstance(source, list) and all(isinstance(item, tuple) and len(item) == 2 for item in source)


# --- shared --------------------------------------------------------------------------------------------------


def _names(labels: Iterable[Hashable]) -> list[str]:
    names = [str(label) for label in labels]
    if len(set(names)) < len(names):
        again, _ = Counter(names).most_common(1)[0]
        raise ModelError(f"two variables are both written {again!r}; rename one")
    return names


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f"{what} is {value!r}; a finite number is needed")
    return number


#: In this order: pgmpy's networks are networkx graphs too.
ADAPTERS = (
    Adapter(_has("get_cpds", "nodes"), from_pgmpy_bayes),
    Adapter(_has("get_factors", "nodes"), from_pgmpy_markov),
    Adapter(_has("to_numpy_vectors", "vartype"), from_dimod, ("beta",)),
    Adapter(_has("num_cases", "get_quadratic", "variables"), from_dimod_discrete, ("beta",)),
    Adapter(_has("nodes", "edges", "is_directed"), from_networkx, ("coupling",)),
    Adapter(_is_list, from_list),
)
