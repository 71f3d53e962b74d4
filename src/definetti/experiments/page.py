"""The page of the experiments: each figure with its picture, what the paper states, what was measured, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from definetti import __version__
from definetti.experiments.figure import Verdict
from definetti.files import write_atomically
from definetti.pages.fragments import tag, text

HEAD = "The experiments of “Symmetry-Aware Marginal Density Estimation”"
INTRODUCTION = (
    "Every figure of the paper, rerun: the paper's protocol (uniform random single-site scan, start all false plus "
    "evidence, no burn-in, a sample after every update, KL(estimate‖truth) averaged over the unknown variables), and "
    "definetti's defaults beside it. Times are CPU seconds of sampling on one core. Rows in quotation marks quote the "
    "paper; where a statement cannot hold as it stands, the expectation is the statement that can, and a note says why."
)
STYLE = """
body { font: 16px/1.5 Helvetica, Arial, sans-serif; color: #222; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
img { max-width: 100%; height: auto }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-top: 1px solid #ddd }
.held { color: #00664b; white-space: nowrap } .failed { color: #a33c00; font-weight: bold; white-space: nowrap }
.note { color: #555; font-size: .88rem } figcaption { color: #555 } section { margin-top: 3rem }
"""


def caption(name: str) -> str:
    from definetti.experiments.run import figure_file

    return figure_file(name).CAPTION


def names_of(verdicts: Sequence[Verdict]) -> list[str]:
    return list(dict.fromkeys(verdict.figure for verdict in verdicts))


def write_pages(out: Path, verdicts: Sequence[Verdict]) -> None:
    write_atomically(out / "index.html", html_page(verdicts))
    write_atomically(out / "README.md", markdown_page(verdicts))


def counted(verdicts: Sequence[Verdict]) -> str:
    held = sum(verdict.held for verdict in verdicts)
    return f"{held} of {len(verdicts)} verdicts held. definetti {__version__}."


def html_page(verdicts: Sequence[Verdict]) -> str:
    body = tag("h1", text(HEAD)) + tag("p", text(INTRODUCTION)) + tag("p", text(counted(verdicts)))
    for name in names_of(verdicts):
        picture = f'<img src="{name}.svg" alt="{text(caption(name))}">'
        figure = tag("figure", picture + tag("figcaption", text(caption(name))))
        links = tag("p", f'<a href="{name}.csv">{name}.csv</a> · <a href="{name}.png">{name}.png</a>')
        body += tag("section", tag("h2", name) + figure + _table(name, verdicts) + links, id=name)
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'; style-src 'unsafe-inline'\">"
    head = f'<meta charset="utf-8">{policy}<meta name="viewport" content="width=device-width">'
    return f'<!doctype html><html lang="en"><head>{head}<title>{text(HEAD)}</title>' + (
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _table(name: str, verdicts: Sequence[Verdict]) -> str:
    heads = "".join(tag("th", one) for one in ("claim", "expected", "measured", "verdict"))
    lines = ""
    for verdict in (v for v in verdicts if v.figure == name):
        note = tag("p", text(verdict.note), class_="note") if verdict.note else ""
        mark = tag("td", "✓ held" if verdict.held else "✗ not held", class_="held" if verdict.held else "failed")
        cells = tag("td", text(verdict.claim) + note) + tag("td", text(verdict.expected))
        lines += tag("tr", cells + tag("td", text(verdict.measured)) + mark)
    return tag("table", tag("thead", tag("tr", heads)) + tag("tbody", lines))


def markdown_page(verdicts: Sequence[Verdict]) -> str:
    parts = [f"# {HEAD}", INTRODUCTION, counted(verdicts)]
    for name in names_of(verdicts):
        rows = ["| claim | expected | measured | verdict |", "|---|---|---|---|"]
        for v in (v for v in verdicts if v.figure == name):
            note = f" *{v.note}*" if v.note else ""
            cells = (v.claim + note, v.expected, v.measured, "✓ held" if v.held else "✗ **not held**")
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts += [f"## {name}", f"![{name}]({name}.png)", f"*{caption(name)}*", "\n".join(rows)]
        parts.append(f"Every point: [{name}.csv]({name}.csv).")
    return "\n\n".join(parts) + "\n"
