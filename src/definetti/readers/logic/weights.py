"""Weights written as expressions: `log(0.9/0.1)`, `logx(0.9)`, `-float('inf')`. Nothing is
executed: this is a parser of our own.

`logx` is pracmln's logarithm, which is -100 at zero. Infinite weights are allowed: +inf is a hard formula, -inf its
negation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

DEEPEST = 50
_WORD = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|((?:math\.)?[A-Za-z]\w*)|('[^']*'|\"[^\"]*\")|(.))"
)
CONSTANTS = {"e": math.e, "pi": math.pi, "inf": math.inf}


class BadWeight(Exception):
    """What is wrong, and at which character."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message, self.at = message, at


def _logarithm(x: float) -> float:
    if not x > 0:
        raise ValueError(f"log needs a positive number, not {x:g}")
    return math.log(x)


def _logx(x: float) -> float:
    if x < 0:
        raise ValueError(f"logx needs a number that is not negative, not {x:g}")
    return -100.0 if x == 0 else math.log(x)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "log": _logarithm, "ln": _logarithm, "logx": _logx, "exp": math.exp, "sqrt": math.sqrt,
}  # fmt: skip


class _Reader:
    def __init__(self, text: str) -> None:
        self.words = [(m.start(m.lastindex or 0), m.lastindex or 0, m[m.lastindex or 0]) for m in _WORD.finditer(text)]
        self.words.append((len(text), 0, ""))
        self.at = self.depth = 0

    def take(self, *texts: str) -> str | None:
        if self.words[self.at][1] and self.words[self.at][2] in texts:
            self.at += 1
            return self.words[self.at - 1][2]
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            raise BadWeight(f"expected {text!r} in this weight", self.words[self.at][0])

    def sum(self) -> float:
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadWeight(f"this weight is nested more than {DEEPEST} deep", self.words[self.at][0])
        value = self.product()
        while sign := self.take("+", "-"):
            other = self.product()
            value = value + other if sign == "+" else value - other
        self.depth -= 1
        return value

    def product(self) -> float:
        value = self.part()
        while sign := self.take("*", "/"):
            at, other = self.words[self.at][0], self.part()
            if sign == "/" and other == 0:
                raise BadWeight("a division by zero", at)
            value = value * other if sign == "*" else value / other
        return value

    def part(self) -> float:
        negative = False
        while sign := self.take("-", "+"):
            negative ^= sign == "-"
        at, kind, text = self.words[self.at]
        self.at += 1
        if kind == 1:
            value = float(text)
        elif kind == 2:
            value = self.named(text.removeprefix("math."), at)
        elif text == "(":
            value = self.sum()
            self.need(")")
        else:
            raise BadWeight("expected a number in this weight", at)
        return -value if negative else value

    def named(self, name: str, at: int) -> float:
        if name in CONSTANTS and self.words[self.at][2] != "(":
            return CONSTANTS[name]
        if name == "float":
            return self.converted()
        if name == "domSize":
            message = "weights that depend on the size of a sort (domSize) are not supported; write the number"
            raise BadWeight(message, at)
        if name not in FUNCTIONS:
            known = ", ".join([*FUNCTIONS, "float('inf')"])
            raise BadWeight(f"a weight may use {known}, not {name}", at)
        self.need("(")
        inside = self.words[self.at][0]
        value = self.sum()
        self.need(")")
        try:
            return FUNCTIONS[name](value)
        except (ValueError, OverflowError) as error:
            raise BadWeight(str(error) if "needs" in str(error) else f"{name} has no value here", inside) from None

    def converted(self) -> float:
        """float('inf'): the one text that is a number."""
        self.need("(")
        at, kind, text = self.words[self.at]
        self.at += 1
        inner = text[1:-1].strip().lower()
        if kind != 3 or inner.lstrip("+-") not in ("inf", "infinity"):
            raise BadWeight("float takes 'inf' or '-inf' here", at)
        self.need(")")
        return -math.inf if inner.startswith("-") else math.inf


def evaluate(text: str) -> float:
    """The value of a weight expression; `BadWeight` says what is wrong where."""
    reader = _Reader(text)
    value = reader.sum()
    if reader.words[reader.at][1]:
        at, _, word = reader.words[reader.at]
        raise BadWeight(f"{word!r} has no meaning in a weight", at)
    if math.isnan(value):
        raise BadWeight("this weight is not a number", 0)
    return value
