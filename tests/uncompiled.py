"""Kernels run from their own source, uncompiled, with every random branch followed: exact transition matrices.

A module is read as text, planted bugs (if any) are put in, and it runs as plain Python in a module of its own, so that
neither the compiled kernels nor their cache ever see a patched function.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import numpy as np
from numba.core.dispatcher import Dispatcher
from random_models import brute_force

from definetti.model.graph.factors import FactorGraph
from definetti.model.graph.simplify import simplify
from definetti.samplers.graph import fields, tables
from definetti.samplers.graph.lanes import slots_of
from definetti.samplers.kernels import fields as field_kernels
from definetti.samplers.kernels import rng
from definetti.samplers.kernels import tables as table_kernels
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
    """A fresh copy of a module as plain Python, with `changes` (old text, new text) made to its source."""
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8").replace(NJIT, PLAIN_NJIT)
    for old, new in changes:
        assert text.count(old) >= 1, f"the source of {module.__name__} no longer contains {old!r}"
        text = text.replace(old, new)
    copy = ModuleType(f"{module.__name__}_uncompiled")
    copy.__dict__["__file__"] = module.__file__
    sys.modules[copy.__name__] = copy  # dataclasses look there for their module
    exec(compile(text, module.__file__, "exec"), copy.__dict__)
    for name, value in list(copy.__dict__.items()):  # what kernels share is imported compiled
        if isinstance(value, Dispatcher):
            setattr(copy, name, getattr(uncompiled(rng), value.__name__))
    for name in LOOPS & copy.__dict__.keys():  # integers overflow on purpose
        setattr(copy, name, np.errstate(over="ignore")(getattr(copy, name)))
    return copy


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
    """A model as kernels see it, its possible states and their probabilities (by brute force on the model as given)."""

    simple: FactorGraph
    states: np.ndarray  # int64[S, n]: of positive probability
    probability: np.ndarray

    @property
    def number(self) -> dict[bytes, int]:
        return {state.astype(np.uint8).tobytes(): s for s, state in enumerate(self.states)}


def target(model: FactorGraph) -> Target | None:
    """None if no state is possible."""
    states, weights = brute_force(model)
    return weighed(model, states, weights) if weights.sum() > 0 else None


def weighed(model: FactorGraph, states: np.ndarray, weights: np.ndarray) -> Target:
    return Target(simplify(model), states[weights > 0], (weights / weights.sum())[weights > 0])


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
    kernels = sources.field_kernels

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
    kernels = sources.field_kernels

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


def _tables_runner(aim: Target, engine: tables.TablesEngine, kernels: ModuleType) -> Run:
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


def kernel_error(model: FactorGraph | Target, kernel: str, sources: Sources = REAL) -> float:
    """The largest error of any single-site update of a kernel: what both the real tests and the mutants look at."""
    aim = target(model) if isinstance(model, FactorGraph) else model
    if aim is None or not len(aim.simple.free):
        return 0.0
    run = runner(aim, kernel, sources)
    return 0.0 if run is None else max(flow_error(aim, matrix) for matrix in site_matrices(aim, run))


# --- the draw itself -----------------------------------------------------------------------------------------------


def split(kernels: ModuleType, threshold: int) -> tuple[int, int]:
    """Top bits and the rest, as engines store them."""
    top = min(threshold >> kernels.FURTHER, 2**kernels.BITS - 1)
    return top, threshold - (top << kernels.FURTHER)


def wide_probability(kernels: ModuleType, threshold: int) -> int:
    """P(1) of the wide draw in units of 2^-48: all first draws in as many lanes, and both sides of the tie's border."""
    top, rest = split(kernels, threshold)
    most = 2**kernels.FURTHER - 1
    ones_at_tie = set()
    for further in {0, max(rest - 1, 0), min(rest, most), most}:
        kernels.stream_word = lambda stream, further=further: np.uint64(further << (64 - kernels.FURTHER))
        firsts = np.arange(2**kernels.BITS).reshape(-1, 64 * fields.WORDS)
        drawn = np.concatenate([_drawn(kernels, top, rest, first) for first in firsts])
        assert drawn[top] == (further < rest)
        ones_at_tie.add((int(drawn.sum()) - int(drawn[top]), further < rest))
    sure = {count for count, _ in ones_at_tie}
    assert len(sure) == 1, "the further bits changed a lane that does not tie"
    return sure.pop() * 2**kernels.FURTHER + rest


def _drawn(kernels: ModuleType, top: int, rest: int, first: np.ndarray) -> np.ndarray:
    """uint8[lanes]: what is drawn where the lanes' first random bits are these; a tie is told exactly."""
    scratch = fields._scratch(kernels, 1, fields.WORDS)
    highest_first = np.arange(kernels.BITS - 1, -1, -1)[:, None]
    scratch.top[:] = _rows(np.full(len(first), top) >> highest_first)
    scratch.draw[:] = _rows(first >> highest_first)
    scratch.code[: fields.WORDS] = kernels.ALL
    state = np.zeros((1, fields.WORDS), dtype=np.uint64)
    ties = kernels.draw_wide(state, 0, scratch.top, scratch.draw, scratch.tie)
    assert ties == (top in first)
    if ties:
        rests = np.full((1, 16), rest, dtype=np.uint64)
        with np.errstate(over="ignore"):
            kernels.settle_ties(state, 0, scratch.code, 1, scratch.tie, rests, 0, None)
    return fields._unpacked(state)[0]


def _rows(bits: np.ndarray) -> np.ndarray:
    """Rows of scratch from the lowest bits of int[rows, lanes]."""
    lanes = np.zeros((len(bits), 64 * fields.WORDS), np.uint8)
    lanes[:, : bits.shape[1]] = bits & 1
    return np.packbits(lanes, axis=1, bitorder="little").view("<u8").astype(np.uint64).ravel()
