"""Keys of sites: all that a field depends on, packed into one integer.

The bits of a and b that the base depends on come first, then for each *unit* of weight how often it counts. Weights
that are whole multiples of each other share a unit. Changes of keys are integers (`steps`), so that a join adds them up
exactly, and chances are looked up by key.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from definetti.model.logic.theory import MarkovLogic
from definetti.samplers.sparse.emit import Plan
from definetti.samplers.sparse.normal_form import Unfit
from definetti.samplers.sparse.terms import System

MOST_MULTIPLE = 64  # of a unit
KEY_BITS = 62


@dataclass(frozen=True, eq=False)
class Packing:
    """How the keys of a system are made: `arrays` are base, hard_base and units of `SystemData`."""

    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    masks: np.ndarray
    steps: np.ndarray  # int64[coefficients of all monomials]


def packing(model: MarkovLogic, plan: Plan, s: System) -> Packing:
    """Units, and where each stands in a key; raises `Unfit` where a key would not fit into an integer."""
    counted = [*s.row, *s.degree, *s.support]
    used = {t.monomial for t in counted} | {k for k, _ in s.some}
    soft = {k for k in used if not plan.monomials[k].hard}
    values = np.concatenate([np.zeros(0), *(np.abs(plan.monomials[k].table).ravel() for k in sorted(soft))])
    units: list[float] = []
    for value in np.unique(values[values > 0]).tolist():
        if not any(_multiple(value, unit) for unit in units):
            units.append(value)
    hard = any(plan.monomials[k].hard for k in (*used, *(t.monomial for t in s.constant)))
    low = len(s.bits_a) + len(s.bits_b)
    fields = len(units) + hard
    width = (KEY_BITS - low) // max(fields, 1)
    reach = (
        2
        * MOST_MULTIPLE
        * max(len(counted) + 2 * len(s.some), 1)
        * (max(sort.size for sort in model.sorts.values()) + 1)
    )
    if fields and (width < 8 or reach >= 1 << (width - 1)):
        raise Unfit(f"keys of {fields} different weights do not fit into an integer")
    shifts = [low + width * u for u in range(fields)]
    steps = np.zeros(plan.size, np.int64)
    for k in sorted(used):
        m = plan.monomials[k]
        for i, value in enumerate(m.table.ravel().tolist()):
            steps[plan.offsets[k] + i] = _step(value, units, shifts, m.hard)
    base, hard_base = base_fields(plan, s, shifts[-1] if hard else 0)
    bias = 1 << (width - 1)
    whole = sum(bias << shift for shift in shifts)
    masks = np.array([(1 << low) - 1, low, (1 << width) - 1, bias, width, int(hard), whole], np.int64)
    return Packing((base, hard_base, np.array(units, float)), masks, steps)


def _multiple(value: float, unit: float) -> int:
    times = round(value / unit)
    return times if 1 <= times <= MOST_MULTIPLE and abs(times * unit - value) <= 1e-12 * value else 0


def _step(value: float, units: list[float], shifts: list[int], hard: bool) -> int:
    if value == 0.0:
        return 0
    if hard:
        return int(value) << shifts[-1] if value > 0 else -(int(-value) << shifts[-1])
    for unit, shift in zip(units, shifts, strict=False):
        if times := _multiple(abs(value), unit):
            return (times << shift) if value > 0 else -(times << shift)
    raise AssertionError("every value has a unit")


def base_fields(plan: Plan, s: System, hard_shift: int) -> tuple[np.ndarray, np.ndarray]:
    """The constant terms, by the bits of a and b: fields, and steps of hard formulas."""
    low = len(s.bits_a) + len(s.bits_b)
    base, hard = np.zeros(1 << low), np.zeros(1 << low, np.int64)
    for values in product((0, 1), repeat=low):
        b = dict(zip(s.bits_b, values, strict=False))
        a = dict(zip(s.bits_a, values[len(s.bits_b) :], strict=False))
        at = sum(v << k for k, v in enumerate(values))
        for t in s.constant:
            m = plan.monomials[t.monomial]
            value = m.table[tuple((a if t.roles[v] == "a" else b)[p] for p, v in m.bits)]
            if m.hard:
                hard[at] += int(value) << hard_shift if value > 0 else -(int(-value) << hard_shift)
            else:
                base[at] += value
    return base, hard
