"""A run of MC-SAT on a Markov logic network, which is grounded for it.

One sample is one sweep. Orbits are those of the renamings; formulas that are asked for are counted at each sample.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from definetti.constraints.logic.legal_states import legal
from definetti.constraints.logic.unsat_core import explain
from definetti.errors import Notice, TooLarge
from definetti.model.graph.factors import FREE, FactorGraph
from definetti.model.logic.atom_literals import layout
from definetti.model.logic.ground import ground
from definetti.model.logic.theory import Atom, MarkovLogic
from definetti.samplers.conditionals import ChainLooks, balance_of, conditional_pass
from definetti.samplers.draws import Batch, Draws
from definetti.samplers.kernels.rng import seed_words
from definetti.samplers.logic.engine import refuse_large
from definetti.samplers.logic.mirrored import Means, with_mirror_images
from definetti.samplers.logic.orbital import Atoms, Moves
from definetti.samplers.logic.queries import Asked, counter
from definetti.samplers.mcsat import Graph, State, approximate_share, doubts, graph_of, state_of
from definetti.samplers.protocol import Plan, prefixed
from definetti.samplers.run import Map, Run
from definetti.symmetry.logic.renaming import RenamingSymmetries

LOOK_EVERY, LOOK_RARELY, EARLY = 2, 16, 256  # samples from look to look among the first kept ones, and after them
WARM_UP = 200  # samples, unless the caller gives a number


class MCSatSampling(Run):
    """The chains of one run, and how they are advanced and folded."""

    reports_after = False
    pieces = "_stretch"
    renamed: Moves | None = None  # what moves the states after every sample

    def __init__(self, asked: Asked, temperature: float, plan: Plan) -> None:
        self.group, self.asked, self._temperature = asked.group, asked, temperature
        group = asked.group
        self._ground = ground(group.model)
        self._boxes = layout(group.model)
        self._graph = graph_of(self._ground, _cells(group, self._ground))
        self._chains: list[State] = []
        for k, x in enumerate(first_states(group.model, self._ground, self._graph, plan, group.source)):
            self._chains.append(state_of(self._ground, x, five_words(plan.seed, k), len(group.sizes)))
            if k == 0:
                refuse_large(plan.chains * sum(part.nbytes for part in self._chains[0]))
        self._looks = self._look_at(plan)
        self._joint = np.zeros((2, plan.chains, len(asked.counted)))  # sums and squares of this batch
        self._rate = 10.0  # samples per second
        self._draw(self._chains[0], 0)  # compiles, or loads
        nothing = np.zeros(0, np.int64)
        super().__init__(plan, asked.sizes, nothing, plan.chains, WARM_UP if plan.burn_in is None else plan.burn_in)

    @property
    def updates(self) -> int:
        from definetti.samplers.kernels.graph.mcsat import UPDATES

        return sum(int(chain.clock[UPDATES]) for chain in self._chains)

    def _draw(self, chain: State, samples: int) -> None:
        from definetti.samplers.kernels.graph.mcsat import advance

        advance(self._graph, chain, samples, self._temperature, True)

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        some = min(self._length - self._done, max(1, int(seconds * self._rate)))
        began = time.perf_counter()
        list(run(self._stretch, range(len(self._chains)), [some] * len(self._chains)))
        self._rate = min(some / max(time.perf_counter() - began, 1e-6), 4.0 * self._rate)
        return self._done + some

    def _look_at(self, plan: Plan) -> list[ChainLooks]:
        """Some samples of a chain are compared with the full conditionals of the ground model (`next_look`)."""
        statistic = _cells(self.group, self._ground) - 1
        statistic[self._ground.evidence[self._ground.variable_of] != FREE] = -1
        try:
            check = conditional_pass(self._ground, statistic, self.group.sizes)
        except TooLarge:
            return []
        looks = [ChainLooks(check, self._ground.n, plan.chains) for _ in range(plan.chains)]
        looks[0].load(self._chains[0].x[:, None].astype(np.uint8))
        return looks

    def _stretch(self, k: int, samples: int) -> None:
        """Samples of one chain, with looks at those that are kept."""
        if not self._looks or self._phase != "sampling":
            self._stretch_blindly(k, samples, self._done)
            return
        sample, end = self._kept + self._done, self._kept + self._done + samples
        while sample < end:
            look = next_look(sample)
            some = min(end, look) - sample
            self._stretch_blindly(k, some, sample - self._kept)
            sample += some
            if sample == look:
                self._looks[k].hold(self._chains[k].x)

    def _stretch_blindly(self, k: int, samples: int, at: int) -> None:
        """Samples from place `at` of the batch on."""
        chain = self._chains[k]
        if not self.asked.counted and self.renamed is None:
            self._draw(chain, samples)
            return

        for sample in range(at, at + samples):
            self._draw(chain, 1)
            seen = np.array([int(count(chain.x[:, None])[0]) for count in self._counters])
            self._joint[0, k] += seen
            self._joint[1, k] += seen**2
            if self.asked.series:
                self._notes["counts"][k][sample, 0] = seen[list(self.asked.series)]
            if self.renamed is not None:
                self._rename(self.renamed, k, chain)

    @cached_property
    def _counters(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        def truth(atom: Atom, constants: tuple[Any, ...]) -> Callable[[np.ndarray], np.ndarray]:
            variable, value = self._boxes[atom.predicate].literals(constants)
            value = np.asarray(value)[..., None]
            return lambda x: x[variable] == value

        return [counter(query, truth) for query in self.asked.counted]

    def _noted(self) -> dict[str, int]:
        return {"counts": len(self.asked.series)}

    def _rename(self, moves: Moves, k: int, chain: State) -> None:
        """Moves a chain's atoms."""
        from definetti.samplers.kernels.graph.mcsat import SAMPLE

        places = {name: atom_literals(self.group.model, name) for name in self.group.model.predicates}
        atoms = {name: chain.x[variable] == value for name, (variable, value) in places.items()}

        def put(x: np.ndarray, some: Atoms) -> np.ndarray:
            for name, true in some.items():
                variable, value = places[name]
                x[variable[~true & (value == 1)]] = 0  # a block keeps one true atom, which comes next
                x[variable[true]] = value[true]
            return x

        def log_density(some: Atoms) -> float:
            return float(self._ground.log_factors(put(chain.x.astype(np.int64), some)[None])[0])

        put(chain.x, moves.moved(k, int(chain.clock[SAMPLE]), atoms, log_density))
        chain.y[:] = chain.x

    def values(self) -> np.ndarray:
        model = self.group.model
        places = [tuple(part.ravel() for part in atom_literals(model, name)) for name in model.predicates]
        rows = [[chain.x[variable] == value for variable, value in places] for chain in self._chains]
        return np.stack([np.concatenate(row) for row in rows]).view(np.uint8)

    def _clear(self) -> None:
        self._joint[:] = 0.0
        for chain in self._chains:
            chain.sums[:] = 0.0

    def _window(self, length: int, whole: bool) -> None:
        self._clear()

    def _harvest(self, length: int) -> Batch:
        means = np.stack([s.sums[1, 1:] for s in self._chains]) / (self.group.sizes * length)
        squares = np.stack([s.sums[2, 1:] for s in self._chains]) / (self.group.sizes.astype(float) ** 2 * length)
        means, _, squares = with_mirror_images(Means(means, None, squares), self.group.mirror, self.group.sizes)
        assert squares is not None
        joint = self.asked.joint(self._joint[0] / length)
        joint_square = self.asked.joint(np.sqrt(self._joint[1] / length)) ** 2  # at most
        self._clear()
        f, square = np.column_stack([means, joint]), np.column_stack([squares, joint_square])
        return Batch(length, f, None, square=square, tally=self._tally())

    def notices(self) -> list[Notice]:
        return doubts(chain.clock for chain in self._chains)

    def report(self) -> dict[str, Any]:
        moves = {} if self.renamed is None else self.renamed.report()
        return moves | {"approximate_share": approximate_share(chain.clock for chain in self._chains)}

    def _arrays(self) -> dict[str, np.ndarray]:
        found = {"joint": self._joint}
        for k, chain in enumerate(self._chains):
            own = {"x": chain.x, "y": chain.y, "streams": chain.streams, "clock": chain.clock, "sums": chain.sums}
            found |= prefixed(str(k), own)
        for k, looks in enumerate(self._looks):
            found |= prefixed(f"looks{k}", looks.arrays())
        return found if self.renamed is None else found | prefixed("moves", self.renamed.arrays())

    def _completed(self, draws: Draws) -> Draws:
        return replace(draws, balance=balance_of(self._looks))


def next_look(sample: int) -> int:
    """After which of the kept samples a chain is looked at next: often at first, so that short runs are tested, then
    rarely, as a look costs about as much as a sample."""
    spacing = LOOK_EVERY if sample < EARLY else LOOK_RARELY
    return sample + spacing - sample % spacing


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
