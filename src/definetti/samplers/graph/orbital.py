"""Blocks of chains whose states a random symmetry moves after every sweep.

All lanes of a block move by the same element, as they share the order of their scan: given the elements they are
independent, and every element leaves the distribution unchanged. An element is drawn from a stream that the number of
the sweep names, so that a run that was saved goes on as it would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from definetti import groups
from definetti.errors import Notice
from definetti.model.graph.factors import FactorGraph, frozen
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph.lanes import Engine, Harvest, Seeds, words
from definetti.symmetry.find import symmetries

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
TIME_LIMIT = 10.0  # seconds for the search


@dataclass(frozen=True, eq=False)
class OrbitalEngine(Engine):
    model: FactorGraph
    inner: Engine
    elements: groups.Sampler
    generators: tuple[np.ndarray, ...]  # dense, each with its inverse: proposals; empty where every move is a symmetry
    said: tuple[Notice, ...] = ()
    name: str = "orbital"
    together: int = 1

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.inner.width

    def block(self, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool = True) -> Any:
        return OrbitalBlock(self, starts, seeds, visits_too, conditionals)

    def memory(self, chains: int, conditionals: bool) -> int:
        return self.inner.memory(chains, conditionals) + 10 * chains * self.model.n

    def notices(self, blocks: Sequence[OrbitalBlock]) -> list[Notice]:
        return [*self.said, *self.inner.notices([block.inner for block in blocks])]

    def report(self, blocks: Sequence[OrbitalBlock]) -> dict[str, Any]:
        tried = sum(int(block.moves[1]) for block in blocks)
        rate = {"accepted": sum(int(block.moves[0]) for block in blocks) / tried} if self.generators and tried else {}
        return self.inner.report([block.inner for block in blocks]) | rate


def build(model: FactorGraph, inner: Engine, kind: str, tolerance: float | None = None) -> OrbitalEngine:
    """`tolerance`: of the more symmetric model that moves are taken from; without it the model's own symmetries."""
    found = _group(model, kind, tolerance)
    degree = int(model.literal_start[-1])
    generators: tuple[np.ndarray, ...] = ()
    if tolerance is not None:
        both = [pair for g in found.generators for pair in (g, groups.inverse(g))]
        generators = tuple(groups.dense(g, degree) for g in both)
    return OrbitalEngine(model, inner, groups.Sampler(found.group), generators, found.notices)


@lru_cache(maxsize=1)  # a ladder of engines, or a run that is repeated, asks the same about the same model
def _group(model: FactorGraph, kind: str, tolerance: float | None) -> Any:
    return symmetries(model if tolerance is None else rounded(model, tolerance), kind, None, TIME_LIMIT)


def rounded(model: FactorGraph, tolerance: float) -> FactorGraph:
    """The model whose symmetries are proposed: tables rounded to multiples of the tolerance, or, if it is infinite,
    without the factors of single variables. It has the same literals."""
    simple = simplify(model)
    if np.isfinite(tolerance):
        with np.errstate(invalid="ignore"):
            tables = np.round(simple.tables / tolerance) * tolerance
        return replace(simple, tables=frozen(np.where(np.isfinite(simple.tables), tables, simple.tables)))
    tables = simple.tables.copy()
    for factor in np.flatnonzero(simple.arity == 1).tolist():
        start, end = simple.table_start[simple.table_of[factor]], simple.table_start[simple.table_of[factor] + 1]
        soft = np.isfinite(tables[start:end])
        tables[start:end] = np.where(soft, 0.0, tables[start:end])
    return replace(simple, tables=frozen(tables))


class OrbitalBlock:
    """A block of another engine; what is not named here is that block's own."""

    def __init__(
        self, engine: OrbitalEngine, starts: np.ndarray, seeds: Seeds, visits_too: bool, conditionals: bool
    ) -> None:
        self._orbital = engine
        own = np.random.SeedSequence(seeds[0].entropy, spawn_key=(*seeds[0].spawn_key, 0x6F7262))
        self._key = words(own, (4,))
        self._sweep = np.array(0)
        self.moves = np.zeros(2, dtype=np.int64)  # accepted, tried
        self.inner: Any = engine.inner.block(starts, seeds, visits_too, conditionals)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not made yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def run(self, orders: np.ndarray, folded: int) -> None:
        if not len(orders):
            self.inner.run(orders, folded)
        for row in range(len(orders)):
            self.inner.run(orders[row : row + 1], folded)
            self._move(np.random.default_rng([*self._key.tolist(), int(self._sweep)]))
            self._sweep += 1

    def harvest(self) -> Harvest:
        return self.inner.harvest()

    def present(self) -> np.ndarray:
        return self.inner.present()

    def arrays(self) -> dict[str, np.ndarray]:
        return self.inner.arrays() | {"orbital": self._sweep, "orbital_key": self._key, "moves": self.moves}

    def _move(self, rng: np.random.Generator) -> None:
        engine = self._orbital
        if not engine.generators:
            permute(self.inner, engine.model, engine.elements.draw(rng))
        else:
            self._propose(rng)

    def _propose(self, rng: np.random.Generator) -> None:
        """A generator or its inverse, or any element: an element and its inverse are equally likely."""
        engine = self._orbital
        single = rng.random() < 0.5
        element = engine.generators[rng.integers(len(engine.generators))] if single else engine.elements.draw(rng)
        if not single and not engine.elements.uniform and rng.random() < 0.5:
            element = np.argsort(element)
        now = values_of(self.inner, engine.model.n)
        then = moved(now, engine.model, element)
        accepted = accepts(engine.model, now, then, rng.random(len(now)))
        self.moves += [int(accepted.sum()), len(now)]
        put_values(self.inner, np.where(accepted[:, None], then, now))


def accepts(model: FactorGraph, now: np.ndarray, then: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Metropolis' rule: with probability min(1, π(then) / π(now))."""
    with np.errstate(over="ignore"):
        return uniform < np.exp(np.minimum(model.log_factors(then) - model.log_factors(now), 0.0))


# --- states of a block -----------------------------------------------------------------------------------------------


def moved(states: np.ndarray, model: FactorGraph, element: np.ndarray) -> np.ndarray:
    """The states that a permutation of literals takes states[lanes, n] to."""
    literals = element[model.literal_start[:-1] + states]
    variable = model.variable_of[literals]
    out = np.empty_like(states)
    np.put_along_axis(out, variable, (literals - model.literal_start[variable]).astype(out.dtype), axis=1)
    return out


def values_of(block: Any, n: int) -> np.ndarray:
    """int64[lanes, n]."""
    return (block.state[:n, : block.lanes] & np.uint8(block.mask)).T.astype(np.int64)


def put_values(block: Any, values: np.ndarray) -> None:
    if not hasattr(block, "wide"):
        block.state[: values.shape[1], : block.lanes] = values.T
        return
    from definetti.samplers.graph import fields

    block.arrays()["state"][...] = fields._packed(values) if block.wide else fields._bytes(values)


def permute(block: Any, model: FactorGraph, element: np.ndarray) -> None:
    """Moves all lanes by one element; where lanes are bits of words, word by word."""
    if not getattr(block, "wide", False):
        put_values(block, moved(values_of(block, model.n), model, element))
        return
    first = element[model.literal_start[:-1]]  # where value 0 goes
    variable = model.variable_of[first]
    flips = np.where(first == model.literal_start[variable], np.uint64(0), ALL)
    changed = np.flatnonzero((variable != np.arange(model.n)) | (flips > 0))
    words_of = block.words
    words_of[variable[changed]] = words_of[changed] ^ flips[changed][:, None]
