"""The paper's Figure 1 for any small model: the state graph coloured by orbit, the lumped graph beside it, and the
distance of both chains to stationarity over time.

States stand in layers by the sum of their values, the states of an orbit side by side. Orbits of one state are grey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from definetti import show
from definetti.errors import DefinettiError
from definetti.pages.style import ALONE, INK, LINES, PALETTE, configured

if TYPE_CHECKING:
    from definetti.lumping.quotient import QuotientChain

MOST_DRAWN = 1024  # nodes of a graph
MOST_EDGES = 8000
MOST_LABELLED = 40  # nodes that carry their state as text
WIDTH, HEIGHT = 330, 330


def quotient_figure(found: QuotientChain) -> Any:
    """An altair chart."""
    try:
        import altair as alt
    except ImportError:
        raise DefinettiError("figures need altair and vl-convert: pip install 'definetti[report]'") from None

    alt.data_transformers.disable_max_rows()
    panels = [] if found.states > MOST_DRAWN else [_states(alt, found), _orbits(alt, found)]
    whole = alt.hconcat(*panels, _distances(alt, found), spacing=36)
    return configured(whole.resolve_scale(color="independent", strokeDash="independent"))


def _layers(found: QuotientChain) -> np.ndarray:
    return found.space.states[:, found.space.model.free].astype(np.int64).sum(axis=1)


def colours(found: QuotientChain) -> list[str]:
    """Of each orbit: the next of the palette within its layer and between neighbouring layers, grey if it is alone."""
    used = 0
    order = np.argsort(_layers(found)[found.partition.first], kind="stable")
    colour = np.full(found.orbits, ALONE, dtype=object)
    for orbit in order.tolist():
        if found.partition.sizes[orbit] > 1:
            colour[orbit] = PALETTE[used % (len(PALETTE) - 1)]
            used += 1
    return colour.tolist()


def ink(background: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (int(background[k : k + 2], 16) for k in (1, 3, 5))
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 140 else "white"


def _positions(layer: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """x of each node: its layer's nodes in the order of `rank`, equally spaced around 0."""
    x = np.zeros(len(layer))
    for one in np.unique(layer).tolist():
        here = np.flatnonzero(layer == one)
        here = here[np.argsort(rank[here], kind="stable")]
        x[here] = np.arange(len(here)) - (len(here) - 1) / 2
    return x


def _states(alt: Any, found: QuotientChain) -> Any:
    layer, orbit = _layers(found), found.partition.orbit_of
    x = _positions(layer, orbit * found.states + np.arange(found.states))
    colour = colours(found)
    nodes = [
        {
            "x": float(x[s]),
            "y": int(layer[s]),
            "colour": colour[orbit[s]],
            "label": found.space.text(s),
            "size": "",
            "ink": ink(colour[orbit[s]]),
            "orbit": int(orbit[s]) + 1,
            "probability": float(found.space.probability[s]),
        }
        for s in range(found.states)
    ]
    free = found.space.model.free
    names = [found.space.model.names[i] for i in free[:8]]
    title = alt.Title(f"{show.count(found.states)} states", subtitle=_listed(names, len(free)))
    return _graph(alt, nodes, _edges(found.chain.matrix, x, layer), title)


def _listed(names: list[str], count: int) -> str:
    text = " ".join(names) + (" …" if count > len(names) else "")
    return text if len(text) <= 58 else text[:57] + "…"


def _orbits(alt: Any, found: QuotientChain) -> Any:
    first, sizes = found.partition.first, found.partition.sizes
    mass = found.partition.total(found.space.probability)
    layer = _layers(found)[first]
    x, colour = _positions(layer, np.arange(found.orbits)), colours(found)
    nodes = [
        {
            "x": float(x[k]),
            "y": int(layer[k]),
            "colour": colour[k],
            "label": found.space.text(int(first[k])),
            "size": f"×{sizes[k]}" if sizes[k] > 1 else "",
            "ink": ink(colour[k]),
            "orbit": k + 1,
            "probability": float(mass[k]),
        }
        for k in range(found.orbits)
    ]
    text = "can be lumped" if found.lumpable else f"NOT lumpable: violation {found.lumpability.ordinary:.2g}"
    title = alt.Title(f"{show.count(found.orbits)} orbits", subtitle=f"the quotient chain: {text}")
    return _graph(alt, nodes, _edges(found.quotient.matrix, x, layer), title)


def _edges(matrix: Any, x: np.ndarray, layer: np.ndarray) -> list[dict[str, Any]]:
    """Pairs that a step connects, both ends different; none where there are too many to be seen."""
    from scipy.sparse import coo_array, triu

    upper = triu(coo_array(abs(matrix) + abs(matrix).T), k=1).tocoo()
    if upper.nnz > MOST_EDGES:
        return []
    pairs = zip(upper.row.tolist(), upper.col.tolist(), strict=True)
    return [
        {"x": float(x[a]), "y": int(layer[a]), "x2": float(x[b]), "y2": int(layer[b])} for a, b in pairs
    ]


