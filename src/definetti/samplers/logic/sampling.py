"""A run of relational chains under way: the same verbs as `chains.Sampling`, for models that are never grounded.

Chains advance in short stretches that may end inside a sweep, so that progress, Ctrl-C and time limits work where
one sweep takes a minute. Orbit statistics are folded by the kernel; a run stopped before its first batch ends shows
the states themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from definetti.errors import Notice
from definetti.samplers.draws import BATCHES, Batch, Draws, draws_of, kept_with, next_length
from definetti.samplers.graph.frozen_watch import Illegal, debugging
from definetti.samplers.graph.sampling import Plan, Progress
from definetti.samplers.logic.data import Chain
from definetti.samplers.logic.engine import (
    SCANS,
    SWEEP,
    UPDATES,
    Relational,
    advance,
    blank,
    refuse_large,
    violations,
)
from definetti.samplers.logic.starts import clear_live, first_states
from definetti.samplers.logic.state import clear_sums
from definetti.samplers.logic.stuck import slow_notices, stuck_notices
from definetti.samplers.logic.tracking import tracked_atoms
from definetti.samplers.tracking import is_tracked, tracked
from definetti.samplers.warmup import WarmUp
from definetti.symmetry.logic.renaming import RenamingSymmetries

STRETCH = 0.1  # seconds between two looks at the clock
ATOMS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class QueryCells:
    """The counted queries that make up one asked formula: its F is the sum of their counts divided by `size`."""

    places: tuple[int, ...]
    size: int


class RelationalSampling:
    """A run under way. `steps()` advances it; `draws()` gives what there is so far."""

    most_batches = BATCHES

    def __init__(
        self, relational: Relational, group: RenamingSymmetries, asked: Sequence[QueryCells], plan: Plan
    ) -> None:
        refuse_large(plan.chains * relational.chain_bytes, None)
        self.relational, self.group, self.asked, self.plan = relational, group, tuple(asked), plan
        self._random = SCANS[relational.data.scan] == "random"
        self._sizes = np.concatenate([group.sizes, [q.size for q in asked]]).astype(np.int64)
        self._chains: list[Chain] = []
        self._rates = np.full(plan.chains, 1e6)
        self._batches: list[Batch] = []  # changed by one assignment at a time: Ctrl-C may come anywhere
        self._warm_up_plan = WarmUp(plan.chains, plan.sweeps, plan.burn_in)
        self._atoms = tracked_atoms(relational, group, plan.seed)
        self._members = np.zeros((plan.chains, len(self._atoms.orbit)))  # true counts of the batch under way
        self._tracking, self._debug = False, debugging()
        self._tracked: list[tuple[int, np.ndarray]] = []  # lengths and means of tracked batches
        violations(relational, blank(relational))  # compiles, or loads
        self.seconds = 0.0

    @property
    def updates(self) -> int:
        return sum(int(chain.clock[UPDATES]) for chain in self._chains)

    @property
    def batch_count(self) -> int:
        return len(self._batches)

    @property
    def can_stop(self) -> bool:
        """Whether there is anything to show yet: the states themselves, if nothing else."""
        return bool(self.updates)

    # --- advancing -------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Progress]:
        """Run to the end of the plan, yielding after every stretch."""
        plan, count = self.plan, self.plan.chains
        with ThreadPoolExecutor(min(plan.workers, count)) as pool:
            self._chains = first_states(self.relational, plan.seed, count, pool.map)
            yield from self._warm_up(pool)
            for chain in self._chains:
                clear_live(self.relational, chain)
            kept = 0
            while plan.sweeps is None or kept < plan.sweeps:
                length = next_length(self._batches, plan.sweeps, kept)
                self._tracking = len(self._atoms.orbit) > 0 and is_tracked(self.batch_count, plan.sweeps is None)
                for done in self._advance(pool, length):
                    yield self._progress("sampling", kept + done, plan.sweeps)
                self._keep(length)
                kept += length
                yield self._progress("sampling", kept, plan.sweeps)

    def _warm_up(self, pool: ThreadPoolExecutor) -> Iterator[Progress]:
        plan, warm = self.plan, self._warm_up_plan
        while length := warm.length():
            done = 0
            for done in self._advance(pool, length):
                yield self._progress("warm-up", warm.done + done, plan.burn_in)
                if self.seconds >= plan.warm_seconds:
                    break
            whole = warm.looks and done == length
            warm.look(done, np.stack([self._batch(c, length)[0] for c in self._chains]) if whole else None)
            for chain in self._chains:
                clear_sums(chain)
            if done < length:
                return

    def _advance(self, pool: ThreadPoolExecutor, sweeps: int) -> Iterator[int]:
        """So many sweeps of every chain, in stretches; yields the sweeps that all have done."""
        first = np.array([chain.clock[SWEEP] for chain in self._chains])
        done = 0
        while done < sweeps:
            began = time.perf_counter()
            list(pool.map(self._stretch, range(len(self._chains)), (first + sweeps).tolist()))
            self.seconds += time.perf_counter() - began
            done = int(min(chain.clock[SWEEP] - f for chain, f in zip(self._chains, first, strict=True)))
            yield done

    def _stretch(self, k: int, target: int) -> None:
        chain, began = self._chains[k], time.perf_counter()
        left = target - int(chain.clock[SWEEP])
        if left > 0:
            budget = max(1, int(STRETCH * self._rates[k]))
            looked = self._tracking or self._debug
            done = self._follow(k, budget, left) if looked else advance(self.relational, chain, budget, left)
            took = max(time.perf_counter() - began, 1e-6)
            self._rates[k] = min(max(done / took, 1.0), 4.0 * self._rates[k])

    def _follow(self, k: int, budget: int, sweeps: int) -> int:
        """The same with a look at the tracked atoms after every sweep; in debug mode also at the hard formulas."""
        chain, done = self._chains[k], 0
        target = int(chain.clock[SWEEP]) + sweeps
        while done < budget and chain.clock[SWEEP] < target:
            before = int(chain.clock[SWEEP])
            done += advance(self.relational, chain, budget - done, 1)
            if chain.clock[SWEEP] > before:
                if self._tracking:
                    self._members[k] += self._atoms.values(chain)
                if self._debug and (broken := violations(self.relational, chain)):
                    text = f"a chain is in an impossible state: {broken} groundings of hard formulas are violated"
                    raise Illegal(f"{text}; please report")
        return done

    def _progress(self, phase: str, done: int, total: int | None) -> Progress:
        return Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)

    def notices(self) -> list[Notice]:
        """What the kept sweeps could never have moved."""
        if not self._batches:
            return []
        f = np.stack([batch.f for batch in self._batches])[:, :, : len(self.group.sizes)]
        slow = [] if self._random else slow_notices(self.relational, self.group, f)
        return [*stuck_notices(self.relational, self.group, self._chains), *slow]

    # --- folding ---------------------------------------------------------------------------------------------------

    def _keep(self, length: int) -> None:
        f, g, square = (np.stack(part) for part in zip(*(self._batch(c, length) for c in self._chains), strict=True))
        for chain in self._chains:
            clear_sums(chain)
        if self._tracking:
            self._tracked = [*self._tracked, (length, self._members / length)]
            self._members = np.zeros_like(self._members)
        self._batches = kept_with(self._batches, Batch(length, f, g, square=square), self.plan.sweeps)

    def _batch(self, chain: Chain, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One chain's batch means of F, G and F². In the random scan they are means over visits."""
        visits = self.group.sizes * float(length)
        if self._random:
            visits = np.where(chain.sum_f[2, 1:] > 0, chain.sum_f[2, 1:], np.nan)
        f, g = chain.sum_f[1, 1:] / visits, chain.sum_g[1, 1:] / visits
        square = chain.sum_g[2, 1:] / (self.group.sizes.astype(float) ** 2 * length)
        if self._random:
            square = np.maximum(square, f**2)
        seen, seen_square = chain.seen[1] / length, np.sqrt(chain.seen[2] / length)
        joint = [sum(seen[p] for p in q.places) / q.size for q in self.asked]
        joint_square = [(sum(seen_square[p] for p in q.places) / q.size) ** 2 for q in self.asked]  # at most
        nothing = np.full(len(self.asked), np.nan)
        return np.append(f, joint), np.append(g, nothing), np.append(square, joint_square)

    def draws(self) -> Draws:
        """What has been folded so far; before the first batch is complete, the states as they stand."""
        if not self._batches:
            return self._states()
        made = draws_of(self._batches, self._sizes, self.plan.chains, self._warm_up_plan.done)
        members = tracked(self._atoms.orbit, [m for _, m in self._tracked], [n for n, _ in self._tracked])
        return replace(made, tracked=members)

    def _states(self) -> Draws:
        """One batch of one draw per chain, from the states inside a sweep; joint queries are not known there."""
        if not self.updates:
            return Draws(np.zeros((0, self.plan.chains, len(self._sizes))), None, np.zeros(0, np.int64), self._sizes)
        rows = [np.append(self._orbit_means(chain), np.full(len(self.asked), np.nan)) for chain in self._chains]
        f = np.stack(rows)[None]
        return Draws(f, None, np.ones(1, np.int64), self._sizes, square=f**2, unfinished=True)

    def _orbit_means(self, chain: Chain) -> np.ndarray:
        """F of a state, counted over some atoms of a predicate at a time."""
        counts = np.zeros(len(self.group.sizes))
        for name in self.group.atom_orbits:
            shape = self.group.model.shape(name)
            atoms = self.relational.atoms(chain, name).ravel()
            for first in range(0, atoms.size, ATOMS_AT_ONCE):
                true = first + np.flatnonzero(atoms[first : first + ATOMS_AT_ONCE])
                tuples = np.stack(np.unravel_index(true, shape), 1) if shape else np.zeros((len(true), 0), np.int64)
                orbit = self.group.orbit_numbers(name, tuples)
                counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        return counts / self.group.sizes
