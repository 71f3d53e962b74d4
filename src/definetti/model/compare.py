"""compare: how far two answers are apart, and whether their error bars explain it.

Variables that share an orbit in both answers are one comparison: their numbers are the same numbers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from definetti import show
from definetti.errors import ModelError, Notice, UnknownName
from definetti.model.marginals import Z95, Estimate, Marginals, Saved

FLOOR = 1e-9  # stands for a probability of 0 in the denominator of a Kullback-Leibler divergence
SAME = 1e-9  # two numbers without error that are this close are equal
Bar = tuple[float | None, float | None]  # error and half-width; None: not known
FALSE_ALARM = 1e-4  # how often two answers from correct programs are said to disagree, all rows together


@dataclass(frozen=True)
class Row:
    """One comparison. `variables` share it; `z` is that of the value with the largest |z|, None if there is none."""

    name: str
    variables: int
    a: float | list[float]
    b: float | list[float]
    difference: float  # of the value that differs most
    z: float | None  # infinite: two numbers without error that differ
    kl_ab: float
    kl_ba: float
    squared: float  # mean over values
    tests: int  # numbers with a z-score


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(show.Shown):
    """How far two answers are apart. Averages are over variables (and queries), largest values over rows.

    Attributes
    ----------
    agrees : bool
        Whether the error bars explain the differences.
    verdict : str
        The same in words.
    kl_ab, kl_ba, mse : float
        Mean Kullback-Leibler divergences and squared difference.
    largest, strongest : Row
        The largest difference, and the largest |z| (None where no number could be judged).
    rows : tuple of Row
        Every comparison; `worst` are the ten that differ most.
    threshold : float or None
        The largest |z| that correct answers reach, but for a chance of 1e-4.
    notices : tuple of Notice
        Why one of the answers is not to be trusted, whatever the numbers look like.

    Examples
    --------
    >>> import definetti as dft
    >>> model = dft.factor_graph([2, 2], [([0, 1], [[3, 1], [1, 2]])])
    >>> dft.exact(model).compare(dft.exact(model, symmetries=None)).agrees
    True
    """

    names: tuple[str, ...]  # what was compared
    rows: tuple[Row, ...]
    kl_ab: float  # KL(a‖b), mean
    kl_ba: float
    mse: float
    largest: Row  # the largest absolute difference
    strongest: Row | None  # the largest |z|
    threshold: float | None  # for |z|
    agrees: bool
    verdict: str
    notices: tuple[Notice, ...] = ()  # why one of the answers is not to be trusted, whatever the numbers look like

    @property
    def worst(self) -> tuple[Row, ...]:
        """The ten rows that differ most: by |z|, then by difference."""
        return tuple(sorted(self.rows, key=lambda row: (-abs(row.z or 0.0), -abs(row.difference)))[:10])

    def to_json(self) -> dict[str, Any]:
        """What `definetti compare --json` prints, as plain numbers and text."""
        strongest = self.strongest
        return {
            "compared": len(self.names),
            "rows": len(self.rows),
            "kl_ab": self.kl_ab,
            "kl_ba": self.kl_ba,
            "mse": self.mse,
            "largest_difference": {"name": self.largest.name, "difference": self.largest.difference},
            "largest_z": {"name": strongest.name, "z": _finite(strongest.z)} if strongest else None,
            "threshold": self.threshold,
            "false_alarm": FALSE_ALARM,
            "agrees": self.agrees,
            "verdict": self.verdict,
            "warnings": [{"kind": n.kind, "message": n.message} for n in self.notices],
            "worst": [
                {"name": r.name, "variables": r.variables, "a": r.a, "b": r.b, "difference": r.difference}
                | {"z": _finite(r.z)}
                for r in self.worst
            ],
        }

    def __repr__(self) -> str:
        names = [_short(row.name) for row in self.worst]
        width = max(len(name) for name in names)
        kl_ab, kl_ba, mse = (show.number(value, 3) for value in (self.kl_ab, self.kl_ba, self.mse))
        lines = [
            f"Comparison({len(self.names)} names, KL {kl_ab} and {kl_ba}, MSE {mse})",
            self.verdict,
            *(f"NOT TRUSTED: {notice.kind}: {notice.message}" for notice in self.notices),
            f"{'':{width}}  {'a':>12}  {'b':>12}  {'difference':>11}  {'z':>8}",
        ]
        for name, row in zip(names, self.worst, strict=True):
            z = "–" if row.z is None else "∞" if math.isinf(row.z) else f"{row.z:.2f}"
            a, b, difference = show.number(row.a, 6), show.number(row.b, 6), show.number(row.difference, 3)
            lines.append(f"{name:{width}}  {a:>12}  {b:>12}  {difference:>11}  {z:>8}")
        return "\n".join(lines)


def compare(a: Mapping[str, Estimate], b: Mapping[str, Estimate]) -> Comparison:
    """Compare the names of `a` that `b` has too (variables observed alike in both are left out).

    z = difference / sqrt(mcse_a² + mcse_b²), made smaller where the errors have few degrees of freedom. A number
    without error bar (mcse None) of another program counts as exact where the other one has an error; where neither
    has, or where a run of ours was too short to have one, there is no z. Two exact numbers that differ by more than
    1e-9 have an infinite z. The two agree if no |z| passes a threshold that correct answers pass with a chance of
    1e-4 in all (Bonferroni over the distinct rows and values).
    """
    if not isinstance(b, Mapping):
        raise ModelError(f"an answer is compared with another, as `exact` or `load` give it; got {b!r:.60}")
    names: list[str] = []
    alike = 0
    found: dict[Any, tuple[str, int, Estimate, Estimate]] = {}
    for name, key_a, one in _answers(a):
        other = _look_up(b, name)
        if other is None:
            continue
        key_b, two = other
        if key_a is None and key_b is None and one.probability == two.probability:
            alike += 1
            continue
        names.append(name)
        key = (name if key_a is None else key_a, name if key_b is None else key_b)
        first, count, one, two = found.get(key, (name, 0, one, two))
        found[key] = (first, count + max(_stands_for(a, name), _stands_for(b, name)), one, two)
    if not found:
        why = "all they share is observed" if alike else f"the second has none of the {len(a)} names of the first"
        raise ModelError(f"nothing to compare in these two answers: {why}")
    too_short = _too_short(a), _too_short(b)
    rows = tuple(_row(*entry, too_short) for entry in found.values())
    return _summary(tuple(names), rows, _doubts(a, b), any(too_short))


def _too_short(answer: Mapping[str, Estimate]) -> bool:
    """Whether errors that are missing are those of a run that was too short, and not another program's."""
    return isinstance(answer, Marginals | Saved) and any(notice.kind == "few-samples" for notice in answer.notices)


