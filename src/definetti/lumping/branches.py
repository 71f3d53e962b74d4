"""Kernels run from their own source, uncompiled, with every random branch followed: exact transition matrices.

A kernel's module is read as text and runs as plain Python in a module of its own, with a chooser in place of the draw,
so that neither the compiled kernels nor their cache ever see a patched function. Slow, and sure: what the quick
matrices of `moves.py` are verified with, and the judge in the tests of kernels. `changes` of the text are for tests
that plant mistakes.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph import block_gibbs, fields, swendsen_wang, tables
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels.graph import fields as field_kernels
from definetti.samplers.kernels.graph import tables as table_kernels
from definetti.symmetry.graph.group import none

WHOLE = 2**48
KERNELS = ("narrow", "wide", "tables")
LOOPS = {
    "run_sweeps",
    "run_narrow_sweeps",
    "sweep_narrow",
    "sweep_wide",
    "settle_ties",
    "shuffled",
    "with_replacement",
}
NJIT = "from definetti.samplers.kernels.compiling import njit"
PLAIN_NJIT = "def njit(**options):\n    return lambda function: function"


def uncompiled(module: ModuleType, *changes: tuple[str, str]) -> ModuleType:
    """A fresh copy of a kernel as plain Python, with `changes` (old text, new text) made to its source, or to that of
    the kernels that it imports."""
    text = _source(module)
    elsewhere = [change for change in changes if change[0] not in text]
    for old, new in changes:
        text = text.replace(old, new)
    copy = ModuleType(f"{module.__name__}_uncompiled")
    copy.__dict__["__file__"] = module.__file__
    sys.modules[copy.__name__] = copy  # dataclasses look there for their module
    exec(compile(text, str(module.__file__), "exec"), copy.__dict__)
    shared = {name: value.py_func for name, value in copy.__dict__.items() if isinstance(value, Dispatcher)}
    others = {function.__module__: sys.modules[function.__module__] for function in shared.values()}
    for old, _ in elsewhere:
        places = [other for other in others.values() if old in _source(other)]
        assert places, f"the source of {module.__name__} no longer contains {old!r}"
    copies = {n: uncompiled(m, *(c for c in elsewhere if c[0] in _source(m))) for n, m in others.items()}
    for name, function in shared.items():  # what kernels share is imported compiled
        setattr(copy, name, getattr(copies[function.__module__], function.__name__))
    for name in LOOPS & copy.__dict__.keys():  # integers overflow on purpose
        setattr(copy, name, np.errstate(over="ignore")(getattr(copy, name)))
    return copy


def _source(module: ModuleType) -> str:
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8").replace(NJIT, PLAIN_NJIT)


@dataclass(frozen=True)
class Sources:
    """The code under test: the engines that compile models, and the kernels that run them."""

    fields: ModuleType = fields
    tables: ModuleType = tables
    field_kernels: ModuleType = field(default_factory=lambda: uncompiled(field_kernels))
    table_kernels: ModuleType = field(default_factory=lambda: uncompiled(table_kernels))


REAL = Sources()


@dataclass(frozen=True, eq=False)
class Target:
    """A simplified model, its possible states and their probabilities."""

    simple: FactorGraph
    states: np.ndarray  # int64[S, n]: of positive probability
    probability: np.ndarray

    @property
    def number(self) -> dict[bytes, int]:
        return {state.astype(np.uint8).tobytes(): s for s, state in enumerate(self.states)}


# --- following branches ------------------------------------------------------------------------------------------

Run = Callable[[np.ndarray, tuple[int, ...]], tuple[np.ndarray, np.ndarray]]
"""(order, the value to draw at each place of it) → (states reached int[S, n], with which probability)."""


def runner(aim: Target, kernel: str, sources: Sources = REAL) -> Run | None:
    """How to follow one branch from every state at once (a lane each); None where the engine does not apply."""
    slots = slots_of(aim.simple, none(aim.simple).row_of)
    if kernel == "tables":
        return _tables_runner(aim, sources.tables.build(aim.simple, slots), sources.table_kernels)
    engine = sources.fields.build(aim.simple, slots)
    if engine is None:
        return None
    return _narrow_runner(aim, engine, sources) if kernel == "narrow" else _wide_runner(aim, engine, sources)


def _narrow_runner(aim: Target, engine: fields.FieldsEngine, sources: Sources) -> Run:
    kernels: Any = sources.field_kernels

    def run(order: np.ndarray, values: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        states = fields._bytes(aim.states)
        chance = np.ones(len(aim.states))
        for lane, state in enumerate(states):
            places = iter(values)

            def follow(threshold: np.uint64, word: np.uint64, lane=lane, places=places) -> np.uint8:
                value = next(places)
                chance[lane] *= int(threshold) / WHOLE if value else (WHOLE - int(threshold)) / WHOLE
                return np.uint8(value)

            kernels.draw_narrow = follow
            stream, words = np.zeros(4 * fields.WORDS, np.uint64), np.zeros(kernels.BITS * fields.WORDS, np.uint64)
            single = np.zeros((0, 0), np.int64)
            kernels.sweep_narrow(engine.model, state, order, stream, words, 0, single, 0)
        return states[:, :-1], chance

    return run


def _wide_runner(aim: Target, engine: fields.FieldsEngine, sources: Sources) -> Run:
    kernels: Any = sources.field_kernels

    def run(order: np.ndarray, values: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        state = fields._packed(aim.states)
        scratch = fields._scratch(kernels, 1, state.shape[1])
        chance = np.ones(64 * state.shape[1])
        places = iter(values)

        def follow(state, i, code, codes, tie, rest, t, ties) -> None:
            value, rows = next(places), lanes_of(code)
            assert (rows[:codes, : len(chance)].sum(axis=0) == 1).all(), "a lane has one code"
            which = rows[:codes, : len(chance)].argmax(axis=0)
            threshold = (lane_numbers(scratch.top)[: len(chance)] << kernels.FURTHER) + rest[t, which].astype(np.int64)
            chance[:] *= threshold / WHOLE if value else (WHOLE - threshold) / WHOLE
            state[i] = kernels.ALL if value else kernels.NONE

        kernels.next_bytes = lambda lanes, draw, words: None
        kernels.draw_wide = lambda *arrays: True  # every lane ties, so that `settle_ties` is asked
        kernels.settle_ties = follow
        streams = kernels.Streams(np.zeros(4 * fields.WORDS, np.uint64), np.zeros(4, np.uint64))
        counts = fields._counts(kernels, len(engine.cells.table), 1, state.shape[1], False)
        kernels.sweep_wide(engine.model, state, order, streams, scratch, counts, 0)
        return fields._unpacked(state)[:-1].T[: len(aim.states)], chance[: len(aim.states)]

    return run


def lanes_of(rows: np.ndarray) -> np.ndarray:
    """uint8[rows, lanes]: rows of scratch, bit by bit."""
    return fields._unpacked(rows.reshape(-1, fields.WORDS))


def lane_numbers(planes: np.ndarray) -> np.ndarray:
    """int64[lanes]: the number whose bits, highest first, are the rows."""
    bits = lanes_of(planes).astype(np.int64)
    return (bits << np.arange(len(bits) - 1, -1, -1)[:, None]).sum(axis=0)


def _tables_runner(aim: Target, engine: tables.TablesEngine, kernels: Any) -> Run:
    def run(order: np.ndarray, values: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        block = engine.block(aim.states, [np.random.SeedSequence(0)], False)
        block._kernels = kernels
        chance = np.ones(len(aim.states))
        places = iter(values)

        def follow(product, card, uniform, value, scale) -> bool:
            wanted, mass = next(places), product[:card].sum(axis=0)
            assert ((mass > 0) | (chance == 0)).all(), "every value of a possible state is impossible"
            chance[:] *= np.divide(product[wanted], mass, out=np.zeros_like(mass), where=mass > 0)
            value[:] = wanted
            return False

        kernels.choose = follow
        block.run(order[None], 0)
        return block.state.T, chance

    return run


# --- transition matrices -----------------------------------------------------------------------------------------


def sweep_matrix(aim: Target, run: Run, order: np.ndarray) -> np.ndarray:
    """The exact transition matrix of updating the sites of `order`, every branch followed in the kernel's own sweep."""
    matrix = np.zeros((len(aim.states), len(aim.states)))
    number = aim.number
    for values in itertools.product(*(range(int(aim.simple.cards[i])) for i in order)):
        reached, chance = run(np.asarray(order, dtype=np.int32), values)
        for s in np.flatnonzero(chance):
            matrix[s, number[reached[s].tobytes()]] += chance[s]
    return matrix


