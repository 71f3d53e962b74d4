"""Leaf: how tables and numbers look as plain text. Knows no model, needs no library."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

Number = float | Sequence[float | None] | None


def above(module: str) -> Any:
    """A room above the caller's, for what a noun can be asked to become: a page, a chart, a table. It is loaded when it
    is asked for; no noun depends on it."""
    return import_module(f"definetti.{module}")


#: Characters that a terminal obeys instead of showing them: controls, and those that turn the direction of writing.
_OBEYED = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)
    if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    """For a terminal: names come from files of strangers."""
    return text.translate(_OBEYED)


def brief(value: object) -> str:
    """What an error says that it got in place of something else."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return reprlib.repr(value)
    return f"a {type(value).__name__}"


class Shown:
    """Nouns that notebooks show as HTML, from the same fragments as the page."""

    def _repr_html_(self) -> str:
        return above("pages.notebook").html(self)


FEWEST = 12  # characters that a name keeps when a table has to fit
GAP = 2  # between columns


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, width: int | None = None, needed: int = 4
) -> str:
    """Aligned columns, the first `left` of them to the left and the others to the right.

    With a `width` no line is longer: names (the first column) are shortened, then columns beyond the first `needed` are
    left out, from the right.
    """
    if width is not None:
        head, rows = _fitting(head, rows, width, needed)
    widths = _widths(head, rows)
    lines = [_line(row, widths, left) for row in [head, ["─" * w for w in widths], *rows]]
    return "\n".join(line if width is None else shortened(line, width) for line in lines)


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]


