"""The first question of every reader: can this answer be trusted, how large is its largest error, what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from definetti import show
from definetti.errors import Notice

#: Kinds of notices that fail, the gravest first.
WORDS = {
    "divided": "the chains see different parts of what is possible",
    "frozen": "some variables could never move",
    "biased": "the draws fail a test of the sampler",
    "not-mixed": "the chains have not mixed",
    "approximate": "the sampler is not exact on this model",
    "few-samples": "there are too few draws",
}


@dataclass(frozen=True)
class Verdict:
    """`trusted`, the reason in one sentence, the largest half-width with its place, and what to do next.

    Examples
    --------
    >>> verdict([("X0", 0.0004), ("X1", 0.0001)]).line
    'trusted: largest 95 % half-width 0.0004, of X0'
    """

    trusted: bool
    reason: str
    cure: str | None = None
    half_width: float | None = None  # the largest; None: not known
    place: str | None = None  # whose it is

    @property
    def line(self) -> str:
        head = "trusted" if self.trusted else "NOT TRUSTED"
        return f"{head}: {self.reason}" + (f"; {self.cure}" if self.cure else "")


def verdict(
    widths: Iterable[tuple[str, Any]],
    notices: Sequence[Notice] = (),
    method: str | None = None,
    run: Mapping[str, Any] | None = None,
    interrupted: bool = False,
) -> Verdict:
    """Of names with their half-widths (a number, a list of them, or None where it is not known)."""
    largest, place, unknown = _largest(widths)
    error = f"largest 95 % half-width {show.number(largest, 2)}" + (f", of {_short(place)}" if place else "")
    failing = [notice for notice in notices if notice.fails]
    if failing:
        kinds = list(dict.fromkeys(notice.kind for notice in failing))
        cure = (run or {}).get("advice", "the warnings say why")
        reason = "; ".join(f"{WORDS[kind]} ({kind})" if kind in WORDS else kind for kind in sorted(kinds, key=_rank))
        return Verdict(False, reason if largest is None else f"{reason}, {error}", cure, largest, place)
    early = "interrupted, " if interrupted else ""
    if method is not None:
        return Verdict(True, f"exact by {method}", None, 0.0)
    if unknown or largest is None:
        return Verdict(True, f"{early}half-widths are not known" if unknown else "nothing to estimate", None, largest)
    if largest == 0.0:
        return Verdict(True, f"{early}every number is exact", None, 0.0)
    return Verdict(True, early + error, None, largest, place)


def _largest(widths: Iterable[tuple[str, Any]]) -> tuple[float | None, str | None, bool]:
    largest, place, unknown = None, None, False
    for name, value in widths:
        for one in value if isinstance(value, list) else [value]:
            if one is None or not math.isfinite(one):
                unknown = True
            elif largest is None or one > largest:
                largest, place = float(one), name if one > 0 else None
    return largest, place, unknown


def first_failure(notices: Iterable[Notice]) -> Notice | None:
    """The gravest of the notices that fail."""
    return min((notice for notice in notices if notice.fails), key=lambda notice: _rank(notice.kind), default=None)


def _rank(kind: str) -> int:
    return list(WORDS).index(kind) if kind in WORDS else len(WORDS)


def _short(name: str | None) -> str:
    return show.shortened(name or "", 40)
