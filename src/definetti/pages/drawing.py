"""The picture of a symmetry as SVG: nodes of a factor graph, or cells of atoms, coloured by orbit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from definetti import show
from definetti.pages.fragments import colour, sentence, tag, text

CELL = 17  # pixels of a cell, fewer where there are many
WIDTH = 720  # of a graph
KNOWN = {
    -1: ("known-true", "true by the evidence"),
    -2: ("known-false", "false by the evidence"),
    -3: ("apart", "no orbit"),
}


def drawing(found: Mapping[str, Any] | None, orbits: Sequence[Mapping[str, Any]]) -> str:
    """HTML; `orbits` are those of the document, which the picture numbers."""
    if found is None:
        return tag("p", "This file has no picture of the symmetry.", class_="soft")
    if found["kind"] == "graph":
        return _graph(found, orbits)
    if found["kind"] == "logic":
        return _logic(found, orbits)
    return tag("p", f"Not drawn: {text(found['why'])}.", class_="soft")


def _graph(found: Mapping[str, Any], orbits: Sequence[Mapping[str, Any]]) -> str:
    nodes, edges = found["nodes"], found["edges"]
    radius = 13.0 if len(nodes) <= 40 else 9.0 if len(nodes) <= 160 else 6.0
    side = min(WIDTH, max(240, int(26 * radius * len(nodes) ** 0.5 / 4)))
    tall = max((node["y"] for node in nodes), default=1.0)
    margin = radius + 6
    named = len(nodes) <= 40  # their names stand below them
    height = side * max(tall, 0.02) + 2 * margin + (14 if named else 0)
    longest = max((len(show.shortened(node["name"] or "", 14)) for node in nodes), default=0) if named else 0
    beside = max(margin, 3.4 * longest)

    def at(node: Mapping[str, Any]) -> tuple[float, float]:
        return beside + node["x"] * side, margin + node["y"] * side

    lines = []
    for a, b in edges:
        (x1, y1), (x2, y2) = at(nodes[a]), at(nodes[b])
        lines.append(f'<line class="edge" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"></line>')
    marks = [_node(node, *at(node), radius, orbits, named) for node in nodes]
    width = side + 2 * beside
    svg = tag("svg", "".join(lines + marks), viewBox=f"0 0 {width:.0f} {height:.0f}", width=round(width),
              height=round(height), role="img", aria_label="the factor graph, coloured by orbit")  # fmt: skip
    return tag("div", svg, class_="picture", tabindex="-1")


def _node(
    node: Mapping[str, Any], x: float, y: float, radius: float, orbits: Sequence[Mapping[str, Any]], named: bool
) -> str:
    place = node["row"]
    if node["name"] is None:
        return f'<rect class="factor" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"></rect>'
    where: dict[str, Any] = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": radius}
    if place < 0:
        kind = "known-true" if node.get("value") else "known-false"
        return tag(
            "circle", tag("title", text(f"{node['name']} is {node.get('value')} by the evidence")), class_=kind, **where
        )
    orbit = orbits[place]
    title = tag("title", text(f"{node['name']}. {sentence(orbit['representative'], orbit['size'], orbit)}"))
    mark = tag("circle", title, class_="member", data_o=place, fill=colour(place, orbit["size"]), **where)
    if not named:
        return mark
    label = show.shortened(node["name"], 14)
    return mark + tag(
        "text", text(label), class_="label", x=f"{x:.1f}", y=f"{y + radius + 11:.1f}", text_anchor="middle"
    )


def _logic(found: Mapping[str, Any], orbits: Sequence[Mapping[str, Any]]) -> str:
    grids = "".join(_grid(one, found["level"] == "classes", orbits) for one in found["predicates"])
    marks = "".join(
        tag("li", f'<svg class="picture"><rect class="{kind}" width="14" height="14"></rect></svg>' + text(what))
        for kind, what in KNOWN.values()
    )
    by = "constant" if found["level"] == "constants" else "class of interchangeable constants"
    by += ", one colour per orbit of atoms, grey for an orbit of one"
    legend = tag("li", f"one row and column per {by}") + marks
    left = ""
    if found["left_out"]:
        names = text(", ".join(found["left_out"]))
        left = tag("p", f"Not drawn, of three arguments or more and too many atoms: {names}.", class_="soft")
    pictures = tag("div", tag("div", grids, class_="grids"), class_="picture")
    return pictures + tag("ul", legend, class_="legend") + left + _classes(found["sorts"])


def _grid(one: Mapping[str, Any], by_class: bool, orbits: Sequence[Mapping[str, Any]]) -> str:
    labels, cells = one["labels"], one["cells"]
    size = 26 if len(cells) <= 8 else CELL if len(cells) <= 20 else 12
    size = 40 if len(cells) <= 4 and by_class else size
    first = labels[0] if labels else [""]
    second = labels[1] if len(labels) > 1 else []
    left = 10 + 7.6 * max(len(show.shortened(label, 16)) for label in first)
    top = (8 + 7.4 * max(len(show.shortened(label, 16)) for label in second)) * 0.72 + 12 if second else 4.0
    parts = []
    for i, line in enumerate(cells):
        y = top + i * size
        if labels:
            parts.append(
                tag(
                    "text",
                    text(show.shortened(first[i], 16)),
                    x=f"{left - 6:.0f}",
                    y=f"{y + size / 2 + 4:.0f}",
                    text_anchor="end",
                )
            )
        for j, place in enumerate(line):
            parts.append(_cell(place, left + j * size, y, size, orbits))
            if by_class and one["diagonal"] and i == j:
                inner = size * 0.42
                parts.append(
                    _cell(one["diagonal"][i], left + j * size + size - inner - 2, y + size - inner - 2, inner, orbits)
                )
    for j, label in enumerate(second):
        x, y = left + (j + 0.55) * size, top - 5
        parts.append(tag("text", text(show.shortened(label, 16)), transform=f"translate({x:.0f} {y:.0f}) rotate(-46)"))
    slant = 0.72 * 7.4 * len(show.shortened(second[-1], 16)) if second else 0
    width, height = left + max(len(cells[0]) if cells else 1, 1) * size + slant + 6, top + len(cells) * size + 4
    svg = tag("svg", "".join(parts), viewBox=f"0 0 {width:.0f} {height:.0f}", width=round(width), height=round(height),
              role="img", aria_label=f"atoms of {one['name']}, coloured by orbit")  # fmt: skip
    inner_note = " (the small square: the same constant twice)" if by_class and one["diagonal"] else ""
    words = f"{one['name']}({', '.join(one['sorts'])})" if one["sorts"] else one["name"]
    return tag("figure", tag("h3", text(words) + inner_note) + svg)


def _cell(place: int | None, x: float, y: float, size: float, orbits: Sequence[Mapping[str, Any]]) -> str:
    if place is None:
        return ""
    where: dict[str, Any] = {
        "x": f"{x + 0.5:.1f}", "y": f"{y + 0.5:.1f}", "width": f"{size - 1:.1f}", "height": f"{size - 1:.1f}", "rx": 2,
    }  # fmt: skip
    if place < 0:
        kind, what = KNOWN[place]
        return tag("rect", tag("title", text(what)), class_=kind, **where)
    orbit = orbits[place]
    title = tag("title", text(sentence(orbit["representative"], orbit["size"], orbit)))
    return tag("rect", title, class_="member", data_o=place, fill=colour(place, orbit["size"]), **where)


def _classes(sorts: Sequence[Mapping[str, Any]]) -> str:
    """What evidence makes of the constants: a card for each class."""
    cards = []
    for sort in sorts:
        for part in sort["classes"][:60]:
            more = (
                f" and {show.count(part['size'] - len(part['members']))} more"
                if part["size"] > len(part["members"])
                else ""
            )
            known = f"evidence: {', '.join(part['evidence'])}" if part["evidence"] else "no evidence"
            head = f"{show.count(part['size'])} {sort['name']}{'' if part['size'] == 1 else ', interchangeable'}"
            body = (
                tag("strong", text(head)) + "<br>" + tag("span", text(", ".join(part["members"]) + more), class_="name")
            )
            cards.append(tag("div", body + "<br>" + tag("span", text(known), class_="soft")))
    return tag("div", "".join(cards), class_="classes") if cards else ""
