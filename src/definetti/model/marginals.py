"""Marginals: the answer, the same noun whether it was sampled or computed exactly (then every error bar is 0).

One `OrbitRow` per set of variables with equal marginals; `Members` says which row a variable belongs to, so that a
million variables are a handful of rows. It lives beside the models because exact solvers and estimators both make
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from definetti import show
from definetti.errors import Notice
from definetti.model.verdict import Verdict, verdict

if TYPE_CHECKING:
    from definetti.model.compare import Comparison

Number = float | list[float] | None
Z95 = NormalDist().inv_cdf(0.975)
FIELDS = ("probability", "mcse", "half_width", "rhat", "ess")  # of an answer, in files


@dataclass(frozen=True)
class Estimate(show.Shown):
    """One answer. Two values: numbers, probability = P(true) = P(value 1). More values: lists, one entry per value.

    Attributes
    ----------
    probability : float or list of float
        The estimate.
    mcse : float, list or None
        Its standard error; 0 for an exact answer.
    half_width : float, list or None
        Of a 95 % interval, by Student's t.
    rhat, ess : float, list or None
        Diagnostics of the chains.
    orbit_size : int
        How many variables share this answer.
    estimator : str or None
        The estimator that made it.
    constant : bool or list of bool
        No draw differed from another: R-hat and effective size do not exist.

    Examples
    --------
    >>> import definetti as dft
    >>> e = dft.Estimate(0.25, mcse=0.01, half_width=0.02)
    >>> e.array, e.interval
    (array([0.75, 0.25]), (0.23, 0.27))
    """

    probability: float | list[float]
    mcse: Number = 0.0
    rhat: Number = None
    ess: Number = None
    orbit_size: int = 1
    estimator: str | None = None  # which one made it
    half_width: Number = None  # of a 95 % interval, by Student's t
    constant: bool | list[bool] = False  # no draw differed from another: R-hat and effective size do not exist

    def __post_init__(self) -> None:
        _fill_width(self)

    @property
    def array(self) -> np.ndarray:
        """float64[values]: the probability of every value, also of a variable with two."""
        return np.array(
            self.probability if isinstance(self.probability, list) else [1 - self.probability, self.probability]
        )

    @property
    def interval(self) -> tuple[float, float] | tuple[np.ndarray, np.ndarray]:
        """The ends of a 95 % interval, within [0, 1]: numbers, or vectors over values where `probability` is a list.

        An exact answer is both ends of its interval; an answer without an error bar has the interval [0, 1].
        """
        half = self.half_width
        if half is None:
            half = [_width(e) for e in self.mcse] if isinstance(self.mcse, list) else _width(self.mcse)
        middle, width = np.array(self.probability), np.array(half, dtype=float)  # None: not a number
        width = np.where(np.isnan(width), 1.0, width)
        low, high = np.clip(middle - width, 0.0, 1.0), np.clip(middle + width, 0.0, 1.0)
        return (low, high) if isinstance(self.probability, list) else (float(low), float(high))

    def __repr__(self) -> str:
        value, half = show.number(self.probability, 6), show.number(width(self), 6)
        return f"Estimate({value} ± {half}, orbit of {self.orbit_size})"


@dataclass(frozen=True)
class Count(Estimate):
    """How many: the answer to `#Smokes` or `#{x,y: Friends(x,y)}`. `probability` holds the mean.

    Attributes
    ----------
    std : float or None
        The standard deviation of the count.
    distribution : list of dict
        `value` (and `to`, where values are gathered), `probability` and `half_width`, by rising value.
    probability, mcse, half_width, rhat, ess, orbit_size, estimator, constant
        As in `Estimate`, of the mean.

    Examples
    --------
    >>> import definetti as dft
    >>> coins = dft.markov_logic("Heads(coin)", domain={"coin": 2})
    >>> found = dft.exact(coins, "#Heads")["#Heads"]
    >>> found.mean, [row["probability"] for row in found.distribution]
    (1.0, [0.25, 0.5, 0.25])
    """

    std: float | None = None
    distribution: tuple[Mapping[str, Any], ...] = ()

    @property
    def mean(self) -> float:
        return self.probability  # type: ignore[return-value]

    @property
    def interval(self) -> tuple[float, float]:
        half = width(self)
        half = math.inf if half is None else float(half)  # type: ignore[arg-type]
        return max(0.0, self.mean - half), self.mean + half

    def __repr__(self) -> str:
        std = "unknown" if self.std is None else show.number(self.std, 4)
        return f"Count({show.number(self.mean, 6)} ± {show.number(width(self), 3)}, standard deviation {std})"


@dataclass(frozen=True)
class OrbitRow:
    """The variables of one orbit: a name that stands for them, how many they are, and their common marginal.

    Attributes
    ----------
    representative : str
        One of the variables.
    size : int
        Their number.
    probability, mcse, rhat, ess, estimator, half_width, constant
        As in `Estimate`.

    Examples
    --------
    >>> import definetti as dft
    >>> p = dft.exact(dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 3]])]))
    >>> [(row.representative, row.size) for row in p.orbits]
    [('X0', 2)]
    """

    representative: str
    size: int
    probability: float | list[float]
    mcse: Number = 0.0
    rhat: Number = None
    ess: Number = None
    estimator: str | None = None
    half_width: Number = None
    constant: bool | list[bool] = False

    def __post_init__(self) -> None:
        _fill_width(self)

    def estimate(self) -> Estimate:
        """The row as the answer for one of its variables."""
        how = self.estimator, self.half_width, self.constant
        return Estimate(self.probability, self.mcse, self.rhat, self.ess, self.size, *how)


def _fill_width(answer: Estimate | OrbitRow) -> None:
    """An answer without error has an interval without width."""
    exact = all(e == 0.0 for e in answer.mcse) if isinstance(answer.mcse, list) else answer.mcse == 0.0
    if answer.half_width is None and exact:
        object.__setattr__(answer, "half_width", answer.mcse)


class Members(Protocol):
    """Which row a variable belongs to. Rows of observed and forced variables do not exist: their answer is known."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[str]:
        """Every variable's name, in the model's order."""
        ...

    def find(self, name: str) -> int | Estimate:
        """The row's number, or the answer itself for an observed variable; `UnknownName` for others."""
        ...


