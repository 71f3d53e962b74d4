"""Orbital Markov chains (Niepert, 2012): after every sweep of another sampler a random symmetry moves the state.

With the orbit estimator they add nothing (the orbit mean does not see the move); they are for draws that leave the
program as draws. `OrbitalMetropolis` proposes moves by the symmetries of a *more symmetric* model and accepts them by
the true density, so that the true distribution is preserved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from definetti.errors import ModelError
from definetti.samplers.gibbs import Gibbs

if TYPE_CHECKING:
    import numpy as np

    from definetti.model.graph.factors import FactorGraph
    from definetti.samplers.graph.lanes import Engine, Orders, Slots
    from definetti.samplers.logic.queries import Asked
    from definetti.samplers.protocol import Plan, Sampling

KINDS = ("auto", "literals", "variables")


class _Wrapped:
    """What an orbital sampler takes over from the one that it wraps."""

    inner: Any
    symmetries: str
    outer: ClassVar[str]
    single_site = conditionals = False  # the state at a sweep's end is not the one that its updates drew

    @property
    def name(self) -> str:
        """`orbital`, or `orbital:mcsat` where it does not wrap Gibbs sampling."""
        return self.outer if self.inner.single_site else f"{self.outer}:{self.inner.name}"

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.inner.kinds

    @property
    def scan(self) -> str | None:
        return self.inner.scan

    @property
    def visits_once(self) -> bool:
        return bool(getattr(self.inner, "visits_once", True))

    @property
    def warms_up(self) -> bool:
        return self.inner.warms_up

    def alone(self, model: FactorGraph) -> np.ndarray:
        return self.inner.alone(model)

    def orders(self, sites: np.ndarray, seed: np.random.SeedSequence, orbit_of: np.ndarray | None = None) -> Orders:
        return self.inner.orders(sites, seed, orbit_of)

    def _check(self) -> None:
        if isinstance(self.inner, _Wrapped) or not hasattr(self.inner, "kinds"):
            raise ModelError(f"an orbital chain wraps a sampler such as dft.Gibbs(), got {self.inner!r}")
        if not self.inner.warms_up:
            raise ModelError(f"the draws of {self.inner.name!r} are independent: there is nothing to move")
        if self.symmetries not in KINDS:
            raise ModelError(f"symmetries {self.symmetries!r} are not known; choose one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Orbital(_Wrapped):
    """Another sampler, and after each of its sweeps a random element of the group of symmetries.

    Parameters
    ----------
    inner : sampler
        What to wrap.
    symmetries : {"auto", "literals", "variables"}
        Of a factor graph; Markov logic is moved by permutations of constants that preserve the evidence.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 2]]) for i in range(4)])
    >>> dft.sample(ring, sampler=dft.Orbital(dft.Gibbs()), chains=2, draws=10, seed=7).sampler
    'orbital'
    """

    inner: Any = field(default_factory=Gibbs)
    symmetries: str = "auto"

    outer = "orbital"

    def __post_init__(self) -> None:
        self._check()

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        from definetti.samplers.graph.orbital import build

        return build(model, self.inner.engine(model, slots), self.symmetries)

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        from definetti.samplers.logic.orbital import Renamings, move_after_sweeps

        inner = getattr(self.inner, "dense_sampling", self.inner.logic_sampling)  # whole states are renamed
        return move_after_sweeps(inner(asked, plan), Renamings(asked.group, plan.seed))


@dataclass(frozen=True)
class OrbitalMetropolis(_Wrapped):
    """Another sampler, and after each of its sweeps a proposal by a symmetry of a more symmetric model.

    Parameters
    ----------
    inner : sampler
        What to wrap.
    tolerance : float
        Logarithms of table entries, or weights of formulas, that round to the same multiple of it count as equal when
        symmetries are sought. Infinity drops the factors of single variables (what evidence has left of others) from
        the search; of Markov logic the evidence and soft formulas of one atom.
    symmetries : {"auto", "literals", "variables"}
        What to look for in a factor graph; constants of Markov logic are renamed.

    Examples
    --------
    >>> import definetti as dft
    >>> pair = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]]), ([0], [1.0, 1.1])])
    >>> dft.marginals(pair, sampler=dft.OrbitalMetropolis(), sweeps=10, seed=7).run["sampler"]
    'orbital-metropolis'
    """

    inner: Any = field(default_factory=Gibbs)
    tolerance: float = float("inf")
    symmetries: str = "auto"

    outer = "orbital-metropolis"

    def __post_init__(self) -> None:
        self._check()
        if not self.tolerance > 0:
            raise ModelError(f"the tolerance must be positive, got {self.tolerance!r}")

    def engine(self, model: FactorGraph, slots: Slots) -> Engine:
        from definetti.samplers.graph.orbital import build

        return build(model, self.inner.engine(model, slots), self.symmetries, self.tolerance)

    def logic_sampling(self, asked: Asked, plan: Plan) -> Sampling:
        from definetti.samplers.logic.orbital import Proposals, move_after_sweeps

        moves = Proposals(asked.group, plan.chains, plan.seed, self.tolerance)
        inner = getattr(self.inner, "dense_sampling", self.inner.logic_sampling)  # whole states are renamed
        return move_after_sweeps(inner(asked, plan), moves)
