"""A town where friends of friends tend to be friends, with a thousand and with a million people.

How many friends has a person, and how many people smoke, if everybody has about ten candidates for a friend, a friend
of a friend who is no friend counts against the state, and friends tend to smoke alike? With a million people the rule
about friends of friends has 10^18 groundings, and friendship 10^12 atoms: no program can write them down. The sampler
never grounds the model, and its cost follows the atoms that are true. So few sweeps are not enough for the
diagnostics, which say so.
"""

import math
import sys
from pathlib import Path

import altair as alt

import definetti as dft
from definetti.pages.style import PALETTE, configured, save_chart

RULES = """
Friends(person, person)
Smokes(person)
{prior} !Friends(x,y)
1.4 !Smokes(x)
1.0 Friends(x,y) ^ Friends(y,z) => Friends(x,z)
1.1 Friends(x,y) ^ Smokes(x) => Smokes(y)
"""
small = "--small" in sys.argv
#: people: (chains, sweeps that are dropped, sweeps that are kept)
runs = {1_000: (8, 20, 40), 10_000: (4, 20, 20), 100_000: (4, 15, 10), 1_000_000: (2, 5, 5)}
runs = {1_000: (8, 20, 40), 10_000: (4, 15, 10), 100_000: (2, 3, 3)} if small else runs

rows, titles = [], ("friends of a person", "smokers of a hundred people", "CPU seconds of a sweep")
for people, (chains, dropped, kept) in runs.items():
    town = dft.markov_logic(RULES.format(prior=math.log(people / 10)), domain={"person": people})
    p = dft.marginals(town, sampler="gibbs", chains=chains, burn_in=dropped, sweeps=kept, seed=7)
    friend, smokes = p["Friends(Person1,Person2)"], p["Smokes(Person1)"]
    friends, smokers = (people - 1) * friend.probability, 100 * smokes.probability
    sweep = p.run["seconds"]["sample_cpu"] / chains / (dropped + kept)
    found = (friends, (people - 1) * (friend.half_width or 0)), (smokers, 100 * (smokes.half_width or 0)), (sweep, 0)
    for title, (value, half) in zip(titles, found, strict=True):
        rows.append({"people": people, "what": title, "value": value, "low": value - half, "high": value + half})
    doubts = ", ".join(sorted({n.kind for n in p.notices if n.fails})) or "trusted"
    print(f"{people:9,} people, {town.ground_count:.0e} groundings: ", end="")
    print(f"{friends:.2f} friends, {smokers:.1f} % smoke; {doubts}")
    assert p.run["engine"] == "sparse" and 2.1 < friends < 2.5 and 10 < smokers < 12  # alike at every size

panels = []
for title, hue in zip(titles, PALETTE, strict=False):
    base = alt.Chart(alt.Data(values=[row for row in rows if row["what"] == title]))
    x = alt.X("people:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", values=list(runs)))
    size = alt.Scale(type="log") if title == titles[2] else alt.Scale(zero=True)
    y = alt.Y("value:Q", scale=size, title=None, axis=alt.Axis(format="~g", tickCount=5))
    marks = base.mark_line(color=hue).encode(x=x, y=y) + base.mark_point(filled=True, size=60, color=hue).encode(
        x=x, y=y
    )
    bars = base.mark_rule(color=hue, strokeWidth=2).encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q")
    panels.append((marks + bars if title != titles[2] else marks).properties(width=210, height=190, title=title))
save_chart(configured(alt.hconcat(*panels, spacing=28)), Path("social_network.svg"))
