"""The picture of the README: the error of four estimates from the same draws, on the bundled 12×12 grid.

python docs/_static/errors.py    # from the root of the sources; writes docs/_static/errors.svg, in about a minute
"""

from pathlib import Path

import altair as alt
import numpy as np

import definetti as dft
from definetti.pages.style import PALETTE, configured, save_chart

HERE = Path(__file__).parent
NAMES = {
    "standard": "plain frequencies",
    "orbit": "averaged over orbits",
    "conditional": "full conditionals over orbits",
    "control": "control variates (default)",
}

model = dft.read(HERE.parents[1] / "examples" / "grid.uai")
group, truth = dft.symmetries(model), dft.exact(model)
rows = []
for sweeps in (10, 30, 100, 300, 1000):
    for estimator, name in NAMES.items():
        options = {"sampler": "gibbs", "symmetries": group, "estimator": estimator, "sweeps": sweeps}
        errors = [
            float(p[x].probability) - float(truth[x].probability)  # type: ignore[arg-type]
            for seed in range(4)
            for p in [dft.marginals(model, **options, seed=seed)]
            for x in truth
        ]
        rows.append({"sweeps": sweeps, "estimate": name, "error": float(np.sqrt(np.mean(np.square(errors))))})
    print(*(f"{row['estimate']} {row['error']:.2g}" for row in rows[-4:]), sep="; ")

colours = alt.Scale(domain=list(NAMES.values()), range=[PALETTE[3], PALETTE[1], PALETTE[4], PALETTE[0]])
base = alt.Chart(alt.InlineData(rows)).encode(
    x=alt.X("sweeps:Q", title="sweeps of 64 chains", scale=alt.Scale(type="log")),
    y=alt.Y(
        "error:Q",
        title="root mean squared error",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format=".0e", values=[1e-4, 1e-3, 1e-2]),
    ),
    color=alt.Color("estimate:N", scale=colours, legend=None),
)
labels = alt.Chart(alt.InlineData(rows[-4:])).mark_text(align="left", dx=8, fontSize=12)
labels = labels.encode(x="sweeps:Q", y="error:Q", text="estimate:N", color=alt.Color("estimate:N", legend=None))
chart = base.mark_line(strokeWidth=2.2) + base.mark_point(filled=True, size=36) + labels
title = alt.Title("The same draws, four estimates", subtitle="marginals of a 12×12 grid with 8 symmetries")
save_chart(configured(chart.properties(width=420, height=220, title=title)), HERE / "errors.svg")
