"""A simplified model's factors sorted by shape, so that twins, graph and check can treat a whole shape at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from definetti.errors import ModelError
from definetti.groups import ranges
from definetti.integer_rows import mix
from definetti.model.graph.factors import FREE, FactorGraph


@dataclass(frozen=True, eq=False)
class Block:
    """All factors whose tables have the same shape."""

    shape: tuple[int, ...]
    factors: np.ndarray  # int64[m]
    scopes: np.ndarray  # int64[m, arity]
    tables: np.ndarray  # int64[m]: number of the table

    @property
    def arity(self) -> int:
        return len(self.shape)

    @cached_property
    def _incidence(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.scopes, axis=None, kind="stable")
        return self.scopes.ravel()[order], order // self.arity

    def rows_over(self, generators: np.ndarray, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Different (generator, row) pairs, from pairs (generator, variable): the factors that each generator moves."""
        sorted_variables, row = self._incidence
        first = np.searchsorted(sorted_variables, variables)
        last = np.searchsorted(sorted_variables, variables, side="right")
        rows = row[ranges(first, last)]
        pairs = np.unique(np.repeat(generators, last - first) * len(self.factors) + rows)
        return np.divmod(pairs, len(self.factors))


@dataclass(frozen=True, eq=False)
class Layout:
    model: FactorGraph
    blocks: tuple[Block, ...]
    variable_of: np.ndarray  # int64[L]: the variable of each literal
    scope_keys: np.ndarray  # uint64[F], ascending: hashes of the factors' sets of variables
    by_key: np.ndarray  # int64[F]: their factors

    def table(self, number: int, shape: tuple[int, ...]) -> np.ndarray:
        start = self.model.table_start
        return self.model.tables[start[number] : start[number + 1]].reshape(shape) + 0.0  # -0.0 equals 0.0


def scope_key(scopes: np.ndarray) -> np.ndarray:
    """uint64[m]: a hash of each row as a set of variables."""
    return mix(scopes).sum(axis=1, dtype=np.uint64) + mix(np.array([scopes.shape[1]]))


def layout(model: FactorGraph) -> Layout:
    """The factors by shape; `ModelError` if the model is not in the form that `simplify` makes."""
    arity = np.diff(model.scope_start)
    blocks: list[Block] = []
    key = np.zeros(model.factor_count, dtype=np.uint64)
    for k in np.unique(arity).tolist():
        if k == 0:
            continue  # a constant
        factors = np.flatnonzero(arity == k)
        scopes = model.scope[model.scope_start[factors][:, None] + np.arange(k)].astype(np.int64)
        key[factors] = scope_key(scopes)
        _require_simplified(model, factors, scopes, key[factors])
        cards = model.cards[scopes]
        tables = model.table_of[factors].astype(np.int64)
        if (cards == cards[0, 0]).all():
            blocks.append(Block((int(cards[0, 0]),) * k, factors, scopes, tables))
            continue
        shapes, which = np.unique(cards, axis=0, return_inverse=True)
        for s, shape in enumerate(shapes):
            rows = np.flatnonzero(which.ravel() == s)
            blocks.append(Block(tuple(shape.tolist()), factors[rows], scopes[rows], tables[rows]))
    variable_of = np.repeat(np.arange(model.n, dtype=np.int64), model.cards)
    order = np.argsort(key, kind="stable")
    return Layout(model, tuple(blocks), variable_of, key[order], order)


def _require_simplified(model: FactorGraph, factors: np.ndarray, scopes: np.ndarray, keys: np.ndarray) -> None:
    observed = (model.evidence[scopes] != FREE).any(axis=1)
    if observed.any():
        name = factor_name(model, int(factors[observed.argmax()]))
        raise ModelError(f"{name} is over an observed variable; simplify the model first")
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    if same.any():
        name = factor_name(model, int(factors[order[same.argmax()]]))
        raise ModelError(f"there are two factors where there is {name}; simplify the model first")


def factor_name(model: FactorGraph, factor: int) -> str:
    """How messages call a factor: by its variables."""
    names = [model.names[i] for i in model.variables(factor)]
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"the factor over ({shown})"
