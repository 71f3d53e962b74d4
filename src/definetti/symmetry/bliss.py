"""igraph's BLISS behind a guard: a process of its own with a time limit that really ends it, and sparse generators.

igraph holds the interpreter lock while it searches and cannot be stopped from Python, so anything but a small graph goes to
`python -m definetti.symmetry.bliss`, which reads arrays on stdin and writes arrays on stdout (the .npy format, never
pickle). The child also sets itself an alarm, so that it ends even if the parent was killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from definetti.groups import Generator

IN_PROCESS = 200  # nodes: below this a search takes no noticeable time


@dataclass(frozen=True)
class Found:
    """Generators on nodes. `order` is None if the time was up before it was known."""

    generators: tuple[Generator, ...]
    order: int | None
    complete: bool


def search(edges: np.ndarray, colours: np.ndarray, time_limit: float) -> Found:
    """The automorphism group of a coloured simple graph with nodes 0 … len(colours) - 1."""
    colours = np.unique(colours, return_inverse=True)[1].ravel()
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if time_limit <= 0:
        return Found((), None, False)
    if len(colours) <= IN_PROCESS:
        generators, order = _automorphisms(edges, colours)
        return Found(tuple(generators), order, True)
    return _parse(_run(_packed(edges, colours), time_limit))


def _automorphisms(edges: np.ndarray, colours: np.ndarray) -> tuple[list[Generator], int]:
    graph, listed = _graph(edges, colours)
    return _generators(graph, listed), int(graph.count_automorphisms(color=listed))


def _graph(edges: np.ndarray, colours: np.ndarray):  # noqa: ANN202 (igraph has no types here)
    import igraph

    return igraph.Graph(n=len(colours), edges=edges), colours.tolist()


def _generators(graph, colours: list[int]) -> list[Generator]:
    """igraph's dense lists, made sparse one by one."""
    dense = graph.automorphism_group(color=colours)
    out: list[Generator] = []
    own = np.arange(len(colours))
    while dense:
        images = np.array(dense.pop(), dtype=np.int64)
        points = np.flatnonzero(images != own)
        out.append((points, images[points]))
    return out[::-1]


# --- the parent's side -------------------------------------------------------------------------------------------


def _run(request: bytes, time_limit: float) -> bytes:
    """What the child wrote within the time limit. No child is left behind, whatever ends this function."""
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
        return child.communicate(request, timeout=time_limit)[0]
    except subprocess.TimeoutExpired as late:
        return late.stdout or b""
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def _packed(*arrays: np.ndarray) -> bytes:
    stream = BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _parse(answer: bytes) -> Found:
    """Generators come first and the order after them: time may be up in between."""
    stream = BytesIO(answer)
    try:
        sizes, points, images = (np.load(stream, allow_pickle=False) for _ in range(3))
    except (ValueError, EOFError, OSError):
        return Found((), None, False)
    bounds = np.cumsum(sizes)[:-1]
    generators = tuple(zip(np.split(points, bounds), np.split(images, bounds), strict=True)) if len(sizes) else ()
    order = stream.read().decode("ascii")
    known = order.endswith("\n")
    return Found(generators, int(order, 16) if known else None, True)


# --- the child's side --------------------------------------------------------------------------------------------


def main() -> None:
    started = time.monotonic()
    limit = float(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sees Ctrl-C and ends us
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, limit + 2.0)  # the default action ends the process, lock or no lock
    request = BytesIO(sys.stdin.buffer.read())
    edges = np.load(request, allow_pickle=False)
    colours = np.load(request, allow_pickle=False)
    graph, listed = _graph(edges, colours)
    generators = _generators(graph, listed)
    sizes = np.array([len(points) for points, _ in generators], dtype=np.int64)
    points = np.concatenate([np.empty(0, np.int64), *(points for points, _ in generators)])
    images = np.concatenate([np.empty(0, np.int64), *(images for _, images in generators)])
    out = sys.stdout.buffer
    out.write(_packed(sizes, points, images))
    out.flush()
    if time.monotonic() - started < limit:
        out.write(f"{graph.count_automorphisms(color=listed):x}\n".encode("ascii"))


if __name__ == "__main__":
    main()
