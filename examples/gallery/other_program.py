"""Another program's samples made sharper, and checked for bias.

You have a sampler of your own, here a Gibbs sampler in a few lines of NumPy, for magnets on a grid in a field. Its
draws can be given to definetti together with the model. Averaged over the eight symmetries of the square they have
smaller errors. And as draws of a model must agree with its full conditionals, a sampler with a bug is found out,
without knowing the right answer. The bug planted here is a popular one: the grid wraps around, so that magnets on the
border have neighbours on the other side.
"""

import sys
from pathlib import Path

import altair as alt
import networkx as nx
import numpy as np

import definetti as dft
from definetti.pages.style import PALETTE, configured, estimates, save_chart

chains, sweeps = (8, 1_000) if "--small" in sys.argv else (16, 5_000)
SIDE, COUPLING, FIELD = 6, 0.3, 0.2
grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(SIDE, SIDE))
nx.set_node_attributes(grid, FIELD, "field")
model = dft.read(grid, coupling=COUPLING)
right, wrong = (nx.to_numpy_array(nx.grid_2d_graph(SIDE, SIDE, periodic=wraps)) for wraps in (False, True))


def gibbs(linked: np.ndarray, seed: int) -> np.ndarray:
    """Draws as an array chains × sweeps × magnets of 0 and 1."""
    rng = np.random.default_rng(seed)
    spins, draws = rng.choice([-1.0, 1.0], (chains, SIDE**2)), np.empty((chains, sweeps, SIDE**2), np.uint8)
    for t in range(-100, sweeps):
        for site in range(SIDE**2):
            field = FIELD + COUPLING * spins @ linked[site]
            spins[:, site] = np.where(rng.random(field.shape) < 1 / (1 + np.exp(-2 * field)), 1, -1)
        if t >= 0:
            draws[:, t] = spins > 0
    return draws


truth, good = dft.exact(model), gibbs(right, 7)
answers = {
    "right, as it is": dft.marginals(good, model=model, symmetries="none", estimator="standard"),
    "right, over orbits": dft.marginals(good, model=model),
    "wrong, over orbits": dft.marginals(gibbs(wrong, 7), model=model),
}
x, panels, widths, scores = alt.X("site:Q", title="magnet"), [], [], []
for (name, p), hue in zip(answers.items(), (PALETTE[1], PALETTE[0], PALETTE[3]), strict=True):
    off = np.array([p[str(i)].probability - truth[str(i)].probability for i in range(SIDE**2)])
    half = np.array([p[str(i)].half_width for i in range(SIDE**2)])
    kinds = [n.kind for n in p.notices if n.fails]
    print(f"{name:20} root mean squared error {(off**2).mean() ** 0.5:.5f}, {', '.join(kinds) or 'trusted'}")
    assert ("biased" in kinds) == name.startswith("wrong")
    widths.append(half.mean())
    rows = [{"site": i, "p": off[i], "low": off[i] - half[i], "high": off[i] + half[i]} for i in range(SIDE**2)]
    drawn = estimates(rows, x, alt.value(hue), title="estimate − exact probability")
    panels.append(drawn.properties(width=210, height=200, title=name.capitalize()))
assert widths[1] < 0.75 * widths[0]  # shorter error bars from the same draws
save_chart(configured(alt.hconcat(*panels, spacing=24).resolve_scale(y="shared")), Path("other_program.svg"))
