"""`make bench BENCH="--only traps"`: trusted answers that are wrong, on models that mix badly, and false alarms.

Every model is asked with several seeds, by default and with exact answers switched off. `python benchmarks/traps.py
--family Ising --seeds 1 --exact off` is a shorter look, `--list` names the models. A process of its own answers, and
is ended where it takes longer than the limit. Six errors are 6 half-widths / 1.96, and 1e-9 for rounding.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from calm_models import calm
from measuring import HERE, Row
from recorded import record
from trap_models import FAMILIES, Trap, traps

SEED, SEEDS, LIMIT = 1, 3, 120.0  # of the parameters; runs of each model; seconds a run may take
ERRORS, ROUNDING = 6.0, 1e-9
CHAINS, LOGIC_CHAINS = 64, 8  # the defaults
LEAST_RIGHT = {True: 0.8, False: 0.6}  # with exact answers, without
MOST_ALARMS = 1
VERDICTS = ("right", "SILENT", "flagged", "timeout", "error")


def ask(trap: Trap, seed: int, exact: bool) -> Any:
    """The one place that says how exact answers are switched off: a number of chains is named, which is the default."""
    import definetti as dft

    model, options = trap.build(), dict(trap.options)
    if not exact:
        options.setdefault("chains", CHAINS if isinstance(model, dft.FactorGraph) else LOGIC_CHAINS)
    return dft.marginals(model, list(trap.truth), seed=seed, **options)


# --- one answer ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What a run printed, per query (probability, half-width of its 95 % interval), and how it was judged."""

    name: str
    family: str
    seed: int
    exact: bool
    verdict: str
    seconds: float
    values: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()  # of the warnings that fail
    sampler: str = ""
    message: str = ""


def distance(bounds: tuple[float, float], probability: float, half_width: float | None) -> float:
    """From the truth, in units of what is allowed: more than 1 is wrong."""
    off = max(bounds[0] - probability, probability - bounds[1], 0.0)
    return off / (ERRORS * (half_width or 0.0) / 1.96 + ROUNDING)


def judged(trap: Trap, seed: int, exact: bool, found: Mapping[str, Any], seconds: float) -> Answer:
    told = (trap.name, trap.family, seed, exact)
    if "verdict" in found:
        return Answer(*told, found["verdict"], seconds, message=found.get("message", ""))
    values = {q: (p, half) for q, (p, half) in found["values"].items()}
    off = max((distance(trap.truth[q], *value) for q, value in values.items()), default=0.0)
    verdict = "flagged" if not found["trusted"] else "right" if off <= 1.0 else "SILENT"
    return Answer(*told, verdict, seconds, values, tuple(found["kinds"]), found["sampler"])


def worst(trap: Trap, answer: Answer) -> str:
    """The query that is farthest from its truth, as text: truth, answer."""
    if not answer.values:
        return answer.message
    query = max(answer.values, key=lambda q: distance(trap.truth[q], *answer.values[q]))
    (low, high), (p, half) = trap.truth[query], answer.values[query]
    truth = f"{low:.6g}" if low == high else f"{low:.4g}…{high:.4g}"
    return f"{query:16} {truth:>14}  {p:.6g} ± {'–' if half is None else f'{half:.1e}'}"


# --- a process that answers ----------------------------------------------------------------------------------------


def answer_questions(seed: int) -> None:
    """Read one question a line, write one answer a line."""
    models = {trap.name: trap for trap in (*traps(seed), *calm(seed))}
    import definetti.inference.marginals  # noqa: F401  # loaded before the first answer is timed

    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            found = ask(models[asked["name"]], asked["seed"], asked["exact"])
        except Exception as error:  # any error is this model's alone
            said: dict[str, Any] = {"verdict": "error", "message": f"{type(error).__name__}: {error}"[:200]}
        else:
            said = {
                "values": {q: (e.probability, e.half_width) for q, e in found.queries.items()},
                "trusted": found.trusted,
                "kinds": sorted({notice.kind for notice in found.notices if notice.fails}),
                "sampler": found.run.get("sampler", ""),
            }
        print(json.dumps(said), flush=True)


class Respondent:
    """A process that answers questions, started again after one that took too long."""

    def __init__(self, seed: int, limit: float) -> None:
        self.seed, self.limit = seed, limit
        self.process: subprocess.Popen[str] | None = None

    def ask(self, trap: Trap, seed: int, exact: bool) -> Answer:
        process = self._running()
        assert process.stdin and process.stdout
        began = time.perf_counter()
        process.stdin.write(json.dumps({"name": trap.name, "seed": seed, "exact": exact}) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self.limit)
        line = process.stdout.readline() if ready else ""
        if line:
            return judged(trap, seed, exact, json.loads(line), time.perf_counter() - began)
        self.close()
        found = {"verdict": "error", "message": "the process died"} if ready else {"verdict": "timeout"}
        return judged(trap, seed, exact, found, time.perf_counter() - began)

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None:
            command = [sys.executable, str(Path(__file__)), "--answer", "--seed", str(self.seed)]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
            assert self.process.stdout
            if self.process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{' '.join(command)} does not start")
        return self.process

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


# --- the table -----------------------------------------------------------------------------------------------------


def run(models: Sequence[Trap], seeds: int, modes: Sequence[bool], respondent: Respondent) -> list[Answer]:
    """Ask everything and print a line for each model and mode; Ctrl-C: what there is counts."""
    out: list[Answer] = []
    for trap in models:
        for exact in modes:
            try:
                found = [respondent.ask(trap, seed, exact) for seed in range(1, seeds + 1)]
            except KeyboardInterrupt:
                respondent.close()  # what it was asked last is not the answer to the next question
                print(f"  interrupted: {len(out)} runs are counted")
                return out
            out += found
            shown = max(found, key=lambda a: (a.verdict == "SILENT", a.verdict != "right"))
            verdicts = " ".join(a.verdict + (f"({','.join(a.kinds)})" if a.kinds else "") for a in found)
            where = "exact" if exact else "sampled"
            print(f"  {trap.name[:52]:52} {where:7} {worst(trap, shown):48} {verdicts}", flush=True)
    return out


