"""Leaf: what a run keeps of itself so that it can go on elsewhere. A `Journal` alone keeps nothing, at no cost; one
with a file (`inference/saving/checkpoint.py`) does.

A run is a function of what was asked, but for decisions that depend on the clock. These are recorded when they are
taken and taken again by a run that is resumed: whoever asks the clock whether to go on asks a `Deadline`; whoever
starts a search that the clock may end does so by `decided`. The rest of a run are its *parts*: samplers that ran one
after the other, each with the state of its chains and of its stopping rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from definetti.errors import ModelError, Notice

Tree = Any  # dicts with text keys, lists, numbers, texts, None and arrays
Record = dict[str, Tree]  # name → what was decided

# --- decisions --------------------------------------------------------------------------------------------------------

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
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()


class Verdicts:
    """Answers to one question that is asked again and again, of which the first yes is the last answer: whether the
    time is up. Questions of one name are distinguished by the order in which they come up."""

    def __init__(self, name: str) -> None:
        self._asked, self._of = 0, None
        record = _RECORD.get()
        if record is not None:
            mine = record.setdefault(name, {"next": 0, "questions": []})
            if mine["next"] == len(mine["questions"]):
                mine["questions"].append({"asked": 0, "yes": False})
            self._of = mine["questions"][mine["next"]]
            mine["next"] += 1

    def given(self, now: bool) -> bool:
        """The answer that was given before, else the one of now."""
        if self._of is None:
            return now
        self._asked += 1
        if self._asked > self._of["asked"] and not self._of["yes"]:  # it was not asked so often before
            self._of["asked"], self._of["yes"] = self._asked, now
        return self._asked >= self._of["asked"] and bool(self._of["yes"])


class Deadline:
    """A number of seconds from now on."""

    def __init__(self, name: str, seconds: float) -> None:
        self._until, self._verdicts = time.monotonic() + seconds, Verdicts(name)

    @property
    def left(self) -> float:
        """Seconds, by the clock alone."""
        return self._until - time.monotonic()

    def passed(self) -> bool:
        """Whether the time is up; once it is, it stays so."""
        return self._verdicts.given(self.left < 0)


# --- parts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """Until when a run that is resumed goes on, where that is not what was asked for at first."""

    sweeps: int | None = None
    seconds: float | None = None
    until: float | None = None

    def __bool__(self) -> bool:
        return any(x is not None for x in (self.sweeps, self.seconds, self.until))

    def tree(self) -> Tree:
        return {"sweeps": self.sweeps, "seconds": self.seconds, "until": self.until}


@dataclass
class Part:
    """One sampler's run: its state when it was last kept, and whether it came to its end."""

    journal: Journal
    name: str
    state: Tree | None = None
    finished: bool = False
    goal: Goal = Goal()
    extended: bool = False  # the goal is new
    shown: bool = False  # only what there is so far is wanted
    begun: bool = False  # a state was kept, here or in the file

    def __post_init__(self) -> None:
        self.begun = self.state is not None

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """While a state is put back: what does not fit is an error of the file."""
        try:
            yield
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            text = f"the state of the chains in the checkpoint does not fit this run ({type(error).__name__})"
            raise ModelError(f"{text}; it was changed, or written by another version") from None

    def look(self, state: Callable[[], Tree], size: Callable[[], int]) -> None:
        """Keeps the state if it is time to do so; `size`: about how many bytes that would be."""
        if self.journal.due(size):
            self.keep(state)

    def keep(self, state: Callable[[], Tree], finished: bool = False) -> None:
        """Keeps the state now; of a part that came to its end it is written with what follows, which is not far.
        Without a file nothing is made of it."""
        if self.journal.keeps:
            began = time.perf_counter()
            self.state = None  # the state before goes first: of a million constants two do not stand beside the chains
            self.begun, self.state, self.finished = True, state(), finished
            self.journal.unwritten = finished
            if not finished:
                self.journal.write(began)


class Journal:
    """Of a run without a checkpoint."""

    keeps = False
    unwritten = False  # a part came to its end, and the file does not say so yet
    notices: tuple[Notice, ...] = ()  # about the file
    record: Record  # what was decided, where that is kept
    remembered: Any = None  # results of the survey of modes (`inference/saving/remembered.py`)
    spread: Callable[..., None] | None = None  # sends a run's chains elsewhere (`inference/remote.py`)

    def begin(self) -> None:
        """What was asked makes sense: from here on it is kept."""

    def part(self, name: str) -> Part:
        """The next sampler's run, with what is known of it."""
        return Part(self, name)

    def due(self, size: Callable[[], int]) -> bool:
        """Whether it is time to write a state of so many bytes."""
        return False

    def write(self, began: float) -> None: ...

    def finish(self, document: Callable[[], Any], interrupted: bool) -> None:
        """The answer, for those who read the file as a result."""

    def patiently(self) -> AbstractContextManager[None]:
        """While chains advance: a signal to end waits for the step under way."""
        return nullcontext()
