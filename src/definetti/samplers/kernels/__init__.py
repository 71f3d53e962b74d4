"""Compiled inner loops. One file per engine: a cached kernel and every helper it calls live together.

(With `cache=True`, editing a helper in another file would leave the cached caller running the old code.)
"""

from __future__ import annotations

import os
from pathlib import Path

import numba
import platformdirs


def private_cache() -> Path:
    """The user's own cache folder for compiled code; refused if somebody else could have written to it."""
    folder = Path(os.environ.get("DEFINETTI_CACHE_DIR") or platformdirs.user_cache_dir("definetti"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
        raise PermissionError(f"the cache folder {folder} is not private to this user; set DEFINETTI_CACHE_DIR")
    return folder


if not numba.config.CACHE_DIR:  # pyright: ignore[reportAttributeAccessIssue]
    numba.config.CACHE_DIR = str(private_cache() / "numba")  # pyright: ignore[reportAttributeAccessIssue]
