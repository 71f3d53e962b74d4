"""Fuzzes every reader: mutations of small files, and coverage-guided search by atheris.

    python benchmarks/fuzz.py --seconds 600 [--reader uai] [--engine mutation|atheris|both] [--seed N]

Prints one JSON object per reader: inputs, share accepted, foreign exceptions, hangs over 5 s, line coverage. Inputs
that raised something foreign are written to `found/`: put them into tests/corpus/READER/ when the reader is mended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from inspect import CO_NEWLOCALS
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import fuzzing  # noqa: E402

import definetti  # noqa: E402
from definetti.files import write_atomically  # noqa: E402

SLOW = 5.0  # seconds
MEMORY = 1 << 30
GUIDED = ("readers", "store", "generator_text", "archive", "encoding")  # whose branches atheris sees
TRACED = 3000  # inputs whose lines are counted
PACKAGE = Path(definetti.__file__).resolve().parent


class Hang(BaseException):
    pass


def limit() -> None:
    """A gigabyte more than now."""
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def late(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, late)


def tried(reader: fuzzing.Reader, content: bytes, path: Path) -> str:
    """accepted, refused, hang, or the name of a foreign exception."""
    signal.setitimer(signal.ITIMER_REAL, SLOW)
    try:
        return "accepted" if fuzzing.accepts(reader, content, path) else "refused"
    except Hang:
        return "hang"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def keep(name: str, content: bytes, what: str) -> None:
    folder = Path("found") / name
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / hashlib.blake2b(content, digest_size=6).hexdigest()
    if not place.exists():
        place.write_bytes(content)
        print(f"{name}: {what} ({place})", file=sys.stderr, flush=True)


def by_mutation(name: str, seconds: float, seed: int, path: Path) -> dict[str, int]:
    reader, rng = fuzzing.readers()[name], Random(seed)
    counts = {"inputs": 0, "accepted": 0, "foreign": 0, "hangs": 0}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        content = fuzzing.mutated(name, reader, rng)
        outcome = tried(reader, content, path)
        counts["inputs"] += 1
        counts["accepted"] += outcome == "accepted"
        if outcome not in ("accepted", "refused"):
            counts["hangs" if outcome == "hang" else "foreign"] += 1
            keep(name, content, outcome)
    return counts


def by_atheris(name: str, seconds: float, seed: int, path: Path) -> dict[str, int]:
    """In a process of its own: atheris does not return."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        command = [sys.executable, str(HERE / "fuzz.py"), "--guided", name, "--counts", str(out), "--seed", str(seed)]
        subprocess.run([*command, "--seconds", str(seconds)], stderr=subprocess.DEVNULL, check=False)
        return json.loads(out.read_text()) if out.exists() else {"inputs": 0, "accepted": 0, "foreign": 0, "hangs": 0}


def guided(name: str, seconds: float, seed: int, out: Path, path: Path) -> None:
    import atheris  # pyright: ignore[reportMissingImports]

    reader = fuzzing.readers()[name]
    counts = {"inputs": 0, "accepted": 0, "foreign": 0, "hangs": 0}
    for module in list(sys.modules):
        if module.startswith("definetti.") and any(part in module for part in GUIDED):
            for value in vars(sys.modules[module]).values():
                if callable(value) and getattr(value, "__module__", None) == module and hasattr(value, "__code__"):
                    value.__code__ = atheris.patch_code(value.__code__, trace_dataflow=False)

    def one(content: bytes) -> None:
        outcome = tried(reader, content, path)
        counts["inputs"] += 1
        counts["accepted"] += outcome == "accepted"
        if outcome not in ("accepted", "refused"):
            counts["hangs" if outcome == "hang" else "foreign"] += 1
            keep(name, content, outcome)
        if counts["inputs"] % 500 == 0:
            write_atomically(out, json.dumps(counts))

    def change(content: bytes, most: int, seed: int) -> bytes:
        """Mostly an input by the grammar, so that the search does not stay in what is refused at once."""
        rng = Random(seed)
        return fuzzing.mutated(name, reader, rng)[:most] if rng.random() < 0.7 else atheris.Mutate(content, most)

    with tempfile.TemporaryDirectory() as corpus:
        rng = Random(seed)
        for k, content in enumerate([*reader.seeds, *(fuzzing.mutated(name, reader, rng) for _ in range(50))]):
            (Path(corpus) / str(k)).write_bytes(content)
        limits = [f"-max_total_time={int(seconds)}", f"-seed={seed + 1}", "-max_len=16384", "-verbosity=0"]
        atheris.Setup(["fuzz", corpus, *limits], one, custom_mutator=change)
        threading.Timer(seconds + 5, lambda: os._exit(0)).start()
        atheris.Fuzz()


