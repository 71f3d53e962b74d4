"""How charts look: one palette that colour-blind readers can tell apart, one font, and the three file formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from definetti.errors import DefinettiError
from definetti.files import write_atomically

#: Okabe and Ito's colours, the dark ones first; neighbours differ in lightness too.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#000000")
ALONE = "#BBBBBB"  # for what has nothing to be compared with
LINES = "#888888"
INK = "#222222"
FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
SCALE = 3.0  # pixels of a PNG for each unit of the drawing: about 300 dots an inch in a column of 8 cm


def configured(chart: Any) -> Any:
    """A whole chart in the house's style: white, thin axes, no frame."""
    return (
        chart.configure(background="white", font=FONT, padding=12)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK, titleColor=INK, labelFontSize=11, titleFontSize=12, titleFontWeight="normal",
            gridColor="#E6E6E6", domainColor=INK, tickColor=INK,
        )
        .configure_title(fontSize=13, fontWeight="bold", color=INK, anchor="start", subtitleFontSize=11,
                         subtitleColor="#555555", offset=8)
        .configure_legend(labelFontSize=11, titleFontSize=11, labelColor=INK, titleColor=INK)
    )  # fmt: skip


def estimates(rows: list[dict[str, Any]], x: Any, color: Any, y: str = "p", title: str = "probability") -> Any:
    """A layer of dots with intervals, from `low` to `high` of each row; `x` and `color` are Altair's encodings."""
    import altair as alt

    base = alt.Chart(alt.Data(values=rows)).encode(x=x, color=color)
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    return bars + base.mark_point(filled=True, size=46, opacity=1).encode(y=alt.Y(f"{y}:Q", title=title))


def save_chart(chart: Any, path: Path) -> None:
    """Writes .svg, .png, or an .html page that works without a network."""
    try:
        import vl_convert
    except ImportError:
        raise DefinettiError("figures need altair and vl-convert: pip install 'definetti[report]'") from None

    spec = chart.to_dict()
    if path.suffix == ".png":
        write_atomically(path, vl_convert.vegalite_to_png(spec, scale=SCALE))
    elif path.suffix == ".svg":
        write_atomically(path, vl_convert.vegalite_to_svg(spec))
    else:
        write_atomically(path, vl_convert.vegalite_to_html(spec, bundle=True))
