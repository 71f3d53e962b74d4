"""One chain in plain Numba, every sweep a sample: a loop by hand for the grids, one over tables for other models."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from peers.dwave_ising import ising
from peers.problem import Problem

CANNOT = {"reading": "no program"}
SWEEPS = 200


def run(problem: Problem, limit: float) -> dict[str, Any]:
    return lattice(problem, limit) if problem.task in ("grid", "fields") else tables(problem, limit)


def lattice(problem: Problem, limit: float) -> dict[str, Any]:
    import numba

    began = time.process_time()
    side = round(problem.n**0.5)
    fields = 2 * ising(problem)[0].reshape(side, side)

    @numba.njit
    def sweep(state: np.ndarray, fields: np.ndarray, ones: np.ndarray, sweeps: int) -> None:
        side = state.shape[0]
        for _ in range(sweeps):
            for i in range(side):
                for j in range(side):
                    field = fields[i, j]
                    for a, b in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
                        if 0 <= a < side and 0 <= b < side:
                            field += 0.2 - 0.4 * state[a, b]
                    state[i, j] = np.random.random() < 1.0 / (1.0 + np.exp(-field))  # noqa: NPY002
            ones += state

    state = np.zeros((side, side), np.int64)
    sweep(state, fields, np.zeros_like(state), 1)
    set_up = time.process_time() - began

    def step() -> tuple[np.ndarray, int, int]:
        ones = np.zeros_like(state)
        sweep(state, fields, ones, SWEEPS)
        return ones.ravel(), SWEEPS, SWEEPS * problem.n

    return problem.until_goal(step, set_up, limit)


def tables(problem: Problem, limit: float) -> dict[str, Any]:
    import numba

    began = time.process_time()
    first, scope = problem.first, problem.scope
    stride = np.ones(len(scope), np.int64)
    for k in range(len(first) - 1):
        for at in range(first[k + 1] - 2, first[k] - 1, -1):
            stride[at] = stride[at + 1] * problem.cards[scope[at + 1]]
    flat = np.concatenate([table.ravel() for table in problem.tables])
    begins = np.concatenate([[0], np.cumsum([table.size for table in problem.tables])])[problem.table_of]
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    order = np.argsort(scope, kind="stable")
    at_variable = np.searchsorted(scope[order], np.arange(problem.n + 1))
    factor_at, stride_at = owner[order], stride[order]

    @numba.njit
    def sweep(state, cards, at_variable, factor_at, stride_at, first, scope, stride, begins, flat, counts, sweeps):
        weight = np.zeros(cards.max())
        for _ in range(sweeps):
            for i in range(len(state)):
                weight[:] = 0.0
                for e in range(at_variable[i], at_variable[i + 1]):
                    k = factor_at[e]
                    base = begins[k] - state[i] * stride_at[e]
                    for at in range(first[k], first[k + 1]):
                        base += state[scope[at]] * stride[at]
                    for value in range(cards[i]):
                        weight[value] += flat[base + value * stride_at[e]]
                most, total = weight[: cards[i]].max(), 0.0
                for value in range(cards[i]):
                    weight[value] = np.exp(weight[value] - most)
                    total += weight[value]
                u, value = np.random.random() * total, 0  # noqa: NPY002
                while value < cards[i] - 1 and u >= weight[value]:
                    u -= weight[value]
                    value += 1
                state[i] = value
                counts[i, value] += 1

    state = np.zeros(problem.n, np.int64)
    given = (problem.cards, at_variable, factor_at, stride_at, first, scope, stride, begins, flat)
    sweep(state, *given, np.zeros(problem.truth.shape), 1)
    set_up = time.process_time() - began

    def step() -> tuple[np.ndarray, int, int]:
        counts = np.zeros(problem.truth.shape)
        sweep(state, *given, counts, SWEEPS)
        return counts, SWEEPS, SWEEPS * problem.n

    return problem.until_goal(step, set_up, limit)
