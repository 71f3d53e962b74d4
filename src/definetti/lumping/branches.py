"""Kernels run from their own source, uncompiled, with every random branch followed: exact transition matrices.

A kernel's module is read as text and runs as plain Python in a module of its own, with a chooser in place of the draw,
so that neither the compiled kernels nor their cache ever see a patched function. Slow, and sure: what the quick
matrices of `moves.py` are verified with, and the judge in the tests of kernels. `changes` of the text are for tests
that plant mistakes.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from definetti.model.graph.factors import FactorGraph
from definetti.samplers.graph import fields, polynomial, tables
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels.graph import fields as field_kernels
from definetti.samplers.kernels.graph import polynomial as polynomial_kernels
from definetti.samplers.kernels.graph import tables as table_kernels
from definetti.symmetry.graph.group import none

WHOLE = 2**48
KERNELS = ("narrow", "wide", "polynomial", "tables")
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
    polynomial: ModuleType = polynomial
    tables: ModuleType = tables
    field_kernels: ModuleType = field(default_factory=lambda: uncompiled(field_kernels))
    polynomial_kernels: ModuleType = field(default_factory=lambda: uncompiled(polynomial_kernels))
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
        return _byte_runner(aim, sources.tables.build(aim.simple, slots), sources.table_kernels, "choose", _choose)
    if kernel == "polynomial":
        made = sources.polynomial.build(aim.simple, slots)
        return None if made is None else _byte_runner(aim, made, sources.polynomial_kernels, "draw", _draw)
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


def _byte_runner(aim: Target, engine: Any, kernels: Any, drawing: str, follow: Callable[..., Any]) -> Run:
    """Of an engine with a byte per variable and lane: `follow` stands for the kernel's function that draws."""

    def run(order: np.ndarray, values: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        block = engine.block(aim.states, [np.random.SeedSequence(0)], False)
        block._kernels = kernels
        chance = np.ones(len(aim.states))
        setattr(kernels, drawing, partial(follow, chance, iter(values)))
        block.run(order[None], 0)
        return block.state.T[: len(aim.states)], chance

    return run


def _choose(chance, values, product, card, uniform, value, scale) -> bool:
    wanted, mass = next(values), product[:card].sum(axis=0)
    assert ((mass > 0) | (chance == 0)).all(), "every value of a possible state is impossible"
    chance[:] *= np.divide(product[wanted], mass, out=np.zeros_like(mass), where=mass > 0)
    value[:] = wanted
    return False


def _draw(chance, values, state, i, ratio, uniform, one) -> None:
    value = next(values)
    chance[:] *= ratio / (1.0 + ratio) if value else 1.0 / (1.0 + ratio)
    state[i, : len(chance)] = value


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