# --- coverage ---------------------------------------------------------------------------------------------------------


def lines_of(code: CodeType) -> set[int]:
    found = {line for _, _, line in code.co_lines() if line}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= lines_of(part)
    return found


def reached(reader: fuzzing.Reader) -> set[tuple[str, int]]:
    """The lines of all functions that the reader may call, by name, in the modules that are its own. What the others in
    these modules do (writing, other formats) is no concern of its input."""
    found: dict[str, list[tuple[str, CodeType]]] = {}

    def note(file: str, code: CodeType) -> None:
        for part in code.co_consts:
            if isinstance(part, CodeType):
                if part.co_flags & CO_NEWLOCALS:
                    found.setdefault(part.co_name, []).append((file, part))
                else:  # a class: its methods, by their names and by its own
                    note(file, part)
                    methods = (m for m in part.co_consts if isinstance(m, CodeType) and m.co_flags & CO_NEWLOCALS)
                    found.setdefault(part.co_name, []).extend((file, m) for m in methods)

    for module in reader.modules:
        file = PACKAGE / module
        note(str(file), compile(file.read_text(encoding="utf-8"), str(file), "exec"))
    waiting, seen, lines = list(reader.entries), set(reader.apart), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for file, code in found.get(name, ()):
            lines |= {(file, line) for line in lines_of(code)}
            waiting += _names(code)
    return lines


def _names(code: CodeType) -> list[str]:
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return [*code.co_names, *inner]


def coverage(name: str, seed: int, path: Path, show: bool = False) -> float:
    """The share of the reader's lines that mutated inputs reach."""
    reader, rng = fuzzing.readers()[name], Random(seed)
    files = {str(PACKAGE / module) for module in reader.modules}
    seen: set[tuple[str, int]] = set()

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    for k in range(TRACED):
        content = reader.seeds[k] if k < len(reader.seeds) else fuzzing.mutated(name, reader, rng)
        sys.settrace(trace)
        try:
            tried(reader, content, path)
        finally:
            sys.settrace(None)
    every = reached(reader)
    if show:
        for file, line in sorted(every - seen):
            print(f"{Path(file).relative_to(PACKAGE)}:{line}", file=sys.stderr)
    return len(seen & every) / max(len(every), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="in all")
    parser.add_argument("--reader", action="append")
    parser.add_argument("--engine", choices=("mutation", "atheris", "both"), default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missing", action="store_true", help="lines that no input reaches, on stderr")
    parser.add_argument("--sums", type=Path, help="a file that counts are added to, over runs")
    parser.add_argument("--guided", help=argparse.SUPPRESS)
    parser.add_argument("--counts", help=argparse.SUPPRESS)
    options = parser.parse_args()
    readers, folder = fuzzing.readers(), fuzzing.folder()
    if options.guided:
        limit()
        path = folder / f"input{readers[options.guided].suffix}"
        guided(options.guided, options.seconds, options.seed, Path(options.counts), path)
    names = options.reader or list(readers)
    engines = [by_mutation, by_atheris] if options.engine == "both" else [globals()[f"by_{options.engine}"]]
    failed = False
    limit()
    for name in names:
        path = folder / f"input{readers[name].suffix}"
        share = options.seconds / len(names) / len(engines)
        total: dict[str, int] = {}
        for engine in engines if share else ():
            for key, value in engine(name, share, options.seed, path).items():
                total[key] = total.get(key, 0) + value
        covered = coverage(name, options.seed, path, options.missing)
        found = {"reader": name, **total, "lines": round(covered, 3), "seed": options.seed}
        if total:
            found["share_accepted"] = round(total["accepted"] / max(total["inputs"], 1), 3)
            failed = failed or bool(total["foreign"] or total["hangs"])
            if options.sums:
                with options.sums.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)
    if options.sums:
        print(json.dumps(sums(options.sums)), flush=True)
    shutil.rmtree(folder)
    return int(failed)


def sums(path: Path) -> dict[str, Any]:
    """Over all runs that were noted in a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    total = {key: sum(row[key] for row in rows) for key in ("inputs", "accepted", "foreign", "hangs")}
    by_reader = {row["reader"]: 0 for row in rows}
    for row in rows:
        by_reader[row["reader"]] += row["inputs"]
    return {"all": total, "by_reader": by_reader}


if __name__ == "__main__":
    sys.exit(main())
