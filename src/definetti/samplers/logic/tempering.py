"""Parallel tempering of a Markov logic network that is never grounded: one compiled kernel serves all levels.

A chain of the run is a ladder of replicas, one per level; the replica on the top level is the chain's state. Hard
formulas cost a penalty below the top. The energies behind exchanges are kept from flip to flip (`levels.py`). Levels
are placed before the run starts: short rounds, after each of which they move to where exchanges were rejected.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np

from definetti.errors import Notice, Unsatisfiable
from definetti.samplers.draws import Batch
from definetti.samplers.ladder import Ladder, level_count, penalty, placed
from definetti.samplers.log_z import Energies, log_z
from definetti.samplers.logic.engine import FAILED, FOREVER, SWEEP, Relational, blank, frozen, refuse_large, violations
from definetti.samplers.logic.levels import BROKEN, Level, at_level, recount, single_weights
from definetti.samplers.logic.queries import Asked
from definetti.samplers.logic.sampling import RelationalSampling, relational_model
from definetti.samplers.logic.starts import first_states
from definetti.samplers.logic.tensors.data import Chain
from definetti.samplers.protocol import Plan, State, prefixed
from definetti.samplers.run import Illegal, Map

FIRST_LEVELS = 12
ROUNDS = (8, 16, 32, 64, 128)  # sweeps between adjustments of the ladder
ARRIVALS = 256  # round trips whose first state on the top level is remembered
TRIPS, ARRIVED, NOTED = 1, 2, 3  # places of the counters


class Rungs(NamedTuple):
    """The replicas of one ladder. Level k holds the state of replica `replica[k]`; what is read only is shared."""

    levels: np.ndarray  # float64[K, 5]
    reals: np.ndarray  # float64[K, …]: weights, and tables of conditionals at the level's scale
    weights: np.ndarray  # float64[shapes]: of the shapes that have one weight
    bits: np.ndarray  # uint64[K, words], by replica
    tally: np.ndarray  # float64[K, …], by replica
    soft: np.ndarray  # float64[2, K], by replica: log density, violations at the last exchange
    replica: np.ndarray  # int64[K], by level
    heading: np.ndarray  # int64[K], by replica: the end of the ladder that it comes from
    counters: np.ndarray  # int64[4]: parity, round trips, whether one has just ended, round trips noted
    rejected: np.ndarray  # float64[2, K - 1]: sums of rejection probabilities, attempts
    arrivals: np.ndarray  # float64[ARRIVALS, 1 + orbits]: log density and F at the ends of the last round trips


KEPT = ("bits", "tally", "soft", "replica", "heading", "counters", "rejected", "arrivals")  # change in place


def tempered_sampling(asked: Asked, scan: str, levels: tuple[float, ...] | None, plan: Plan) -> TemperedSampling:
    """Compiles a model for tempering, or loads what was compiled."""
    return TemperedSampling(relational_model(asked, scan, plan), asked, levels, plan)


def level_at(r: Relational, level: float) -> Relational:
    return at_level(r, Level(level, penalty(level)))


def shared_arrays(r: Relational, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(levels, reals, weights) of a ladder."""
    data = [level_at(r, float(level)).data for level in levels]
    weights = np.zeros(len(r.theory.shapes))
    for s, weight in single_weights(r).items():
        weights[s] = weight
    return tuple(frozen(x, np.float64) for x in ([d.level for d in data], [d.reals for d in data], weights))  # pyright: ignore


