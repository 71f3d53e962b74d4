"""Charts for notebooks, by Altair: marginals with intervals, convergence, a symmetry. They save as PNG, SVG or HTML."""

from __future__ import annotations

from typing import Any

from definetti.errors import DefinettiError, ModelError
from definetti.model.marginals import Count, Estimate, Marginals, OrbitRow, width
from definetti.pages.fragments import colour
from definetti.pages.style import ALONE, INK, LINES, PALETTE, configured

MOST_ROWS = 60  # of a chart of marginals
MOST_SERIES = 20
RARE = 0.02


def altair() -> Any:
    try:
        import altair as alt
    except ImportError:
        raise DefinettiError("charts need altair and vl-convert: pip install 'definetti[report]'") from None
    return alt


def _values(alt: Any, rows: list[dict[str, Any]]) -> Any:
    return alt.Data(values=rows)


# --- marginals -------------------------------------------------------------------------------------------------------


def marginals_chart(answer: Marginals, most: int = MOST_ROWS, scale: str = "auto") -> Any:
    """Queries if any were asked, else orbits, largest first: dots with 95 % intervals on a linear or logit axis."""
    if scale not in ("auto", "linear", "logit"):
        raise ModelError(f"scale is auto, linear or logit, not {scale!r}")
    alt = altair()
    rows = _intervals(answer)[:most]
    rare = any(0 < row["probability"] < RARE or 1 - RARE < row["probability"] < 1 for row in rows)
    logit = scale == "logit" or (scale == "auto" and rare)
    if logit:
        rows = [
            row | {key: min(max(row[key], 1e-9), 1 - 1e-9) for key in ("low", "probability", "high")} for row in rows
        ]
    base = alt.Chart(_values(alt, rows))
    if logit:
        base = base.transform_calculate(
            l="log(datum.low / (1 - datum.low))", p="log(datum.probability / (1 - datum.probability))",
            h="log(datum.high / (1 - datum.high))",
        )  # fmt: skip
        text = "format(1 / (1 + exp(-datum.value)), '.2~g')"
        axis = alt.Axis(labelExpr=text)
    else:
        base = base.transform_calculate(l="datum.low", p="datum.probability", h="datum.high")
        axis = alt.Axis(format=".4~g", tickCount=6)
    title = "probability, logit axis" if logit else "probability"
    x = alt.X("p:Q", title=title, axis=axis, scale=alt.Scale(zero=False, nice=False, padding=8))
    y = alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=220))
    tips = [alt.Tooltip("name:N"), alt.Tooltip("size:Q"), alt.Tooltip("probability:Q", format=".6g"),
            alt.Tooltip("half_width:Q", format=".2g")]  # fmt: skip
    lines = base.mark_rule(color=PALETTE[0], strokeWidth=2.4, opacity=0.55).encode(
        y=y, x=alt.X("l:Q", title=title, axis=axis), x2="h:Q"
    )
    dots = base.mark_point(filled=True, size=46, opacity=1, color=PALETTE[0]).encode(x=x, y=y, tooltip=tips)
    what = "queries" if answer.queries else "orbits, largest first"
    total = len(answer.queries) or len(answer.orbits)
    head = alt.Title("Marginals with 95 % intervals", subtitle=f"{min(most, total)} of {total} {what}")
    return configured((lines + dots).properties(width=420, height=alt.Step(17), title=head))


def _intervals(answer: Marginals) -> list[dict[str, Any]]:
    named: list[tuple[str, int, Estimate | OrbitRow]] = [(n, e.orbit_size, e) for n, e in answer.queries.items()]
    ordered = sorted(answer.orbits, key=lambda row: -row.size)
    named = [one for one in named if not isinstance(one[2], Count)]  # these have another axis
    named = named or [(row.representative, row.size, row) for row in ordered]
    out: list[dict[str, Any]] = []
    for name, size, one in named:
        several = isinstance(one.probability, list)
        ps, halves = (v if isinstance(v, list) else [v] for v in (one.probability, width(one)))
        for v, p in enumerate(ps):
            p, half = 0.5 if p is None else p, halves[v] if v < len(halves) else None
            reach = 1.0 if half is None else half
            out.append({"name": f"{name}={v}" if several else name, "size": size, "probability": p, "half_width": half,
                        "low": max(p - reach, 0.0), "high": min(p + reach, 1.0)})  # fmt: skip
    return out


