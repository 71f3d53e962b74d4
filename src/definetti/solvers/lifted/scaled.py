"""Arrays of numbers ≥ 0 of any magnitude: mantissas and exponents of two, so that generating polynomials of ten
thousand constants neither overflow nor vanish, and sums of positive numbers keep all their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from definetti.solvers.lifted.logs import UNIT, Logs

NOTHING = -(1 << 50)  #: the exponent of zero


@dataclass(frozen=True, eq=False)
class Scaled:
    m: np.ndarray
    e: np.ndarray  # int64

    @property
    def shape(self) -> tuple[int, ...]:
        return self.m.shape

    def __getitem__(self, k: Any) -> Scaled:
        return Scaled(self.m[k], self.e[k])

    def __mul__(self, other: Scaled) -> Scaled:
        return normal(self.m * other.m, self.e + other.e)

    def __add__(self, other: Scaled) -> Scaled:
        top = np.maximum(self.e, other.e)
        return normal(_shifted(self, top) + _shifted(other, top), top)

    def sum(self) -> Scaled:
        top = self.e.max(initial=NOTHING)
        return normal(np.asarray(_shifted(self, top).sum()), np.asarray(top))


def _shifted(x: Scaled, top: Any) -> np.ndarray:
    return np.ldexp(x.m, np.maximum(x.e - top, -1100).astype(np.int32))


def normal(m: np.ndarray, e: np.ndarray) -> Scaled:
    fraction, more = np.frexp(m)
    return Scaled(fraction, np.where(fraction > 0, e + more, NOTHING))


def of_logs(x: Logs) -> Scaled:
    whole = x.high >> 20
    m = np.where(x.some, np.exp2((x.high - (whole << 20)) / UNIT + x.low), 0.0)
    return normal(m, whole)


def zeros(shape: tuple[int, ...]) -> Scaled:
    return Scaled(np.zeros(shape), np.full(shape, NOTHING, dtype=np.int64))


def ones(shape: tuple[int, ...]) -> Scaled:
    return normal(np.ones(shape), np.zeros(shape, np.int64))


def as_plain(x: Scaled, top: int) -> np.ndarray:
    """x / 2^top as ordinary numbers."""
    return np.ldexp(x.m, np.clip(x.e - top, -1100, 1000).astype(np.int32))


def span(x: Scaled) -> tuple[int, int]:
    """The smallest and the largest exponent of what is not zero."""
    some = x.e[x.m > 0]
    return (int(some.min()), int(some.max())) if len(some) else (0, 0)


Numbers = TypeVar("Numbers", Scaled, np.ndarray)  #: ordinary numbers do where they do not vary too much


def ratio(a: Any, b: Any) -> float:
    """a / b as a plain number."""
    if not isinstance(a, Scaled):
        return float(a / b)
    if a.m == 0:
        return 0.0
    return float(np.ldexp(a.m / b.m, int(np.clip(a.e - b.e, -2000, 2000))))


def _empty(like: Any, shape: tuple[int, ...]) -> Any:
    return zeros(shape) if isinstance(like, Scaled) else np.zeros(shape)


def _places(x: Scaled | np.ndarray) -> Any:
    """Where a polynomial is not zero."""
    return zip(*np.nonzero(x.m if isinstance(x, Scaled) else x), strict=True)


def _size(x: Scaled | np.ndarray) -> int:
    return x.m.size if isinstance(x, Scaled) else x.size


def convolve(a: Numbers, b: Numbers) -> Numbers:
    """The product of two polynomials in several variables."""
    if _size(a) < _size(b):
        a, b = b, a
    out = _empty(a, tuple(x + y - 1 for x, y in zip(a.shape, b.shape, strict=True)))
    for place in _places(b):
        window = tuple(slice(int(k), int(k) + n) for k, n in zip(place, a.shape, strict=True))
        _put(out, window, out[window] + a * b[place])
    return out


def _put(out: Any, place: Any, value: Any) -> None:
    if isinstance(out, Scaled):
        out.m[place], out.e[place] = value.m, value.e
    else:
        out[place] = value


def correlate(functional: Numbers, poly: Numbers, shape: tuple[int, ...]) -> Numbers:
    """Σ_k functional[k + m] · poly[k] for all m of a box."""
    found, terms = _empty(functional, shape), list(_places(poly))
    if int(np.prod(shape)) > len(terms):
        for place in terms:
            window = tuple(slice(int(k), int(k) + n) for k, n in zip(place, shape, strict=True))
            found = found + functional[window] * poly[place]
        return found
    for place in np.ndindex(*shape):
        window = tuple(slice(k, k + n) for k, n in zip(place, poly.shape, strict=True))
        _put(found, place, (functional[window] * poly).sum())
    return found
