"""How the figures look: the paper's axes, definetti's colours (`pages/style.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from definetti.errors import DefinettiError
from definetti.experiments import curves
from definetti.experiments.figure import Row
from definetti.pages.style import INK, LINES, PALETTE, configured

WIDTH, HEIGHT = 340, 260
SOLID, DASHED, DOTTED = [1, 0], [6, 3], [2, 2]
#: The same curve looks the same in every figure: colour by estimator, dashes by sampler.
LOOKS: dict[str, tuple[str, list[int]]] = {
    curves.STANDARD: (PALETTE[3], SOLID),
    curves.ORBIT: (PALETTE[0], SOLID),
    curves.MCSAT_STANDARD: (PALETTE[3], DASHED),
    curves.MCSAT_ORBIT: (PALETTE[0], DASHED),
    curves.AUTO: (PALETTE[2], SOLID),
    curves.CROWD: (PALETTE[2], DOTTED),
    curves.CROWD_CLOSE: (PALETTE[4], DASHED),
    curves.EXACT_ONE: (PALETTE[5], DASHED),
    curves.EXACT_ALL: (PALETTE[1], SOLID),
}
SPARE = [(PALETTE[5], DASHED), (PALETTE[1], SOLID), (PALETTE[4], DASHED), (INK, DOTTED)]


def altair() -> Any:
    try:
        import altair as alt
    except ImportError:
        raise DefinettiError("figures need altair and vl-convert: pip install 'definetti[report]'") from None
    alt.data_transformers.disable_max_rows()
    return alt


def looks(names: Sequence[str]) -> dict[str, tuple[str, list[int]]]:
    """Colour and dashes of each curve."""
    spare = iter(SPARE)
    return {name: LOOKS[name] if name in LOOKS else next(spare) for name in names}


def lines(
    rows: Sequence[Row], x: tuple[str, str], y: tuple[str, str], title: str, *, subtitle: str | Sequence[str] = "",
    x_log: bool = True, y_log: bool = True, band: bool = True, legend: bool = True,
    marks: Sequence[Mapping[str, Any]] = (), y_domain: tuple[float, float] | None = None,
) -> Any:  # fmt: skip
    """Curves with points. `rows` have `curve` and the fields named by `x` and `y` (field, axis title); with `band` also
    `low` and `high`; `censored` points are open. `marks`: horizontal or vertical lines {"y" or "x", "label"}."""
    alt = altair()
    names = list(dict.fromkeys(row["curve"] for row in rows))
    look = looks(names)
    scale = {"domain": names, "range": [look[name][0] for name in names]}
    dash = {"domain": names, "range": [look[name][1] for name in names]}
    key = alt.Legend(title=None, orient="bottom", columns=2, symbolStrokeWidth=2.2, symbolSize=260, labelLimit=260,
                     symbolType="stroke", symbolOpacity=1) if legend else None  # fmt: skip
    seen = [*rows, *({y[0]: edge} for edge in y_domain or ())]
    to_x = alt.X(f"{x[0]}:Q", title=x[1], scale=_scale(alt, x_log), axis=_axis(alt, rows, x[0], x_log))
    to_y = alt.Y(f"{y[0]}:Q", title=y[1], scale=_scale(alt, y_log, y_domain), axis=_axis(alt, seen, y[0], y_log))
    colour = alt.Color("curve:N", scale=alt.Scale(**scale), legend=key)
    dashes = alt.StrokeDash("curve:N", scale=alt.Scale(**dash), legend=key)
    base = alt.Chart(alt.Data(values=[{**row, "ink": look[row["curve"]][0]} for row in rows]))
    ink = alt.Color("ink:N", scale=None)  # the legend is of the lines alone
    layers = []
    if band:
        low = alt.Y("low:Q", scale=_scale(alt, y_log, y_domain), title=y[1])
        layers.append(
            base.mark_area(opacity=1.0, fillOpacity=0.14).encode(
                x=to_x, y=low, y2="high:Q", color=ink, detail="curve:N"
            )
        )
    layers.append(base.mark_line(strokeWidth=2.2).encode(x=to_x, y=to_y, color=colour, strokeDash=dashes))
    dots = base.mark_point(filled=True, size=26, opacity=1.0).encode(x=to_x, y=to_y, color=ink)
    ends = base.mark_point(filled=False, size=60, shape="triangle-up", strokeWidth=1.6)
    layers.append(dots.transform_filter("!datum.censored"))
    layers.append(ends.transform_filter("datum.censored").encode(x=to_x, y=to_y, color=ink))
    for mark in marks:
        layers += _mark(alt, mark, (x[1], x_log), (y[1], y_log))
    whole = alt.layer(*layers)
    return whole.properties(width=WIDTH, height=HEIGHT, title=_title(alt, title, subtitle))


def _title(alt: Any, title: str, subtitle: str | Sequence[str]) -> Any:
    return alt.Title(title, subtitle=subtitle) if subtitle else alt.Title(title)


def _scale(alt: Any, log: bool, domain: tuple[float, float] | None = None) -> Any:
    given = {} if domain is None else {"domain": list(domain)}
    return alt.Scale(type="log", nice=False, **given) if log else alt.Scale(zero=False, nice=True, **given)


def _axis(alt: Any, rows: Sequence[Row], name: str, log: bool) -> Any:
    """On a logarithmic axis whole powers of ten are labelled, at most about seven of them."""
    if not log:
        return alt.Axis(grid=True)
    import math

    values = [row[key] for row in rows for key in (name, *(("low", "high") if name == "value" else ())) if key in row]
    low = math.floor(math.log10(min(v for v in values if v > 0)))
    high = math.ceil(math.log10(max(values)))
    step = max(1, math.ceil((high - low) / 7))
    powers = [10.0**k for k in range(low, high + 1, step)]
    if high - low <= 2:
        powers = [m * 10.0**k for k in range(low, high + 1) for m in (1, 2, 5)]
    label = "datum.value >= 0.001 && datum.value < 1000000 ? format(datum.value, ',~g') : format(datum.value, '~e')"
    return alt.Axis(values=powers, labelExpr=label, grid=True, labelFlush=False, labelOverlap=True)


def _mark(alt: Any, mark: Mapping[str, Any], x: tuple[str, bool], y: tuple[str, bool]) -> list[Any]:
    across = "y" in mark
    data = alt.Chart(alt.Data(values=[{"at": mark["y"] if across else mark["x"], "label": mark["label"]}]))
    if across:
        place = alt.Y("at:Q", scale=_scale(alt, y[1]), title=y[0])
        text = data.mark_text(align="left", dx=4, dy=-6, fontSize=10, color=INK)
        return [
            data.mark_rule(color=LINES, strokeDash=[2, 3]).encode(y=place),
            text.encode(y=place, x=alt.value(0), text="label:N"),
        ]
    place = alt.X("at:Q", scale=_scale(alt, x[1]), title=x[0])
    text = data.mark_text(align="right", dx=-5, dy=10, fontSize=10, color=INK)
    return [
        data.mark_rule(color=INK, strokeDash=[2, 3]).encode(x=place),
        text.encode(x=place, y=alt.value(0), text="label:N"),
    ]


def divergence_figure(
    rows: Sequence[Row], title: str, subtitle: str | Sequence[str], marks: Sequence[Mapping[str, Any]] = ()
) -> Any:
    """The panels of Figure 2: KL over time, and the squared error beside it."""
    kl = lines(
        curves.summary(rows, "kl"), ("seconds", "CPU seconds of sampling"), ("value", "average KL divergence"), title,
        subtitle=subtitle, marks=marks,
    )  # fmt: skip
    mse = lines(
        curves.summary(rows, "mse"), ("seconds", "CPU seconds of sampling"), ("value", "mean squared error"),
        "The same, squared error",
        subtitle=["lines: geometric means of the runs", "bands: from the smallest to the largest"],
    )  # fmt: skip
    return configured(altair().hconcat(kl, mse, spacing=40))


def in_rows(*rows: Sequence[Any]) -> Any:
    """Panels of one figure, row by row, each with its own scales and legend."""
    alt = altair()
    whole = [alt.hconcat(*row, spacing=40).resolve_scale(color="independent", strokeDash="independent") for row in rows]
    return configured(alt.vconcat(*whole, spacing=30).resolve_scale(color="independent", strokeDash="independent"))