# --- convergence -----------------------------------------------------------------------------------------------------


def convergence_chart(answer: Marginals, most: int = MOST_SERIES) -> Any:
    """Running estimates with 95 % bands of the orbits with the widest intervals, and R-hat of all that were kept."""
    alt = altair()
    kept = answer.trace
    if kept is None or not len(kept.lengths):
        raise ModelError("this answer was not sampled by definetti, or too briefly: there is no convergence to draw")
    curves = kept.curves
    order = sorted(range(len(kept.names)), key=lambda k: -float(kept.half_width[k] if kept.half_width[k] > 0 else 0))
    rows, mixing = [], []
    for k in order[:most]:
        for t, sweeps in enumerate(curves.sweeps.tolist()):
            value, half = float(curves.value[t, k]), float(curves.half_width[t, k])
            if value == value:
                band = {"low": max(value - half, 0.0), "high": min(value + half, 1.0)} if half == half else {}
                rows.append({"sweeps": sweeps, "value": value, "orbit": kept.names[k]} | band)
    for t, sweeps in enumerate(curves.sweeps.tolist()):
        known = [float(r) for r in curves.rhat[t].tolist() if r == r and r != float("inf")]
        if known:
            mixing.append({"sweeps": sweeps, "rhat": max(known)})
    x = alt.X("sweeps:Q", title="kept sweeps", scale=alt.Scale(nice=False))
    some = min(6, most)
    few = [row for row in rows if row["orbit"] in {kept.names[k] for k in order[:some]}]
    base = alt.Chart(_values(alt, few)).encode(x=x)
    hue = alt.Color("orbit:N", scale=alt.Scale(range=list(PALETTE)), legend=alt.Legend(title="orbit of"))
    y = alt.Y("value:Q", title="running estimate", scale=alt.Scale(zero=False))
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="running estimate"), y2="high:Q", color=hue)
    line = base.mark_line(strokeWidth=1.8).encode(y=y, color=hue, tooltip=["orbit:N", "sweeps:Q", "value:Q"])
    left = (band + line).properties(width=420, height=260, title=alt.Title("Running estimates, 95 % bands"))
    rhat = (
        alt.Chart(_values(alt, mixing))
        .mark_line(color=PALETTE[0], strokeWidth=2)
        .encode(x=x, y=alt.Y("rhat:Q", title="R-hat of the worst orbit", scale=alt.Scale(zero=False)))
    )
    level = alt.Chart(_values(alt, [{"y": 1.05}])).mark_rule(color=PALETTE[3], strokeDash=[4, 4]).encode(y="y:Q")
    right = (rhat + level).properties(
        width=300, height=260, title=alt.Title("Mixing", subtitle="not trusted above 1.05")
    )
    return configured(alt.hconcat(left, right, spacing=30))


# --- symmetry --------------------------------------------------------------------------------------------------------


def group_chart(group: Any) -> Any:
    from definetti.symmetry.picture import group_answers, picture

    orbits = sorted(group.orbits, key=lambda orbit: -orbit.size)
    return symmetry_chart(picture(group_answers(group)), [(orbit.representative, orbit.size) for orbit in orbits])


def symmetry_chart(found: dict[str, Any], orbits: list[tuple[str, int]]) -> Any:
    """A picture of `definetti.symmetry.picture`, coloured by orbit; (representative, size) of the orbits beside it."""
    alt = altair()
    if found["kind"] == "graph":
        return configured(_graph(alt, found, orbits))
    if found["kind"] == "logic":
        return configured(_logic(alt, found, orbits))
    return configured(_sizes(alt, found, orbits))


