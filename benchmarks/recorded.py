"""Figures that take longer than a build of the documentation: measured here, kept in docs/measured, shown by its pages.

A file has parts, each measured by itself with its own date, commit, machine and command; recording a part replaces that
part alone. `python benchmarks/recorded.py` brings the README's table up to date; recording the peers does so too.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "measured"
VERSIONS = ("definetti", "numpy", "numba", "igraph", "dwave-samplers", "thrml", "jax", "peapods", "numpyro", "pgmpy",
            "pyagrum", "pyERGM")  # fmt: skip
PEERS_TABLE = re.compile(r"(?<=<!-- peers -->\n).*?(?=<!-- /peers -->)", re.DOTALL)

Part = dict[str, Any]


def record(name: str, part: str, rows: Sequence[Mapping[str, Any]], command: str, **more: Any) -> Path:
    """Put the rows of one part into docs/measured/NAME.json, beside the other parts."""
    path = FOLDER / f"{name}.json"
    parts = read(name) if path.exists() else {}
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    made = {"command": command, "date": date, "commit": _commit(), "machine": machine(), **more, "rows": list(rows)}
    FOLDER.mkdir(exist_ok=True)
    path.write_text(json.dumps({**parts, part: made}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if name == "peers":
        update_readme()
    return path


def read(name: str) -> dict[str, Part]:
    """The parts of docs/measured/NAME.json."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def update_readme() -> None:
    from peers.table import readme

    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(PEERS_TABLE.sub(lambda _: readme(read("peers")), text), encoding="utf-8")


def machine() -> dict[str, Any]:
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


def said(part: Part) -> str:
    """When, where and from what the rows of a part come, in one sentence."""
    host = part["machine"]
    where = [host["processor"], *([f"{host['cores']} cores"] if host.get("cores") else []), f"Python {host['python']}"]
    commit = f", commit {part['commit']}" if part.get("commit") else ""
    load = ", while other work ran beside it" if host.get("load") and host["load"][0] > 1.5 else ""
    note = f" {part['note']}" if part.get("note") else ""
    return f"`{part['command']}`, {part['date']}{commit}, on {', '.join(where)}{load}.{note}"


def _processor() -> str:
    """The processor's name, and its widest vectors, which the figures depend on."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    widest = next((name for name in ("avx512bw", "avx2", "neon", "sse2") if features.get(name)), "no vectors known")
    return f"{llvm.get_host_cpu_name()} ({widest})"


def _commit() -> str | None:
    """The last commit that changed what is measured, `+` behind it if there are changes beyond it."""
    words = ["git", "-C", str(ROOT)]
    last, changed = (
        subprocess.run([*words, *more, "--", "src", "benchmarks"], capture_output=True, text=True, check=False).stdout
        for more in (["log", "-1", "--format=%h"], ["status", "--porcelain"])
    )
    return last.strip() + "+" * bool(changed) if last else None


if __name__ == "__main__":
    update_readme()
