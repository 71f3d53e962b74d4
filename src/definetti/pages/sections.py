"""The sections of a report: verdict, marginals, queries, symmetries, convergence, comparison, model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from definetti import show
from definetti.errors import Notice
from definetti.model.compare import Comparison
from definetti.model.facts import fact_rows
from definetti.model.verdict import Verdict, verdict
from definetti.pages.drawing import drawing
from definetti.pages.fragments import (
    MOST_ROWS,
    colour,
    facts_table,
    interval,
    interval_bar,
    listed,
    plain_table,
    sentence,
    swatch,
    tag,
    text,
    verdict_heading,
)

RARE = 0.02  # closer to 0 or 1 than this, and the axis is logit at first
MOST_COMPARED = 30  # rows of a comparison that are drawn


def _section(key: str, title: str, lead: str, body: str) -> str:
    return tag("section", tag("h2", title, id=f"{key}-title") + tag("p", lead, class_="lead") + body, id=key,
               aria_labelledby=f"{key}-title")  # fmt: skip


def _missing(what: str) -> str:
    cure = "an answer saved as .json by definetti marginals or definetti exact has it where it exists"
    return tag("p", f"No data: {what}; {cure}.", class_="soft missing")


def verdict_of(content: Mapping[str, Any]) -> Verdict:
    named = [(q, a["half_width"]) for q, a in content["queries"].items()]
    named = named or [(row["representative"], row["half_width"]) for row in content["orbits"]]
    notices = [Notice(w["kind"], w["message"]) for w in content["warnings"]]
    run = content["run"]
    method = content.get("method") or (run.get("method") if run.get("sampler") == "exact" else None)
    if method is None and run.get("sampler") == "exact":
        method = "an exact engine"
    found = verdict(named, notices, method, run, bool(content.get("interrupted")))
    if content.get("trusted") is False and found.trusted:
        return replace(found, trusted=False, reason="the file says so, and not why", cure="make the run again")
    return found


def verdict_section(content: Mapping[str, Any], comparisons: Sequence[tuple[str, Comparison]]) -> str:
    found = verdict_of(content)
    warnings = "".join(
        tag("li", tag("strong", text(w["kind"])) + ": " + text(w["message"])) for w in content["warnings"][:40]
    )
    said = "".join(
        tag("p", tag("strong", f"Against {text(name)}: ") + text(one.verdict) + ".") for name, one in comparisons
    )
    body = verdict_heading(found) + said + (tag("ul", warnings) if warnings else "") + _figures(content, found)
    return tag("section", body, class_="verdict" + ("" if found.trusted else " no"), id="verdict")


def _figures(content: Mapping[str, Any], found: Verdict) -> str:
    run = content["run"]
    seconds = [s for s in (run.get("seconds") or {}).values() if s is not None]
    gain = (run.get("gain") or {}).get("mean")
    figures = [
        ("largest 95 % half-width", None if found.half_width is None else show.half_width(found.half_width)),
        ("orbits", show.count(content["orbit_count"])),
        ("free variables", show.count(sum(row["size"] for row in content["orbits"]))),
        ("sampler", run.get("sampler") or content.get("method")),
        ("draws", _draws(run)),
        ("gain over standard", f"×{show.number(gain, 3)}" if gain else None),
        ("log Z", None if content.get("log_z") is None else f"{content['log_z']:.8g}"),
        ("time", show.seconds(sum(seconds)) if seconds else None),
    ]
    cells = "".join(
        tag("div", tag("dt", name) + tag("dd", text(value))) for name, value in figures if value is not None
    )
    return tag("dl", cells, class_="figures")


def _draws(run: Mapping[str, Any]) -> str | None:
    if not run.get("chains") or not run.get("sweeps"):
        return None
    return f"{show.count(run['chains'])} × {show.count(run['sweeps'])}"


LEAD = (
    "One row for all variables with equal marginals, largest orbit first, with 95 % intervals. "
    "Gain ×k: the error is as small as that of k times as many independent draws."
)
HEADS = (("orbit of", "name"), ("size", "size"), ("probability", "p"), ("± 95 %", "e"))
LESS = (("R-hat", "r"), ("eff. draws", "n"), ("gain", "g"))  # not on a phone


def marginals_section(content: Mapping[str, Any]) -> str:
    run, shown = content["run"], content["orbits"][:MOST_ROWS]
    draws = (run.get("chains") or 0) * (run.get("sweeps") or 0)
    axis = tag("th", '<svg id="axis" role="img" aria-label="axis"></svg>', scope="col", class_="wide")
    heads = _buttons(HEADS) + axis + _buttons(LESS, "less")
    lines = "".join(_row(place, row, draws) for place, row in enumerate(shown))
    table = tag("table", tag("thead", tag("tr", heads)) + tag("tbody", lines), id="orbits")
    more, total = content["orbit_count"] - len(shown), show.count(content["orbit_count"])
    rest = f"The {show.count(more)} smallest of {total} orbits are not on this page; -o FILE.csv has every variable."
    body = (
        _queries(content)
        + tag("div", _controls(shown), class_="controls")
        + tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="marginals by orbit")
        + (tag("p", rest, class_="soft") if more > 0 else "")
    )
    return _section("marginals", "Marginals by orbit", LEAD, body)


def _buttons(heads: Sequence[tuple[str, str]], kind: str | None = None) -> str:
    return "".join(
        tag("th", tag("button", name, type="button", data_key=key), scope="col", class_=kind) for name, key in heads
    )


def _controls(shown: Sequence[Mapping[str, Any]]) -> str:
    """Search, and the axis: logit at first where there are rare events."""
    numbers = [p for row in shown for p in listed(row["probability"]) if p is not None]
    rare = any(0 < p < RARE or 1 - RARE < p < 1 for p in numbers)
    options = "".join(
        tag(
            "label",
            f'<input type="radio" name="axis" value="{kind}"{" checked" if (kind == "logit") == rare else ""}>{kind}',
        )
        for kind in ("linear", "logit")
    )
    return (
        tag("label", 'Search <input type="search" id="search" autocomplete="off" spellcheck="false">')
        + tag("fieldset", tag("legend", "Axis") + options)
        + tag("span", "", id="found", class_="soft", role="status")
    )


def _row(place: int, row: Mapping[str, Any], draws: int) -> str:
    name, size = row["representative"], row["size"]
    ps, halves = listed(row["probability"]), listed(row["half_width"])
    bars = "".join(interval_bar(*interval(p, half)) for p, half in zip(ps, halves, strict=True))
    ess, rhat = row["ess"], row["rhat"]
    known = [e for e in listed(ess) if e is not None]
    cells = (
        tag("td", swatch(colour(place, size)) + text(name), class_="name", title=name)
        + tag("td", show.count(size))
        + tag("td", _values([show.probability(p, half) for p, half in zip(ps, halves, strict=True)]))
        + tag("td", _values([show.half_width(half) for half in halves]))
        + tag("td", bars, class_="wide")
        + tag("td", _values([show.number(r) for r in listed(rhat)]), class_="less")
        + tag("td", _values([show.effective(e, draws) for e in listed(ess)]), class_="less")
        + tag("td", text(show.gain(ess, draws)), class_="less")
    )
    rhats, errors = [r for r in listed(rhat) if r is not None], [h for h in halves if h is not None]
    return tag(
        "tr", cells, data_o=place, data_name=name, data_size=size, data_p=_key([p for p in ps if p is not None]),
        data_e=_key(errors), data_r=_key(rhats), data_n=_key([min(known)] if known else []),
        data_g=_key([min(known) / draws] if known and draws else []), data_said=sentence(name, size, row), tabindex="0",
    )  # fmt: skip


def _values(words: Sequence[str]) -> str:
    """A number, or a line for each value of a variable, beside its interval."""
    return text(words[0]) if len(words) == 1 else "".join(tag("div", text(word), class_="value") for word in words)


def _key(values: Sequence[float]) -> str:
    return f"{max(values):.10g}" if values else ""


def _shown(query: Mapping[str, Any]) -> str:
    """A probability, or of a count its mean and spread."""
    if "mean" in query:
        spread = "" if query["std"] is None else f", standard deviation {show.number(query['std'], 4)}"
        return f"{show.number(query['mean'], 6)} on average{spread}"
    return show.probability(query["probability"], query["half_width"])


def _queries(content: Mapping[str, Any]) -> str:
    if not content["queries"]:
        return ""
    rows = [
        [
            name,
            show.count(q["orbit_size"]),
            _shown(q),
            show.half_width(q["half_width"]),
        ]
        for name, q in list(content["queries"].items())[:200]
    ]
    more = len(content["queries"]) - len(rows)
    rest = tag("p", f"… and {show.count(more)} more queries", class_="soft") if more > 0 else ""
    table = plain_table(["query", "orbit size", "probability", "± 95 %"], rows, "plain queries")
    return tag("h3", "Asked for") + table + rest + tag("h3", "All orbits")


def symmetry_section(content: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    kind = content["run"].get("symmetries")
    rest = "Point at a variable or a row to see its orbit: variables that the model's symmetries map to each other."
    said = tag("p", rest, class_="said", id="said", aria_live="polite", data_rest=rest)
    found = kept.get("symmetry")
    body = (
        said + drawing(found, content["orbits"]) if found else _missing("the symmetry was not saved with this answer")
    )
    lead = f"Symmetries: {text(kind)}." if kind else "Which variables are interchangeable."
    return _section("symmetry", "The symmetry itself", lead, body)


def convergence_section(content: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    found = kept.get("convergence")
    title = "Convergence"
    if content.get("method") or content["run"].get("sampler") == "exact":
        return _section("convergence", title, "An exact answer: there is nothing to converge.", "")
    if not found or not found["series"] or not found["sweeps"]:
        return _section(
            "convergence", title, "How the estimates came about.", _missing("no batches were saved with this answer")
        )
    widths = [one["final"][0] or 0.0 for one in found["series"]]
    first = max(range(len(widths)), key=widths.__getitem__)
    options = "".join(
        tag("option", text(show.shortened(one["name"], 60)), value=k, selected="" if k == first else None)
        for k, one in enumerate(found["series"])
    )
    controls = tag("div", tag("label", "Orbit of " + tag("select", options, id="series")), class_="controls")
    lines = tag("figcaption", "Full line: the worst orbit; dashed: the chosen one; thin: others.")
    figures = (
        _figure("Running estimate with 95 % band", "running", tag("figcaption", "", id="picked", aria_live="polite"))
        + _figure("R-hat over time", "mixing", lines)
        + _figure("Half-widths by estimator", "estimators", tag("ul", _estimator_legend(), class_="legend"))
    )
    count, total = len(found["series"]), content["orbit_count"]
    lead = (
        f"From the batches of the run itself, for {show.count(count)} of {show.count(total)} orbits and the queries."
        if count < total
        else "From the batches of the run itself."
    )
    return _section("convergence", title, lead, controls + tag("div", figures, class_="charts"))


def _figure(title: str, key: str, below: str) -> str:
    """A place that the page's script draws in."""
    return tag("figure", tag("h3", title) + tag("div", "", id=key) + below)