@dataclass(frozen=True)
class Variables:
    """`Members` of a factor graph: `row_of[i]` is variable i's row, or -1 where `evidence[i]` is its observed value."""

    names: tuple[str, ...]
    row_of: np.ndarray
    evidence: np.ndarray
    cards: np.ndarray
    index: Callable[[str], int]  # `FactorGraph.index`

    @property
    def model(self) -> Any:
        """The factor graph whose `index` it is."""
        return getattr(self.index, "__self__", None)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def find(self, name: str) -> int | Estimate:
        i = self.index(name)
        if self.row_of[i] >= 0:
            return int(self.row_of[i])
        return known(int(self.evidence[i]), int(self.cards[i]))


def _width(mcse: float | None) -> float | None:
    """The half-width where only a standard error is known, and as many degrees of freedom as it needs."""
    return None if mcse is None else Z95 * mcse


def known(value: int, card: int) -> Estimate:
    """The answer for an observed variable: 0 or 1, without error."""
    if card <= 2:
        return Estimate(float(value), 0.0, None, None, 1)
    return Estimate([float(v == value) for v in range(card)], [0.0] * card, [None] * card, [None] * card, 1)  # type: ignore[list-item]


@dataclass(frozen=True, eq=False)
class Marginals(show.Shown, Mapping[str, Estimate]):
    """Name or query → `Estimate`. Iterates over the queries if any were asked, else over all variables.

    Attributes
    ----------
    orbits : sequence of OrbitRow
        One row for each set of variables with equal marginals.
    queries : mapping
        The answers to what was asked.
    run : mapping
        How the numbers came about.
    notices : tuple of Notice
        Warnings; `trusted` is False where one of them fails.
    log_z : float or None
        Of an exact answer.
    method : str or None
        The engine of an exact answer.
    interrupted : bool
        The run was ended early.
    formulas : tuple of dict
        Where they were asked for: each formula with its `weight`, its number of `groundings`, and of how many it is
        `expected` to be true, with `mcse` and `half_width`.
    trace : Trace or None
        Batch means of a sampled answer, of at most 200 orbits: what its convergence looks like.

    Examples
    --------
    >>> import definetti as dft
    >>> p = dft.exact(dft.factor_graph({"rain": 2, "wet": 2}, [(["rain", "wet"], [[9, 1], [1, 4]])]))
    >>> {name: round(e.probability, 3) for name, e in p.items()}
    {'rain': 0.333, 'wet': 0.333}
    """

    orbits: Sequence[OrbitRow]  # in the order that `members` numbers them
    members: Members
    queries: Mapping[str, Estimate] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    log_z: float | None = None
    method: str | None = None
    interrupted: bool = False
    formulas: tuple[Mapping[str, Any], ...] = ()  # expected true groundings, one row per weight
    trace: Any = field(default=None, repr=False)  # of a sampled answer: `definetti.inference.trace.Trace`

    def __getitem__(self, name: str) -> Estimate:
        if name in self.queries:
            return self.queries[name]
        found = self.members.find(name)
        return found if isinstance(found, Estimate) else self.orbits[found].estimate()

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries if self.queries else self.members)

    def __len__(self) -> int:
        return len(self.queries) if self.queries else len(self.members)

    @property
    def trusted(self) -> bool:
        """False if a diagnostic failed: the command line then exits with 1."""
        return not any(notice.fails for notice in self.notices)

    def variables(self) -> Iterator[tuple[str, Estimate]]:
        """Every variable with its answer, observed ones included."""
        for name in self.members:
            found = self.members.find(name)
            yield name, found if isinstance(found, Estimate) else self.orbits[found].estimate()

    def to_json(self, most_orbits: int | None = 10_000) -> dict[str, Any]:
        """The object of the JSON contract: orbits largest first, no NaN or infinity anywhere."""
        rows = sorted(self.orbits, key=lambda row: -row.size)
        out: dict[str, Any] = {
            "queries": {text: fields(e) | {"orbit_size": e.orbit_size} for text, e in self.queries.items()},
            "orbits": [
                {"representative": row.representative, "size": row.size} | fields(row) for row in rows[:most_orbits]
            ],
            "orbit_count": len(rows),
            "trusted": self.trusted,
            "run": dict(self.run),
            "warnings": [{"kind": n.kind, "message": n.message} for n in self.notices],
        }
        if self.method is not None and self.run.get("sampler") is None:  # asked for; by default the run says it
            out |= {"log_z": _finite(self.log_z), "method": self.method}
        if self.formulas:
            out["formulas"] = [dict(row) for row in self.formulas]
        if self.interrupted:
            out["interrupted"] = True
        return out

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the answer, its largest half-width, and what to do next: of the queries if any were asked,
        else of every orbit."""
        named = self.queries.items() if self.queries else ((row.representative, row) for row in self.orbits)
        widths = ((name, width(answer)) for name, answer in named)
        return verdict(widths, self.notices, self.method, self.run, self.interrupted)

    def compare(self, truth: Mapping[str, Estimate]) -> Comparison:
        """Differences, z-scores, KL and MSE against another answer (see `definetti.model.compare`)."""
        from definetti.model.compare import compare

        return compare(self, truth)

    def report(self, path: str | PathLike[str], *, exact: Any = None, others: Sequence[Any] = ()) -> Path:
        """Write one self-contained HTML page about this answer, compared with a truth or with other runs where they are
        given (see `definetti.report`)."""
        return show.above("pages.report").report(self, path, exact=exact, others=others)

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`, with every orbit: dicts, lists, numbers and texts."""
        return self.to_json(None)

    def to_pandas(self) -> Any:
        """A pandas DataFrame: a row per query and per variable, as in the .csv."""
        return show.above("tables").to_pandas(self)

    def to_polars(self) -> Any:
        """A polars DataFrame: a row per query and per variable, as in the .csv."""
        return show.above("tables").to_polars(self)

    def plot(self, most: int = 60, scale: str = "auto") -> Any:
        """An Altair chart of the intervals, on a linear or a logit axis (needs the extra `report`)."""
        return show.above("pages.charts").marginals_chart(self, most, scale)

    def plot_convergence(self, most: int = 20) -> Any:
        """An Altair chart of running estimates and of R-hat over time (needs the extra `report`)."""
        return show.above("pages.charts").convergence_chart(self, most)

    def __repr__(self) -> str:
        head = f"Marginals({len(self.members)} variables in {len(self.orbits)} orbits"
        worst = max((w for row in self.orbits for w in _numbers(width(row))), default=0.0)
        tail = f", exact by {self.method}" if self.method else f", largest half-width {show.number(worst, 2)}"
        doubt = "" if self.trusted else ", NOT TRUSTED: " + ", ".join(sorted({n.kind for n in self.notices if n.fails}))
        return f"{head}{tail}{doubt})"


