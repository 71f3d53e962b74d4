"""Arrays of numbers ≥ 0 of any magnitude: mantissas and exponents of two, so that generating polynomials of ten thousand
constants neither overflow nor vanish, and sums of positive numbers keep all their digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from definetti.solvers.lifted_logs import UNIT, Logs

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


def ratio(a: Scaled, b: Scaled) -> float:
    """a / b as a plain number."""
    if a.m == 0:
        return 0.0
    return float(np.ldexp(a.m / b.m, int(np.clip(a.e - b.e, -2000, 2000))))


def convolve(a: Scaled, b: Scaled) -> Scaled:
    """The product of two polynomials in several variables."""
    if a.m.size < b.m.size:
        a, b = b, a
    shape = tuple(x + y - 1 for x, y in zip(a.shape, b.shape, strict=True))
    m, e = zeros(shape).m, zeros(shape).e
    for place in zip(*np.nonzero(b.m), strict=True):
        window = tuple(slice(int(k), int(k) + n) for k, n in zip(place, a.shape, strict=True))
        total = Scaled(m[window], e[window]) + a * b[place]
        m[window], e[window] = total.m, total.e
    return Scaled(m, e)


def correlate(functional: Scaled, poly: Scaled, shape: tuple[int, ...]) -> Scaled:
    """Σ_k functional[k + m] · poly[k] for all m of a box."""
    if int(np.prod(shape)) > int((poly.m > 0).sum()):
        found = zeros(shape)
        for place in zip(*np.nonzero(poly.m), strict=True):
            window = tuple(slice(int(k), int(k) + n) for k, n in zip(place, shape, strict=True))
            found = found + functional[window] * poly[place]
        return found
    found = zeros(shape)
    for place in np.ndindex(*shape):
        window = tuple(slice(k, k + n) for k, n in zip(place, poly.shape, strict=True))
        one = (functional[window] * poly).sum()
        found.m[place], found.e[place] = one.m, one.e
    return found
