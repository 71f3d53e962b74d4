"""`make bench`: every figure that the project promises, with its peer beside it in the same run.

Prints a table, writes JSON, and exits with 1 if a figure misses its target. With `--against COMMIT` the present code is
compared with that of a commit instead (`against.py`).
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from measuring import HERE, Row
from recorded import machine, record

FAMILIES = ("grid", "tables", "loading", "symmetries", "reading", "evidence", "relational", "lifted", "hard", "errors",
            "intervals", "sparse", "draws", "brackets", "traps", "long_runs", "peers")  # fmt: skip


def main() -> int:
    options = _options()
    if options.against:
        from against import FAMILIES as compared
        from against import compare

        wanted = options.only or compared
        return compare(options.against, tuple(family for family in compared if family in wanted), options.quick)
    rows: list[Row] = []
    for family, task in _parts(options):
        began = time.perf_counter()
        found = importlib.import_module(family).rows(options.quick, *([(task,)] if task else []))
        rows += found
        print(f"\n{family}{', ' * bool(task)}{task} ({time.perf_counter() - began:.0f} s)")
        for row in found:
            print(_line(row), flush=True)
        if options.record:
            only = f"{family} --tasks {task}" if task else family
            command = f"python benchmarks/run.py --only {only}{' --quick' * options.quick} --record"
            kept = [dict(row.more) if "task" in row.more else row.as_json() for row in found]
            record(family, task or "all", kept, command, **({"note": options.note} if options.note else {}))
    output = options.output or HERE / "results" / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": machine(), "rows": [row.as_json() for row in rows]}, indent=1) + "\n")
    missed = [row.name for row in rows if row.passed is False]
    print(f"\n{output} written; {len(missed)} of {sum(row.passed is not None for row in rows)} targets missed")
    for name in missed:
        print(f"  missed: {name}")
    return 1 if missed else 0


def _parts(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The families that are wanted, those with tasks of their own task by task: what is measured is kept at once."""
    for family in options.only or FAMILIES:
        tasks = tuple(getattr(importlib.import_module(family), "TASKS", ()))
        wanted = options.tasks.split(",") if options.tasks else tasks
        if not set(wanted) <= set(tasks):
            sys.exit(f"{family} has the tasks {', '.join(tasks) or '(none)'}")
        yield from ((family, task) for task in wanted) if tasks else [(family, "")]


def _line(row: Row) -> str:
    mark = {True: "ok", False: "MISSED", None: ""}[row.passed]
    value = "–" if row.value is None else f"{row.value:.3g}" if row.value < 100 else f"{row.value:.0f}"
    return f"  {row.name:42} {value:>8} {row.unit:12} {row.wanted:8} {mark:7} {row.note}".rstrip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", action="append", choices=FAMILIES, help="this family alone (may be given again)")
    parser.add_argument("--against", metavar="COMMIT", help="compare with the sources of a commit instead")
    parser.add_argument("--output", type=Path, help="where to write the JSON")
    parser.add_argument("--record", action="store_true", help="keep the figures in docs/measured for the documentation")
    parser.add_argument("--tasks", help="of a family with tasks (peers) these alone, as in grid,potts")
    parser.add_argument("--note", help="with --record: what else a reader should know, as in 'On a busy machine.'")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
