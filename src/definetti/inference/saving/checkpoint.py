"""The checkpoint of a run: what was asked, what was decided by the clock, and where the chains are, in a `.dft` file.

A run that is resumed is the same call once more, with these decisions taken as before and the chains put where they
were (`journal.py`).
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from definetti import __version__, archive
from definetti.archive import SUFFIX, Archive, Buffer, Damaged, pack
from definetti.errors import INTERRUPTED, DefinettiError, ModelError, Notice, ParseError
from definetti.files import as_path
from definetti.inference.question import Options
from definetti.inference.saving import option_encoding
from definetti.inference.saving.remembered import Remembered
from definetti.journal import Goal, Journal, Part, Record, recording
from definetti.memory import give_back
from definetti.model import encoding

SHARE = 0.01  # of the time goes into checkpoints, but for the first and the last,
LEAST_SECONDS = 1.0  # and there is never less than this between two
SECONDS_PER_BYTE = 4e-9  # of a write, before one was measured
FEW_BYTES = 1 << 20  # a write of fewer says what any write takes, one of more what its bytes take
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


class Checkpoint(Journal):
    """The parts of a run under way, and the file that keeps them."""

    keeps = True

    def __init__(self, path: Path, call: bytes, label: dict[str, Any], good: bool) -> None:
        """`call`: what was asked, packed; `label`: what the caller keeps in the file; `good`: what stands in the place
        of the file is worth keeping."""
        self.path, self.record, self.label, self.goal = path, Record(), label, Goal()
        self.written, self.replaced = False, good
        self._call, self._good, self._answer, self._finished = call, good, b"", False
        self._past: list[Part] = []  # of the file that is resumed, still to come
        self._parts: list[Part] = []
        self._packed: dict[int, list[Buffer]] = {}  # of finished parts, by number
        self._written, self._took, self._per_byte = 0.0, 0.0, SECONDS_PER_BYTE  # when it was, seconds of any write
        self._only_shown = False
        self.remembered = Remembered(self._surveyed)

    def _surveyed(self, size: int) -> None:
        if self.due(lambda: size):
            self.write(time.perf_counter())

    def begin(self) -> None:
        if not self._past:
            self.write(time.perf_counter())

    @property
    def begun(self) -> bool:
        """Whether chains have begun: then there is something to lose."""
        return any(part.begun for part in [*self._parts, *self._past])

    def only_shown(self) -> None:
        """Nothing is sampled and nothing is written from here on."""
        self._only_shown = True

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
            part.goal, part.extended, part.finished, self.goal = self.goal, True, False, Goal()
        part.shown = self._only_shown
        self._parts.append(part)
        return part

    def due(self, size: Callable[[], int]) -> bool:
        """By what a write of so many bytes costs: a state may have grown since the last one."""
        waited = time.perf_counter() - self._written
        return waited >= LEAST_SECONDS and waited * SHARE >= self._took + size() * self._per_byte

    def write(self, began: float) -> None:
        """Now; `began`: when the work for it began."""
        parts = [*self._parts, *self._past]  # a file is never poorer than the one before,
        if self._only_shown or any(part.begun and part.state is None for part in parts):  # as where a state was cut off
            return
        sections: dict[str, bytes | list[Buffer]] = {"call": self._call}
        sections["journal"] = pack({"record": self.record, "label": self.label})
        if self.remembered.calls:
            sections["survey"] = self.remembered.packed()
        sections |= {f"part {k}": self._pack(k, part) for k, part in enumerate(parts)}
        if self._answer:
            sections["answer"] = self._answer
        head = {"version": __version__, "finished": self._finished, "parts": len(parts)}
        size = archive.write(self.path, head, sections, self._good)
        self._good = self.written = True
        self.unwritten = False
        self._written = time.perf_counter()
        if size < FEW_BYTES:
            self._took = self._written - began
        else:
            self._per_byte = max(self._written - began - self._took, 0.0) / size
        del sections
        give_back()

    def _pack(self, number: int, part: Part) -> list[Buffer]:
        if number in self._packed:
            return self._packed[number]
        tree = {"name": part.name, "finished": part.finished, "goal": part.goal.tree(), "state": part.state}
        packed = archive.buffers(tree)
        if part.finished and part in self._parts:  # one that is still to come may get another goal
            self._packed[number] = packed
        return packed

    def finish(self, document: Callable[[], Any], interrupted: bool) -> None:
        """The answer, for those who read the file as a result; a run that was interrupted can be resumed."""
        began = time.perf_counter()
        made = document()
        made["run"] = {"model": self.label.get("model"), **made["run"]}
        self._answer = json.dumps(made, allow_nan=False, separators=(",", ":")).encode()
        self._finished = not interrupted
        self.write(began)

    def patiently(self) -> Any:
        return _patiently()


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
        if not any(str(getattr(handler, "__module__", "")).startswith("definetti.") for handler in before.values()):
            INTERRUPTED.clear()  # under a handler of the command line the process ends with the run


# --- a new run --------------------------------------------------------------------------------------------------------


@contextmanager
def kept_in(
    path: str | PathLike[str] | None, model: Any, queries: Sequence[str], options: Options, label: dict[str, Any]
) -> Iterator[tuple[Journal, Options]]:
    """The journal of a new run, in a file if there is a path, and what it is asked."""
    if path is None:
        alone = Journal()
        alone.record = {}
        with recording(alone.record):
            yield alone, option_encoding.replayable(options)
        return
    path = as_path(path, "a checkpoint")
    if path.suffix != SUFFIX:
        raise ModelError(f"a checkpoint is a file that ends in {SUFFIX}, got {path.name}")
    if not all(isinstance(query, str) for query in queries):
        raise ModelError("a checkpoint keeps queries that are texts")
    options = option_encoding.replayable(options)
    with archive.locked(path):
        refuse_unfinished(path)
        kept = option_encoding.encoded(options)
        call = {"model": encoding.encoded(model), "queries": list(queries), "options": kept}
        journal = Checkpoint(path, pack(call), label, good=path.exists())
        try:
            with recording(journal.record):
                yield journal, options
        except DefinettiError:
            if not journal.begun:  # nothing half-written
                _take_back(path, journal)
            raise


def _take_back(path: Path, journal: Checkpoint) -> None:
    """The file that was there before, or none."""
    if journal.written and journal.replaced:
        archive.previous(path).replace(path)
    elif journal.written:
        path.unlink(missing_ok=True)


def refuse_unfinished(path: Path) -> None:
    """A run that can go on is not written over; neither is a file that is something else."""
    if not path.exists():
        return
    try:
        found = archive.read(path)
    except Damaged as error:
        raise ModelError(
            f"{error}; definetti resume {path} uses the checkpoint before it, or delete the file"
        ) from None
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
    finished: bool
    answer: Any  # the document of its answer, None where it has none
    journal: Checkpoint


def open_checkpoint(path: str | PathLike[str]) -> tuple[Archive, tuple[Notice, ...]]:
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


def read_run(path: str | PathLike[str]) -> Kept:
    """A run from its file."""
    found, notices = open_checkpoint(path)
    try:
        call, state = found.tree("call"), found.tree("journal")
        model = encoding.decoded(call["model"])
        options = option_encoding.decoded(call["options"], model)
        journal = Checkpoint(Path(path), bytes(found.sections["call"]), dict(state["label"]), good=not notices)
        journal.record, journal.notices = dict(state["record"]), (*notices, *_of_another_version(found))
        journal.remembered.calls = dict(found.tree("survey")) if "survey" in found.sections else {}
        for k in range(int(found.head["parts"])):
            part = found.tree(f"part {k}")
            kept = Part(journal, str(part["name"]), part["state"], bool(part["finished"]), Goal(**part["goal"]))
            journal._past.append(kept)
        answer = json.loads(bytes(found.sections["answer"])) if "answer" in found.sections else None
        finished, queries = bool(found.head["finished"]), [str(query) for query in call["queries"]]
    except DefinettiError:
        raise
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, RecursionError, OverflowError):
        raise Damaged("the file is whole, and what it says is no run of definetti", path=found.path) from None
    return Kept(model, queries, options, finished, answer, journal)


def _of_another_version(found: Archive) -> list[Notice]:
    if found.version == __version__:
        return []
    text = f"the run was begun by definetti {found.version} and goes on with {__version__}"
    return [Notice("note", f"{text}: the numbers may differ from those of a run without a break")]