def blank_rungs(r: Relational, shared: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Rungs:
    count = len(shared[0])
    return Rungs(
        *shared,
        bits=np.zeros((count, r.bits), np.uint64),
        tally=np.zeros((count, 6 + len(r.theory.shapes))),
        soft=np.zeros((2, count)),
        replica=np.arange(count),
        heading=np.zeros(count, np.int64),
        counters=np.zeros(4, np.int64),
        rejected=np.zeros((2, count - 1)),
        arrivals=np.zeros((ARRIVALS, 1 + r.orbit_count)),
    )


def first_rungs(r: Relational, shared: tuple[np.ndarray, np.ndarray, np.ndarray], chain: Chain) -> Rungs:
    """The chain's own start on the top level, uniform draws below: each ladder's its own."""
    made = blank_rungs(r, shared)
    hottest = level_at(r, 0.0)
    own = ("bits", "clock", "order", "sum_f", "sum_g", "seen", "tally")
    scratch = chain._replace(**{name: getattr(chain, name).copy() for name in own})
    for k in range(len(made.replica)):
        scratch.bits[:] = chain.bits
        if k < len(made.replica) - 1:
            with np.errstate(over="ignore"):
                r.kernel.advance(hottest.data, scratch, FOREVER, 1, 0)
        recount(r, scratch)
        made.bits[k], made.tally[k] = scratch.bits, scratch.tally
    return made


def moved_rungs(r: Relational, shared: tuple[np.ndarray, np.ndarray, np.ndarray], old: Rungs) -> Rungs:
    """A ladder with other levels: each takes the state of the nearest old level, the top that of the top."""
    made = blank_rungs(r, shared)
    nearest = np.abs(shared[0][:, :1] - old.levels[None, :, 0]).argmin(axis=1)
    nearest[:-1] = np.minimum(nearest[:-1], len(old.replica) - 2)
    nearest[-1] = len(old.replica) - 1
    source = old.replica[nearest]
    made.bits[:], made.tally[:] = old.bits[source], old.tally[source]
    return made


class TemperedSampling(RelationalSampling):
    """The ladders of one run. What is folded, saved and shown is what stands on their top levels."""

    def __init__(self, r: Relational, asked: Asked, levels: tuple[float, ...] | None, plan: Plan) -> None:
        self._given = levels
        self._rungs: list[Rungs] = []
        self._levels = np.zeros(0)
        soft = not any(formula.hard for formula in r.source.formulas)  # a ladder of penalties is no integral
        self._integrates = soft and not any(p.exclusive for p in asked.group.model.predicates.values())
        super().__init__(r, asked, plan)
        shared = shared_arrays(r, np.array([0.0, 1.0]))
        self._temper(blank(r), blank_rungs(r, shared), 0)  # compiles, or loads
        recount(r, blank(r))

    # --- advancing -------------------------------------------------------------------------------------------------

    def _begin(self, run: Map) -> None:
        if self._chains:
            return
        r = self.relational
        chains = first_states(r, self.plan.seed, self.plan.chains, run)
        levels = np.linspace(0.0, 1.0, FIRST_LEVELS) ** 2 if self._given is None else np.array(self._given)
        shared = self._fitting(levels)
        self._rungs = list(run(lambda chain: first_rungs(r, shared, chain), chains))
        if self._given is None:
            for sweeps in ROUNDS:
                list(run(lambda c, g, n=sweeps: self._temper(c, g, n), chains, self._rungs))
                ladder = self.ladder()
                levels = placed(ladder.levels, ladder.rejection, level_count(ladder.rejection))
                shared = self._fitting(levels)
                self._rungs = [moved_rungs(r, shared, old) for old in self._rungs]
        for chain, rungs in zip(chains, self._rungs, strict=True):
            chain.sum_f[...], chain.sum_g[...], chain.seen[...] = 0, 0.0, 0.0
            self._show(chain, rungs)
        self._chains, self._levels = chains, levels

    def _fitting(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        replicas = len(levels) * self.plan.chains
        refuse_large(replicas * self.relational.chain_bytes + len(levels) * self.relational.data.reals.nbytes)
        return shared_arrays(self.relational, levels)

    def _temper(self, chain: Chain, rungs: Rungs, sweeps: int) -> int:
        with np.errstate(over="ignore"):
            done = int(self.relational.kernel.temper(self.relational.data, chain, rungs, sweeps))
        if chain.clock[FAILED] >= 0:
            raise Unsatisfiable("all values of a site have probability zero: please report")
        return done

    def _show(self, chain: Chain, rungs: Rungs) -> None:
        """What stands on the top level is the chain's state."""
        chain.bits[:] = rungs.bits[rungs.replica[-1]]

    def _stretch(self, k: int, seconds: float) -> None:
        chain, rungs, began = self._chains[k], self._rungs[k], time.perf_counter()
        left = int(self._first[k]) + self._length - int(chain.clock[SWEEP])
        if left <= 0:
            return
        each = max(1, self.relational.free_sites * len(rungs.replica))
        sweeps = min(left, max(1, int(seconds * self._rates[k] / each)))
        looked = self._tracking or self._debug or self.renamed is not None or len(self._watched) > 0 or self._integrates
        done = 0
        for _ in range(sweeps if looked else 1):
            done += self._temper(chain, rungs, 1 if looked else sweeps)
            self._show(chain, rungs)
            if self.renamed is not None:
                self._rename(self.renamed, k, chain)
                recount(self.relational, chain)
                top = rungs.replica[-1]
                rungs.bits[top], rungs.tally[top] = chain.bits, chain.tally
            self._note(k, chain)
            if self._integrates:
                self._notes["energy"][k][self._place(k), 0] = rungs.soft[0, rungs.replica]
            if self._debug and (violations(self.relational, chain) or rungs.tally[rungs.replica[-1], BROKEN]):
                raise Illegal("the top of a ladder is in an impossible state; please report")
        took = max(time.perf_counter() - began, 1e-6)
        self._rates[k] = min(max(done / took, 1.0), 4.0 * self._rates[k])

    def _end_of_warm_up(self) -> None:
        """Exchanges and round trips are counted from here on."""
        super()._end_of_warm_up()
        for rungs in self._rungs:
            rungs.rejected[...] = 0.0
            rungs.counters[[TRIPS, ARRIVED, NOTED]] = 0  # a trip that ended in the warm-up is not noted after it

    def _noted(self) -> dict[str, int]:
        return super()._noted() | {"energy": len(self._levels) if self._integrates else 0}

    def _harvest(self, length: int) -> Batch:
        energy = self._taken("energy")
        both = None if energy is None else np.stack([(energy**power).mean(axis=0) for power in (1, 2)])
        return super()._harvest(length)._replace(energy=both)

    # --- what the ladders say ----------------------------------------------------------------------------------------

    def ladder(self) -> Ladder:
        """The exchanges of all ladders together."""
        sums, tried = np.sum([rungs.rejected for rungs in self._rungs], axis=0)
        trips = sum(int(rungs.counters[TRIPS]) for rungs in self._rungs)
        return Ladder(self._rungs[0].levels[:, 0].copy(), sums / np.maximum(tried, 1.0), tried, trips)

    def arrivals(self) -> tuple[np.ndarray, np.ndarray]:
        """(log density, F by orbit) of the first sweep on the top level after every round trip, up to 256 a ladder.

        Whoever knows the regions of the model can ask how many round trips ended in each.
        """
        rows = [np.zeros((0, 1 + self.relational.orbit_count))]
        rows += [rungs.arrivals[: min(int(rungs.counters[NOTED]), ARRIVALS)] for rungs in self._rungs]
        found = np.concatenate(rows)
        return found[:, 0], found[:, 1:] / self.group.sizes

    def notices(self) -> list[Notice]:
        return self.ladder().notices() if self._rungs and self._batches else []

    def report(self) -> dict[str, Any]:
        return self._ladder_report() | self._log_z()

    def _log_z(self) -> dict[str, Any]:
        """log Z with its error, where the levels are powers of the model's density."""
        found = [(batch.length, *batch.energy) for batch in self._batches if batch.energy is not None]
        if not found or self.plan.starts is not None:
            return {}
        model = self.group.model
        lengths, means, squares = (np.array(part) for part in zip(*found, strict=True))
        free = model.knowledge.free_total
        return {"log_z": log_z(Energies(self._levels, means, squares, lengths), free * math.log(2.0))}

    def _ladder_report(self) -> dict[str, Any]:
        return super().report() | ({"tempering": self.ladder().report()} if self._rungs else {})

    # --- saving ------------------------------------------------------------------------------------------------------

    def _arrays(self) -> dict[str, np.ndarray]:
        found = super()._arrays()
        for k, rungs in enumerate(self._rungs):
            found |= prefixed(f"rungs{k}", {name: getattr(rungs, name) for name in KEPT})
        return found | ({"levels": self._levels} if self._rungs else {})

    def restore(self, state: State) -> None:
        self._rungs = []
        if "levels" in state["chains"]:
            self._levels = np.array(state["chains"]["levels"])
            shared = shared_arrays(self.relational, self._levels)
            self._rungs = [blank_rungs(self.relational, shared) for _ in range(self.plan.chains)]
        super().restore(state)