def _estimator_legend() -> str:
    marks = (
        ('<circle class="e0" cx="7" cy="7" r="5"></circle>', "the estimator that was used"),
        ('<rect class="e1" x="2.5" y="2.5" width="9" height="9"></rect>', "orbit: the mean over the orbit"),
        ('<path class="e2" d="M7 1L13 12L1 12Z"></path>', "standard: one variable alone"),
    )
    return "".join(tag("li", f"<svg>{mark}</svg>{what}") for mark, what in marks)


def comparison_section(comparisons: Sequence[tuple[str, Comparison]]) -> str:
    if not comparisons:
        body = tag("p", "Nothing to compare with: --exact TRUTH or a second RUN adds it.", class_="soft missing")
        return _section("comparison", "Comparison", "Against the truth, or against another run.", body)
    parts = []
    caption = tag("figcaption", "The rows that are furthest apart, in standard errors.")
    drawn = tag("div", "", class_="against") + caption
    for name, found in comparisons:
        facts = [
            ("names compared", show.count(len(found.names))),
            ("largest difference", f"{show.number(abs(found.largest.difference), 3)} at {found.largest.name}"),
            ("KL(run‖reference)", show.number(found.kl_ab, 3)),
            ("mean squared error", show.number(found.mse, 3)),
        ]
        parts.append(
            tag("h3", f"Against {text(name)}")
            + tag("p", text(found.verdict) + ".", class_="reason")
            + tag("div", tag("figure", drawn) + tag("figure", facts_table(facts)), class_="charts")
        )
    return _section("comparison", "Comparison", "Whether the error bars explain the differences.", "".join(parts))


