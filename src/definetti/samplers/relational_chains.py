"""Several relational chains in threads: warm-up, batches, and a progress report after every short stretch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from definetti.errors import ModelError
from definetti.samplers.kernels.relational_data import Chain
from definetti.samplers.kernels.relational_state import clear_sums
from definetti.samplers.relational import FOREVER, SWEEP, UPDATES, Relational, advance, refuse_large, start

STRETCH = 0.2  # seconds between two reports


@dataclass(frozen=True, eq=False)
class Tally:
    """What the chains have added up so far; batches not yet `finished` are zero. Sums are over sweeps and atoms.

    With the `random` scan means are sums divided by `visits`; otherwise by (orbit size × sweeps of the batch).
    """

    f: np.ndarray  # int64[batch, chain, orbit]: drawn values
    g: np.ndarray  # float64[batch, chain, orbit]: conditionals at the draws
    f_square: np.ndarray  # float64[batch, chain, orbit]: squares of a sweep's F
    visits: np.ndarray  # int64[batch, chain, orbit]: filled by the `random` scan alone
    seen: np.ndarray  # float64[batch, chain, query]: satisfying tuples at the sweeps' ends
    seen_square: np.ndarray
    sweeps: np.ndarray  # int64[batch]: how many sweeps each batch has
    finished: np.ndarray  # int64[chain]: complete batches of each chain
    position: np.ndarray  # int64[chain]: complete sweeps, warm-up included
    updates: int  # sites drawn by all chains, warm-up included
    seconds: float

    @property
    def done(self) -> bool:
        return bool((self.finished == len(self.sweeps)).all())


@dataclass
class _Runner:
    """One chain with its place in the plan: phase 0 is the warm-up, phase b the b-th batch."""

    number: int
    chain: Chain
    phase: int
    target: int  # sweeps at which the phase ends
    rate: float = 1e6  # updates a second


def run_chains(
    relational: Relational,
    *,
    chains: int = 8,
    sweeps: int = 2000,
    burn_in: int = 200,
    batches: int = 20,
    seed: int = 0,
    workers: int = 1,
    memory: int | None = None,
) -> Iterator[Tally]:
    """Runs the chains and yields the growing tally about five times a second, inside sweeps too; the last is `done`.

    Closing the iterator stops after the stretch under way. Results depend on the seed and the number of the chain, not
    on `workers` or on how the work was cut.
    """
    if min(chains, sweeps, batches, workers) < 1 or burn_in < 0:
        raise ModelError("chains, sweeps, batches and workers must be at least 1, and burn_in at least 0")
    refuse_large(chains * relational.chain_bytes, memory)
    batches = min(batches, sweeps)
    ends = burn_in + np.arange(1, batches + 1) * sweeps // batches
    tally = _empty(relational, chains, np.diff(ends, prepend=burn_in))
    began = perf_counter()
    putting = tally  # its arrays are filled in place

    def stretch(runner: _Runner) -> None:
        _stretch(relational, runner, putting, ends)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        started = pool.map(lambda k: start(relational, seed, k), range(chains))
        runners = [_Runner(k, chain, 0, burn_in) for k, chain in enumerate(started)]
        while not tally.done:
            list(pool.map(stretch, runners))
            updates = sum(int(runner.chain.clock[UPDATES]) for runner in runners)
            for runner in runners:
                tally.position[runner.number] = runner.chain.clock[SWEEP]
            tally = Tally(**{**tally.__dict__, "updates": updates, "seconds": perf_counter() - began})
            yield tally


def _empty(r: Relational, chains: int, sweeps: np.ndarray) -> Tally:
    shape, seen = (len(sweeps), chains, r.orbit_count), (len(sweeps), chains, len(r.query_places))
    counts = {name: np.zeros(shape, np.int64) for name in ("f", "visits")}
    reals = {name: np.zeros(shape) for name in ("g", "f_square")}
    queries = {name: np.zeros(seen) for name in ("seen", "seen_square")}
    places = {name: np.zeros(chains, np.int64) for name in ("finished", "position")}
    return Tally(**counts, **reals, **queries, **places, sweeps=sweeps, updates=0, seconds=0.0)


def _stretch(r: Relational, runner: _Runner, tally: Tally, ends: np.ndarray) -> None:
    """Advances one chain for a short while, putting away every batch that ends."""
    budget, began, done = max(1, int(STRETCH * runner.rate)), perf_counter(), 0
    while runner.phase <= len(ends):
        left = int(runner.target - runner.chain.clock[SWEEP])
        if left > 0:
            if done >= budget:
                break
            done += advance(r, runner.chain, min(budget - done, FOREVER), left)
            continue
        if runner.phase > 0:
            _put_away(r, runner, tally)
        clear_sums(runner.chain)
        runner.phase += 1
        runner.target = int(ends[runner.phase - 1]) if runner.phase <= len(ends) else runner.target
    runner.rate = max(1.0, done / max(perf_counter() - began, 1e-6))


def _put_away(r: Relational, runner: _Runner, tally: Tally) -> None:
    b, k, chain = runner.phase - 1, runner.number, runner.chain
    tally.f[b, k], tally.visits[b, k] = chain.sum_f[1, 1:], chain.sum_f[2, 1:]
    tally.g[b, k], tally.f_square[b, k] = chain.sum_g[1, 1:], chain.sum_g[2, 1:]
    tally.seen[b, k], tally.seen_square[b, k] = chain.seen[1, r.query_places], chain.seen[2, r.query_places]
    tally.finished[k] = runner.phase
