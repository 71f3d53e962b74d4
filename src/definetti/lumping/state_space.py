"""The states of a small factor graph, listed and numbered: their probabilities, and what permutations do to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from definetti.errors import ModelError, TooLarge, Unsatisfiable
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.model.queries import Query

MOST_ASSIGNMENTS = 2**20  # of the free variables, legal or not
BLOCK = 2**14  # assignments whose density is computed at once
CURE = "observe some variables, or use a smaller model"


@dataclass(frozen=True, eq=False)
class StateSpace:
    """All states of positive probability of a simplified model, in the order of their codes.

    The code of a state counts in mixed radix over the free variables, the last one fastest.
    """

    model: FactorGraph
    states: np.ndarray  # uint8[S, n] or wider, observed variables included
    probability: np.ndarray  # float64[S]
    place: np.ndarray  # int32[codes]: the number of the state with this code, -1 where it is impossible
    stride: np.ndarray  # int64[n]: what a step of each variable adds to the code; 0 for observed ones

    def __len__(self) -> int:
        return len(self.states)

    @cached_property
    def codes(self) -> np.ndarray:
        """int64[S]."""
        return self.states @ self.stride

    def moved(self, element: np.ndarray) -> np.ndarray:
        """int64[S]: the numbers of the states that a permutation of literals takes the states to."""
        model, code = self.model, np.zeros(len(self), dtype=np.int64)
        for i in model.free.tolist():
            literal = element[model.literal_start[i] + self.states[:, i].astype(np.int64)]
            variable = model.variable_of[literal]
            code += (literal - model.literal_start[variable]) * self.stride[variable]
        return self.place[code].astype(np.int64)

    def holds(self, query: Query) -> np.ndarray:
        """bool[S]: where an event is true, or a binary variable has value 1."""
        variables = list(query.variables)
        if query.kind == "variable":
            if self.model.cards[variables[0]] > 2:
                name = self.model.names[variables[0]]
                raise ModelError(f"{name} has several values: ask for one of them, as in {name}=0")
            return self.states[:, variables[0]] == 1
        rows = self.states[:, variables]
        return np.isin(_keys(rows, self.model.cards[variables]), _keys(query.satisfying, self.model.cards[variables]))

    def text(self, state: int) -> str:
        """A state as its free variables' values: 0110, or 0,12,3 where there are more than ten values."""
        values = [str(v) for v in self.states[state, self.model.free].tolist()]
        return ("" if self.model.cards[self.model.free].max(initial=0) <= 10 else ",").join(values)


def _keys(rows: np.ndarray, cards: np.ndarray) -> np.ndarray:
    stride = np.cumprod(np.concatenate([[1], cards[:-1]])).astype(np.int64)
    return rows.astype(np.int64) @ stride[: rows.shape[1]]


def state_space(model: FactorGraph, most: int) -> StateSpace:
    """Lists the legal states of a simplified model; `TooLarge` where there are more than `most`."""
    free = model.free
    refuse_many(float(np.log2(model.cards[free]).sum()), most)
    stride = np.zeros(model.n, dtype=np.int64)
    stride[free] = np.cumprod(np.concatenate([[1], model.cards[free][:0:-1]]))[: len(free)][::-1]
    codes = int(np.prod(model.cards[free], dtype=np.int64))
    log = np.concatenate([_log_density(model, stride, lo, min(lo + BLOCK, codes)) for lo in range(0, codes, BLOCK)])
    legal = np.flatnonzero(log > -np.inf)
    if not len(legal):
        raise Unsatisfiable("no state is possible: evidence and hard factors contradict each other")
    if len(legal) > most:
        raise TooLarge("the list of states", len(legal), most, CURE, unit="states")
    weight = np.exp(log[legal] - log[legal].max())
    if weight.min() < 1e-280:
        raise ModelError("some states have a probability below 1e-280: the matrices cannot hold such numbers")
    place = np.full(codes, -1, dtype=np.int32)
    place[legal] = np.arange(len(legal))
    return StateSpace(model, frozen(_assignments(model, stride, legal)), frozen(weight / weight.sum()), place, stride)


def refuse_many(bits: float, most: int) -> None:
    """`TooLarge` where so many bits of states cannot be listed."""
    if bits > np.log2(MOST_ASSIGNMENTS) + 1e-9:
        size = 2.0**bits if bits < 1000 else 10 ** int(bits * np.log10(2))
        raise TooLarge("the list of states", size, min(most, MOST_ASSIGNMENTS), CURE, unit="states")


def _assignments(model: FactorGraph, stride: np.ndarray, codes: np.ndarray) -> np.ndarray:
    kind = np.uint8 if model.cards.max(initial=1) <= 256 else np.int32
    states = np.tile(np.maximum(model.evidence, 0).astype(kind), (len(codes), 1))
    for i in model.free.tolist():
        states[:, i] = codes // stride[i] % model.cards[i]
    return states


def _log_density(model: FactorGraph, stride: np.ndarray, first: int, last: int) -> np.ndarray:
    return model.log_factors(_assignments(model, stride, np.arange(first, last)))
