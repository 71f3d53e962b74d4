"""What both kinds of model hand to `marginals`: a question, and the sampler that is to answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from definetti.errors import Notice

if TYPE_CHECKING:
    from definetti.inference.assemble import Estimated
    from definetti.inference.derived import Derived
    from definetti.inference.stopping import Look
    from definetti.model.graph.factors import FactorGraph
    from definetti.model.logic.theory import MarkovLogic
    from definetti.model.marginals import Marginals
    from definetti.modes.walkers import Walkers
    from definetti.samplers.draws import Draws
    from definetti.samplers.protocol import Plan, Sampler, Sampling

UNDECIDED = Notice(
    "note", "it could not be decided whether moves of one variable at a time reach every state; the chains are watched"
)
UNREACHED = Notice(
    "divided",
    "moves of one variable at a time do not lead from every legal state to every other: the numbers stand for the "
    "parts where the chains started",
)
SWEEPS = 2000  # that each chain keeps, unless the caller says how long
STUCK = frozenset({"not-mixed", "divided", "frozen"})  # kinds of notices


class Question(Protocol):
    """A model, what is asked of it and the group to average over."""

    @property
    def sites(self) -> int:
        """Variables or atoms that are not known."""
        ...

    def sampling(self, sampler: Any, plan: Plan, method: str) -> Sampling:
        """A run ready to start, its kernels loaded or compiled."""
        ...

    def conclude(self, draws: Draws, method: str, run: Mapping[str, Any], interrupted: bool) -> Marginals:
        """Estimates, errors and notices from the draws."""
        ...

    def walkers(self, sampler: Any) -> Walkers | None:
        """Chains that look for modes; None where the model is too large, or the sampler cannot be watched."""
        ...

    def beyond(self, draws: Draws) -> list[Notice]:
        """What is to be said of states that chains of single moves do not get to and no survey looked at."""
        ...

    def estimated(self, draws: Draws, method: str) -> Estimated:
        """Estimates and their errors."""
        ...

    def present(
        self, made: Estimated, method: str, run: Mapping[str, Any], more: Sequence[Notice], interrupted: bool
    ) -> Marginals:
        """The answer that estimates and their errors make."""
        ...

    def rows(self, means: np.ndarray) -> dict[str, Any]:
        """What the means of the statistics say of each row."""
        ...

    def measure(self, draws: Draws, method: str) -> Look:
        """The worst error of what is asked: the queries, or every row."""
        ...


@dataclass(frozen=True, eq=False)
class Formulas:
    """What is asked of a ground model beside its variables: formulas that are counted in every state."""

    variables: np.ndarray  # int64[m]: the variables of the model that the formulas speak of
    count: Callable[[np.ndarray], np.ndarray]  # int64[J, chains], from the values of these variables uint8[m, chains]
    sizes: np.ndarray  # int64[J]: how many tuples each is the mean over
    texts: tuple[str, ...]  # of the columns
    spoken: tuple[np.ndarray, ...]  # of each column: the places of its variables among `variables`
    kept: tuple[int, ...]  # columns whose values are kept after every sweep
    derived: tuple[Derived, ...]  # how answers are made; columns are numbered like `sizes`
    order: tuple[str, ...]  # of all that was asked
    notices: tuple[Notice, ...] = ()
    proved: Callable[[int, float], bool] = lambda column, value: False  # whether every legal state gives it this value

    def certain(self, evidence: np.ndarray) -> np.ndarray:
        """float64[J]: what the values of observed variables alone decide, NaN elsewhere (`evidence` is -1 there)."""
        seen = evidence[self.variables]
        known = self.count(np.maximum(seen, 0).astype(np.uint8)[:, None])[:, 0] / self.sizes
        return np.where([(seen[some] >= 0).all() for some in self.spoken], known, np.nan)

    def with_proofs(self, certain: np.ndarray, f: np.ndarray) -> np.ndarray:
        """What is certain of all statistics, these last, with what draws float64[B, C, statistics] never contradicted
        and a solver proves."""
        certain, first = certain.copy(), len(certain) - len(self.sizes)
        for k in range(first, len(certain)):
            if (
                len(f)
                and np.isnan(certain[k])
                and (f[:, :, k] == f[0, 0, k]).all()
                and self.proved(k - first, f[0, 0, k])
            ):
                certain[k] = f[0, 0, k]
        return certain


class Answer(Protocol):
    """Runs a sampler: the answer, and the seconds that are left."""

    def __call__(
        self, kernel: Any, plan: Plan, seconds: float | None, watched: bool = False
    ) -> tuple[Marginals, float]: ...


@dataclass(frozen=True, eq=False)
class Options:
    """The arguments of `marginals`; None where the caller left the choice."""

    symmetries: Any  # a group of the model, the kind of symmetries to look for, or None for none
    sampler: Any  # a name or a value
    estimator: str | None
    scan: str | None
    chains: int | None
    sweeps: int | None
    seconds: float | None
    until: float | None
    burn_in: int | None
    seed: int
    workers: int
    time_limit: float
    said: tuple[Notice, ...] = ()  # about the model, before it is asked
    formulas: bool = False  # the expected numbers of true groundings, too

    @property
    def ask_to_sample(self) -> bool:
        return any(x is not None for x in (self.estimator, self.scan, self.chains, self.sweeps, self.burn_in))


@dataclass(frozen=True, eq=False)
class Request:
    """What the caller of `marginals` wants to know, and how."""

    symmetries: Any  # a group of the model, the kind of symmetries to look for, or None for none
    sampler: Any  # None: to be chosen
    scan: str
    queries: Sequence[Any]  # texts, or queries of the ground model
    method: str  # the estimator
    seed: int
    time_limit: float  # seconds, for the search for symmetries
    formulas: Formulas | None = None  # of a ground model


@dataclass(frozen=True, eq=False)
class Ready:
    """What a run asks, of which sampler."""

    question: Question
    sampler: Any
    symmetries: str  # their kind
    chains: int  # unless the caller gives a number
    in_names_of_source: Callable[[Marginals], Marginals] = lambda answer: answer  # of a model that was grounded
    strategy: Callable[[Answer, Any, Plan, bool, float | None], Marginals] | None = None  # where `auto` may change
    draws: int | None = None  # that all chains keep together; None: whatever `SWEEPS` of each give

    def sweeps(self, chains: int) -> int:
        """That each chain keeps, unless the caller says how long."""
        return SWEEPS if self.draws is None else min(SWEEPS, -(-self.draws // chains))


def is_stuck(notices: Iterable[Notice]) -> bool:
    return any(notice.kind in STUCK for notice in notices)


def ready_for(model: FactorGraph | MarkovLogic, request: Request) -> Ready:
    """What a run asks, of which sampler; the other kind's engines are not loaded."""
    return import_module(f"definetti.inference.{model.kind}.prepare").ready(model, request)


def usable(method: str, sampler: Sampler) -> str:
    """The estimator, or `orbit` for samplers that are not single-site Gibbs sampling alone: they have no full
    conditionals, or such that differ from the states by moves of another kind, which the choice of `auto` is not made
    for."""
    if sampler.single_site or method == "standard" or (method != "auto" and sampler.conditionals):
        return method
    return "orbit"


def fallen_back(method: str, used: str, kernel: Sampler) -> list[Notice]:
    """For those who asked for an estimator by name and get another."""
    if method in ("auto", used):
        return []
    text = f"{kernel.name} has no full conditionals for the estimator {method!r}; {used!r} was used"
    return [Notice("fallback", text)]
