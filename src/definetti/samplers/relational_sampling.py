"""A run of relational chains under way: the same verbs as `chains.Sampling`, for models that are never grounded.

Chains advance in short stretches that may end inside a sweep, so that progress, Ctrl-C and time limits work where one sweep
takes a minute. Orbit statistics are folded by the kernel; a run stopped before its first batch ends shows the states themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from definetti.errors import Notice
from definetti.samplers.chains import BATCHES, MOST_BATCHES, WARM_SHARE, Plan, Progress
from definetti.samplers.draws import Draws, merge_pairs
from definetti.samplers.kernels.relational_data import Chain
from definetti.samplers.kernels.relational_state import clear_sums
from definetti.samplers.relational import SCANS, SWEEP, UPDATES, Relational, advance, refuse_large, start
from definetti.samplers.relational_starts import clear_live
from definetti.samplers.relational_stuck import slow_notices, stuck_notices
from definetti.symmetry.logic import RenamingSymmetries

STRETCH = 0.1  # seconds between two looks at the clock


@dataclass(frozen=True, eq=False)
class QueryCells:
    """The counted queries that make up one asked formula: its F is the sum of their counts divided by `size`."""

    places: tuple[int, ...]
    size: int


class RelationalSampling:
    """A run under way. `steps()` advances it; `draws()` gives what there is so far."""

    def __init__(
        self, relational: Relational, group: RenamingSymmetries, asked: Sequence[QueryCells], plan: Plan
    ) -> None:
        refuse_large(plan.chains * relational.chain_bytes, None)
        self.relational, self.group, self.asked, self.plan = relational, group, tuple(asked), plan
        self._random = SCANS[relational.data.scan] == "random"
        self._sizes = np.concatenate([group.sizes, [q.size for q in asked]]).astype(np.int64)
        self._chains: list[Chain] = []
        self._rates = np.full(plan.chains, 1e6)
        self._f: list[np.ndarray] = []
        self._g: list[np.ndarray] = []
        self._square: list[np.ndarray] = []
        self._lengths: list[int] = []
        self.seconds = 0.0

    @property
    def updates(self) -> int:
        return sum(int(chain.clock[UPDATES]) for chain in self._chains)

    @property
    def batch_count(self) -> int:
        return len(self._lengths)

    # --- advancing -------------------------------------------------------------------------------------------------

    def steps(self) -> Iterator[Progress]:
        """Run to the end of the plan, yielding after every stretch."""
        plan, count = self.plan, self.plan.chains
        with ThreadPoolExecutor(min(plan.workers, count)) as pool:
            self._chains = list(pool.map(lambda k: start(self.relational, plan.seed, k), range(count)))
            for done in self._advance(pool, plan.burn_in):
                yield self._progress("warm-up", done, plan.burn_in)
                if plan.seconds is not None and self.seconds > WARM_SHARE * plan.seconds:
                    break
            for chain in self._chains:
                clear_sums(chain)
                clear_live(self.relational, chain)
            kept = 0
            while plan.sweeps is None or kept < plan.sweeps:
                length = self._next_length(kept)
                for done in self._advance(pool, length):
                    yield self._progress("sampling", kept + done, plan.sweeps)
                self._keep(length)
                kept += length
                yield self._progress("sampling", kept, plan.sweeps)

    def _next_length(self, kept: int) -> int:
        if self.plan.sweeps is None:
            return max(1, self._lengths[0] if self._lengths else 1)
        batches = min(BATCHES, self.plan.sweeps)
        return (self.plan.sweeps * (len(self._lengths) + 1)) // batches - kept

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
            done = advance(self.relational, chain, max(1, int(STRETCH * self._rates[k])), left)
            took = max(time.perf_counter() - began, 1e-6)
            self._rates[k] = min(max(done / took, 1.0), 4.0 * self._rates[k])

    def _progress(self, phase: str, done: int, total: int | None) -> Progress:
        return Progress(phase, done, total, self.updates / max(self.seconds, 1e-9), None, self.seconds)

    def notices(self) -> list[Notice]:
        """What the kept sweeps could never have moved."""
        if not self._lengths:
            return []
        f = np.stack(self._f)[:, :, : len(self.group.sizes)]
        slow = [] if self._random else slow_notices(self.relational, self.group, f)
        return [*stuck_notices(self.relational, self.group, self._chains), *slow]

    # --- folding ---------------------------------------------------------------------------------------------------

    def _keep(self, length: int) -> None:
        parts = [self._batch(chain, length) for chain in self._chains]
        for chain in self._chains:
            clear_sums(chain)
        for kept, part in zip((self._f, self._g, self._square), zip(*parts, strict=True), strict=True):
            kept.append(np.stack(part))
        self._lengths.append(length)
        if self.plan.sweeps is None and len(self._lengths) >= MOST_BATCHES:
            for kept in (self._f, self._g, self._square):
                kept[:] = merge_pairs(kept, self._lengths)
            self._lengths = [a + b for a, b in zip(self._lengths[::2], [*self._lengths[1::2], 0], strict=False)]

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
        if not self._lengths:
            return self._states()
        return Draws(
            f=np.stack(self._f),
            g=np.stack(self._g),
            lengths=np.array(self._lengths, dtype=np.int64),
            sizes=self._sizes,
            square=np.stack(self._square),
            burn_in=self.plan.burn_in,
        )

    def _states(self) -> Draws:
        """One batch of one draw per chain, from the states inside a sweep; joint queries are not known there."""
        if not self.updates:
            return Draws(np.zeros((0, self.plan.chains, len(self._sizes))), None, np.zeros(0, np.int64), self._sizes)
        rows = [np.append(self._orbit_means(chain), np.full(len(self.asked), np.nan)) for chain in self._chains]
        f = np.stack(rows)[None]
        return Draws(f, None, np.ones(1, np.int64), self._sizes, square=f**2, burn_in=0)

    def _orbit_means(self, chain: Chain) -> np.ndarray:
        """F of a state, counted row by row of each predicate."""
        counts = np.zeros(len(self.group.sizes))
        for name in self.group.atom_orbits:
            atoms = self.relational.atoms(chain, name)
            rows = np.atleast_2d(atoms.reshape(-1, atoms.shape[-1] if atoms.ndim else 1))
            shape = self.group.model.shape(name)
            for r, row in enumerate(rows):
                true = np.flatnonzero(row)
                if len(true):
                    head = np.unravel_index(r, shape[:-1]) if len(shape) > 1 else ()
                    tuples = (
                        np.column_stack([*(np.full(len(true), h) for h in head), true])
                        if shape
                        else np.zeros((1, 0), int)
                    )
                    orbit = self.group.orbit_numbers(name, tuples)
                    counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        return counts / self.group.sizes
