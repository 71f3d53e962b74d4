"""Arrays of numbers ≥ 0 of any magnitude, as logarithms that add without losing digits or with exponents of their own.

A term of lifted counting is a product of some n² / 2 factors. As a plain double its logarithm would be off by 1e-8 at
ten thousand people; `Logs` keeps log2 x = high / 2^20 + low, with high an integer and |low| < 2^-20, which is good to
1e-13, and differences of terms are what marginals are made of. `Scaled` keeps mantissas and exponents of two, so that
generating polynomials of ten thousand constants neither overflow nor vanish and sums of positive numbers keep all
their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from definetti.errors import TooLarge

UNIT = 1 << 20
LARGEST = 1 << 58  #: of a logarithm, in units: a sum of some of them is an int64
NOTHING = -(1 << 50)  #: the exponent of zero


@dataclass(frozen=True, eq=False)
class Logs:
    """Base-2 logarithms of an array of numbers ≥ 0; `some` is False where the number is 0."""

    high: np.ndarray  # int64, in units of 2^-20
    low: np.ndarray  # float64
    some: np.ndarray  # bool

    def __add__(self, other: Logs) -> Logs:
        return _carried(self.high + other.high, self.low + other.low, self.some & other.some)

    def times(self, count: np.ndarray | int) -> Logs:
        """x ** count; 0 ** 0 = 1."""
        _require_room(float(np.max(np.abs(self.high), initial=0)) * float(np.max(np.abs(count), initial=0)))
        return _carried(self.high * count, self.low * count, self.some | (np.asarray(count) == 0))

    def __getitem__(self, k: Any) -> Logs:
        return Logs(self.high[k], self.low[k], self.some[k])

    def relative(self, to: int) -> np.ndarray:
        """x / 2^(to / 2^20), as plain numbers: far smaller ones become 0."""
        shift = np.clip(self.high - to, -1200 * UNIT, 1000 * UNIT) / UNIT
        return np.where(self.some, np.exp2(shift + self.low), 0.0)

    @property
    def top(self) -> int:
        return int(np.max(self.high, where=self.some, initial=-(2**62))) if np.any(self.some) else 0


def _require_room(size: float) -> None:
    """`TooLarge` for a logarithm of so many units that sums of them would be no int64."""
    if size > LARGEST:
        raise TooLarge("a weight in lifted counting", size / UNIT, LARGEST / UNIT, "sample it", unit="bits")


def _carried(high: Any, low: Any, some: Any) -> Logs:
    """With whole units of `low` in `high`: sums of many small parts are not small."""
    whole = np.rint(low * UNIT)
    return Logs(high + whole.astype(np.int64), low - whole / UNIT, some)


def one(shape: tuple[int, ...] = ()) -> Logs:
    return Logs(np.zeros(shape, np.int64), np.zeros(shape), np.ones(shape, bool))


def logs_of(values: Any) -> Logs:
    """Of an object array of balls or fractions."""
    array = np.asarray(values, dtype=object)
    found = [_split(x) for x in array.reshape(-1)]
    _require_room(max((float(abs(h)) for h, _, _ in found), default=0.0))
    high = np.array([h for h, _, _ in found], dtype=np.int64).reshape(array.shape)
    low = np.array([x for _, x, _ in found], dtype=np.float64).reshape(array.shape)
    return Logs(high, low, np.array([s for _, _, s in found], dtype=bool).reshape(array.shape))


def _split(x: Any) -> tuple[int, float, bool]:
    from flint import arb

    if x == 0:
        return 0, 0.0, False
    scaled = arb(x).log() / arb.const_log2() * UNIT
    whole: Any = scaled.mid().floor().unique_fmpz()
    high = int(whole)
    return high, float((scaled - high).mid()) / UNIT, True


_FACTORIALS = one((1,))


def factorials(n: int) -> Logs:
    """log2 k! for k = 0 … n."""
    global _FACTORIALS
    have = len(_FACTORIALS.high)
    if have <= n:
        more = logs_of(np.array([_ball(k) for k in range(have, n + 1)], dtype=object))
        high = _FACTORIALS.high[-1] + np.cumsum(more.high)
        low = _FACTORIALS.low[-1] + np.cumsum(more.low)
        highs, lows = np.concatenate([_FACTORIALS.high, high]), np.concatenate([_FACTORIALS.low, low])
        _FACTORIALS = Logs(highs, lows, np.ones(n + 1, bool))
    return _FACTORIALS


def _ball(k: int) -> Any:
    from flint import arb

    return arb(k)


def add_logs(terms: list[Logs]) -> tuple[Logs, list[np.ndarray]]:
    """log of the sum of numbers, elementwise, and each one's share of it."""
    if len(terms) == 1:
        return terms[0], [terms[0].some.astype(float)]
    shape = np.broadcast_shapes(*(t.high.shape for t in terms))
    terms = [Logs(*(np.broadcast_to(x, shape) for x in (t.high, t.low, t.some))) for t in terms]
    high = np.max([np.where(t.some, t.high, -(2**62)) for t in terms], axis=0)
    some = np.any([t.some for t in terms], axis=0)
    high = np.where(some, high, 0)
    plain = [np.where(t.some, np.exp2(np.maximum(t.high - high, -1200 * UNIT) / UNIT + t.low), 0.0) for t in terms]
    total = np.sum(plain, axis=0)
    safe = np.where(some, total, 1.0)
    return Logs(high, np.log2(safe), some), [p / safe for p in plain]


def to_ball(high: int, factor: float) -> Any:
    """factor · 2^(high / 2^20)."""
    from flint import arb

    whole, rest = divmod(int(high), UNIT)
    return arb(factor) * (arb(rest) / UNIT * arb.const_log2()).exp() * arb(2) ** whole


# --- with exponents of their own --------------------------------------------------------------------------------------


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
