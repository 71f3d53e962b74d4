"""A random-graph model against its exact distribution.

In a club, friends of friends become friends: a graph is more probable with every triangle it closes. How many
friendships will there be? With six people all 32,768 graphs are listed here by plain NumPy, independently of
definetti. With thirty people there are 2^435 graphs: they can only be sampled, and what triangles add shows beside
the model without them, whose number of edges has a binomial distribution.
"""

import itertools
import sys
from pathlib import Path

import altair as alt
import numpy as np
from scipy.stats import binom

import definetti as dft
from definetti.pages.style import LINES, PALETTE, configured, estimates, save_chart

small = "--small" in sys.argv
EDGE, TRIANGLE = -0.7, 0.06  # weights; each edge counts twice (both directions), each triangle six times


def exact(nodes: int) -> np.ndarray:
    """P(number of edges) by listing all graphs."""
    pairs = list(itertools.combinations(range(nodes), 2))
    has = (np.arange(2 ** len(pairs))[:, None] >> np.arange(len(pairs))) & 1
    at = {pair: has[:, i] for i, pair in enumerate(pairs)}
    triangles = sum(at[a, b] * at[b, c] * at[a, c] for a, b, c in itertools.combinations(range(nodes), 3))
    weight = np.exp(2 * EDGE * has.sum(axis=1) + 6 * TRIANGLE * triangles)
    return np.bincount(has.sum(axis=1), weight) / weight.sum()


RULES = f"""
Edge(node, node)
!Edge(x,x).
Edge(x,y) => Edge(y,x).
{EDGE} Edge(x,y)
{TRIANGLE} Edge(x,y) ^ Edge(y,z) ^ Edge(x,z)
"""
panels, x = [], alt.X("edges:Q", title="friendships", scale=alt.Scale(nice=False, padding=8))
for nodes in (6, 14 if small else 30):
    club, pairs = dft.markov_logic(RULES, domain={"node": nodes}), nodes * (nodes - 1) // 2
    p = dft.marginals(club, ["#Edge"], sampler="gibbs", sweeps=2_000 if small else 20_000, seed=7)
    law = exact(nodes) if nodes == 6 else binom.pmf(np.arange(pairs + 1), pairs, 1 / (1 + np.exp(-2 * EDGE)))
    beside, (mean, half) = law @ np.arange(pairs + 1), (p["#Edge"].mean / 2, p["#Edge"].half_width / 2)
    kind = "all graphs listed" if nodes == 6 else "no triangles"
    print(f"{nodes} people: {mean:.3f} ± {half:.3f} friendships; {kind}: {beside:.3f}")
    assert p.trusted and (abs(mean - beside) < 2.5 * half if nodes == 6 else mean > beside + 5 * half)
    rows = [{"edges": r["value"] // 2, "p": r["probability"], "h": r["half_width"]} for r in p["#Edge"].distribution]
    dots = [r | {"low": max(r["p"] - r["h"], 0), "high": r["p"] + r["h"]} for r in rows]
    bars = alt.Chart(alt.Data(values=[{"edges": k, "p": q} for k, q in enumerate(law.tolist()) if q > 1e-5]))
    drawn = bars.mark_bar(color=LINES, opacity=0.45, size=9 if nodes == 6 else 4).encode(x=x, y="p:Q")
    drawn += estimates(dots, x, alt.value(PALETTE[0]))
    panels.append(drawn.properties(width=300, height=210, title=f"{nodes} people; grey: {kind}"))
save_chart(configured(alt.hconcat(*panels, spacing=30)), Path("random_graph.svg"))
