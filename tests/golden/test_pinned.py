"""Whole answers pinned: every sampler, estimator and scan on every kind of model, as the JSON object says them.

Nothing here is about being right (other folders are): it holds still what a seed gives, so that code can be moved
about without changing an answer. Only the public names are used. Left out are clocks, memory, version, workers, the
dialect, the command and the texts of messages; a combination that is refused is pinned as the name of its error.

`python tests/golden/test_pinned.py [WORD…]` rewrites the cases of `pinned.json` whose answers have changed, with the
package that is installed; words choose cases by parts of their names. That is a decision, not a repair: look at what
the diff changes (one line per case), and say in the commit and in CHANGELOG.md why answers have changed. Numbers may
differ by rounding (another CPU adds in another order); all else is compared exactly.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import definetti as dft
from definetti.cli.main import run as command

PINNED = Path(__file__).with_name("pinned.json")
SEED = 2032
SWEEPS = 40
LEFT_OUT = {"seconds", "peak_memory_mb", "version", "workers", "model", "dialect", "command", "advice"}  # of `run`
ESTIMATE = ["probability", "mcse", "rhat", "ess"]
NOT_YET = {"half_width", "trusted"}  # of an estimate and of the object: in the contract, and follow from the rest

# --- models ------------------------------------------------------------------------------------------------------

SMOKERS = """
Smokes(person)
Friends(person, person)
0.8 !Smokes(x)
1.1 !Friends(x,y)
0.9 Friends(x,y) ^ Smokes(x) => Smokes(y)
"""
KNOWN = "Smokes(Anna)\n!Friends(Bob,Anna)\nFriends(Anna,Carl)\n"
#: Hard formulas, atoms tied to each other (Busy to Idle), and a block: everyone has exactly one role.
ROLES = """
person = {Anna, Bob, Carl}
role = {Cook, Guard}
Role(person, role!)
Busy(person)
Idle(person)
Helps(person, person)
Busy(x) <=> !Idle(x).
Helps(x,y) => Busy(x).
!Helps(x,x).
0.7 Role(x,Cook)
0.6 Role(x,Guard) => Busy(x)
0.5 Helps(x,y) ^ Role(x,r) => Role(y,r)
"""
PAIR = [[3.0, 1.0], [1.0, 2.0]]


def grid() -> dft.FactorGraph:
    """2 × 3, binary: few local fields, so thresholds are looked up."""
    bonds, bond = [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]], [[1.8, 1.0], [1.0, 1.5]]
    return dft.factor_graph([2] * 6, [*((pair, bond) for pair in bonds), *(([i], [4.0, 5.0]) for i in range(6))])


def tables() -> dft.FactorGraph:
    """Several values and tables over three variables: two halves that may be swapped, and a variable they share."""
    table = 1.0 + (np.arange(24) * 7 % 5).reshape(3, 2, 4)
    return dft.factor_graph([3, 2, 3, 2, 4], [([0, 1, 4], table), ([2, 3, 4], table), ([4], [1.0, 2.0, 1.0, 3.0])])


def apart() -> dft.FactorGraph:
    """A path on which no two neighbours are both 1: hard, but single moves reach every state."""
    factors = [([i, i + 1], [[1.0, 1.0], [1.0, 0.0]]) for i in range(3)]
    return dft.factor_graph([2] * 4, [*factors, *(([i], [1.0, 2.0]) for i in range(4))])


def colours() -> dft.FactorGraph:
    """A triangle whose corners have different colours, so that none can change alone; a fourth is softly apart."""
    differ, field = 1.0 - np.eye(3), [1.0, 2.0, 3.0]
    corners = [([0, 1], differ), ([1, 2], differ), ([0, 2], differ), ([2, 3], 1.0 + differ), ([0], field)]
    return dft.factor_graph([3] * 4, corners)


def ties() -> dft.FactorGraph:
    """Hard pairs that say equal and different, and a soft one between the parts."""
    same, differ = np.eye(2), 1.0 - np.eye(2)
    return dft.factor_graph([2] * 4, [([0, 1], same), ([2, 3], differ), ([1, 2], PAIR), ([0], [1.0, 2.0])])


def logic(text: str, evidence: str | None = None, **options: Any) -> dft.MarkovLogic:
    with tempfile.TemporaryDirectory() as folder:
        model, known = Path(folder) / "model.mln", Path(folder) / "known.db"
        model.write_text(text)
        known.write_text(evidence or "")
        found = dft.read(model, known if evidence else None, **options)
    assert isinstance(found, dft.MarkovLogic)
    return found


MODELS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "grid": (grid, ["X0", "X0=1 ^ X1=1"]),
    "tables": (tables, ["X4", "X0=1 ^ X2=2"]),
    "apart": (apart, ["X1", "X0=1 ^ X3=1"]),
    "colours": (colours, ["X1", "X0=1 ^ X3=1"]),
    "ties": (ties, ["X3", "X0=1 ^ X2=1"]),
    "soft": (
        lambda: logic(SMOKERS, domain={"person": 3}),
        ["Smokes(Person1)", "Friends(Person1,Person2) ^ Smokes(Person2)"],
    ),
    "evidence": (lambda: logic(SMOKERS, KNOWN), ["Smokes(Bob)", "Friends(Bob,Carl) ^ Smokes(Carl)"]),
    "roles": (lambda: logic(ROLES), ["Role(Anna,Cook)", "Idle(Bob)", "Helps(Anna,Bob) ^ Busy(Bob)"]),
    "closed": (lambda: logic(SMOKERS, KNOWN, closed_world=["Friends"]), ["Smokes(Bob)"]),
}
LOGIC = ("soft", "evidence", "roles", "closed")


@cache
def model(name: str) -> Any:
    return MODELS[name][0]()


# --- cases -------------------------------------------------------------------------------------------------------

SCANNING = ("auto", "gibbs", "blocks", "tempering")
OTHERS = ("swendsen-wang", "mcsat", "lifted")
SCANS = ("symmetric", "random", "fixed")
CHAINS = {"swendsen-wang": 4, "mcsat": 4, "lifted": 2}
ESTIMATORS = ("auto", "standard", "orbit", "conditional", "control")
#: What runs until its error is small. Each of these ends at the first or the second look: when there is a third may
#: depend on how long the others took.
FEW, MANY = {"chains": 8}, {"chains": 64, "burn_in": 20}
OPEN: list[tuple[str, str, str, dict[str, Any]]] = [
    *((*c, {}) for c in itertools.product(("grid", "tables", "apart"), SCANNING, ("auto", "control"))),
    *((*c, {}) for c in itertools.product(("colours", "ties"), ("auto", "blocks"), ("auto",))),
    *(("grid", other, "auto", {}) for other in ("swendsen-wang", "mcsat")),
    *((*c, MANY) for c in itertools.product(("soft", "evidence"), ("auto", "gibbs"), ("auto",))),
    ("roles", "mcsat", "auto", {**MANY, "queries": ["Helps(Anna,Bob)"], "seed": 1}),
    *((*c, FEW) for c in itertools.product(("soft", "evidence"), ("lifted",), ("auto",))),
]


def marginals(name: str, **settings: Any) -> Callable[[], Any]:
    queries = settings.pop("queries", MODELS[name][1])
    given = {"seed": SEED, "workers": 1, **({} if "until" in settings else {"sweeps": SWEEPS}), **settings}
    return lambda: dft.marginals(model(name), queries, **given).to_json()


def exact(name: str, method: str) -> Callable[[], Any]:
    queries = MODELS[name][1][: 1 if method == "orbits" else None]
    return lambda: dft.exact(model(name), queries, method=method).to_json()


def console(*words: str) -> Callable[[], Any]:
    """A command with --json on files in the current folder: its exit code and its object."""

    def ask() -> Any:
        out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder))
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    code = command([*words, "--json"])
            finally:
                os.chdir(before)
        return {"code": code, **(json.loads(out.getvalue()) if code < 2 else {})}

    return ask


def write_files(folder: Path) -> None:
    scopes, bonds, fields = "2 0 1 2 1 2 1 0 1 1 1 2", "4 3 1 1 2 " * 2, "2 2 3 " * 3
    (folder / "path.uai").write_text(f"MARKOV 3 2 2 2 5 {scopes} {bonds} {fields}")
    (folder / "path.evid").write_text("1 0 1")
    (folder / "smokers.mln").write_text(SMOKERS)
    (folder / "known.db").write_text(KNOWN)
    rows = [f"{i % 2},{i // 2 % 2},{(i * i // 3) % 2}" for i in range(60)]
    (folder / "draws.csv").write_text("\n".join(["X0,X1,X2", *rows]) + "\n")


def is_new(name: str, estimator: str, sampler: str, scan: str) -> bool:
    """Whether a combination says more than others: some samplers have no scan, `auto` is one of the others, and those
    for factor graphs run on Markov logic that was grounded."""
    if scan != "symmetric":
        grounded = name in LOGIC and sampler in ("blocks", "tempering")
        return sampler in SCANNING and (estimator == "auto" or not (sampler == "auto" or grounded))
    return estimator == "auto" or name != "closed"


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, estimator, sampler, scan in itertools.product(MODELS, ESTIMATORS, (*SCANNING, *OTHERS), SCANS):
        if is_new(name, estimator, sampler, scan):
            how = {"sampler": sampler, "estimator": estimator, "scan": scan, "chains": CHAINS.get(sampler, 8)}
            short = {"burn_in": 10} if sampler == "mcsat" else {}
            yield f"{name} {sampler} {estimator} {scan}", marginals(name, **how, **short)
    for name, sampler, estimator, more in OPEN:
        how = {"sampler": sampler, "estimator": estimator, "until": 0.2, "queries": MODELS[name][1][:1]}
        yield f"{name} {sampler} {estimator} until", marginals(name, **(how | more))
    for name, sampler, chains in itertools.product(("grid", "tables"), ("auto", "tempering"), (1, 4, 64, 130)):
        yield f"{name} {sampler} chains={chains}", marginals(name, sampler=sampler, chains=chains)
    for name, chains in itertools.product(("soft", "roles"), (1, 3)):
        yield f"{name} chains={chains}", marginals(name, chains=chains)
    for name, kind in itertools.product(MODELS, (None, "variables", "literals", "renaming")):
        yield f"{name} symmetries={kind or 'none'}", marginals(name, symmetries=kind, chains=8)
    for name in ("grid", "tables", "soft"):
        yield f"{name} no query", marginals(name, queries=[], chains=8)
        yield f"{name} burn-in=0", marginals(name, burn_in=0, chains=8)
        yield f"{name} one sweep", marginals(name, sweeps=1, chains=8)
    for name, method in itertools.product(MODELS, ("auto", "enumerate", "eliminate", "lifted", "orbits")):
        yield f"{name} exact {method}", exact(name, method)
    sampled = ("--sweeps", str(SWEEPS), "--seed", str(SEED), "--workers", "1")
    short = ("--query", "X0", "--query", "X2", "--query", "X0=1 ^ X1=0", "--query", "X0=1 v X2=1")
    people = ("--query", "Smokes", "--query", "Smokes(Bob) ^ !Smokes(Carl)")
    yield "command: marginals", console("marginals", "path.uai", *sampled)
    yield "command: queries", console("marginals", "path.uai", *sampled, *short)
    yield "command: evidence", console("marginals", "path.uai", "--evidence", "path.evid", *sampled, *short)
    yield "command: no symmetries", console("marginals", "path.uai", "--symmetries", "none", *sampled, *short)
    for estimator in ESTIMATORS:
        words = ("--samples", "draws.csv", "--estimator", estimator)
        yield f"command: samples {estimator}", console("marginals", "path.uai", *words, *short)
    yield "command: logic", console("marginals", "smokers.mln", "--evidence", "known.db", *sampled, *people)
    yield "command: exact", console("exact", "path.uai", *short)
    yield "command: exact logic", console("exact", "smokers.mln", "--evidence", "known.db", *people)
    yield "command: unknown query", console("marginals", "path.uai", "--query", "X9")
    yield "command: unknown sampler", console("marginals", "path.uai", "--sampler", "metropolis")
    yield "command: two lengths", console("marginals", "path.uai", "--sweeps", "9", "--until", "0.1")


CASES = dict(cases())


# --- pinning -----------------------------------------------------------------------------------------------------


def outcome(ask: Callable[[], Any]) -> Any:
    """What is pinned: the object without clocks and texts, estimates as rows; or the name of the error."""
    try:
        found = ask()
    except dft.DefinettiError as error:
        return type(error).__name__
    if "queries" not in found:
        return found
    return {
        **{key: value for key, value in found.items() if key not in NOT_YET},
        "queries": {text: row(e, "orbit_size") for text, e in found["queries"].items()},
        "orbits": [row(orbit, "representative", "size") for orbit in found["orbits"]],
        "run": {key: value for key, value in found["run"].items() if key not in LEFT_OUT},
        "warnings": [warning["kind"] for warning in found["warnings"]],
    }


def row(answer: dict[str, Any], *head: str) -> list[Any]:
    """The values without their keys; a key that nobody knows would stand at the end."""
    more = {key: value for key, value in answer.items() if key not in {*head, *ESTIMATE, *NOT_YET}}
    return [*(answer[key] for key in (*head, *ESTIMATE)), *([more] if more else [])]


def differences(found: Any, pinned: Any, at: str = "") -> Iterator[str]:
    """The places where two objects differ by more than rounding."""
    if isinstance(found, dict) and isinstance(pinned, dict) and found.keys() == pinned.keys():
        for key in found:
            yield from differences(found[key], pinned[key], f"{at}.{key}")
    elif isinstance(found, list) and isinstance(pinned, list) and len(found) == len(pinned):
        for k, (a, b) in enumerate(zip(found, pinned, strict=True)):
            yield from differences(a, b, f"{at}[{k}]")
    elif isinstance(found, float) and isinstance(pinned, float):
        if not math.isclose(found, pinned, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{at}: {found!r}, pinned {pinned!r}"
    elif type(found) is not type(pinned) or found != pinned:
        yield f"{at}: {found!r}, pinned {pinned!r}"


@cache
def pinned() -> dict[str, Any]:
    return {case: whole(found) for case, found in json.loads(PINNED.read_text()).items()}


def whole(found: Any) -> Any:
    """With the numbers of an orbit that stand at a query in the file."""
    for orbit in found.get("orbits", ()) if isinstance(found, dict) else ():
        if len(orbit) == 3:
            orbit[2:] = found["queries"][orbit[2]][1:]
    return found


def short(found: Any) -> Any:
    """For the file: the numbers of an orbit that a query repeats are written once."""
    if isinstance(found, dict) and "queries" in found:
        asked = {json.dumps(answer[1:]): text for text, answer in found["queries"].items()}
        for orbit in found["orbits"]:
            if text := asked.get(json.dumps(orbit[2:])):
                orbit[2:] = [text]
    return found


@pytest.mark.parametrize("case", CASES)
def test_pinned(case: str) -> None:
    found = json.loads(json.dumps(outcome(CASES[case])))
    assert not [*differences(found, pinned()[case])]


def test_what_is_pinned_is_what_is_run() -> None:
    assert pinned().keys() == CASES.keys()


def rewrite(words: list[str]) -> None:
    """Cases whose names contain one of the words (all, without words); what differs by rounding stays as it was."""
    kept = json.loads(PINNED.read_text())
    for case in [case for case in CASES if not words or any(word in case for word in words)]:
        found = json.loads(json.dumps(outcome(CASES[case])))
        if case not in kept or [*differences(found, pinned()[case])]:
            kept[case] = short(found)
    lines = (f"{json.dumps(case)}: {json.dumps(kept[case], separators=(',', ':'))}" for case in CASES)
    PINNED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    rewrite(sys.argv[1:])
