"""A chain on a Markov logic network that is looked at after every update (`samplers/every_update.py`): the generated
kernel hands each chunk of draws to the observer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from definetti.errors import ModelError, Unsatisfiable
from definetti.model.logic.evidence import UNKNOWN
from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.every_update import Occupancy
from definetti.samplers.logic.engine import FAILED, compile_model
from definetti.samplers.logic.starts import first_state


class Watch(NamedTuple):
    """The arrays of an `Occupancy`, and where the atoms of a predicate stand in them."""

    strides: np.ndarray  # int64[predicates, arity]
    first: np.ndarray  # int64[predicates]
    held: np.ndarray
    since: np.ndarray
    total: np.ndarray
    time: np.ndarray


class FollowedAtoms:
    def __init__(self, model: MarkovLogic, start: np.ndarray | int, seed: int) -> None:
        if any(p.exclusive for p in model.predicates.values()):
            raise ModelError("a chain is followed from update to update on predicates without `!` only")
        relational = compile_model(model, {}, scan="random")
        if relational.tied:
            raise ModelError("a chain is followed from update to update where no atoms are tied by hard formulas")
        shapes = [model.shape(name) for name in model.predicates]
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        codes = np.concatenate([model.knowledge.codes(name).ravel() for name in model.predicates])
        state = np.where(codes == UNKNOWN, np.broadcast_to(start, len(codes)), codes == 1).astype(bool)
        parts = zip(model.predicates, first[:-1].tolist(), sizes, shapes, strict=True)
        atoms = {name: state[at : at + size].reshape(shape) for name, at, size, shape in parts}
        self._relational, self._seen = relational, Occupancy(state)
        self._chain = first_state(relational, seed, 0, atoms)
        seen = self._seen
        self._watch = Watch(_strides(shapes), first[:-1], seen.held, seen.since, seen.total, seen.time)
        self.advance(0)  # compiles, or loads

    @property
    def updates(self) -> int:
        return int(self._seen.time[0])

    def advance(self, updates: int) -> None:
        with np.errstate(over="ignore"):
            self._relational.kernel.follow(self._relational.data, self._chain, self._watch, updates)
        if self._chain.clock[FAILED] >= 0:
            raise Unsatisfiable("all values of a site have probability zero: start from a legal state")

    def means(self) -> np.ndarray:
        return self._seen.means()


def _strides(shapes: list[tuple[int, ...]]) -> np.ndarray:
    """int64[predicates, arity]: how far apart atoms are whose constants differ by one in one argument."""
    out = np.zeros((len(shapes), max([1, *map(len, shapes)])), np.int64)
    for p, shape in enumerate(shapes):
        for j in range(len(shape)):
            out[p, j] = int(np.prod(shape[j + 1 :], dtype=np.int64))
    return out