@dataclass(frozen=True, eq=False, repr=False)
class Saved(show.Shown, Mapping[str, Estimate]):
    """An answer read from a file: what it says of each name, and the doubts that it carries."""

    estimates: Mapping[str, Estimate]
    variables: Mapping[str, int] = field(default_factory=dict)  # that a name stands for, where they are more than one
    notices: tuple[Notice, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __repr__(self) -> str:
        doubt = ", ".join(sorted({n.kind for n in self.notices if n.fails}))
        return f"Saved({len(self.estimates)} answers{', NOT TRUSTED: ' + doubt if doubt else ''})"


def fields(answer: Estimate | OrbitRow) -> dict[str, Any]:
    """What JSON says of an answer."""
    if isinstance(answer, Count):
        about = {key: _finite(width(answer) if key == "half_width" else getattr(answer, key)) for key in FIELDS[1:]}
        rows = [{k: _finite(v) if k in ("probability", "half_width") else v for k, v in row.items()}
                for row in answer.distribution]  # fmt: skip
        return {"mean": _finite(answer.mean), "std": _finite(answer.std), **about, "distribution": rows}
    return numbers_of(answer)


def numbers_of(answer: Estimate | OrbitRow) -> dict[str, Any]:
    """The same in the columns of a table; of a count the first is its mean."""
    return {key: _finite(width(answer) if key == "half_width" else getattr(answer, key)) for key in FIELDS}


def width(answer: Estimate | OrbitRow) -> Number:
    """Half the width of a 95 % interval; 0 of an answer without error."""
    if answer.half_width is not None or any(_numbers(answer.mcse)):
        return answer.half_width
    return answer.mcse


def _finite(value: Any) -> Any:
    """Null for what JSON has no number for."""
    if isinstance(value, list):
        return [_finite(v) for v in value]
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _numbers(value: Number) -> list[float]:
    values = value if isinstance(value, list) else [value]
    return [v for v in values if v is not None and math.isfinite(v)]
