"""Which side will the members of a karate club take? Classification where symmetry helps little.

Zachary's karate club split in two after a quarrel between members 0 and 33. Knowing only who spends time with whom,
and the sides of these two, on which side is each other member? A spin per member, coupled along friendships, gives
each a probability. People differ, so the symmetries are few: they exchange some members who know nobody but the two
leaders. Averaging over orbits then hardly helps, and it would be dishonest to expect more. What helps are control
variates, which `auto` fits to the full conditionals that Gibbs sampling computes anyway.
"""

import sys
from pathlib import Path

import altair as alt
import networkx as nx
import numpy as np

import definetti as dft
from definetti.pages.style import INK, LINES, PALETTE, configured, save_chart

runs, sweeps = (5, 200) if "--small" in sys.argv else (40, 500)
club = nx.karate_club_graph()
friendships = nx.Graph()
friendships.add_nodes_from(club)
friendships.add_edges_from(club.edges)
model = dft.read(friendships, coupling=0.25).condition({"0": 1, "33": -1})  # the two leaders
group, truth = dft.symmetries(model), dft.exact(model)
side = np.array([truth[str(i)].probability for i in club])
took = np.array([club.nodes[i]["club"] == "Mr. Hi" for i in club])
right = ((side > 0.5) == took).sum()
print(f"{right} of {len(took)} members are put on the side they took")
print(f"{group.order} symmetries leave {len(group.orbits)} orbits of {model.n - 2} members")

errors = {}
for estimator in ("standard", "orbit", "auto"):
    made = [dft.marginals(model, estimator=estimator, chains=8, sweeps=sweeps, seed=seed) for seed in range(runs)]
    errors[estimator] = np.mean([(p[str(i)].probability - side[i]) ** 2 for p in made for i in club])
    gain = errors["standard"] / errors[estimator]
    print(f"{estimator:9} mean squared error {errors[estimator]:.1e}, standard's divided by {gain:.1f}")
assert right >= 32 and errors["standard"] / errors["orbit"] < 3 and errors["standard"] / errors["auto"] > 5

at = nx.spring_layout(club, seed=4)
nodes = [{"x": float(at[i][0]), "y": float(at[i][1]), "p": float(side[i]), "name": str(i),
          "took": "Mr. Hi" if took[i] else "the officer"} for i in club]  # fmt: skip
edges = [{"x": at[i][0], "y": at[i][1], "x2": at[j][0], "y2": at[j][1]} for i, j in club.edges]
x, y = alt.X("x:Q", axis=None), alt.Y("y:Q", axis=None)
heat = alt.Color("p:Q", scale=alt.Scale(scheme="cividis", domain=[0.2, 0.8], clamp=True), title="P(Mr. Hi)")
shape = alt.Shape("took:N", title="took the side of", scale=alt.Scale(range=["circle", "square"]))
net = alt.Chart(alt.Data(values=edges)).mark_rule(color=LINES, opacity=0.4).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
dots = alt.Chart(alt.Data(values=nodes)).mark_point(filled=True, size=260, opacity=1, stroke=INK, strokeWidth=0.7)
mse = alt.Chart(alt.Data(values=[{"estimator": k, "mse": float(v)} for k, v in errors.items()]))
ticks = alt.Axis(format="~e", values=[1e-6, 1e-5, 1e-4, 1e-3])
axis = alt.X("mse:Q", scale=alt.Scale(type="log"), title="mean squared error", axis=ticks)
mse = mse.mark_point(filled=True, size=110, color=PALETTE[3]).encode(axis, alt.Y("estimator:N", sort=None, title=None))
left = (net + dots.encode(x=x, y=y, color=heat, shape=shape)).properties(width=380, height=300, title="Sides")
right = mse.properties(width=230, height=90, title="Error of a run")
save_chart(configured(alt.hconcat(left, right, spacing=40)), Path("karate_club.svg"))
