"""Radio masts that share three channels: a Potts model from dimod.

Masts stand on a grid, and neighbours on the same channel disturb each other. Three masts have a licence for one
channel. Which channel will the others have, if every disturbed pair costs one unit of energy at inverse temperature
1.5? dimod describes the problem as a DiscreteQuadraticModel, and definetti reads it. The licences stand in one
corner's diagonal, so that one reflection is left as a symmetry; the small grid is checked against the exact answer.
"""

import sys
from pathlib import Path

import altair as alt
import dimod

import definetti as dft
from definetti.pages.style import INK, configured, save_chart

small = "--small" in sys.argv
side = 8 if small else 16
LICENCES = {(0, 0): 0, (3, 3): 1, (6, 6): 2}

problem = dimod.DiscreteQuadraticModel()
places = [(x, y) for x in range(side) for y in range(side)]
for x, y in places:
    problem.add_variable(3, label=f"{x},{y}")
for x, y in places:
    for a, b in {(x + 1, y), (x, y + 1)} & set(places):
        problem.set_quadratic(f"{x},{y}", f"{a},{b}", {(channel, channel): 1.0 for channel in range(3)})

masts = dft.read(problem, beta=1.5).condition({f"{x},{y}": channel for (x, y), channel in LICENCES.items()})
group = dft.symmetries(masts)
p = dft.marginals(masts, symmetries=group, sampler="gibbs", sweeps=1_000 if small else 4_000, seed=7)
print(f"{masts.n} masts, {group.order} symmetries, {len(group.orbits)} orbits; {'trusted' if p.trusted else p.notices}")
shares = ", ".join(f"{q:.3f} ± {half:.3f}" for q, half in zip(p["0,1"].probability, p["0,1"].half_width, strict=True))
print("channels 0, 1, 2 beside the licence for channel 0:", shares)
assert p.trusted and p["0,1"].probability[0] < 0.2  # a neighbour avoids the channel
assert p["0,1"].probability == p["1,0"].probability  # the reflection makes them one orbit
if small:
    assert p.compare(dft.exact(masts)).agrees

panels = []
for channel in range(3):
    cells = [{"x": x, "y": y, "p": float(p[f"{x},{y}"].array[channel])} for x, y in places]
    x, y = alt.X("x:O", axis=None), alt.Y("y:O", axis=None)
    heat = alt.Scale(scheme="cividis", domain=[0, 0.7], clamp=True)
    hue = alt.Color("p:Q", scale=heat, legend=alt.Legend(title="probability", format=".1f"))
    drawn = alt.Chart(alt.Data(values=cells)).mark_rect().encode(x=x, y=y, color=hue)
    licences = alt.Chart(alt.Data(values=[{"x": a, "y": b, "c": str(c)} for (a, b), c in LICENCES.items()]))
    drawn += licences.mark_point(filled=True, opacity=1, size=190, color="white", stroke=INK).encode(x=x, y=y)
    drawn += licences.mark_text(color=INK, fontWeight="bold").encode(x=x, y=y, text="c:N")
    panels.append(drawn.properties(width=200, height=200, title=f"channel {channel}"))
save_chart(configured(alt.hconcat(*panels, spacing=16)), Path("potts.svg"))
