"""An Ising lattice against the exact edge correlations, above and below the critical point.

Magnets on a torus want to point the same way as their neighbours. How often do two neighbours agree? Kaufman's
formula of 1949 answers exactly for a finite torus. Below the critical temperature (coupling above 0.44) there are two
modes, all up and all down, and single moves do not cross. Averaged over moves of the torus alone, the chains disagree
and the tool raises the alarm. The flip of all magnets is a symmetry too (it is used by default): it carries one mode
onto the other, and the numbers are right. Swendsen and Wang's clusters cross by themselves.
"""

import math
import sys
from pathlib import Path

import altair as alt
import networkx as nx
import numpy as np

import definetti as dft
from definetti.pages.style import LINES, PALETTE, configured, estimates, save_chart

CRITICAL = math.log(1 + math.sqrt(2)) / 2
side, sweeps = (12, 300) if "--small" in sys.argv else (32, 2_000)


def log_z(k: float) -> float:
    """Kaufman's partition function of a side × side torus: four products over momenta."""
    g = np.arccosh(np.maximum(np.cosh(2 * k) ** 2 / np.sinh(2 * k) - np.cos(np.pi * np.arange(2 * side) / side), 1.0))
    g[0] = 2 * k + math.log(math.tanh(k))
    odd_even = [(s, side * abs(h)) for s in (1, -1) for h in (g[1::2], g[::2])]  # of 2 cosh and of 2 sinh
    terms, signs = np.array([(np.log1p(s * np.exp(-h)) + h / 2).sum() for s, h in odd_even]), [1, 1, 1, np.sign(g[0])]
    return side**2 / 2 * math.log(2 * math.sinh(2 * k)) + terms.max() + math.log(signs @ np.exp(terms - terms.max()))


def exact(k: float) -> float:
    """The mean of s·t over neighbours: the derivative of log Z, per edge."""
    return (log_z(k + 1e-5) - log_z(k - 1e-5)) / 2e-5 / (2 * side**2)


curve = [{"k": k, "c": exact(k)} for k in np.arange(0.1, 0.651, 0.005)]
line = alt.Chart(alt.Data(values=curve)).mark_line(color=LINES)
critical = alt.Chart(alt.Data(values=[{"k": CRITICAL}])).mark_rule(strokeDash=[4, 4], color=LINES)
x, title, panels = alt.X("k:Q", title="coupling"), "mean of s·t over neighbours", []
verdict = alt.Scale(domain=[True, False], range=[PALETTE[0], PALETTE[3]])
hue = alt.Color("trusted:N", title="trusted", scale=verdict, legend=alt.Legend(orient="bottom"))
torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side, periodic=True))
for how in ("gibbs variables", "gibbs auto", "swendsen-wang auto"):
    (sampler, symmetries), rows = how.split(), []
    for k in (0.2, 0.3, 0.38, 0.5, 0.6):
        both_up, model = "0=1 ^ 1=1", dft.read(torus, coupling=k)
        p = dft.marginals(model, both_up, sampler=sampler, symmetries=symmetries, sweeps=sweeps, seed=7)
        c, half = 4 * p[both_up].probability - 1, 4 * p[both_up].half_width  # P(both up) = (1 + c) / 4 by the flip
        kinds = ", ".join(sorted({n.kind for n in p.notices if n.fails})) or "trusted"
        print(f"coupling {k}, {how:18}  {c:.4f} ± {half:.4f}, exact {exact(k):.4f}   {kinds}")
        assert not p.trusted or abs(c - exact(k)) < 2.5 * half  # a trusted number is right (5 standard errors)
        assert p.trusted == (k < CRITICAL) or how != "gibbs variables" or k == 0.38  # near it, it depends on the length
        rows.append({"k": k, "c": c, "low": max(c - half, 0), "high": min(c + half, 1), "trusted": p.trusted})
    drawn = line.encode(x=x, y=alt.Y("c:Q", title=title)) + critical.encode(x=x) + estimates(rows, x, hue, "c", title)
    panels.append(drawn.properties(width=210, height=210, title=how.replace(" ", ", symmetries ")))
save_chart(configured(alt.hconcat(*panels, spacing=24)), Path("ising.svg"))
