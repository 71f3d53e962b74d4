"""The protocol of chains that look for modes, for both kinds of model: they can be put into any state.

States are the engine's own and are handled as a whole: `take` some, `join` several. All calls are functions of their
arguments, the key of the random numbers among them, so that the same seed gives the same regions on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from definetti.samplers.draws import Batch, Draws

States = Any  # of several chains
Product = Any  # a product distribution over the sites
Key = tuple[int, ...]  # of random numbers
Inside = Callable[[np.ndarray], np.ndarray]  # features[..., P] → whether a state is in a region
SHARES = (0.25, 0.5, 0.5, 0.75, None, None)  # of another region's sites in a mixed state; None: of parts that cohere
WAYS = tuple(range(len(SHARES)))
COHERENT = tuple(way for way in WAYS if SHARES[way] is None)
SPAN = 8  # sweeps of a window in which mean conditionals are kept of every single statistic


def unfollowed() -> np.ndarray:
    """Windows of models with so few statistics that traces have them all."""
    return np.zeros((0, 0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class Walk:
    """What chains did: arrays are [sweeps, chains, ...]."""

    ends: States
    f: np.ndarray  # [chains, statistics]: means over sweeps of the question's statistics, joint events too
    features: np.ndarray  # functions of the state that the group leaves alone: orbit means, counts, log density
    fields: np.ndarray  # orbit means of the conditionals inside the sweep
    log_density: np.ndarray  # [sweeps, chains]
    log_ratio: np.ndarray  # [sweeps, chains]: log density − log q, where a product was given
    divergence: np.ndarray  # [sweeps, chains]: Σ KL(full conditional ‖ q) inside the sweep
    sites: Any = None  # what `product` makes a product of
    kept: dict[int, States] = field(default_factory=dict)  # states after so many sweeps
    windows: np.ndarray = field(default_factory=unfollowed)  # float32[sweeps // SPAN, chains, singles]: of conditionals

    @property
    def statistics(self) -> np.ndarray:
        """What a survey looks at; the features come first."""
        return np.concatenate([self.features, self.fields], axis=2)


@dataclass(frozen=True, eq=False)
class Advanced:
    """A batch of sweeps, by chain."""

    ends: States
    f: np.ndarray  # [chains, statistics]: means of F; joint events too
    g: np.ndarray  # and of G
    last: np.ndarray  # F of the ends
    square: np.ndarray | None  # means of F², where the engine has them
    features: np.ndarray  # of the ends
    counts: np.ndarray | None = None  # [sweeps, chains, counts]: those that are kept after every sweep


@dataclass(frozen=True, eq=False)
class Paths:
    """Annealed paths: row k belongs to the state from which the step from level k to level k + 1 is taken."""

    ratio: np.ndarray  # [steps, paths]: log density − log q, of what is possible
    broken: np.ndarray  # [steps, paths]: groundings or factors that are violated
    features: np.ndarray  # [paths, features] of the states at the upper end


class Walkers(Protocol):
    """Chains of single-site Gibbs sampling on one model."""

    sites: int  # drawn in a sweep
    work: int  # of a sweep of one chain, counted in updates of a simple model
    hard: bool  # something is impossible
    weighs: bool  # log densities are followed, and there are products and paths: regions can be weighed
    singles: int  # statistics that are of one orbit
    mirrored: bool  # a run's means are averages over mirror images, which may lie in several regions
    log_copies: float  # the logarithm of the order of the group; inf where it is not known
    log_constant: float  # a large one of the model, beside which small weights are lost: log densities leave it out
    counted: Sequence[tuple[int, int]]  # (statistic, size): counts whose values are kept are so many times these

    def starts(self, key: Key, most: int, climbs: int) -> States:
        """Legal states from all over the place, each moved by a random element of the group; `climbs`: sweeps of single
        chains that may go into ascents."""
        ...

    def count(self, states: States) -> int: ...

    def take(self, states: States, chains: Sequence[int] | np.ndarray) -> States: ...

    def join(self, parts: Sequence[States]) -> States: ...

    def walk(
        self, states: States, sweeps: int, key: Key, product: Product | None = None, keep: Sequence[int] = ()
    ) -> Walk:
        """So many sweeps of every chain, each in an order that is as likely as its reverse; `keep`: the states after
        so many sweeps are wanted."""
        ...

    def advance(self, states: States, sweeps: int, key: Key) -> Advanced:
        """The same as `walk`, faster, with sums instead of traces."""
        ...

    def statistics_of(self, states: States) -> np.ndarray:
        """[chains, statistics]: F of states."""
        ...

    def product(self, parts: Sequence[tuple[Walk, np.ndarray]]) -> Product:
        """The product of the mean full conditionals of each orbit, over some chains (bool[chains]) of walks."""
        ...

    def entropy(self, conditionals: np.ndarray) -> float:
        """Of the product distribution that has these orbit means."""
        ...

    def site_product(self, state: States, sweeps: int, key: Key) -> tuple[Product, States] | None:
        """The same of the single sites of one chain, and where it ended; None where that would be too large."""
        ...

    def draw(self, product: Product, count: int, key: Key) -> States: ...

    def paths(self, states: States, product: Product, levels: np.ndarray, upwards: bool, key: Key) -> Paths:
        """From draws of the product up to level 1, or from states of the model down; levels[0] = 0, levels[-1] = 1."""
        ...

    def arrived(self, sampling: Any) -> tuple[np.ndarray, np.ndarray]:
        """(features[arrivals, …], which features these are) of the states that ended round trips of a ladder."""
        ...

    def seen(self, means: np.ndarray) -> np.ndarray:
        """The first features of states, or of what is between them, from F [singles, …]: the same, or projections."""
        ...

    def images(self, states: States, key: Key) -> States:
        """Each state moved by a random element of the group."""
        ...

    def as_starts(self, states: States, chains: int) -> Any:
        """Starts of a run of so many chains (`Plan.starts`)."""
        ...

    def draws(self, batches: Sequence[Batch], chains: int) -> Draws:
        """What a run would have left behind."""
        ...

    def hybrids(self, a: States, b: States, key: Key, ways: Sequence[int] = WAYS) -> States:
        """States made of parts of those of two regions, in turn in each of these ways (numbers of `SHARES`)."""
        ...

    def corners(self, base: States, a: States, b: States, key: Key) -> States:
        """`a` with what `b` has wherever `b` differs from `base`: if two parts of a model are bistable, each by itself,
        and `a` and `b` differ from `base` in one of them each, this differs in both."""
        ...


def window_means(conditionals: np.ndarray) -> np.ndarray:
    """float32[sweeps // SPAN, ...] of [sweeps, ...]."""
    whole = conditionals[: len(conditionals) // SPAN * SPAN]
    return whole.reshape(-1, SPAN, *whole.shape[1:]).mean(axis=1, dtype=np.float32)


NOT_WEIGHED = "a sampler that was asked for by name does not weigh them"
STEEPNESS = 16.0  # a violation costs so much times the level, below level 1


def penalties(levels: np.ndarray) -> np.ndarray:
    return np.where(levels >= 1.0, np.inf, STEEPNESS * levels)