def _hue(place: int, orbits: list[tuple[str, int]]) -> str:
    return {-1: INK, -2: "#FFFFFF"}.get(place, ALONE) if place < 0 else colour(place, orbits[place][1])


def _orbit(place: int, orbits: list[tuple[str, int]]) -> str:
    if place < 0:
        return {-1: "observed", -2: "observed false"}.get(place, "none")
    return f"{orbits[place][0]} ({orbits[place][1]})"


def _graph(alt: Any, found: dict[str, Any], orbits: list[tuple[str, int]]) -> Any:
    nodes = [
        {"x": n["x"], "y": -n["y"], "name": n["name"] or "factor", "orbit": _orbit(n["row"], orbits),
         "colour": _hue(n["row"], orbits) if n["name"] else LINES, "shape": "circle" if n["name"] else "square"}
        for n in found["nodes"]
    ]  # fmt: skip
    edges = [
        {"x": nodes[a]["x"], "y": nodes[a]["y"], "x2": nodes[b]["x"], "y2": nodes[b]["y"]} for a, b in found["edges"]
    ]
    x, y = alt.X("x:Q", axis=None), alt.Y("y:Q", axis=None)
    lines = alt.Chart(_values(alt, edges)).mark_rule(color=LINES, opacity=0.5).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    size = 380 if len(nodes) <= 40 else 160 if len(nodes) <= 160 else 70
    point = alt.selection_point(fields=["orbit"], on="pointerover", empty=True)
    dots = (
        alt.Chart(_values(alt, nodes))
        .mark_point(filled=True, size=size, stroke="white", strokeWidth=1)
        .encode(
            x=x, y=y, color=alt.Color("colour:N", scale=None), shape=alt.Shape("shape:N", scale=None, legend=None),
            opacity=alt.when(point).then(alt.value(1.0)).otherwise(alt.value(0.15)), tooltip=["name:N", "orbit:N"],
        )
        .add_params(point)
    )  # fmt: skip
    tall = max((-n["y"] for n in nodes), default=1.0)
    head = alt.Title(f"{len(found['nodes'])} nodes, {len(orbits)} orbits")
    return (lines + dots).properties(width=480, height=max(60, round(480 * tall)), title=head)


def _logic(alt: Any, found: dict[str, Any], orbits: list[tuple[str, int]]) -> Any:
    panels = []
    for one in found["predicates"]:
        rows = one["labels"][0] if one["labels"] else [one["name"]]
        columns = one["labels"][1] if len(one["labels"]) > 1 else [""]
        cells = [
            {"row": rows[i], "column": columns[j], "colour": _hue(place, orbits), "orbit": _orbit(place, orbits)}
            for i, line in enumerate(one["cells"])
            for j, place in enumerate(line)
            if place is not None
        ]
        panels.append(
            alt.Chart(_values(alt, cells))
            .mark_rect(stroke="#DDDDDD", strokeWidth=0.6)
            .encode(
                x=alt.X("column:N", sort=columns, title=None), y=alt.Y("row:N", sort=rows, title=None),
                color=alt.Color("colour:N", scale=None), tooltip=["row:N", "column:N", "orbit:N"],
            )
            .properties(width=alt.Step(18), height=alt.Step(18), title=f"{one['name']}({', '.join(one['sorts'])})")
        )  # fmt: skip
    return alt.concat(*panels, columns=4, spacing=26).resolve_scale(x="independent", y="independent")


def _sizes(alt: Any, found: dict[str, Any], orbits: list[tuple[str, int]]) -> Any:
    rows = [{"orbit": name, "size": size} for name, size in orbits[:MOST_ROWS]]
    head = alt.Title("Orbits by size", subtitle=found["why"])
    return (
        alt.Chart(_values(alt, rows))
        .mark_bar(color=PALETTE[0])
        .encode(x=alt.X("size:Q", scale=alt.Scale(type="symlog")), y=alt.Y("orbit:N", sort=None, title=None))
        .properties(width=380, title=head)
    )
