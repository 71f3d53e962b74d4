"""Twelve pumps in one basement: how reliable is a redundant system if one flood can take them all?

Eight of twelve pumps must run. In a year a pump fails with probability 0.05; if the basement is flooded (probability
0.02), with probability 0.6. Taken as independent, twelve pumps hardly ever fail together. Conditional queries show
what is wrong with that: each pump known to have failed makes a flood more probable, and so the failure of the next
one. All pumps are alike, so that lifted counting is exact. Gibbs sampling answers the same queries, but it has to
wait for floods, which shows in its error bars.
"""

import sys
from math import log
from pathlib import Path

import altair as alt
import numpy as np
from scipy.stats import binom

import definetti as dft
from definetti.pages.style import PALETTE, configured, estimates, save_chart

sweeps = 20_000 if "--small" in sys.argv else 200_000
rules = f"""
Failed(pump)
Flood()
{log(0.02)} Flood()
{log(0.98)} !Flood()
{log(0.60)} Flood() ^ Failed(x)
{log(0.40)} Flood() ^ !Failed(x)
{log(0.05)} !Flood() ^ Failed(x)
{log(0.95)} !Flood() ^ !Failed(x)
"""
basement, dots = dft.markov_logic(rules, domain={"pump": 12}), []
given = ["", *(" | " + " ^ ".join(f"Failed(Pump{i})" for i in range(1, k + 1)) for k in range(1, 5))]
queries = [what + known for what in ("Failed(Pump12)", "Flood()") for known in given]
truth = dft.exact(basement, [*queries, "#Failed"])
p = dft.marginals(basement, queries, sampler="gibbs", sweeps=sweeps, seed=7)
count = np.array([row["probability"] for row in truth["#Failed"].distribution])
alone = binom.pmf(np.arange(13), 12, truth["Failed(Pump12)"].probability)
print(f"P(fewer than eight run) = {count[5:].sum():.4f}; were the pumps independent, {alone[5:].sum():.6f}")
print("sampled:", "; ".join(f"{n.kind}: {n.message}" for n in p.notices if n.fails) or "trusted")
assert abs(truth["Flood()"].probability - 0.02) < 1e-9 and count[5:].sum() > 10 * alone[5:].sum()
for known, query in enumerate(queries):
    (low, high), q, right = p[query].interval, p[query].probability, truth[query].probability
    print(f"{query:77} exact {right:.4f}, sampled {q:.4f}, 95 % in [{low:.4f}, {high:.4f}]")
    assert abs(q - right) < 2.5 * p[query].half_width  # 5 standard errors
    event = "there was a flood" if query.startswith("Flood") else "another pump failed"
    dots.append({"known": known % 5, "p": q, "low": low, "high": high, "right": right, "event": event})
laws = (("with floods", count), ("independent", alone))
law = [{"failed": k, "p": float(q[k]), "pumps": name} for name, q in laws for k in range(13) if q[k] > 1e-9]
axis = alt.Y("p:Q", scale=alt.Scale(type="log"), title="probability", axis=alt.Axis(format="~e", tickCount=5))
hue, below = alt.Scale(range=[PALETTE[0], PALETTE[1]]), alt.Legend(title=None, orient="bottom")
left = alt.Chart(alt.Data(values=law)).mark_line(point=True)
left = left.encode(alt.X("failed:Q", title="failed pumps"), axis, alt.Color("pumps:N", scale=hue, legend=below))
x = alt.X("known:O", title="pumps known to have failed", axis=alt.Axis(labelAngle=0))
colour = alt.Color("event:N", scale=hue, legend=below)
right = alt.Chart(alt.Data(values=dots)).mark_line().encode(x=x, y="right:Q", color=colour) + estimates(dots, x, colour)
left = left.properties(width=300, height=230, title="How many fail")
right = right.properties(width=300, height=230, title="What a failure says (lines: exact)")
save_chart(configured(alt.hconcat(left, right, spacing=30).resolve_scale(color="independent")), Path("reliability.svg"))
