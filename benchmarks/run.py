"""`make bench`: every figure that the project promises, with its peer beside it in the same run.

Prints a table, writes JSON, and exits with 1 if a figure misses its target. With `--against COMMIT` the present code is
compared with that of a commit instead (`against.py`).
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from measuring import HERE, Row

FAMILIES = ("grid", "tables", "loading", "symmetries", "reading", "evidence", "relational", "lifted", "hard", "errors",
            "intervals", "sparse", "traps", "long_runs", "peers")  # fmt: skip
VERSIONS = ("definetti", "numpy", "numba", "igraph", "dwave-samplers", "thrml", "jax", "peapods", "numpyro", "pgmpy",
            "pyagrum", "pyERGM")  # fmt: skip


def main() -> int:
    options = _options()
    if options.against:
        from against import FAMILIES as compared
        from against import compare

        wanted = options.only or compared
        return compare(options.against, tuple(family for family in compared if family in wanted), options.quick)
    rows: list[Row] = []
    for family in options.only or FAMILIES:
        began = time.perf_counter()
        found = importlib.import_module(family).rows(options.quick)
        rows += found
        print(f"\n{family} ({time.perf_counter() - began:.0f} s)")
        for row in found:
            print(_line(row), flush=True)
    output = options.output or HERE / "results" / f"{datetime.datetime.now():%Y-%m-%d-%H%M%S}.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({"machine": _machine(), "rows": [row.as_json() for row in rows]}, indent=1) + "\n")
    if options.markdown:
        from peers.table import markdown

        options.markdown.write_text(markdown(rows, _machine()), encoding="utf-8")
    missed = [row.name for row in rows if row.passed is False]
    print(f"\n{output} written; {len(missed)} of {sum(row.passed is not None for row in rows)} targets missed")
    for name in missed:
        print(f"  missed: {name}")
    return 1 if missed else 0


def _line(row: Row) -> str:
    mark = {True: "ok", False: "MISSED", None: ""}[row.passed]
    value = "–" if row.value is None else f"{row.value:.3g}" if row.value < 100 else f"{row.value:.0f}"
    return f"  {row.name:42} {value:>8} {row.unit:12} {row.wanted:8} {mark:7} {row.note}".rstrip()


def _machine() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in VERSIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return {
        "python": platform.python_version(), "processor": _processor(), "cores": os.cpu_count(), "load": load,
        "versions": versions,
    }  # fmt: skip


def _processor() -> str:
    """The processor's name, and its widest vectors, which the figures depend on."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    widest = next((name for name in ("avx512bw", "avx2", "neon", "sse2") if features.get(name)), "no vectors known")
    return f"{llvm.get_host_cpu_name()} ({widest})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", action="append", choices=FAMILIES, help="this family alone (may be given again)")
    parser.add_argument("--against", metavar="COMMIT", help="compare with the sources of a commit instead")
    parser.add_argument("--output", type=Path, help="where to write the JSON")
    parser.add_argument("--markdown", type=Path, help="where to write the table of the family peers as Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
