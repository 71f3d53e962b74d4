"""Logarithms that add without losing digits: log2 x = high / 2^20 + low, high an integer, |low| < 2^-20.

A term of lifted counting is a product of some n² / 2 factors. As plain doubles its logarithm would be off by
1e-8 at ten thousand people; with exact integer parts it is good to 1e-13, and differences of terms are what
marginals are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

UNIT = 1 << 20


@dataclass(frozen=True, eq=False)
class Logs:
    """Base-2 logarithms of an array of numbers ≥ 0; `some` is False where the number is 0."""

    high: np.ndarray  # int64, in units of 2^-20
    low: np.ndarray  # float64
    some: np.ndarray  # bool

    def __add__(self, other: Logs) -> Logs:
        return Logs(self.high + other.high, self.low + other.low, self.some & other.some)

    def times(self, count: np.ndarray | int) -> Logs:
        """x ** count; 0 ** 0 = 1."""
        return Logs(self.high * count, self.low * count, self.some | (np.asarray(count) == 0))

    def __getitem__(self, k: Any) -> Logs:
        return Logs(self.high[k], self.low[k], self.some[k])

    def relative(self, to: int) -> np.ndarray:
        """x / 2^(to / 2^20), as plain numbers: far smaller ones become 0."""
        shift = np.clip(self.high - to, -1200 * UNIT, 1000 * UNIT) / UNIT
        return np.where(self.some, np.exp2(shift + self.low), 0.0)

    @property
    def top(self) -> int:
        return int(np.max(self.high, where=self.some, initial=-(2**62))) if np.any(self.some) else 0


def one(shape: tuple[int, ...] = ()) -> Logs:
    return Logs(np.zeros(shape, np.int64), np.zeros(shape), np.ones(shape, bool))


def logs_of(values: Any) -> Logs:
    """Of an object array of balls or fractions."""
    array = np.asarray(values, dtype=object)
    found = [_split(x) for x in array.reshape(-1)]
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