def _graph(alt: Any, nodes: list[dict[str, Any]], edges: list[dict[str, Any]], title: Any) -> Any:
    widest = max(2.0, 2 * max(abs(node["x"]) for node in nodes) + 1)
    longest = max(len(node["label"]) for node in nodes)
    short, few = longest <= 5 and len(nodes) <= MOST_LABELLED, widest * (9 * longest + 40) <= WIDTH
    labelled = short or few
    reach = widest / 2 + 0.1
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-reach, reach]))
    top = max(node["y"] for node in nodes)
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-0.4, top + 0.4]))
    room = min(0.36 * WIDTH / widest, 0.34 * HEIGHT / (top + 1))
    radius = 17.0 if short else float(np.clip(room, 1.6, 12.0))
    thin = 0.9 if len(edges) < 200 else 0.35
    lines = alt.Chart(alt.Data(values=edges)).mark_rule(color=LINES, strokeWidth=thin, opacity=0.55)
    dots = alt.Chart(alt.Data(values=nodes)).mark_point(
        filled=True, opacity=1.0, size=3.1416 * radius**2, stroke="white", strokeWidth=1.2 if labelled else 0.4
    )
    tips = [alt.Tooltip(f"{name}:N") for name in ("label", "orbit")] + [alt.Tooltip("probability:Q", format=".4g")]
    layers = [
        lines.encode(x=x, y=y, x2="x2:Q", y2="y2:Q"),
        dots.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), tooltip=tips),
    ]
    if labelled:
        layers += _labels(alt, nodes, x, y, short, radius)
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def _labels(alt: Any, nodes: list[dict[str, Any]], x: Any, y: Any, inside: bool, radius: float) -> list[Any]:
    """Short states inside their nodes, with the sizes of orbits below; long ones beside them."""
    halo = {"stroke": "white", "strokeWidth": 3, "fontSize": 10, "fontWeight": "bold"}
    plain = {"fontSize": 10, "fontWeight": "bold"}
    if not inside:
        long = [node | {"label": f"{node['label']} {node['size']}"} for node in nodes]
        text = alt.Chart(alt.Data(values=long)).encode(x=x, y=y, text="label:N")
        beside = {"align": "left", "dx": radius + 6}
        return [text.mark_text(**halo, **beside), text.mark_text(**plain, **beside, color=INK)]
    text = alt.Chart(alt.Data(values=nodes)).encode(x=x, y=y, text="label:N", color=alt.Color("ink:N", scale=None))
    below = alt.Chart(alt.Data(values=nodes)).encode(x=x, y=y, text="size:N")
    return [text.mark_text(**plain), below.mark_text(**halo, dy=24), below.mark_text(**plain, color=INK, dy=24)]


def _distances(alt: Any, found: QuotientChain) -> Any:
    curve, epsilon = found.curve, found.epsilon
    last = 1.3 * curve.burn_in[-1]
    rows = [
        {"step": t, "distance": float(d), "of": name}
        for name, distance in (("chain", curve.distance), ("quotient", curve.bound))
        if distance is not None
        for t, d in zip(curve.burn_in, distance.tolist(), strict=True)
    ]
    lowest = epsilon / 20
    x = alt.X("step:Q", title=f"{found.transitions.step}s", scale=alt.Scale(domain=[0, last], nice=False))
    y = alt.Y(
        "distance:Q", title="total-variation distance from the worst start",
        scale=alt.Scale(type="log", domain=[lowest, 1], clamp=True),
        axis=alt.Axis(format="~g", values=[10.0**-k for k in range(12) if 10.0**-k >= lowest]),
    )  # fmt: skip
    names = ["chain", "quotient"]
    legend = alt.Legend(orient="top-right", title=None, symbolStrokeWidth=2.2, symbolType="stroke", symbolSize=300)
    colour = alt.Color("of:N", scale=alt.Scale(domain=names, range=[PALETTE[0], PALETTE[3]]), legend=legend)
    dashes = alt.StrokeDash("of:N", scale=alt.Scale(domain=names, range=[[1, 0], [6, 4]]), legend=legend)
    seen = [row for row in rows if row["distance"] > lowest]
    lines = alt.Chart(alt.Data(values=seen)).mark_line(strokeWidth=2.2, clip=True)
    level = alt.Chart(alt.Data(values=[{"distance": epsilon}])).mark_rule(color=LINES, strokeDash=[2, 3])
    layers = [level.encode(y=y), lines.encode(x=x, y=y, color=colour, strokeDash=dashes)]
    for mark in _marks(found, last):
        point = alt.Chart(alt.Data(values=[mark])).encode(x=x, y=y)
        layers.append(point.mark_point(filled=True, size=60, opacity=1, color=mark["colour"]))
        place = {"align": mark["align"], "dx": mark["dx"], "dy": mark["dy"]}
        layers.append(point.mark_text(fontSize=12, color=mark["colour"], **place).encode(text="label:N"))
    title = alt.Title("Distance to stationarity", subtitle=f"{found.sampler.name}, {found.sampler.scan} scan")
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def _marks(found: QuotientChain, last: float) -> list[dict[str, Any]]:
    """Where the lines fall below ε: beside them there is room above to the right of the chain's and below to the left
    of the quotient's."""
    tau, small, epsilon = found.tau, found.quotient_tau, found.epsilon
    if tau is None or small is None:
        return []
    right = {"align": "left", "dx": 8, "dy": -10}
    if tau == small:
        text = f"τ({epsilon:g}) = τ′({epsilon:g}) = {tau}"
        return [{"step": tau, "distance": epsilon, "label": text, "colour": INK, **right}]
    left = {"align": "right", "dx": -8, "dy": 14} if small > 0.3 * last else {"align": "left", "dx": 12, "dy": 14}
    first = {"step": tau, "distance": epsilon, "label": f"τ({epsilon:g}) = {tau}", "colour": PALETTE[0], **right}
    second = {"step": small, "distance": epsilon, "label": f"τ′({epsilon:g}) = {small}", "colour": PALETTE[3], **left}
    return [first, second]
