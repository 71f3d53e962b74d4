"""Independent exact samples of a Markov logic network as a sampler among the others: every sweep is a fresh draw.

They come out as ordinary `Draws` (without conditionals), so estimators, error bars and reports need not know.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti.model.logic.formulas import atoms, equalities
from definetti.model.logic.ground import evaluate
from definetti.model.logic.theory import Constant, Formula, Variable
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, kept_with, next_length
from definetti.samplers.graph.sampling import Plan, Progress
from definetti.symmetry.logic.renaming import RenamingSymmetries

if TYPE_CHECKING:
    from definetti.samplers.logic.queries import Query
    from definetti.samplers.logic.sampling import QueryCells

STRETCH = 0.1  # seconds between two looks at the clock


@dataclass(frozen=True)
class LiftedSampler:
    """Independent exact samples of a Markov logic network: counts, then who, then the rest. No warm-up, no scan.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.markov_logic("Smokes(person)\\n1.5 Smokes(x)", domain={"person": 10})
    >>> dft.marginals(model, sampler=dft.LiftedSampler(), chains=2, sweeps=10, seed=7).run["sampler"]
    'lifted'
    """

    name: str = "lifted"
    scan: str | None = None


class LiftedSampling:
    """A run under way: the verbs of `RelationalSampling`."""

    most_batches = BATCHES

    def __init__(
        self, group: RenamingSymmetries, counted: Sequence[Query], asked: Sequence[QueryCells], plan: Plan
    ) -> None:
        from definetti.solvers.lifted.sampling import sampler_of

        self.sampler = sampler_of(group.model)
        self.group, self.counted, self.asked, self.plan = group, tuple(counted), tuple(asked), plan
        self._sizes = np.concatenate([group.sizes, [q.size for q in asked]]).astype(np.int64)
        seeds = np.random.SeedSequence(plan.seed).spawn(plan.chains)
        self._streams = [np.random.default_rng(seed) for seed in seeds]
        self._batches: list[Batch] = []
        self.seconds, self.updates = 0.0, 0

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    @property
    def can_stop(self) -> bool:
        """Whether there is anything to show yet."""
        return bool(self._batches)

    def steps(self) -> Iterator[Progress]:
        plan, kept = self.plan, 0
        shape = (plan.chains, len(self._sizes))
        while plan.sweeps is None or kept < plan.sweeps:
            length = next_length(self._batches, plan.sweeps, kept)
            f, square = np.zeros(shape), np.zeros(shape)
            began = time.perf_counter()
            for done in range(length):
                for c, stream in enumerate(self._streams):
                    row = self._statistics(self.sampler.draw(stream))
                    f[c] += row
                    square[c] += row**2
                self.updates += int(self.group.sizes.sum()) * plan.chains
                if time.perf_counter() - began > STRETCH:
                    self.seconds += time.perf_counter() - began
                    yield self._progress(kept + done, plan.sweeps)
                    began = time.perf_counter()
            self.seconds += time.perf_counter() - began
            batch = Batch(length, f / length, None, square=square / length)
            self._batches = kept_with(self._batches, batch, plan.sweeps)
            kept += length
            yield self._progress(kept, plan.sweeps)

    def _progress(self, done: int, total: int | None) -> Progress:
        return Progress("sampling", done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)

    def _statistics(self, state: dict[str, np.ndarray]) -> np.ndarray:
        counts = np.zeros(len(self.group.sizes))
        for name in self.group.atom_orbits:
            orbit = self.group.orbit_numbers(name, np.argwhere(state[name]))
            counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        seen = [query_count(query, state) for query in self.counted]
        joint = [sum(seen[p] for p in q.places) / q.size for q in self.asked]
        return np.append(counts / self.group.sizes, joint)

    def draws(self) -> Draws:
        return draws_of(self._batches, self._sizes, self.plan.chains, 0)


def query_count(query: Query, state: dict[str, np.ndarray]) -> int:
    """How many tuples of different members satisfy a query in a state."""
    names = list(query.sorts)
    members = [np.flatnonzero(query.members[name]) for name in names]
    grid = dict(zip(names, np.ix_(*members), strict=True)) if names else {}

    def value(term: Any) -> Any:
        return grid[term.name] if isinstance(term, Variable) else term.index

    truth: dict[Formula, Any] = {}
    for atom in atoms(query.body):
        truth[atom] = state[atom.predicate][tuple(value(t) for t in atom.args)]
    for e in equalities(query.body):
        same_sort = not (isinstance(e.left, Constant) and isinstance(e.right, Constant)) or e.left.sort == e.right.sort
        truth[e] = value(e.left) == value(e.right) if same_sort else False
    found = np.broadcast_to(np.asarray(evaluate(query.body, truth)), tuple(len(m) for m in members))
    for i, a in enumerate(names):
        for b in names[:i]:
            if query.sorts[a] == query.sorts[b]:
                found = found & (grid[a] != grid[b])
    return int(found.sum())
