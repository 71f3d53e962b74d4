"""Pieces of HTML that pages and notebooks share. Every text from a model goes through `text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from definetti import show
from definetti.model.verdict import Verdict
from definetti.pages.style import ALONE, PALETTE

MOST_ROWS = 1000  # of a table on a page


def text(value: object) -> str:
    """Shown, never run: <script> becomes &lt;script&gt;. Characters that turn or hide others are spelled out."""
    return html.escape(
        "".join(c if c.isprintable() or c == " " else f"\\u{ord(c):04x}" for c in str(value)), quote=True
    )


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; `class_` and `data_o` become `class` and `data-o`. Attributes are escaped, the content is HTML."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{content}</{name}>"


def colour(place: int, size: int) -> str:
    """Of an orbit by its place among the orbits: the palette, then its tints and shades; grey for one alone."""
    if size <= 1:
        return ALONE
    hues = PALETTE[:6]
    round_, at = divmod(place, len(hues))
    mix = (0.0, 0.45, -0.35, 0.7, -0.6)[round_ % 5]
    parts = (int(hues[at][k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(p + (255 - p) * mix if mix > 0 else p * (1 + mix)):02x}" for p in parts)


def swatch(fill: str) -> str:
    return f'<svg class="swatch" aria-hidden="true"><rect fill="{fill}"/></svg>'


def verdict_heading(found: Verdict) -> str:
    head = "Trusted" if found.trusted else "Not trusted"
    mark = "✓" if found.trusted else "✗"
    reason = found.reason[:1].upper() + found.reason[1:]
    cure = "" if found.cure is None else tag("p", tag("strong", "Next: ") + text(found.cure) + ".", class_="cure")
    return tag("h2", f"{mark} {head}") + tag("p", text(reason) + ".", class_="reason") + cure


def facts_table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(tag("tr", tag("th", text(name), scope="row") + tag("td", text(value))) for name, value in rows)
    return tag("table", tag("tbody", lines), class_="plain facts")


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], classes: str = "plain") -> str:
    top = tag("thead", tag("tr", "".join(tag("th", text(name), scope="col") for name in head)))
    lines = "".join(tag("tr", "".join(tag("td", text(cell)) for cell in row)) for row in rows)
    return tag("table", top + tag("tbody", lines), class_=classes)


# --- answers ---------------------------------------------------------------------------------------------------------


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def interval(p: float | None, half: float | None) -> tuple[float, float, float]:
    """(low, probability, high) within [0, 1]; an answer without an error bar may be anything."""
    p = 0.5 if p is None else p
    half = 1.0 if half is None else half
    return max(p - half, 0.0), p, min(p + half, 1.0)


def interval_bar(low: float, p: float, high: float) -> str:
    """A line and a dot, placed on a linear axis from 0 to 1 until the page's script knows better."""
    place = {"data_l": f"{low:.12g}", "data_p": f"{p:.12g}", "data_h": f"{high:.12g}"}
    line = f'<line x1="{100 * low:.2f}%" x2="{100 * high:.2f}%" y1="50%" y2="50%"></line>'
    return tag(
        "svg", f'{line}<circle cx="{100 * p:.2f}%" cy="50%" r="4"></circle>', class_="ci", aria_hidden="true", **place
    )


def sentence(name: str, size: int, answer: Mapping[str, Any]) -> str:
    """`Orbit of X1: 8 variables, P = 0.5703 ± 0.0001`."""
    orbit = f"Orbit of {name}: {show.count(size)} variable{'' if size == 1 else 's'}"
    if answer["probability"] is None:
        return orbit
    p, half = show.probability(answer["probability"], answer["half_width"]), show.half_width(answer["half_width"])
    error = "exactly" if half == "exact" else f"± {half}"
    return f"{orbit}, P = {p} {error}"
