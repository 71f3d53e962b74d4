"""Rows of results, and how times are taken: CPU seconds, the best of several rounds, rivals taking turns in a round.

The best round is the one least disturbed by whatever else the machine does; taking turns is fair.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """One figure. Without a target it is there to be read; None could not be measured, and misses a target."""

    name: str
    value: float | None
    unit: str
    target: float | None = None
    at_least: bool = True  # otherwise the target is a limit from above
    note: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)  # for tables of other shapes

    @property
    def passed(self) -> bool | None:
        if self.target is None:
            return None
        if self.value is None:
            return False
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def wanted(self) -> str:
        return "" if self.target is None else f"{'≥' if self.at_least else '≤'} {self.target:g}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "value": self.value, "unit": self.unit, "target": self.wanted or None,
            "passed": self.passed, "note": self.note, **({"more": dict(self.more)} if self.more else {}),
        }  # fmt: skip


def best_of(rivals: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The smallest CPU time of each rival; each returns what it took (`cpu_seconds` measures a call)."""
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, run in rivals.items():
            best[name] = min(best[name], run())
    return best


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds of all threads of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def cpu_seconds_with_children(work: Callable[[], Any]) -> float:
    """The same where the work starts processes of its own (in steps of 10 ms)."""
    began = os.times()
    work()
    ended = os.times()
    return sum(ended[:4]) - sum(began[:4])


def peak_megabytes() -> float:
    """The most memory that this process has had, without what its parent had before `exec`."""
    from definetti.memory import peak_memory  # here: sources of older commits, which lack it, are measured too

    return (peak_memory() or 0) / (1 << 20)


def more_time(pairs: Mapping[str, tuple[Callable[[], float], Callable[[], float]]], rounds: int) -> dict[str, float]:
    """Per cent that the second of each pair takes beyond the first: the median of rounds, in each of which the two run
    one right after the other, in turns the first and the second first."""
    found: dict[str, list[float]] = {name: [] for name in pairs}
    for turn in range(rounds):
        for name, (bare, more) in pairs.items():
            if turn % 2:
                b, a = more(), bare()
            else:
                a, b = bare(), more()
            found[name].append(100.0 * (b / a - 1.0))
    return {name: sorted(each)[len(each) // 2] for name, each in found.items()}


def in_process(script: str, *arguments: str, limit: float = 600.0, **environment: str) -> dict[str, Any]:
    """Run benchmarks/<script> in a fresh Python; it prints one line of JSON last."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        capture_output=True, text=True, timeout=limit, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])
