"""A run of MC-SAT chains under way: the same verbs as `RelationalSampling`, on the ground model of a Markov logic
network.

One sample is one step. Orbits are those of the renamings; formulas that are asked for are counted at each sample.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from definetti.constraints.logic.legal_states import legal
from definetti.constraints.logic.unsat_core import explain
from definetti.errors import Notice
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.formulas import atoms, equalities
from definetti.model.logic.ground import evaluate, ground
from definetti.model.logic.theory import Constant, MarkovLogic
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, kept_with, next_length
from definetti.samplers.graph.mcsat import MCSat, doubts, graph_of, state_of
from definetti.samplers.graph.sampling import Plan, Progress
from definetti.samplers.kernels.mcsat_arrays import Graph, State
from definetti.samplers.kernels.rng import seed_words
from definetti.samplers.logic.queries import Query
from definetti.samplers.logic.sampling import QueryCells
from definetti.symmetry.logic.renaming import RenamingSymmetries

WARM_UP = 200  # samples, unless told otherwise
STRETCH = 0.1  # seconds between two looks at the clock


class MCSatSampling:
    """A run under way. `steps()` advances it; `draws()` gives what there is so far."""

    most_batches = BATCHES

    def __init__(
        self,
        group: RenamingSymmetries,
        sampler: MCSat,
        counted: Sequence[Query],
        asked: Sequence[QueryCells],
        plan: Plan,
    ) -> None:
        self.group, self.sampler, self.plan = group, sampler, plan
        self.counted, self.asked = tuple(counted), tuple(asked)
        self._ground = ground(group.model)
        self._graph = graph_of(self._ground, _cells(group, self._ground))
        self._sizes = np.concatenate([group.sizes, [q.size for q in asked]]).astype(np.int64)
        self._chains = [
            state_of(self._ground, x, five_words(plan.seed, k), len(group.sizes))
            for k, x in enumerate(first_states(group.model, self._ground, self._graph, plan, group.source))
        ]
        self._joint = np.zeros((2, plan.chains, len(self.counted)))  # sums and squares of this batch
        self._batches: list[Batch] = []
        self.burnt = 0  # samples of warm-up
        self._rate, self.seconds = 10.0, 0.0
        self._run(self._chains[0], 0)  # compiles, or loads

    @property
    def updates(self) -> int:
        from definetti.samplers.kernels.mcsat import UPDATES

        return sum(int(s.clock[UPDATES]) for s in self._chains)

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    @property
    def can_stop(self) -> bool:
        """Whether there is anything to show yet."""
        return bool(self._batches)

    def _run(self, state: State, samples: int) -> None:
        from definetti.samplers.kernels.mcsat import advance

        advance(self._graph, state, samples, self.sampler.temperature, True)

    # --- advancing ---------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Progress]:
        """Run to the end of the plan, yielding after every stretch."""
        plan = self.plan
        with ThreadPoolExecutor(min(plan.workers, plan.chains)) as pool:
            warm = WARM_UP if plan.burn_in is None else plan.burn_in
            for burnt in self._advance(pool, warm):
                self.burnt = burnt
                yield self._progress("warm-up", burnt, warm)
                if self.seconds >= plan.warm_seconds:
                    break
            self._clear()
            kept = 0
            while plan.sweeps is None or kept < plan.sweeps:
                length = next_length(self._batches, plan.sweeps, kept)
                for done in self._advance(pool, length):
                    yield self._progress("sampling", kept + done, plan.sweeps)
                self._keep(length)
                kept += length

    def _advance(self, pool: ThreadPoolExecutor, samples: int) -> Iterator[int]:
        done = 0
        while done < samples:
            some = min(samples - done, max(1, int(STRETCH * self._rate)))
            began = time.perf_counter()
            list(pool.map(self._stretch, range(len(self._chains)), [some] * len(self._chains)))
            took = max(time.perf_counter() - began, 1e-6)
            self.seconds += took
            self._rate = min(some / took, 4.0 * self._rate)
            done += some
            yield done

    def _stretch(self, k: int, samples: int) -> None:
        if not self.counted:
            self._run(self._chains[k], samples)
            return
        for _ in range(samples):
            self._run(self._chains[k], 1)
            seen = np.array([count(self.group.model, query, self._chains[k].x) for query in self.counted])
            self._joint[0, k] += seen
            self._joint[1, k] += seen**2

    def _progress(self, phase: str, done: int, total: int | None) -> Progress:
        return Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)

    # --- folding -----------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self._joint[:] = 0.0
        for state in self._chains:
            state.sums[:] = 0.0

    def _keep(self, length: int) -> None:
        means = np.stack([s.sums[1, 1:] for s in self._chains]) / (self.group.sizes * length)
        squares = np.stack([s.sums[2, 1:] for s in self._chains]) / (self.group.sizes.astype(float) ** 2 * length)
        seen, seen_square = self._joint[0] / length, np.sqrt(self._joint[1] / length)
        joint = [seen[:, list(q.places)].sum(axis=1) / q.size for q in self.asked]
        joint_square = [(seen_square[:, list(q.places)].sum(axis=1) / q.size) ** 2 for q in self.asked]
        f, square = np.column_stack([means, *joint]), np.column_stack([squares, *joint_square])
        self._batches = kept_with(self._batches, Batch(length, f, None, square=square), self.plan.sweeps)
        self._clear()

    def draws(self) -> Draws:
        return draws_of(self._batches, self._sizes, self.plan.chains, self.burnt)

    def notices(self) -> list[Notice]:
        return doubts(state.clock for state in self._chains)


def five_words(seed: int, chain: int) -> np.ndarray:
    """The stream of a chain and the key of its slices."""
    return np.concatenate([seed_words(seed, chain), seed_words(seed, -2 - chain)[:1]])


def _cells(group: RenamingSymmetries, graph: FactorGraph) -> np.ndarray:
    """The statistic of each literal: that of the atom which it makes true."""
    cell = np.zeros(int(graph.literal_start[-1]), dtype=np.int64)
    for name in group.model.predicates:
        variable, value = atom_literals(group.model, name)
        cell[graph.literal_start[variable] + value] = group.orbit_grid(name) + 1
    return cell


def atom_literals(model: MarkovLogic, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(variable, value) of every atom of a predicate, tensors of its shape."""
    shape = model.shape(name)
    variable, value = layout(model)[name].literals(np.indices(shape, sparse=True))
    return np.broadcast_to(variable, shape), np.broadcast_to(value, shape)