def site_matrices(aim: Target, run: Run) -> list[np.ndarray]:
    return [sweep_matrix(aim, run, aim.simple.free[k : k + 1]) for k in range(len(aim.simple.free))]


def scan_matrix(sites: list[np.ndarray], scan: str, orbits: Sequence[int] | None = None) -> np.ndarray:
    """One sweep of a scan (one update for `random`): orbit by orbit, all orders of an orbit with equal probability, or
    the fixed order. Without `orbits` all sites are one."""
    if scan == "random":
        return np.mean(sites, axis=0)
    matrix = one = np.eye(len(sites[0]))
    if scan == "fixed":
        return np.linalg.multi_dot([one, one, *sites])
    labels = [0] * len(sites) if orbits is None else list(orbits)
    for label in dict.fromkeys(labels):
        members = [site for site, orbit in zip(sites, labels, strict=True) if orbit == label]
        steps = [np.linalg.multi_dot([one, one, *order]) for order in itertools.permutations(members)]
        matrix = matrix @ np.mean(steps, axis=0)
    return matrix


def flow_error(aim: Target, matrix: np.ndarray) -> float:
    """How far a kernel is from leaving the distribution alone, and from being a kernel at all."""
    stray = np.abs(matrix.sum(axis=1) - 1.0).max()
    return float(max(stray, np.abs(aim.probability @ matrix - aim.probability).max()))


