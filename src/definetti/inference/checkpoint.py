"""The checkpoint of a run: what was asked, what was decided by the clock, and where the chains are, in a `.dft` file.

A run is a function of what was asked, but for decisions that depend on the clock (`replay.py`). So a run that is
resumed is the same call once more, with these decisions taken as before and the chains put where they were. It has
*parts*: the samplers that ran one after the other, each with the state of its chains and of its stopping rule.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from definetti import __version__, archive
from definetti.archive import SUFFIX, Archive, Damaged, Tree, pack
from definetti.errors import INTERRUPTED, DefinettiError, ModelError, Notice, ParseError
from definetti.inference import options as asked
from definetti.inference.options import Options
from definetti.model import encoding
from definetti.replay import Record, recording

SHARE = 0.015  # of the time goes into checkpoints at most,
LEAST_SECONDS = 1.0  # and there is never less than this between two
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


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
    packed: bytes | None = field(default=None, repr=False)  # of a finished part

    def look(self, state: Callable[[], Tree]) -> None:
        """Keeps the state if it is time to do so."""
        if self.journal.due:
            self.keep(state)

    def keep(self, state: Callable[[], Tree], finished: bool = False) -> None:
        """Keeps the state now. Without a file nothing is made of it."""
        if self.journal.path is not None:
            began = time.perf_counter()
            self.state, self.finished, self.packed = state(), finished, None
            self.journal.write(began)

    def tree(self) -> bytes:
        if self.packed is None:
            made = pack(
                {"name": self.name, "finished": self.finished, "goal": self.goal.tree(), "state": self.state}
            )
            self.packed = made if self.finished else None
            return made
        return self.packed


class Journal:
    """The parts of a run under way, and the file that keeps them; without a file it keeps nothing, at no cost."""

    def __init__(self, path: Path | None = None, call: bytes = b"", record: Record | None = None) -> None:
        self.path, self.record = path, {} if record is None else record
        self.notices: tuple[Notice, ...] = ()
        self.goal = Goal()  # a new one, for the last part
        self._call, self._label, self._answer = call, {}, b""
        self._past: list[Part] = []  # of the file that is resumed, still to come
        self._parts: list[Part] = []
        self._good = False  # what stands in the place of the file is worth keeping
        self._finished = False
        self._next = 0.0

    def part(self, name: str) -> Part:
        """The next sampler's run, with what the file says of it."""
        if self._past:
            part = self._past.pop(0)
            if part.name != name:
                text = f"the run was sampled by {part.name}, and would now be by {name}"
                raise ModelError(f"{self.path} cannot be resumed here: {text}; resume it on the machine that began it")
        else:
            part = Part(self, name)
        if self.goal and not self._past:  # the last one goes on
            part.goal, part.extended, part.finished, part.packed = self.goal, True, False, None
            self.goal = Goal()
        self._parts.append(part)
        return part

    @property
    def due(self) -> bool:
        return self.path is not None and time.perf_counter() >= self._next

    def write(self, began: float | None = None) -> None:
        """Now; `began`: when the work for it began."""
        if self.path is None:
            return
        began = time.perf_counter() if began is None else began
        sections = {"call": self._call, "journal": pack({"record": self.record, "label": self._label})}
        parts = [*self._parts, *self._past]  # a file is never poorer than the one before
        sections |= {f"part {k}": part.tree() for k, part in enumerate(parts)}
        if self._answer:
            sections["answer"] = self._answer
        head = {"version": __version__, "finished": self._finished, "parts": len(parts)}
        archive.write(self.path, head, sections, self._good)
        self._good = True
        now = time.perf_counter()
        self._next = now + max(LEAST_SECONDS, (now - began) / SHARE)

    def finish(self, document: Callable[[], Any], interrupted: bool) -> None:
        """The answer, for those who read the file as a result; a run that was interrupted can be resumed."""
        if self.path is not None:
            self._answer = json.dumps(document(), allow_nan=False, separators=(",", ":")).encode()
            self._finished = not interrupted
            self.write()

    def patiently(self) -> Any:
        """While chains advance: a signal to end waits for the step under way, after which a checkpoint is written."""
        return nullcontext() if self.path is None else _patiently()


