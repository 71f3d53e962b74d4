"""igraph's BLISS behind a guard: a process of its own with a time limit that really ends it, and sparse generators.

igraph holds the interpreter lock while it searches and cannot be stopped from Python, so all but small graphs go to
`python -m definetti.symmetry.bliss`, which reads arrays on stdin and writes arrays on stdout (the .npy format,
never pickle). The child also sets itself an alarm, so that it ends even if the parent was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from definetti.groups import Generator
from definetti.journal import Record, decided
from definetti.memory import available_memory

IN_PROCESS = 200  # nodes: below this a search takes no noticeable time
LIBRARIES = 1 << 30  # bytes of address space of the interpreter and what it has loaded


@dataclass(frozen=True)
class Found:
    """Generators on nodes and the order of their group; not `complete` if the time was up before all were known."""

    generators: tuple[Generator, ...]
    order: int
    complete: bool
    status: int | None = None  # of a search that ended on its own without an answer


def search(edges: np.ndarray, colours: np.ndarray, time_limit: float) -> Found:
    """The automorphism group of a coloured simple graph with nodes 0 … len(colours) - 1."""
    colours = np.unique(colours, return_inverse=True)[1].ravel()
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if len(colours) <= IN_PROCESS and time_limit > 0:
        generators, order = _automorphisms(edges, colours)
        return Found(tuple(generators), order, True)
    return _found(decided("automorphisms", (edges, colours), lambda: _searched(edges, colours, time_limit)))


def _automorphisms(edges: np.ndarray, colours: np.ndarray) -> tuple[list[Generator], int]:
    from definetti.symmetry.components import Graph, automorphisms  # seldom this process's work

    return automorphisms(Graph(colours.astype(np.uint64), edges))


# --- the parent's side -------------------------------------------------------------------------------------------


def _searched(edges: np.ndarray, colours: np.ndarray, time_limit: float) -> Record:
    """What the child found, as a record: it says how a search ended that the clock may have ended."""
    if time_limit <= 0:
        return {"status": None}
    answer, status = _run(_packed(edges, colours), time_limit)
    if status != 0:
        return {"status": status}
    stream = BytesIO(answer)
    sizes, points, images = (np.load(stream, allow_pickle=False) for _ in range(3))
    return {"status": 0, "sizes": sizes, "points": points, "images": images, "order": stream.read().decode("ascii")}


def _found(record: Record) -> Found:
    if record["status"] != 0:
        return Found((), 1, False, record["status"])
    bounds, points, images = np.cumsum(record["sizes"])[:-1], record["points"], record["images"]
    parts = zip(np.split(points, bounds), np.split(images, bounds), strict=True) if len(record["sizes"]) else ()
    return Found(tuple(parts), int(record["order"], 16), True)


def _run(request: bytes, time_limit: float) -> tuple[bytes, int | None]:
    """What the child wrote and how it ended; None if time was up. No child is left behind, whatever happens here."""
    package_root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([package_root, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-P", "-m", "definetti.symmetry.bliss", repr(float(time_limit))]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
    )
    try:
        return child.communicate(request, timeout=time_limit)[0], child.returncode
    except subprocess.TimeoutExpired:
        return b"", None
    finally:
        if child.poll() is None:
            child.kill()
        if child.stdin is not None:  # open if the child was ended before it had read everything
            with suppress(BrokenPipeError):
                child.stdin.close()
            child.stdin = None
        child.communicate()


def _packed(*arrays: np.ndarray) -> bytes:
    stream = BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


# --- the child's side --------------------------------------------------------------------------------------------


def _limit_memory() -> None:
    """Where the system can: better no symmetries than a machine without memory."""
    try:
        import resource

        most = available_memory() * 3 // 4 + LIBRARIES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, ValueError, OSError):
        pass


def main() -> None:
    limit = float(sys.argv[1])
    sys.modules["matplotlib"] = None  # pyright: ignore[reportArgumentType]: igraph would spend seconds on loading it
    _limit_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sees Ctrl-C and ends us
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit + 2.0)  # the default action ends the process, lock or no lock
    request = BytesIO(sys.stdin.buffer.read())
    edges = np.load(request, allow_pickle=False)
    colours = np.load(request, allow_pickle=False)
    generators, order = _automorphisms(edges, colours)
    sizes = np.array([len(points) for points, _ in generators], dtype=np.int64)
    points = np.concatenate([np.empty(0, np.int64), *(points for points, _ in generators)])
    images = np.concatenate([np.empty(0, np.int64), *(images for _, images in generators)])
    sys.stdout.buffer.write(_packed(sizes, points, images) + f"{order:x}\n".encode("ascii"))


if __name__ == "__main__":
    main()