# --- moves of several variables ------------------------------------------------------------------------------------


def cluster_branches(
    source: ModuleType, model: FactorGraph, state: np.ndarray, folded: int = 2
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """(probability, state reached, sums) for every way that the draws of one Swendsen–Wang update can fall."""
    engine = swendsen_wang.build(model, slots_of(model, none(model).row_of))
    waiting: list[list[bool]] = [[]]
    while waiting:
        script = waiting.pop()
        made: list[bool] = []
        chance = 1.0

        def happens(probability: float, streams: object, lane: int, script=script, made=made) -> bool:
            nonlocal chance
            outcome = script[len(made)] if len(made) < len(script) else True
            if len(made) >= len(script):
                waiting.append([*made, False])
            made.append(outcome)
            chance *= probability if outcome else 1.0 - probability
            return outcome

        source.happens = happens  # type: ignore[attr-defined]
        block = swendsen_wang.ClusterBlock(engine, state[None], np.random.SeedSequence(0))
        block._kernels = source
        block.run(np.zeros((1, 1)), folded)
        if chance > 0:
            yield chance, block.state[:, 0].astype(np.int64), block.harvest()


def block_branches(
    source: ModuleType, engine: block_gibbs.JointEngine, state: np.ndarray, order: np.ndarray
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """(probability, state reached, sums) for every way that the draws of one sweep over blocks can fall."""
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        script = waiting.pop()
        made: list[int] = []
        chance = 1.0

        def pick(weight, begin, end, total, streams, lane, script=script, made=made) -> int:
            nonlocal chance
            possible = [r for r in range(begin, end) if weight[r, lane] > 0]
            if len(made) < len(script):
                chosen = script[len(made)]
            else:
                chosen = possible[0]
                waiting.extend((*made, r) for r in possible[1:])
            made.append(chosen)
            chance *= weight[chosen, lane] / total
            return chosen

        source.pick = pick  # type: ignore[attr-defined]
        block = block_gibbs.JointBlock(engine, state[None], np.random.SeedSequence(0))
        block._kernels = source
        block.run(order[None], 2)
        yield chance, block.state[:, 0].astype(np.int64), block.harvest()
