"""The contracts of samplers: a `Sampler` is a frozen value, a `Sampling` a run under way.

What others need to know of a sampler it says by flags: which kinds of model it runs on, whether its moves are those of
single-site Gibbs sampling, whether it gives full conditionals, whether it has to warm up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from definetti.errors import ModelError, Notice, TooLarge
from definetti.memory import available_memory

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.samplers.draws import Draws
    from definetti.samplers.graph.lanes import Engine, Orders, Slots
    from definetti.samplers.logic.queries import Asked

State = dict[str, Any]  # nested dicts and lists of arrays, numbers, texts and None: it can be written without pickle


LONG_PLAN = 1 << 17  # sweeps


@dataclass(frozen=True)
class Plan:
    """How much to sample. Without `sweeps` the run goes on until the caller stops it."""

    chains: int
    burn_in: int | None  # None: decided by the run itself
    sweeps: int | None
    seed: int
    workers: int
    conditionals: bool = True
    warm_seconds: float = math.inf  # warm-up ends when so much time has gone, whatever `burn_in` says
    starts: Any = field(default=None, compare=False)  # one state for each chain, as the engine keeps it; None: drawn

    @property
    def grows(self) -> bool:
        """Whether batches begin short and are merged in pairs, behind a warm-up that does not grow with the run: where
        the end is not known, or so far away that a tenth of it, and the first of a few dozen equal batches, would keep
        everybody waiting for results."""
        return self.sweeps is None or self.sweeps > LONG_PLAN


CHAIN = 1024  # bytes that each takes at least: its random streams, and a place in every batch


def refuse_chains(chains: int, variables: int) -> None:
    """Refuses chains that do not fit into memory with their states, before starts are sought for each."""
    need, have = chains * (CHAIN + variables), 0.8 * available_memory()
    if need > have:
        raise TooLarge("the state of the chains", need, have, "use fewer chains", unit="bytes", at_least=True)


@dataclass(frozen=True)
class Progress:
    """Where a run is; handed to the caller's `progress` after every chunk.

    Attributes
    ----------
    phase : {"warm-up", "sampling"}
        What is under way.
    done, total : int
        Sweeps; `total` is None where it is open.
    rate : float
        Updates per second.
    worst : float or None
        The largest half-width of a 95 % interval so far.
    seconds, left : float
        So far, and to the goal (estimated; None where it is not known).

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])
    >>> phases = set()
    >>> p = dft.marginals(model, sweeps=10, seed=7, progress=lambda report: phases.add(report.phase))
    >>> "sampling" in phases
    True
    """

    phase: str  # "warm-up" or "sampling"; before these what is compiled: "compiling gibbs"
    done: int  # sweeps
    total: int | None
    rate: float  # updates per second
    worst: float | None  # largest half-width of a 95 % interval so far
    seconds: float
    left: float | None = None  # seconds to the goal, estimated


class Sampling(Protocol):
    """A run under way, of any sampler on any kind of model."""

    seconds: float  # of sampling, warm-up included
    cpu_seconds: float  # the same, of all threads of the process
    goal: int | None  # kept sweeps at which it ends; None: the caller stops it

    @property
    def updates(self) -> int:
        """Draws of sites over all chains, warm-up included."""
        ...

    @property
    def batch_count(self) -> int: ...

    @property
    def most_batches(self) -> int:
        """Batches of a run of known length; one whose batches grow (`Plan.grows`) has fewer than twice as many."""
        ...

    @property
    def can_stop(self) -> bool:
        """Whether there is anything to show yet."""
        ...

    def steps(self) -> Iterator[Progress]:
        """Runs to the end of the plan, yielding after every chunk."""
        ...

    def draws(self) -> Draws:
        """What there is so far."""
        ...

    def snapshots(self, every: int, most: int = 1) -> Iterator[np.ndarray]:
        """Instead of `steps`: uint8[some, chains, variables], the states after every so many sweeps, for ever."""
        ...

    def notices(self) -> list[Notice]:
        """What leaves the draws in doubt."""
        ...

    def report(self) -> dict[str, Any]:
        """What the sampler adds to `run` of the answer."""
        ...

    def state(self) -> State:
        """Everything that the rest of the run depends on, taken between two steps."""
        ...

    def state_size(self) -> int:
        """About how many bytes the state has; nothing is copied."""
        ...

    def restore(self, state: State) -> None:
        """Continues where `state` was taken, in a run of the same model, sampler and plan."""
        ...


class Sampler(Protocol):
    """A way to advance chains, as a frozen value. `kinds` says which of the two doors it has: with `graph` it is a
    `GraphSampler`, with `logic` a `LogicSampler`; MC-SAT and Gibbs sampling are both."""

    @property
    def name(self) -> str: ...

    @property
    def scan(self) -> str | None: ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of model that it runs on: `graph`, `logic`. Others are grounded for it, or refused."""
        ...

    @property
    def single_site(self) -> bool:
        """Whether it is single-site Gibbs sampling and nothing else."""
        ...

    @property
    def conditionals(self) -> bool:
        """Whether it gives full conditionals at its updates."""
        ...

    @property
    def warms_up(self) -> bool:
        """Whether its first draws depend on the start."""
        ...


class GraphSampler(Sampler, Protocol):
    """A sampler of factor graphs: an engine that makes blocks of chains, and the order in which sites are visited."""

    @property
    def visits_once(self) -> bool:
        """Whether a sweep draws each site once: then its value at the sweep's end is the one drawn."""
        ...

    def alone(self, model: FactorGraph) -> np.ndarray:
        """The variables that move one at a time: with hard factors the others may hold them for ever."""
        ...

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        """A simplified model, compiled."""
        ...

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders: ...


class LogicSampler(Sampler, Protocol):
    """A sampler of Markov logic networks."""

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        """A run ready to start, its kernels loaded or compiled."""
        ...


def prefixed(name: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of one part among those of a whole."""
    return {f"{name}.{key}": array for key, array in arrays.items()}


def copied(arrays: Mapping[str, np.ndarray]) -> State:
    """A state from the arrays that change in place while chains advance."""
    return {name: array.copy() for name, array in arrays.items()}


def put_back(arrays: Mapping[str, np.ndarray], state: Mapping[str, Any]) -> None:
    """The reverse of `copied`."""
    if arrays.keys() != state.keys() or any(arrays[k].shape != np.shape(state[k]) for k in arrays):
        raise ModelError("this state belongs to another run: model, sampler, chains, workers and sweeps must be equal")
    for name, array in arrays.items():
        array[...] = state[name]