def summary(answers: Sequence[Answer], exact: bool) -> list[Row]:
    mine = [a for a in answers if a.exact == exact]
    count = {verdict: sum(a.verdict == verdict for a in mine) for verdict in VERDICTS}
    how = "by default" if exact else "exact answers off"
    note = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
    seconds = sum(a.seconds for a in mine)
    return [
        Row(f"traps, {how}: silently wrong", count["SILENT"], f"of {len(mine)}", 0.0, at_least=False, note=note),
        Row(f"traps, {how}: right and trusted", count["right"] / max(len(mine), 1), "", LEAST_RIGHT[exact]),
        Row(f"traps, {how}: time", seconds, "s", note=f"longest {max((a.seconds for a in mine), default=0.0):.0f} s"),
    ]


def alarms(answers: Sequence[Answer]) -> Row:
    raised = [a for a in answers if a.verdict != "right"]
    note = "; ".join(f"{a.name} ({','.join(a.kinds) or a.verdict})" for a in raised[:6])
    return Row("calm models: alarms", len(raised), f"of {len(answers)}", MOST_ALARMS, at_least=False, note=note)


def measured(options: argparse.Namespace) -> list[Row]:
    chosen, still = selected(options)
    respondent = Respondent(options.seed, options.limit)
    modes = {"both": (True, False), "on": (True,), "off": (False,)}[options.exact]
    print(f"traps: {len(chosen)} models, {sum(t.beyond_exact for t in chosen)} of them beyond the exact engines")
    try:
        answers = run(chosen, options.seeds, modes, respondent)
        calm_answers = run(still, 1, (False,), respondent)
    finally:
        respondent.close()
    output = HERE / "results" / "traps.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps([asdict(a) for a in (*answers, *calm_answers)], indent=1) + "\n")
    if options.record:
        keep((*answers, *calm_answers), options)
    out = [row for exact in modes for row in summary(answers, exact)] if answers else []
    return out + ([alarms(calm_answers)] if calm_answers else [])


def keep(answers: Sequence[Answer], options: argparse.Namespace) -> None:
    """Verdicts by family into docs/measured/traps.json, beside those of other families."""
    for exact, family in sorted({(a.exact, a.family) for a in answers}):
        mine = [a for a in answers if (a.exact, a.family) == (exact, family)]
        how = "by default" if exact else "exact answers off"
        count = {verdict.lower(): sum(a.verdict == verdict for a in mine) for verdict in VERDICTS}
        row = {"family": family, "asked": how, "models": len({a.name for a in mine}), "runs": len(mine), **count}
        command = f"python benchmarks/traps.py --seed {options.seed} --seeds {options.seeds} --record"
        command += f" --every {options.every} --first {options.first}" if options.every > 1 else ""
        record("traps", f"{family}, {how}, parameters {options.seed}", [row], command)


def selected(options: argparse.Namespace) -> tuple[list[Trap], list[Trap]]:
    """The traps and the calm models to ask; quick: one of each family, and every sixth calm one; `every` k: of each
    family one in k."""
    named = [name for name in options.family if name != "calm"]
    chosen = traps(options.seed, named) if named or not options.family else []
    still = calm(options.seed) if "calm" in options.family or not options.family else []
    if options.every > 1:
        of = [[t for t in chosen if t.family == family] for family in FAMILIES]
        chosen = [trap for group in of for trap in group[options.first :: options.every]]
    if options.quick:
        of = [[t for t in chosen if t.family == family] for family in FAMILIES]
        chosen, still = [group[len(group) // 2] for group in of if group], still[::6]
    return chosen, still


def rows(quick: bool) -> list[Row]:
    return measured(_options(["--quick", "--seeds", "1"] if quick else []))


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one model of each family and ten calm ones")
    names = (*FAMILIES, "calm")
    parser.add_argument("--family", action="append", default=[], choices=names, help="this one (may be given again)")
    parser.add_argument("--exact", choices=("both", "on", "off"), default="both", help="exact answers where cheap")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each model")
    parser.add_argument("--seed", type=int, default=SEED, help="of the parameters")
    parser.add_argument("--every", type=int, default=1, help="take the models of each family in steps of this")
    parser.add_argument("--first", type=int, default=0, help="with --every: the first model, from 0")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a run may take")
    parser.add_argument("--record", action="store_true", help="keep the verdicts in docs/measured")
    parser.add_argument("--list", action="store_true", help="name the models and their truths")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main() -> int:
    options = _options()
    if options.answer:
        answer_questions(options.seed)
        return 0
    if options.list:
        for trap in [trap for models in selected(options) for trap in models]:
            truth = ", ".join(f"{q} {low:.6g}" + (f"…{high:.6g}" if high > low else "") for q, (low, high) in
                              list(trap.truth.items())[:3])  # fmt: skip
            print(f"{trap.family:16} {'beyond' if trap.beyond_exact else '':6} {trap.name:52} {truth}")
        return 0
    found = measured(options)
    for row in found:
        value = f"{row.value:.4g}" if row.value is not None else "–"
        mark = {True: "ok", False: "MISSED", None: ""}[row.passed]
        print(f"  {row.name:46} {value:>8} {row.unit:10} {row.wanted:7} {mark:7} {row.note}".rstrip())
    return 1 if any(row.passed is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
