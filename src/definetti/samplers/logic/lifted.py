"""Independent exact samples of a Markov logic network as a sampler among the others: every sweep is a fresh draw.

They come out as ordinary `Draws` (without conditionals), so estimators, error bars and reports need not know.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from definetti.model.logic.theory import Atom
from definetti.samplers.draws import Batch
from definetti.samplers.logic.mirrored import Means, with_mirror_images
from definetti.samplers.logic.queries import Asked, counter
from definetti.samplers.protocol import Plan, State
from definetti.samplers.run import Map, Run


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

    name = "lifted"
    scan = None
    kinds = ("logic",)
    single_site = conditionals = warms_up = False

    def logic_sampling(self, asked: Asked, plan: Plan) -> LiftedSampling:
        return LiftedSampling(asked, plan)


class LiftedSampling(Run):
    """The streams of one run, and how their draws are folded."""

    reports_before = False

    def __init__(self, asked: Asked, plan: Plan) -> None:
        from definetti.solvers.lifted.sampling import sampler_of

        self._sampler, self.group, self.asked = sampler_of(asked.group.model), asked.group, asked
        seeds = np.random.SeedSequence(plan.seed).spawn(plan.chains)
        self._streams = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]
        self._words = np.zeros((plan.chains, 6), np.uint64)  # the streams, when they are saved
        self._sums = np.zeros((2, plan.chains, len(asked.sizes)))  # F and F² of the batch under way
        self._updates = np.array(0)
        self._latest: list[dict[str, np.ndarray]] = [{} for _ in self._streams]
        super().__init__(plan, asked.sizes, np.zeros(0, np.int64), 1, 0)

    @property
    def updates(self) -> int:
        return int(self._updates)

    def _advance(self, run: Map, folded: int, seconds: float) -> int:
        began, done = time.perf_counter(), self._done
        while done < self._length and (done == self._done or time.perf_counter() - began <= seconds):
            for c, stream in enumerate(self._streams):
                self._latest[c] = self._sampler.draw(stream)
                if folded:
                    seen = [int(count(self._latest[c])[0]) for count in self._counters]
                    if self.asked.series:
                        self._notes["counts"][0][done, c] = [seen[k] for k in self.asked.series]
                    row = self._statistics(self._latest[c], seen)
                    self._sums[0, c] += row
                    self._sums[1, c] += row**2
            self._updates += int(self.group.sizes.sum()) * self.plan.chains
            done += 1
        return done

    def values(self) -> np.ndarray:
        names = self.group.model.predicates
        rows = [[np.asarray(state[name], dtype=bool).ravel() for name in names] for state in self._latest]
        return np.stack([np.concatenate(row) for row in rows]).view(np.uint8)

    @cached_property
    def _counters(self) -> list[Callable[[dict[str, np.ndarray]], np.ndarray]]:
        def truth(atom: Atom, at: tuple[Any, ...]) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
            return lambda state: np.asarray(state[atom.predicate][at])[..., None]

        return [counter(query, truth) for query in self.asked.counted]

    def _noted(self) -> dict[str, int]:
        return {"counts": len(self.asked.series)}

    def _lanes_of_pieces(self) -> list[int]:
        return [self.plan.chains]

    def _statistics(self, state: dict[str, np.ndarray], seen: list[int]) -> np.ndarray:
        counts = np.zeros(len(self.group.sizes))
        for name in self.group.atom_orbits:
            orbit = self.group.orbit_numbers(name, np.argwhere(state[name]))
            counts += np.bincount(orbit[orbit >= 0], minlength=len(counts))
        means = with_mirror_images(Means(counts / self.group.sizes), self.group.mirror, self.group.sizes)
        return np.append(means.f, self.asked.joint(np.array(seen, dtype=float)))

    def _harvest(self, length: int) -> Batch:
        f, square = self._sums / length
        self._sums[...] = 0.0
        return Batch(length, f, None, square=square, tally=self._tally())

    def _arrays(self) -> dict[str, np.ndarray]:
        self._words[:] = [_words(stream) for stream in self._streams]
        return {"words": self._words, "sums": self._sums, "updates": self._updates}

    def restore(self, state: State) -> None:
        super().restore(state)
        for stream, words in zip(self._streams, self._words.tolist(), strict=True):
            high, low, odd_high, odd_low, has_half, half = words
            numbers = {"state": high << 64 | low, "inc": odd_high << 64 | odd_low}
            stream.bit_generator.state = {
                "bit_generator": "PCG64", "state": numbers, "has_uint32": has_half, "uinteger": half
            }  # fmt: skip


def _words(stream: np.random.Generator) -> list[int]:
    """The state of a PCG64 generator in words of 64 bits."""
    found = stream.bit_generator.state
    state, odd = found["state"]["state"], found["state"]["inc"]
    low = (1 << 64) - 1
    return [state >> 64, state & low, odd >> 64, odd & low, found["has_uint32"], found["uinteger"]]