def differences(found: Comparison) -> list[dict[str, Any]]:
    rows = sorted(found.rows, key=lambda row: (-abs(row.z or 0.0), -abs(row.difference)))[:MOST_COMPARED]
    limit = found.threshold
    out = []
    for row in rows:
        z = None if row.z is None or math.isinf(row.z) else row.z
        error = abs(row.difference / z) * 1.96 if z else None
        far = row.z is not None and limit is not None and abs(row.z) > limit
        out.append({"name": row.name, "d": float(f"{row.difference:.6g}"), "e": error, "far": far,
                    "z": None if z is None else round(z, 2)})  # fmt: skip
    return out


def model_section(content: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    facts = kept.get("model")
    if not facts:
        return _section("model", "Model", "What was asked about.", _missing("the model was not saved with this answer"))
    body = facts_table(fact_rows(facts))
    if kept.get("formulas"):
        rows = [["hard" if f["weight"] is None else _weight(f["weight"]), f["text"]] for f in kept["formulas"]]
        more = facts["formulas"] - len(rows)
        body += tag("h3", "Formulas") + plain_table(["weight", "formula"], rows, "plain formulas")
        body += tag("p", f"… and {show.count(more)} more", class_="soft") if more > 0 else ""
    if kept.get("evidence"):
        body += tag("h3", "Evidence") + _evidence(kept["evidence"])
    return _section("model", "Model", "What was asked about: sizes, formulas, evidence.", body)


def _weight(weight: Any) -> str:
    return weight if isinstance(weight, str) else show.number(weight, 6)


def _evidence(rows: Sequence[Mapping[str, Any]]) -> str:
    if "value" in rows[0]:
        return plain_table(["variable", "value"], [[row["of"], str(row["value"])] for row in rows])
    return plain_table(
        ["predicate", "true", "false"], [[r["of"], show.count(r["true"]), show.count(r["false"])] for r in rows]
    )


def reproduce_section(content: Mapping[str, Any], kept: Mapping[str, Any]) -> str:
    run = content["run"]
    skipped = {"command", "seconds", "gain", "choices", "regions"}
    rows = [
        (key.replace("_", " "), str(value) if key == "seed" else _plain(value))
        for key, value in run.items()
        if key not in skipped and value is not None
    ]
    rows += [
        (f"seconds: {key}", show.seconds(value))
        for key, value in (run.get("seconds") or {}).items()
        if value is not None
    ]
    rows += [(f"version of {key}", str(value)) for key, value in (kept.get("versions") or {}).items()]
    command = run.get("command") or _call(content)
    body = ""
    if command:
        body += tag("pre", tag("code", text(command)), id="command") + tag(
            "button", "copy", type="button", class_="copy", data_of="#command"
        )
    body += facts_table(rows) if rows else _missing("this file does not say how it was made")
    return _section(
        "reproduce", "How to reproduce it", "The same seed and the same version give the same numbers.", body
    )


def _call(content: Mapping[str, Any]) -> str | None:
    """What makes the answer again in Python."""
    run = content["run"]
    if content.get("method"):
        return "dft.exact(model)"
    if not run.get("sampler") or run["sampler"] == "samples":
        return None
    keys = ("sampler", "estimator", "scan", "symmetries", "chains", "sweeps", "burn_in", "seed")
    words = [f"{key}={run[key]!r}" for key in keys if run.get(key) is not None]
    return f"dft.marginals(model, {', '.join(words)})"


def _plain(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return show.count(value)
    if isinstance(value, float):
        return show.number(value, 6)
    return value if isinstance(value, str) else show.shortened(json.dumps(value, default=str), 200)