def _doubts(*answers: Mapping[str, Estimate]) -> tuple[Notice, ...]:
    """The diagnostics that failed in either answer."""
    return tuple(
        Notice(notice.kind, f"the {which} answer: {notice.message}")
        for which, answer in zip(("first", "second"), answers, strict=True)
        if isinstance(answer, Marginals | Saved)
        for notice in answer.notices
        if notice.fails
    )


def _stands_for(answer: Mapping[str, Estimate], name: str) -> int:
    """Variables: a file with one row per orbit has their number beside its name. Where the orbits of two files differ
    the larger one covers the smaller."""
    return answer.variables.get(name, 1) if isinstance(answer, Saved) else 1


def _answers(answer: Mapping[str, Estimate]) -> Iterator[tuple[str, Any, Estimate]]:
    """(name, what distinguishes its row, or None for a known answer, estimate): queries first, then variables."""
    if not isinstance(answer, Marginals):
        for name, estimate in answer.items():
            yield name, name, estimate
        return
    for text, estimate in answer.queries.items():
        yield text, _row_key(answer, text), estimate
    for name in answer.members:
        if name not in answer.queries:
            key = _row_key(answer, name)
            yield name, key, answer[name]


def _row_key(answer: Marginals, name: str) -> Any:
    try:
        row = answer.members.find(name)
    except UnknownName:
        return name  # a query over several variables
    return None if isinstance(row, Estimate) else row


def _look_up(answer: Mapping[str, Estimate], name: str) -> tuple[Any, Estimate] | None:
    try:
        estimate = answer[name]
    except (KeyError, UnknownName):
        return None
    return (_row_key(answer, name) if isinstance(answer, Marginals) else name), estimate


# --- numbers -------------------------------------------------------------------------------------------------


def _row(name: str, variables: int, a: Estimate, b: Estimate, too_short: tuple[bool, bool] = (False, False)) -> Row:
    p, q = _vector(a.probability), _vector(b.probability)
    if len(p) != len(q):
        raise ModelError(f"{name} has {len(p)} values in the first answer and {len(q)} in the second")
    single = not isinstance(a.probability, list)
    values = [1] if single else range(len(p))
    differences = [p[v] - q[v] for v in values]
    bars_a, bars_b = _error_bars(a, len(differences)), _error_bars(b, len(differences))
    zs = [_z(*parts, too_short) for parts in zip(differences, bars_a, bars_b, strict=True)]
    scores = [z for z in zs if z is not None]
    return Row(
        name,
        variables,
        a.probability,
        b.probability,
        max(differences, key=abs),
        max(scores, key=abs, default=None),
        _divergence(p, q),
        _divergence(q, p),
        sum(d * d for d in differences) / len(differences),
        len(scores),
    )


