"""Leaf: how much memory this process can still take, including the limits of its control group (containers), of its
address space (`ulimit -v`) and of the user (`--max-memory`), the most that it has taken, how it gives back what it no
longer needs, and its cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

UNKNOWN = 4 << 30  # bytes: the answer on a system that does not report its memory
CONTROLLERS = (  # (limit, usage, reclaimable cache in `memory.stat`) in cgroup v2 and v1
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that can be taken without swapping: the least of what the machine, each control group, the address space
    and the user's own limit have left."""
    return max(0, min([_machine(proc), *_groups_left(proc, cgroups), *_limits_left(proc)]))


_MOST: list[int] = []  # bytes that the user allows


def limit_memory(most: int | None) -> None:
    """From here on this process is to have no more than so many bytes; None: no such limit."""
    _MOST[:] = [] if most is None else [most]


def _limits_left(proc: Path) -> Iterator[int]:
    try:
        import resource

        pages = (proc / "self" / "statm").read_text(encoding="ascii").split()
        size, resident = (int(number) * resource.getpagesize() for number in pages[:2])
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    except (ImportError, OSError, ValueError):  # not Linux
        yield from _MOST
        return
    if soft != resource.RLIM_INFINITY:
        yield soft - size
    yield from (most - resident for most in _MOST)


def peak_memory(proc: Path = Path("/proc")) -> int | None:
    """The most bytes that this process has had since `exec`; None where the system does not say.

    `ru_maxrss`, which other systems have alone, also counts what the process was before `exec`: its parent's memory.
    """
    try:
        lines = (proc / "self" / "status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):  # not Linux
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)


def _machine(proc: Path) -> int:
    try:
        lines = (proc / "meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):  # not Linux
        pass
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError, AttributeError):
            continue
    return UNKNOWN


def _groups_left(proc: Path, cgroups: Path) -> Iterator[int]:
    """What each control group with a limit has left, from that of this process up to the root."""
    for folder in _group_folders(proc, cgroups):
        for limit, usage, cache in CONTROLLERS:
            try:
                most = int((folder / limit).read_text(encoding="ascii"))  # the text is "max" where there is no limit
                used = int((folder / usage).read_text(encoding="ascii"))
            except (OSError, ValueError):
                continue
            yield most - used + _statistic(folder / "memory.stat", cache)


def _group_folders(proc: Path, cgroups: Path) -> Iterator[Path]:
    """Inside a container the group's own path is often not mounted: its parents are, at least the root."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / "memory" if controllers else cgroups
        own = root / path.lstrip("/")
        yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def _statistic(file: Path, name: str) -> int:
    try:
        rows = (line.split() for line in file.read_text(encoding="ascii").splitlines())
        return next((int(row[1]) for row in rows if row[0] == name), 0)
    except (OSError, ValueError, IndexError):
        return 0


def give_back() -> None:
    """Returns freed memory to the system, where the C library can: buffers of many sizes that come and go, such as
    those of checkpoints, leave holes that it would keep."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def available_cores() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
