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
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import fuzzing  # noqa: E402

import definetti  # noqa: E402

SLOW = 5.0  # seconds
MEMORY = 1 << 30
GUIDED = ("readers", "store", "generator_text", "archive", "encoding")  # whose branches atheris sees
TRACED = 1500  # inputs whose lines are counted
PACKAGE = Path(definetti.__file__).resolve().parent


class Hang(BaseException):
    pass


def limit() -> None:
    """A gigabyte more than now."""
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))

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
            out.write_text(json.dumps(counts))

    with tempfile.TemporaryDirectory() as corpus:
        for k, content in enumerate(reader.seeds):
            (Path(corpus) / str(k)).write_bytes(content)
        limits = [f"-max_total_time={int(seconds)}", f"-seed={seed + 1}", "-max_len=4096", "-verbosity=0"]
        atheris.Setup(["fuzz", corpus, *limits], one)
        threading.Timer(seconds + 5, lambda: os._exit(0)).start()
        atheris.Fuzz()


# --- coverage ---------------------------------------------------------------------------------------------------------


def lines_of(code: CodeType) -> set[int]:
    found = {line for _, _, line in code.co_lines() if line}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found |= lines_of(part)
    return found


def function_lines(file: Path) -> set[int]:
    """Lines inside functions: those of the module itself run when it is imported."""
    module = compile(file.read_text(encoding="utf-8"), str(file), "exec")
    return set().union(*(lines_of(part) for part in module.co_consts if isinstance(part, CodeType)), set())


def coverage(name: str, seed: int, path: Path) -> float:
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
    every = {(file, line) for file in files for line in function_lines(Path(file))}
    return len(seen & every) / max(len(every), 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="in all")
    parser.add_argument("--reader", action="append")
    parser.add_argument("--engine", choices=("mutation", "atheris", "both"), default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", help=argparse.SUPPRESS)
    parser.add_argument("--counts", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        readers = fuzzing.readers()
        if options.guided:
            limit()
            path = Path(folder) / f"input{readers[options.guided].suffix}"
            guided(options.guided, options.seconds, options.seed, Path(options.counts), path)
        names = options.reader or list(readers)
        engines = [by_mutation, by_atheris] if options.engine == "both" else [globals()[f"by_{options.engine}"]]
        failed = False
        limit()
        for name in names:
            path = Path(folder) / f"input{readers[name].suffix}"
            share = options.seconds / len(names) / len(engines)
            total: dict[str, int] = {}
            for engine in engines:
                for key, value in engine(name, share, options.seed, path).items():
                    total[key] = total.get(key, 0) + value
            accepted = total["accepted"] / max(total["inputs"], 1)
            figures = {"share_accepted": round(accepted, 3), "lines": round(coverage(name, options.seed, path), 3)}
            print(json.dumps({"reader": name, **total, **figures}), flush=True)
            failed = failed or bool(total["foreign"] or total["hangs"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