@contextmanager
def _patiently() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, frame: Any) -> None:
        if INTERRUPTED.is_set():  # once more: at once
            signal.signal(number, before[number] or signal.SIG_DFL)
            signal.raise_signal(number)
        INTERRUPTED.set()

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if before[signal.SIGINT] is signal.default_int_handler:  # not that of the command line, which ends with the run
            INTERRUPTED.clear()


# --- a new run --------------------------------------------------------------------------------------------------------


@contextmanager
def kept_in(
    path: str | Path | None, model: Any, queries: Sequence[str], options: Options, label: dict[str, Any]
) -> Iterator[tuple[Journal, Options]]:
    """The journal of a new run. Its file exists from here on."""
    if path is None:
        yield Journal(), options
        return
    path = Path(path)
    if path.suffix != SUFFIX:
        raise ModelError(f"a checkpoint is a file that ends in {SUFFIX}, got {path.name}")
    options = asked.replayable(options)
    with archive.locked(path):
        refuse_unfinished(path)
        call = {"model": encoding.encoded(model), "queries": list(queries), "options": asked.encoded(options)}
        journal = Journal(path, pack(call))
        journal._good = path.exists()
        journal._label = label
        journal.write()
        with recording(journal.record):
            yield journal, options


def refuse_unfinished(path: Path) -> None:
    """A run that can go on is not written over; neither is a file that is something else."""
    if not path.exists():
        return
    try:
        found = archive.read(path)
    except Damaged as error:
        raise ModelError(f"{error}; definetti resume {path} uses the checkpoint before it, or delete the file") from None
    except ParseError as error:
        raise ModelError(f"{error}; choose another file for the checkpoint") from None
    if not found.head.get("finished"):
        raise ModelError(f"{path} holds a run that is not finished: definetti resume {path} continues it")


# --- a run that goes on -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kept:
    """What a file says of a run."""

    model: Any
    queries: list[str]
    options: Options
    label: dict[str, Any]
    finished: bool
    answer: Any  # the document of its answer, None where it has none
    journal: Journal


def opened(path: str | Path) -> tuple[Archive, tuple[Notice, ...]]:
    """The file; the one before it where it is damaged, with a notice."""
    path = Path(path)
    try:
        return archive.read(path), ()
    except Damaged as damage:
        try:
            found = archive.read(archive.previous(path))
        except DefinettiError:
            raise damage from None
        return found, (Notice("note", f"{damage}; the checkpoint before it is used"),)


def read_run(path: str | Path) -> Kept:
    """A run from its file."""
    found, notices = opened(path)
    try:
        call, state = found.tree("call"), found.tree("journal")
        model = encoding.decoded(call["model"])
        options = asked.decoded(call["options"], model)
        journal = Journal(Path(path), found.sections["call"], state["record"])
        journal._label, journal._good = dict(state["label"]), not notices
        journal.notices = (*notices, *_of_another_version(found))
        for k in range(int(found.head["parts"])):
            part = found.tree(f"part {k}")
            name, finished = str(part["name"]), bool(part["finished"])
            journal._past.append(Part(journal, name, part["state"], finished, Goal(**part["goal"])))
        answer = json.loads(found.sections["answer"]) if "answer" in found.sections else None
        finished, queries = bool(found.head["finished"]), [str(query) for query in call["queries"]]
    except DefinettiError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, OverflowError):
        raise Damaged("the file is whole, and what it says is no run of definetti", path=found.path) from None
    return Kept(model, queries, options, journal._label, finished, answer, journal)


def _of_another_version(found: Archive) -> list[Notice]:
    if found.version == __version__:
        return []
    text = f"the run was begun by definetti {found.version} and goes on with {__version__}"
    return [Notice("note", f"{text}: the numbers may differ from those of a run without a break")]
