"""Compiled inner loops. One file per engine: a cached kernel and every helper it calls live together.

(With `cache=True`, editing a helper in another file would leave the cached caller running the old code.)
Compiled code is kept in a folder private to the user: created with mode 0700, and used only if the user owns it and nobody
else may write there. Otherwise a temporary folder serves for this process.
"""

from __future__ import annotations

import os
import stat
import tempfile
from functools import cache
from pathlib import Path

import numba
import platformdirs


def private(folder: Path) -> bool:
    """Makes the folder if it is not there; whether it is ours alone to write in."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(info.st_mode) or not os.access(folder, os.W_OK | os.X_OK):
        return False
    if hasattr(os, "getuid"):
        return info.st_uid == os.getuid() and not info.st_mode & 0o022
    return True


@cache
def temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="definetti-"))


def cache_folder(part: str) -> Path:
    """Where compiled code is kept between runs: `DEFINETTI_CACHE_DIR`, or the user's cache folder."""
    named = os.environ.get("DEFINETTI_CACHE_DIR") or platformdirs.user_cache_dir("definetti", appauthor=False)
    folder = Path(named)
    return folder / part if private(folder) and private(folder / part) else temporary_folder()


if not numba.config.CACHE_DIR:  # pyright: ignore[reportAttributeAccessIssue]
    numba.config.CACHE_DIR = str(cache_folder("numba"))  # pyright: ignore[reportAttributeAccessIssue]
