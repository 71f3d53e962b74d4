"""`quotient`: a sampler on a small model as a Markov chain, and its quotient by the symmetries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show
from definetti.errors import ModelError, Notice, query_list
from definetti.lumping import estimator_errors as errors
from definetti.lumping.estimator_errors import Chain
from definetti.lumping.mixing import distances, grid, mixing_time
from definetti.lumping.partition import Lumpability, Partition, commuting_error, lumpability, lumped_matrix, partition
from definetti.lumping.source import Source, source_of
from definetti.lumping.spectrum import is_reversible, mixing_bounds, spectral_gap
from definetti.lumping.state_space import StateSpace, state_space
from definetti.lumping.transitions import MOST_SWEPT, Transitions, check_sampler, most_states, transitions
from definetti.model.checked_input import REAL
from definetti.samplers.registry import named

if TYPE_CHECKING:
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.samplers.protocol import Sampler
    from definetti.symmetry.protocol import Symmetries

LUMPABLE = 1e-10  # violations up to this are rounding
VERIFIED = 64  # states up to which the matrix is recomputed by following every branch of the kernel's own source
LATEST = 2_000  # steps of the curve of a chain that is too large for strides


@dataclass(frozen=True)
class EstimatorErrors:
    """What the standard and the orbit estimator of one query are worth, exactly.

    Attributes
    ----------
    probability : float
        What is estimated.
    strict : bool
        Theorem 2: whether some possible state is neither all true nor all false on the query's orbit. Then, and only
        then, the orbit estimator has the smaller error.
    variance : tuple of float
        Of one independent draw: standard, orbit. It is their mean squared error too.
    chain_variance : tuple of float or None
        Asymptotic variance per step of the chain; None where the chain does not reach every state.
    mse, worst_mse : tuple of float
        Mean squared error of `draws` steps after `burn_in`: in stationarity, and from the worst start.
    """

    probability: float
    strict: bool
    variance: tuple[float, float]
    chain_variance: tuple[float, float] | None
    mse: tuple[float, float]
    worst_mse: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Curve:
    """Over the burn-in T: distances to stationarity, Theorem 3's bound, and the true bias of each query from its worst
    start."""

    burn_in: list[int]
    distance: np.ndarray | None  # of the chain; None where it was not computed
    bound: np.ndarray  # that of the quotient, or an upper bound by its gap
    standard: np.ndarray  # float64[times, queries]
    orbit: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class QuotientChain(show.Shown):
    """A chain on the states of a model, and its quotient on the orbits of states; `quotient` makes it.

    Attributes
    ----------
    space : StateSpace
        The states and their probabilities.
    transitions : Transitions
        The transition matrix, and what a step is.
    partition : Partition
        The orbit of each state.
    chain, quotient : Chain
        Both chains with their stationary distributions.
    lumpability : Lumpability
        The largest violations.
    gap, quotient_gap : float
        Spectral gaps.
    tau, quotient_tau : int or None
        Mixing times, None beyond 4,096 states.
    queries : dict
        Query → `EstimatorErrors`.

    Examples
    --------
    >>> import definetti as dft
    >>> bond = [[-1, 1], [1, -1]]
    >>> pairs = [([i, j], bond) for i in range(8) for j in range(i)]
    >>> found = dft.quotient(dft.factor_graph([2] * 8, pairs, log=True), symmetries="variables")
    >>> found
    QuotientChain(256 states, 9 orbits, mixing time 108 → 10)
    """

    space: StateSpace
    transitions: Transitions
    partition: Partition
    chain: Chain
    quotient: Chain
    lumpability: Lumpability
    gap: float
    quotient_gap: float
    epsilon: float
    tau: int | None
    quotient_tau: int | None
    starts: np.ndarray  # of the chain's mixing time: one of each orbit, or all where the chain does not commute
    source: Source
    sampler: Any
    draws: int
    notices: tuple[Notice, ...] = ()
    verified: float | None = None  # the largest difference from the kernel's own source, where that was followed

    @property
    def states(self) -> int:
        """The number of states of the chain."""
        return len(self.space)

    @property
    def orbits(self) -> int:
        """The number of orbits of states, the states of the quotient."""
        return len(self.partition)

    @property
    def lumpable(self) -> bool:
        """Whether the quotient is a Markov chain."""
        return self.lumpability.ordinary < LUMPABLE

    @property
    def reversible(self) -> bool:
        """Whether the chain satisfies detailed balance."""
        return self.chain.reversible

    @property
    def burn_in(self) -> int:
        """The steps dropped in `queries`: the quotient's mixing time, where it is known."""
        return self.quotient_tau or 0

    @property
    def tau_bounds(self) -> tuple[float, float] | None:
        """By the gap, of reversible chains."""
        return mixing_bounds(self.gap, self.chain.stationary, self.epsilon) if self.chain.reversible else None

    @property
    def quotient_tau_bounds(self) -> tuple[float, float] | None:
        """Bounds on the quotient's mixing time from its spectral gap; None where it is not reversible."""
        known = self.quotient.reversible
        return mixing_bounds(self.quotient_gap, self.quotient.stationary, self.epsilon) if known else None

    @cached_property
    def indicators(self) -> np.ndarray:
        """float64[S, queries]: f."""
        columns = [self.space.holds(query) for query in self.source.queries]
        return np.stack(columns, axis=1).astype(float) if columns else np.zeros((self.states, 0))

    @cached_property
    def orbit_means(self) -> np.ndarray:
        """float64[K, queries]: F of each orbit."""
        return self.partition.mean(self.indicators)

    @property
    def _orbit_chain(self) -> tuple[Chain, np.ndarray]:
        """Where F moves: on the quotient, or on all states where that is no chain."""
        if self.lumpable:
            return self.quotient, self.orbit_means
        return self.chain, self.orbit_means[self.partition.orbit_of]

    @cached_property
    def queries(self) -> dict[str, EstimatorErrors]:
        """What both estimators are worth, for each query or for a variable of each orbit."""
        if not self.source.queries:
            return {}
        orbit_chain, means = self._orbit_chain
        pairs = ((self.chain, self.indicators), (orbit_chain, means))
        variance = [errors.draw_variance(*pair) for pair in pairs]
        connected = self.gap > 0
        spread = [errors.asymptotic_variance(*pair) for pair in pairs] if connected else None
        found = [errors.mean_squared_error(*pair, self.draws, self.burn_in) for pair in pairs]
        mixed: Any = ((self.orbit_means > 1e-12) & (self.orbit_means < 1 - 1e-12)).any(axis=0)
        truth = self.chain.stationary @ self.indicators
        out = {}
        for q, query in enumerate(self.source.queries):
            two = [(float(a[q]), float(b[q])) for a, b in (variance, *zip(*found, strict=True))]
            chain = None if spread is None else (float(spread[0][q]), float(spread[1][q]))
            out[query.text] = EstimatorErrors(float(truth[q]), bool(mixed[q]), two[0], chain, two[1], two[2])
        return out

    @cached_property
    def curve(self) -> Curve:
        """Distances, bound and bias over the burn-in, to where the chain is ten times closer than ε."""
        last = self._last
        times = grid(last)
        distance = distances(self.chain.matrix, self.chain.stationary, self.starts, times)
        every = np.arange(self.orbits)
        bound = distances(self.quotient.matrix, self.quotient.stationary, every, times) if self.lumpable else distance
        if bound is None:
            bound = _by_gap(self.quotient if self.lumpable else self.chain, self.quotient_gap, times)
        orbit_chain, means = self._orbit_chain
        standard = errors.worst_bias(self.chain, self.indicators, times)
        return Curve(times, distance, bound, standard, errors.worst_bias(orbit_chain, means, times))

    @property
    def _last(self) -> int:
        """Where the curve ends."""
        if self.tau is not None:
            last = int(np.ceil(self.tau * np.log(10.0 / self.epsilon) / np.log(1.0 / self.epsilon)))
        else:
            last = int(np.log(10.0 / self.epsilon) / max(self.gap, 1e-9))
        return min(max(last, 1), LATEST if self.states > MOST_SWEPT // 4 else 10**9)

    def to_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        curve, names = self.curve, [query.text for query in self.source.queries]
        return {
            "states": self.states,
            "orbits": self.orbits,
            "lumpable": self.lumpable,
            "lumpability_violation": self.lumpability.ordinary,
            "exact_lumpability_violation": self.lumpability.exact,
            "stationary_violation": self.lumpability.stationary,
            "gap": self.gap,
            "quotient_gap": self.quotient_gap,
            "epsilon": self.epsilon,
            "tau": self.tau,
            "quotient_tau": self.quotient_tau,
            "tau_bounds": self.tau_bounds,
            "quotient_tau_bounds": self.quotient_tau_bounds,
            "reversible": self.chain.reversible,
            "quotient_reversible": self.quotient.reversible,
            "step": self.transitions.step,
            "updates_per_step": self.transitions.updates,
            "sampler": self.sampler.name,
            "scan": self.sampler.scan,
            "symmetries": self.source.group.kind,
            "verified": self.verified,
            "draws": self.draws,
            "burn_in": self.burn_in,
            "queries": {text: _query_json(found) for text, found in self.queries.items()},
            "bias": {
                "burn_in": curve.burn_in,
                "distance": None if curve.distance is None else curve.distance.tolist(),
                "bound": curve.bound.tolist(),
                "standard": dict(zip(names, curve.standard.T.tolist(), strict=True)),
                "orbit": dict(zip(names, curve.orbit.T.tolist(), strict=True)),
            },
            "warnings": [{"kind": n.kind, "message": n.message} for n in self.notices],
        }

    def plot(self) -> Any:
        """An Altair chart: the state graph, the lumped graph and their distances to stationarity (needs the extra
        `report`)."""
        return show.above("pages.quotient_figure").quotient_figure(self)

    def __repr__(self) -> str:
        sizes = f"{show.count(self.states)} states, {show.count(self.orbits)} orbits"
        if self.tau is None or self.quotient_tau is None:
            return f"QuotientChain({sizes}, gap {self.gap:.3g} → {self.quotient_gap:.3g})"
        return f"QuotientChain({sizes}, mixing time {self.tau} → {self.quotient_tau})"


def _query_json(found: EstimatorErrors) -> dict[str, Any]:
    def both(pair: tuple[float, float] | None) -> dict[str, float] | None:
        return None if pair is None else {"standard": pair[0], "orbit": pair[1]}

    return {
        "probability": found.probability,
        "strict": found.strict,
        "variance": both(found.variance),
        "chain_variance": both(found.chain_variance),
        "mse": both(found.mse),
        "worst_mse": both(found.worst_mse),
    }


def _by_gap(chain: Chain, gap: float, times: Sequence[int]) -> np.ndarray:
    """Of a reversible chain: half of √(1/min π − 1) (1 − gap)^t bounds the distance from every start."""
    most = 0.5 * np.sqrt(1.0 / chain.stationary.min() - 1.0)
    return np.minimum(1.0, most * (1.0 - gap) ** np.array(times, dtype=float))


# --- the verb ----------------------------------------------------------------------------------------------------


def quotient(
    model: FactorGraph | MarkovLogic,
    queries: str | Sequence[str] = (),
    *,
    sampler: str | Sampler = "gibbs",
    scan: str = "random",
    symmetries: str | Symmetries | None = "auto",
    epsilon: float = 0.01,
    draws: int = 1000,
    time_limit: float = 10.0,
) -> QuotientChain:
    """A sampler on a small model as a Markov chain, its quotient by the symmetries, and what both estimators gain.

    Parameters
    ----------
    model : FactorGraph or MarkovLogic
        Of at most 65,536 states (random scan) or 4,096 (sweeps). States of Markov logic are those of the
        ground model; Gibbs sampling of it is the kernel that never grounds.
    queries : str or sequence of str
        Variables, atoms or formulas; none means one variable of each orbit.
    sampler : str or sampler
        "gibbs", "blocks" or "swendsen-wang". The branches of others cannot be listed.
    scan : {"random", "symmetric", "fixed"}
        With "random" a step is an update of one site, else a sweep.
    symmetries : {"auto", "none", "variables", "literals", "renaming"}, group or None
        "auto" means permutations of literals of a factor graph and of constants of a Markov logic network. "renaming"
        adds the free permutations of pendant and isolated atoms, which `marginals` uses too.
    epsilon : float
        The distance to stationarity of the mixing times.
    draws : int
        How many draws the mean squared errors are of.
    time_limit : float
        Seconds for the search for symmetries.

    Returns
    -------
    QuotientChain
        Sizes, lumpability, gaps, mixing times, `queries` and `curve`.

    Raises
    ------
    TooLarge
        For models with more states.
    ModelError
        For samplers without a transition matrix.

    Examples
    --------
    >>> import definetti as dft
    >>> ring = dft.factor_graph([2] * 4, [([i, (i + 1) % 4], [[3, 1], [1, 3]]) for i in range(4)])
    >>> found = dft.quotient(ring)
    >>> found.states, found.orbits, found.lumpable, found.reversible
    (16, 4, True, True)
    """
    if not (isinstance(epsilon, REAL) and 0.0 < epsilon < 1.0):
        raise ModelError(f"epsilon is a distance between 0 and 1, got {epsilon!r}")
    if not (isinstance(draws, int) and draws >= 1):
        raise ModelError(f"draws is a whole number from 1 on, got {draws!r}")
    kernel: Any = named(sampler, _usual_scan(sampler, scan))
    check_sampler(kernel)
    asked = query_list(queries)
    if getattr(model, "kind", None) == "logic":
        model.require_weights()  # type: ignore[union-attr]
    source = source_of(model, symmetries, asked, time_limit, most_states(kernel))
    space = state_space(source.graph, most_states(kernel))
    orders = None if kernel.name == "swendsen-wang" else source.orders(kernel.scan)
    step = transitions(space, kernel, orders, lambda: source.site_moves(space))
    parts = partition(space, source.elements)
    chain = Chain(step.matrix, space.probability, is_reversible(step.matrix, space.probability))
    small = lumped_matrix(step.matrix, parts)
    mass = parts.total(space.probability)
    folded = Chain(small, mass, is_reversible(small, mass)) if len(parts) < len(space) else chain
    violations = lumpability(step.matrix, space.probability, parts)
    gap = spectral_gap(chain.matrix, chain.stationary, chain.reversible)
    quotient_gap = gap if folded is chain else spectral_gap(folded.matrix, folded.stationary, folded.reversible)
    commutes = commuting_error(step.matrix, parts.images) < LUMPABLE
    starts = parts.first if commutes else np.arange(len(space))
    tau = quotient_tau = None
    if len(space) <= MOST_SWEPT:
        tau = mixing_time(chain.matrix, chain.stationary, starts, epsilon, gap) if gap > 0 else None
        quotient_tau = tau
        if folded is not chain:
            every = np.arange(len(parts))
            known = quotient_gap > 0
            quotient_tau = mixing_time(folded.matrix, mass, every, epsilon, quotient_gap) if known else None
    notices = (*source.notices, *_notices(violations, gap, kernel))
    return QuotientChain(
        space, step, parts, chain, folded, violations, gap, quotient_gap, epsilon, tau, quotient_tau, starts, source,
        kernel, draws, notices, _verified(space, kernel, step, source),
    )  # fmt: skip


def _usual_scan(sampler: Any, scan: str) -> str:
    """Blocks have no random scan: by name they sweep."""
    return "symmetric" if sampler == "blocks" and scan == "random" else scan


def _notices(violations: Lumpability, gap: float, sampler: Any) -> list[Notice]:
    out = []
    if violations.ordinary >= LUMPABLE:
        text = f"the {sampler.scan} scan does not commute with the symmetries: the chain cannot be lumped (violation "
        cure = "the quotient is an average and promises nothing; use the random or the symmetric scan"
        out.append(Notice("not-lumpable", f"{text}{violations.ordinary:.2g}); {cure}"))
    if gap <= 0:
        text = "the chain does not lead from every legal state to every other: it never mixes; use blocks"
        out.append(Notice("divided", text))
    return out


def _verified(space: StateSpace, sampler: Any, step: Transitions, source: Source) -> float | None:
    """The largest difference of a small Gibbs chain from the kernel's own source, every branch followed."""
    if sampler.name != "gibbs" or len(space) > VERIFIED or not len(space.model.free):
        return None
    worst = 0.0
    for sites in _followed(space, source):
        if sampler.scan == "random":
            mean = np.mean(list(sites.values()), axis=0)
            worst = max(worst, float(np.abs(mean - step.matrix.toarray()).max()))
        else:
            worst = max([worst, *(float(np.abs(sites[i] - m.toarray()).max()) for i, m in step.sites.items())])
    if worst > 1e-9:
        raise AssertionError(
            f"the transition matrix differs by {worst:.2g} from the kernel's own source; please report"
        )
    return worst


def _followed(space: StateSpace, source: Source) -> Iterator[dict[int, np.ndarray]]:
    """The moves of all sites by each kernel that may run the chain."""
    if source.group.model.kind == "logic":
        from definetti.lumping.logic_branches import followed_sites

        yield followed_sites(space, source.group.model)
        return
    from definetti.lumping.branches import KERNELS, Target, runner, site_matrices

    target = Target(space.model, space.states.astype(np.int64), space.probability)
    for kernel in KERNELS:
        if (run := runner(target, kernel)) is not None:
            yield dict(zip(space.model.free.tolist(), site_matrices(target, run), strict=True))
