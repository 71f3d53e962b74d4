"""Marginals: the answer, the same noun whether it was sampled or computed exactly (then every error bar is 0).

One `OrbitRow` per set of variables with equal marginals; `Members` says which row a variable belongs to, so that a
million variables are a handful of rows. It lives beside the models because exact solvers and estimators both make
it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from definetti.errors import Notice

Number = float | list[float] | None
FIELDS = ("probability", "mcse", "half_width", "rhat", "ess")  # of an answer, in files


@dataclass(frozen=True)
class Estimate:
    """One answer. Two values: numbers, probability = P(true) = P(value 1). More values: lists, one entry per value."""

    probability: float | list[float]
    mcse: Number = 0.0
    rhat: Number = None
    ess: Number = None
    orbit_size: int = 1
    estimator: str | None = None  # which one made it
    half_width: Number = None  # of a 95 % interval, by Student's t
    constant: bool | list[bool] = False  # no draw differed from another: R-hat and effective size do not exist

    def __repr__(self) -> str:
        return f"Estimate({show(self.probability)} ± {show(width(self))}, orbit of {self.orbit_size})"


@dataclass(frozen=True)
class OrbitRow:
    """The variables of one orbit: a name that stands for them, how many they are, and their common marginal."""

    representative: str
    size: int
    probability: float | list[float]
    mcse: Number = 0.0
    rhat: Number = None
    ess: Number = None
    estimator: str | None = None
    half_width: Number = None
    constant: bool | list[bool] = False

    def estimate(self) -> Estimate:
        how = self.estimator, self.half_width, self.constant
        return Estimate(self.probability, self.mcse, self.rhat, self.ess, self.size, *how)


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
    index: Any  # name → number, `FactorGraph.index`

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def find(self, name: str) -> int | Estimate:
        i = self.index(name)
        if self.row_of[i] >= 0:
            return int(self.row_of[i])
        return known(int(self.evidence[i]), int(self.cards[i]))


def known(value: int, card: int) -> Estimate:
    """The answer for an observed variable: 0 or 1, without error."""
    if card <= 2:
        return Estimate(float(value), 0.0, None, None, 1)
    return Estimate([float(v == value) for v in range(card)], [0.0] * card, [None] * card, [None] * card, 1)  # type: ignore[list-item]


@dataclass(frozen=True, eq=False)
class Marginals(Mapping[str, Estimate]):
    """Name or query → `Estimate`. Iterates over the queries if any were asked, else over all variables."""

    orbits: Sequence[OrbitRow]  # in the order that `members` numbers them
    members: Members
    queries: Mapping[str, Estimate] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    log_z: float | None = None
    method: str | None = None
    interrupted: bool = False

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
        if self.method is not None:
            out |= {"log_z": _finite(self.log_z), "method": self.method}
        if self.interrupted:
            out["interrupted"] = True
        return out

    def compare(self, truth: Mapping[str, Estimate]) -> Any:
        """Differences, z-scores, KL and MSE against another answer (see `definetti.model.compare`)."""
        from definetti.model.compare import compare

        return compare(self, truth)

    def __repr__(self) -> str:
        head = f"Marginals({len(self.members)} variables in {len(self.orbits)} orbits"
        worst = max((w for row in self.orbits for w in _numbers(width(row))), default=0.0)
        tail = f", exact by {self.method}" if self.method else f", largest half-width {worst:.2g}"
        doubt = "" if self.trusted else ", NOT TRUSTED: " + ", ".join(sorted({n.kind for n in self.notices if n.fails}))
        return f"{head}{tail}{doubt})"


@dataclass(frozen=True, eq=False)
class Saved(Mapping[str, Estimate]):
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


def fields(answer: Estimate | OrbitRow) -> dict[str, Any]:
    """What files say of an answer."""
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


def show(value: Number) -> str:
    """A number, or a list of numbers, with the digits that matter."""
    if isinstance(value, list):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return "–" if value is None else f"{value:.6g}"
