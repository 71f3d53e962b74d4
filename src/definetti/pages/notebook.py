"""How nouns look in a notebook: HTML from the same fragments as the page, small enough for a cell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from definetti import show
from definetti.model.facts import fact_rows, facts, formulas
from definetti.model.marginals import Estimate, Marginals, OrbitRow, Saved, fields
from definetti.model.verdict import Verdict, verdict
from definetti.pages.fragments import (
    colour,
    facts_table,
    interval,
    interval_bar,
    listed,
    plain_table,
    swatch,
    tag,
    text,
)

ROWS = 12
STYLE = """
.definetti{font:13px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;max-width:880px}
.definetti table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:4px 0}
.definetti th,.definetti td{padding:3px 10px;text-align:right;background:none;border:0}
.definetti thead th{border-bottom:1px solid #8888}
.definetti td:first-child,.definetti th:first-child,.definetti .facts td{text-align:left}
.definetti .ci{width:180px;height:14px;overflow:visible;display:block}
.definetti .ci line{stroke:#0072B2;stroke-width:3;opacity:.55}.definetti .ci circle{fill:#0072B2}
.definetti .swatch{width:10px;height:10px;display:inline-block;margin-right:6px}
.definetti .swatch rect{width:10px;height:10px;rx:3px}
.definetti .good{color:#0b6b4a}.definetti .bad{color:#b3261e}.definetti .soft{opacity:.7}
@media (prefers-color-scheme:dark){.definetti .good{color:#6fd3a5}.definetti .bad{color:#ff9a92}}
"""


def html(noun: Any) -> str:
    """The HTML of a noun; its one-line repr is the heading."""
    return tag("div", f"<style>{STYLE}</style>" + "".join(_parts(noun)), class_="definetti")


def _parts(noun: Any) -> Iterator[str]:
    name = type(noun).__name__
    if isinstance(noun, Marginals):
        yield from _marginals(noun)
    elif isinstance(noun, Saved):
        yield from _saved(noun)
    elif isinstance(noun, Estimate):
        yield _heading(repr(noun)) + _bars(noun.probability, fields(noun)["half_width"])
    elif name == "Comparison":
        yield from _comparison(noun)
    elif name in ("FactorGraph", "MarkovLogic"):
        yield _heading(repr(noun)) + facts_table(fact_rows(facts(noun)))
        listed_ = [["hard" if f["weight"] is None else str(f["weight"]), f["text"]] for f in formulas(noun)[:ROWS]]
        yield plain_table(["weight", "formula"], listed_) if listed_ else ""
    elif hasattr(noun, "orbit_of"):
        yield from _symmetries(noun)
    else:
        yield _heading(repr(noun))


def _heading(line: str) -> str:
    return tag("div", tag("strong", text(line)))


def _said(found: Verdict) -> str:
    return tag("div", tag("strong", text(found.line)), class_="good" if found.trusted else "bad")


def _bars(probability: Any, half: Any) -> str:
    pairs = zip(listed(probability), listed(half), strict=True)
    return "".join(interval_bar(*interval(p, h)) for p, h in pairs)


def _marginals(noun: Marginals) -> Iterator[str]:
    yield _said(noun.verdict)
    ordered = sorted(noun.orbits, key=lambda row: -row.size)
    orbits = [(row.representative, row.size, row) for row in ordered]
    answers = [(name, e.orbit_size, e) for name, e in noun.queries.items()] or orbits
    yield _table("query" if noun.queries else "orbit of", answers)
    yield tag("div", text(repr(noun)), class_="soft")


def _saved(noun: Saved) -> Iterator[str]:
    answers = [(name, e.orbit_size, e) for name, e in noun.items()]
    yield _said(verdict(((name, e.half_width) for name, _, e in answers), noun.notices))
    yield _table("name", answers)


def _table(head: str, answers: list[tuple[str, int, Any]]) -> str:
    heads = "".join(tag("th", name) for name in (head, "size", "probability", "± 95 %", "on [0, 1]"))
    lines = "".join(_line(place, *one) for place, one in enumerate(answers[:ROWS]))
    more = len(answers) - ROWS
    rest = tag("div", f"… and {show.count(more)} more", class_="soft") if more > 0 else ""
    return tag("table", tag("thead", tag("tr", heads)) + tag("tbody", lines)) + rest


def _line(place: int, name: str, size: int, answer: Estimate | OrbitRow) -> str:
    half = fields(answer)["half_width"]
    cells = (
        swatch(colour(place, size)) + text(show.shortened(name, 60)),
        show.count(size),
        text(show.probability(answer.probability, half)),
        text(show.half_width(half)),
        _bars(answer.probability, half),
    )
    return tag("tr", "".join(tag("td", cell) for cell in cells))


def _comparison(noun: Any) -> Iterator[str]:
    yield tag("div", tag("strong", text(noun.verdict)), class_="good" if noun.agrees else "bad")
    rows = [
        [r.name, show.number(r.a, 6), show.number(r.b, 6), show.number(r.difference, 3), show.number(r.z, 3)]
        for r in noun.worst
    ]
    yield plain_table(["name", "a", "b", "difference", "z"], rows)


def _symmetries(noun: Any) -> Iterator[str]:
    from definetti.pages.drawing import drawing
    from definetti.symmetry.picture import group_answers, picture

    yield _heading(repr(noun))
    rows = sorted(islice(noun.orbits, 10_000), key=lambda orbit: -orbit.size)[:ROWS]
    yield plain_table(["orbit of", "size"], [[orbit.representative, show.count(orbit.size)] for orbit in rows])
    found = picture(group_answers(noun))
    if found["kind"] == "graph" and len(found["nodes"]) <= 200:
        orbits = [{"representative": o.representative, "size": o.size, "probability": None, "half_width": None}
                  for o in sorted(noun.orbits, key=lambda o: -o.size)]  # fmt: skip
        yield drawing(found, orbits)
