"""The table of peers as Markdown: `python benchmarks/run.py --only peers --markdown docs/peers.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from measuring import Row

from peers.problem import GOAL
from peers.tasks import TASKS

COMMAND = "python benchmarks/run.py --only peers --markdown docs/peers.md"
HEADS = ("peer", "set-up, s", "M updates/s", "memory, MB", "CPU s to the goal", "× ours", "KL reached")
SHOWN = ("definetti", "plain Numba loop", "dwave-samplers", "thrml", "numpyro", "pyERGM", "pyagrum",
         "loopy belief propagation")  # fmt: skip
TITLES = {"grid": "Grid 100×100", "fields": "Grid in a random field", "potts": "Potts lattice 8×128, 3 values",
          "tables": "Random 3-ary tables", "smokers": "Friends and smokers, 30 people",
          "transitive": "The same with transitivity", "graph": "Directed graph, 30 nodes",
          "reading": "Reading a .uai file"}  # fmt: skip


def markdown(rows: Sequence[Row], machine: Mapping[str, Any]) -> str:
    """The whole page: a short table first, then one for each task."""
    versions = ", ".join(f"{name} {found}" for name, found in machine["versions"].items() if found)
    parts = [
        "# Beside the peers",
        f"Made by `{COMMAND}` (`make bench` installs the peers), one run, one core: {machine['processor']}, Python "
        f"{machine['python']}; {versions}.",
        f"The goal: an average KL divergence of all single marginals from the truth below {GOAL:g}. Times are CPU "
        "seconds of all threads, of sampling alone; set-up (compiling, building the model, finding symmetries) is a "
        "column of its own. Each peer runs in a process of its own, whose peak memory is shown. Sampling that did not "
        "reach the goal within its time has the KL divergence that it reached. definetti averages over orbits and uses "
        "full conditionals as control variates; the other samplers count their samples.",
        "## In short",
        short(rows),
    ]
    for task, make in TASKS.items():
        some = [row.more for row in rows if row.more.get("task") == task]
        if some:
            parts += [f"## {TITLES[task]}", " ".join((make.__doc__ or "").split()), _table(some)]
    return "\n\n".join(parts) + "\n"


def short(rows: Sequence[Row]) -> str:
    """CPU seconds to the goal, a line for each task."""
    by = {(row.more["task"], row.more["peer"]): row.more for row in rows if "task" in row.more}
    tasks = [task for task in TASKS if (task, SHOWN[0]) in by]
    lines = ["| CPU seconds to KL < 1e-4 | " + " | ".join(SHOWN) + " |", "|---" * (len(SHOWN) + 1) + "|"]
    for task in tasks:
        cells = [_seconds(by.get((task, peer), {"why": ""}), short=True) for peer in SHOWN]
        lines.append(f"| {TITLES[task]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _table(some: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| " + " | ".join(HEADS) + " |", "|---" * len(HEADS) + "|"]
    out = []
    for one in some:
        if "why" in one:
            out.append(f"{one['peer']}: {one['why']}")
            continue
        rate = f"{one['rate'] / 1e6:.3g}" if one.get("rate") else ""
        kl = f"{one['kl']:.1e}" if one.get("kl") is not None else ""
        ratio = f"{one['ratio']:.3g}" if one.get("ratio") else ""
        note = f" ({one['note']})" if one.get("note") else ""
        cells = (
            f"{one['peer']}{note}",
            f"{one['set_up']:.2g}",
            rate,
            f"{one['megabytes']:.0f}",
            _seconds(one),
            ratio,
            kl,
        )
        lines.append("| " + " | ".join(cells) + " |")
    missing = ["Not measured: " + "; ".join(out) + "."] if out else []
    return "\n\n".join(["\n".join(lines), *missing])


def _seconds(one: Mapping[str, Any], short: bool = False) -> str:
    if "why" in one:
        return "–" if short else one["why"]
    if one.get("seconds") is not None:
        return f"{one['seconds']:.2g}"
    if one.get("kl") is None:
        return "–"
    spent = f"{one['spent']:.2g}"
    return f"> {spent} (KL {one['kl']:.0e})" if short else f"> {spent}"
