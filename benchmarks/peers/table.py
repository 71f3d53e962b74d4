"""What docs/measured/peers.json says, as Markdown: a table for each task, and a short one over all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recorded import Part, said

from peers.tasks import TASKS

HEADS = ("peer", "set-up, s", "M updates/s", "memory, MB", "CPU s to the goal", "× ours", "KL reached")
SHOWN = ("definetti", "plain Numba loop", "dwave-samplers", "thrml", "numpyro", "pyERGM", "pyagrum",
         "loopy belief propagation")  # fmt: skip
README = ("definetti", "plain Numba loop", "dwave-samplers", "thrml", "loopy belief propagation")
TITLES = {"grid": "Grid 100×100", "fields": "Grid in a random field", "potts": "Potts lattice 8×128, 3 values",
          "tables": "Random 3-ary tables", "smokers": "Friends and smokers, 30 people",
          "transitive": "The same with transitivity", "graph": "Directed graph, 30 nodes",
          "reading": "Reading a .uai file"}  # fmt: skip

Rows = Sequence[Mapping[str, Any]]


def sections(parts: Mapping[str, Part]) -> str:
    """A section for each task that was measured, and which were not."""
    out = []
    for task in measured(parts):
        about = " ".join((TASKS[task].__doc__ or "").split())
        out += [f"## {TITLES[task]}", about, full(parts[task]["rows"]), f"Measured by {said(parts[task])}"]
    missing = [f"“{TITLES[task]}”" for task in TASKS if task not in parts]
    return "\n\n".join(out + ([f"Not measured yet: {', '.join(missing)}."] if missing else []))


def versions(parts: Mapping[str, Part]) -> str:
    """The versions of all packages, each in every version that a part was measured with."""
    found: dict[str, dict[str, None]] = {}
    for part in parts.values():
        for name, version in part["machine"]["versions"].items():
            if version:
                found.setdefault(name, {})[version] = None
    return ", ".join(f"{name} {' and '.join(all_of)}" for name, all_of in found.items())


def measured(parts: Mapping[str, Part]) -> list[str]:
    return [task for task in TASKS if task in parts]


def short(parts: Mapping[str, Part], shown: Sequence[str] = SHOWN, head: str = "CPU seconds to KL < 1e-4") -> str:
    """CPU seconds to the goal, a line for each task."""
    lines = [f"| {head} | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for task in [task for task in measured(parts) if task != "reading"]:  # which has another goal
        by = {row["peer"]: row for row in parts[task]["rows"]}
        cells = [_seconds(by.get(peer, {"why": ""}), short=True) for peer in shown]
        lines.append(f"| {TITLES[task]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def readme(parts: Mapping[str, Part]) -> str:
    """The table in the README, between its two marks."""
    return f"\n{short(parts, README, head='')}\n\n"


def full(rows: Rows) -> str:
    heads = " | ".join(HEADS).replace("to the goal", "to read it" if rows[0]["task"] == "reading" else "to the goal")
    lines = [f"| {heads} |", "|---" * len(HEADS) + "|"]
    lines += ["| " + " | ".join(_cells(one)) + " |" for one in rows if "why" not in one]
    out = [f"{one['peer']}: {one['why']}" for one in rows if "why" in one]
    missing = ["Without a figure: " + "; ".join(out) + "."] if out else []
    return "\n\n".join(["\n".join(lines), *missing])


def _cells(one: Mapping[str, Any]) -> list[str]:
    rate = f"{one['rate'] / 1e6:.3g}" if one.get("rate") else ""
    kl = f"{one['kl']:.1e}" if one.get("kl") is not None else ""
    ratio = _plain(one["ratio"], 3) if one.get("ratio") else ""
    note = f" ({one['note']})" if one.get("note") else ""
    return [f"{one['peer']}{note}", f"{one['set_up']:.2g}", rate, f"{one['megabytes']:.0f}", _seconds(one), ratio, kl]


def _seconds(one: Mapping[str, Any], short: bool = False) -> str:
    if "why" in one:
        return "–" if short else one["why"]
    if one.get("seconds") is not None:
        return _plain(one["seconds"], 2)
    if one.get("kl") is None:
        return "–"
    spent = f"{one['spent']:.2g}"
    return f"> {spent} (KL {one['kl']:.0e})" if short else f"> {spent}"


def _plain(value: float, digits: int) -> str:
    """So many significant digits, no exponent for a large number."""
    return f"{value:.{digits}g}" if value < 10**digits else f"{value:,.0f}"
