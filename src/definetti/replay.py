"""Leaf: decisions that depend on the clock, recorded when they are taken and taken again by a run that is resumed.

Whoever asks the clock whether to go on asks a `Deadline`; whoever starts a search that may be ended by the clock does so
by `decided`. Outside of `recording` both do what their names say and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any

import numpy as np

Record = dict[str, Any]  # name → what was decided: arrays, numbers, texts and None, nested in dicts and lists

_RECORD: ContextVar[Record | None] = ContextVar("record", default=None)


@contextmanager
def recording(record: Record) -> Iterator[None]:
    """Decisions taken inside are those of the record, and new ones are added to it."""
    for entry in record.values():
        if isinstance(entry, dict) and "next" in entry:
            entry["next"] = 0
    token = _RECORD.set(record)
    try:
        yield
    finally:
        _RECORD.reset(token)


def decided(name: str, arguments: tuple[np.ndarray, ...], decide: Callable[[], Record]) -> Record:
    """What was decided for these arguments before, else what `decide` says now."""
    record = _RECORD.get()
    if record is None:
        return decide()
    key = f"{name} {_digest(arguments)}"
    if key not in record:
        record[key] = decide()
    return record[key]


def _digest(arrays: tuple[np.ndarray, ...]) -> str:
    made = blake2b(digest_size=16)
    for array in arrays:
        made.update(f"{array.dtype.str}{array.shape}".encode())
        made.update(np.ascontiguousarray(array))
    return made.hexdigest()


class Deadline:
    """A number of seconds from now on. Deadlines of one name are told apart by their order."""

    def __init__(self, name: str, seconds: float) -> None:
        self._until, self._asked, self._of = time.monotonic() + seconds, 0, None
        record = _RECORD.get()
        if record is not None:
            mine = record.setdefault(name, {"next": 0, "deadlines": []})
            if mine["next"] == len(mine["deadlines"]):
                mine["deadlines"].append({"asked": 0, "passed": False})
            self._of = mine["deadlines"][mine["next"]]
            mine["next"] += 1

    @property
    def left(self) -> float:
        """Seconds, by the clock alone."""
        return self._until - time.monotonic()

    def passed(self) -> bool:
        """Whether the time is up; once it is, it stays so."""
        if self._of is None:
            return self.left < 0
        self._asked += 1
        if self._asked >= self._of["asked"]:
            if self._asked > self._of["asked"] and not self._of["passed"]:  # not asked so often before
                self._of["passed"] = self.left < 0
                self._of["asked"] = self._asked
            return bool(self._of["passed"])
        return False