def _vector(probability: float | list[float]) -> list[float]:
    return list(probability) if isinstance(probability, list) else [1.0 - probability, probability]


def _error_bars(answer: Estimate, count: int) -> list[Bar]:
    """(error, half-width) of each value; a half-width alone is that of a normal error."""
    errors, widths = (x if isinstance(x, list) else [x] * count for x in (answer.mcse, answer.half_width))
    return [(e or (w / Z95 if w else e), w) for e, w in zip(errors, widths, strict=True)]


def _z(difference: float, a: Bar, b: Bar, too_short: tuple[bool, bool]) -> float | None:
    errors = a[0], b[0]
    if errors == (None, None) or any(e is None and short for e, short in zip(errors, too_short, strict=True)):
        return None
    error = math.hypot(*(e or 0.0 for e in errors))
    if error > 0:
        t = min(abs(difference) / error, sys.float_info.max)  # an error may be next to nothing
        return _normal(math.copysign(t, difference), [a, b])
    if None in errors:
        return None  # exact against unknown: nothing to measure the difference with
    return 0.0 if abs(difference) <= SAME else math.copysign(math.inf, difference)


def _normal(t: float, parts: list[Bar]) -> float:
    """The normal score as unlikely as t is with the degrees of freedom of the two errors (Welch and Satterthwaite).

    An error whose half-width is not known counts as known without error.
    """
    known = [(e, w / e) for e, w in parts if e and w and w > e * Z95 * (1 + 1e-9)]
    if not known:
        return t
    from scipy.special import ndtri, stdtr, stdtridf

    total = sum(e * e for e, _ in parts if e)
    dof = total**2 / sum(e**4 / float(stdtridf(0.975, quantile)) for e, quantile in known)
    return math.copysign(min(-float(ndtri(stdtr(dof, -abs(t)))), abs(t)), t)  # the tail's chance may be below any float


def _divergence(p: list[float], q: list[float]) -> float:
    return sum(x * math.log(x / (y if y > 0 else FLOOR)) for x, y in zip(p, q, strict=True) if x > 0)


def _summary(names: tuple[str, ...], rows: tuple[Row, ...], notices: tuple[Notice, ...], too_short: bool) -> Comparison:
    count = sum(row.variables for row in rows)
    tests = sum(row.tests for row in rows)
    strongest = max((row for row in rows if row.z is not None), key=lambda row: abs(row.z or 0.0), default=None)
    threshold = -NormalDist().inv_cdf(FALSE_ALARM / (2 * tests)) if tests else None
    agrees = strongest is not None and threshold is not None and abs(strongest.z or 0.0) <= threshold
    return Comparison(
        names=names,
        rows=rows,
        kl_ab=sum(row.kl_ab * row.variables for row in rows) / count,
        kl_ba=sum(row.kl_ba * row.variables for row in rows) / count,
        mse=sum(row.squared * row.variables for row in rows) / count,
        largest=max(rows, key=lambda row: abs(row.difference)),
        strongest=strongest,
        threshold=threshold,
        agrees=agrees,
        verdict=_verdict(rows, strongest, threshold, tests, agrees, too_short),
        notices=notices,
    )


def _verdict(
    rows: tuple[Row, ...], strongest: Row | None, threshold: float | None, tests: int, agrees: bool, too_short: bool
) -> str:
    if strongest is None or threshold is None:
        why = "a run was too short to know its errors" if too_short else "the numbers come without error bars"
        return f"not judged: {why}"
    silent = sum(row.z is None for row in rows)
    rest = f"; {silent} rows have no error bars" if silent else ""
    once = show.count(round(1 / FALSE_ALARM))
    rule = f"the limit for {tests} numbers is {threshold:.2f} (false alarms: 1 in {once}){rest}"
    if strongest.z is not None and math.isinf(strongest.z):
        return f"they differ: {strongest.name} by {show.number(strongest.difference, 3)}, both without error{rest}"
    return (
        f"they {'agree' if agrees else 'differ'}: largest |z| {abs(strongest.z or 0):.2f} at {strongest.name}, {rule}"
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
