"""A task as plain arrays, how far an answer is from its truth, and sampling until the goal. Needs NumPy alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

GOAL = 1e-4
SET_UP = 60.0  # CPU seconds beyond the limit of sampling, then a process is ended
MORE = {"tables": 240.0}  # many statistics: every run of definetti surveys modes and judges each number


def set_up_limit(task: str) -> float:
    return MORE.get(task, SET_UP)


Step = Callable[[], tuple[np.ndarray, int, int]]
FLOOR = 1e-9  # stands for 0 in a denominator


@dataclass(frozen=True, eq=False)
class Problem:
    """A factor graph with its true marginals.

    Attributes
    ----------
    task : str
    cards : int64[n]
    first : int64[m + 1]
        Where each factor's variables begin in `scope`.
    scope : int64
    table_of : int64[m]
    tables : tuple of float64 arrays
        Logarithms of weights.
    truth : float64[n, largest number of values]
    text : str
        The model as a user of definetti writes it, where that is Markov logic; a .uai file for the task `reading`.
    """

    task: str
    cards: np.ndarray
    first: np.ndarray
    scope: np.ndarray
    table_of: np.ndarray
    tables: tuple[np.ndarray, ...]
    truth: np.ndarray
    text: str = ""

    @property
    def n(self) -> int:
        return len(self.cards)

    def save(self, path: Path) -> None:
        tables = {f"table{k}": table for k, table in enumerate(self.tables)}
        np.savez(path, task=self.task, cards=self.cards, first=self.first, scope=self.scope, table_of=self.table_of,
                 truth=self.truth, text=self.text, **tables)  # fmt: skip

    @staticmethod
    def load(path: Path) -> Problem:
        with np.load(path) as kept:
            tables = tuple(kept[f"table{k}"] for k in range(sum(name.startswith("table") for name in kept) - 1))
            return Problem(str(kept["task"]), kept["cards"], kept["first"], kept["scope"], kept["table_of"], tables,
                           kept["truth"], str(kept["text"]))  # fmt: skip

    def factors(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(scope, table) of every factor."""
        return [(self.scope[self.first[k] : self.first[k + 1]], self.tables[t]) for k, t in enumerate(self.table_of)]

    @cached_property
    def by_shape(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """(scopes [k, arity], tables [k, …]) of the factors of each shape."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for k, t in enumerate(self.table_of.tolist()):
            groups.setdefault(self.tables[t].shape, []).append(k)
        return [
            (np.stack([self.scope[self.first[k] : self.first[k + 1]] for k in members]),
             np.stack([self.tables[self.table_of[k]] for k in members]))
            for members in groups.values()
        ]  # fmt: skip

    def divergence(self, means: np.ndarray) -> float:
        """The mean over variables of KL(means‖truth); means [n, values], or [n] of P(1) where all are binary."""
        p = np.column_stack([1 - means, means]) if means.ndim == 1 else means
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p > 0, p * np.log(p / np.maximum(self.truth, FLOOR)), 0.0)
        return float(np.maximum(terms.sum(axis=1), 0.0).mean())

    def until_goal(self, step: Step, set_up: float, limit: float) -> dict[str, Any]:
        """Calls `step` until the goal or the limit; it returns sums over samples (as `divergence` takes means), how
        many samples these are, and how many updates it made. Only `step` is timed."""
        total: Any = 0.0
        samples, updates, seconds, kl = 0, 0, 0.0, np.inf
        while kl >= GOAL and seconds < limit:
            began = time.process_time()
            sums, count, made = step()
            seconds += time.process_time() - began
            total, samples, updates = total + sums, samples + count, updates + made
            kl = self.divergence(total / samples)
        found = {"set_up": set_up, "rate": updates / seconds, "kl": kl, "spent": seconds}
        return {**found, "seconds": seconds if kl < GOAL else None}


def colours(n: int, scopes: list[np.ndarray]) -> np.ndarray:
    """Greedy colouring: variables of one colour share no factor."""
    near: list[set[int]] = [set() for _ in range(n)]
    for group in scopes:
        for scope in group.tolist():
            for i in scope:
                near[i].update(scope)
    colour = np.full(n, -1)
    for i in sorted(range(n), key=lambda i: -len(near[i])):
        taken = {colour[j] for j in near[i]}
        colour[i] = next(c for c in range(n) if c not in taken)
    return colour
