"""Looks for the modes of a model: chains from dispersed starts, run until they settle or the budget ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from definetti.errors import INTERRUPTED
from definetti.modes.survey import WINDOW, Survey, take_stock
from definetti.modes.walkers import Key, States, Walk, Walkers

SHORTEST, LONGEST, UNDECIDED = 64, 256, 1024  # sweeps; the last where segments are neither alike nor apart
STARTS, FEWEST_STARTS = 32, 8
ENOUGH = 128  # sweeps, where one region was found and nothing is undecided


@dataclass(frozen=True, eq=False)
class Looked:
    """What chains from dispersed starts have found."""

    survey: Survey
    trace: np.ndarray  # [sweeps, chains, statistics]
    features: int  # of the statistics: those that are functions of the state
    ends: States
    kept: dict[int, States]  # states after so many sweeps
    starts: int
    sweeps: int  # of each chain


@dataclass(frozen=True)
class Budget:
    """How much may be done, counted in sweeps of single chains."""

    survey: int
    weighing: int

    @property
    def shape(self) -> tuple[int, int]:
        """Starts, and sweeps of each at most."""
        starts = int(np.clip(self.survey // LONGEST, FEWEST_STARTS, STARTS))
        return starts, int(np.clip(self.survey // starts // WINDOW * WINDOW, 2 * WINDOW, UNDECIDED))


def look(walkers: Walkers, budget: Budget, key: Key, longest: int | None = None) -> Looked:
    """`longest`: no more sweeps than the run itself makes, if that is not too few."""
    starts, most = budget.shape
    if longest is not None:
        most = min(most, max(SHORTEST, longest))
    states = walkers.starts((*key, 1), starts, budget.survey // 4)
    sweeps = min(SHORTEST, most)
    walks: list[Walk] = []
    kept: dict[int, States] = {}
    done = 0
    while True:
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt
        marks = [s for s in range(WINDOW, sweeps - done + 1) if (done + s) % WINDOW == 0]
        walk = walkers.walk(states, sweeps - done, (*key, 2, done), keep=marks)
        walks.append(walk)
        kept |= {done + s: states for s, states in walk.kept.items()}
        states, done = walk.ends, sweeps
        trace = np.concatenate([w.statistics for w in walks])
        survey = take_stock(trace)
        unclear = survey.undecided or survey.transitions
        enough = done >= LONGEST and not unclear
        if done >= most or enough or (done >= min(ENOUGH, most) and survey.settled):
            return Looked(survey, trace, walk.features.shape[2], states, kept, walkers.count(states), done)
        sweeps = min(2 * done, most)
