"""What to try after an answer that is not trusted: something that applies to the model and is not what just ran."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from definetti.model.marginals import Marginals
from definetti.model.verdict import first_failure

MORE = 4  # times as many sweeps, or seconds


def with_advice(result: Marginals, by_choice: bool, exact_is_possible: bool, seconds: float | None) -> Marginals:
    """The answer with `run["advice"]`, which the verdict shows, and at the end of the warning that it answers.
    `by_choice`: the sampler `auto` chose; `exact_is_possible`: one line has said how long that would take."""
    first = first_failure(result.notices)
    if first is None:
        return result
    text = first.cure or advice(first.kind, result.run, by_choice, exact_is_possible, seconds)
    notices = tuple(replace(n, message=f"{n.message}; {text}") if n is first else n for n in result.notices)
    return replace(result, run={**result.run, "advice": text}, notices=notices)


def advice(
    kind: str, run: Mapping[str, Any], by_choice: bool, exact_is_possible: bool, seconds: float | None = None
) -> str:
    """For the kind of a failing notice of a run."""
    ran = run.get("sampler")
    longer = _longer(run, seconds)
    exact = ["definetti exact"] if exact_is_possible else []
    if ran == "samples":
        return {
            "biased": "check that these are draws of this model, with this order of variables and values",
            "few-samples": "draw more samples",
        }.get(kind, "draw more samples, from chains with starts far apart")
    if kind == "few-samples":
        return f"try {_either([*exact, longer])}"
    if kind == "biased":
        other = "gibbs" if ran != "gibbs" else "tempering"
        return f"try {_either([*exact, f'--sampler {other}'])}, and report this model"
    if kind == "approximate":
        other = "tempering" if ran != "tempering" else "gibbs"
        return f"try {_either([*exact, f'--sampler {other}'])}, and compare"
    if not by_choice and (ran == "gibbs" or "regions" in run):  # `auto` contracts what is tied and weighs modes
        return f"try {_either([*exact, '--sampler auto'])}"
    crossing = [] if ran == "tempering" else ["--sampler tempering"]
    # what cannot move, and what is in several regions, does not leave them in more sweeps
    stays = [] if kind in ("frozen", "divided") and crossing else [longer]
    return f"try {_either([*exact, *crossing, *stays])}"


def _longer(run: Mapping[str, Any], seconds: float | None) -> str:
    sweeps = run.get("sweeps")
    if seconds is not None:  # set-up may have taken all of them, and more
        spent = sum(value for name, value in run.get("seconds", {}).items() if name != "sample_cpu")
        return f"--seconds {_upwards(MORE * max(seconds, spent))}"
    return f"--sweeps {MORE * sweeps}" if isinstance(sweeps, int) and sweeps > 0 else "more sweeps"


def _upwards(seconds: float) -> str:
    """To one digit, and a whole number at least."""
    unit = 10 ** max(0, math.floor(math.log10(max(seconds, 1.0))))
    return str(math.ceil(seconds / unit) * unit)


def _either(options: list[str]) -> str:
    return " or ".join([", ".join(options[:-1]), options[-1]] if len(options) > 1 else options)
