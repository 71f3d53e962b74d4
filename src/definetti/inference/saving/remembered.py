"""Results of the survey of modes and the weighing of regions that a checkpoint keeps, so that a resumed run has them.

Their calls of walkers (`modes/walkers.py`) are functions of their arguments and come in the same order each time, so a
result is known by its number. One that takes longer to write than it is worth is computed once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from definetti.archive import Buffer, buffers
from definetti.errors import ModelError
from definetti.journal import Tree
from definetti.modes.walkers import Advanced, Paths, Walk

RESULTS = {made.__name__: made for made in (Walk, Advanced, Paths)}
WORTH = 1e8  # bytes that are kept for a second of work,
MOST_BYTES = 1 << 26  # and in all
SHORT = 0.01  # seconds: what takes less is not kept


class Remembered:
    """Results by number; `note` hears of new ones, with the bytes of all."""

    def __init__(self, note: Callable[[int], None]) -> None:
        self.calls: dict[str, Tree] = {}
        self._note, self._next, self._bytes = note, 0, 0
        self._packed: tuple[int, list[Buffer]] = 0, []  # of how many results

    def packed(self) -> list[Buffer]:
        """For the file; results are packed once, and written many times."""
        if self._packed[0] != len(self.calls):
            self._packed = len(self.calls), buffers(self.calls, once=True)
        return self._packed[1]

    def call(self, work: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """What was computed before, else what is computed now."""
        name, self._next = str(self._next), self._next + 1
        if name in self.calls:
            try:
                return _decoded(self.calls[name])
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
                raise ModelError(
                    "the survey of modes in the checkpoint was changed, or is of another version"
                ) from None
        began = time.perf_counter()
        made = work(*arguments, **more)
        took, size = time.perf_counter() - began, _bytes(made)
        if took >= SHORT and size <= WORTH * took and self._bytes + size <= MOST_BYTES:
            self.calls[name] = _encoded(made)
            self._bytes += size
            self._note(self._bytes)
        return made


def _encoded(made: Any) -> Tree:
    if type(made).__name__ in RESULTS:
        return {"result": type(made).__name__, "parts": {f.name: _encoded(getattr(made, f.name)) for f in fields(made)}}
    if isinstance(made, dict):  # states by the sweep after which they were kept
        return {"at": [[key, _encoded(value)] for key, value in made.items()]}
    return [_encoded(one) for one in made] if isinstance(made, (list, tuple)) else made


def _decoded(tree: Tree) -> Any:
    if isinstance(tree, dict) and "result" in tree:
        return RESULTS[tree["result"]](**{name: _decoded(part) for name, part in tree["parts"].items()})
    if isinstance(tree, dict):
        return {int(key): _decoded(value) for key, value in tree["at"]}
    return [_decoded(one) for one in tree] if isinstance(tree, list) else tree


def _bytes(made: Any) -> int:
    if isinstance(made, np.ndarray):
        return made.nbytes
    parts = made.values() if isinstance(made, dict) else made if isinstance(made, (list, tuple)) else ()
    return sum(map(_bytes, vars(made).values() if type(made).__name__ in RESULTS else parts))