def _fitting(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, needed: int
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    while True:
        widths = _widths(head, rows)
        others = sum(w + GAP for w in widths[1:])
        if widths[0] + others <= width:
            return head, rows
        if FEWEST + others <= width or len(head) <= needed:
            room = max(width - others, FEWEST)
            return head, [[shortened(row[0], room), *row[1:]] for row in rows]
        head, rows = head[:-1], [row[:-1] for row in rows]


def shortened(text: str, width: int) -> str:
    """Of at most so many characters, with … in the place of what is left out: the end of a name says as much as its
    beginning."""
    if len(text) <= width:
        return text
    tail = width // 3
    return text[: max(width - tail - 1, 0)] + "…" + (text[-tail:] if tail else "")


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = [cell.ljust(w) if k < left else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
    return (" " * GAP).join(cells).rstrip()


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names with their values, one pair in a line."""
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in rows)


def number(value: Number, digits: int = 4) -> str:
    """With `digits` significant digits; a list in brackets; a dash for what is not known."""
    if value is None:
        return "–"
    if isinstance(value, Sequence):
        return "[" + " ".join(number(v, digits) for v in value) + "]"
    return f"{value:.{digits}g}" if math.isfinite(value) else "–"


def probability(value: Number, error: Number = None) -> str:
    """As many decimals as the error leaves meaningful, and one more: 0.43127 beside an error of 0.0003."""
    if value is None:
        return "–"
    if isinstance(value, Sequence):
        errors = error if isinstance(error, Sequence) else [error] * len(value)
        return "[" + " ".join(probability(v, e) for v, e in zip(value, errors, strict=True)) + "]"
    if not math.isfinite(value):
        return "–"
    if not isinstance(error, (int, float)) or not 0 < error < 1:
        return f"{value:.6f}"
    return f"{value:.{min(1 - math.floor(math.log10(error)), 12)}f}"


def half_width(value: Number, sampled: bool = True) -> str:
    """Two digits; an answer without error among sampled ones says so."""
    if sampled and isinstance(value, (int, float)) and value == 0:
        return "exact"
    return number(value, 2)


def effective(ess: Number, draws: float) -> str:
    """The effective number of draws, never more than there are: what is more is a gain."""
    if isinstance(ess, Sequence):
        return "[" + " ".join(effective(e, draws) for e in ess) + "]"
    if ess is None or not math.isfinite(ess):
        return "–"
    return count(round(min(ess, draws))) if draws else number(ess, 3)


def gain(ess: Number, draws: float) -> str:
    """×92: the error is that of 92 times as many independent draws; empty where it is not smaller."""
    if isinstance(ess, Sequence):
        ess = min((e for e in ess if e is not None), default=None)
    if ess is None or not draws or not math.isfinite(ess) or ess <= draws:
        return ""
    factor = ess / draws
    return f"×{factor:.2g}" if factor < 10 else f"×{count(round(factor))}"


def count(value: float) -> str:
    """1,234,567; past 15 digits 1.234e+20."""
    if value == int(value) and abs(value) < 10**15:
        return f"{int(value):,}"
    return large(int(value))


def large(value: int) -> str:
    """An integer of any size in a few characters."""
    if abs(value) < 10**15:
        return f"{value:,}"
    power, first = leading_digits(abs(value))
    return f"{'-' if value < 0 else ''}{first[0]}.{first[1:]}e+{power}"


def leading_digits(value: int) -> tuple[int, str]:
    """The power of ten below an integer, and its first four digits: from its highest bits, as writing all digits of the
    order of a large group would take minutes."""
    if value < 10**4000:
        text = str(value)
        return len(text) - 1, text[:4]
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        rest = value.bit_length() - 180
        logarithm = Decimal(value >> rest).log10() + rest * Decimal(2).log10() + Decimal("1e-40")  # rounding
        power = int(logarithm)
        return power, str(Decimal(10) ** (logarithm - power + 3))[:4]


def amount(value: float, unit: str = "") -> str:
    """A count with its unit, in plain words: 12,000 states, 3.2 GB, about 10^20 table entries."""
    if unit == "bytes":
        return size(value)
    if value == math.inf:
        text = "more than 10^300"
    elif value >= 10**15:
        text = f"about 10^{math.floor(math.log10(value) + 1e-9)}"
    else:
        text = f"{math.ceil(value):,}"
    return f"{text} {unit}".rstrip()


def power_of_two(bits: float) -> str:
    """2^bits, readable at any size: 4,096, 2^40, 10^782."""
    if bits < 20:
        return f"{round(2**bits):,}"
    return f"2^{bits:.0f}" if bits < 64 and bits == int(bits) else f"10^{math.floor(bits * math.log10(2))}"


def digits(value: int) -> str:
    """All digits of an integer. Python's own `str` refuses past 4,300 of them and takes time by their square; the order
    of a group has millions. Decimals multiply faster: halves are put together there, exactly."""
    if value < 0:
        return "-" + digits(-value)
    if value < 10**4000:
        return str(value)
    import decimal

    powers: dict[int, Any] = {}

    def joined(number: int, bits: int) -> Any:
        if bits <= 1024:
            return decimal.Decimal(number)
        half = bits // 2
        if half not in powers:
            powers[half] = decimal.Decimal(2) ** half
        return joined(number >> half, bits - half) * powers[half] + joined(number & ((1 << half) - 1), half)

    with decimal.localcontext() as context:
        context.prec, context.Emax, context.traps[decimal.Inexact] = decimal.MAX_PREC, decimal.MAX_EMAX, True
        return format(joined(value, value.bit_length()), "f")


def size(number_of_bytes: float) -> str:
    """3.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number_of_bytes < 1000:
            return f"{number_of_bytes:.3g} {unit}"
        number_of_bytes /= 1000
    return f"{number_of_bytes:,.4g} TB"


def seconds(value: float) -> str:
    """0.3 ms, 1.25 s, 3 min 20 s."""
    if value < 0.0995:  # else two digits of milliseconds would be 1e+02
        return f"{value * 1000:.2g} ms"
    if value < 100:
        return f"{value:.3g} s"
    return f"{int(value) // 60} min {int(value) % 60} s"