def first_states(
    model: MarkovLogic, ground: FactorGraph, graph: Graph, plan: Plan, source: MarkovLogic | None
) -> Iterator[np.ndarray]:
    """Legal states: each variable from its own factors, made legal by a solver where there are hard formulas."""
    solver = legal(model, source) if any(f.hard for f in model.formulas) else None
    places = {name: atom_literals(model, name) for name in model.predicates}
    for k in range(plan.chains):
        x = np.where(ground.evidence == FREE, _drawn(graph, np.random.default_rng([plan.seed, k + 1])), ground.evidence)
        if solver is not None:
            found = solver.solve({name: x[variable] == value for name, (variable, value) in places.items()})
            if found is None:
                raise explain(source or model)
            for name, (variable, value) in places.items():
                true = found[name]
                x[variable[~true & (value == 1)]] = 0  # a block keeps one true atom, which comes next
                x[variable[true]] = value[true]
        yield x


def _drawn(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """A value of each variable by the weights of its own factors: the literals race, the first one wins."""
    with np.errstate(divide="ignore"):
        time = rng.exponential(size=len(graph.own)) / graph.own
    variable = np.repeat(np.arange(len(graph.literal) - 1), np.diff(graph.literal))
    return np.lexsort((time, variable))[graph.literal[:-1]] - graph.literal[:-1]


def count(model: MarkovLogic, query: Query, x: np.ndarray) -> int:
    """How many tuples of constants satisfy a query in a state of the ground model."""
    names, boxes = list(query.sorts), layout(model)
    grid = {}
    for k, name in enumerate(names):
        members = np.flatnonzero(query.members[name])
        grid[name] = members.reshape([-1 if i == k else 1 for i in range(len(names))])

    def place(term: Any) -> Any:
        return term.index if isinstance(term, Constant) else grid[term.name]

    truth: dict[Any, Any] = {}
    for atom in atoms(query.body):
        variable, value = boxes[atom.predicate].literals([place(term) for term in atom.args])
        truth[atom] = x[variable] == value
    for equality in equalities(query.body):
        truth[equality] = np.asarray(place(equality.left) == place(equality.right))
    true = np.asarray(evaluate(query.body, truth))
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if query.sorts[first] == query.sorts[second]:
                true = true & (grid[first] != grid[second])
    return int(np.broadcast_to(true, np.broadcast_shapes(true.shape, *(g.shape for g in grid.values()))).sum())
